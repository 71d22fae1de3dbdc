/* SPDX-License-Identifier: Apache-2.0 */
/* Copying up: a file or directory of a lower layer gets its own in the upper one before it is changed. It is prepared in the work
 * directory and moved into place, so that the upper layer never shows half of it. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/xattr.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"

enum { OVL_COPY_CHUNK = 256 * 1024 };

/* ---- data ---- */

static ssize_t ovl_copy_some(struct ctx *ctx, struct file *from, struct file *to, char *buf, size_t size, int64_t pos)
{
    ssize_t n = file_read_kernel(ctx, from, buf, size, pos);
    ssize_t done = 0;
    while (done < n) {
        struct uio u;
        uio_init_kernel(&u, buf + done, (size_t)(n - done));
        u.ctx = ctx;
        ssize_t w = to->ops->write(to, &u, &pos);
        uio_free(&u);
        if (w <= 0)
            return w < 0 ? w : -EIO;
        done += w;
    }
    return n;
}

static int64_t ovl_seek(struct ctx *ctx, struct file *f, int64_t at, int whence)
{
    return f->ops->llseek ? f->ops->llseek(ctx, f, at, whence) : file_llseek_generic(ctx, f, at, whence);
}

static int ovl_copy_range(struct ctx *ctx, struct file *from, struct file *to)
{
    CLEANUP_FREE char *buf = mem_zalloc(OVL_COPY_CHUNK);
    if (!buf || !to->ops->write)
        return buf ? -EIO : -ENOMEM;
    for (int64_t at = 0;;) {
        /* Holes stay holes. */
        int64_t data = ovl_seek(ctx, from, at, SEEK_DATA);
        if (data == -ENXIO)
            break;
        int64_t end = data < 0 ? data : ovl_seek(ctx, from, data, SEEK_HOLE);
        if (end < 0)
            return (int)end;
        for (at = data; at < end;) {
            if (ctx->fatal_pending)
                return -EINTR;
            ssize_t n = ovl_copy_some(ctx, from, to, buf, (size_t)MIN(end - at, (int64_t)OVL_COPY_CHUNK), at);
            if (n < 0)
                return (int)n;
            if (n == 0)
                break;
            at += n;
        }
        if (at < end)
            break;
    }
    struct iattr a = {.valid = IATTR_SIZE, .size = from->inode->size};
    return ovl_layer_setattr(ctx, to->inode, &a);
}

static int ovl_copy_data(struct ctx *ctx, struct ovl_inode *oi, struct dentry *to)
{
    struct ovl_sb *s = ovl_sb(&oi->inode);
    struct file *in, *out;
    int ret = ovl_open_real(ctx, s->layers[oi->lowers[0].layer].mount, oi->lowers[0].dentry, O_RDONLY, &in);
    if (ret < 0)
        return ret;
    ret = ovl_open_real(ctx, s->layers[0].mount, to, O_RDWR, &out);
    if (ret == 0) {
        ret = ovl_copy_range(ctx, in, out);
        if (ret == 0 && !s->volatile_ && out->ops->fsync)
            ret = out->ops->fsync(ctx, out, false);
        file_unref(out);
    }
    file_unref(in);
    return ret;
}

/* ---- attributes ---- */

static int ovl_copy_xattr(struct ctx *ctx, struct inode *from, struct inode *to, const char *name)
{
    ssize_t size = inode_getxattr(ctx, from, name, NULL, 0);
    if (size < 0 || size > XATTR_SIZE_MAX)
        return size == -ENODATA ? 0 : size < 0 ? (int)size : -E2BIG;
    CLEANUP_FREE void *value = mem_zalloc((size_t)size + 1);
    if (!value)
        return -ENOMEM;
    size = inode_getxattr(ctx, from, name, value, (size_t)size);
    if (size < 0)
        return (int)size;
    return to->ops->setxattr ? to->ops->setxattr(ctx, to, name, value, (size_t)size, 0) : -EOPNOTSUPP;
}

static int ovl_copy_xattrs(struct ctx *ctx, const struct ovl_sb *s, struct inode *from, struct inode *to)
{
    if (!from->ops->listxattr)
        return 0;
    CLEANUP_FREE char *names = mem_zalloc(XATTR_LIST_MAX + 1);
    if (!names)
        return -ENOMEM;
    ssize_t n = from->ops->listxattr(ctx, from, names, XATTR_LIST_MAX);
    if (n < 0)
        return n == -EOPNOTSUPP ? 0 : (int)n;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        if (!ovl_xattr_copies(s, names + at))
            continue;
        int ret = ovl_copy_xattr(ctx, from, to, names + at);
        /* An upper layer without such attributes does without them, as Linux's. */
        if (ret < 0 && ret != -EOPNOTSUPP)
            return ret;
    }
    return 0;
}

static int ovl_copy_attrs(struct ctx *ctx, const struct inode *from, struct inode *to)
{
    struct iattr a = {
        .valid = IATTR_UID | IATTR_GID | IATTR_ATIME | IATTR_MTIME,
        .uid = from->uid,
        .gid = from->gid,
        .atime = from->atime,
        .mtime = from->mtime,
    };
    if (!S_ISLNK(from->mode)) {
        a.valid |= IATTR_MODE;
        a.mode = from->mode & 07777;
    }
    return ovl_layer_setattr(ctx, to, &a);
}

/* ---- one object ---- */

/* What the new one in the work directory starts as. */
static int ovl_copy_make(struct ctx *ctx, struct ovl_inode *oi, struct dentry **ret_dentry)
{
    struct inode *from = ovl_real(oi);
    /* Nobody else may open it before it has its content. */
    uint32_t mode = S_ISREG(from->mode) ? S_IFREG | 0600 : from->mode;
    const struct newattr attr = {.mode = mode, .uid = from->uid, .gid = from->gid,
                                 .rdev = ovl_rdev_below(ovl_sb(&oi->inode), mode, from->rdev)};
    struct ovl_make make = {.attr = &attr};
    char *heap = NULL;
    if (S_ISLNK(from->mode)) {
        int ret = inode_link_text(ctx, from, &make.target, &heap);
        if (ret < 0)
            return ret;
    }
    int ret = ovl_temp_make(ctx, ovl_sb(&oi->inode), &make, ret_dentry);
    mem_free(heap);
    return ret;
}

static int ovl_copy_fill(struct ctx *ctx, struct ovl_inode *oi, struct dentry *to)
{
    struct inode *from = ovl_real(oi);
    int ret = S_ISREG(from->mode) ? ovl_copy_data(ctx, oi, to) : 0;
    if (ret == 0)
        ret = ovl_copy_xattrs(ctx, ovl_sb(&oi->inode), from, to->inode);
    return ret < 0 ? ret : ovl_copy_attrs(ctx, from, to->inode);
}

/* Moves it to where d is; the directory's times tell of changes, which this is not. */
static int ovl_copy_place(struct ctx *ctx, struct dentry *d, struct dentry *temp)
{
    struct dentry *dir = to_ovl(d->parent->inode)->upper;
    struct iattr times = {
        .valid = IATTR_ATIME | IATTR_MTIME, .atime = dir->inode->atime, .mtime = dir->inode->mtime};
    int ret = ovl_layer_rename(ctx, temp, dir, d->name, 0);
    return ret < 0 ? ret : ovl_layer_setattr(ctx, dir->inode, &times);
}

/* d's directory is in the upper layer. */
static int ovl_copy_one(struct ctx *ctx, struct dentry *d, struct ovl_inode *oi)
{
    struct ovl_sb *s = ovl_sb(&oi->inode);
    struct inode *from = ovl_real(oi);
    struct dentry *temp;
    int ret = d->deleted ? 0 : ovl_may_write(ctx, s, to_ovl(d->parent->inode)->upper->inode);
    if (ret == 0 && from->ops->refresh)
        ret = from->ops->refresh(ctx, from);
    if (ret == 0)
        ret = ovl_copy_make(ctx, oi, &temp);
    if (ret < 0)
        return ret;
    ret = ovl_copy_fill(ctx, oi, temp);
    if (ret == 0 && d->deleted) {
        /* With a second reference it keeps its inode. */
        dentry_ref(temp);
        ret = ovl_layer_remove(ctx, temp);
        dentry_unref(temp);
    } else if (ret == 0) {
        ret = ovl_copy_place(ctx, d, temp);
    }
    if (ret < 0) {
        ovl_temp_drop(ctx, temp);
        return ret;
    }
    d->parent->dir_seq++; /* a look-up that parked may have found the old one */
    ovl_set_upper(oi, temp);
    return 0;
}

static struct dentry *ovl_any_name(const struct inode *inode)
{
    struct dentry *d;
    list_for_each_entry(d, &inode->dentries, alias) {
        if (!d->deleted)
            return d;
    }
    return list_empty(&inode->dentries) ? NULL : list_first(&inode->dentries, struct dentry, alias);
}

int ovl_copy_up(struct ctx *ctx, struct inode *inode)
{
    if (!ovl_sb(inode)->work)
        return -EROFS;
    while (!to_ovl(inode)->upper) {
        struct dentry *d = ovl_any_name(inode);
        if (!d)
            return -ESTALE;
        /* The uppermost that is still missing. A file without a name needs no directory. */
        while (!d->deleted && !to_ovl(d->parent->inode)->upper)
            d = d->parent;
        dentry_ref(d);
        struct ovl_inode *oi = to_ovl(inode_ref(d->inode));
        sleeplock_take(ctx, &oi->lock);
        int ret = oi->upper ? 0 : ovl_copy_one(ctx, d, oi);
        sleeplock_release(&oi->lock);
        inode_unref(&oi->inode);
        dentry_unref(d);
        if (ret < 0)
            return ret;
    }
    return 0;
}
