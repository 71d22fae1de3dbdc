/* SPDX-License-Identifier: Apache-2.0 */
/* Directories: listing, working directory and root, mkdir, rmdir, rename. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"

/* ---- getdents ---- */

enum { DIR_BUF_MAX = 64 * 1024 };

/* Entries are gathered here and copied out in one go. */
struct dir_fill {
    struct dir_sink sink; /* must stay first */
    char *buf;
    size_t size, used;
    bool old_layout; /* getdents: the type is the last byte of the record */
    bool too_small;  /* not even the first entry fits */
};

enum { DIR_HEADER64 = 8 + 8 + 2 + 1, DIR_HEADER = 8 + 8 + 2 };

static bool dir_fill_emit(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned d_type,
                          int64_t next_pos)
{
    struct dir_fill *d = container_of(sink, struct dir_fill, sink);
    size_t head = d->old_layout ? DIR_HEADER : DIR_HEADER64;
    size_t need = ALIGN_UP(head + len + 1 + (d->old_layout ? 1 : 0), (size_t)8);
    if (need > d->size - d->used) {
        d->too_small = d->used == 0;
        return false;
    }
    char *at = d->buf + d->used;
    uint16_t reclen = (uint16_t)need;
    memset(at, 0, need);
    memcpy(at, &ino, 8);
    memcpy(at + 8, &next_pos, 8);
    memcpy(at + 16, &reclen, 2);
    memcpy(at + head, name, len);
    at[d->old_layout ? need - 1 : 18] = (char)d_type;
    d->used += need;
    return true;
}

static int64_t dir_getdents(struct task *t, int fd, uaddr_t buf, uint32_t count, bool old_layout)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    struct dir_fill d = {.sink.emit = dir_fill_emit, .old_layout = old_layout};
    int64_t pos = f->pos;
    d.size = MIN(count, (uint32_t)DIR_BUF_MAX);
    d.buf = mem_realloc(NULL, d.size, 1);
    int64_t ret = d.buf ? file_readdir(&t->ctx, f, &d.sink) : -ENOMEM;
    if (ret == 0 && d.too_small)
        ret = -EINVAL;
    if (d.used) {
        ret = copy_out(&t->ctx, buf, d.buf, d.used);
        if (ret == 0)
            ret = (int64_t)d.used;
        else
            f->pos = pos; /* they can be read again */
    }
    mem_free(d.buf);
    file_unref(f);
    return ret;
}

int64_t sys_getdents64(struct task *t, int32_t fd, uaddr_t buf, uint32_t count)
{
    return dir_getdents(t, fd, buf, count, false);
}

int64_t sys_getdents(struct task *t, int32_t fd, uaddr_t buf, uint32_t count)
{
    return dir_getdents(t, fd, buf, count, true);
}

/* ---- where a process is ---- */

int64_t sys_getcwd(struct task *t, uaddr_t buf, uint64_t size)
{
    if (t->fs->cwd.dentry->deleted)
        return -ENOENT;
    CLEANUP_BUF struct buf path = {0};
    CLEANUP_BUF struct buf out = {0};
    bool reachable;
    int ret = path_print_reach(&t->fs->cwd, &t->fs->root, &path, &reachable);
    if (ret < 0)
        return ret;
    if (!reachable)
        buf_puts(&out, "(unreachable)");
    buf_append(&out, path.data, path.size + 1);
    ret = buf_error(&out);
    if (ret < 0)
        return ret;
    if (out.size > size)
        return -ERANGE;
    ret = copy_out(&t->ctx, buf, out.data, out.size);
    return ret < 0 ? ret : (int64_t)out.size;
}

/* Replaces *slot by p (consumed) when the caller may enter it. */
static int dir_enter(struct task *t, struct path *slot, struct path p, int cap)
{
    int ret = inode_is_dir(p.dentry->inode) ? inode_permission(&t->ctx, p.dentry->inode, MAY_EXEC) : -ENOTDIR;
    if (ret == 0 && cap >= 0 && !cred_own_cap(t->ctx.cred, cap))
        ret = -EPERM;
    if (ret < 0) {
        path_unref(&p);
        return ret;
    }
    struct path old = *slot;
    *slot = p;
    path_unref(&old);
    return 0;
}

int64_t sys_chdir(struct task *t, uaddr_t path)
{
    struct path p;
    int ret = pathname_walk(t, AT_FDCWD, path, WALK_FOLLOW | WALK_DIRECTORY, &p);
    return ret < 0 ? ret : dir_enter(t, &t->fs->cwd, p, -1);
}

int64_t sys_fchdir(struct task *t, int32_t fd)
{
    struct file *f = fdtable_get_any(t, fd);
    if (!f)
        return -EBADF;
    int ret = dir_enter(t, &t->fs->cwd, path_ref(f->path), -1);
    file_unref(f);
    return ret;
}

int64_t sys_chroot(struct task *t, uaddr_t path)
{
    struct path p;
    int ret = pathname_walk(t, AT_FDCWD, path, WALK_FOLLOW | WALK_DIRECTORY, &p);
    return ret < 0 ? ret : dir_enter(t, &t->fs->root, p, CAP_SYS_CHROOT);
}

int64_t sys_umask(struct task *t, int32_t mask)
{
    uint32_t old = t->fs->umask;
    t->fs->umask = (uint32_t)mask & 0777;
    return old;
}

/* ---- making, removing, moving ---- */

int64_t sys_mkdirat(struct task *t, int32_t dirfd, uaddr_t addr, int32_t mode)
{
    CLEANUP_PATHNAME char *path = NULL;
    struct walk_base base;
    struct path hold;
    int ret = pathname_in(t, addr, &path);
    if (ret == 0)
        ret = fsctx_base(t, dirfd, path, &hold, &base);
    if (ret < 0)
        return ret;
    ret = vfs_mkdir(&t->ctx, &base, path, (uint32_t)mode);
    path_unref(&hold);
    return ret;
}

int64_t sys_mkdir(struct task *t, uaddr_t path, int32_t mode)
{
    return sys_mkdirat(t, AT_FDCWD, path, mode);
}

int64_t sys_unlinkat(struct task *t, int32_t dirfd, uaddr_t addr, int32_t flags)
{
    if (flags & ~AT_REMOVEDIR)
        return -EINVAL;
    CLEANUP_PATHNAME char *path = NULL;
    struct walk_base base;
    struct path hold;
    int ret = pathname_in(t, addr, &path);
    if (ret == 0)
        ret = fsctx_base(t, dirfd, path, &hold, &base);
    if (ret < 0)
        return ret;
    ret = flags & AT_REMOVEDIR ? vfs_rmdir(&t->ctx, &base, path) : vfs_unlink(&t->ctx, &base, path);
    path_unref(&hold);
    return ret;
}

int64_t sys_rmdir(struct task *t, uaddr_t path)
{
    return sys_unlinkat(t, AT_FDCWD, path, AT_REMOVEDIR);
}

int64_t sys_unlink(struct task *t, uaddr_t path)
{
    return sys_unlinkat(t, AT_FDCWD, path, 0);
}

int64_t sys_renameat2(struct task *t, int32_t olddirfd, uaddr_t oldaddr, int32_t newdirfd, uaddr_t newaddr,
                      uint32_t flags)
{
    CLEANUP_PATHNAME char *old_path = NULL;
    CLEANUP_PATHNAME char *new_path = NULL;
    struct walk_base old_base, new_base;
    struct path old_hold = {0}, new_hold = {0};
    int ret = pathname_in(t, oldaddr, &old_path);
    if (ret == 0)
        ret = pathname_in(t, newaddr, &new_path);
    if (ret == 0)
        ret = fsctx_base(t, olddirfd, old_path, &old_hold, &old_base);
    if (ret == 0)
        ret = fsctx_base(t, newdirfd, new_path, &new_hold, &new_base);
    if (ret == 0)
        ret = vfs_rename(&t->ctx, &old_base, old_path, &new_base, new_path, flags);
    path_unref(&old_hold);
    path_unref(&new_hold);
    return ret;
}

int64_t sys_renameat(struct task *t, int32_t olddirfd, uaddr_t oldpath, int32_t newdirfd, uaddr_t newpath)
{
    return sys_renameat2(t, olddirfd, oldpath, newdirfd, newpath, 0);
}

int64_t sys_rename(struct task *t, uaddr_t oldpath, uaddr_t newpath)
{
    return sys_renameat2(t, AT_FDCWD, oldpath, AT_FDCWD, newpath, 0);
}
