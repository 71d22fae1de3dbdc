/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of directories: making, linking and removing names. */
#include "sentry/vfs/vfs_ops_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/inotify.h>

#include "sentry/core/cred.h"
#include "sentry/vfs/acl.h"
#include "sentry/vfs/dentry_priv.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/notify.h"
#include "sentry/vfs/path_walk_priv.h"

int vfs_may_create(struct ctx *ctx, const struct dentry *dir)
{
    const struct userns *ns = dir->inode->sb->userns;
    if (dir->deleted)
        return -ENOENT;
    if (userns_uid_out(ns, ctx->cred->fsuid) == USERNS_NO_ID || userns_gid_out(ns, ctx->cred->fsgid) == USERNS_NO_ID)
        return -EOVERFLOW; /* the owner-to-be has no number there */
    return inode_permission(ctx, dir->inode, MAY_WRITE | MAY_EXEC);
}

int vfs_may_delete(struct ctx *ctx, const struct dentry *dir, const struct dentry *victim, bool is_dir)
{
    struct inode *inode = victim->inode;
    int ret = inode_permission(ctx, dir->inode, MAY_WRITE | MAY_EXEC);
    if (ret < 0)
        return ret;
    if (inode_append_only(dir->inode) || inode_protected(inode))
        return -EPERM;
    uint32_t fsuid = ctx->cred->fsuid;
    if ((dir->inode->mode & S_ISVTX) && inode->uid != fsuid && dir->inode->uid != fsuid &&
        !inode_capable(ctx, inode, CAP_FOWNER))
        return -EPERM;
    if (is_dir)
        return inode_is_dir(inode) ? 0 : -ENOTDIR;
    return inode_is_dir(inode) ? -EISDIR : 0;
}

/* ---- making ---- */

/* Finds the place of a new name and locks its directory. type: S_IFMT bits of what is made there; 0 = a link, whose
 * rights are the caller's to check. On success *ret_dentry is negative and hashed, and
 * vfs_create_end gives both back. */
static int vfs_create_begin(struct walk *w, struct ctx *ctx, const struct walk_base *base, const char *path,
                            uint32_t type, struct dentry **ret_dentry)
{
    if (!*path)
        return -ENOENT;
    int ret = walk_start(w, ctx, base, path);
    if (ret == 0)
        ret = walk_parent_next(w);
    if (ret < 0)
        return ret;
    if (w->last_type != WALK_LAST_NORM)
        return -EEXIST;
    /* The lock first: what a look-up found could be renamed away while we wait for it. */
    struct sleeplock *lock = &w->cur.dentry->inode->dir_lock;
    struct dentry *d = NULL;
    sleeplock_take(ctx, lock);
    ret = walk_lookup_last(w, &d);
    if (ret == 0) {
        if (d->inode)
            ret = -EEXIST;
        else if (w->slash && !S_ISDIR(type))
            ret = -ENOENT;
        else
            ret = mount_want_write(w->cur.mount);
    }
    if (ret == 0 && type)
        ret = landlock_fs_check(ctx, &w->cur, landlock_fs_make_right(type));
    if (ret == 0 && type)
        ret = vfs_may_create(ctx, w->cur.dentry);
    if (ret < 0) {
        sleeplock_release(lock);
        dentry_unref(d);
        return ret;
    }
    *ret_dentry = d;
    return 0;
}

/* Publishes inode when ret is 0 (consumed) and unlocks. attr: what a new inode was made with; NULL for one that was there already.
 * Return: ret. */
static int vfs_create_end(struct walk *w, struct dentry *d, int ret, OWNS struct inode *inode, struct newattr *attr)
{
    struct inode *dir = w->cur.dentry->inode;
    if (ret == 0 && attr) {
        inode->no_sec = true;
        acl_inherited(dir, inode, attr);
    }
    if (attr)
        newattr_done(attr);
    if (ret == 0) {
        dentry_instantiate(d, inode);
    } else if (ret == -EEXIST) {
        dentry_invalidate(d);
    }
    sleeplock_release(&dir->dir_lock);
    if (ret == 0)
        notify_entry(dir, IN_CREATE, d->name, 0, inode);
    dentry_unref(d);
    return ret;
}

int vfs_mkdir(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode)
{
    struct walk w = {0};
    struct dentry *d;
    int ret = vfs_create_begin(&w, ctx, base, path, S_IFDIR, &d);
    if (ret == 0) {
        struct inode *dir = w.cur.dentry->inode, *inode = NULL;
        struct newattr attr = {0};
        ret = vfs_new_owner(ctx, dir, S_IFDIR | (mode & 01777), base->umask, &attr);
        if (ret == 0)
            ret = dir->ops->mkdir ? dir->ops->mkdir(ctx, dir, d->name, &attr, &inode) : -EPERM;
        ret = vfs_create_end(&w, d, ret, inode, &attr);
    }
    walk_end(&w);
    return ret;
}

static int vfs_mknod_op(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                        struct inode **ret_inode)
{
    switch (attr->mode & S_IFMT) {
    case S_IFREG:
        return dir->ops->create ? dir->ops->create(ctx, dir, name, attr, ret_inode) : -EPERM;
    case S_IFCHR:
    case S_IFBLK:
        /* A character device 0:0 is an overlay's whiteout, which anybody may make. */
        if (!(S_ISCHR(attr->mode) && attr->rdev == 0) && !cred_has_cap(ctx->cred, CAP_MKNOD))
            return -EPERM;
        break;
    }
    return dir->ops->mknod ? dir->ops->mknod(ctx, dir, name, attr, ret_inode) : -EPERM;
}

int vfs_mknod_path(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode,
                   struct path *ret_path)
{
    return vfs_mknod_full(ctx, base, path, mode, 0, ret_path);
}

int vfs_mknod_full(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode,
                   uint64_t rdev, struct path *ret_path)
{
    if (!(mode & S_IFMT))
        mode |= S_IFREG;
    switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
        break;
    case S_IFDIR:
        return -EPERM;
    default:
        return -EINVAL;
    }
    struct walk w = {0};
    struct dentry *d;
    int ret = vfs_create_begin(&w, ctx, base, path, mode & S_IFMT, &d);
    if (ret == 0) {
        struct inode *dir = w.cur.dentry->inode, *inode = NULL;
        struct newattr attr = {.rdev = S_ISCHR(mode) || S_ISBLK(mode) ? rdev : 0};
        ret = vfs_new_owner(ctx, dir, mode & (S_IFMT | 07777), base->umask, &attr);
        if (ret == 0)
            ret = vfs_mknod_op(ctx, dir, d->name, &attr, &inode);
        struct path made = {mount_ref(w.cur.mount), dentry_ref(d)};
        ret = vfs_create_end(&w, d, ret, inode, &attr);
        if (ret == 0 && ret_path)
            *ret_path = made;
        else
            path_unref(&made);
    }
    walk_end(&w);
    return ret;
}

int vfs_mknod(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode, uint64_t rdev)
{
    return vfs_mknod_full(ctx, base, path, mode, rdev, NULL);
}

int vfs_symlink(struct ctx *ctx, const struct walk_base *base, const char *path, const char *target)
{
    if (!*target)
        return -ENOENT;
    struct walk w = {0};
    struct dentry *d;
    int ret = vfs_create_begin(&w, ctx, base, path, S_IFLNK, &d);
    if (ret == 0) {
        struct inode *dir = w.cur.dentry->inode, *inode = NULL;
        struct newattr attr = {0};
        ret = vfs_new_owner(ctx, dir, S_IFLNK | 0777, base->umask, &attr);
        if (ret == 0)
            ret = dir->ops->symlink ? dir->ops->symlink(ctx, dir, d->name, target, &attr, &inode) : -EPERM;
        ret = vfs_create_end(&w, d, ret, inode, &attr);
    }
    walk_end(&w);
    return ret;
}

/* fs.protected_hardlinks: only a file's owner may pin it, unless it is harmless and open to the caller anyway. */
static int vfs_may_link(struct ctx *ctx, struct inode *inode)
{
    if (!PROTECTED_HARDLINKS || inode_owner_or_capable(ctx, inode))
        return 0;
    bool harmless = S_ISREG(inode->mode) && !(inode->mode & S_ISUID) &&
                    (inode->mode & (S_ISGID | S_IXGRP)) != (S_ISGID | S_IXGRP);
    return harmless && inode_permission(ctx, inode, MAY_READ | MAY_WRITE) == 0 ? 0 : -EPERM;
}

int vfs_link(struct ctx *ctx, const struct path *from, const struct walk_base *base, const char *path)
{
    struct walk w = {0};
    struct dentry *d;
    int ret = vfs_create_begin(&w, ctx, base, path, 0, &d);
    if (ret == 0) {
        struct inode *dir = w.cur.dentry->inode, *inode = from->dentry->inode;
        if (from->mount != w.cur.mount)
            ret = -EXDEV;
        else
            ret = vfs_may_link(ctx, inode);
        if (ret == 0)
            ret = landlock_fs_refer(ctx, &w.cur, from->dentry, d, false, false);
        if (ret == 0)
            ret = vfs_may_create(ctx, w.cur.dentry);
        if (ret == 0 && (inode_is_dir(inode) || !dir->ops->link || inode_protected(inode)))
            ret = -EPERM;
        if (ret == 0 && inode->nlink == 0 && !inode->linkable)
            ret = -ENOENT;
        if (ret == 0)
            ret = dir->ops->link(ctx, inode, dir, d->name);
        ret = vfs_create_end(&w, d, ret, ret == 0 ? inode_ref(inode) : NULL, NULL);
        if (ret == 0)
            notify_inode(inode, IN_ATTRIB);
    }
    walk_end(&w);
    return ret;
}

/* ---- removing ---- */

static int vfs_remove_locked(struct ctx *ctx, struct walk *w, struct dentry *d, bool is_dir)
{
    struct dentry *parent = w->cur.dentry;
    struct inode *dir = parent->inode, *inode = d->inode;
    if (parent->deleted || !inode)
        return -ENOENT;
    int ret = landlock_fs_check(ctx, &w->cur, is_dir ? LANDLOCK_REMOVE_DIR : LANDLOCK_REMOVE_FILE);
    if (ret < 0)
        return ret;
    ret = vfs_may_delete(ctx, parent, d, is_dir);
    if (ret < 0)
        return ret;
    if (mount_is_local_mountpoint(w->cur.mount, d))
        return -EBUSY;
    if (is_dir)
        ret = dir->ops->rmdir ? dir->ops->rmdir(ctx, dir, d->name, inode) : -EPERM;
    else
        ret = dir->ops->unlink ? dir->ops->unlink(ctx, dir, d->name, inode) : -EPERM;
    if (ret < 0)
        return ret;
    if (d->mounted)
        mount_detach_dentry(d);
    return 0;
}

static int vfs_remove(struct ctx *ctx, struct walk *w, bool is_dir)
{
    int ret = mount_want_write(w->cur.mount);
    if (ret < 0)
        return ret;
    struct dentry *d;
    struct inode *dir = w->cur.dentry->inode;
    /* The lock first: what a look-up found could be renamed away while we wait for it. */
    sleeplock_take(ctx, &dir->dir_lock);
    ret = walk_lookup_last(w, &d);
    if (ret < 0) {
        sleeplock_release(&dir->dir_lock);
        return ret;
    }
    /* A directory that goes must not get entries meanwhile. Always parent first. */
    struct inode *victim = is_dir && d->inode && inode_is_dir(d->inode) ? inode_ref(d->inode) : NULL;
    if (victim)
        sleeplock_take(ctx, &victim->dir_lock);
    if (d->inode && w->slash && !is_dir)
        ret = inode_is_dir(d->inode) ? -EISDIR : -ENOTDIR;
    else
        ret = vfs_remove_locked(ctx, w, d, is_dir);
    struct inode *inode = ret == 0 ? inode_ref(d->inode) : NULL;
    char name[NAME_LEN_MAX + 1];
    memcpy(name, d->name, d->name_len + 1U);
    if (ret == 0) {
        if (!is_dir)
            notify_inode(inode, IN_ATTRIB); /* the link count fell, be it to nothing */
        dentry_delete(d);
    }
    if (victim)
        sleeplock_release(&victim->dir_lock);
    sleeplock_release(&dir->dir_lock);
    dentry_unref(d);
    inode_unref(victim);
    if (ret == 0)
        notify_entry(dir, IN_DELETE, name, 0, inode);
    inode_unref(inode);
    return ret;
}

int vfs_unlink(struct ctx *ctx, const struct walk_base *base, const char *path)
{
    if (!*path)
        return -ENOENT;
    struct walk w;
    int ret = walk_start(&w, ctx, base, path);
    if (ret == 0)
        ret = walk_parent_next(&w);
    if (ret == 0)
        ret = w.last_type == WALK_LAST_NORM ? vfs_remove(ctx, &w, false) : -EISDIR;
    walk_end(&w);
    return ret;
}

int vfs_rmdir(struct ctx *ctx, const struct walk_base *base, const char *path)
{
    if (!*path)
        return -ENOENT;
    struct walk w;
    int ret = walk_start(&w, ctx, base, path);
    if (ret == 0)
        ret = walk_parent_next(&w);
    if (ret == 0) {
        switch (w.last_type) {
        case WALK_LAST_NORM:
            ret = vfs_remove(ctx, &w, true);
            break;
        case WALK_LAST_DOT:
            ret = -EINVAL;
            break;
        case WALK_LAST_DOTDOT:
            ret = -ENOTEMPTY;
            break;
        case WALK_LAST_ROOT:
            ret = -EBUSY;
            break;
        }
    }
    walk_end(&w);
    return ret;
}
