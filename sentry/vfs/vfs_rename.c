/* SPDX-License-Identifier: Apache-2.0 */
/* rename(2), renameat2(2). */
#include "sentry/vfs/path_walk_priv.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/inotify.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/dentry_priv.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/dnotify.h"
#include "sentry/vfs/notify.h"
#include "sentry/vfs/vfs_ops_priv.h"

struct rename_state {
    struct ctx *ctx;
    struct walk *old_w, *new_w;
    struct dentry *old_d, *new_d; /* referenced, new may be negative */
    unsigned flags;
};

/* One directory, or two under the file system's rename lock: an ancestor before what is below it, as everywhere else. */
static void rename_lock(struct rename_state *r)
{
    struct inode *a = r->old_w->cur.dentry->inode, *b = r->new_w->cur.dentry->inode;
    if (a == b) {
        sleeplock_take(r->ctx, &a->dir_lock);
        return;
    }
    sleeplock_take(r->ctx, &a->sb->rename_lock);
    /* With that lock held no directory changes its ancestors. */
    bool b_first = dentry_is_ancestor(r->new_w->cur.dentry, r->old_w->cur.dentry);
    sleeplock_take(r->ctx, b_first ? &b->dir_lock : &a->dir_lock);
    sleeplock_take(r->ctx, b_first ? &a->dir_lock : &b->dir_lock);
}

static void rename_unlock(struct rename_state *r)
{
    struct inode *a = r->old_w->cur.dentry->inode, *b = r->new_w->cur.dentry->inode;
    sleeplock_release(&a->dir_lock);
    if (a == b)
        return;
    sleeplock_release(&b->dir_lock);
    sleeplock_release(&a->sb->rename_lock);
}

/* Checks that need nothing but the dentries, in the order in which Linux finds fault. */
static int rename_check_names(const struct rename_state *r)
{
    struct inode *old = r->old_d->inode, *new = r->new_d->inode;
    if (!old)
        return -ENOENT;
    if ((r->flags & RENAME_NOREPLACE) && new)
        return -EEXIST;
    if (r->flags & RENAME_EXCHANGE) {
        if (!new)
            return -ENOENT;
        if (!inode_is_dir(new) && r->new_w->slash)
            return -ENOTDIR;
    }
    if (!inode_is_dir(old)) {
        if (r->old_w->slash || (!(r->flags & RENAME_EXCHANGE) && r->new_w->slash))
            return -ENOTDIR;
    }
    if (dentry_is_ancestor(r->old_d, r->new_w->cur.dentry))
        return -EINVAL;
    if (dentry_is_ancestor(r->new_d, r->old_w->cur.dentry))
        return r->flags & RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
    return 0;
}

static int rename_check_rights(const struct rename_state *r)
{
    struct ctx *ctx = r->ctx;
    struct dentry *old_dir = r->old_w->cur.dentry, *new_dir = r->new_w->cur.dentry;
    struct inode *old = r->old_d->inode, *new = r->new_d->inode;
    bool is_dir = inode_is_dir(old);
    int ret = vfs_may_delete(ctx, old_dir, r->old_d, is_dir);
    if (ret < 0)
        return ret;
    if (!new)
        ret = vfs_may_create(ctx, new_dir);
    else
        ret = vfs_may_delete(ctx, new_dir, r->new_d,
                             r->flags & RENAME_EXCHANGE ? inode_is_dir(new) : is_dir);
    if (ret < 0)
        return ret;
    /* A directory that changes its parent has its ".." rewritten. */
    if (old_dir != new_dir) {
        if (is_dir && (ret = inode_permission(ctx, old, MAY_WRITE)) < 0)
            return ret;
        if ((r->flags & RENAME_EXCHANGE) && inode_is_dir(new) &&
            (ret = inode_permission(ctx, new, MAY_WRITE)) < 0)
            return ret;
    }
    if (mount_is_local_mountpoint(r->old_w->cur.mount, r->old_d) ||
        mount_is_local_mountpoint(r->old_w->cur.mount, r->new_d))
        return -EBUSY;
    return 0;
}

/* One way of a rename. replaced: what was at the new name and has lost it, or NULL. */
static void rename_notify(struct inode *old_dir, const char *old_name, struct inode *new_dir, const char *new_name,
                          struct inode *moved, struct inode *replaced)
{
    notify_renamed(old_dir, old_name, new_dir, new_name, moved);
    if (replaced)
        notify_inode(replaced, IN_ATTRIB);
    if (old_dir == new_dir)
        dnotify_tell_renamed(old_dir);
    notify_inode(moved, IN_MOVE_SELF);
}

/* The cache follows what the file system did. */
static void rename_move_dentries(const struct rename_state *r, const char *old_name, const char *new_name)
{
    struct dentry *old_dir = r->old_w->cur.dentry;
    if (r->flags & RENAME_EXCHANGE) {
        dentry_exchange(r->old_d, r->new_d);
        return;
    }
    if (r->new_d->inode)
        dentry_delete(r->new_d);
    dentry_move(r->old_d, r->new_w->cur.dentry, new_name);
    if (r->flags & RENAME_WHITEOUT) {
        struct dentry *gone = dentry_find(old_dir, old_name, strlen(old_name));
        if (gone)
            dentry_invalidate(gone);
        dentry_unref(gone);
    }
}

static int rename_act(struct rename_state *r)
{
    int ret = rename_check_names(r);
    if (ret < 0)
        return ret;
    struct inode *old = r->old_d->inode, *new = r->new_d->inode;
    if (old == new)
        return 0;
    if (r->old_w->cur.dentry->deleted)
        return -ENOENT;
    ret = landlock_fs_refer(r->ctx, &r->new_w->cur, r->old_d, r->new_d, true, r->flags & RENAME_EXCHANGE);
    if (ret == 0)
        ret = rename_check_rights(r);
    if (ret < 0)
        return ret;
    struct inode *old_dir = r->old_w->cur.dentry->inode, *new_dir = r->new_w->cur.dentry->inode;
    if (!old_dir->ops->rename)
        return -EPERM;
    /* Names outlive the dentries' own through parks. */
    CLEANUP_FREE char *old_name = mem_strdup(r->old_d->name);
    CLEANUP_FREE char *new_name = mem_strdup(r->new_d->name);
    if (!old_name || !new_name)
        return -ENOMEM;
    inode_ref(old);
    if (new)
        inode_ref(new);
    /* A directory that is replaced must not get entries meanwhile. */
    bool replaces = new && inode_is_dir(new) && !(r->flags & RENAME_EXCHANGE);
    if (replaces)
        sleeplock_take(r->ctx, &new->dir_lock);
    ret = old_dir->ops->rename(r->ctx, old_dir, old_name, old, new_dir, new_name, new, r->flags);
    if (ret == 0) {
        /* Before the end of what is replaced is told. */
        bool exchange = r->flags & RENAME_EXCHANGE;
        rename_notify(old_dir, old_name, new_dir, new_name, old, exchange ? NULL : new);
        if (exchange)
            rename_notify(new_dir, new_name, old_dir, old_name, new, NULL);
        rename_move_dentries(r, old_name, new_name);
    }
    if (replaces)
        sleeplock_release(&new->dir_lock);
    inode_unref(old);
    inode_unref(new);
    return ret;
}

static int rename_last_types(const struct walk *old_w, const struct walk *new_w, unsigned flags)
{
    if (old_w->cur.mount != new_w->cur.mount)
        return -EXDEV;
    if (old_w->last_type != WALK_LAST_NORM)
        return -EBUSY;
    if (new_w->last_type != WALK_LAST_NORM)
        return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    return mount_want_write(old_w->cur.mount);
}

static int rename_walked(struct ctx *ctx, struct walk *old_w, struct walk *new_w, unsigned flags)
{
    int ret = rename_last_types(old_w, new_w, flags);
    if (ret < 0)
        return ret;
    struct rename_state r = {.ctx = ctx, .old_w = old_w, .new_w = new_w, .flags = flags};
    rename_lock(&r);
    ret = walk_lookup_last(old_w, &r.old_d);
    if (ret == 0) {
        if (!r.old_d->inode)
            ret = -ENOENT;
        else
            ret = walk_lookup_last(new_w, &r.new_d);
        if (ret == 0) {
            ret = rename_act(&r);
            dentry_unref(r.new_d);
        }
        dentry_unref(r.old_d);
    }
    rename_unlock(&r);
    return ret;
}

int vfs_rename(struct ctx *ctx, const struct walk_base *old_base, const char *old_path,
               const struct walk_base *new_base, const char *new_path, unsigned flags)
{
    if (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
        return -EINVAL;
    if ((flags & RENAME_EXCHANGE) && (flags & (RENAME_NOREPLACE | RENAME_WHITEOUT)))
        return -EINVAL;
    if (!*old_path || !*new_path)
        return -ENOENT;
    struct walk old_w, new_w = {0};
    int ret = walk_start(&old_w, ctx, old_base, old_path);
    if (ret == 0)
        ret = walk_parent_next(&old_w);
    if (ret == 0)
        ret = walk_start(&new_w, ctx, new_base, new_path);
    if (ret == 0)
        ret = walk_parent_next(&new_w);
    if (ret == 0)
        ret = rename_walked(ctx, &old_w, &new_w, flags);
    walk_end(&new_w);
    walk_end(&old_w);
    return ret;
}
