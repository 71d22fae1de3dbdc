/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces as files. Source: namespaces(7), ioctl_ns(2). */
#include "sentry/fs/nsfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>

#include "sentry/core/userns.h"
#include "sentry/fs/internal_fs.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/cgroupns.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"
#include "sentry/kernel/utsns.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/netns.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"

/* Numbers of those namespaces that exist from the start without an object. */
enum { NSFS_INO_CGROUP = 0xeffffffb, NSFS_INO_TIME = 0xeffffffa, NSFS_INO_USER = 0xeffffffd };

/* ioctls of Linux 6.11, which older headers lack. */
#define NSFS_PID_FROM _IOR(NSIO, 0x6, int)
#define NSFS_TGID_FROM _IOR(NSIO, 0x7, int)
#define NSFS_PID_IN _IOR(NSIO, 0x8, int)
#define NSFS_TGID_IN _IOR(NSIO, 0x9, int)

struct nsfs_inode {
    struct inode inode;
    enum nsfs_kind kind;
    void *ns; /* (i) referenced; NULL for those initial ones that have no object */
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

int nsfs_clone_flag(enum nsfs_kind kind)
{
    return nsfs_classes[kind].clone_flag;
}

static uint64_t nsfs_ino_of(enum nsfs_kind kind, const void *ns)
{
    switch (kind) {
    case NSFS_MNT:
        return mntns_ino(ns);
    case NSFS_UTS:
        return ((const struct utsns *)ns)->ino;
    case NSFS_PID:
    case NSFS_PID_CHILDREN:
        return ((const struct pidns *)ns)->ino;
    case NSFS_IPC:
        return ((const struct ipcns *)ns)->ino;
    case NSFS_NET:
        return ((const struct netns *)ns)->ino;
    case NSFS_USER:
        return ns ? ((const struct userns *)ns)->ino : NSFS_INO_USER;
    case NSFS_CGROUP:
        return ns ? ((const struct cgroupns *)ns)->ino : NSFS_INO_CGROUP;
    default:
        return ns ? ((const struct timens *)ns)->ino : NSFS_INO_TIME;
    }
}

/* The user namespace that owns ns; NULL: the initial one. */
static struct userns *nsfs_owner(enum nsfs_kind kind, const void *ns)
{
    switch (kind) {
    case NSFS_MNT:
        return mntns_owner(ns);
    case NSFS_UTS:
        return ((const struct utsns *)ns)->userns;
    case NSFS_PID:
    case NSFS_PID_CHILDREN:
        return ((const struct pidns *)ns)->userns;
    case NSFS_IPC:
        return ((const struct ipcns *)ns)->userns;
    case NSFS_NET:
        return ((const struct netns *)ns)->userns;
    case NSFS_CGROUP:
        return ns ? ((const struct cgroupns *)ns)->userns : NULL;
    case NSFS_TIME:
    case NSFS_TIME_CHILDREN:
        return ns ? ((const struct timens *)ns)->userns : NULL;
    default:
        return NULL;
    }
}

/* Return: 0 with the object, not referenced. −ESRCH when t has none any more. */
static int nsfs_get(enum nsfs_kind kind, const struct task *t, void **ret_ns)
{
    const struct nsproxy *ns = t->ns;

    if (!ns)
        return -ESRCH;
    switch (kind) {
    case NSFS_MNT:
        *ret_ns = ns->mnt;
        break;
    case NSFS_UTS:
        *ret_ns = ns->uts;
        break;
    case NSFS_PID:
        *ret_ns = t->pidns;
        break;
    case NSFS_PID_CHILDREN:
        *ret_ns = ns->pid_for_children;
        break;
    case NSFS_IPC:
        *ret_ns = ns->ipc;
        break;
    case NSFS_NET:
        *ret_ns = ns->net;
        break;
    case NSFS_USER:
        *ret_ns = t->ctx.cred->userns;
        break;
    case NSFS_CGROUP:
        *ret_ns = ns->cgroup;
        break;
    case NSFS_TIME:
        *ret_ns = ns->time;
        break;
    case NSFS_TIME_CHILDREN:
        *ret_ns = ns->time_for_children;
        break;
    default:
        *ret_ns = NULL;
    }
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
    case NSFS_CGROUP:
        on ? (void)cgroupns_ref(ns) : cgroupns_unref(ns);
        break;
    case NSFS_TIME:
    case NSFS_TIME_CHILDREN:
        on ? (void)timens_ref(ns) : timens_unref(ns);
        break;
    default:
        break;
    }
}

int nsfs_print(enum nsfs_kind kind, const struct task *t, struct buf *out)
{
    void *ns;
    int r = nsfs_get(kind, t, &ns);

    if (r)
        return -ENOENT; /* what readlink says of a process that has exited */
    buf_printf(out, "%s:[%llu]", nsfs_classes[kind].label, (unsigned long long)nsfs_ino_of(kind, ns));
    return buf_error(out);
}

static struct nsfs_inode *to_nsfs(const struct inode *inode)
{
    return container_of(inode, struct nsfs_inode, inode);
}

static int nsfs_path_of(enum nsfs_kind kind, void *ns, struct path *ret_path);

/* A descriptor of another namespace for the caller. Return: it, −ENOMEM, −EMFILE, −ENFILE. */
static int64_t nsfs_give(struct ctx *ctx, enum nsfs_kind kind, void *ns)
{
    struct task *t = ctx_task_or_null(ctx);
    struct file *f;
    struct path p;
    int r = t ? nsfs_path_of(kind, ns, &p) : -EINVAL;

    if (r)
        return r;
    r = file_open_inode(ctx, &p, O_RDONLY, &f);
    path_unref(&p);
    return r ? r : fdtable_add(t, f, 0, true);
}

/* What is above the caller's own user namespace is not shown. */
static int64_t nsfs_give_userns(struct ctx *ctx, struct userns *ns)
{
    return userns_contains(ctx->cred->userns, ns) ? nsfs_give(ctx, NSFS_USER, ns) : -EPERM;
}

static int64_t nsfs_give_parent(struct ctx *ctx, const struct nsfs_inode *n)
{
    struct task *t = ctx_task_or_null(ctx);
    struct pidns *parent;

    if (n->kind == NSFS_USER) {
        struct userns *ns = n->ns;

        return userns_is_initial(ns) ? -EPERM : nsfs_give_userns(ctx, ns->parent);
    }
    if (n->kind != NSFS_PID && n->kind != NSFS_PID_CHILDREN)
        return -EINVAL;
    parent = ((struct pidns *)n->ns)->parent;
    return t && parent && pidns_contains(t->pidns, parent) ? nsfs_give(ctx, NSFS_PID, parent) : -EPERM;
}

static int64_t nsfs_owner_uid(struct ctx *ctx, const struct nsfs_inode *n, uint64_t arg)
{
    const struct userns *ns = n->ns;
    uint32_t uid;

    if (n->kind != NSFS_USER)
        return -EINVAL;
    uid = userns_uid_shown(ctx->cred->userns, userns_is_initial(ns) ? 0 : ns->owner);
    return COPY_OUT(ctx, UADDR(arg), &uid);
}

/* Numbers of threads and processes, from the pid namespace that n is to the caller's, or the other way round. */
static int64_t nsfs_translate(struct ctx *ctx, const struct nsfs_inode *n, uint32_t cmd, uint64_t arg)
{
    bool from = cmd == NSFS_PID_FROM || cmd == NSFS_TGID_FROM, whole = cmd == NSFS_TGID_FROM || cmd == NSFS_TGID_IN;
    struct task *t = ctx_task_or_null(ctx), *target;
    struct pidns *there = n->ns;
    int64_t r;

    if (!t || (n->kind != NSFS_PID && n->kind != NSFS_PID_CHILDREN))
        return -EINVAL;
    target = task_find(from ? there : t->pidns, (int)arg);
    if (!target)
        return -ESRCH;
    if (from)
        there = t->pidns;
    r = whole ? tgroup_pid_in(target->group, there) : task_tid_in(target, there);
    task_unref(target);
    return r ? r : -ESRCH;
}

/* Newer than the headers that we build with. */
#define NSFS_GET_MNTNS_ID _IOR(0xb7, 0x5, uint64_t)

static int64_t nsfs_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    const struct nsfs_inode *n = to_nsfs(f->inode);

    switch (cmd) {
    case NS_GET_NSTYPE:
        return nsfs_classes[n->kind].clone_flag;
    case NS_GET_USERNS:
        return n->kind == NSFS_USER ? nsfs_give_parent(ctx, n) : nsfs_give_userns(ctx, nsfs_owner(n->kind, n->ns));
    case NS_GET_PARENT:
        return nsfs_give_parent(ctx, n);
    case NS_GET_OWNER_UID:
        return nsfs_owner_uid(ctx, n, arg);
    case NSFS_PID_FROM:
    case NSFS_TGID_FROM:
    case NSFS_PID_IN:
    case NSFS_TGID_IN:
        return nsfs_translate(ctx, n, cmd, arg);
    case NSFS_GET_MNTNS_ID: {
        if (n->kind != NSFS_MNT)
            return -EINVAL;
        uint64_t id = mntns_id(n->ns);
        return copy_out(ctx, UADDR(arg), &id, sizeof(id));
    }
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

static int nsfs_path_of(enum nsfs_kind kind, void *ns, struct path *ret_path)
{
    static struct mount *slot;
    struct mount *m = internal_fs_mount(&slot, "nsfs", 0x6e736673);
    struct nsfs_inode *n;
    struct dentry *d;
    uint64_t ino = nsfs_ino_of(kind, ns);
    char name[48];

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

int nsfs_path(enum nsfs_kind kind, const struct task *t, struct path *ret_path)
{
    void *ns;
    int r = nsfs_get(kind, t, &ns);

    return r ? r : nsfs_path_of(kind, ns, ret_path);
}

int nsfs_of_file(const struct file *f, enum nsfs_kind *ret_kind, void **ret_ns)
{
    if (f->inode->ops != &nsfs_inode_ops)
        return -EINVAL;
    *ret_kind = to_nsfs(f->inode)->kind;
    *ret_ns = to_nsfs(f->inode)->ns;
    return 0;
}
