/* SPDX-License-Identifier: Apache-2.0 */
/* setns: namespaces of a file under /proc/PID/ns, or several ones of the process behind a pidfd. All are checked and collected
 * first, and then take effect without fail. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>

#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/fs/nsfs.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/cgroupns.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"
#include "sentry/kernel/utsns.h"
#include "sentry/socket/netns.h"
#include "sentry/vfs/file.h"

#define SETNS_FLAGS (CLONE_NEWUSER | NSPROXY_FLAGS | CLONE_NEWTIME)

/* What is to become of the caller. */
struct setns_plan {
    struct task *task;
    struct nsproxy *ns;     /* owned, private */
    struct cred *cred;      /* owned; NULL: stays */
    struct path root;       /* of the mount namespace to be joined, owned */
};

/* Joining takes CAP_SYS_ADMIN over the namespace, and in the user namespace that the caller will be in. */
static bool setns_right(const struct setns_plan *p, const struct userns *owner)
{
    const struct cred *c = p->task->ctx.cred;

    return cred_ns_cap(c, owner, CAP_SYS_ADMIN) && cred_ns_cap(c, p->cred ? p->cred->userns : c->userns, CAP_SYS_ADMIN);
}

static int join_user(struct setns_plan *p, struct userns *ns)
{
    const struct task *t = p->task;

    if (userns_same(ns, t->ctx.cred->userns))
        return -EINVAL; /* the way back to all capabilities is not open */
    if (t->group->thread_count > 1 || t->fs->ref.count > 1)
        return -EINVAL;
    if (!cred_ns_cap(t->ctx.cred, ns, CAP_SYS_ADMIN))
        return -EPERM;
    return cred_enter_userns(t->ctx.cred, ns, &p->cred);
}

static int join_mnt(struct setns_plan *p, struct mntns *ns)
{
    const struct cred *c = p->task->ctx.cred;

    if (!setns_right(p, mntns_owner(ns)) || !cred_ns_cap(c, p->cred ? p->cred->userns : c->userns, CAP_SYS_CHROOT))
        return -EPERM;
    if (p->task->fs->ref.count > 1)
        return -EINVAL;
    mntns_ref(ns);
    mntns_unref(p->ns->mnt);
    p->ns->mnt = ns;
    path_unref(&p->root);
    p->root = mntns_root(ns);
    return 0;
}

static int join_pid(struct setns_plan *p, struct pidns *ns)
{
    if (!setns_right(p, ns->userns))
        return -EPERM;
    if (!pidns_contains(p->task->pidns, ns))
        return -EINVAL;
    pidns_ref(ns);
    pidns_unref(p->ns->pid_for_children);
    p->ns->pid_for_children = ns;
    return 0;
}

/* Return: 0, −EINVAL, −EPERM, −EUSERS, −ENOMEM. */
static int join(struct setns_plan *p, enum nsfs_kind kind, void *object)
{
    struct nsproxy *ns = p->ns;
    const struct task *t = p->task;

    switch (kind) {
    case NSFS_USER:
        return join_user(p, object);
    case NSFS_MNT:
        return join_mnt(p, object);
    case NSFS_PID:
    case NSFS_PID_CHILDREN:
        return join_pid(p, object);
    case NSFS_IPC:
        if (!setns_right(p, ((struct ipcns *)object)->userns))
            return -EPERM;
        ipcns_ref(object);
        ipcns_unref(ns->ipc);
        ns->ipc = object;
        return 0;
    case NSFS_NET:
        if (!setns_right(p, ((struct netns *)object)->userns))
            return -EPERM;
        netns_ref(object);
        netns_unref(ns->net);
        ns->net = object;
        return 0;
    case NSFS_UTS:
        if (!setns_right(p, ((struct utsns *)object)->userns))
            return -EPERM;
        utsns_ref(object);
        utsns_unref(ns->uts);
        ns->uts = object;
        return 0;
    case NSFS_CGROUP:
        if (!setns_right(p, object ? ((struct cgroupns *)object)->userns : NULL))
            return -EPERM;
        cgroupns_ref(object);
        cgroupns_unref(ns->cgroup);
        ns->cgroup = object;
        return 0;
    case NSFS_TIME:
    case NSFS_TIME_CHILDREN:
        if (t->group->thread_count > 1 || task_mm_is_shared(t))
            return -EUSERS;
        if (!setns_right(p, object ? ((struct timens *)object)->userns : NULL))
            return -EPERM;
        timens_unref(ns->time);
        ns->time = timens_ref(object);
        timens_unref(ns->time_for_children);
        ns->time_for_children = timens_ref(object);
        return 0;
    default:
        return -EINVAL;
    }
}

static int join_file(struct setns_plan *p, const struct file *f, int nstype)
{
    enum nsfs_kind kind;
    void *object;
    int r = nsfs_of_file(f, &kind, &object);

    if (r)
        return r;
    return nstype && nstype != nsfs_clone_flag(kind) ? -EINVAL : join(p, kind, object);
}

/* Those of the process behind a pidfd that flags name, the user namespace first: it decides on the rights to the others. */
static int join_process(struct setns_plan *p, const struct tgroup *g, int flags)
{
    struct task *from = g->leader;
    const struct nsproxy *ns = from ? from->ns : NULL;
    int r = 0;

    if (!flags || (flags & ~SETNS_FLAGS))
        return -EINVAL;
    if (!ns)
        return -ESRCH;
    if (ptrace_may_access(p->task, from, PTRACE_READ_REAL))
        return -EPERM;
    if (flags & CLONE_NEWUSER)
        r = join(p, NSFS_USER, from->ctx.cred->userns);
    if (!r && (flags & CLONE_NEWNS))
        r = join(p, NSFS_MNT, ns->mnt);
    if (!r && (flags & CLONE_NEWUTS))
        r = join(p, NSFS_UTS, ns->uts);
    if (!r && (flags & CLONE_NEWIPC))
        r = join(p, NSFS_IPC, ns->ipc);
    if (!r && (flags & CLONE_NEWPID))
        r = join(p, NSFS_PID, from->pidns);
    if (!r && (flags & CLONE_NEWCGROUP))
        r = join(p, NSFS_CGROUP, ns->cgroup);
    if (!r && (flags & CLONE_NEWNET))
        r = join(p, NSFS_NET, ns->net);
    if (!r && (flags & CLONE_NEWTIME))
        r = join(p, NSFS_TIME, ns->time);
    return r;
}

/* The process gets another vDSO, and that can fail: so it is the last step before the others. Parks; the process is of one thread. */
static int setns_enter_time(const struct setns_plan *p)
{
    struct task *t = p->task;

    return t->ns->time == p->ns->time ? 0 : timens_enter(t->thread, t->ns->time, p->ns->time);
}

/* Nothing here fails. What goes is dropped last, for that may park. */
static void setns_commit(struct setns_plan *p)
{
    struct task *t = p->task;
    struct nsproxy *old = t->ns;
    struct path old_root = {0}, old_cwd = {0};

    t->ns = p->ns;
    p->ns = old;
    if (p->root.mount) {
        old_root = t->fs->root;
        old_cwd = t->fs->cwd;
        t->fs->root = p->root;
        t->fs->cwd = path_ref(p->root);
        p->root = (struct path){0};
    }
    if (p->cred)
        task_set_cred(t, TAKE_PTR(p->cred));
    task_publish_self(t);
    path_unref(&old_root);
    path_unref(&old_cwd);
}

int64_t sys_setns(struct task *t, int32_t fd, int32_t nstype)
{
    struct setns_plan plan = {.task = t};
    struct file *f = fdtable_get(t, fd);
    const struct tgroup *g;
    int r;

    if (!f)
        return -EBADF;
    r = nsproxy_dup(t->ns, &plan.ns);
    if (!r) {
        g = anon_pidfd_group(f);
        r = g ? join_process(&plan, g, nstype) : join_file(&plan, f, nstype);
    }
    if (!r)
        r = setns_enter_time(&plan);
    if (!r)
        setns_commit(&plan);
    nsproxy_unref(plan.ns);
    cred_unref(plan.cred);
    path_unref(&plan.root);
    file_unref(f);
    return r;
}
