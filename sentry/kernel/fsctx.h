/* SPDX-License-Identifier: Apache-2.0 */
/* Root, working directory and umask, shared by CLONE_FS. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/vfs/path_walk.h"

struct task;

struct fsctx {
    struct ref ref;
    struct path root, cwd; /* (k) */
    uint32_t umask;        /* (k) */
};

MUST_CHECK int fsctx_new(const struct path *root, const struct path *cwd, uint32_t umask,
                         struct fsctx **ret_fs);
MUST_CHECK int fsctx_dup(const struct fsctx *fs, struct fsctx **ret_fs);
struct fsctx *fsctx_ref(struct fsctx *fs);
void fsctx_unref(struct fsctx *fs);

/* Walk base for an *at call: dirfd AT_FDCWD or a directory's descriptor (only looked at when path is relative).
 * The base borrows from *hold, which the caller releases with path_unref. Return: 0, −EBADF, −ENOTDIR. */
MUST_CHECK int fsctx_base(struct task *t, int dirfd, const char *path, struct path *hold,
                          struct walk_base *ret_base);
