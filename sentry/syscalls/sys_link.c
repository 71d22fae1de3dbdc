/* SPDX-License-Identifier: Apache-2.0 */
/* Hard and symbolic links, nodes. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"

int64_t sys_linkat(struct task *t, int32_t olddirfd, uaddr_t oldaddr, int32_t newdirfd, uaddr_t newaddr,
                   int32_t flags)
{
    if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    if ((flags & AT_EMPTY_PATH) && !cred_has_cap(t->ctx.cred, CAP_DAC_READ_SEARCH))
        return -ENOENT;
    CLEANUP_PATHNAME char *new_path = NULL;
    int ret = pathname_in(t, newaddr, &new_path);
    if (ret < 0)
        return ret;
    struct path from, hold;
    ret = pathname_walk(t, olddirfd, oldaddr,
                        (flags & AT_SYMLINK_FOLLOW ? WALK_FOLLOW : 0) |
                            (flags & AT_EMPTY_PATH ? WALK_EMPTY : 0),
                        &from);
    if (ret < 0)
        return ret;
    struct walk_base base;
    ret = fsctx_base(t, newdirfd, new_path, &hold, &base);
    if (ret == 0) {
        ret = vfs_link(&t->ctx, &from, &base, new_path);
        path_unref(&hold);
    }
    path_unref(&from);
    return ret;
}

int64_t sys_link(struct task *t, uaddr_t oldpath, uaddr_t newpath)
{
    return sys_linkat(t, AT_FDCWD, oldpath, AT_FDCWD, newpath, 0);
}

int64_t sys_symlinkat(struct task *t, uaddr_t target_addr, int32_t dirfd, uaddr_t addr)
{
    CLEANUP_PATHNAME char *target = NULL;
    CLEANUP_PATHNAME char *path = NULL;
    struct walk_base base;
    struct path hold;
    int ret = pathname_in(t, target_addr, &target);
    if (ret == 0)
        ret = pathname_in(t, addr, &path);
    if (ret == 0)
        ret = fsctx_base(t, dirfd, path, &hold, &base);
    if (ret < 0)
        return ret;
    ret = vfs_symlink(&t->ctx, &base, path, target);
    path_unref(&hold);
    return ret;
}

int64_t sys_symlink(struct task *t, uaddr_t target, uaddr_t path)
{
    return sys_symlinkat(t, target, AT_FDCWD, path);
}

static int64_t link_read(struct task *t, const struct path *p, bool empty, uaddr_t buf, size_t size)
{
    struct inode *inode = p->dentry->inode;
    if (!S_ISLNK(inode->mode))
        return empty ? -ENOENT : -EINVAL;
    const char *text;
    char *heap;
    int ret = inode_link_text(&t->ctx, inode, &text, &heap);
    if (ret < 0)
        return ret;
    size_t len = MIN(strlen(text), size);
    ret = copy_out(&t->ctx, buf, text, len);
    mem_free(heap);
    if (ret < 0)
        return ret;
    inode_touch(inode, IATTR_ATIME);
    return (int64_t)len;
}

int64_t sys_readlinkat(struct task *t, int32_t dirfd, uaddr_t addr, uaddr_t buf, int32_t size)
{
    if (size <= 0)
        return -EINVAL;
    CLEANUP_PATHNAME char *path = NULL;
    struct walk_base base;
    struct path hold, p;
    int ret = pathname_in(t, addr, &path);
    if (ret == 0)
        ret = fsctx_base(t, dirfd, path, &hold, &base);
    if (ret < 0)
        return ret;
    ret = walk_path(&t->ctx, &base, path, WALK_EMPTY, &p);
    path_unref(&hold);
    if (ret < 0)
        return ret;
    int64_t n = link_read(t, &p, !*path, buf, (size_t)size);
    path_unref(&p);
    return n;
}

int64_t sys_readlink(struct task *t, uaddr_t path, uaddr_t buf, int32_t size)
{
    return sys_readlinkat(t, AT_FDCWD, path, buf, size);
}

int64_t sys_mknodat(struct task *t, int32_t dirfd, uaddr_t addr, int32_t mode, uint32_t dev)
{
    CLEANUP_PATHNAME char *path = NULL;
    struct walk_base base;
    struct path hold;
    int ret = pathname_in(t, addr, &path);
    if (ret == 0)
        ret = fsctx_base(t, dirfd, path, &hold, &base);
    if (ret < 0)
        return ret;
    /* The call's 32 bits hold 12 of major between 8 and 12 of minor. */
    uint64_t rdev = makedev((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00));
    ret = vfs_mknod(&t->ctx, &base, path, (uint32_t)mode, rdev);
    path_unref(&hold);
    return ret;
}

int64_t sys_mknod(struct task *t, uaddr_t path, int32_t mode, uint32_t dev)
{
    return sys_mknodat(t, AT_FDCWD, path, mode, dev);
}
