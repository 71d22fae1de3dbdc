/* SPDX-License-Identifier: Apache-2.0 */
/* clone, clone3, fork, vfork, unshare. */
#include "syscalls_gen.h"

#include <errno.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>

#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/fs/cgroupfs.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_clone.h"
#include "sentry/kernel/task_unshare.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

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

/* There is one group, which everybody is in: being born into it needs the right to write its list of processes. */
static int check_cgroup(struct task *t, int fd)
{
    struct file *f = fdtable_get_any(t, fd);
    int r;

    if (!f)
        return -EBADF;
    r = cgroupfs_is_group(f) ? inode_permission(&t->ctx, f->inode, MAY_WRITE) : -EBADF;
    file_unref(f);
    return r;
}

int64_t sys_clone3(struct task *t, uaddr_t addr, uint64_t size)
{
    struct clone_args in = {0};
    struct pid_wish wish = {.cred = t->ctx.cred};
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
    if ((in.flags & CLONE_INTO_CGROUP) && (in.cgroup > INT_MAX || size < CLONE_ARGS_SIZE_VER2))
        return -EINVAL;
    if (!in.set_tid != !in.set_tid_size)
        return -EINVAL;
    if (in.set_tid_size > PIDNS_DEPTH_MAX)
        return -EINVAL;
    wish.len = (unsigned)in.set_tid_size;
    if (wish.len && copy_in(&t->ctx, wish.numbers, UADDR(in.set_tid), wish.len * sizeof(wish.numbers[0])))
        return -EFAULT;
    if (in.flags & CLONE_INTO_CGROUP) {
        r = check_cgroup(t, (int)in.cgroup);
        if (r)
            return r;
    }
    args = (struct clone_args_k){
        .flags = in.flags,
        .exit_signal = (int)in.exit_signal,
        .stack = in.stack ? in.stack + in.stack_size : 0,
        .tls = in.tls,
        .parent_tid = UADDR(in.parent_tid),
        .child_tid = UADDR(in.child_tid),
        .wish = wish.len ? &wish : NULL,
    };
    return do_clone(t, &args, UADDR(in.pidfd));
}

int64_t sys_unshare(struct task *t, uint64_t flags)
{
    return task_unshare(t, flags);
}
