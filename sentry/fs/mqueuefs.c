/* SPDX-License-Identifier: Apache-2.0 */
/* A directory with a file for each message queue of the IPC namespace of whoever mounted it. */
#include "sentry/fs/mqueuefs.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/ipc/posix_mq.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/pseudo.h"

#define MQUEUE_MAGIC 0x19800202

/* What the sandbox itself mounts, before there is a process, shows the queues of whoever looks. */
static struct ipcns *queues_of(struct ctx *ctx, const struct superblock *sb)
{
    if (sb->priv)
        return sb->priv;
    struct task *t = ctx_task_or_null(ctx);
    return t && t->ns ? t->ns->ipc : NULL;
}

static int queue_show(struct ctx *ctx, struct inode *inode, struct buf *out)
{
    struct ipcns *ns = queues_of(ctx, inode->sb);
    uint32_t mode, uid, gid;
    return ns && posix_mq_describe(ns, inode->priv, out, &mode, &uid, &gid) ? 0 : -ENOENT;
}

static const struct pseudo_file_ops queue_ops = {.show = queue_show};

static int root_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    struct ipcns *ns = queues_of(ctx, dir->sb);
    uint32_t mode, uid, gid;
    if (!ns || !posix_mq_describe(ns, name, NULL, &mode, &uid, &gid))
        return -ENOENT;
    char *copy = mem_strdup(name);
    struct inode *inode = copy ? pseudo_file_new(dir->sb, S_IFREG | mode, &queue_ops, copy, mem_free) : NULL;
    if (!inode) {
        mem_free(copy);
        return -ENOMEM;
    }
    inode->uid = uid;
    inode->gid = gid;
    inode->size = 80;
    *ret_inode = inode;
    return 0;
}

struct listing {
    bool (*add)(void *arg, const char *name, unsigned d_type, uint64_t ino);
    void *arg;
    uint64_t ino;
};

static bool list_one(void *arg, const char *name)
{
    struct listing *l = arg;
    return l->add(l->arg, name, DT_REG, ++l->ino);
}

static int root_list(struct ctx *ctx, struct inode *dir,
                     bool (*add)(void *arg, const char *name, unsigned d_type, uint64_t ino), void *arg)
{
    struct listing l = {.add = add, .arg = arg, .ino = dir->ino};
    struct ipcns *ns = queues_of(ctx, dir->sb);
    if (ns)
        posix_mq_for_each(ns, list_one, &l);
    return 0;
}

static int root_create(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr, struct inode **ret_inode)
{
    struct ipcns *ns = queues_of(ctx, dir->sb);
    int ret = ns ? posix_mq_create_in(ctx, ns, name, attr->mode) : -EACCES;
    return ret ? ret : root_lookup(ctx, dir, name, ret_inode);
}

static int root_unlink(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    struct ipcns *ns = queues_of(ctx, dir->sb);
    return ns ? posix_mq_unlink_in(ns, name) : -ENOENT;
}

static const struct pseudo_dir_ops root_ops = {
    .lookup = root_lookup, .list = root_list, .create = root_create, .unlink = root_unlink};

static void mqueue_sb_free(struct superblock *sb)
{
    struct ipcns *ns = sb->priv;
    if (ns)
        ns->mounts--;
    ipcns_unref(ns);
}

static const struct sb_ops mqueue_sb_ops = {.free = mqueue_sb_free};

static int mqueue_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                        struct dentry **ret_root)
{
    struct task *t = ctx_task_or_null(ctx);
    struct ipcns *ns = t && t->ns ? t->ns->ipc : NULL;
    struct superblock *sb = superblock_new("mqueue", MQUEUE_MAGIC, &mqueue_sb_ops, NULL);
    if (!sb)
        return -ENOMEM;
    if (ns)
        ns->mounts++;
    sb->priv = ipcns_ref(ns);
    sb->no_dcache = sb->no_dcache_negative = true; /* queues come and go without the directory's knowledge */
    struct inode *root = pseudo_dir_new(sb, S_IFDIR | 01777, &root_ops, NULL, NULL);
    superblock_unref(sb);
    if (!root)
        return -ENOMEM;
    *ret_root = dentry_new_root(root);
    return *ret_root ? 0 : -ENOMEM;
}

static struct userns *mqueue_owner(const struct ctx *ctx)
{
    return ctx->is_task ? container_of(ctx, const struct task, ctx)->ns->ipc->userns : ctx->cred->userns;
}

const struct fs_type mqueue_fs_type = {
    .name = "mqueue", .userns_mount = true, .nodev = true, .owner = mqueue_owner, .mount = mqueue_mount};
