/* SPDX-License-Identifier: Apache-2.0 */
/* Character devices by number, and the device nodes that a container's /dev starts with. */
#include "sentry/fs/devfs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sentry/fs/devrules.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/path_walk.h"

enum { CHRDEV_MAX = 32 };

static struct chrdev {
    unsigned major, first, count;
    const char *name;
    chrdev_open_fn fn;
} chrdevs[CHRDEV_MAX]; /* filled at boot only */
static unsigned chrdevs_len;

void chrdev_register(unsigned major, unsigned first, unsigned count, const char *name, chrdev_open_fn fn)
{
    BUG_ON(chrdevs_len == CHRDEV_MAX);
    chrdevs[chrdevs_len++] = (struct chrdev){major, first, count, name, fn};
}

/* Return: 0, or −EPERM when the opener's container may not use the device so. */
static int dev_check_rules(struct ctx *ctx, const struct inode *inode, const struct file *file)
{
    const struct task *t = ctx_task_or_null(ctx);
    unsigned access = (file_readable(file) ? DEV_ACCESS_READ : 0) | (file_writable(file) ? DEV_ACCESS_WRITE : 0);

    if (!t || !t->group->container->devrules)
        return 0;
    return devrules_allow(t->group->container->devrules, S_ISBLK(inode->mode) ? 'b' : 'c', major(inode->rdev),
                          minor(inode->rdev), access)
               ? 0
               : -EPERM;
}

int blkdev_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    int r = dev_check_rules(ctx, inode, file);

    return r ? r : -ENXIO;
}

int chrdev_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    unsigned maj = major(inode->rdev), min = minor(inode->rdev);
    int r = dev_check_rules(ctx, inode, file);

    if (r)
        return r;
    for (unsigned i = 0; i < chrdevs_len; i++) {
        const struct chrdev *c = &chrdevs[i];

        if (c->major == maj && min >= c->first && min - c->first < c->count)
            return c->fn(ctx, inode, file);
    }
    return -ENXIO;
}

void chrdev_print(struct buf *out)
{
    for (unsigned m = 0; m < 512; m++) {
        const char *last = NULL;

        for (unsigned i = 0; i < chrdevs_len; i++) {
            if (chrdevs[i].major != m || (last && strcmp(last, chrdevs[i].name) == 0))
                continue;
            last = chrdevs[i].name;
            buf_printf(out, "%3u %s\n", m, last);
        }
    }
}

/* ---- nodes ---- */

static const struct dev_node {
    const char *path;
    unsigned minor;
    unsigned major;
} dev_nodes[] = {
    {"/dev/null", DEV_NULL, DEV_MEM_MAJOR},     {"/dev/zero", DEV_ZERO, DEV_MEM_MAJOR},
    {"/dev/full", DEV_FULL, DEV_MEM_MAJOR},     {"/dev/random", DEV_RANDOM, DEV_MEM_MAJOR},
    {"/dev/urandom", DEV_URANDOM, DEV_MEM_MAJOR}, {"/dev/tty", DEV_TTY, DEV_TTYAUX_MAJOR},
};

static const struct dev_link {
    const char *path, *target;
} dev_links[] = {
    {"/dev/fd", "/proc/self/fd"},       {"/dev/stdin", "/proc/self/fd/0"},
    {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
    {"/dev/ptmx", "pts/ptmx"},
};

static int dev_inode_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    return chrdev_open(ctx, inode, file);
}

static const struct inode_ops dev_inode_ops = {.open = dev_inode_open};

/* The file system that nodes are bound from: one inode a device, however often it is bound. */
static struct superblock *dev_superblock(void)
{
    static struct superblock *sb;

    if (!sb)
        sb = superblock_new("devtmpfs", 0x01021994, NULL, NULL);
    return sb;
}

static int dev_node_dentry(uint32_t mode, uint64_t rdev, struct dentry **ret_dentry)
{
    static struct dentry *kept[ARRAY_SIZE(dev_nodes)];
    struct superblock *sb = dev_superblock();
    struct inode *inode;
    struct dentry *d;

    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++) {
        if (kept[i] && kept[i]->inode->rdev == rdev) {
            *ret_dentry = dentry_ref(kept[i]);
            return 0;
        }
    }
    if (!sb)
        return -ENOMEM;
    inode = inode_alloc(sb, &dev_inode_ops, sizeof(*inode), S_IFCHR | mode);
    if (!inode)
        return -ENOMEM;
    inode->rdev = rdev;
    inode->ino = inode_next_ino();
    d = dentry_new_root(inode);
    if (!d)
        return -ENOMEM;
    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++) {
        if (!kept[i]) {
            kept[i] = dentry_ref(d);
            break;
        }
    }
    *ret_dentry = d;
    return 0;
}

int devfs_bind_node(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode,
                    uint64_t rdev)
{
    CLEANUP_PATH struct path at = {0};
    struct dentry *node;
    int r = walk_path(ctx, base, path, WALK_FOLLOW, &at);

    if (r == -ENOENT) {
        r = vfs_mknod(ctx, base, path, S_IFREG | mode, 0);
        if (r == 0)
            r = walk_path(ctx, base, path, WALK_FOLLOW, &at);
    }
    if (r)
        return r;
    r = dev_node_dentry(mode, rdev, &node);
    if (r)
        return r;
    return mount_attach(ctx, node, &at, MS_NOSUID | MS_NOEXEC, "devtmpfs");
}

/* Return: 1 when path is the wanted node already, 0 when not, −errno. */
static int dev_node_there(struct ctx *ctx, const struct walk_base *base, const char *path, uint64_t rdev)
{
    CLEANUP_PATH struct path at = {0};
    int r = walk_path(ctx, base, path, WALK_FOLLOW, &at);

    if (r)
        return r == -ENOENT ? 0 : r;
    return S_ISCHR(at.dentry->inode->mode) && at.dentry->inode->rdev == rdev;
}

static int dev_node_make(struct ctx *ctx, const struct walk_base *base, const struct dev_node *n)
{
    uint64_t rdev = makedev(n->major, n->minor);
    int r = dev_node_there(ctx, base, n->path, rdev);

    if (r != 0)
        return MIN(r, 0);
    r = vfs_mknod(ctx, base, n->path, S_IFCHR | 0666, rdev);
    if (r == 0)
        return 0;
    return devfs_bind_node(ctx, base, n->path, 0666, rdev);
}

int devfs_populate(struct ctx *ctx, const struct walk_base *base, bool (*skip)(const void *arg, const char *path),
                   const void *arg, const char **ret_path)
{
    struct walk_base plain = *base; /* modes are meant as written */
    const char *at = "/dev";
    int r = 0;

    plain.umask = 0;
    r = vfs_mkdir(ctx, &plain, at, 0755);
    if (r == -EEXIST)
        r = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(dev_nodes) && r == 0; i++) {
        at = dev_nodes[i].path;
        if (!skip || !skip(arg, at))
            r = dev_node_make(ctx, &plain, &dev_nodes[i]);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(dev_links) && r == 0; i++) {
        at = dev_links[i].path;
        r = vfs_symlink(ctx, &plain, at, dev_links[i].target);
        if (r == -EEXIST && strcmp(at, "/dev/ptmx") == 0) {
            /* A ptmx of the image's own would not lead to the container's devpts. */
            r = vfs_unlink(ctx, &plain, at);
            if (r == 0)
                r = vfs_symlink(ctx, &plain, at, dev_links[i].target);
        }
        if (r == -EEXIST)
            r = 0;
    }
    if (r && ret_path)
        *ret_path = at;
    return r;
}
