/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the VFS: checks shared by the operations on names. */
#pragma once

#include "sentry/vfs/path_walk.h"

MUST_CHECK int vfs_may_create(struct ctx *ctx, const struct dentry *dir);
MUST_CHECK int vfs_may_delete(struct ctx *ctx, const struct dentry *dir, const struct dentry *victim,
                              bool is_dir);
/* ret_path may be NULL. */
MUST_CHECK int vfs_mknod_full(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode,
                              uint64_t rdev, struct path *ret_path);
