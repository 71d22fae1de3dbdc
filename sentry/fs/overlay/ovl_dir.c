/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of an overlay's directories. The VFS holds the overlay's directory locks. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "platform/base/alloc.h"

static void ovl_sync_dir(struct inode *dir)
{
    if (to_ovl(dir)->upper)
        ovl_sync(to_ovl(dir));
}

/* ---- making ---- */

/* A new object where the upper layer has a whiteout: prepared aside, and moved over it. */
static int ovl_make_over(struct ctx *ctx, struct ovl_inode *dir, const char *name, const struct ovl_make *make,
                         struct dentry **ret_dentry)
{
    struct ovl_sb *s = ovl_sb(&dir->inode);
    struct dentry *d;
    int ret = ovl_temp_make(ctx, s, make, &d);
    if (ret < 0)
        return ret;
    bool is_dir = inode_is_dir(d->inode);
    /* The lower layers' directory of the same name must not shine through. */
    if (is_dir)
        ret = ovl_set_opaque(ctx, s, d->inode);
    char temp[32];
    strncpy(temp, d->name, sizeof(temp) - 1);
    temp[sizeof(temp) - 1] = '\0';
    if (ret == 0)
        ret = ovl_layer_rename(ctx, d, dir->upper, name, is_dir ? RENAME_EXCHANGE : 0);
    if (ret < 0) {
        ovl_temp_drop(ctx, d);
        return ret;
    }
    struct dentry *whiteout;
    if (is_dir && ovl_layer_lookup(ctx, s->work, temp, &whiteout) == 0 && whiteout)
        ovl_temp_drop(ctx, whiteout);
    *ret_dentry = d;
    return 0;
}

static int ovl_make_upper(struct ctx *ctx, struct inode *dir, const char *name, const struct ovl_make *make,
                          struct dentry **ret_dentry)
{
    struct ovl_inode *od = to_ovl(dir);
    int ret = ovl_copy_up(ctx, dir);
    if (ret == 0)
        ret = ovl_may_write(ctx, ovl_sb(dir), od->upper->inode);
    struct dentry *there = NULL;
    if (ret == 0)
        ret = ovl_layer_lookup(ctx, od->upper, name, &there);
    if (ret < 0)
        return ret;
    if (there)
        ret = ovl_is_whiteout(there->inode) ? ovl_make_over(ctx, od, name, make, ret_dentry) : -EEXIST;
    else
        ret = ovl_layer_make(ctx, od->upper, name, make, ret_dentry);
    dentry_unref(there);
    ovl_sync_dir(dir);
    return ret;
}

static int ovl_make(struct ctx *ctx, struct inode *dir, const char *name, const struct ovl_make *make,
                    struct inode **ret_inode)
{
    struct dentry *d;
    int ret = ovl_make_upper(ctx, dir, name, make, &d);
    return ret < 0 ? ret : ovl_inode_get(dir->sb, d, NULL, 0, ret_inode);
}

static int ovl_create(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                      struct inode **ret_inode)
{
    struct newattr below = *attr;
    below.rdev = ovl_rdev_below(ovl_sb(dir), attr->mode, attr->rdev);
    const struct ovl_make make = {.attr = &below};
    /* Whiteouts are the overlay's own. */
    if (S_ISCHR(below.mode) && below.rdev == 0)
        return -EPERM;
    return ovl_make(ctx, dir, name, &make, ret_inode);
}

static int ovl_symlink(struct ctx *ctx, struct inode *dir, const char *name, const char *target,
                       const struct newattr *attr, struct inode **ret_inode)
{
    const struct ovl_make make = {.attr = attr, .target = target};
    return ovl_make(ctx, dir, name, &make, ret_inode);
}

static int ovl_link(struct ctx *ctx, struct inode *inode, struct inode *dir, const char *name)
{
    int ret = ovl_copy_up(ctx, inode);
    if (ret < 0)
        return ret;
    const struct ovl_make make = {.link = ovl_real(to_ovl(inode))};
    struct dentry *d;
    ret = ovl_make_upper(ctx, dir, name, &make, &d);
    if (ret < 0)
        return ret;
    dentry_unref(d);
    to_ovl(inode)->removed = false;
    ovl_sync(to_ovl(inode));
    return 0;
}

static int ovl_tmpfile(struct ctx *ctx, struct inode *dir, const struct newattr *attr, struct inode **ret_inode)
{
    struct ovl_inode *od = to_ovl(dir);
    int ret = ovl_copy_up(ctx, dir);
    if (ret == 0)
        ret = ovl_may_write(ctx, ovl_sb(dir), od->upper->inode);
    if (ret < 0)
        return ret;
    struct inode *real, *up = od->upper->inode;
    ret = up->ops->tmpfile ? up->ops->tmpfile(ctx, up, attr, &real) : -EOPNOTSUPP;
    if (ret < 0)
        return ret;
    real->linkable = true;
    struct dentry *d = dentry_new_detached(real, "#tmpfile");
    return d ? ovl_inode_get(dir->sb, d, NULL, 0, ret_inode) : -ENOMEM;
}

/* ---- removing ---- */

/* Takes name out of dir, of which upper (or NULL) is what the upper layer has. */
static int ovl_take_out(struct ctx *ctx, struct ovl_inode *dir, const char *name, struct dentry *upper)
{
    struct ovl_sb *s = ovl_sb(&dir->inode);
    struct dentry *whiteout;
    int ret = ovl_lower_has(ctx, dir, name);
    if (ret < 0)
        return ret;
    bool is_dir = upper && inode_is_dir(upper->inode);
    if (!ret) {
        if (!upper)
            return -ESTALE;
        ret = is_dir ? ovl_clear_whiteouts(ctx, upper) : 0;
        return ret < 0 ? ret : ovl_layer_remove(ctx, upper);
    }
    if (!upper) {
        ret = ovl_whiteout_make(ctx, s, dir->upper, name, &whiteout);
        if (ret == 0)
            dentry_unref(whiteout);
        return ret;
    }
    ret = ovl_whiteout_make(ctx, s, NULL, NULL, &whiteout);
    if (ret < 0)
        return ret;
    ret = ovl_layer_rename(ctx, whiteout, dir->upper, name, is_dir ? RENAME_EXCHANGE : 0);
    if (ret < 0) {
        ovl_temp_drop(ctx, whiteout);
        return ret;
    }
    dentry_unref(whiteout);
    /* After the exchange the directory is in the work directory, with nothing but whiteouts in it. */
    if (is_dir)
        ovl_temp_drop(ctx, dentry_ref(upper));
    return 0;
}

static int ovl_remove(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    struct ovl_inode *od = to_ovl(dir), *oi = to_ovl(inode);
    int ret = ovl_copy_up(ctx, dir);
    if (ret == 0)
        ret = ovl_may_write(ctx, ovl_sb(dir), od->upper->inode);
    if (ret < 0)
        return ret;
    /* If it is on its way up, then with this name. */
    sleeplock_take(ctx, &oi->lock);
    struct dentry *upper;
    ret = ovl_layer_lookup(ctx, od->upper, name, &upper);
    if (ret == 0) {
        ret = ovl_take_out(ctx, od, name, upper);
        dentry_unref(upper);
    }
    if (ret == 0) {
        oi->removed = inode_is_dir(inode) || !oi->upper || oi->upper->inode->nlink == 0;
        ovl_sync(oi);
    }
    sleeplock_release(&oi->lock);
    ovl_sync_dir(dir);
    return ret;
}

static int ovl_rmdir(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    int ret = ovl_dir_is_empty(ctx, to_ovl(inode));
    if (ret < 0)
        return ret;
    return ret ? ovl_remove(ctx, dir, name, inode) : -ENOTEMPTY;
}

/* ---- renaming ---- */

struct ovl_rename {
    struct ctx *ctx;
    struct ovl_sb *s;
    struct ovl_inode *old_dir, *new_dir, *inode, *target; /* target may be NULL */
    const char *old_name, *new_name;
    unsigned flags;
    struct dentry *old_d, *new_d; /* in the upper layer, referenced; new_d may be NULL or a whiteout */
    bool old_below, new_below;    /* lower layers show that name */
};

/* A directory that the lower layers know by its place can't leave it. */
static bool ovl_is_bound(const struct ovl_inode *oi)
{
    return inode_is_dir(&oi->inode) && oi->lowers_len;
}

static int ovl_rename_prepare(struct ovl_rename *r)
{
    struct ctx *ctx = r->ctx;
    bool exchange = r->flags & RENAME_EXCHANGE;
    int ret = 0;
    if (ovl_is_bound(r->inode) || (exchange && ovl_is_bound(r->target)))
        return -EXDEV;
    if (r->target && !exchange && inode_is_dir(&r->target->inode)) {
        ret = ovl_dir_is_empty(ctx, r->target);
        if (ret <= 0)
            return ret < 0 ? ret : -ENOTEMPTY;
    }
    ret = ovl_copy_up(ctx, &r->inode->inode);
    if (ret == 0)
        ret = ovl_copy_up(ctx, &r->old_dir->inode);
    if (ret == 0)
        ret = ovl_copy_up(ctx, &r->new_dir->inode);
    if (ret == 0 && exchange)
        ret = ovl_copy_up(ctx, &r->target->inode);
    if (ret == 0)
        ret = ovl_may_write(ctx, r->s, r->old_dir->upper->inode);
    if (ret == 0)
        ret = ovl_may_write(ctx, r->s, r->new_dir->upper->inode);
    return ret;
}

static int ovl_rename_look(struct ovl_rename *r)
{
    int ret = ovl_lower_has(r->ctx, r->old_dir, r->old_name);
    r->old_below = ret == 1;
    if (ret >= 0)
        ret = ovl_lower_has(r->ctx, r->new_dir, r->new_name);
    r->new_below = ret == 1;
    if (ret >= 0)
        ret = ovl_layer_lookup(r->ctx, r->old_dir->upper, r->old_name, &r->old_d);
    if (ret == 0)
        ret = ovl_layer_lookup(r->ctx, r->new_dir->upper, r->new_name, &r->new_d);
    return ret == 0 && !r->old_d ? -ESTALE : ret;
}

/* A directory that comes to a place where the lower layers have one hides it. */
static int ovl_rename_hide(struct ovl_rename *r)
{
    int ret = 0;
    if (inode_is_dir(r->old_d->inode) && r->new_below)
        ret = ovl_set_opaque(r->ctx, r->s, r->old_d->inode);
    if (ret == 0 && (r->flags & RENAME_EXCHANGE) && inode_is_dir(r->new_d->inode) && r->old_below)
        ret = ovl_set_opaque(r->ctx, r->s, r->new_d->inode);
    return ret;
}

static int ovl_rename_act(struct ovl_rename *r)
{
    struct ctx *ctx = r->ctx;
    int ret = ovl_rename_hide(r);
    if (ret < 0)
        return ret;
    if (r->flags & RENAME_EXCHANGE)
        return ovl_layer_rename(ctx, r->old_d, r->new_dir->upper, r->new_name, RENAME_EXCHANGE);
    bool is_dir = inode_is_dir(r->old_d->inode);
    if (r->new_d && !ovl_is_whiteout(r->new_d->inode) && inode_is_dir(r->new_d->inode)) {
        ret = ovl_clear_whiteouts(ctx, r->new_d);
        if (ret < 0)
            return ret;
    }
    /* A directory can't replace a whiteout, but may change places with it: it is wanted there, or goes. */
    if (is_dir && r->new_d && ovl_is_whiteout(r->new_d->inode)) {
        ret = ovl_layer_rename(ctx, r->old_d, r->new_dir->upper, r->new_name, RENAME_EXCHANGE);
        if (ret == 0 && !r->old_below)
            ret = ovl_layer_remove(ctx, r->new_d);
        return ret;
    }
    return ovl_layer_rename(ctx, r->old_d, r->new_dir->upper, r->new_name, r->old_below ? RENAME_WHITEOUT : 0);
}

static void ovl_rename_done(struct ovl_rename *r)
{
    ovl_sync(r->old_dir);
    ovl_sync(r->new_dir);
    ovl_sync(r->inode);
    if (!r->target)
        return;
    struct ovl_inode *t = r->target;
    if (!(r->flags & RENAME_EXCHANGE))
        t->removed = inode_is_dir(&t->inode) || !t->upper || t->upper->inode->nlink == 0;
    ovl_sync(t);
}

/* The caller's own whiteout in the place of what has left; its directory is locked. */
static int ovl_rename_leave(struct ctx *ctx, struct inode *dir, const char *name)
{
    const struct newattr attr = {.mode = S_IFCHR, .rdev = ovl_rdev_below(ovl_sb(dir), S_IFCHR, 0)};
    const struct ovl_make make = {.attr = &attr};
    struct inode *inode;
    int ret = ovl_make(ctx, dir, name, &make, &inode);
    if (ret == 0)
        inode_unref(inode);
    return ret;
}

static int ovl_rename(struct ctx *ctx, struct inode *old_dir, const char *old_name, struct inode *inode,
                      struct inode *new_dir, const char *new_name, struct inode *target, unsigned flags)
{
    bool whiteout = flags & RENAME_WHITEOUT;
    if (whiteout && ovl_sb(old_dir)->prefix != OVERLAY_PREFIX_PRIVATE)
        return -EINVAL;
    struct ovl_rename r = {
        .ctx = ctx,
        .s = ovl_sb(old_dir),
        .old_dir = to_ovl(old_dir),
        .new_dir = to_ovl(new_dir),
        .inode = to_ovl(inode),
        .target = target ? to_ovl(target) : NULL,
        .old_name = old_name,
        .new_name = new_name,
        .flags = flags & RENAME_EXCHANGE,
    };
    int ret = ovl_rename_prepare(&r);
    if (ret < 0)
        return ret;
    if (target)
        sleeplock_take(ctx, &r.target->lock);
    ret = ovl_rename_look(&r);
    if (ret == 0)
        ret = ovl_rename_act(&r);
    if (ret == 0)
        ovl_rename_done(&r);
    if (target)
        sleeplock_release(&r.target->lock);
    dentry_unref(r.old_d);
    dentry_unref(r.new_d);
    return ret == 0 && whiteout ? ovl_rename_leave(ctx, old_dir, old_name) : ret;
}

const struct inode_ops ovl_dir_iops = {
    .lookup = ovl_lookup,
    .walk_prefetch = ovl_walk_prefetch,
    .create = ovl_create,
    .mkdir = ovl_create,
    .mknod = ovl_create,
    .symlink = ovl_symlink,
    .link = ovl_link,
    .unlink = ovl_remove,
    .rmdir = ovl_rmdir,
    .rename = ovl_rename,
    .tmpfile = ovl_tmpfile,
    .refresh = ovl_refresh,
    .setattr = ovl_setattr,
    .fileattr_get = ovl_fileattr_get,
    .fileattr_set = ovl_fileattr_set,
    .open = ovl_dir_open,
    .getxattr = ovl_getxattr,
    .setxattr = ovl_setxattr,
    .listxattr = ovl_listxattr,
    .removexattr = ovl_removexattr,
    .evict = ovl_evict,
};
