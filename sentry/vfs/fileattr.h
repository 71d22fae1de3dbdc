/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of inodes that chattr sets: FS_*_FL of <linux/fs.h>. What they forbid is asked where the VFS asks for permission. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;
struct inode;
struct path;

/* Whether inode's file system knows such flags. The others are for inodes that have. */
bool fileattr_has(const struct inode *inode);
/* Parks. Return: 0, the file system's errors. */
MUST_CHECK int fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags);
/* Gives the flags in mask the values in flags. Parks. Return: 0, −EROFS, −EPERM (neither owner nor CAP_FOWNER; immutable and
 * append-only need CAP_LINUX_IMMUTABLE), −EOPNOTSUPP. Source: ioctl_iflags(2). */
MUST_CHECK int fileattr_set(struct ctx *ctx, const struct path *path, uint32_t mask, uint32_t flags);
