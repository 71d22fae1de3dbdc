/* SPDX-License-Identifier: Apache-2.0 */
/* Where containers' layers are on disk: STORE/ID-KEY, with N/upper and N/work for tree N, and who has them. STORE is a directory that
 * the user names, or WIRE_STORE_NAME in the root file system, so that a layer is on the same disk and goes with it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct layer_wish {
    const char *state_root, *id; /* whose layer: containers of one name under two state directories have each their own */
    const char *rootfs;          /* absolute */
    const char *dir;             /* STORE; NULL: in the root file system, or state_dir if that can't be written */
    const char *state_dir;       /* the container's state directory, absolute */
};

struct layer_store {
    char *path; /* of ID-KEY, absolute */
    int fd;     /* of it; holds its lock */
    bool fresh; /* made by this call, not left by an earlier container of the name */
};

/* Where layer_store_open will look first. Return: absolute path; NULL: no memory. Owns: caller frees with mem_free. */
MUST_CHECK char *layer_store_path(const struct layer_wish *wish);
/* Finds or makes a container's layer and locks it until fd and its copies are closed.
 * Return: 0; −EBUSY (in use); −EOPNOTSUPP (a file system that can't have layers); −errno; each with a message.
 * Owns: caller calls layer_store_close. */
MUST_CHECK int layer_store_open(const struct layer_wish *wish, struct layer_store *ret_store, struct errmsg *e);
/* Makes sure that the layer has a place for tree, whose root is open at tree_fd: a new one starts with the root's owner and mode.
 * Return: 0, −errno with a message. */
MUST_CHECK int layer_store_add(const struct layer_store *store, unsigned tree, int tree_fd, struct errmsg *e);
/* The upper layer of tree 0 of the layer at path. Return: O_PATH descriptor; −1: there is none. */
int layer_store_open_upper(const char *path);
/* Hands the lock over to fd, a descriptor of the same directory that lives longer. Return: 0, −EBUSY with a message. */
MUST_CHECK int layer_store_move_lock(const struct layer_store *store, int fd, struct errmsg *e);
void layer_store_close(struct layer_store *store);

/* What the layer at path takes on disk, as du counts: bytes, and names in it. Return: 0, −errno. */
MUST_CHECK int layer_store_usage(const char *path, uint64_t *ret_size, uint64_t *ret_names);
/* Lets go of a layer when nobody uses it any more. keep: it stays for the next container of the name, unless nothing is in it.
 * rootfs: as in the wish. A layer that is gone, or locked by somebody, is left alone. Return: 0, −errno with a message. */
MUST_CHECK int layer_store_drop(const char *path, const char *rootfs, bool keep, struct errmsg *e);
