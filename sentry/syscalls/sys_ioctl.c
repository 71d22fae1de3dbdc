/* SPDX-License-Identifier: Apache-2.0 */
/* ioctl: what every file knows; the rest is the file's own. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/file_owner.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/fileattr.h"
#include "sentry/vfs/landlock_fs.h"

#ifndef FIOQSIZE
#define FIOQSIZE 0x5460
#endif

static int64_t ioctl_set_flag(struct task *t, int fd, struct file *f, uint32_t flag, uaddr_t arg)
{
    int32_t on;
    int ret = COPY_IN(&t->ctx, &on, arg);
    if (ret < 0)
        return ret;
    uint32_t flags = on ? f->flags | flag : f->flags & ~flag;
    if (((flags ^ f->flags) & O_ASYNC) && !f->ops->signals_io)
        return -ENOTTY;
    if (flags != f->flags && f->ops->setfl) {
        ret = f->ops->setfl(&t->ctx, f, flags);
        if (ret < 0)
            return ret;
    }
    if ((flags ^ f->flags) & O_ASYNC) {
        ret = file_owner_async(t, f, fd, on);
        if (ret < 0)
            return ret;
    }
    f->flags = flags;
    return 0;
}

/* FIOSETOWN and its like. */
static int64_t ioctl_socket_owner(struct task *t, struct file *f, uint32_t cmd, uaddr_t arg)
{
    int32_t who;
    int type;
    if (cmd == FIOSETOWN || cmd == SIOCSPGRP) {
        int ret = COPY_IN(&t->ctx, &who, arg);
        return ret < 0 ? ret : file_owner_set_signed(t, f, who);
    }
    who = file_owner_get(t, f, &type);
    if (type == F_OWNER_PGRP)
        who = -who;
    return COPY_OUT(&t->ctx, arg, &who);
}

static int64_t ioctl_regular(struct task *t, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct kstat st;
    int ret = inode_getattr(&t->ctx, f->inode, &st);
    if (ret < 0)
        return ret;
    if (cmd == FIONREAD) {
        int32_t left = (int32_t)((int64_t)st.size - f->pos);
        return COPY_OUT(&t->ctx, UADDR(arg), &left);
    }
    int64_t size = (int64_t)st.blocks * 512; /* FIOQSIZE: what is allocated */
    return COPY_OUT(&t->ctx, UADDR(arg), &size);
}

/* The same flags under other numbers. */
static const struct {
    uint32_t flag, xflag;
} ioctl_xflags[] = {
    {FS_SYNC_FL, FS_XFLAG_SYNC},     {FS_IMMUTABLE_FL, FS_XFLAG_IMMUTABLE}, {FS_APPEND_FL, FS_XFLAG_APPEND},
    {FS_NODUMP_FL, FS_XFLAG_NODUMP}, {FS_NOATIME_FL, FS_XFLAG_NOATIME},     {FS_DAX_FL, FS_XFLAG_DAX},
    {FS_PROJINHERIT_FL, FS_XFLAG_PROJINHERIT},
};

static int64_t ioctl_get_fileattr(struct task *t, struct file *f, bool extended, uaddr_t arg)
{
    struct fsxattr x = {0};
    uint32_t flags;
    int ret = fileattr_get(&t->ctx, f->inode, &flags);
    if (ret < 0)
        return ret;
    if (!extended)
        return COPY_OUT(&t->ctx, arg, &flags);
    for (unsigned i = 0; i < ARRAY_SIZE(ioctl_xflags); i++)
        x.fsx_xflags |= flags & ioctl_xflags[i].flag ? ioctl_xflags[i].xflag : 0;
    return COPY_OUT(&t->ctx, arg, &x);
}

static int64_t ioctl_set_fileattr(struct task *t, struct file *f, bool extended, uaddr_t arg)
{
    struct fsxattr x;
    uint32_t flags = 0, mask = extended ? 0 : UINT32_MAX, known = 0;
    int ret = extended ? COPY_IN(&t->ctx, &x, arg) : COPY_IN(&t->ctx, &flags, arg);
    if (ret < 0)
        return ret;
    for (unsigned i = 0; extended && i < ARRAY_SIZE(ioctl_xflags); i++) {
        known |= ioctl_xflags[i].xflag;
        mask |= ioctl_xflags[i].flag;
        flags |= x.fsx_xflags & ioctl_xflags[i].xflag ? ioctl_xflags[i].flag : 0;
    }
    /* No projects, no hints about extents. */
    if (extended && ((x.fsx_xflags & ~known) || x.fsx_extsize || x.fsx_projid || x.fsx_cowextsize))
        return -EOPNOTSUPP;
    return fileattr_set(&t->ctx, &f->path, mask, flags);
}

/* Return: −ENOTTY when it is no request about flags, or f has none. */
static int64_t ioctl_fileattr(struct task *t, struct file *f, uint32_t cmd, uaddr_t arg)
{
    if (!fileattr_has(f->inode))
        return -ENOTTY;
    switch (cmd) {
    case FS_IOC_GETFLAGS:
    case FS_IOC_FSGETXATTR:
        return ioctl_get_fileattr(t, f, cmd == FS_IOC_FSGETXATTR, arg);
    case FS_IOC_SETFLAGS:
    case FS_IOC_FSSETXATTR:
        return ioctl_set_fileattr(t, f, cmd == FS_IOC_FSSETXATTR, arg);
    default:
        return -ENOTTY;
    }
}

int64_t sys_ioctl(struct task *t, int32_t fd, uint32_t cmd, uint64_t arg)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int64_t ret = landlock_fs_ioctl(f, cmd);
    if (ret < 0) {
        file_unref(f);
        return ret;
    }
    switch (cmd) {
    case FIOCLEX:
    case FIONCLEX:
        ret = fdtable_set_cloexec(t, fd, cmd == FIOCLEX);
        break;
    case FIONBIO:
        ret = ioctl_set_flag(t, fd, f, O_NONBLOCK, UADDR(arg));
        break;
    case FIOASYNC:
        ret = ioctl_set_flag(t, fd, f, O_ASYNC, UADDR(arg));
        break;
    case FIOSETOWN:
    case SIOCSPGRP:
    case FIOGETOWN:
    case SIOCGPGRP:
        ret = S_ISSOCK(f->inode->mode) ? ioctl_socket_owner(t, f, cmd, UADDR(arg)) : file_ioctl(&t->ctx, f, cmd, arg);
        break;
    case FIGETBSZ: {
        int32_t size = (int32_t)f->inode->sb->blksize;
        ret = COPY_OUT(&t->ctx, UADDR(arg), &size);
        break;
    }
    case FS_IOC_GETFLAGS:
    case FS_IOC_SETFLAGS:
    case FS_IOC_FSGETXATTR:
    case FS_IOC_FSSETXATTR:
        ret = ioctl_fileattr(t, f, cmd, UADDR(arg));
        break;
    default:
        /* The type's own answer first: a fifo is not regular, and a file system may know more. */
        ret = file_ioctl(&t->ctx, f, cmd, arg);
        if (ret == -ENOTTY && S_ISREG(f->inode->mode)) {
            if (cmd == FIONREAD || cmd == FIOQSIZE)
                ret = ioctl_regular(t, f, cmd, arg);
            else if (cmd == FICLONE || cmd == FICLONERANGE || cmd == FIDEDUPERANGE || cmd == FS_IOC_FIEMAP)
                ret = -EOPNOTSUPP;
        }
        break;
    }
    file_unref(f);
    return ret;
}
