/* SPDX-License-Identifier: Apache-2.0 */
/* What the VFS asks of fs/pipe.c: opening a named pipe. */
#pragma once

#include "platform/base/compiler.h"

struct ctx;
struct file;
struct inode;

/* The open of a fifo's inode, whatever file system it is on: sets file->ops and priv, waits for the other side
 * as fifo(7) says (file->flags has access mode and O_NONBLOCK). Parks. Return: 0, −ENXIO (write, non-blocking, no reader),
 * −ERESTARTSYS, −ENOMEM, −EINVAL (no access mode). On failure file is as before. */
MUST_CHECK int fifo_open(struct ctx *ctx, struct inode *inode, struct file *file);
