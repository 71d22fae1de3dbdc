/* SPDX-License-Identifier: Apache-2.0 */
/* Root, working directory and umask. */
#include "sentry/kernel/fsctx.h"

#include <errno.h>
#include <fcntl.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"

int fsctx_new(const struct path *root, const struct path *cwd, uint32_t umask, struct fsctx **ret_fs)
{
    struct fsctx *fs = NEW(struct fsctx);
    if (!fs)
        return -ENOMEM;
    ref_init(&fs->ref);
    fs->root = path_ref(*root);
    fs->cwd = path_ref(*cwd);
    fs->umask = umask;
    *ret_fs = fs;
    return 0;
}

int fsctx_dup(const struct fsctx *fs, struct fsctx **ret_fs)
{
    return fsctx_new(&fs->root, &fs->cwd, fs->umask, ret_fs);
}

struct fsctx *fsctx_ref(struct fsctx *fs)
{
    ref_get(&fs->ref);
    return fs;
}

void fsctx_unref(struct fsctx *fs)
{
    if (!fs || !ref_put(&fs->ref))
        return;
    path_unref(&fs->root);
    path_unref(&fs->cwd);
    mem_free(fs);
}

int fsctx_base(struct task *t, int dirfd, const char *path, struct path *hold, struct walk_base *ret_base)
{
    struct fsctx *fs = t->fs;
    *ret_base = (struct walk_base){.root = &fs->root, .cwd = &fs->cwd, .umask = fs->umask};
    *hold = (struct path){0};
    if (path[0] == '/')
        return 0;
    if (dirfd == AT_FDCWD) {
        /* Another thread may change the directory while this one's walk is parked. */
        *hold = path_ref(fs->cwd);
        ret_base->cwd = hold;
        return 0;
    }
    struct file *f = fdtable_peek(t->files, dirfd);
    if (!f)
        return -EBADF;
    if (*path && !inode_is_dir(f->inode))
        return -ENOTDIR;
    *hold = path_ref(f->path);
    ret_base->cwd = hold;
    return 0;
}
