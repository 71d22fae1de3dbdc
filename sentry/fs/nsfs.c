/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces as files. Source: namespaces(7), ioctl_ns(2). */
#include "sentry/fs/nsfs.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>

#include "platform/base/host.h"
#include "sentry/core/userns.h"
#include "sentry/fs/internal_fs.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/utsns.h"
#include "sentry/socket/netns.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"

/* Numbers of the namespaces that exist from the start (those without an object of ours are the only ones). */
enum { NSFS_INO_CGROUP = 0xeffffffb, NSFS_INO_TIME = 0xeffffffa, NSFS_INO_USER = 0xeffffffd };

struct nsfs_inode {
    struct inode inode;
    enum nsfs_kind kind;
    void *ns; /* (i) referenced; NULL for kinds without objects and for the initial user namespace */
};

static const struct nsfs_class {
    const char *name, *label;
    int clone_flag;
} nsfs_classes[NSFS_KINDS] = {
    [NSFS_CGROUP] = {"cgroup", "cgroup", CLONE_NEWCGROUP},
    [NSFS_IPC] = {"ipc", "ipc", CLONE_NEWIPC},
    [NSFS_MNT] = {"mnt", "mnt", CLONE_NEWNS},
    [NSFS_NET] = {"net", "net", CLONE_NEWNET},
    [NSFS_PID] = {"pid", "pid", CLONE_NEWPID},
    [NSFS_PID_CHILDREN] = {"pid_for_children", "pid", CLONE_NEWPID},
    [NSFS_TIME] = {"time", "time", 0x80},
    [NSFS_TIME_CHILDREN] = {"time_for_children", "time", 0x80},
    [NSFS_USER] = {"user", "user", CLONE_NEWUSER},
    [NSFS_UTS] = {"uts", "uts", CLONE_NEWUTS},
};

const char *nsfs_name(enum nsfs_kind kind)
{
    return nsfs_classes[kind].name;
}

/* A number for user namespaces, which do not carry one: the same as long as the object lives, and no address. */
static uint64_t nsfs_ino_of(const void *p)
{
    static uint64_t salt;
    uint64_t h;

    while (!salt)
        host_random(&salt, sizeof(salt));
    h = ((uint64_t)(uintptr_t)p ^ salt) * 0x9e3779b97f4a7c15ULL;
    h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
    return 0xf0000000ULL | ((h >> 32) & 0xfffffff);
}

/* Return: the object, not referenced; ret_ino its number. −ESRCH when t has none any more. */
static int nsfs_get(enum nsfs_kind kind, const struct task *t, void **ret_ns, uint64_t *ret_ino)
{
    const struct nsproxy *ns = t->ns;
    void *p = NULL;

    if (!ns)
        return -ESRCH;
    switch (kind) {
    case NSFS_MNT:
        p = ns->mnt;
        *ret_ino = p ? mntns_ino(p) : 0;
        break;
    case NSFS_UTS:
        p = ns->uts;
        *ret_ino = p ? ns->uts->ino : 0;
        break;
    case NSFS_PID:
        p = t->pidns;
        *ret_ino = t->pidns->ino;
        break;
    case NSFS_PID_CHILDREN:
        p = ns->pid_for_children;
        *ret_ino = p ? ns->pid_for_children->ino : 0;
        break;
    case NSFS_IPC:
        p = ns->ipc;
        *ret_ino = p ? ns->ipc->ino : 0;
        break;
    case NSFS_NET:
        p = ns->net;
        *ret_ino = p ? ns->net->ino : 0;
        break;
    case NSFS_USER:
        p = t->ctx.cred->userns;
        *ret_ino = p && t->ctx.cred->userns->level ? nsfs_ino_of(p) : NSFS_INO_USER;
        break;
    default:
        *ret_ino = kind == NSFS_CGROUP ? NSFS_INO_CGROUP : NSFS_INO_TIME;
    }
    *ret_ns = p;
    return 0;
}

static void nsfs_hold(enum nsfs_kind kind, void *ns, bool on)
{
    if (!ns)
        return;
    switch (kind) {
    case NSFS_MNT:
        on ? (void)mntns_ref(ns) : mntns_unref(ns);
        break;
    case NSFS_UTS:
        on ? (void)utsns_ref(ns) : utsns_unref(ns);
        break;
    case NSFS_PID:
    case NSFS_PID_CHILDREN:
        on ? (void)pidns_ref(ns) : pidns_unref(ns);
        break;
    case NSFS_IPC:
        on ? (void)ipcns_ref(ns) : ipcns_unref(ns);
        break;
    case NSFS_NET:
        on ? (void)netns_ref(ns) : netns_unref(ns);
        break;
    case NSFS_USER:
        on ? (void)userns_ref(ns) : userns_unref(ns);
        break;
    default:
        break;
    }
}

int nsfs_print(enum nsfs_kind kind, const struct task *t, struct buf *out)
{
    uint64_t ino;
    void *ns;
    int r = nsfs_get(kind, t, &ns, &ino);

    if (r)
        return -ENOENT; /* what readlink says of a process that has exited */
    buf_printf(out, "%s:[%llu]", nsfs_classes[kind].label, (unsigned long long)ino);
    return buf_error(out);
}

static struct nsfs_inode *to_nsfs(const struct inode *inode)
{
    return container_of(inode, struct nsfs_inode, inode);
}

static int64_t nsfs_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    const struct nsfs_inode *n = to_nsfs(f->inode);

    switch (cmd) {
    case NS_GET_NSTYPE:
        return nsfs_classes[n->kind].clone_flag;
    case NS_GET_USERNS: /* owners outside the sandbox's own are not shown */
        return -EPERM;
    case NS_GET_PARENT:
        return n->kind == NSFS_PID || n->kind == NSFS_USER ? -EPERM : -EINVAL;
    default:
        return -ENOTTY;
    }
}

static const struct file_ops nsfs_file_ops = {.ioctl = nsfs_ioctl};

static int nsfs_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    if (file_writable(file))
        return -EPERM;
    file->ops = &nsfs_file_ops;
    return 0;
}

static void nsfs_evict(struct inode *inode)
{
    nsfs_hold(to_nsfs(inode)->kind, to_nsfs(inode)->ns, false);
}

static const struct inode_ops nsfs_inode_ops = {.open = nsfs_open, .evict = nsfs_evict};

int nsfs_path(enum nsfs_kind kind, const struct task *t, struct path *ret_path)
{
    static struct mount *slot;
    struct mount *m = internal_fs_mount(&slot, "nsfs", 0x6e736673);
    struct nsfs_inode *n;
    struct dentry *d;
    uint64_t ino;
    char name[48];
    void *ns;
    int r = nsfs_get(kind, t, &ns, &ino);

    if (r)
        return r;
    if (!m)
        return -ENOMEM;
    n = (struct nsfs_inode *)inode_alloc(m->sb, &nsfs_inode_ops, sizeof(*n), S_IFREG | 0444);
    if (!n)
        return -ENOMEM;
    n->kind = kind;
    n->ns = ns;
    nsfs_hold(kind, ns, true);
    n->inode.ino = ino;
    snprintf(name, sizeof(name), "%s:[%llu]", nsfs_classes[kind].label, (unsigned long long)ino);
    d = dentry_new_detached(&n->inode, name);
    if (!d)
        return -ENOMEM;
    *ret_path = (struct path){mount_ref(m), d};
    return 0;
}

int nsfs_of_file(const struct file *f, enum nsfs_kind *ret_kind, void **ret_ns)
{
    if (f->inode->ops != &nsfs_inode_ops)
        return -EINVAL;
    *ret_kind = to_nsfs(f->inode)->kind;
    *ret_ns = to_nsfs(f->inode)->ns;
    return 0;
}
