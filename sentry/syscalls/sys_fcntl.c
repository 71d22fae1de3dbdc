/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: dup, fcntl, flock. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/file_owner.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/dnotify.h"
#include "sentry/vfs/lease.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/flock.h"
#include "sentry/vfs/path_walk.h"

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY (1024 + 3)
#endif
#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY (1024 + 4)
#endif
#ifndef F_GETOWNER_UIDS
#define F_GETOWNER_UIDS 17
#endif

/* ---- dup ---- */

int64_t sys_dup(struct task *t, int32_t fd)
{
    struct file *f = fdtable_get_any(t, fd);
    return f ? fdtable_add(t, f, 0, false) : -EBADF;
}

int64_t sys_dup3(struct task *t, int32_t oldfd, int32_t newfd, int32_t flags)
{
    if ((flags & ~O_CLOEXEC) || oldfd == newfd)
        return -EINVAL;
    struct file *f = fdtable_get_any(t, oldfd);
    return f ? fdtable_replace(t, newfd, f, flags & O_CLOEXEC) : -EBADF;
}

int64_t sys_dup2(struct task *t, int32_t oldfd, int32_t newfd)
{
    if (oldfd == newfd)
        return fdtable_peek(t->files, oldfd) ? newfd : -EBADF;
    return sys_dup3(t, oldfd, newfd, 0);
}

/* ---- record locks ---- */

struct fcntl_flock { /* struct flock of the 64-bit ABI */
    int16_t type, whence;
    int32_t pad;
    int64_t start, len;
    int32_t pid, pad2;
};

static int fcntl_lock_range(struct task *t, struct file *f, const struct fcntl_flock *l,
                            struct flock_req *ret_req)
{
    int64_t start = 0;
    struct kstat st;
    switch (l->whence) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        start = f->pos;
        break;
    case SEEK_END: {
        int ret = inode_getattr(&t->ctx, f->inode, &st);
        if (ret < 0)
            return ret;
        start = (int64_t)st.size;
        break;
    }
    default:
        return -EINVAL;
    }
    if (__builtin_add_overflow(start, l->start, &start))
        return -EOVERFLOW;
    if (start < 0)
        return -EINVAL;
    int64_t end = INT64_MAX;
    if (l->len > 0) {
        if (__builtin_add_overflow(start, l->len - 1, &end))
            return -EOVERFLOW;
    } else if (l->len < 0) {
        if (start + l->len < 0)
            return -EINVAL;
        end = start - 1;
        start += l->len;
    }
    ret_req->start = (uint64_t)start;
    ret_req->end = (uint64_t)end;
    return 0;
}

static int fcntl_lock_req(struct task *t, struct file *f, const struct fcntl_flock *l, bool ofd,
                          struct flock_req *ret_req)
{
    struct flock_req r = {.type = l->type};
    if (l->type != F_RDLCK && l->type != F_WRLCK && l->type != F_UNLCK)
        return -EINVAL;
    if (ofd && l->pid)
        return -EINVAL;
    int ret = fcntl_lock_range(t, f, l, &r);
    if (ret < 0)
        return ret;
    r.kind = ofd ? FLOCK_OFD : FLOCK_POSIX;
    r.owner = ofd ? (const void *)f : (const void *)t->files;
    r.pid = ofd ? -1 : tgroup_pid_for(t->group, t);
    *ret_req = r;
    return 0;
}

static int64_t fcntl_getlk(struct task *t, struct file *f, uaddr_t addr, bool ofd)
{
    struct fcntl_flock l;
    struct flock_req req, found;
    int ret = COPY_IN(&t->ctx, &l, addr);
    if (ret < 0)
        return ret;
    if (l.type != F_RDLCK && l.type != F_WRLCK)
        return -EINVAL;
    ret = fcntl_lock_req(t, f, &l, ofd, &req);
    if (ret < 0)
        return ret;
    if (flock_test(f->inode, &req, &found)) {
        l.type = (int16_t)found.type;
        l.whence = SEEK_SET;
        l.start = (int64_t)found.start;
        l.len = found.end == INT64_MAX ? 0 : (int64_t)(found.end - found.start) + 1;
        l.pid = found.pid;
    } else {
        l.type = F_UNLCK;
    }
    return COPY_OUT(&t->ctx, addr, &l);
}

static int64_t fcntl_setlk(struct task *t, int fd, struct file *f, uaddr_t addr, bool ofd, bool wait)
{
    struct fcntl_flock l;
    struct flock_req req;
    int ret = COPY_IN(&t->ctx, &l, addr);
    if (ret == 0)
        ret = fcntl_lock_req(t, f, &l, ofd, &req);
    if (ret < 0)
        return ret;
    if ((l.type == F_RDLCK && !file_readable(f)) || (l.type == F_WRLCK && !file_writable(f)))
        return -EBADF;
    ret = flock_set(&t->ctx, f->inode, &req, wait);
    /* Another thread closed the descriptor while we waited: its close dropped the locks of then, not this one. */
    if (ret == 0 && req.type != F_UNLCK && fdtable_peek(t->files, fd) != f) {
        if (ofd)
            return 0;
        req.type = F_UNLCK;
        ret = flock_set(&t->ctx, f->inode, &req, false);
        return ret < 0 ? ret : -EBADF;
    }
    return ret;
}

int64_t sys_flock(struct task *t, int32_t fd, int32_t op)
{
    struct flock_req req = {.kind = FLOCK_BSD, .end = INT64_MAX};
    if (op & LOCK_MAND)
        return 0; /* mandatory locks are gone from the release, and asking for them is not an error */
    switch (op & ~LOCK_NB) {
    case LOCK_SH:
        req.type = F_RDLCK;
        break;
    case LOCK_EX:
        req.type = F_WRLCK;
        break;
    case LOCK_UN:
        req.type = F_UNLCK;
        break;
    default:
        return -EINVAL;
    }
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    req.owner = f;
    req.pid = tgroup_pid_for(t->group, t);
    int ret = flock_set(&t->ctx, f->inode, &req, !(op & LOCK_NB));
    file_unref(f);
    return ret;
}

/* ---- flags and owners ---- */

static int64_t fcntl_setfl(struct task *t, int fd, struct file *f, uint32_t arg)
{
    const uint32_t may = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | (f->ops->signals_io ? O_ASYNC : 0);
    uint32_t flags = (f->flags & ~may) | (arg & may);
    if (((flags ^ f->flags) & O_APPEND) && inode_append_only(f->inode))
        return -EPERM;
    if ((flags & ~f->flags & O_NOATIME) && !inode_owner_or_capable(&t->ctx, f->inode))
        return -EPERM;
    if ((flags ^ f->flags) && f->ops->setfl) {
        int ret = f->ops->setfl(&t->ctx, f, flags);
        if (ret < 0)
            return ret;
    }
    if ((flags ^ f->flags) & O_ASYNC) {
        int ret = file_owner_async(t, f, fd, flags & O_ASYNC);
        if (ret < 0)
            return ret;
    }
    f->flags = flags;
    return 0;
}

struct fcntl_owner_ex {
    int32_t type, pid;
};

static int64_t fcntl_setown_ex(struct task *t, struct file *f, uaddr_t addr)
{
    struct fcntl_owner_ex o;
    int ret = COPY_IN(&t->ctx, &o, addr);
    if (ret < 0)
        return ret;
    if (o.type != F_OWNER_TID && o.type != F_OWNER_PID && o.type != F_OWNER_PGRP)
        return -EINVAL;
    return file_owner_set(t, f, o.type, o.pid);
}

static int64_t fcntl_getown_ex(struct task *t, struct file *f, uaddr_t addr)
{
    struct fcntl_owner_ex o;
    o.pid = file_owner_get(t, f, &o.type);
    return COPY_OUT(&t->ctx, addr, &o);
}

static int64_t fcntl_getown(struct task *t, struct file *f)
{
    int type, number = file_owner_get(t, f, &type);
    return type == F_OWNER_PGRP ? -number : number;
}

static int64_t fcntl_getowner_uids(struct task *t, struct file *f, uaddr_t addr)
{
    uint32_t uids[2];
    file_owner_uids(f, uids);
    for (int i = 0; i < 2; i++)
        uids[i] = userns_uid_out(t->ctx.cred->userns, uids[i]);
    return COPY_OUT(&t->ctx, addr, &uids);
}

static int64_t fcntl_dupfd(struct task *t, struct file *f, uint64_t min, bool cloexec)
{
    if (min >= t->group->rlimits[RLIMIT_NOFILE].rlim_cur || min > INT32_MAX)
        return -EINVAL;
    return fdtable_add(t, file_ref(f), (uint32_t)min, cloexec);
}

/* Commands that work on O_PATH descriptors, too. Return: −EOPNOTSUPP for all others. */
static int64_t fcntl_any(struct task *t, int fd, struct file *f, int cmd, uint64_t arg)
{
    switch (cmd) {
    case F_DUPFD:
        return fcntl_dupfd(t, f, arg, false);
    case F_DUPFD_CLOEXEC:
        return fcntl_dupfd(t, f, arg, true);
    case F_DUPFD_QUERY: {
        struct file *other = fdtable_peek(t->files, (int)arg);
        return !other ? -EBADF : other == f;
    }
    case F_CREATED_QUERY:
        return f->created;
    case F_GETFD:
        return fdtable_cloexec(t->files, fd) ? FD_CLOEXEC : 0;
    case F_SETFD:
        return fdtable_set_cloexec(t, fd, arg & FD_CLOEXEC);
    case F_GETFL:
        return f->flags;
    }
    return -EOPNOTSUPP;
}

static int64_t fcntl_file(struct task *t, int fd, struct file *f, int cmd, uint64_t arg)
{
    switch (cmd) {
    case F_SETFL:
        return fcntl_setfl(t, fd, f, (uint32_t)arg);
    case F_GETLK:
        return fcntl_getlk(t, f, UADDR(arg), false);
    case F_OFD_GETLK:
        return fcntl_getlk(t, f, UADDR(arg), true);
    case F_SETLK:
    case F_SETLKW:
        return fcntl_setlk(t, fd, f, UADDR(arg), false, cmd == F_SETLKW);
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return fcntl_setlk(t, fd, f, UADDR(arg), true, cmd == F_OFD_SETLKW);
    case F_GETOWN:
        return fcntl_getown(t, f);
    case F_SETOWN:
        return file_owner_set_signed(t, f, (int32_t)arg);
    case F_GETOWN_EX:
        return fcntl_getown_ex(t, f, UADDR(arg));
    case F_SETOWN_EX:
        return fcntl_setown_ex(t, f, UADDR(arg));
    case F_GETSIG:
        return file_owner_signal(f);
    case F_SETSIG:
        return file_owner_set_signal(f, arg);
    case F_GETOWNER_UIDS:
        return fcntl_getowner_uids(t, f, UADDR(arg));
    case F_GETLEASE:
        return lease_get(f);
    case F_SETLEASE: {
        int ret = lease_set(&t->ctx, f, fd, (int)arg);
        if (ret == 0 && (int)arg != F_UNLCK && file_owner_default(t, f) < 0) {
            lease_close(f);
            ret = -ENOMEM;
        }
        return ret;
    }
    case F_NOTIFY: {
        int ret = file_owner_default(t, f);
        return ret < 0 ? ret : dnotify_set(f, t->files, fd, (uint32_t)arg);
    }
    case F_SETPIPE_SZ:
    case F_GETPIPE_SZ:
        return f->ops->fcntl ? f->ops->fcntl(&t->ctx, f, (unsigned)cmd, arg) : -EBADF;
    }
    return f->ops->fcntl ? f->ops->fcntl(&t->ctx, f, (unsigned)cmd, arg) : -EINVAL;
}

int64_t sys_fcntl(struct task *t, int32_t fd, int32_t cmd, uint64_t arg)
{
    struct file *f = fdtable_get_any(t, fd);
    if (!f)
        return -EBADF;
    int64_t ret = fcntl_any(t, fd, f, cmd, arg);
    if (ret == -EOPNOTSUPP)
        ret = f->flags & O_PATH ? -EBADF : fcntl_file(t, fd, f, cmd, arg);
    file_unref(f);
    return ret;
}
