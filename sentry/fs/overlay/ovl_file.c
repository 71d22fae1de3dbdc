/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of an overlay: everything is done by a file of the layer. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/notify.h"

struct ovl_file {
    struct file *real; /* referenced */
    struct file *old;  /* that of the lower layer, when real was opened after a copy-up; maps may still use its descriptor */
};

static const struct file_ops ovl_no_ops = {0};

int ovl_open_real(struct ctx *ctx, struct mount *m, struct dentry *d, uint32_t flags, struct file **ret_file)
{
    const struct path path = {.mount = m, .dentry = d};
    struct inode *inode = d->inode;
    flags &= ~(uint32_t)(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC | FILE_OPEN_EXEC | FILE_OPEN_QUIET);
    struct file *f = file_new(&path, flags, &ovl_no_ops, ctx->cred);
    if (!f)
        return -ENFILE;
    int ret = 0;
    f->no_notify = true; /* the overlay's own files tell */
    if (S_ISREG(inode->mode) && file_writable(f)) {
        ret = inode_get_write(inode);
        f->writer_counted = ret == 0;
        if (ret == 0 && m)
            m->writers++;
    }
    if (ret == 0)
        ret = inode->ops->open ? inode->ops->open(ctx, inode, f) : -ENXIO;
    if (ret < 0) {
        f->ops = &ovl_no_ops;
        file_unref(f);
        return ret;
    }
    *ret_file = f;
    return 0;
}

static int ovl_open_now(struct ctx *ctx, struct ovl_inode *oi, uint32_t flags, struct file **ret_file)
{
    struct ovl_sb *s = ovl_sb(&oi->inode);
    int ret = ovl_open_real(ctx, s->layers[oi->upper ? 0 : oi->lowers[0].layer].mount, ovl_real_dentry(oi), flags, ret_file);
    if (ret == 0 && !(flags & FILE_OPEN_QUIET)) {
        /* Who watches the layer's file is told that it is opened and closed, as by Linux. */
        (*ret_file)->no_notify = false;
        notify_file(*ret_file, IN_OPEN);
    }
    return ret;
}

/* The layer's file to use now: a file that was opened before its inode was copied up follows it. Owns: the caller unrefs. */
static int ovl_real_file(struct ctx *ctx, struct file *f, struct file **ret_real)
{
    struct ovl_file *of = f->priv;
    struct ovl_inode *oi = to_ovl(f->inode);
    if (of->real->inode != ovl_real(oi) && !of->old) {
        struct file *now;
        int ret = ovl_open_now(ctx, oi, f->flags, &now);
        if (ret < 0)
            return ret;
        if (of->old) {
            file_unref(now); /* somebody was faster */
        } else {
            of->old = of->real;
            of->real = now;
        }
    }
    const uint32_t changing = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME;
    of->real->flags = (of->real->flags & ~changing) | (f->flags & changing);
    *ret_real = file_ref(of->real);
    return 0;
}

static ssize_t ovl_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct file *real;
    int ret = ovl_real_file(u->ctx, f, &real);
    if (ret < 0)
        return ret;
    ssize_t n = real->ops->read ? real->ops->read(real, u, pos) : -EINVAL;
    if (n >= 0 && to_ovl(f->inode)->upper)
        file_accessed(real);
    file_unref(real);
    return n;
}

static ssize_t ovl_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct file *real;
    int ret = ovl_real_file(u->ctx, f, &real);
    if (ret < 0)
        return ret;
    ssize_t n = real->ops->write ? real->ops->write(real, u, pos) : -EINVAL;
    file_unref(real);
    ovl_sync(to_ovl(f->inode));
    return n;
}

static int64_t ovl_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    struct file *real;
    if (whence == SEEK_SET || whence == SEEK_CUR)
        return file_llseek_generic(ctx, f, offset, whence);
    int ret = ovl_real_file(ctx, f, &real);
    if (ret < 0)
        return ret;
    real->pos = f->pos;
    int64_t at = real->ops->llseek ? real->ops->llseek(ctx, real, offset, whence)
                                   : file_llseek_generic(ctx, real, offset, whence);
    if (at >= 0)
        f->pos = at;
    file_unref(real);
    return at;
}

static int ovl_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map)
{
    struct file *real;
    int ret = ovl_real_file(ctx, f, &real);
    if (ret < 0)
        return ret;
    ret = real->ops->mmap ? real->ops->mmap(ctx, real, prot, shared, ret_map) : -ENODEV;
    file_unref(real); /* f holds it */
    return ret;
}

static int ovl_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    struct file *real;
    /* What is in a lower layer has not been changed by anybody here. */
    if (!to_ovl(f->inode)->upper || ovl_sb(f->inode)->volatile_)
        return 0;
    int ret = ovl_real_file(ctx, f, &real);
    if (ret < 0)
        return ret;
    ret = real->ops->fsync ? real->ops->fsync(ctx, real, data_only) : -EINVAL;
    file_unref(real);
    return ret;
}

static int ovl_fallocate(struct ctx *ctx, struct file *f, int mode, int64_t offset, int64_t len)
{
    struct file *real;
    int ret = ovl_real_file(ctx, f, &real);
    if (ret < 0)
        return ret;
    ret = real->ops->fallocate ? real->ops->fallocate(ctx, real, mode, offset, len) : -EOPNOTSUPP;
    file_unref(real);
    ovl_sync(to_ovl(f->inode));
    return ret;
}

static int ovl_cachestat(struct ctx *ctx, struct file *f, uint64_t offset, uint64_t size, struct host_cachestat *ret_stat)
{
    struct file *real;
    int ret = ovl_real_file(ctx, f, &real);
    if (ret < 0)
        return ret;
    ret = real->ops->cachestat ? real->ops->cachestat(ctx, real, offset, size, ret_stat) : 0;
    file_unref(real);
    return ret;
}

static int ovl_flush(struct ctx *ctx, struct file *f)
{
    struct file *real = ((struct ovl_file *)f->priv)->real;
    if (!real->ops->flush)
        return 0;
    file_ref(real);
    int ret = real->ops->flush(ctx, real);
    file_unref(real);
    return ret;
}

static void ovl_release(struct file *f)
{
    struct ovl_file *of = f->priv;
    file_unref(of->real);
    file_unref(of->old);
    mem_free(of);
}

static const struct file_ops ovl_fops = {
    .read = ovl_read,
    .write = ovl_write,
    .llseek = ovl_llseek,
    .mmap = ovl_mmap,
    .fsync = ovl_fsync,
    .fallocate = ovl_fallocate,
    .cachestat = ovl_cachestat,
    .flush = ovl_flush,
    .release = ovl_release,
};

int ovl_open(struct ctx *ctx, struct inode *inode, struct file *f)
{
    /* Fifos, sockets and devices live here, not in the layer. */
    if (!S_ISREG(inode->mode))
        return vfs_special_open(ctx, inode, f);
    int ret = file_writable(f) || (f->flags & O_TRUNC) ? ovl_copy_up(ctx, inode) : 0;
    if (ret < 0)
        return ret;
    struct ovl_file *of = NEW(struct ovl_file);
    if (!of)
        return -ENOMEM;
    ret = ovl_open_now(ctx, to_ovl(inode), f->flags, &of->real);
    if (ret < 0) {
        mem_free(of);
        return ret;
    }
    f->ops = &ovl_fops;
    f->priv = of;
    return 0;
}
