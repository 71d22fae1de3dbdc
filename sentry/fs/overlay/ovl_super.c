/* SPDX-License-Identifier: Apache-2.0 */
/* Making an overlay, and its superblock. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/userns.h"

static int ovl_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st)
{
    const struct ovl_sb *s = sb->priv;
    const struct ovl_layer *top = &s->layers[s->layers[0].mount ? 0 : 1];
    struct statfs st;
    int ret = superblock_statfs(ctx, top->mount->sb, &st);
    if (ret < 0)
        return ret;
    st.f_type = OVL_MAGIC;
    st.f_fsid = ret_st->f_fsid;
    *ret_st = st;
    return 0;
}

static int ovl_sync_fs(struct ctx *ctx, struct superblock *sb)
{
    const struct ovl_sb *s = sb->priv;
    struct superblock *upper = s->layers[0].mount ? s->layers[0].mount->sb : NULL;
    if (!upper || s->volatile_ || !upper->ops || !upper->ops->sync)
        return 0;
    return upper->ops->sync(ctx, upper);
}

static int ovl_remount(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data)
{
    const struct ovl_sb *s = sb->priv;
    /* Options are kept as they were, as Linux keeps them; without an upper layer there is nothing to write to. */
    return !s->work && !(flags & MS_RDONLY) ? -EROFS : 0;
}

static int ovl_show_options(struct superblock *sb, char *dst, size_t size)
{
    const struct ovl_sb *s = sb->priv;
    int n = snprintf(dst, size, "%s", s->options);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static void ovl_sb_free_priv(struct ovl_sb *s)
{
    for (unsigned i = 0; i < s->layers_len; i++)
        mount_unref(s->layers[i].mount);
    dentry_unref(s->work);
    cred_unref(s->mounter);
    mem_free(s->layers);
    mem_free(s->options);
    mem_free(s);
}

static void ovl_sb_free(struct superblock *sb)
{
    if (sb->priv)
        ovl_sb_free_priv(sb->priv);
}

static const struct sb_ops ovl_sb_ops = {
    .statfs = ovl_statfs,
    .sync = ovl_sync_fs,
    .remount = ovl_remount,
    .show_options = ovl_show_options,
    .free = ovl_sb_free,
};

/* ---- making one ---- */

static bool ovl_overlaps(const struct dentry *a, const struct dentry *b)
{
    return a->sb == b->sb && (dentry_is_ancestor(a, b) || dentry_is_ancestor(b, a));
}

static int ovl_check_config(const struct overlay_config *c)
{
    bool has_upper = c->upper.dentry != NULL;
    if (!c->lowers_len || c->lowers_len > OVERLAY_LOWERS_MAX || has_upper != (c->work.dentry != NULL) ||
        (!has_upper && c->lowers_len < 2))
        return -EINVAL;
    for (unsigned i = 0; i < c->lowers_len; i++) {
        if (!inode_is_dir(c->lowers[i].dentry->inode))
            return -ENOTDIR;
    }
    if (!has_upper)
        return 0;
    if (!inode_is_dir(c->upper.dentry->inode) || !inode_is_dir(c->work.dentry->inode))
        return -ENOTDIR;
    if (c->upper.mount != c->work.mount || ovl_overlaps(c->upper.dentry, c->work.dentry))
        return -EINVAL;
    for (unsigned i = 0; i < c->lowers_len; i++) {
        if (ovl_overlaps(c->lowers[i].dentry, c->upper.dentry) || ovl_overlaps(c->lowers[i].dentry, c->work.dentry))
            return -ELOOP;
    }
    return mount_want_write(c->upper.mount) < 0 ? -EINVAL : 0;
}

/* The layer gets a mount of its own, that no guest can take away or change. */
static int ovl_add_layer(struct ovl_sb *s, unsigned index, const struct path *path)
{
    struct ovl_layer *layer = &s->layers[index];
    struct superblock *sb = path->dentry->sb;
    if (sb->magic == OVL_MAGIC && sb->priv) {
        const struct ovl_sb *below = sb->priv;
        s->depth = MAX(s->depth, below->depth + 1);
        if (s->depth > OVERLAY_DEPTH_MAX)
            return -EINVAL;
    }
    layer->mount = mount_new_internal(dentry_ref(path->dentry));
    if (!layer->mount)
        return -ENOMEM;
    layer->mount->flags = MS_RELATIME;
    layer->fsid = index;
    for (unsigned i = 0; i < index; i++) {
        if (s->layers[i].mount && s->layers[i].mount->sb == sb) {
            layer->fsid = s->layers[i].fsid;
            break;
        }
    }
    return 0;
}

static int ovl_make_work(struct ctx *ctx, struct ovl_sb *s, struct dentry *dir)
{
    int ret = ovl_layer_lookup(ctx, dir, "work", &s->work);
    if (ret < 0)
        return ret;
    if (s->work)
        return inode_is_dir(s->work->inode) ? 0 : -ENOTDIR;
    const struct newattr attr = {.mode = S_IFDIR, .uid = dir->inode->uid, .gid = dir->inode->gid};
    const struct ovl_make make = {.attr = &attr};
    return ovl_layer_make(ctx, dir, "work", &make, &s->work);
}

static int ovl_fill(struct ctx *ctx, const struct overlay_config *c, struct ovl_sb *s)
{
    int ret = 0;
    s->depth = 1;
    s->prefix = c->prefix;
    s->volatile_ = c->volatile_;
    s->options = mem_strdup(c->options ? c->options : "");
    s->layers = NEW_ARRAY(struct ovl_layer, c->lowers_len + 1);
    if (!s->options || !s->layers)
        return -ENOMEM;
    s->layers_len = c->lowers_len + 1;
    if (ctx->cred && !userns_is_initial(ctx->cred->userns))
        s->mounter = cred_ref(ctx->cred);
    if (c->upper.dentry)
        ret = ovl_add_layer(s, 0, &c->upper);
    for (unsigned i = 0; ret == 0 && i < c->lowers_len; i++)
        ret = ovl_add_layer(s, i + 1, &c->lowers[i]);
    if (ret == 0 && c->upper.dentry)
        ret = ovl_may_write(ctx, s, c->upper.dentry->inode);
    if (ret == 0 && c->upper.dentry)
        ret = ovl_may_write(ctx, s, c->work.dentry->inode);
    if (ret == 0 && c->upper.dentry)
        ret = ovl_make_work(ctx, s, c->work.dentry);
    return ret;
}

static int ovl_make_root(struct superblock *sb, const struct overlay_config *c, struct dentry **ret_root)
{
    CLEANUP_FREE struct ovl_ref *lowers = NEW_ARRAY(struct ovl_ref, c->lowers_len);
    if (!lowers)
        return -ENOMEM;
    for (unsigned i = 0; i < c->lowers_len; i++)
        lowers[i] = (struct ovl_ref){.dentry = dentry_ref(c->lowers[i].dentry), .layer = i + 1};
    struct inode *inode;
    int ret = ovl_inode_get(sb, c->upper.dentry ? dentry_ref(c->upper.dentry) : NULL, lowers, c->lowers_len, &inode);
    if (ret < 0)
        return ret;
    *ret_root = dentry_new_root(inode);
    return *ret_root ? 0 : -ENOMEM;
}

int overlay_new(struct ctx *ctx, const struct overlay_config *c, struct dentry **ret_root)
{
    int ret = ovl_check_config(c);
    if (ret < 0)
        return ret;
    struct ovl_sb *s = NEW(struct ovl_sb);
    if (!s)
        return -ENOMEM;
    ret = ovl_fill(ctx, c, s);
    struct superblock *sb = ret == 0 ? superblock_new("overlay", OVL_MAGIC, &ovl_sb_ops, s) : NULL;
    if (!sb) {
        ovl_sb_free_priv(s);
        return ret < 0 ? ret : -ENOMEM;
    }
    const struct superblock *top = (c->upper.dentry ? &c->upper : &c->lowers[0])->dentry->sb;
    sb->acls = top->acls;
    sb->name_max = top->name_max;
    sb->has_handles = c->handles;
    if (!s->work)
        sb->flags |= MS_RDONLY;
    ret = ovl_make_root(sb, c, ret_root);
    superblock_unref(sb);
    return ret;
}
