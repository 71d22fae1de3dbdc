/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes and fifos, and the means by which splice and tee reach into them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"

struct cred;
struct ctx;
struct file;
struct inode;

enum {
    PIPE_SLOTS_DEFAULT = 16, /* pages of a new pipe: 64 KiB */
    PIPE_SLOTS_POOR = 2,     /* the same once PIPE_PAGES_SOFT are spoken for */
    PIPE_PAGES_SOFT = 16384, /* pages of all pipes: /proc/sys/fs/pipe-user-pages-soft */
};

/* Both ends of a new pipe. flags: O_NONBLOCK, O_DIRECT. Return: 0, −ENFILE or −ENOMEM. */
MUST_CHECK int pipe_new(const struct cred *cred, uint32_t flags, struct file **ret_read,
                        struct file **ret_write);
bool pipe_is(const struct file *f);
/* The open of a fifo's inode, whatever file system it is on (see vfs_set_special_open): sets file->ops and priv,
 * waits for the other side as fifo(7) says. Parks. Return: 0, −ENXIO (write, non-blocking, no reader), −ERESTARTSYS,
 * −ENFILE, −ENOMEM, −EINVAL (no access mode). On failure file is as before. */
MUST_CHECK int pipe_fifo_open(struct ctx *ctx, struct inode *inode, struct file *file);

/* ---- for splice, tee, vmsplice, sendfile ---- */

/* Waits until the pipe has room (nonblock: −EAGAIN instead). Return: free bytes (> 0); −EPIPE without readers (SIGPIPE is
 * sent), −ERESTARTSYS, −EAGAIN. Then a non-blocking write of at most that much from sentry memory completes. */
MUST_CHECK ssize_t pipe_wait_room(struct ctx *ctx, struct file *f, bool nonblock);
/* Waits for data. Return: bytes there (> 0), 0 at the end of file, −EAGAIN, −ERESTARTSYS. */
MUST_CHECK ssize_t pipe_wait_data(struct ctx *ctx, struct file *f, bool nonblock);
/* Copies at most size bytes at offset from the pipe's read position without consuming. Return: bytes. */
size_t pipe_peek(struct file *f, size_t offset, void *dst, size_t size);
/* Drops size bytes (which pipe_peek has shown) from the front. */
void pipe_consume(struct file *f, size_t size);
/* Keeps other readers out between peek and consume across a park. Return: 0 or −ERESTARTSYS; unlock wakes them. */
MUST_CHECK int pipe_lock_read(struct ctx *ctx, struct file *f);
void pipe_unlock_read(struct file *f);
/* Whether two ends are of the same pipe (splice refuses that with −EINVAL). */
bool pipe_same(const struct file *a, const struct file *b);
