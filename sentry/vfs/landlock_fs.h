/* SPDX-License-Identifier: Apache-2.0 */
/* What a Landlock domain lets its members do with files. Costs one test of the credentials for who lives in none. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/core/cred.h"
#include "sentry/core/ctx.h"
#include "sentry/core/landlock.h"

struct dentry;
struct file;
struct mount;
struct path;

extern const struct landlock_key_ops landlock_fs_keys; /* keys are inodes */

/* The caller's domain when it handles files at all. */
static inline const struct landlock_set *landlock_fs_domain(const struct ctx *ctx)
{
    const struct landlock_set *d = ctx->cred->landlock;
    return unlikely(d != NULL) && d->fs_any ? d : NULL;
}

int landlock_fs_check_slow(const struct landlock_set *d, const struct path *path, uint32_t access);
int landlock_fs_refer_slow(const struct landlock_set *d, const struct path *new_dir, const struct dentry *old,
                           const struct dentry *new, bool moves, bool exchange);
int landlock_fs_open_slow(const struct landlock_set *d, struct file *f, bool exec);

/* LANDLOCK_* rights on path, given by rules on it or above it. Does not park. Return: 0 or −EACCES. */
MUST_CHECK static inline int landlock_fs_check(const struct ctx *ctx, const struct path *path, uint32_t access)
{
    const struct landlock_set *d = landlock_fs_domain(ctx);
    return likely(!d) ? 0 : landlock_fs_check_slow(d, path, access);
}

/* The right to make an entry of that type (S_IFMT bits). */
uint32_t landlock_fs_make_right(uint32_t mode);

/* A link (moves false) or rename of old to the name new (may be negative) in new_dir, both in new_dir's mount. What the file
 * could not be used for in its old place may not become possible. Return: 0; −EACCES (a right is missing), −EXDEV. */
MUST_CHECK static inline int landlock_fs_refer(const struct ctx *ctx, const struct path *new_dir,
                                               const struct dentry *old, const struct dentry *new, bool moves,
                                               bool exchange)
{
    const struct landlock_set *d = landlock_fs_domain(ctx);
    return likely(!d) ? 0 : landlock_fs_refer_slow(d, new_dir, old, new, moves, exchange);
}

/* An open of f->path, not with O_PATH; exec: to run it. Remembers in f what may not be done with it later. */
MUST_CHECK static inline int landlock_fs_open(const struct ctx *ctx, struct file *f, bool exec)
{
    const struct landlock_set *d = landlock_fs_domain(ctx);
    return likely(!d) ? 0 : landlock_fs_open_slow(d, f, exec);
}

/* Return: 0, or −EACCES when f was opened without the right (LANDLOCK_TRUNCATE). */
MUST_CHECK int landlock_fs_file(const struct file *f, uint32_t access);
/* ioctls of devices, but for those that concern the descriptor or its file system. Return: 0 or −EACCES. */
MUST_CHECK int landlock_fs_ioctl(const struct file *f, uint32_t cmd);
/* Changes of mounts. Return: 0 or −EPERM. */
MUST_CHECK static inline int landlock_fs_topology(const struct ctx *ctx)
{
    return landlock_fs_domain(ctx) ? -EPERM : 0;
}
/* Adds a path_beneath rule for what path is. Return: 0; −EINVAL (a directory's right on a file), −EBADFD (of an internal
 * file system), −E2BIG, −ENOMEM. */
MUST_CHECK int landlock_fs_add_rule(struct landlock_set *ruleset, const struct path *path, uint32_t access);
