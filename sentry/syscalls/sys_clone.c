/* SPDX-License-Identifier: Apache-2.0 */
/* clone, clone3, fork, vfork, unshare, setns. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>

#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/fs/nsfs.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_clone.h"
#include "sentry/kernel/utsns.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/netns.h"
#include "sentry/vfs/file.h"

enum { CLONE3_SIZE_MIN = 64 };

/* The child's pidfd goes to where the caller wants it before the child runs. Return: 0 or −errno. */
static int give_pidfd(struct task *t, struct task *child, uaddr_t to)
{
    struct file *f;
    int fd = fdtable_reserve(t, 0);

    if (fd < 0)
        return fd;
    f = anon_pidfd_new(child->group, 0, t->ctx.cred);
    if (!f || COPY_OUT(&t->ctx, to, &fd)) {
        int r = f ? -EFAULT : -ENOMEM;

        file_unref(f);
        fdtable_unreserve(t, fd);
        return r;
    }
    fdtable_install(t, fd, f, true);
    return 0;
}

static int64_t do_clone(struct task *t, const struct clone_args_k *args, uaddr_t pidfd)
{
    struct task *child;
    int r;

    if ((args->flags & CLONE_PIDFD) && (args->flags & (CLONE_THREAD | CLONE_DETACHED)))
        return -EINVAL;
    r = task_clone(t, args, &child);
    if (r)
        return r;
    if (args->flags & CLONE_PIDFD) {
        r = give_pidfd(t, child, pidfd);
        if (r) {
            task_clone_cancel(child);
            return r;
        }
    }
    return task_clone_start(t, args, child);
}

int64_t sys_clone(struct task *t, uint64_t flags, uaddr_t stack, uaddr_t ptid, uaddr_t ctid, uaddr_t tls)
{
    struct clone_args_k args = {
        .flags = (uint32_t)flags & ~(uint64_t)CSIGNAL,
        .exit_signal = (int)(flags & CSIGNAL),
        .stack = stack.v,
        .tls = tls.v,
        .parent_tid = ptid,
        .child_tid = ctid,
    };

    if (args.exit_signal > NSIG_K)
        args.exit_signal = 0; /* never sent, as on Linux */
    if ((args.flags & (CLONE_PIDFD | CLONE_PARENT_SETTID)) == (CLONE_PIDFD | CLONE_PARENT_SETTID))
        return -EINVAL;
    return do_clone(t, &args, ptid);
}

int64_t sys_fork(struct task *t)
{
    struct clone_args_k args = {.exit_signal = SIGCHLD};

    return do_clone(t, &args, UADDR_NULL);
}

int64_t sys_vfork(struct task *t)
{
    struct clone_args_k args = {.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD};

    return do_clone(t, &args, UADDR_NULL);
}

int64_t sys_clone3(struct task *t, uaddr_t addr, uint64_t size)
{
    struct clone_args in = {0};
    struct clone_args_k args;
    int r;

    if (size < CLONE3_SIZE_MIN)
        return -EINVAL;
    r = copy_in_struct(&t->ctx, &in, sizeof(in), addr, size);
    if (r)
        return r;
    if (in.flags & ~(0xffffffffULL | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP))
        return -EINVAL;
    if ((in.flags & (CLONE_DETACHED | (CSIGNAL & ~CLONE_NEWTIME))) || in.exit_signal > NSIG_K)
        return -EINVAL;
    if ((in.flags & (CLONE_SIGHAND | CLONE_CLEAR_SIGHAND)) == (CLONE_SIGHAND | CLONE_CLEAR_SIGHAND))
        return -EINVAL;
    if ((in.flags & (CLONE_THREAD | CLONE_PARENT)) && in.exit_signal)
        return -EINVAL;
    if (!in.stack != !in.stack_size || in.stack + in.stack_size < in.stack)
        return -EINVAL;
    /* There are no cgroups to be born into; and numbers are not the caller's to choose. */
    if (in.flags & CLONE_INTO_CGROUP)
        return -EINVAL;
    if (!in.set_tid != !in.set_tid_size)
        return -EINVAL;
    if (in.set_tid_size)
        return -EPERM;
    args = (struct clone_args_k){
        .flags = in.flags,
        .exit_signal = (int)in.exit_signal,
        .stack = in.stack ? in.stack + in.stack_size : 0,
        .tls = in.tls,
        .parent_tid = UADDR(in.parent_tid),
        .child_tid = UADDR(in.child_tid),
    };
    return do_clone(t, &args, UADDR(in.pidfd));
}

/* Joins namespaces of one kind; t->ns is private already. Return: 0, −EINVAL, −EPERM, −ENOMEM. */
static int join(struct task *t, struct nsproxy *ns, enum nsfs_kind kind, void *object)
{
    struct path root;

    switch (kind) {
    case NSFS_IPC:
        ipcns_ref(object);
        ipcns_unref(ns->ipc);
        ns->ipc = object;
        return 0;
    case NSFS_NET:
        netns_ref(object);
        netns_unref(ns->net);
        ns->net = object;
        return 0;
    case NSFS_UTS:
        utsns_ref(object);
        utsns_unref(ns->uts);
        ns->uts = object;
        return 0;
    case NSFS_PID:
    case NSFS_PID_CHILDREN:
        if (!pidns_contains(t->pidns, object))
            return -EINVAL;
        pidns_ref(object);
        pidns_unref(ns->pid_for_children);
        ns->pid_for_children = object;
        return 0;
    case NSFS_MNT:
        if (t->fs->ref.count > 1)
            return -EINVAL;
        mntns_ref(object);
        mntns_unref(ns->mnt);
        ns->mnt = object;
        root = mntns_root(object);
        path_unref(&t->fs->root);
        path_unref(&t->fs->cwd);
        t->fs->root = root;
        t->fs->cwd = path_ref(root);
        return 0;
    case NSFS_CGROUP:
        return 0; /* there is but one */
    case NSFS_TIME:
    case NSFS_TIME_CHILDREN:
        /* There is but one, and yet it takes a process that could change. */
        return t->group->thread_count > 1 || task_mm_is_shared(t) ? -EUSERS : 0;
    default:
        return -EINVAL;
    }
}

static int clone_flag_of(enum nsfs_kind kind)
{
    static const int flags[NSFS_KINDS] = {
        [NSFS_CGROUP] = CLONE_NEWCGROUP, [NSFS_IPC] = CLONE_NEWIPC, [NSFS_MNT] = CLONE_NEWNS,
        [NSFS_NET] = CLONE_NEWNET, [NSFS_PID] = CLONE_NEWPID, [NSFS_PID_CHILDREN] = CLONE_NEWPID,
        [NSFS_TIME] = CLONE_NEWTIME, [NSFS_TIME_CHILDREN] = CLONE_NEWTIME, [NSFS_USER] = CLONE_NEWUSER,
        [NSFS_UTS] = CLONE_NEWUTS,
    };

    return flags[kind];
}

static int join_file(struct task *t, struct nsproxy *ns, const struct file *f, int nstype)
{
    enum nsfs_kind kind;
    void *object;
    int r = nsfs_of_file(f, &kind, &object);

    if (r)
        return r;
    return nstype && nstype != clone_flag_of(kind) ? -EINVAL : join(t, ns, kind, object);
}

/* Those of the process behind a pidfd that flags name. */
static int join_process(struct task *t, struct nsproxy *ns, const struct tgroup *g, int flags)
{
    const struct nsproxy *from = g->leader ? g->leader->ns : NULL;
    int r = 0;

    if (!flags || (flags & ~(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID)))
        return -EINVAL;
    if (!from)
        return -ESRCH;
    if (flags & CLONE_NEWUTS)
        r = join(t, ns, NSFS_UTS, from->uts);
    if (!r && (flags & CLONE_NEWIPC))
        r = join(t, ns, NSFS_IPC, from->ipc);
    if (!r && (flags & CLONE_NEWNET))
        r = join(t, ns, NSFS_NET, from->net);
    if (!r && (flags & CLONE_NEWPID))
        r = join(t, ns, NSFS_PID, g->leader->pidns);
    if (!r && (flags & CLONE_NEWNS)) /* last, for it can't be undone */
        r = join(t, ns, NSFS_MNT, from->mnt);
    return r;
}

int64_t sys_setns(struct task *t, int32_t fd, int32_t nstype)
{
    struct file *f = fdtable_get(t, fd);
    const struct tgroup *g;
    struct nsproxy *ns;
    int r;

    if (!f)
        return -EBADF;
    r = cred_has_cap(t->ctx.cred, CAP_SYS_ADMIN) ? nsproxy_dup(t->ns, &ns) : -EPERM;
    if (!r) {
        g = anon_pidfd_group(f);
        r = g ? join_process(t, ns, g, nstype) : join_file(t, ns, f, nstype);
        if (!r) {
            struct nsproxy *old = t->ns;

            t->ns = ns;
            ns = old;
        }
        nsproxy_unref(ns);
    }
    file_unref(f);
    return r;
}

int64_t sys_unshare(struct task *t, uint64_t flags)
{
    return task_unshare(t, flags);
}
