/* SPDX-License-Identifier: Apache-2.0 */
/* What the overlay does to its layers: the file systems' operations, with the layers' dentries kept in step. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/vfs/acl.h"

int ovl_layer_lookup(struct ctx *ctx, struct dentry *dir, const char *name, struct dentry **ret_dentry)
{
    struct dentry *d;
    *ret_dentry = NULL;
    int ret = dentry_lookup(ctx, dir, name, strlen(name), &d);
    if (ret < 0)
        return ret == -ENAMETOOLONG || ret == -ENOENT ? 0 : ret;
    if (d->inode)
        *ret_dentry = d;
    else
        dentry_unref(d);
    return 0;
}

static int ovl_make_op(struct ctx *ctx, struct inode *dir, const char *name, const struct ovl_make *make,
                       struct inode **ret_inode)
{
    const struct inode_ops *ops = dir->ops;
    if (make->link) {
        int ret = ops->link ? ops->link(ctx, make->link, dir, name) : -EPERM;
        if (ret == 0)
            *ret_inode = inode_ref(make->link);
        return ret;
    }
    if (make->target)
        return ops->symlink ? ops->symlink(ctx, dir, name, make->target, make->attr, ret_inode) : -EPERM;
    switch (make->attr->mode & S_IFMT) {
    case S_IFDIR:
        return ops->mkdir ? ops->mkdir(ctx, dir, name, make->attr, ret_inode) : -EPERM;
    case S_IFREG:
        return ops->create ? ops->create(ctx, dir, name, make->attr, ret_inode) : -EPERM;
    default:
        return ops->mknod ? ops->mknod(ctx, dir, name, make->attr, ret_inode) : -EPERM;
    }
}

int ovl_layer_make(struct ctx *ctx, struct dentry *dir, const char *name, const struct ovl_make *make,
                   struct dentry **ret_dentry)
{
    struct dentry *d = NULL;
    struct inode *inode = NULL;
    sleeplock_take(ctx, &dir->inode->dir_lock);
    int ret = dentry_lookup(ctx, dir, name, strlen(name), &d);
    if (ret == 0 && d->inode)
        ret = -EEXIST;
    if (ret == 0)
        ret = ovl_make_op(ctx, dir->inode, name, make, &inode);
    if (ret == 0)
        dentry_instantiate(d, inode);
    sleeplock_release(&dir->inode->dir_lock);
    if (ret == 0)
        *ret_dentry = d;
    else
        dentry_unref(d);
    return ret;
}

int ovl_layer_remove(struct ctx *ctx, struct dentry *d)
{
    struct dentry *dir = dentry_ref(d->parent);
    struct inode *inode = inode_ref(d->inode);
    bool is_dir = inode_is_dir(inode);
    sleeplock_take(ctx, &dir->inode->dir_lock);
    if (is_dir)
        sleeplock_take(ctx, &inode->dir_lock);
    const struct inode_ops *ops = dir->inode->ops;
    int ret;
    if (d->parent != dir || d->deleted)
        ret = -ENOENT;
    else if (is_dir)
        ret = ops->rmdir ? ops->rmdir(ctx, dir->inode, d->name, inode) : -EPERM;
    else
        ret = ops->unlink ? ops->unlink(ctx, dir->inode, d->name, inode) : -EPERM;
    if (ret == 0)
        dentry_delete(d);
    if (is_dir)
        sleeplock_release(&inode->dir_lock);
    sleeplock_release(&dir->inode->dir_lock);
    inode_unref(inode);
    dentry_unref(dir);
    return ret;
}

static void ovl_lock_two(struct ctx *ctx, struct dentry *a, struct dentry *b)
{
    if (a != b) {
        sleeplock_take(ctx, &a->sb->rename_lock);
        if (dentry_is_ancestor(b, a))
            sleeplock_take(ctx, &b->inode->dir_lock);
    }
    sleeplock_take(ctx, &a->inode->dir_lock);
    if (a != b && !dentry_is_ancestor(b, a))
        sleeplock_take(ctx, &b->inode->dir_lock);
}

static void ovl_unlock_two(struct dentry *a, struct dentry *b)
{
    sleeplock_release(&a->inode->dir_lock);
    if (a == b)
        return;
    sleeplock_release(&b->inode->dir_lock);
    sleeplock_release(&a->sb->rename_lock);
}

static int ovl_rename_locked(struct ctx *ctx, struct dentry *d, struct dentry *from, struct dentry *to, const char *name,
                             unsigned flags)
{
    struct dentry *over;
    if (d->parent != from || d->deleted)
        return -ENOENT;
    int ret = dentry_lookup(ctx, to, name, strlen(name), &over);
    if (ret < 0)
        return ret;
    CLEANUP_FREE char *old_name = mem_strdup(d->name);
    struct inode *inode = inode_ref(d->inode), *target = over->inode ? inode_ref(over->inode) : NULL;
    if (!old_name)
        ret = -ENOMEM;
    else if (!from->inode->ops->rename)
        ret = -EPERM;
    else
        ret = from->inode->ops->rename(ctx, from->inode, old_name, inode, to->inode, name, target, flags);
    if (ret == 0 && (flags & RENAME_EXCHANGE)) {
        dentry_exchange(d, over);
    } else if (ret == 0) {
        if (over->inode)
            dentry_delete(over);
        dentry_move(d, to, name);
        if (flags & RENAME_WHITEOUT) {
            struct dentry *gone = dentry_find(from, old_name, strlen(old_name));
            if (gone)
                dentry_invalidate(gone);
            dentry_unref(gone);
        }
    }
    inode_unref(inode);
    inode_unref(target);
    dentry_unref(over);
    return ret;
}

int ovl_layer_rename(struct ctx *ctx, struct dentry *d, struct dentry *to, const char *name, unsigned flags)
{
    struct dentry *from = dentry_ref(d->parent);
    ovl_lock_two(ctx, from, to);
    int ret = ovl_rename_locked(ctx, d, from, to, name, flags);
    ovl_unlock_two(from, to);
    dentry_unref(from);
    return ret;
}

int ovl_layer_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    if (inode->ops->setattr)
        return inode->ops->setattr(ctx, inode, attr);
    inode_apply_attr(inode, attr);
    return 0;
}

int ovl_may_write(struct ctx *ctx, const struct ovl_sb *s, struct inode *dir)
{
    if (!s->mounter)
        return 0;
    struct ctx mounter = {.cred = s->mounter};
    return inode_permission(&mounter, dir, MAY_WRITE | MAY_EXEC);
}

/* ---- the work directory ---- */

int ovl_temp_make(struct ctx *ctx, struct ovl_sb *s, const struct ovl_make *make, struct dentry **ret_dentry)
{
    for (unsigned tries = 0;; tries++) {
        char name[32];
        snprintf(name, sizeof(name), "#%llx", (unsigned long long)++s->temps);
        int ret = ovl_layer_make(ctx, s->work, name, make, ret_dentry);
        if (ret != -EEXIST || tries == 64)
            return ret;
        /* Left behind by somebody whose work was cut short. */
        struct dentry *d;
        ret = ovl_layer_lookup(ctx, s->work, name, &d);
        if (ret < 0)
            return ret;
        if (d)
            ovl_temp_drop(ctx, d);
    }
}

int ovl_whiteout_make(struct ctx *ctx, struct ovl_sb *s, struct dentry *dir, const char *name, struct dentry **ret_dentry)
{
    const struct newattr attr = {.mode = S_IFCHR};
    const struct ovl_make make = {.attr = &attr};
    return name ? ovl_layer_make(ctx, dir, name, &make, ret_dentry) : ovl_temp_make(ctx, s, &make, ret_dentry);
}

struct ovl_names {
    struct dir_sink sink;
    char *names; /* one after the other, each with its NUL */
    size_t size, room;
    int error;
};

enum { OVL_NAMES_MAX = 1 << 20 }; /* bytes gathered in one go */

static bool ovl_names_emit(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned type, int64_t next)
{
    struct ovl_names *n = container_of(sink, struct ovl_names, sink);
    if (type != DT_CHR)
        return true;
    if (n->size + len + 1 > n->room) {
        size_t room = n->room ? n->room * 2 : 4096;
        char *more = room <= OVL_NAMES_MAX ? mem_realloc(n->names, room, 1) : NULL;
        if (!more)
            return false; /* the rest in the next round */
        n->names = more;
        n->room = room;
    }
    memcpy(n->names + n->size, name, len);
    n->names[n->size + len] = '\0';
    n->size += len + 1;
    return true;
}

int ovl_clear_whiteouts(struct ctx *ctx, struct dentry *dir)
{
    for (;;) {
        struct ovl_names n = {.sink.emit = ovl_names_emit};
        struct file *f;
        int ret = ovl_open_real(ctx, NULL, dir, O_RDONLY | O_DIRECTORY, &f);
        if (ret < 0)
            return ret;
        ret = f->ops->readdir ? f->ops->readdir(ctx, f, &n.sink) : -ENOTDIR;
        file_unref(f);
        unsigned removed = 0;
        for (size_t at = 0; ret == 0 && at < n.size; at += strlen(n.names + at) + 1) {
            struct dentry *d;
            ret = ovl_layer_lookup(ctx, dir, n.names + at, &d);
            if (ret == 0 && d) {
                if (ovl_is_whiteout(d->inode)) {
                    ret = ovl_layer_remove(ctx, d);
                    removed++;
                }
                dentry_unref(d);
            }
        }
        mem_free(n.names);
        if (ret < 0 || !removed)
            return ret;
    }
}

/* Consumes d. What can't be removed stays in the work directory, where nobody sees it. */
void ovl_temp_drop(struct ctx *ctx, OWNS struct dentry *d)
{
    int ret = inode_is_dir(d->inode) ? ovl_clear_whiteouts(ctx, d) : 0;
    if (ret == 0)
        ret = ovl_layer_remove(ctx, d);
    (void)ret;
    dentry_unref(d);
}
