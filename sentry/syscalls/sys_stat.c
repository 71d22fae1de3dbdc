/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: stat in all forms, statfs, access, chmod, chown, times. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <utime.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/vfs/mount.h"

static unsigned stat_walk_flags(int at_flags)
{
    return (at_flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW) | (at_flags & AT_EMPTY_PATH ? WALK_EMPTY : 0);
}

/* ---- stat ---- */

static int stat_copy(struct task *t, struct inode *inode, uaddr_t buf)
{
    struct kstat k;
    int ret = inode_getattr(&t->ctx, inode, &k);
    if (ret < 0)
        return ret;
    struct stat st = {
        .st_dev = k.dev,
        .st_ino = k.ino,
        .st_nlink = k.nlink,
        .st_mode = k.mode,
        .st_uid = userns_uid_shown(t->ctx.cred->userns, k.uid),
        .st_gid = userns_gid_shown(t->ctx.cred->userns, k.gid),
        .st_rdev = k.rdev,
        .st_size = (off_t)k.size,
        .st_blksize = k.blksize,
        .st_blocks = (blkcnt_t)k.blocks,
        .st_atim = k.atime,
        .st_mtim = k.mtime,
        .st_ctim = k.ctime,
    };
    return COPY_OUT(&t->ctx, buf, &st);
}

int64_t sys_newfstatat(struct task *t, int32_t dirfd, uaddr_t path, uaddr_t buf, int32_t flags)
{
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH))
        return -EINVAL;
    struct path p;
    int ret = pathname_walk(t, dirfd, path, stat_walk_flags(flags), &p);
    if (ret < 0)
        return ret;
    ret = stat_copy(t, p.dentry->inode, buf);
    path_unref(&p);
    return ret;
}

int64_t sys_stat(struct task *t, uaddr_t path, uaddr_t buf)
{
    return sys_newfstatat(t, AT_FDCWD, path, buf, 0);
}

int64_t sys_lstat(struct task *t, uaddr_t path, uaddr_t buf)
{
    return sys_newfstatat(t, AT_FDCWD, path, buf, AT_SYMLINK_NOFOLLOW);
}

int64_t sys_fstat(struct task *t, int32_t fd, uaddr_t buf)
{
    struct file *f = fdtable_get_any(t, fd);
    if (!f)
        return -EBADF;
    int ret = stat_copy(t, f->inode, buf);
    file_unref(f);
    return ret;
}

static struct statx_timestamp stat_time(struct timespec ts)
{
    return (struct statx_timestamp){.tv_sec = ts.tv_sec, .tv_nsec = (uint32_t)ts.tv_nsec};
}

enum { STAT_MNT_ID_UNIQUE = 0x4000 }; /* STATX_MNT_ID_UNIQUE */

static int stat_copy_x(struct task *t, const struct path *p, uint32_t mask, uaddr_t buf)
{
    struct kstat k;
    int ret = inode_getattr(&t->ctx, p->dentry->inode, &k);
    if (ret < 0)
        return ret;
    struct statx st = {
        .stx_mask = STATX_BASIC_STATS,
        .stx_blksize = k.blksize,
        .stx_attributes = k.attributes,
        .stx_nlink = (uint32_t)k.nlink,
        .stx_uid = userns_uid_shown(t->ctx.cred->userns, k.uid),
        .stx_gid = userns_gid_shown(t->ctx.cred->userns, k.gid),
        .stx_mode = (uint16_t)k.mode,
        .stx_ino = k.ino,
        .stx_size = k.size,
        .stx_blocks = k.blocks,
        .stx_attributes_mask = k.attributes_mask | STATX_ATTR_AUTOMOUNT | STATX_ATTR_MOUNT_ROOT,
        .stx_atime = stat_time(k.atime),
        .stx_ctime = stat_time(k.ctime),
        .stx_mtime = stat_time(k.mtime),
        .stx_rdev_major = major(k.rdev),
        .stx_rdev_minor = minor(k.rdev),
        .stx_dev_major = major(k.dev),
        .stx_dev_minor = minor(k.dev),
    };
    if (k.has_btime) {
        st.stx_mask |= STATX_BTIME;
        st.stx_btime = stat_time(k.btime);
    }
    if (p->mount) {
        bool unique = mask & STAT_MNT_ID_UNIQUE;
        st.stx_mask |= unique ? STAT_MNT_ID_UNIQUE : STATX_MNT_ID;
        st.stx_mnt_id = unique ? p->mount->unique_id : p->mount->id;
        if (p->dentry == p->mount->root)
            st.stx_attributes |= STATX_ATTR_MOUNT_ROOT;
    }
    return COPY_OUT(&t->ctx, buf, &st);
}

int64_t sys_statx(struct task *t, int32_t dirfd, uaddr_t path, int32_t flags, uint32_t mask, uaddr_t buf)
{
    if (mask & STATX__RESERVED)
        return -EINVAL;
    if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE)) ||
        (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE)
        return -EINVAL;
    struct path p;
    int ret = pathname_walk(t, dirfd, path, stat_walk_flags(flags), &p);
    if (ret < 0)
        return ret;
    ret = stat_copy_x(t, &p, mask, buf);
    path_unref(&p);
    return ret;
}

/* ---- statfs ---- */

static int statfs_copy(struct task *t, const struct path *p, uaddr_t buf)
{
    struct statfs st;
    int ret = superblock_statfs(&t->ctx, p->dentry->sb, &st);
    if (ret < 0)
        return ret;
    /* The kernel's ST_* bits equal those of statvfs(3); 0x20 says that they are valid. */
    unsigned long m = p->mount ? p->mount->flags | (p->mount->sb->flags & MS_RDONLY) : 0;
    st.f_flags = 0x20;
    st.f_flags |= m & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_SYNCHRONOUS | MS_MANDLOCK);
    st.f_flags |= m & (MS_NOATIME | MS_NODIRATIME);
    if (m & MS_RELATIME)
        st.f_flags |= 0x1000;
    if (m & MS_NOSYMFOLLOW)
        st.f_flags |= 0x2000;
    return COPY_OUT(&t->ctx, buf, &st);
}

int64_t sys_statfs(struct task *t, uaddr_t path, uaddr_t buf)
{
    struct path p;
    int ret = pathname_walk(t, AT_FDCWD, path, WALK_FOLLOW, &p);
    if (ret < 0)
        return ret;
    ret = statfs_copy(t, &p, buf);
    path_unref(&p);
    return ret;
}

int64_t sys_fstatfs(struct task *t, int32_t fd, uaddr_t buf)
{
    struct file *f = fdtable_get_any(t, fd);
    if (!f)
        return -EBADF;
    int ret = statfs_copy(t, &f->path, buf);
    file_unref(f);
    return ret;
}

/* ---- access ---- */

/* Credentials as access(2) wants them: the real ids, and capabilities as an exec with them would leave. */
static int access_cred(const struct cred *c, const struct cred **ret_cred)
{
    if (c->fsuid == c->uid && c->fsgid == c->gid && (userns_uid_out(c->userns, c->uid) == 0 || c->cap_effective == 0)) {
        *ret_cred = cred_ref(c);
        return 0;
    }
    struct cred *n;
    int ret = cred_dup(c, c->groups_len, &n);
    if (ret < 0)
        return ret;
    n->fsuid = n->uid;
    n->fsgid = n->gid;
    if (!(n->securebits & SECBIT_NO_SETUID_FIXUP))
        n->cap_effective = userns_uid_out(n->userns, n->uid) == 0 ? n->cap_permitted : 0;
    *ret_cred = n;
    return 0;
}

static int access_check(struct task *t, const struct path *p, int mode)
{
    struct inode *inode = p->dentry->inode;
    if ((mode & X_OK) && S_ISREG(inode->mode) && p->mount && (p->mount->flags & MS_NOEXEC))
        return -EACCES;
    unsigned mask = (mode & R_OK ? MAY_READ : 0) | (mode & W_OK ? MAY_WRITE : 0) | (mode & X_OK ? MAY_EXEC : 0);
    int ret = mask ? inode_permission(&t->ctx, inode, mask | MAY_ACCESS) : 0;
    if (ret == 0 && (mode & W_OK) &&
        (S_ISREG(inode->mode) || S_ISDIR(inode->mode) || S_ISLNK(inode->mode)))
        ret = mount_want_write(p->mount);
    return ret;
}

int64_t sys_faccessat2(struct task *t, int32_t dirfd, uaddr_t path, int32_t mode, int32_t flags)
{
    if ((mode & ~(R_OK | W_OK | X_OK)) || (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)))
        return -EINVAL;
    const struct cred *own = t->ctx.cred, *real = NULL;
    if (!(flags & AT_EACCESS)) {
        int ret = access_cred(own, &real);
        if (ret < 0)
            return ret;
        t->ctx.cred = real;
    }
    struct path p;
    int ret = pathname_walk(t, dirfd, path, stat_walk_flags(flags), &p);
    if (ret == 0) {
        ret = access_check(t, &p, mode);
        path_unref(&p);
    }
    t->ctx.cred = own;
    cred_unref(real);
    return ret;
}

int64_t sys_faccessat(struct task *t, int32_t dirfd, uaddr_t path, int32_t mode)
{
    return sys_faccessat2(t, dirfd, path, mode, 0);
}

int64_t sys_access(struct task *t, uaddr_t path, int32_t mode)
{
    return sys_faccessat2(t, AT_FDCWD, path, mode, 0);
}

/* ---- mode and owner ---- */

static int64_t stat_setattr_at(struct task *t, int dirfd, uaddr_t path, int at_flags, const struct iattr *a)
{
    struct path p;
    int ret = pathname_walk(t, dirfd, path, stat_walk_flags(at_flags), &p);
    if (ret < 0)
        return ret;
    ret = vfs_setattr(&t->ctx, &p, a);
    path_unref(&p);
    return ret;
}

static int64_t stat_setattr_fd(struct task *t, int fd, const struct iattr *a)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int ret = vfs_setattr(&t->ctx, &f->path, a);
    file_unref(f);
    return ret;
}

static struct iattr stat_mode_attr(int32_t mode)
{
    return (struct iattr){.valid = IATTR_MODE, .mode = (uint32_t)mode & 07777};
}

int64_t sys_fchmodat2(struct task *t, int32_t dirfd, uaddr_t path, int32_t mode, uint32_t flags)
{
    if (flags & ~(uint32_t)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    struct iattr a = stat_mode_attr(mode);
    return stat_setattr_at(t, dirfd, path, (int)flags, &a);
}

int64_t sys_fchmodat(struct task *t, int32_t dirfd, uaddr_t path, int32_t mode)
{
    return sys_fchmodat2(t, dirfd, path, mode, 0);
}

int64_t sys_chmod(struct task *t, uaddr_t path, int32_t mode)
{
    return sys_fchmodat2(t, AT_FDCWD, path, mode, 0);
}

int64_t sys_fchmod(struct task *t, int32_t fd, int32_t mode)
{
    struct iattr a = stat_mode_attr(mode);
    return stat_setattr_fd(t, fd, &a);
}

/* −1 leaves an id as it is. Return: 0, −EINVAL (an id that is none in the caller's user namespace). */
static int stat_owner_attr(struct task *t, int32_t uid, int32_t gid, struct iattr *ret_attr)
{
    const struct userns *ns = t->ctx.cred->userns;
    struct iattr a = {.valid = (uid != -1 ? IATTR_UID : 0) | (gid != -1 ? IATTR_GID : 0) | IATTR_DROP_PRIVS,
                      .uid = userns_uid_in(ns, (uint32_t)uid),
                      .gid = userns_gid_in(ns, (uint32_t)gid)};
    if ((uid != -1 && a.uid == USERNS_NO_ID) || (gid != -1 && a.gid == USERNS_NO_ID))
        return -EINVAL;
    *ret_attr = a;
    return 0;
}

int64_t sys_fchownat(struct task *t, int32_t dirfd, uaddr_t path, int32_t uid, int32_t gid, int32_t flags)
{
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    struct iattr a;
    int ret = stat_owner_attr(t, uid, gid, &a);
    return ret < 0 ? ret : stat_setattr_at(t, dirfd, path, flags, &a);
}

int64_t sys_chown(struct task *t, uaddr_t path, int32_t uid, int32_t gid)
{
    return sys_fchownat(t, AT_FDCWD, path, uid, gid, 0);
}

int64_t sys_lchown(struct task *t, uaddr_t path, int32_t uid, int32_t gid)
{
    return sys_fchownat(t, AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

int64_t sys_fchown(struct task *t, int32_t fd, int32_t uid, int32_t gid)
{
    struct iattr a;
    int ret = stat_owner_attr(t, uid, gid, &a);
    return ret < 0 ? ret : stat_setattr_fd(t, fd, &a);
}

/* ---- times ---- */

static int stat_one_time(struct timespec ts, unsigned set, unsigned now, struct timespec *to, struct iattr *a)
{
    if (ts.tv_nsec == UTIME_OMIT)
        return 0;
    if (ts.tv_nsec != UTIME_NOW && (ts.tv_nsec < 0 || ts.tv_nsec >= 1000000000))
        return -EINVAL;
    a->valid |= set;
    if (ts.tv_nsec == UTIME_NOW)
        a->valid |= now;
    else
        *to = ts;
    return 0;
}

/* times NULL: both now. A null path with a descriptor means the descriptor's file. */
static int64_t stat_set_times(struct task *t, int dirfd, uaddr_t path, const struct timespec times[2], int flags)
{
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    struct iattr a = {.valid = IATTR_ATIME | IATTR_MTIME | IATTR_ATIME_NOW | IATTR_MTIME_NOW};
    if (times) {
        a.valid = 0;
        int ret = stat_one_time(times[0], IATTR_ATIME, IATTR_ATIME_NOW, &a.atime, &a);
        if (ret == 0)
            ret = stat_one_time(times[1], IATTR_MTIME, IATTR_MTIME_NOW, &a.mtime, &a);
        if (ret < 0)
            return ret;
        if (!a.valid)
            return 0; /* both omitted: not even the path is looked at */
    }
    if (uaddr_is_null(path) && dirfd != AT_FDCWD && !(flags & AT_EMPTY_PATH)) {
        if (flags)
            return -EINVAL;
        return stat_setattr_fd(t, dirfd, &a);
    }
    return stat_setattr_at(t, dirfd, path, flags, &a);
}

int64_t sys_utimensat(struct task *t, int32_t dirfd, uaddr_t path, uaddr_t times, int32_t flags)
{
    struct timespec ts[2];
    if (uaddr_is_null(times))
        return stat_set_times(t, dirfd, path, NULL, flags);
    int ret = COPY_IN(&t->ctx, &ts, times);
    return ret < 0 ? ret : stat_set_times(t, dirfd, path, ts, flags);
}

int64_t sys_futimesat(struct task *t, int32_t dirfd, uaddr_t path, uaddr_t times)
{
    struct timeval tv[2];
    struct timespec ts[2];
    if (uaddr_is_null(times))
        return stat_set_times(t, dirfd, path, NULL, 0);
    int ret = COPY_IN(&t->ctx, &tv, times);
    if (ret < 0)
        return ret;
    for (int i = 0; i < 2; i++) {
        if (tv[i].tv_usec < 0 || tv[i].tv_usec >= 1000000)
            return -EINVAL;
        ts[i] = (struct timespec){tv[i].tv_sec, tv[i].tv_usec * 1000};
    }
    return stat_set_times(t, dirfd, path, ts, 0);
}

int64_t sys_utimes(struct task *t, uaddr_t path, uaddr_t times)
{
    return sys_futimesat(t, AT_FDCWD, path, times);
}

int64_t sys_utime(struct task *t, uaddr_t path, uaddr_t times)
{
    struct utimbuf ut;
    if (uaddr_is_null(times))
        return stat_set_times(t, AT_FDCWD, path, NULL, 0);
    int ret = COPY_IN(&t->ctx, &ut, times);
    if (ret < 0)
        return ret;
    struct timespec ts[2] = {{.tv_sec = ut.actime}, {.tv_sec = ut.modtime}};
    return stat_set_times(t, AT_FDCWD, path, ts, 0);
}
