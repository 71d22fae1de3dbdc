/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: who holds one is told by a signal before somebody else opens or truncates the file, who waits meanwhile. An entry an open
 * file. Source: fcntl(2), fs/locks.c. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/core/ctx.h"

struct file;
struct inode;

/* F_SETLEASE of descriptor fd, whose owner (F_SETOWN) the caller has seen to. type: F_RDLCK, F_WRLCK, F_UNLCK. Return: 0, −EACCES (not the
 * file's owner), −EINVAL (type, or no regular file), −EAGAIN (others have it open, or there is none to give back), −ENOMEM. */
MUST_CHECK int lease_set(struct ctx *ctx, struct file *f, int fd, int type);
/* F_GETLEASE. Return: F_RDLCK, F_WRLCK, F_UNLCK; of one that is being broken, what is to be left of it. */
int lease_get(struct file *f);

/* Somebody is about to open inode with flags (access mode and O_NONBLOCK): the leases in his way are broken. Parks until they
 * are gone, their time (/proc/sys/fs/lease-break-time) is over, or, with O_NONBLOCK, not at all. Return: 0, −EWOULDBLOCK,
 * −ERESTARTSYS, −ENOMEM. */
MUST_CHECK int lease_break(struct ctx *ctx, struct inode *inode, uint32_t flags);
/* The open file description goes. */
void lease_close(struct file *f);
