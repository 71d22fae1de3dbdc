/* SPDX-License-Identifier: Apache-2.0 */
/* The devpts file system. Source: pts(4), Documentation/filesystems/devpts.rst. */
#include "sentry/fs/devpts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/major.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

#include "platform/base/alloc.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/fs_options.h"
#include "sentry/fs/pty.h"
#include "sentry/fs/tty.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/pseudo.h"

enum { DEVPTS_PTMX_INO = 2, DEVPTS_FIRST_INO = 3 };

struct devpts_inode {
    struct inode inode;
    struct tty *tty; /* (i) referenced */
};

struct devpts {
    uint32_t uid, gid;     /* (k) of new nodes; UINT32_MAX: the opener's */
    uint32_t mode, ptmx_mode; /* (k) */
    uint32_t max;          /* (k) */
    struct inode *ptmx;    /* (i) referenced by the root directory; not here */
    uint64_t used[DEVPTS_INSTANCE_MAX / 64]; /* (k) */
    struct devpts_inode **nodes; /* (k) [DEVPTS_INSTANCE_MAX], referenced; made at the first terminal */
};

static unsigned devpts_total; /* (k) numbers in use in all instances */

static int devpts_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st)
{
    ret_st->f_type = DEVPTS_SUPER_MAGIC;
    ret_st->f_bsize = PAGE_SIZE;
    ret_st->f_frsize = PAGE_SIZE;
    ret_st->f_namelen = 255;
    return 0;
}

static int devpts_parse(const struct ctx *ctx, struct devpts *d, const char *data)
{
    struct fs_option o;
    struct devpts parsed = *d;
    int r;

    while ((r = fs_option_next(&data, &o)) > 0) {
        uint32_t *to = NULL;
        unsigned base = 10;

        if (fs_option_is(&o, "newinstance"))
            continue;
        if (fs_option_is(&o, "uid") || fs_option_is(&o, "gid")) {
            if (fs_option_is(&o, "uid") ? fs_option_uid(ctx, &o, &parsed.uid) : fs_option_gid(ctx, &o, &parsed.gid))
                return -EINVAL;
            continue;
        }
        if (fs_option_is(&o, "max"))
            to = &parsed.max;
        else if (fs_option_is(&o, "mode"))
            to = &parsed.mode, base = 8;
        else if (fs_option_is(&o, "ptmxmode"))
            to = &parsed.ptmx_mode, base = 8;
        if (!to || fs_option_u32(&o, base, to))
            return -EINVAL;
    }
    if (r < 0 || parsed.max > DEVPTS_TOTAL_MAX)
        return -EINVAL;
    parsed.mode &= 0777;
    parsed.ptmx_mode &= 0777;
    *d = parsed;
    return 0;
}

static int devpts_remount(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data)
{
    struct devpts *d = sb->priv;
    int r = devpts_parse(ctx, d, data);

    if (r == 0)
        d->ptmx->mode = S_IFCHR | d->ptmx_mode;
    return r;
}

static int devpts_show_options(struct superblock *sb, char *dst, size_t size)
{
    struct devpts *d = sb->priv;
    struct buf b = {0};

    if (d->uid != UINT32_MAX)
        buf_printf(&b, ",uid=%u", d->uid);
    if (d->gid != UINT32_MAX)
        buf_printf(&b, ",gid=%u", d->gid);
    buf_printf(&b, ",mode=%03o,ptmxmode=%03o", d->mode, d->ptmx_mode);
    if (d->max < DEVPTS_TOTAL_MAX)
        buf_printf(&b, ",max=%u", d->max);
    snprintf(dst, size, "%s", b.data ? b.data : "");
    buf_free(&b);
    return 0;
}

static void devpts_free(struct superblock *sb)
{
    struct devpts *d = sb->priv;

    /* Every node is gone: each terminal holds a reference of sb until its node is removed. */
    mem_free(d->nodes);
    mem_free(d);
}

static const struct sb_ops devpts_sb_ops = {
    .statfs = devpts_statfs,
    .remount = devpts_remount,
    .show_options = devpts_show_options,
    .free = devpts_free,
};

bool devpts_is(const struct superblock *sb)
{
    return sb && sb->ops == &devpts_sb_ops;
}

/* ---- nodes ---- */

static int devpts_node_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    return pty_open_slave(ctx, container_of(inode, struct devpts_inode, inode)->tty, file);
}

static void devpts_node_evict(struct inode *inode)
{
    tty_unref(container_of(inode, struct devpts_inode, inode)->tty);
}

static const struct inode_ops devpts_node_ops = {.open = devpts_node_open, .evict = devpts_node_evict};

int devpts_reserve(struct superblock *sb)
{
    struct devpts *d = sb->priv;
    uint32_t max = MIN(d->max, (uint32_t)DEVPTS_INSTANCE_MAX);

    if (devpts_total >= DEVPTS_TOTAL_MAX)
        return -ENOSPC;
    if (!d->nodes) {
        d->nodes = NEW_ARRAY(struct devpts_inode *, DEVPTS_INSTANCE_MAX);
        if (!d->nodes)
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < max; i++) {
        if (d->used[i / 64] >> (i % 64) & 1)
            continue;
        d->used[i / 64] |= 1ULL << (i % 64);
        devpts_total++;
        return (int)i;
    }
    return -ENOSPC;
}

int devpts_publish(struct ctx *ctx, struct superblock *sb, struct tty *tty, uint32_t uid)
{
    struct devpts *d = sb->priv;
    struct devpts_inode *node;

    node = (struct devpts_inode *)inode_alloc(sb, &devpts_node_ops, sizeof(*node), S_IFCHR | d->mode);
    if (!node)
        return -ENOMEM;
    node->tty = tty_ref(tty);
    node->inode.ino = tty->index + DEVPTS_FIRST_INO;
    node->inode.rdev = tty->rdev;
    node->inode.uid = d->uid != UINT32_MAX ? d->uid : uid != UINT32_MAX ? uid : ctx->cred->fsuid;
    node->inode.gid = d->gid != UINT32_MAX ? d->gid : ctx->cred->fsgid;
    d->nodes[tty->index] = node;
    return 0;
}

void devpts_remove(struct superblock *sb, unsigned index)
{
    struct devpts *d = sb->priv;
    struct devpts_inode *node = d->nodes[index];
    struct dentry *alias;

    d->nodes[index] = NULL;
    d->used[index / 64] &= ~(1ULL << (index % 64));
    devpts_total--;
    if (!node)
        return;
    list_for_each_entry(alias, &node->inode.dentries, alias) {
        dentry_ref(alias);
        dentry_delete(alias);
        dentry_unref(alias);
        break; /* a node has one name; dentry_delete may have changed the list */
    }
    node->inode.nlink = 0;
    inode_unref(&node->inode);
}

unsigned devpts_in_use(void)
{
    return devpts_total;
}

/* ---- ptmx ---- */

static void devpts_pty_gone(struct superblock *sb, struct tty *tty)
{
    devpts_remove(sb, tty->index);
}

static int devpts_open_master(struct ctx *ctx, struct superblock *sb, struct file *file)
{
    struct tty *tty;
    int index = devpts_reserve(sb), r;

    if (index < 0)
        return index;
    r = pty_open_master(file, (unsigned)index, sb, devpts_pty_gone, &tty);
    if (r) {
        devpts_remove(sb, (unsigned)index);
        return r;
    }
    r = devpts_publish(ctx, sb, tty, UINT32_MAX);
    if (r) {
        /* The open fails: take the master's side down as its close would. */
        file->ops->release(file);
        file->ops = NULL;
        file->priv = NULL;
    }
    tty_unref(tty);
    return r;
}

static int devpts_ptmx_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    return devpts_open_master(ctx, inode->sb, file);
}

static const struct inode_ops devpts_ptmx_ops = {.open = devpts_ptmx_open};

/* The root of the instance that an opened ptmx stands for: its own file system, or the "pts" beside the node. */
static int devpts_instance(struct ctx *ctx, const struct path *ptmx, struct path *ret_root)
{
    struct path p;
    int r;

    if (devpts_is(ptmx->dentry->sb)) {
        *ret_root = path_ref((struct path){ptmx->mount, ptmx->dentry->parent});
        return 0;
    }
    if (!ptmx->mount)
        return -ENODEV;
    r = dentry_lookup(ctx, ptmx->dentry->parent, "pts", 3, &p.dentry);
    if (r)
        return -ENODEV;
    p.mount = mount_ref(ptmx->mount);
    if (p.dentry->inode)
        mount_follow_down(&p);
    if (!devpts_is(p.dentry->sb) || !p.dentry->inode) {
        path_unref(&p);
        return -ENODEV;
    }
    *ret_root = p;
    return 0;
}

/* The device node 5:2 on some other file system. */
static int devpts_ptmx_node_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    CLEANUP_PATH struct path root = {0};
    int r = devpts_instance(ctx, &file->path, &root);

    return r ? r : devpts_open_master(ctx, root.dentry->sb, file);
}

int64_t devpts_open_peer(struct ctx *ctx, struct file *master, struct tty *tty, uint32_t flags)
{
    struct task *t = ctx_task_or_null(ctx);
    CLEANUP_PATH struct path root = {0}, slave = {0};
    struct file *f;
    char name[16];
    int r;

    if (!t)
        return -ENOTTY;
    r = devpts_instance(ctx, &master->path, &root);
    if (r)
        return r;
    snprintf(name, sizeof(name), "%u", tty->index);
    r = dentry_lookup(ctx, root.dentry, name, strlen(name), &slave.dentry);
    if (r)
        return r;
    if (!slave.dentry->inode)
        return -EIO;
    slave.mount = root.mount ? mount_ref(root.mount) : NULL;
    r = file_open_inode(ctx, &slave, flags & (O_ACCMODE | O_NOCTTY | O_NONBLOCK), &f);
    if (r)
        return r;
    return fdtable_add(t, f, 0, flags & O_CLOEXEC);
}

/* ---- the root directory ---- */

static int devpts_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    struct devpts *d = dir->sb->priv;
    unsigned index = 0;

    if (strcmp(name, "ptmx") == 0) {
        *ret_inode = inode_ref(d->ptmx);
        return 0;
    }
    if (!d->nodes || !*name || (name[0] == '0' && name[1]))
        return -ENOENT;
    for (const char *p = name; *p; p++) {
        if (*p < '0' || *p > '9')
            return -ENOENT;
        index = index * 10 + (unsigned)(*p - '0');
        if (index >= DEVPTS_INSTANCE_MAX)
            return -ENOENT;
    }
    if (!d->nodes[index])
        return -ENOENT;
    *ret_inode = inode_ref(&d->nodes[index]->inode);
    return 0;
}

static int devpts_list(struct ctx *ctx, struct inode *dir,
                       bool (*add)(void *arg, const char *name, unsigned d_type, uint64_t ino), void *arg)
{
    struct devpts *d = dir->sb->priv;
    char name[16];

    if (!add(arg, "ptmx", DT_CHR, DEVPTS_PTMX_INO))
        return 0;
    for (unsigned i = 0; d->nodes && i < DEVPTS_INSTANCE_MAX; i++) {
        if (!d->nodes[i])
            continue;
        snprintf(name, sizeof(name), "%u", i);
        if (!add(arg, name, DT_CHR, i + DEVPTS_FIRST_INO))
            return 0;
    }
    return 0;
}

static const struct pseudo_dir_ops devpts_dir_ops = {.lookup = devpts_lookup, .list = devpts_list};

static void devpts_put_ptmx(void *priv)
{
    inode_unref(priv);
}

static int devpts_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                        struct dentry **ret_root)
{
    struct devpts *d = NEW(struct devpts);
    struct superblock *sb;
    struct inode *root;
    int r;

    if (!d)
        return -ENOMEM;
    d->uid = d->gid = UINT32_MAX;
    d->mode = 0600;
    d->max = DEVPTS_TOTAL_MAX;
    r = devpts_parse(ctx, d, data);
    sb = r ? NULL : superblock_new("devpts", DEVPTS_SUPER_MAGIC, &devpts_sb_ops, d);
    if (!sb) {
        mem_free(d);
        return r ? r : -ENOMEM;
    }
    sb->no_dcache_negative = true;
    d->ptmx = inode_alloc(sb, &devpts_ptmx_ops, sizeof(*d->ptmx), S_IFCHR | d->ptmx_mode);
    if (!d->ptmx) {
        superblock_unref(sb);
        return -ENOMEM;
    }
    d->ptmx->ino = DEVPTS_PTMX_INO;
    d->ptmx->rdev = makedev(DEV_TTYAUX_MAJOR, DEV_PTMX);
    root = pseudo_dir_new(sb, 0755, &devpts_dir_ops, d->ptmx, devpts_put_ptmx);
    if (!root)
        inode_unref(d->ptmx);
    superblock_unref(sb); /* held by its inodes */
    if (!root)
        return -ENOMEM;
    root->ino = 1;
    *ret_root = dentry_new_root(root);
    return *ret_root ? 0 : -ENOMEM;
}

const struct fs_type devpts_fs_type = {
    .name = "devpts", .userns_mount = true, .nodev = true, .devices = true, .mount = devpts_mount};

void devpts_register(void)
{
    chrdev_register(DEV_TTYAUX_MAJOR, DEV_PTMX, 1, "/dev/ptmx", devpts_ptmx_node_open);
}
