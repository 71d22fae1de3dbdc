/* SPDX-License-Identifier: Apache-2.0 */
/* File systems whose files are a container's trees on the host, reached through its gofer. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;
struct dentry;
struct gofer_client;

enum gofer_share {
    /* Nobody but this container changes the tree while it runs (the root file system): names,
     * absent names and attributes are cached without asking again. */
    GOFER_EXCLUSIVE,
    /* Others may change it (volumes). What is cached is trusted while the host's notifications say
     * that nothing changed, or for GOFER_SHARED_TRUST_NS where the host can't tell. */
    GOFER_SHARED
};

enum { GOFER_SHARED_TRUST_NS = 100 * 1000 * 1000 };

/* Makes a file system of tree and hands out its root, a directory or (a bind-mounted file) any
 * other inode. Takes its own reference of the client. A tree that the gofer serves read-only gives
 * a superblock with MS_RDONLY. Runs on a fiber. Return: 0 or −errno. Owns: the caller unrefs
 * *ret_root. */
MUST_CHECK int gofer_fs_mount(struct gofer_client *client, uint32_t tree, enum gofer_share share,
                              struct dentry **ret_root);
/* Gives an exclusive tree that was just mounted a limit of size bytes on its disk, of which used are taken by names files, links and
 * directories. Beyond it changes fail with ENOSPC from gofer_fs_enforce_limit on: what is needed to come to work with a full tree is
 * done before. Return: 0, −ENOMEM. Does not park. */
MUST_CHECK int gofer_fs_limit(struct dentry *root, uint64_t size, uint64_t used, uint64_t names);
void gofer_fs_enforce_limit(struct dentry *root); /* does nothing without a limit */

/* Waits until the changes that guests were told to have made are made on the host: before others hear of them. Runs on a
 * fiber. */
void gofer_fs_settle_all(void);
/* The same at the sentry's end, when nothing else runs any more: blocks, at most until deadline_ns (CLOCK_MONOTONIC). */
void gofer_fs_finish_all(uint64_t deadline_ns);
