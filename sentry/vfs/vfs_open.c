/* SPDX-License-Identifier: Apache-2.0 */
/* open(2): creation, access checks, truncation. */
#include "sentry/vfs/path_walk_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/vfs/acl.h"
#include "sentry/vfs/dentry_priv.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/notify.h"

#define VFS_OPEN_PATH_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC)
/* O_TMPFILE holds O_DIRECTORY's bit. */
#define VFS_OPEN_TMPFILE (O_TMPFILE & ~O_DIRECTORY)

static unsigned vfs_open_access(uint32_t flags)
{
    static const unsigned acc[4] = {MAY_READ, MAY_WRITE, MAY_READ | MAY_WRITE, MAY_READ | MAY_WRITE};
    unsigned mask = acc[flags & O_ACCMODE];
    return flags & O_TRUNC ? mask | MAY_WRITE : mask;
}

/* Checks that do not depend on how the path was found. */
static int vfs_may_open(struct ctx *ctx, const struct path *path, uint32_t flags, bool created)
{
    struct inode *inode = path->dentry->inode;
    unsigned acc = vfs_open_access(flags);
    switch (inode->mode & S_IFMT) {
    case S_IFLNK:
        return -ELOOP;
    case S_IFDIR:
        if (acc & MAY_WRITE)
            return -EISDIR;
        break;
    case S_IFBLK:
    case S_IFCHR:
        if (path->mount && ((path->mount->flags & MS_NODEV) || path->mount->sb->nodev))
            return -EACCES;
        break;
    case S_IFREG:
        if (acc & MAY_WRITE) {
            int ret = mount_want_write(path->mount);
            if (ret < 0)
                return ret;
        }
        break;
    }
    if (!created) {
        int ret = inode_permission(ctx, inode, acc);
        if (ret < 0)
            return ret;
    }
    if (inode_append_only(inode) && (((acc & MAY_WRITE) && !(flags & O_APPEND)) || (flags & O_TRUNC)))
        return -EPERM;
    if ((flags & O_NOATIME) && !inode_owner_or_capable(ctx, inode))
        return -EPERM;
    return 0;
}

/* O_TRUNC. The descriptor itself may be one for reading: a running program is not cut off either. */
static int vfs_open_truncate(struct ctx *ctx, const struct path *path, const struct file *f)
{
    int ret = landlock_fs_file(f, LANDLOCK_TRUNCATE);
    if (ret == 0)
        ret = inode_get_write(path->dentry->inode);
    if (ret < 0)
        return ret;
    ret = vfs_truncate(ctx, path, 0);
    inode_put_write(path->dentry->inode);
    return ret;
}

static int vfs_open_found(struct ctx *ctx, const struct path *path, uint32_t flags, bool created,
                          struct file **ret_file)
{
    struct inode *inode = path->dentry->inode;
    if (flags & O_PATH)
        return file_open_inode(ctx, path, flags & VFS_OPEN_PATH_FLAGS & ~O_CLOEXEC, ret_file);
    /* O_TRUNC asks for the right to write, whatever it is said of. */
    int ret = vfs_may_open(ctx, path, flags, created);
    if (ret < 0)
        return ret;
    if ((flags & O_TRUNC) && !S_ISREG(inode->mode))
        flags &= ~O_TRUNC;
    struct file *f;
    ret = file_open_inode(ctx, path, flags, &f);
    if (ret < 0)
        return ret;
    if ((flags & O_TRUNC) && !created) {
        ret = vfs_open_truncate(ctx, path, f);
        if (ret < 0) {
            file_unref(f);
            return ret;
        }
    }
    notify_file(f, IN_OPEN);
    f->created = created;
    *ret_file = f;
    return 0;
}

int vfs_open_path(struct ctx *ctx, const struct path *path, uint32_t flags, struct file **ret_file)
{
    if ((flags & O_DIRECTORY) && !inode_is_dir(path->dentry->inode))
        return -ENOTDIR;
    return vfs_open_found(ctx, path, flags, false, ret_file);
}

/* ---- creation ---- */

/* fs.protected_fifos, protected_regular: O_CREAT on somebody else's file in a sticky directory. */
static int vfs_open_may_reuse(struct ctx *ctx, const struct inode *dir, const struct inode *inode)
{
    if (!(dir->mode & S_ISVTX) || inode->uid == dir->uid || ctx->cred->fsuid == inode->uid)
        return 0;
    int level = S_ISFIFO(inode->mode) ? PROTECTED_FIFOS : S_ISREG(inode->mode) ? PROTECTED_REGULAR : 0;
    if ((level >= 1 && (dir->mode & S_IWOTH)) || (level >= 2 && (dir->mode & S_IWGRP)))
        return -EACCES;
    return 0;
}

/* Makes the file for the negative dentry d of the walk's directory. Return: 0, −errno, or 1 when the name has changed its
 * meaning while we waited for the directory. */
static int vfs_open_create(struct walk *w, struct dentry *d, uint32_t mode)
{
    struct inode *dir = w->cur.dentry->inode;
    int ret = mount_want_write(w->cur.mount);
    if (ret == 0)
        ret = landlock_fs_check(w->ctx, &w->cur, LANDLOCK_MAKE_REG);
    if (ret == 0)
        ret = inode_permission(w->ctx, dir, MAY_WRITE | MAY_EXEC);
    if (ret < 0)
        return ret;
    if (!dir->ops->create)
        return -EPERM;
    sleeplock_take(w->ctx, &dir->dir_lock);
    if (w->cur.dentry->deleted) {
        ret = -ENOENT;
    } else if (d->inode || !d->hash_pprev) {
        ret = 1;
    } else {
        struct newattr attr = {0};
        struct inode *inode;
        ret = vfs_new_owner(w->ctx, dir, S_IFREG | (mode & 07777), w->base->umask, &attr);
        if (ret == 0)
            ret = dir->ops->create(w->ctx, dir, d->name, &attr, &inode);
        if (ret == 0) {
            inode->no_sec = true;
            acl_inherited(dir, inode, &attr);
            dentry_instantiate(d, inode);
        } else if (ret == -EEXIST) {
            dentry_invalidate(d); /* it came into being behind our back */
            ret = 1;
        }
        newattr_done(&attr);
    }
    sleeplock_release(&dir->dir_lock);
    if (ret == 0)
        notify_entry(dir, IN_CREATE, d->name, 0, d->inode);
    return ret;
}

/* Last component of an open with O_CREAT. Return: 1 = goes on with a link's text, 0 = done or w->cur is it, −errno. */
static int vfs_open_last_create(struct walk *w, uint32_t flags, uint32_t mode, bool *ret_created)
{
    if (w->last_type != WALK_LAST_NORM || w->slash)
        return -EISDIR;
    for (unsigned tries = 0;; tries++) {
        struct dentry *d;
        int ret = walk_lookup_last(w, &d);
        if (ret < 0)
            return ret;
        if (!d->inode) {
            ret = w->resolve & RESOLVE_CACHED ? -EAGAIN : vfs_open_create(w, d, mode);
            if (ret == 1 && tries < 64) {
                dentry_unref(d);
                continue;
            }
            if (ret) {
                dentry_unref(d);
                return ret < 0 ? ret : -ESTALE;
            }
            *ret_created = true;
            return walk_step(w, d, false);
        }
        if (flags & O_EXCL) {
            dentry_unref(d);
            return -EEXIST;
        }
        if (S_ISLNK(d->inode->mode) && !d->mounted) {
            ret = flags & O_NOFOLLOW ? -ELOOP : walk_follow(w, d);
            dentry_unref(d);
            return ret;
        }
        struct inode *dir = inode_ref(w->cur.dentry->inode);
        ret = walk_step(w, d, true);
        if (ret == 0 && inode_is_dir(w->cur.dentry->inode))
            ret = -EISDIR;
        if (ret == 0)
            ret = vfs_open_may_reuse(w->ctx, dir, w->cur.dentry->inode);
        inode_unref(dir);
        return ret;
    }
}

static int vfs_open_creating(struct walk *w, uint32_t flags, uint32_t mode, struct file **ret_file)
{
    bool created = false;
    int ret;
    do {
        ret = walk_parent_next(w);
        if (ret == 0)
            ret = vfs_open_last_create(w, flags, mode, &created);
    } while (ret == 1);
    if (ret < 0)
        return ret;
    /* A magic link may have led to a directory or a link. */
    if (inode_is_dir(w->cur.dentry->inode))
        return -EISDIR;
    return vfs_open_found(w->ctx, &w->cur, flags, created, ret_file);
}

static int vfs_open_tmpfile(struct walk *w, uint32_t flags, uint32_t mode, struct file **ret_file)
{
    int ret = walk_all(w, flags & O_NOFOLLOW ? WALK_DIRECTORY : WALK_DIRECTORY | WALK_FOLLOW);
    if (ret < 0)
        return ret;
    struct inode *dir = w->cur.dentry->inode;
    ret = mount_want_write(w->cur.mount);
    if (ret == 0)
        ret = inode_permission(w->ctx, dir, MAY_WRITE | MAY_EXEC);
    if (ret < 0)
        return ret;
    if (!dir->ops->tmpfile)
        return -EOPNOTSUPP;
    struct newattr attr = {0};
    struct inode *inode;
    ret = vfs_new_owner(w->ctx, dir, S_IFREG | (mode & 07777), w->base->umask, &attr);
    if (ret == 0)
        ret = dir->ops->tmpfile(w->ctx, dir, &attr, &inode);
    if (ret == 0)
        acl_inherited(dir, inode, &attr);
    newattr_done(&attr);
    if (ret < 0)
        return ret;
    inode->no_sec = true;
    inode->linkable = !(flags & O_EXCL);
    struct dentry *d = dentry_new_unlinked(w->cur.dentry, inode);
    if (!d)
        return -ENOMEM;
    ret = walk_step(w, d, false);
    return ret < 0 ? ret : vfs_open_found(w->ctx, &w->cur, flags & ~VFS_OPEN_TMPFILE, true, ret_file);
}

static int vfs_open_existing(struct walk *w, uint32_t flags, struct file **ret_file)
{
    unsigned walk_flags = flags & O_NOFOLLOW ? 0 : WALK_FOLLOW;
    if (flags & O_DIRECTORY)
        walk_flags |= WALK_DIRECTORY;
    int ret = walk_all(w, walk_flags);
    if (ret < 0)
        return ret;
    return vfs_open_found(w->ctx, &w->cur, flags, false, ret_file);
}

static int vfs_open_once(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t flags,
                         uint32_t mode, struct file **ret_file)
{
    struct walk w;
    int ret = walk_start(&w, ctx, base, path);
    /* What is opened for neither reading nor writing needs nothing opened below. */
    uint32_t access = flags & O_TRUNC ? O_RDWR : flags & O_ACCMODE;
    if (!(flags & (O_PATH | O_DIRECTORY | VFS_OPEN_TMPFILE)) && access != O_ACCMODE)
        ctx->lookup_open = 1 + access;
    if (ret == 0) {
        if (flags & O_PATH)
            ret = vfs_open_existing(&w, flags, ret_file);
        else if (flags & VFS_OPEN_TMPFILE)
            ret = vfs_open_tmpfile(&w, flags, mode, ret_file);
        else if (flags & O_CREAT)
            ret = vfs_open_creating(&w, flags, mode, ret_file);
        else
            ret = vfs_open_existing(&w, flags, ret_file);
    }
    ctx->lookup_open = 0;
    walk_end(&w);
    return ret;
}

int vfs_open(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t flags, uint32_t mode,
             struct file **ret_file)
{
    if (!*path)
        return -ENOENT;
    for (unsigned tries = 0; tries < 4; tries++) {
        int ret = vfs_open_once(ctx, base, path, flags, mode, ret_file);
        /* Somebody outside has replaced the file between its look-up and its opening. */
        if (ret != -ESTALE)
            return ret;
    }
    return -ENOENT;
}
