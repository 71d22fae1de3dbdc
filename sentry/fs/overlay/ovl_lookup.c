/* SPDX-License-Identifier: Apache-2.0 */
/* Names: what the layers say of one, together. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"

/* What is found so far, the uppermost first. */
struct ovl_find {
    struct ctx *ctx;
    struct ovl_sb *s;
    const char *name;
    struct dentry *upper;
    struct ovl_ref *lowers; /* room for all of the directory's */
    unsigned len;
    bool done; /* nothing below counts */
};

/* A directory that was renamed in its layer has another name below: that is not followed here, and must not be taken for the
 * wrong one. Return: 0, −EPERM. */
static int ovl_check_redirect(struct ovl_find *f, struct inode *dir)
{
    char name[64];
    snprintf(name, sizeof(name), "%sredirect", ovl_xattr_prefix(f->s));
    ssize_t n = inode_getxattr(f->ctx, dir, name, NULL, 0);
    return n > 0 ? -EPERM : 0;
}

/* Looks at d, found in some layer (consumed). below: there are more layers. */
static int ovl_find_add(struct ovl_find *f, OWNS struct dentry *d, unsigned layer, bool below)
{
    struct inode *inode = d->inode;
    bool first = !f->upper && !f->len;
    int ret = 0;
    if (ovl_is_whiteout(inode) || (!inode_is_dir(inode) && !first)) {
        f->done = true;
        dentry_unref(d);
        return 0;
    }
    if (!inode_is_dir(inode)) {
        f->done = true;
    } else if (below) {
        ret = ovl_is_opaque(f->ctx, f->s, inode);
        f->done = ret == 1;
        if (ret == 0)
            ret = ovl_check_redirect(f, inode);
    }
    if (ret < 0)
        dentry_unref(d);
    else if (layer == 0)
        f->upper = d;
    else
        f->lowers[f->len++] = (struct ovl_ref){.dentry = d, .layer = layer};
    return MIN(ret, 0);
}

static int ovl_find(struct ovl_find *f, struct ovl_inode *dir)
{
    struct dentry *d;
    int ret = 0;
    if (dir->upper) {
        ret = ovl_layer_lookup(f->ctx, dir->upper, f->name, &d);
        if (ret == 0 && d)
            ret = ovl_find_add(f, d, 0, dir->lowers_len > 0);
    }
    for (unsigned i = 0; ret == 0 && !f->done && i < dir->lowers_len; i++) {
        ret = ovl_layer_lookup(f->ctx, dir->lowers[i].dentry, f->name, &d);
        if (ret == 0 && d)
            ret = ovl_find_add(f, d, dir->lowers[i].layer, i + 1 < dir->lowers_len);
    }
    return ret;
}

int ovl_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    struct ovl_inode *od = to_ovl(dir);
    struct ovl_ref few[4];
    CLEANUP_FREE struct ovl_ref *many = NULL;
    struct ovl_find f = {.ctx = ctx, .s = ovl_sb(dir), .name = name, .lowers = few};
    if (od->lowers_len > ARRAY_SIZE(few)) {
        many = NEW_ARRAY(struct ovl_ref, od->lowers_len);
        if (!many)
            return -ENOMEM;
        f.lowers = many;
    }
    /* A file of a lower layer is not opened for writing there. */
    uint32_t hint = ctx->lookup_open;
    if (hint > 1)
        ctx->lookup_open = 0;
    int ret = ovl_find(&f, od);
    if (hint > 1)
        ctx->lookup_open = hint;
    if (ret == 0 && !f.upper && !f.len)
        ret = -ENOENT;
    if (ret == 0)
        return ovl_inode_get(dir->sb, f.upper, f.lowers, f.len, ret_inode);
    dentry_unref(f.upper);
    for (unsigned i = 0; i < f.len; i++)
        dentry_unref(f.lowers[i].dentry);
    return ret;
}

int ovl_lower_has(struct ctx *ctx, struct ovl_inode *dir, const char *name)
{
    for (unsigned i = 0; i < dir->lowers_len; i++) {
        struct dentry *d;
        int ret = ovl_layer_lookup(ctx, dir->lowers[i].dentry, name, &d);
        if (ret < 0)
            return ret;
        if (d) {
            ret = !ovl_is_whiteout(d->inode);
            dentry_unref(d);
            return ret;
        }
    }
    return 0;
}

static void ovl_prefetch_one(struct ctx *ctx, struct dentry *dir, const char *rest)
{
    if (!dir->inode->ops->walk_prefetch)
        return;
    struct dentry *d = dentry_find(dir, rest, (size_t)(strchrnul(rest, '/') - rest));
    if (!d)
        dir->inode->ops->walk_prefetch(ctx, dir, rest);
    dentry_unref(d);
}

void ovl_walk_prefetch(struct ctx *ctx, struct dentry *dir, const char *rest)
{
    struct ovl_inode *oi = to_ovl(dir->inode);
    uint32_t hint = ctx->lookup_open;
    if (hint > 1)
        ctx->lookup_open = 0;
    if (oi->upper)
        ovl_prefetch_one(ctx, oi->upper, rest);
    for (unsigned i = 0; i < oi->lowers_len; i++)
        ovl_prefetch_one(ctx, oi->lowers[i].dentry, rest);
    if (hint > 1)
        ctx->lookup_open = hint;
}
