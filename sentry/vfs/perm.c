/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what: mode bits, ownership, capabilities, and attribute changes that depend on them. */
#include "sentry/vfs/path_walk.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "sentry/core/cred.h"
#include "sentry/core/userns.h"
#include "sentry/vfs/acl.h"
#include "sentry/vfs/filecaps.h"
#include "sentry/vfs/notify.h"

bool inode_capable(struct ctx *ctx, const struct inode *inode, int cap)
{
    return cred_cap_wrt(ctx->cred, inode->uid, inode->gid, cap);
}

bool inode_owner_or_capable(struct ctx *ctx, const struct inode *inode)
{
    const struct cred *c = ctx->cred;
    return c->fsuid == inode->uid ||
           (userns_uid_out(c->userns, inode->uid) != USERNS_NO_ID && cred_own_cap(c, CAP_FOWNER));
}

/* What capabilities give over an inode whatever its mode. Return: 0 or −EACCES. */
static int perm_by_cap(struct ctx *ctx, const struct inode *inode, unsigned want)
{
    if (S_ISDIR(inode->mode)) {
        if (!(want & MAY_WRITE) && inode_capable(ctx, inode, CAP_DAC_READ_SEARCH))
            return 0;
        return inode_capable(ctx, inode, CAP_DAC_OVERRIDE) ? 0 : -EACCES;
    }
    if (want == MAY_READ && inode_capable(ctx, inode, CAP_DAC_READ_SEARCH))
        return 0;
    if ((!(want & MAY_EXEC) || (inode->mode & 0111)) && inode_capable(ctx, inode, CAP_DAC_OVERRIDE))
        return 0;
    return -EACCES;
}

/* The bits of group and others for somebody who is not the owner. */
static unsigned perm_class_bits(struct ctx *ctx, const struct inode *inode)
{
    uint32_t mode = inode->mode;
    if (((mode >> 3) & 7) == (mode & 7))
        return mode & 7; /* the same whether in the group or not */
    return (cred_in_group(ctx->cred, inode->gid) ? mode >> 3 : mode) & 7;
}

/* An inode that may have an ACL, asked for by somebody who is not the owner. To read a list can be a round trip, so it comes after
 * what would grant the same without it. */
static int perm_by_acl(struct ctx *ctx, struct inode *inode, unsigned want)
{
    if (!want || perm_by_cap(ctx, inode, want) == 0)
        return 0;
    struct acl *a;
    int ret = acl_get(ctx, inode, ACL_KIND_ACCESS, &a);
    if (ret < 0)
        return ret;
    if (!a)
        return want & ~perm_class_bits(ctx, inode) ? -EACCES : 0;
    ret = acl_check(ctx, inode, a, want);
    acl_unref(a);
    return ret;
}

int inode_permission_generic(struct ctx *ctx, struct inode *inode, unsigned mask)
{
    const struct cred *c = ctx->cred;
    uint32_t mode = inode->mode;
    unsigned want = mask & (MAY_READ | MAY_WRITE | MAY_EXEC);
    unsigned have;
    if (c->fsuid == inode->uid)
        have = mode >> 6;
    else if (inode->sb->acls && (mode & S_IRWXG))
        return perm_by_acl(ctx, inode, want);
    else
        have = perm_class_bits(ctx, inode);
    if ((want & ~(have & 7)) == 0)
        return 0;
    return perm_by_cap(ctx, inode, want);
}

int inode_permission(struct ctx *ctx, struct inode *inode, unsigned mask)
{
    if ((mask & MAY_WRITE) && (inode->sb->flags & MS_RDONLY) &&
        (S_ISREG(inode->mode) || S_ISDIR(inode->mode) || S_ISLNK(inode->mode)))
        return -EROFS;
    if ((mask & MAY_WRITE) && inode_immutable(inode))
        return -EPERM;
    if (inode->ops->permission)
        return inode->ops->permission(ctx, inode, mask);
    return inode_permission_generic(ctx, inode, mask);
}

int vfs_new_owner(struct ctx *ctx, struct inode *dir, uint32_t mode, uint32_t umask,
                  struct newattr *ret_attr)
{
    const struct cred *c = ctx->cred;
    uint32_t gid = c->fsgid;
    /* Judged by the mode that was asked for, before the umask may take the group's right to execute away. */
    if ((dir->mode & S_ISGID) && !S_ISDIR(mode) && (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
        !cred_in_group(c, dir->gid) && !inode_capable(ctx, dir, CAP_FSETID))
        mode &= ~S_ISGID;
    if (S_ISLNK(mode))
        mode |= 0777;
    if (dir->mode & S_ISGID) {
        gid = dir->gid;
        if (S_ISDIR(mode))
            mode |= S_ISGID;
    }
    ret_attr->mode = mode;
    ret_attr->uid = c->fsuid;
    ret_attr->gid = gid;
    return acl_inherit(ctx, dir, umask, ret_attr);
}

/* ---- attribute changes ---- */

static int perm_apply(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    struct acl *acl = NULL;
    int ret = attr->valid & IATTR_MODE ? acl_chmod_prepare(ctx, inode, attr->mode, &acl) : 0;
    if (ret == 0 && inode->ops->setattr)
        ret = inode->ops->setattr(ctx, inode, attr);
    else if (ret == 0)
        inode_apply_attr(inode, attr);
    if (ret < 0) {
        acl_unref(acl);
        return ret;
    }
    return attr->valid & IATTR_MODE ? acl_chmod_store(ctx, inode, acl) : 0;
}

static int perm_check_owner_change(struct ctx *ctx, const struct inode *inode, const struct iattr *attr)
{
    const struct cred *c = ctx->cred;
    const struct userns *ns = inode->sb->userns;
    bool owner = c->fsuid == inode->uid;
    if (((attr->valid & IATTR_UID) && userns_uid_out(ns, attr->uid) == USERNS_NO_ID) ||
        ((attr->valid & IATTR_GID) && userns_gid_out(ns, attr->gid) == USERNS_NO_ID))
        return -EOVERFLOW; /* the file system could not say so */
    if ((attr->valid & IATTR_UID) && !(owner && attr->uid == inode->uid) &&
        !inode_capable(ctx, inode, CAP_CHOWN))
        return -EPERM;
    if ((attr->valid & IATTR_GID) &&
        !(owner && (attr->gid == inode->gid || cred_in_group(c, attr->gid))) &&
        !inode_capable(ctx, inode, CAP_CHOWN))
        return -EPERM;
    return 0;
}

/* Setting both times to now is what a write does, too: an append-only file allows that. */
static int perm_check_flags(const struct inode *inode, const struct iattr *attr)
{
    if (likely(!inode_protected(inode)))
        return 0;
    if (attr->valid & (IATTR_MODE | IATTR_UID | IATTR_GID))
        return -EPERM;
    if (!(attr->valid & (IATTR_ATIME | IATTR_MTIME)))
        return 0;
    unsigned now = IATTR_ATIME | IATTR_ATIME_NOW | IATTR_MTIME | IATTR_MTIME_NOW;
    return (attr->valid & now) != now || inode_immutable(inode) ? -EPERM : 0;
}

static int perm_check_times(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    unsigned set = attr->valid & (IATTR_ATIME | IATTR_MTIME);
    if (!set || inode_owner_or_capable(ctx, inode))
        return 0;
    bool all_now = set == (IATTR_ATIME | IATTR_MTIME) && (attr->valid & IATTR_ATIME_NOW) &&
                   (attr->valid & IATTR_MTIME_NOW);
    return all_now ? inode_permission(ctx, inode, MAY_WRITE) : -EPERM;
}

static void perm_fix_mode(struct ctx *ctx, const struct inode *inode, struct iattr *attr)
{
    if (attr->valid & IATTR_MODE) {
        uint32_t gid = attr->valid & IATTR_GID ? attr->gid : inode->gid;
        attr->mode &= 07777;
        if (!cred_in_group(ctx->cred, gid) && !inode_capable(ctx, inode, CAP_FSETID))
            attr->mode &= ~S_ISGID;
    } else if ((attr->valid & IATTR_DROP_PRIVS) && !S_ISDIR(inode->mode) &&
               (inode->mode & (S_ISUID | S_ISGID))) {
        uint32_t mode = inode->mode & ~S_ISUID & 07777;
        if ((mode & S_IXGRP) ||
            (!cred_in_group(ctx->cred, inode->gid) && !inode_capable(ctx, inode, CAP_FSETID)))
            mode &= ~S_ISGID;
        attr->mode = mode;
        attr->valid |= IATTR_MODE;
    }
}

static int perm_drop_file_caps(struct ctx *ctx, struct inode *inode)
{
    /* Only files that can be run gain from capabilities, and most file systems know at once that there are none. */
    if (inode->no_sec || !S_ISREG(inode->mode) || !inode->ops->getxattr || !inode->ops->removexattr)
        return 0;
    ssize_t size = inode->ops->getxattr(ctx, inode, "security.capability", NULL, 0);
    if (size > 0) {
        int ret = inode->ops->removexattr(ctx, inode, "security.capability");
        if (ret < 0 && ret != -ENODATA)
            return ret;
    }
    inode->no_sec = true;
    return 0;
}

int vfs_setattr(struct ctx *ctx, const struct path *path, const struct iattr *attr)
{
    struct inode *inode = path->dentry->inode;
    int ret = mount_want_write(path->mount);
    if (ret < 0)
        return ret;
    struct iattr a = *attr;
    ret = perm_check_flags(inode, &a);
    if (ret < 0)
        return ret;
    if ((a.valid & IATTR_MODE) && S_ISLNK(inode->mode))
        return -EOPNOTSUPP;
    ret = perm_check_owner_change(ctx, inode, &a);
    if (ret == 0 && (a.valid & IATTR_MODE) && !inode_owner_or_capable(ctx, inode))
        ret = -EPERM;
    if (ret == 0)
        ret = perm_check_times(ctx, inode, &a);
    if (ret < 0)
        return ret;
    if (a.valid & (IATTR_UID | IATTR_GID))
        a.valid |= IATTR_DROP_PRIVS;
    perm_fix_mode(ctx, inode, &a);
    if ((a.valid & IATTR_DROP_PRIVS) && (inode->mode & 0111)) {
        ret = perm_drop_file_caps(ctx, inode);
        if (ret < 0)
            return ret;
    }
    a.valid = (a.valid & ~(unsigned)IATTR_DROP_PRIVS) | IATTR_CTIME;
    ret = perm_apply(ctx, inode, &a);
    if (ret == 0)
        notify_dentry(path->dentry, IN_ATTRIB);
    return ret;
}

int vfs_drop_privs(struct ctx *ctx, struct inode *inode)
{
    uint32_t mode = inode->mode;
    if (likely(!(mode & (S_ISUID | S_ISGID)) && (inode->no_sec || !(mode & 0111))))
        return 0;
    if (!S_ISREG(mode))
        return 0;
    int ret = perm_drop_file_caps(ctx, inode);
    if (ret < 0)
        return ret;
    uint32_t kill = mode & S_ISUID;
    if ((mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
        kill |= S_ISGID;
    if (!kill || inode_capable(ctx, inode, CAP_FSETID))
        return 0;
    struct iattr a = {.valid = IATTR_MODE | IATTR_CTIME, .mode = mode & 07777 & ~kill};
    return perm_apply(ctx, inode, &a);
}

int vfs_truncate(struct ctx *ctx, const struct path *path, uint64_t size)
{
    struct inode *inode = path->dentry->inode;
    int ret = vfs_drop_privs(ctx, inode);
    if (ret < 0)
        return ret;
    struct iattr a = {
        .valid = IATTR_SIZE | IATTR_MTIME | IATTR_MTIME_NOW | IATTR_CTIME,
        .size = size,
    };
    ret = perm_apply(ctx, inode, &a);
    if (ret == 0)
        notify_dentry(path->dentry, IN_MODIFY);
    return ret;
}

/* ---- extended attributes ---- */

static bool perm_has_prefix(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

static int perm_xattr(struct ctx *ctx, struct inode *inode, const char *name, bool write)
{
    const struct cred *c = ctx->cred;
    const char *dot = strchr(name, '.');
    if (write && inode_protected(inode))
        return -EPERM;
    if (dot && !dot[1])
        return -EINVAL; /* a name space alone */
    if (perm_has_prefix(name, "security.")) {
        if (!write)
            return 0;
        if (!strcmp(name, "security.capability"))
            return inode_capable(ctx, inode, CAP_SETFCAP) ? 0 : -EPERM;
        return cred_ns_cap(c, inode->sb->userns, CAP_SYS_ADMIN) ? 0 : -EPERM;
    }
    if (perm_has_prefix(name, "trusted.")) {
        if (!cred_has_cap(c, CAP_SYS_ADMIN))
            return write ? -EPERM : -ENODATA;
        return 0;
    }
    if (perm_has_prefix(name, "user.")) {
        if (!S_ISREG(inode->mode) && !S_ISDIR(inode->mode))
            return write ? -EPERM : -ENODATA;
        if (S_ISDIR(inode->mode) && (inode->mode & S_ISVTX) && write && !inode_owner_or_capable(ctx, inode))
            return -EPERM;
        return inode_permission(ctx, inode, write ? MAY_WRITE : MAY_READ);
    }
    return acl_kind_of(name) >= 0 ? 0 : -EOPNOTSUPP; /* what they need is asked there */
}

/* Return: 0 or −errno. A list that says nothing is removed. */
static int perm_set_acl(struct ctx *ctx, const struct path *path, enum acl_kind kind, const void *src, size_t size)
{
    struct inode *inode = path->dentry->inode;
    uint32_t mode;
    int ret = acl_xattr_set(ctx, inode, kind, src, size, &mode);
    if (ret == 1) {
        /* The list and the mode bits say the same from here on. */
        struct iattr a = {.valid = IATTR_MODE | IATTR_CTIME, .mode = mode & 07777};
        ret = inode->ops->setattr ? inode->ops->setattr(ctx, inode, &a) : 0;
        if (!inode->ops->setattr)
            inode_apply_attr(inode, &a);
        acl_forget(inode);
    }
    if (ret == 0)
        notify_dentry(path->dentry, IN_ATTRIB);
    return ret;
}

ssize_t vfs_getxattr(struct ctx *ctx, const struct path *path, const char *name, void *dst, size_t size)
{
    struct inode *inode = path->dentry->inode;
    int ret = perm_xattr(ctx, inode, name, false);
    if (ret < 0)
        return ret;
    int acl = acl_kind_of(name);
    if (acl >= 0)
        return acl_xattr_get(ctx, inode, (enum acl_kind)acl, dst, size);
    if (!strcmp(name, "security.capability")) {
        struct vfs_ns_cap_data caps;
        ssize_t n = inode_getxattr(ctx, inode, name, &caps, sizeof(caps));
        if (n >= 0)
            n = filecaps_out(ctx, inode, &caps, (size_t)n);
        if (n < 0 || !size)
            return n;
        if ((size_t)n > size)
            return -ERANGE;
        memcpy(dst, &caps, (size_t)n);
        return n;
    }
    return inode_getxattr(ctx, inode, name, dst, size);
}

int vfs_setxattr(struct ctx *ctx, const struct path *path, const char *name, const void *src, size_t size,
                 int flags)
{
    struct inode *inode = path->dentry->inode;
    int ret = mount_want_write(path->mount);
    if (ret == 0)
        ret = perm_xattr(ctx, inode, name, true);
    if (ret < 0)
        return ret;
    int acl = acl_kind_of(name);
    if (acl >= 0)
        return perm_set_acl(ctx, path, (enum acl_kind)acl, src, size);
    if (!inode->ops->setxattr)
        return -EOPNOTSUPP;
    struct vfs_ns_cap_data caps;
    if (!strcmp(name, "security.capability")) {
        ssize_t n = filecaps_in(ctx, inode, src, size, &caps);
        if (n < 0)
            return (int)n;
        src = &caps;
        size = (size_t)n;
    }
    ret = inode->ops->setxattr(ctx, inode, name, src, size, flags);
    if (ret < 0)
        return ret;
    if (perm_has_prefix(name, "security."))
        inode->no_sec = false;
    notify_dentry(path->dentry, IN_ATTRIB);
    return 0;
}

ssize_t vfs_listxattr(struct ctx *ctx, const struct path *path, char *dst, size_t size)
{
    struct inode *inode = path->dentry->inode;
    if (!inode->ops->listxattr)
        return 0;
    return inode->ops->listxattr(ctx, inode, dst, size);
}

int vfs_removexattr(struct ctx *ctx, const struct path *path, const char *name)
{
    struct inode *inode = path->dentry->inode;
    int ret = mount_want_write(path->mount);
    if (ret == 0)
        ret = perm_xattr(ctx, inode, name, true);
    if (ret < 0)
        return ret;
    int acl = acl_kind_of(name);
    if (acl >= 0)
        return perm_set_acl(ctx, path, (enum acl_kind)acl, NULL, 0);
    if (!inode->ops->removexattr)
        return -EOPNOTSUPP;
    ret = inode->ops->removexattr(ctx, inode, name);
    if (ret == 0)
        notify_dentry(path->dentry, IN_ATTRIB);
    return ret;
}
