/* SPDX-License-Identifier: Apache-2.0 */
/* A container's directory under --root: its lock, its state.json and its saved config. */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "oci/arena.h"
#include "oci/ocistate.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"
#include "runtime/procid.h"

/* What state.json holds. Strings and arrays live in arena. */
struct statefile {
    const char *oci_version, *bundle, *rootfs, *owner;
    struct oci_pairs annotations;
    enum ocistate_status status; /* as last written: creating, created or running */
    struct timespec created;
    struct procid creator; /* the command that makes the container; only while creating */
    struct procid gofer;   /* the container's pid */
    struct procid sentry;
    const char *const *cgroup_dirs; /* as cgroup_encode writes them */
    unsigned cgroup_dirs_len;
    bool cgroup_namespace;
    bool terminal; /* the config asks for one */
    const char *layer; /* path of its layer on disk; "": none */
    bool layer_keep;   /* the layer outlives the container */
    uint64_t layer_limit; /* bytes; 0: none */
    struct arena arena;
};

/* Checks a container id. Return: 0, −EINVAL with runc's text. */
MUST_CHECK int statefile_check_id(const char *id, struct errmsg *e);

/* Makes ROOT (with its parents) and ROOT/ID and takes its lock. A directory left by a command that
 * was killed before it wrote a state is taken over.
 * Return: descriptor of the directory; its lock in *ret_lock. Errors: −EEXIST (runc's text). */
MUST_CHECK int statefile_new_dir(const char *root, const char *id, int *ret_lock, struct errmsg *e);
/* Return: descriptor of ROOT/ID, or −ENOENT with runc's text, or another −errno. */
MUST_CHECK int statefile_open_dir(const char *root, const char *id, struct errmsg *e);
/* Locks the container against other commands that change it. wait: block until it is free.
 * Return: descriptor that holds the lock until closed; −EWOULDBLOCK; −errno. */
MUST_CHECK int statefile_lock(int dir, bool wait);

/* Reads state.json. Return: 0, −ENOENT if there is none, −EINVAL with a message if it is broken.
 * Owns: caller calls statefile_free. */
MUST_CHECK int statefile_read(int dir, struct statefile *ret_state, struct errmsg *e);
/* Replaces state.json in one step. Locks: the container's. */
MUST_CHECK int statefile_write(int dir, const struct statefile *state, struct errmsg *e);
void statefile_free(struct statefile *state);

/* Saves and reads back the config.json that the container was made from. */
MUST_CHECK int statefile_save_config(int dir, const char *json, size_t size, struct errmsg *e);
MUST_CHECK int statefile_read_config(int dir, char **ret_json, size_t *ret_size, struct errmsg *e);

/* Removes everything in the directory, and the directory. Can be interrupted and repeated. */
MUST_CHECK int statefile_remove(const char *root, const char *id, int dir, struct errmsg *e);
