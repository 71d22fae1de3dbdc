/* SPDX-License-Identifier: Apache-2.0 */
/* inotify_init, inotify_add_watch, inotify_rm_watch. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <sys/inotify.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"
#include "sentry/vfs/watch.h"

#define FLAGS_ALL                                                                                  \
    (IN_ALL_EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD | IN_MASK_CREATE | IN_ISDIR |       \
     IN_ONESHOT | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED)

int64_t sys_inotify_init1(struct task *t, int32_t flags)
{
    struct file *f;
    if (flags & ~(IN_CLOEXEC | IN_NONBLOCK))
        return -EINVAL;
    int r = watch_new(t->ctx.cred, (uint32_t)flags, &f);
    return r ? r : fdtable_add(t, f, 0, flags & IN_CLOEXEC);
}

int64_t sys_inotify_init(struct task *t)
{
    return sys_inotify_init1(t, 0);
}

/* Return: 0 with a referenced inotify file, −EBADF, −EINVAL. */
static int instance_get(struct task *t, int fd, struct file **ret_file)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    if (!watch_is(f)) {
        file_unref(f);
        return -EINVAL;
    }
    *ret_file = f;
    return 0;
}

int64_t sys_inotify_add_watch(struct task *t, int32_t fd, uaddr_t path, uint32_t mask)
{
    CLEANUP_FREE char *text = NULL;
    CLEANUP_PATH struct path hold = {0};
    CLEANUP_PATH struct path found = {0};
    struct walk_base base;
    struct file *f;
    if (!(mask & FLAGS_ALL) || ((mask & IN_MASK_ADD) && (mask & IN_MASK_CREATE)))
        return -EINVAL;
    int r = instance_get(t, fd, &f);
    if (r)
        return r;
    text = mem_realloc(NULL, PATH_SIZE_MAX, 1);
    ssize_t n = text ? copy_in_str(&t->ctx, text, path, PATH_SIZE_MAX) : -ENOMEM;
    r = n < 0 ? (int)n : 0;
    if (!r)
        r = fsctx_base(t, AT_FDCWD, text, &hold, &base);
    if (!r)
        r = walk_path(&t->ctx, &base, text,
                      (mask & IN_DONT_FOLLOW ? 0U : WALK_FOLLOW) | (mask & IN_ONLYDIR ? WALK_DIRECTORY : 0U), &found);
    if (!r)
        r = inode_permission(&t->ctx, found.dentry->inode, MAY_READ);
    if (!r)
        r = watch_add(f, found.dentry->inode, mask);
    file_unref(f);
    return r;
}

int64_t sys_inotify_rm_watch(struct task *t, int32_t fd, int32_t wd)
{
    struct file *f;
    int r = instance_get(t, fd, &f);
    if (r)
        return r;
    r = watch_remove(f, wd);
    file_unref(f);
    return r;
}
