/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX message queues. */
#pragma once

#include <mqueue.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct buf;
struct ctx;
struct file;
struct ipcns;
struct mq_table;
struct socket;

enum {
    MQ_NAME_MAX = 255,
    MQ_PRIO_MAX_K = 32768,
    MQ_QUEUES_MAX = 256,       /* fs.mqueue.queues_max */
    MQ_MSG_MAX = 10,           /* fs.mqueue.msg_max: of users; the default */
    MQ_MSG_MAX_HARD = 65536,   /* with CAP_SYS_RESOURCE */
    MQ_SIZE_MAX = 8192,        /* fs.mqueue.msgsize_max: of users; the default */
    MQ_SIZE_MAX_HARD = 1 << 20,
    MQ_COOKIE_SIZE = 32,       /* SIGEV_THREAD: what is sent to the netlink socket */
};

/* Source: mq_overview(7). name has no slash in front. attr may be NULL. umask and permission checks included.
 * Return: 0 with a new file; −ENOENT, −EEXIST, −EACCES, −EINVAL, −ENOSPC, −EMFILE, −ENOMEM, −ENAMETOOLONG. */
MUST_CHECK int posix_mq_open_file(struct ctx *ctx, const char *name, uint32_t flags, uint32_t mode,
                            const struct mq_attr *attr, struct file **ret_file);
MUST_CHECK int posix_mq_unlink_name(struct ctx *ctx, const char *name);
bool posix_mq_is(const struct file *f);
/* deadline_ns: CLOCK_MONOTONIC. Parks unless f is O_NONBLOCK. Return: 0 / size of the message; −EAGAIN, −ETIMEDOUT, −EMSGSIZE,
 * −ERESTARTSYS, −EBADF (wrong access mode), −EFAULT. */
MUST_CHECK int64_t posix_mq_send(struct ctx *ctx, struct file *f, uaddr_t msg, uint64_t size, uint32_t prio,
                           uint64_t deadline_ns);
MUST_CHECK int64_t posix_mq_receive(struct ctx *ctx, struct file *f, uaddr_t msg, uint64_t size, uaddr_t prio,
                              uint64_t deadline_ns);
/* ev NULL: no more. thread: for SIGEV_THREAD the netlink socket's file (referenced by the callee) and the cookie.
 * Return: 0, −EBUSY. */
MUST_CHECK int posix_mq_set_notify(struct ctx *ctx, struct file *f, const struct sigevent *ev, struct file *thread,
                             const uint8_t *cookie);
void posix_mq_get_attr(struct file *f, struct mq_attr *ret_attr);
void posix_mq_set_flags(struct file *f, int64_t flags); /* O_NONBLOCK only */

void posix_mq_table_free(struct mq_table *table); /* NULL is fine */

/* ---- for the mqueue file system ---- */

/* A queue with the default attributes. Return: 0; −EACCES (no process can use the namespace any more), −EEXIST, −ENOSPC, −EMFILE,
 * −ENOMEM. */
MUST_CHECK int posix_mq_create_in(struct ctx *ctx, struct ipcns *ns, const char *name, uint32_t mode);
/* The caller has checked the directory's rights. Return: 0 or −ENOENT. */
MUST_CHECK int posix_mq_unlink_in(struct ipcns *ns, const char *name);
/* Calls fn for each name until it returns false. */
void posix_mq_for_each(struct ipcns *ns, bool (*fn)(void *arg, const char *name), void *arg);
/* Text of a queue's file. Return: whether there is such a queue. */
bool posix_mq_describe(struct ipcns *ns, const char *name, struct buf *out, uint32_t *ret_mode, uint32_t *ret_uid,
                 uint32_t *ret_gid);
