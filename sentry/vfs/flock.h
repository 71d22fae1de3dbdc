/* SPDX-License-Identifier: Apache-2.0 */
/* Advisory file locks: POSIX records (per process), open-file-description records, and flock(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/core/ctx.h"

struct buf;
struct file;
struct inode;

enum flock_kind {
    FLOCK_POSIX, /* owner: the descriptor table; gone when any descriptor of the file is closed */
    FLOCK_OFD,   /* owner: the open file description */
    FLOCK_BSD,   /* flock(2): owner: the open file description; the whole file */
};

struct flock_req {
    enum flock_kind kind;
    int type;           /* F_RDLCK, F_WRLCK, F_UNLCK */
    uint64_t start, end; /* inclusive; end INT64_MAX = to the end of the file */
    const void *owner;
    int32_t pid;        /* shown by F_GETLK and /proc/locks; −1 for OFD */
};

/* Locks held by files at once, over the whole sandbox: more give −ENOLCK. */
enum { FLOCK_MAX = 65536 };

/* Takes, converts or (F_UNLCK) gives back a range. wait: parks until it is free. Return: 0, −EAGAIN, −EDEADLK,
 * −ENOLCK, −ENOMEM, −ERESTARTSYS. */
MUST_CHECK int flock_set(struct ctx *ctx, struct inode *inode, const struct flock_req *req, bool wait);
/* Finds what would block req. Return: true with *ret_req the holder's lock. */
bool flock_test(struct inode *inode, const struct flock_req *req, struct flock_req *ret_req);
/* A descriptor table closed a descriptor of inode: its POSIX locks go. */
void flock_release_posix(struct inode *inode, const void *owner);
/* The open file description goes: OFD and flock(2) locks. */
void flock_release_file(struct file *f);
void flock_inode_free(struct inode *inode);
/* Lines of /proc/locks. */
void flock_print_all(struct buf *out);
/* Lines of /proc/PID/fdinfo for locks held through f ("lock:\t…"). owner is the descriptor table. */
void flock_print_file(struct file *f, const void *owner, struct buf *out);
