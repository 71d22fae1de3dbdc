/* SPDX-License-Identifier: Apache-2.0 */
/* read and write in all their forms, lseek, truncation, allocation, syncing. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/resource.h>

#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/syscalls/rw_limit.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/lease.h"

/* ---- limits ---- */

int rw_limit(struct task *t, const struct file *f, uint64_t start, uint64_t *inout_size)
{
    uint64_t limit = t->group->rlimits[RLIMIT_FSIZE].rlim_cur;
    if (limit == RLIM_INFINITY || !S_ISREG(f->inode->mode))
        return 0;
    if (start >= limit) {
        siginfo_t info;
        siginfo_kernel(&info, SIGXFSZ, SI_KERNEL);
        (void)signal_send_task(t, &info);
        return -EFBIG;
    }
    *inout_size = MIN(*inout_size, limit - start);
    return 0;
}

/* ---- the core ---- */

static ssize_t rw_read(struct file *f, struct uio *u, int64_t *pos)
{
    if (pos)
        return file_read(f, u, pos);
    if (f->no_seek) {
        int64_t none = 0;
        return file_read(f, u, &none);
    }
    file_pos_lock(u->ctx, f);
    ssize_t n = file_read(f, u, &f->pos);
    file_pos_unlock(f);
    return n;
}

static ssize_t rw_write_at(struct task *t, struct file *f, struct uio *u, int64_t *pos)
{
    if (unlikely(t->group->rlimits[RLIMIT_FSIZE].rlim_cur != RLIM_INFINITY)) {
        uint64_t start = f->flags & O_APPEND ? f->inode->size : (uint64_t)*pos;
        int ret = file_writable(f) ? rw_limit(t, f, start, &u->left) : 0;
        if (ret < 0)
            return ret;
    }
    ssize_t n = file_write(f, u, pos);
    if (n > 0 && unlikely(f->flags & O_DSYNC) && f->ops->fsync) {
        int ret = file_fsync(&t->ctx, f, (f->flags & O_SYNC) != O_SYNC);
        if (ret < 0)
            return ret;
    }
    return n;
}

static ssize_t rw_write(struct task *t, struct file *f, struct uio *u, int64_t *pos)
{
    if (pos)
        return rw_write_at(t, f, u, pos);
    if (f->no_seek) {
        int64_t none = 0;
        return rw_write_at(t, f, u, &none);
    }
    file_pos_lock(&t->ctx, f);
    ssize_t n = rw_write_at(t, f, u, &f->pos);
    file_pos_unlock(f);
    return n;
}

/* Checks what pread and pwrite check before they look at the buffer. */
static int rw_positioned(struct task *t, int fd, int64_t pos, struct file **ret_file)
{
    if (pos < 0)
        return -EINVAL;
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    if (f->no_seek) {
        file_unref(f);
        return -ESPIPE;
    }
    *ret_file = f;
    return 0;
}

int64_t sys_read(struct task *t, int32_t fd, uaddr_t buf, uint64_t count)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    struct uio u;
    uio_init_user(&u, &t->ctx, buf, count);
    ssize_t n = (int64_t)count < 0 ? -EFAULT : rw_read(f, &u, NULL);
    file_unref(f);
    return n;
}

int64_t sys_write(struct task *t, int32_t fd, uaddr_t buf, uint64_t count)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    struct uio u;
    uio_init_user(&u, &t->ctx, buf, count);
    ssize_t n = (int64_t)count < 0 ? -EFAULT : rw_write(t, f, &u, NULL);
    file_unref(f);
    return n;
}

int64_t sys_pread64(struct task *t, int32_t fd, uaddr_t buf, uint64_t count, int64_t offset)
{
    struct file *f;
    int ret = rw_positioned(t, fd, offset, &f);
    if (ret < 0)
        return ret;
    struct uio u;
    uio_init_user(&u, &t->ctx, buf, count);
    ssize_t n = (int64_t)count < 0 ? -EFAULT : rw_read(f, &u, &offset);
    file_unref(f);
    return n;
}

int64_t sys_pwrite64(struct task *t, int32_t fd, uaddr_t buf, uint64_t count, int64_t offset)
{
    struct file *f;
    int ret = rw_positioned(t, fd, offset, &f);
    if (ret < 0)
        return ret;
    struct uio u;
    uio_init_user(&u, &t->ctx, buf, count);
    ssize_t n = (int64_t)count < 0 ? -EFAULT : rw_write(t, f, &u, &offset);
    file_unref(f);
    return n;
}

/* ---- vectors ---- */

struct rw_vector {
    int fd;
    uaddr_t iov;
    uint64_t iovcnt;
    int64_t pos; /* −1: the file's own */
    int flags;   /* RWF_* */
    bool write;
};

static ssize_t rw_move(struct task *t, struct file *f, struct uio *u, int64_t at, int flags, bool write)
{
    int64_t *pos = at < 0 ? NULL : &at;
    if (!write)
        return rw_read(f, u, pos);
    /* Appending moves no position of the file's own; without O_APPEND that is a write at the end. */
    uint32_t append = f->flags & O_APPEND;
    int64_t end = (int64_t)f->inode->size;
    if ((flags & RWF_APPEND) && !append && !f->no_seek)
        pos = &end;
    ssize_t n;
    if ((flags & RW_NOAPPEND) && append && inode_append_only(f->inode))
        return -EPERM;
    if ((flags & RW_NOAPPEND) && append && pos) {
        /* Nobody else sees the flag off: what parks in this write belongs to this description. */
        f->flags &= ~(uint32_t)O_APPEND;
        n = rw_write(t, f, u, pos);
        f->flags |= append;
    } else {
        n = rw_write(t, f, u, pos);
    }
    if (n > 0 && (flags & (RWF_SYNC | RWF_DSYNC)) && f->ops->fsync) {
        int ret = file_fsync(&t->ctx, f, !(flags & RWF_SYNC));
        if (ret < 0)
            return ret;
    }
    return n;
}

int64_t rw_file(struct task *t, struct file *f, struct uio *u, int64_t pos, int flags, bool write)
{
    /* A stream that must not wait does what it does for O_NONBLOCK; it can't park then. */
    bool nowait = (flags & RWF_NOWAIT) && f->no_seek && !(f->flags & O_NONBLOCK);
    if (nowait)
        f->flags |= O_NONBLOCK;
    int64_t ret = rw_move(t, f, u, pos, flags, write);
    if (nowait)
        f->flags &= ~(uint32_t)O_NONBLOCK;
    return ret;
}

static int64_t rw_vector(struct task *t, const struct rw_vector *v)
{
    if (v->flags & ~RW_FLAGS_KNOWN)
        return -EOPNOTSUPP;
    if (v->pos < -1)
        return -EINVAL;
    struct file *f = fdtable_get(t, v->fd);
    if (!f)
        return -EBADF;
    int64_t ret = 0;
    if (v->pos >= 0 && f->no_seek)
        ret = -ESPIPE;
    else if (!(v->write ? file_writable(f) : file_readable(f)))
        ret = -EBADF;
    struct uio u = {0};
    if (ret == 0)
        ret = uio_init_iovec(&u, &t->ctx, v->iov, v->iovcnt);
    if (ret == 0) {
        ret = rw_file(t, f, &u, v->pos, v->flags, v->write);
        uio_free(&u);
    }
    file_unref(f);
    return ret;
}

int64_t sys_readv(struct task *t, int32_t fd, uaddr_t iov, uint64_t iovcnt)
{
    return rw_vector(t, &(struct rw_vector){fd, iov, iovcnt, -1, 0, false});
}

int64_t sys_writev(struct task *t, int32_t fd, uaddr_t iov, uint64_t iovcnt)
{
    return rw_vector(t, &(struct rw_vector){fd, iov, iovcnt, -1, 0, true});
}

int64_t sys_preadv(struct task *t, int32_t fd, uaddr_t iov, uint64_t iovcnt, uint64_t pos_l, uint64_t pos_h)
{
    if ((int64_t)pos_l < 0)
        return -EINVAL;
    return rw_vector(t, &(struct rw_vector){fd, iov, iovcnt, (int64_t)pos_l, 0, false});
}

int64_t sys_pwritev(struct task *t, int32_t fd, uaddr_t iov, uint64_t iovcnt, uint64_t pos_l, uint64_t pos_h)
{
    if ((int64_t)pos_l < 0)
        return -EINVAL;
    return rw_vector(t, &(struct rw_vector){fd, iov, iovcnt, (int64_t)pos_l, 0, true});
}

int64_t sys_preadv2(struct task *t, int32_t fd, uaddr_t iov, uint64_t iovcnt, uint64_t pos_l, uint64_t pos_h,
                    int32_t flags)
{
    return rw_vector(t, &(struct rw_vector){fd, iov, iovcnt, (int64_t)pos_l, flags, false});
}

int64_t sys_pwritev2(struct task *t, int32_t fd, uaddr_t iov, uint64_t iovcnt, uint64_t pos_l,
                     uint64_t pos_h, int32_t flags)
{
    return rw_vector(t, &(struct rw_vector){fd, iov, iovcnt, (int64_t)pos_l, flags, true});
}

/* ---- position and size ---- */

int64_t sys_lseek(struct task *t, int32_t fd, int64_t offset, int32_t whence)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int64_t ret = whence < SEEK_SET || whence > SEEK_HOLE ? -EINVAL : file_llseek(&t->ctx, f, offset, whence);
    file_unref(f);
    return ret;
}

static int rw_truncate_limit(struct task *t, uint64_t length)
{
    uint64_t limit = t->group->rlimits[RLIMIT_FSIZE].rlim_cur;
    if (length <= limit)
        return 0;
    siginfo_t info;
    siginfo_kernel(&info, SIGXFSZ, SI_KERNEL);
    (void)signal_send_task(t, &info);
    return -EFBIG;
}

int64_t sys_truncate(struct task *t, uaddr_t addr, int64_t length)
{
    if (length < 0)
        return -EINVAL;
    struct path p;
    int ret = pathname_walk(t, AT_FDCWD, addr, WALK_FOLLOW, &p);
    if (ret < 0)
        return ret;
    struct inode *inode = p.dentry->inode;
    if (inode_is_dir(inode))
        ret = -EISDIR;
    else if (!S_ISREG(inode->mode))
        ret = -EINVAL;
    else
        ret = mount_want_write(p.mount);
    if (ret == 0)
        ret = inode_permission(&t->ctx, inode, MAY_WRITE);
    if (ret == 0 && inode_append_only(inode))
        ret = -EPERM;
    if (ret == 0)
        ret = rw_truncate_limit(t, (uint64_t)length);
    if (ret == 0)
        ret = inode_get_write(inode);
    if (ret == 0) {
        ret = lease_break(&t->ctx, inode, O_WRONLY);
        if (ret == 0)
            ret = landlock_fs_check(&t->ctx, &p, LANDLOCK_TRUNCATE);
        if (ret == 0)
            ret = vfs_truncate(&t->ctx, &p, (uint64_t)length);
        inode_put_write(inode);
    }
    path_unref(&p);
    return ret;
}

int64_t sys_ftruncate(struct task *t, int32_t fd, int64_t length)
{
    if (length < 0)
        return -EINVAL;
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = S_ISREG(f->inode->mode) && file_writable(f) ? rw_truncate_limit(t, (uint64_t)length) : -EINVAL;
    if (ret == 0 && inode_append_only(f->inode))
        ret = -EPERM;
    if (ret == 0)
        ret = landlock_fs_file(f, LANDLOCK_TRUNCATE);
    if (ret == 0)
        ret = vfs_truncate(&t->ctx, &f->path, (uint64_t)length);
    file_unref(f);
    return ret;
}

static int rw_fallocate_check(struct task *t, const struct file *f, int mode, int64_t offset, int64_t len)
{
    int64_t end;
    if (!file_writable(f))
        return -EBADF;
    if (offset < 0 || len <= 0)
        return -EINVAL;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_ZERO_RANGE |
                 FALLOC_FL_INSERT_RANGE | FALLOC_FL_UNSHARE_RANGE))
        return -EOPNOTSUPP;
    if ((mode & FALLOC_FL_PUNCH_HOLE) && !(mode & FALLOC_FL_KEEP_SIZE))
        return -EOPNOTSUPP;
    if (inode_immutable(f->inode) || ((mode & ~FALLOC_FL_KEEP_SIZE) && inode_append_only(f->inode)))
        return -EPERM;
    if (S_ISFIFO(f->inode->mode))
        return -ESPIPE;
    if (inode_is_dir(f->inode))
        return -EISDIR;
    if (!S_ISREG(f->inode->mode) && !S_ISBLK(f->inode->mode))
        return -ENODEV;
    if (__builtin_add_overflow(offset, len, &end))
        return -EFBIG;
    if (!(mode & FALLOC_FL_KEEP_SIZE) && (uint64_t)end > f->inode->size)
        return rw_truncate_limit(t, (uint64_t)end);
    return 0;
}

int64_t sys_fallocate(struct task *t, int32_t fd, int32_t mode, int64_t offset, int64_t len)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = rw_fallocate_check(t, f, mode, offset, len);
    if (ret == 0)
        ret = file_fallocate(&t->ctx, f, mode, offset, len);
    file_unref(f);
    return ret;
}

/* What of a file is in memory tells what others read: so only who may write it is told, as on Linux. */
int64_t sys_cachestat(struct task *t, int32_t fd, uaddr_t range, uaddr_t stat, uint32_t flags)
{
    struct file *f = fdtable_get(t, fd);
    struct host_cachestat st = {0};
    uint64_t r[2];
    if (!f)
        return -EBADF;
    int ret = COPY_IN(&t->ctx, &r, range);
    if (ret == 0 && !file_writable(f) && !inode_owner_or_capable(&t->ctx, f->inode) &&
        inode_permission(&t->ctx, f->inode, MAY_WRITE))
        ret = -EPERM;
    if (ret == 0 && flags)
        ret = -EINVAL;
    if (ret == 0 && f->ops->cachestat)
        ret = f->ops->cachestat(&t->ctx, f, r[0], r[1], &st);
    if (ret == 0)
        ret = COPY_OUT(&t->ctx, stat, &st);
    file_unref(f);
    return ret;
}

/* ---- syncing and advice ---- */

static int64_t rw_fsync(struct task *t, int fd, bool data_only)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = file_fsync(&t->ctx, f, data_only);
    file_unref(f);
    return ret;
}

int64_t sys_fsync(struct task *t, int32_t fd)
{
    return rw_fsync(t, fd, false);
}

int64_t sys_fdatasync(struct task *t, int32_t fd)
{
    return rw_fsync(t, fd, true);
}

int64_t sys_sync_file_range(struct task *t, int32_t fd, int64_t offset, int64_t nbytes, uint32_t flags)
{
    int64_t end;
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = 0;
    if ((flags & ~7U) || offset < 0 || nbytes < 0 || __builtin_add_overflow(offset, nbytes, &end))
        ret = -EINVAL;
    else if (!S_ISREG(f->inode->mode) && !S_ISBLK(f->inode->mode) && !inode_is_dir(f->inode) &&
             !S_ISLNK(f->inode->mode))
        ret = -ESPIPE;
    else if ((flags & 4) && f->ops->fsync)
        ret = file_fsync(&t->ctx, f, true);
    file_unref(f);
    return ret;
}

int64_t sys_syncfs(struct task *t, int32_t fd)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    struct superblock *sb = f->inode->sb;
    int ret = sb->ops && sb->ops->sync ? sb->ops->sync(&t->ctx, sb) : 0;
    file_unref(f);
    return ret;
}

int64_t sys_fadvise64(struct task *t, int32_t fd, int64_t offset, uint64_t length, int32_t advice)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = 0;
    if (S_ISFIFO(f->inode->mode))
        ret = -ESPIPE;
    else if (advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE || (int64_t)length < 0)
        ret = -EINVAL;
    file_unref(f);
    return ret;
}

int64_t sys_readahead(struct task *t, int32_t fd, int64_t offset, uint64_t count)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = !file_readable(f) ? -EBADF : S_ISREG(f->inode->mode) || S_ISBLK(f->inode->mode) ? 0 : -EINVAL;
    file_unref(f);
    return ret;
}
