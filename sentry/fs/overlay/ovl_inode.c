/* SPDX-License-Identifier: Apache-2.0 */
/* Inodes of an overlay: their life and attributes. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/acl.h"

/* ---- life ---- */

static struct ovl_inode **ovl_bucket(struct ovl_sb *s, const struct inode *real)
{
    uint64_t h = ((uintptr_t)real >> 4) * 0x9e3779b97f4a7c15ULL;
    return &s->table[h >> (64 - OVL_TABLE_BITS)];
}

static void ovl_hash(struct ovl_inode *oi)
{
    struct ovl_inode **bucket = ovl_bucket(ovl_sb(&oi->inode), oi->upper->inode);
    oi->hash_next = *bucket;
    *bucket = oi;
    oi->hashed = true;
}

void ovl_sync(struct ovl_inode *oi)
{
    struct inode *inode = &oi->inode;
    const struct inode *real = ovl_real(oi);
    inode->mode = real->mode;
    inode->uid = real->uid;
    inode->gid = real->gid;
    inode->blksize = real->blksize;
    inode->size = real->size;
    inode->blocks = real->blocks;
    inode->rdev = oi->upper ? ovl_rdev_shown(ovl_sb(inode), real) : real->rdev;
    inode->atime = real->atime;
    inode->mtime = real->mtime;
    inode->ctime = real->ctime;
    inode->btime = real->btime;
    inode->has_btime = real->has_btime;
    inode->flags = real->flags;
    if (oi->removed)
        inode->nlink = 0;
    else if (inode_is_dir(inode) && ovl_is_merged(oi))
        inode->nlink = 1; /* not tracked */
    else
        inode->nlink = real->nlink;
}

void ovl_set_upper(struct ovl_inode *oi, OWNS struct dentry *upper)
{
    oi->upper = upper;
    if (!inode_is_dir(&oi->inode))
        ovl_hash(oi);
    ovl_sync(oi);
}

static struct inode *ovl_find_known(struct ovl_sb *s, const struct inode *real)
{
    for (struct ovl_inode *oi = *ovl_bucket(s, real); oi; oi = oi->hash_next) {
        if (oi->upper->inode == real)
            return inode_ref(&oi->inode);
    }
    return NULL;
}

static void ovl_put_refs(struct dentry *upper, const struct ovl_ref *lowers, unsigned len)
{
    dentry_unref(upper);
    for (unsigned i = 0; i < len; i++)
        dentry_unref(lowers[i].dentry);
}

int ovl_inode_get(struct superblock *sb, OWNS struct dentry *upper, const struct ovl_ref *lowers, unsigned len,
                  struct inode **ret_inode)
{
    struct ovl_sb *s = sb->priv;
    const struct inode *real = upper ? upper->inode : lowers[0].dentry->inode;
    bool is_dir = inode_is_dir(real);
    if (upper && !is_dir && (*ret_inode = ovl_find_known(s, real))) {
        ovl_put_refs(upper, lowers, len);
        return 0;
    }
    struct ovl_ref *own = NULL;
    if (len > 1 && !(own = mem_dup(lowers, len * sizeof(*lowers)))) {
        ovl_put_refs(upper, lowers, len);
        return -ENOMEM;
    }
    struct inode *inode =
        inode_alloc(sb, is_dir ? &ovl_dir_iops : &ovl_file_iops, sizeof(struct ovl_inode), real->mode);
    if (!inode) {
        mem_free(own);
        ovl_put_refs(upper, lowers, len);
        return -ENOMEM;
    }
    struct ovl_inode *oi = to_ovl(inode);
    sleeplock_init(&oi->lock);
    oi->lowers_len = len;
    oi->lowers = own ? own : &oi->one;
    if (len == 1)
        oi->one = lowers[0];
    /* The lower layer's number, which stays when it is copied up. */
    inode->ino = len ? ovl_ino(s, lowers[0].layer, lowers[0].dentry->inode->ino) : ovl_ino(s, 0, real->ino);
    if (upper)
        ovl_set_upper(oi, upper);
    else
        ovl_sync(oi);
    *ret_inode = inode;
    return 0;
}

void ovl_evict(struct inode *inode)
{
    struct ovl_inode *oi = to_ovl(inode);
    if (oi->hashed) {
        struct ovl_inode **at = ovl_bucket(ovl_sb(inode), oi->upper->inode);
        while (*at != oi)
            at = &(*at)->hash_next;
        *at = oi->hash_next;
    }
    ovl_put_refs(oi->upper, oi->lowers, oi->lowers_len);
    if (oi->lowers != &oi->one)
        mem_free(oi->lowers);
}

/* ---- attributes ---- */

int ovl_refresh(struct ctx *ctx, struct inode *inode)
{
    struct inode *real = ovl_real(to_ovl(inode));
    int ret = real->ops->refresh ? real->ops->refresh(ctx, real) : 0;
    if (ret == 0)
        ovl_sync(to_ovl(inode));
    return ret;
}

int ovl_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    int ret = ovl_copy_up(ctx, inode);
    if (ret < 0)
        return ret;
    struct inode *real = ovl_real(to_ovl(inode));
    /* Running programs are known by this inode, those of the layer itself by that one. */
    if ((attr->valid & IATTR_SIZE) && real->writers < 0)
        return -ETXTBSY;
    ret = ovl_layer_setattr(ctx, real, attr);
    if (ret == 0) {
        acl_forget(real);
        ovl_sync(to_ovl(inode));
    }
    return ret;
}

int ovl_fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags)
{
    struct inode *real = ovl_real(to_ovl(inode));
    return real->ops->fileattr_get ? real->ops->fileattr_get(ctx, real, ret_flags) : -ENOTTY;
}

int ovl_fileattr_set(struct ctx *ctx, struct inode *inode, uint32_t flags)
{
    int ret = ovl_copy_up(ctx, inode);
    if (ret < 0)
        return ret;
    struct inode *real = ovl_real(to_ovl(inode));
    ret = real->ops->fileattr_set ? real->ops->fileattr_set(ctx, real, flags) : -ENOTTY;
    ovl_sync(to_ovl(inode));
    return ret;
}

ssize_t ovl_readlink(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    const char *text;
    char *heap;
    int ret = inode_link_text(ctx, ovl_real(to_ovl(inode)), &text, &heap);
    if (ret < 0)
        return ret;
    size_t len = MIN(strlen(text), size - 1);
    memcpy(dst, text, len);
    dst[len] = '\0';
    mem_free(heap);
    return (ssize_t)len;
}

const struct inode_ops ovl_file_iops = {
    .readlink = ovl_readlink,
    .refresh = ovl_refresh,
    .setattr = ovl_setattr,
    .fileattr_get = ovl_fileattr_get,
    .fileattr_set = ovl_fileattr_set,
    .open = ovl_open,
    .getxattr = ovl_getxattr,
    .setxattr = ovl_setxattr,
    .listxattr = ovl_listxattr,
    .removexattr = ovl_removexattr,
    .evict = ovl_evict,
};
