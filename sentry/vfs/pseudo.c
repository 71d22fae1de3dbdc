/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic trees: generated files, links and directories. */
#include "sentry/vfs/pseudo.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"

struct pseudo_inode {
    struct inode inode; /* must stay first */
    const void *ops;    /* of the kind that the inode_ops say */
    void (*free_priv)(void *priv);
};

static struct pseudo_inode *to_pseudo(const struct inode *inode)
{
    return container_of(inode, struct pseudo_inode, inode);
}

static void pseudo_evict(struct inode *inode)
{
    struct pseudo_inode *p = to_pseudo(inode);
    if (p->free_priv)
        p->free_priv(inode->priv);
}

static struct inode *pseudo_new(struct superblock *sb, const struct inode_ops *iops, uint32_t mode,
                                const void *ops, void *priv, void (*free_priv)(void *priv))
{
    struct inode *inode = inode_alloc(sb, iops, sizeof(struct pseudo_inode), mode);
    if (!inode)
        return NULL;
    inode->ino = inode_next_ino();
    inode->priv = priv;
    to_pseudo(inode)->ops = ops;
    to_pseudo(inode)->free_priv = free_priv;
    return inode;
}

/* ---- files ---- */

struct pseudo_text {
    struct buf text;
    bool filled;
};

static ssize_t pseudo_file_read(struct file *f, struct uio *u, int64_t *pos)
{
    const struct pseudo_file_ops *ops = to_pseudo(f->inode)->ops;
    struct pseudo_text *t = f->priv;
    if (!ops->show)
        return -EIO;
    if (*pos == 0 || !t->filled) {
        /* Into a buffer of its own: show may park, and another thread may read the same file meanwhile. */
        CLEANUP_BUF struct buf fresh = {0};
        int ret = ops->show(u->ctx, f->inode, &fresh);
        if (ret == 0)
            ret = buf_error(&fresh);
        if (ret < 0)
            return ret;
        buf_free(&t->text);
        t->text = fresh;
        fresh = (struct buf){0};
        t->filled = true;
    }
    if (*pos < 0 || (uint64_t)*pos >= t->text.size)
        return 0;
    ssize_t n = uio_put(u, t->text.data + *pos, MIN(t->text.size - (size_t)*pos, u->left));
    if (n > 0)
        *pos += n;
    return n;
}

static ssize_t pseudo_file_write(struct file *f, struct uio *u, int64_t *pos)
{
    const struct pseudo_file_ops *ops = to_pseudo(f->inode)->ops;
    if (!ops->write)
        return -EIO;
    size_t size = MIN(u->left, (uint64_t)PSEUDO_WRITE_MAX);
    CLEANUP_FREE char *data = mem_zalloc(size + 1);
    if (!data)
        return -ENOMEM;
    ssize_t got = uio_get(u, data, size);
    if (got < 0)
        return got;
    ssize_t n = ops->write(u->ctx, f->inode, data, (size_t)got);
    if (n > 0)
        *pos += n;
    return n;
}

static void pseudo_file_release(struct file *f)
{
    struct pseudo_text *t = f->priv;
    if (t)
        buf_free(&t->text);
    mem_free(t);
}

static const struct file_ops pseudo_file_fops = {
    .read = pseudo_file_read,
    .write = pseudo_file_write,
    .release = pseudo_file_release,
};

static int pseudo_file_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    file->priv = NEW(struct pseudo_text);
    if (!file->priv)
        return -ENOMEM;
    file->ops = &pseudo_file_fops;
    return 0;
}

/* A size that a truncation asks for means nothing here. */
static int pseudo_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    struct iattr a = *attr;
    a.valid &= ~(unsigned)IATTR_SIZE;
    inode_apply_attr(inode, &a);
    return 0;
}

static const struct inode_ops pseudo_file_iops = {
    .open = pseudo_file_open,
    .setattr = pseudo_setattr,
    .evict = pseudo_evict,
};

struct inode *pseudo_file_new(struct superblock *sb, uint32_t mode, const struct pseudo_file_ops *ops,
                              void *priv, void (*free_priv)(void *priv))
{
    return pseudo_new(sb, &pseudo_file_iops, S_IFREG | (mode & 07777), ops, priv, free_priv);
}

/* ---- links ---- */

static ssize_t pseudo_link_readlink(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    const struct pseudo_link_ops *ops = to_pseudo(inode)->ops;
    CLEANUP_BUF struct buf text = {0};
    int ret = ops->read(ctx, inode, &text);
    if (ret == 0)
        ret = buf_error(&text);
    if (ret < 0)
        return ret;
    if (!size)
        return -EINVAL;
    size_t len = MIN(text.size, size - 1);
    if (len)
        memcpy(dst, text.data, len);
    dst[len] = '\0';
    return (ssize_t)len;
}

static int pseudo_link_follow(struct ctx *ctx, struct inode *inode, struct path *ret_path)
{
    const struct pseudo_link_ops *ops = to_pseudo(inode)->ops;
    return ops->follow(ctx, inode, ret_path);
}

static const struct inode_ops pseudo_link_iops = {
    .readlink = pseudo_link_readlink,
    .setattr = pseudo_setattr,
    .evict = pseudo_evict,
};

static const struct inode_ops pseudo_magic_iops = {
    .readlink = pseudo_link_readlink,
    .follow = pseudo_link_follow,
    .setattr = pseudo_setattr,
    .evict = pseudo_evict,
};

struct inode *pseudo_link_new(struct superblock *sb, const struct pseudo_link_ops *ops, void *priv,
                              void (*free_priv)(void *priv))
{
    return pseudo_new(sb, ops->follow ? &pseudo_magic_iops : &pseudo_link_iops, S_IFLNK | 0777, ops, priv,
                      free_priv);
}

/* ---- computed directories ---- */

struct pseudo_listing {
    struct file *f;
    struct dir_sink *sink;
    int64_t index; /* position of the entry that add is told of next */
};

static bool pseudo_dir_add(void *arg, const char *name, unsigned d_type, uint64_t ino)
{
    struct pseudo_listing *l = arg;
    int64_t at = l->index++;
    if (at < l->f->pos)
        return true;
    if (!l->sink->emit(l->sink, name, strlen(name), ino, d_type, at + 1))
        return false;
    l->f->pos = at + 1;
    return true;
}

static int pseudo_dir_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink)
{
    const struct pseudo_dir_ops *ops = to_pseudo(f->inode)->ops;
    if (!dir_emit_dots(f, sink))
        return 0;
    struct pseudo_listing l = {.f = f, .sink = sink, .index = 2};
    return ops->list(ctx, f->inode, pseudo_dir_add, &l);
}

static const struct file_ops pseudo_dir_fops = {.readdir = pseudo_dir_readdir};

static int pseudo_dir_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    file->ops = &pseudo_dir_fops;
    return 0;
}

static int pseudo_dir_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    const struct pseudo_dir_ops *ops = to_pseudo(dir)->ops;
    return ops->lookup(ctx, dir, name, ret_inode);
}

static const struct inode_ops pseudo_dir_iops = {
    .lookup = pseudo_dir_lookup,
    .open = pseudo_dir_open,
    .setattr = pseudo_setattr,
    .evict = pseudo_evict,
};

static int pseudo_dir_create(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                             struct inode **ret_inode)
{
    const struct pseudo_dir_ops *ops = to_pseudo(dir)->ops;
    return ops->create(ctx, dir, name, attr, ret_inode);
}

static int pseudo_dir_unlink(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    const struct pseudo_dir_ops *ops = to_pseudo(dir)->ops;
    return ops->unlink(ctx, dir, name, inode);
}

static const struct inode_ops pseudo_open_dir_iops = {
    .lookup = pseudo_dir_lookup,
    .open = pseudo_dir_open,
    .setattr = pseudo_setattr,
    .create = pseudo_dir_create,
    .unlink = pseudo_dir_unlink,
    .evict = pseudo_evict,
};

struct inode *pseudo_dir_new(struct superblock *sb, uint32_t mode, const struct pseudo_dir_ops *ops,
                             void *priv, void (*free_priv)(void *priv))
{
    const struct inode_ops *iops = ops->create ? &pseudo_open_dir_iops : &pseudo_dir_iops;
    struct inode *inode = pseudo_new(sb, iops, S_IFDIR | (mode & 07777), ops, priv, free_priv);
    if (inode)
        inode->nlink = 2;
    return inode;
}

/* ---- fixed directories ---- */

struct pseudo_child {
    char *name;
    struct inode *inode; /* referenced */
};

struct pseudo_children {
    struct pseudo_child *v;
    unsigned len, capacity;
};

static int pseudo_static_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    struct pseudo_children *c = dir->priv;
    for (unsigned i = 0; i < c->len; i++) {
        if (!strcmp(c->v[i].name, name)) {
            *ret_inode = inode_ref(c->v[i].inode);
            return 0;
        }
    }
    return -ENOENT;
}

static int pseudo_static_list(struct ctx *ctx, struct inode *dir,
                              bool (*add)(void *arg, const char *name, unsigned d_type, uint64_t ino), void *arg)
{
    struct pseudo_children *c = dir->priv;
    for (unsigned i = 0; i < c->len; i++) {
        if (!add(arg, c->v[i].name, IFTODT(c->v[i].inode->mode), c->v[i].inode->ino))
            break;
    }
    return 0;
}

static const struct pseudo_dir_ops pseudo_static_ops = {
    .lookup = pseudo_static_lookup,
    .list = pseudo_static_list,
};

static void pseudo_static_free(void *priv)
{
    struct pseudo_children *c = priv;
    for (unsigned i = 0; i < c->len; i++) {
        mem_free(c->v[i].name);
        inode_unref(c->v[i].inode);
    }
    mem_free(c->v);
    mem_free(c);
}

struct inode *pseudo_static_dir_new(struct superblock *sb, uint32_t mode)
{
    struct pseudo_children *c = NEW(struct pseudo_children);
    if (!c)
        return NULL;
    struct inode *inode = pseudo_dir_new(sb, mode, &pseudo_static_ops, c, pseudo_static_free);
    if (!inode)
        mem_free(c);
    return inode;
}

/* A name that was looked up in vain before it was added must not stay absent. */
static void pseudo_forget_negative(struct inode *dir, const char *name)
{
    struct dentry *parent;
    list_for_each_entry(parent, &dir->dentries, alias) {
        struct dentry *d = dentry_find(parent, name, strlen(name));
        if (d)
            dentry_invalidate(d);
        dentry_unref(d);
    }
}

int pseudo_static_dir_add(struct inode *dir, const char *name, OWNS struct inode *child)
{
    struct pseudo_children *c = dir->priv;
    BUG_ON(to_pseudo(dir)->ops != &pseudo_static_ops);
    if (!child)
        return -ENOMEM;
    char *copy = mem_strdup(name);
    if (copy && c->len == c->capacity) {
        unsigned capacity = c->capacity ? c->capacity * 2 : 8;
        struct pseudo_child *v = mem_realloc(c->v, capacity, sizeof(*v));
        if (v) {
            c->v = v;
            c->capacity = capacity;
        }
    }
    if (!copy || c->len == c->capacity) {
        mem_free(copy);
        inode_unref(child);
        return -ENOMEM;
    }
    c->v[c->len++] = (struct pseudo_child){copy, child};
    if (inode_is_dir(child))
        dir->nlink++;
    pseudo_forget_negative(dir, name);
    return 0;
}
