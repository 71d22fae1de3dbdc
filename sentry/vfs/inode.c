/* SPDX-License-Identifier: Apache-2.0 */
/* Inodes and superblocks: life time, cached attributes, special opens. */
#include "sentry/vfs/inode.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/core/userns.h"
#include "sentry/vfs/acl.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/flock.h"
#include "sentry/vfs/notify.h"
#include "sentry/vfs/path_walk.h"

void sleeplock_wait(struct ctx *ctx, struct sleeplock *l)
{
    l->waiting++;
    while (l->held) {
        /* Uninterruptible without a deadline: the only result is "woken". */
        int ret = waitq_wait(ctx, &l->q, CTX_WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
        BUG_ON(ret != 0 && ret != -ERESTARTSYS);
    }
    l->waiting--;
}

/* ---- superblocks ---- */

static uint32_t superblock_next_minor = 1;

struct superblock *superblock_new(const char *type, uint64_t magic, const struct sb_ops *ops, void *priv)
{
    struct superblock *sb = NEW(struct superblock);
    if (!sb)
        return NULL;
    ref_init(&sb->ref);
    sb->ops = ops;
    sb->type = type;
    sb->magic = magic;
    /* Anonymous devices have major 0 and 20 bits of minor; a wrap after a million mounts only repeats numbers. */
    sb->dev = makedev(0, superblock_next_minor++ & 0xfffff);
    sb->name_max = NAME_LEN_MAX;
    sb->blksize = PAGE_SIZE;
    sb->priv = priv;
    sleeplock_init(&sb->rename_lock);
    return sb;
}

struct superblock *superblock_ref(struct superblock *sb)
{
    ref_get(&sb->ref);
    return sb;
}

void superblock_unref(struct superblock *sb)
{
    if (!sb || !ref_put(&sb->ref))
        return;
    if (sb->ops && sb->ops->free)
        sb->ops->free(sb);
    userns_unref(sb->userns);
    mem_free(sb);
}

int superblock_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st)
{
    struct statfs st = {0};
    st.f_type = (__fsword_t)sb->magic;
    st.f_bsize = sb->blksize;
    st.f_frsize = sb->blksize;
    st.f_namelen = sb->name_max;
    memcpy(&st.f_fsid, &sb->dev, sizeof(st.f_fsid));
    if (sb->ops && sb->ops->statfs) {
        int ret = sb->ops->statfs(ctx, sb, &st);
        if (ret < 0)
            return ret;
    }
    *ret_st = st;
    return 0;
}

/* ---- inodes ---- */

static uint64_t inode_last_ino = 1;

uint64_t inode_next_ino(void)
{
    return ++inode_last_ino;
}

struct timespec inode_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    return ts;
}

struct inode *inode_alloc(struct superblock *sb, const struct inode_ops *ops, size_t size, uint32_t mode)
{
    BUG_ON(size < sizeof(struct inode));
    struct inode *inode = mem_zalloc(size);
    if (!inode)
        return NULL;
    ref_init(&inode->ref);
    inode->ops = ops;
    inode->sb = superblock_ref(sb);
    inode->mode = mode;
    inode->nlink = 1;
    inode->blksize = sb->blksize;
    inode->atime = inode->mtime = inode->ctime = inode->btime = inode_now();
    list_init(&inode->dentries);
    sleeplock_init(&inode->dir_lock);
    return inode;
}

struct inode *inode_ref(struct inode *inode)
{
    ref_get(&inode->ref);
    return inode;
}

void inode_unref(struct inode *inode)
{
    if (!inode || !ref_put(&inode->ref))
        return;
    BUG_ON(!list_empty(&inode->dentries));
    notify_inode_gone(inode);
    if (inode->ops->evict)
        inode->ops->evict(inode);
    flock_inode_free(inode);
    acl_inode_free(inode);
    mem_free(inode->link_text);
    struct superblock *sb = inode->sb;
    mem_free(inode);
    superblock_unref(sb);
}

int inode_getattr(struct ctx *ctx, struct inode *inode, struct kstat *ret_st)
{
    if (inode->ops->refresh) {
        int ret = inode->ops->refresh(ctx, inode);
        if (ret < 0)
            return ret;
    }
    *ret_st = (struct kstat){
        .ino = inode->ino,
        .nlink = inode->nlink,
        .size = inode->size,
        .blocks = inode->blocks,
        .mode = inode->mode,
        .uid = inode->uid,
        .gid = inode->gid,
        .blksize = inode->blksize,
        .dev = inode->sb->dev,
        .rdev = inode->rdev,
        .atime = inode->atime,
        .mtime = inode->mtime,
        .ctime = inode->ctime,
        .btime = inode->btime,
        .has_btime = inode->has_btime,
        .attributes = (inode_immutable(inode) ? STATX_ATTR_IMMUTABLE : 0) | (inode_append_only(inode) ? STATX_ATTR_APPEND : 0) |
                      (inode->flags & INODE_FL_NODUMP ? STATX_ATTR_NODUMP : 0),
        .attributes_mask = inode->ops->fileattr_get ? STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND | STATX_ATTR_NODUMP : 0,
    };
    return 0;
}

void inode_touch(struct inode *inode, unsigned which)
{
    struct timespec now = inode_now();
    if (which & IATTR_ATIME)
        inode->atime = now;
    if (which & IATTR_MTIME)
        inode->mtime = now;
    if (which & IATTR_CTIME)
        inode->ctime = now;
}

void inode_apply_attr(struct inode *inode, const struct iattr *attr)
{
    struct timespec now = inode_now();
    if (attr->valid & IATTR_MODE)
        inode->mode = (inode->mode & S_IFMT) | (attr->mode & 07777);
    if (attr->valid & IATTR_UID)
        inode->uid = attr->uid;
    if (attr->valid & IATTR_GID)
        inode->gid = attr->gid;
    if (attr->valid & IATTR_SIZE)
        inode->size = attr->size;
    if (attr->valid & IATTR_ATIME)
        inode->atime = attr->valid & IATTR_ATIME_NOW ? now : attr->atime;
    if (attr->valid & IATTR_MTIME)
        inode->mtime = attr->valid & IATTR_MTIME_NOW ? now : attr->mtime;
    inode->ctime = now;
}

ssize_t inode_getxattr(struct ctx *ctx, struct inode *inode, const char *name, void *dst, size_t size)
{
    if (!inode->ops->getxattr)
        return -EOPNOTSUPP;
    return inode->ops->getxattr(ctx, inode, name, dst, size);
}

int inode_link_text(struct ctx *ctx, struct inode *inode, const char **ret_text, char **ret_heap)
{
    *ret_heap = NULL;
    if (inode->link_text) {
        *ret_text = inode->link_text;
        return 0;
    }
    if (!inode->ops->readlink)
        return -EINVAL;
    CLEANUP_FREE char *text = mem_zalloc(PATH_SIZE_MAX);
    if (!text)
        return -ENOMEM;
    ssize_t len = inode->ops->readlink(ctx, inode, text, PATH_SIZE_MAX);
    if (len < 0)
        return (int)len;
    if (len >= PATH_SIZE_MAX)
        return -ENAMETOOLONG;
    text[len] = '\0';
    if (!inode->sb->no_dcache && !inode->link_text)
        inode->link_text = mem_strdup(text);
    if (inode->link_text) {
        *ret_text = inode->link_text;
        return 0;
    }
    *ret_text = text;
    *ret_heap = TAKE_PTR(text);
    return 0;
}

int inode_get_write(struct inode *inode)
{
    if (inode->writers < 0)
        return -ETXTBSY;
    inode->writers++;
    return 0;
}

void inode_put_write(struct inode *inode)
{
    BUG_ON(inode->writers <= 0);
    inode->writers--;
}

int inode_deny_write(struct inode *inode)
{
    if (inode->writers > 0)
        return -ETXTBSY;
    inode->writers--;
    return 0;
}

void inode_allow_write(struct inode *inode)
{
    BUG_ON(inode->writers >= 0);
    inode->writers++;
}

/* ---- fifos, devices ---- */

static vfs_special_open_fn special_open_fifo, special_open_chr, special_open_blk;

void vfs_set_special_open(uint32_t type, vfs_special_open_fn fn)
{
    if (type == S_IFIFO)
        special_open_fifo = fn;
    else if (type == S_IFCHR)
        special_open_chr = fn;
    else if (type == S_IFBLK)
        special_open_blk = fn;
    else
        BUG_ON(true);
}

int vfs_special_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    vfs_special_open_fn fn = NULL;
    switch (inode->mode & S_IFMT) {
    case S_IFIFO:
        fn = special_open_fifo;
        break;
    case S_IFCHR:
        fn = special_open_chr;
        break;
    case S_IFBLK:
        fn = special_open_blk;
        break;
    }
    return fn ? fn(ctx, inode, file) : -ENXIO;
}
