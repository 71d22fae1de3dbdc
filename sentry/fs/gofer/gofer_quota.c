/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what a tree takes on disk. */
#include "sentry/fs/gofer/gofer_quota.h"

#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/statfs.h>

#include "platform/base/alloc.h"
#include "sentry/fs/gofer/gofer_fs_priv.h"

enum {
    QUOTA_BLOCK = 4096,
    QUOTA_NAMES_MIN = 1024, /* names that even the smallest limit allows */
    QUOTA_NAME = 12,        /* bytes of a directory entry beside the name */
};

static uint64_t quota_round(uint64_t size)
{
    return size > UINT64_MAX - QUOTA_BLOCK ? UINT64_MAX / 2 : (size + QUOTA_BLOCK - 1) & ~(uint64_t)(QUOTA_BLOCK - 1);
}

static uint64_t quota_left(const struct gofer_quota *q)
{
    if (!q->enforced)
        return INT64_MAX;
    return q->used < q->limit ? q->limit - q->used : 0;
}

static void quota_give(struct gofer_quota *q, uint64_t size)
{
    q->used -= MIN(q->used, size);
}

/* ---- files ---- */

/* What an inode counts. Directories grow with their names, which are counted by themselves. */
static uint64_t quota_of(const struct gofer_inode *gi)
{
    const struct inode *inode = &gi->inode;
    if (inode_is_dir(inode))
        return QUOTA_BLOCK;
    uint64_t size = inode->blocks * 512;
    return gi->mapped && S_ISREG(inode->mode) ? MAX(size, quota_round(inode->size)) : size;
}

void gofer_quota_note(struct gofer_inode *gi)
{
    struct gofer_quota *q = gofer_sb_of(&gi->inode)->quota;
    if (likely(!q))
        return;
    uint64_t now = quota_of(gi);
    /* What is met for the first time was there before, or is counted by whoever makes it. */
    if (gi->counted) {
        q->used += now;
        quota_give(q, gi->charged);
    }
    gi->counted = true;
    gi->charged = now;
}

void gofer_quota_evict(struct gofer_inode *gi)
{
    struct gofer_quota *q = gofer_sb_of(&gi->inode)->quota;
    if (likely(!q) || !gi->counted)
        return;
    uint32_t nlink = gi->inode.nlink;
    if (nlink && (gi->io_dirty || gi->mapped)) {
        gi->mapped = false;
        gofer_cache_fstat(gi);
    }
    if (!nlink)
        quota_give(q, gi->charged);
}

int64_t gofer_quota_reserve(struct gofer_inode *gi, int64_t pos, uint64_t *inout_size)
{
    struct gofer_quota *q = gofer_sb_of(&gi->inode)->quota;
    if (likely(!q))
        return 0;
    uint64_t have = gi->inode.blocks * 512, old_end = quota_round(gi->inode.size);
    uint64_t from = (uint64_t)pos & ~(uint64_t)(QUOTA_BLOCK - 1), end = quota_round((uint64_t)pos + *inout_size);
    /* Without holes nothing below the end needs more. */
    if (have >= old_end)
        from = MAX(from, old_end);
    if (gi->mapped)
        from = MAX(from, quota_round(gi->inode.size));
    if (end <= from)
        return 0;
    uint64_t left = quota_left(q) & ~(uint64_t)(QUOTA_BLOCK - 1);
    if (end - from > left) {
        end = from + left;
        if (end <= (uint64_t)pos)
            return -ENOSPC;
        *inout_size = MIN(*inout_size, end - (uint64_t)pos);
        if (end <= from)
            return 0;
    }
    q->used += end - from;
    return (int64_t)(end - from);
}

void gofer_quota_settle(struct gofer_inode *gi, int64_t reserved)
{
    struct gofer_quota *q = gofer_sb_of(&gi->inode)->quota;
    if (likely(!q))
        return;
    quota_give(q, (uint64_t)reserved);
    gofer_cache_fstat(gi);
}

int gofer_quota_map(struct gofer_inode *gi, uint64_t size)
{
    struct gofer_quota *q = gofer_sb_of(&gi->inode)->quota;
    if (likely(!q))
        return 0;
    uint64_t whole = quota_round(size);
    return whole > gi->charged && whole - gi->charged > quota_left(q) ? -ENOSPC : 0;
}

void gofer_quota_statfs(const struct gofer_quota *q, struct statfs *st)
{
    uint64_t block = st->f_bsize > 0 ? (uint64_t)st->f_bsize : QUOTA_BLOCK;
    uint64_t left = quota_left(q) / block, names = q->names < q->names_max ? q->names_max - q->names : 0;
    st->f_blocks = q->limit / block;
    st->f_bfree = MIN(st->f_bfree, left);
    st->f_bavail = MIN(st->f_bavail, left);
    st->f_files = q->names_max;
    st->f_ffree = MIN(st->f_ffree, names);
}

/* ---- names ---- */

static uint64_t quota_name_size(const char *name)
{
    return QUOTA_NAME + strlen(name);
}

static int quota_may_add(const struct inode *dir)
{
    const struct gofer_quota *q = gofer_sb_of(dir)->quota;
    return (q->names < q->names_max || !q->enforced) && quota_left(q) >= QUOTA_BLOCK ? 0 : -ENOSPC;
}

static void quota_name_added(struct gofer_quota *q, const char *name)
{
    q->names++;
    q->used += quota_name_size(name);
}

static void quota_name_gone(struct gofer_quota *q, const char *name)
{
    q->names -= MIN(q->names, (uint64_t)1);
    quota_give(q, quota_name_size(name));
}

static void quota_made(const struct inode *dir, const char *name, struct inode *inode)
{
    struct gofer_quota *q = gofer_sb_of(dir)->quota;
    quota_name_added(q, name);
    q->used += to_gofer_inode(inode)->charged;
}

static int quota_create(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr, struct inode **ret_inode)
{
    int err = quota_may_add(dir);
    if (!err)
        err = gofer_inode_exclusive_ops.create(ctx, dir, name, attr, ret_inode);
    if (!err)
        quota_made(dir, name, *ret_inode);
    return err;
}

static int quota_mkdir(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr, struct inode **ret_inode)
{
    int err = quota_may_add(dir);
    if (!err)
        err = gofer_inode_exclusive_ops.mkdir(ctx, dir, name, attr, ret_inode);
    if (!err)
        quota_made(dir, name, *ret_inode);
    return err;
}

static int quota_mknod(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr, struct inode **ret_inode)
{
    int err = quota_may_add(dir);
    if (!err)
        err = gofer_inode_exclusive_ops.mknod(ctx, dir, name, attr, ret_inode);
    if (!err)
        quota_made(dir, name, *ret_inode);
    return err;
}

static int quota_symlink(struct ctx *ctx, struct inode *dir, const char *name, const char *target, const struct newattr *attr,
                         struct inode **ret_inode)
{
    int err = quota_may_add(dir);
    if (!err)
        err = gofer_inode_exclusive_ops.symlink(ctx, dir, name, target, attr, ret_inode);
    if (!err)
        quota_made(dir, name, *ret_inode);
    return err;
}

static int quota_tmpfile(struct ctx *ctx, struct inode *dir, const struct newattr *attr, struct inode **ret_inode)
{
    int err = quota_may_add(dir);
    if (!err)
        err = gofer_inode_exclusive_ops.tmpfile(ctx, dir, attr, ret_inode);
    if (!err)
        gofer_sb_of(dir)->quota->used += to_gofer_inode(*ret_inode)->charged;
    return err;
}

static int quota_link(struct ctx *ctx, struct inode *inode, struct inode *dir, const char *name)
{
    int err = quota_may_add(dir);
    if (!err)
        err = gofer_inode_exclusive_ops.link(ctx, inode, dir, name);
    if (!err)
        quota_name_added(gofer_sb_of(dir)->quota, name);
    return err;
}

static int quota_unlink(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    int err = gofer_inode_exclusive_ops.unlink(ctx, dir, name, inode);
    if (!err)
        quota_name_gone(gofer_sb_of(dir)->quota, name);
    return err;
}

static int quota_rmdir(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    int err = gofer_inode_exclusive_ops.rmdir(ctx, dir, name, inode);
    if (!err)
        quota_name_gone(gofer_sb_of(dir)->quota, name);
    return err;
}

static int quota_rename(struct ctx *ctx, struct inode *old_dir, const char *old_name, struct inode *inode, struct inode *new_dir,
                        const char *new_name, struct inode *target, unsigned flags)
{
    struct gofer_quota *q = gofer_sb_of(old_dir)->quota;
    /* A whiteout stays in the old place. A longer name alone is not refused: their number is limited. */
    int err = flags & RENAME_WHITEOUT ? quota_may_add(old_dir) : 0;
    if (!err)
        err = gofer_inode_exclusive_ops.rename(ctx, old_dir, old_name, inode, new_dir, new_name, target, flags);
    if (err || (flags & RENAME_EXCHANGE))
        return err;
    if (target)
        quota_name_gone(q, new_name);
    quota_name_added(q, new_name);
    if (!(flags & RENAME_WHITEOUT))
        quota_name_gone(q, old_name);
    return 0;
}

static int quota_setxattr(struct ctx *ctx, struct inode *inode, const char *name, const void *src, size_t size, int flags)
{
    struct gofer_quota *q = gofer_sb_of(inode)->quota;
    int err = quota_left(q) < quota_round(size) + QUOTA_BLOCK ? -ENOSPC : 0;
    if (!err)
        err = gofer_inode_exclusive_ops.setxattr(ctx, inode, name, src, size, flags);
    /* Attributes may have blocks of their own. */
    return err ? err : gofer_inode_refresh(ctx, inode);
}

void gofer_fs_enforce_limit(struct dentry *root)
{
    struct gofer_sb *gs = root->sb->priv;
    if (gs->quota)
        gs->quota->enforced = true;
}

int gofer_fs_limit(struct dentry *root, uint64_t size, uint64_t used, uint64_t names)
{
    struct gofer_sb *gs = root->sb->priv;
    struct gofer_quota *q = NEW(struct gofer_quota);
    BUG_ON(gs->share != GOFER_EXCLUSIVE || gs->quota || gs->inodes > 1);
    if (!q)
        return -ENOMEM;
    q->limit = size;
    q->used = used;
    q->names = names;
    q->names_max = size / QUOTA_BLOCK + QUOTA_NAMES_MIN;
    q->ops = gofer_inode_exclusive_ops;
    q->ops.create = quota_create;
    q->ops.mkdir = quota_mkdir;
    q->ops.mknod = quota_mknod;
    q->ops.symlink = quota_symlink;
    q->ops.tmpfile = quota_tmpfile;
    q->ops.link = quota_link;
    q->ops.unlink = quota_unlink;
    q->ops.rmdir = quota_rmdir;
    q->ops.rename = quota_rename;
    q->ops.setxattr = quota_setxattr;
    gs->quota = q;
    root->inode->ops = &q->ops;
    gofer_quota_note(to_gofer_inode(root->inode));
    return 0;
}
