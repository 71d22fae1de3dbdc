/* SPDX-License-Identifier: Apache-2.0 */
/* New tasks. A child with its own memory is a host fork; a thread (or any other task in the same memory) a further host
 * thread; and a vfork child borrows its parent's host thread until it execs or exits. */
#include "sentry/kernel/task_clone.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/core/ucount.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/sigframe_x86_64.h"
#include "sentry/kernel/task_run.h"
#include "sentry/kernel/task_unshare.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/kernel/timens.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

static int check_flags(const struct task *t, uint64_t flags)
{
    if ((flags & CLONE_FS) && (flags & (CLONE_NEWNS | CLONE_NEWUSER)))
        return -EINVAL;
    if ((flags & CLONE_THREAD) && (!(flags & CLONE_SIGHAND) || (flags & CLONE_NEWPID)))
        return -EINVAL;
    if ((flags & CLONE_SIGHAND) && !(flags & CLONE_VM))
        return -EINVAL;
    if ((flags & CLONE_THREAD) && ((flags & CLONE_NEWUSER) || t->ns->pid_for_children != t->pidns))
        return -EINVAL;
    if ((flags & CLONE_PARENT) && t->group->unkillable)
        return -EINVAL;
    return 0;
}

static int check_limits(const struct task *t)
{
    const struct cred *c = t->ctx.cred;

    if (t->sched.policy == SCHEDPOLICY_DEADLINE && !t->sched.reset_on_fork)
        return -EAGAIN; /* bandwidth is not inherited */
    if (c->uid != 0 && !cred_has_cap(c, CAP_SYS_RESOURCE) && !cred_has_cap(c, CAP_SYS_ADMIN) &&
        ucount_used(UCOUNT_TASKS, c->uid) >= t->group->rlimits[RLIMIT_NPROC].rlim_cur)
        return -EAGAIN;
    const struct container *ct = t->group->container;
    if (ct->task_count >= (ct->pids_limit ? ct->pids_limit : LIMIT_TASKS))
        return -EAGAIN;
    return 0;
}

/* What needs a right to be asked for: CAP_SYS_ADMIN where the new namespaces will belong. */
static int check_namespaces(const struct task *t, uint64_t flags, const struct cred *cred)
{
    if (!(flags & NSPROXY_FLAGS))
        return 0;
    if (!cred_own_cap(cred, CAP_SYS_ADMIN))
        return -EPERM;
    if ((flags & (CLONE_NEWIPC | CLONE_SYSVSEM)) == (CLONE_NEWIPC | CLONE_SYSVSEM))
        return -EINVAL;
    return (flags & CLONE_NEWPID) && t->ns->pid_for_children != t->pidns ? -EINVAL : 0;
}

/* The pid namespace, if it is a new one, is that which the child was made in. */
static int copy_namespaces(const struct task *t, struct task *c, uint64_t flags)
{
    struct nsproxy *ns;
    int r;

    if (!(flags & NSPROXY_FLAGS)) {
        ns = nsproxy_ref(t->ns);
    } else {
        r = nsproxy_new(t->ns, flags & ~(uint64_t)CLONE_NEWPID, c->ctx.cred, t->pidns, c->fs, &ns);
        if (r)
            return r;
        if (flags & CLONE_NEWPID) {
            pidns_unref(ns->pid_for_children);
            ns->pid_for_children = pidns_ref(c->pidns);
        }
    }
    if (flags & CLONE_VM) {
        c->ns = ns; /* one memory has one vDSO, and that one time */
        return 0;
    }
    r = nsproxy_for_new_mm(ns, &c->ns);
    nsproxy_unref(ns);
    return r;
}

static int copy_resources(struct task *t, struct task *c, uint64_t flags)
{
    int r;

    if (flags & CLONE_FILES) {
        c->files = fdtable_ref(t->files);
    } else {
        r = fdtable_dup(t->files, &c->files);
        if (r)
            return r;
    }
    if (flags & CLONE_FS) {
        c->fs = fsctx_ref(t->fs);
    } else {
        r = fsctx_dup(t->fs, &c->fs);
        if (r)
            return r;
    }
    r = taskkeys_clone(t, c, flags & CLONE_THREAD);
    return r ? r : copy_namespaces(t, c, flags);
}

static int copy_group(struct task *t, uint64_t flags, int exit_signal, struct tgroup **ret_group)
{
    struct tgroup *g = t->group, *n;
    int r = tgroup_new(g->container, &n);

    if (r)
        return r;
    if (flags & CLONE_SIGHAND) {
        n->sighand = sighand_ref(g->sighand);
    } else {
        r = sighand_dup(g->sighand, &n->sighand);
        if (r) {
            tgroup_unref(n);
            return r;
        }
        if (flags & CLONE_CLEAR_SIGHAND)
            sighand_reset(n->sighand, false);
    }
    memcpy(n->rlimits, g->rlimits, sizeof(n->rlimits));
    n->oom_score_adj = g->oom_score_adj;
    n->tty_given_up = g->tty_given_up;
    n->exit_signal = flags & CLONE_PARENT ? g->exit_signal : exit_signal;
    *ret_group = n;
    return 0;
}

static void copy_fields(const struct task *t, struct task *c, uint64_t flags)
{
    memcpy(c->comm, t->comm, sizeof(c->comm));
    c->blocked = t->restore_blocked ? t->saved_blocked : t->blocked;
    /* An alternate stack is of no use to two tasks in one memory, but for a vfork child, which runs alone. */
    if ((flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
        sigaltstack_reset(c);
    else
        c->altstack = t->altstack;
    c->no_new_privs = t->no_new_privs;
    c->timer_slack_ns = c->timer_slack_default_ns = t->timer_slack_ns;
    c->personality = t->personality;
    c->mce_kill = t->mce_kill;
    c->no_tsc = t->no_tsc;
    c->nice = t->nice;
    c->sched = t->sched;
    if (t->sched.reset_on_fork) {
        c->sched = (struct schedpolicy){0};
        c->nice = c->nice < 0 ? 0 : c->nice;
    }
    c->ioprio = t->ioprio;
    c->mempolicy = t->mempolicy;
    memcpy(c->affinity, t->affinity, sizeof(c->affinity));
    if (!(flags & CLONE_VM)) {
        c->rseq = t->rseq;
        c->rseq_len = t->rseq_len;
        c->rseq_sig = t->rseq_sig;
    }
}

static void vfork_lend(struct task *t, struct task *c)
{
    struct plat_thread *thread = t->thread;

    task_account_cpu(t);
    t->vfork_regs = thread->regs;
    t->vfork_child = c;
    c->vfork_parent = task_ref(t);
    c->thread = c->ctx.thread = thread;
    c->cpu_base_ns = t->cpu_base_ns;
    t->thread = t->ctx.thread = NULL;
    plat_thread_set_owner(thread, c);
}

void task_vfork_give_back(struct task *c)
{
    struct task *t = c->vfork_parent;
    struct plat_thread *thread = c->thread;
    const struct regs *now = &thread->regs;

    if (!t)
        return;
    task_account_cpu(c);
    c->thread = c->ctx.thread = NULL;
    c->vfork_parent = NULL;
    t->vfork_child = NULL;
    t->thread = t->ctx.thread = thread;
    t->cpu_base_ns = c->cpu_base_ns;
    t->resume_flags |= PLAT_SET_REGS;
    if (now->fs_base != t->vfork_regs.fs_base)
        t->resume_flags |= PLAT_SET_FS;
    if (now->gs_base != t->vfork_regs.gs_base)
        t->resume_flags |= PLAT_SET_GS;
    thread->regs = t->vfork_regs;
    plat_thread_set_owner(thread, t);
    task_publish_self(t);
    if (thread->aspace->dead)
        tgroup_exit(t->group, SIGKILL);
    task_unref(t);
}

void task_vfork_orphan(struct task *t)
{
    struct task *c = t->vfork_child;

    if (!c)
        return;
    t->vfork_child = NULL;
    c->vfork_parent = NULL;
    task_unref(t);
}

void task_vfork_release(struct task *c)
{
    struct task *t = c->vfork_waiter;

    if (!t)
        return;
    c->vfork_waiter = NULL;
    t->vfork_done = true;
    waitq_wake_all(&t->vfork_wait);
    task_unref(t);
}

/* The child's memory and host thread. Parks but for a loan. */
static int copy_mm(struct task *t, struct task *c, uint64_t flags)
{
    int r;

    if (flags & CLONE_VM) {
        c->mm = mm_ref(t->mm);
        /* A tracer wants to see either by itself. */
        if ((flags & (CLONE_VFORK | CLONE_THREAD)) == CLONE_VFORK && !ptrace_traced(t))
            return 0; /* lent at the start */
        r = plat_clone_thread(t->thread, &c->thread);
    } else {
        r = plat_fork(t->thread, &c->thread);
        if (!r)
            r = mm_dup(t->mm, c->thread->aspace, &c->mm);
        if (!r)
            r = timens_enter(c->thread, t->ns->time, c->ns->time);
    }
    if (r)
        return r;
    c->ctx.thread = c->thread;
    plat_thread_set_owner(c->thread, c);
    return 0;
}

/* Whether the fork has to begin anew, for the child would lack a signal that its group got meanwhile. */
static bool must_restart(const struct task *t)
{
    return t->ctx.fatal_pending || t->group->fork_missed;
}

/* A task without resources, in a new pid namespace if that is asked for, which cred's user namespace owns. */
static int make_task(struct task *t, const struct clone_args_k *args, struct tgroup *g, const struct cred *cred,
                     struct task **ret_task)
{
    struct pidns *ns;
    int r;

    if (!(args->flags & CLONE_NEWPID))
        return task_new(t->kernel, g, t->ns->pid_for_children, args->wish, ret_task);
    r = pidns_new(t->pidns, cred->userns, &ns);
    if (r)
        return r;
    r = ucharge_take(&ns->charge, UCOUNT_PID_NS, cred->userns, cred->euid);
    if (!r)
        r = task_new(t->kernel, g, ns, args->wish, ret_task);
    pidns_unref(ns);
    return r;
}

static int copy_cred(const struct task *t, uint64_t flags, const struct cred **ret_cred)
{
    struct cred *c;
    int r;

    if (!(flags & CLONE_NEWUSER)) {
        *ret_cred = cred_ref(t->ctx.cred);
        return 0;
    }
    r = task_is_chrooted(t) ? -EPERM : cred_new_userns(t->ctx.cred, &c);
    if (!r)
        *ret_cred = c;
    return r;
}

static int make(struct task *t, const struct clone_args_k *args, struct task **ret_child)
{
    const struct cred *cred = NULL;
    struct tgroup *g = NULL;
    struct task *c = NULL;
    int r = copy_cred(t, args->flags, &cred);

    if (!r)
        r = check_namespaces(t, args->flags, cred);
    if (!r) {
        if (args->flags & CLONE_THREAD)
            g = tgroup_ref(t->group);
        else
            r = copy_group(t, args->flags, args->exit_signal, &g);
    }
    if (!r)
        r = make_task(t, args, g, cred, &c);
    tgroup_unref(g);
    if (r) {
        cred_unref(cred);
        return r;
    }
    c->ctx.cred = cred;
    copy_fields(t, c, args->flags);
    r = copy_resources(t, c, args->flags);
    if (!r && ptrace_traced(t))
        r = ptrace_prepare(c);
    if (!r)
        r = copy_mm(t, c, args->flags);
    if (!r && must_restart(t))
        r = -ERESTARTNOINTR;
    if (r) {
        task_abandon(c);
        return r;
    }
    *ret_child = c;
    return 0;
}

int task_clone(struct task *t, const struct clone_args_k *args, struct task **ret_child)
{
    struct tgroup *g = t->group;
    int r = check_flags(t, args->flags);

    if (!r)
        r = check_limits(t);
    if (r)
        return r;
    /* Signals that came before the child existed are the parent's. */
    if (t->ctx.signal_pending)
        return -ERESTARTNOINTR;
    if (g->forks_in_flight++ == 0)
        g->fork_missed = 0;
    r = make(t, args, ret_child);
    g->forks_in_flight--;
    return r;
}

static void publish(struct task *t, const struct clone_args_k *args, struct task *c)
{
    struct tgroup *g = t->group, *parent = g;

    if (!(args->flags & CLONE_THREAD)) {
        if (args->flags & CLONE_PARENT) {
            parent = g->parent;
            c->group->parent_task = g->parent_task;
        } else {
            c->group->parent_task = t;
        }
    }
    guest_seccomp_fork(t, c);
    task_publish(c, parent);
    if (!(args->flags & CLONE_THREAD))
        itimers_watch_cpu_limit(c->group);
    if (!(args->flags & CLONE_THREAD) && g->pgrp)
        pgrp_join(c->group, pgrp_ref(g->pgrp));
    else if (g->stop_signal) { /* a group stop is under way: the new thread takes part */
        c->stop_pending = c->stop_counted = true;
        g->stop_count++;
    }
    signal_recalc(c);
}

static void set_up_child(struct task *t, const struct clone_args_k *args, struct task *c)
{
    struct regs *regs = &c->thread->regs;
    uint32_t tid = (uint32_t)task_tid_for(c, c);

    *regs = t->vfork_child == c ? t->vfork_regs : t->thread->regs;
    regs->rax = 0;
    regs->orig_rax = UINT64_MAX;
    if (t->ptrace && t->ptrace->forced_tf)
        regs->rflags &= ~0x100ULL; /* a step is the parent's alone */
    if (args->stack)
        regs->rsp = args->stack;
    c->resume_flags = PLAT_SET_REGS;
    if (args->flags & CLONE_SETTLS) {
        regs->fs_base = args->tls;
        c->resume_flags |= PLAT_SET_FS;
    }
    /* Linux ignores faults here as well. */
    if (args->flags & CLONE_CHILD_SETTID)
        (void)!copy_out(&c->ctx, args->child_tid, &tid, sizeof(tid));
    if (args->flags & CLONE_CHILD_CLEARTID)
        c->clear_child_tid = args->child_tid;
}

int64_t task_clone_start(struct task *t, const struct clone_args_k *args, OWNS struct task *c)
{
    int64_t tid = task_tid_for(c, t);
    bool vfork = args->flags & CLONE_VFORK;
    int event = ptrace_clone_event(t, args->flags, args->exit_signal);
    uint64_t message = 0;

    task_ref(c);
    publish(t, args, c);
    if (ptrace_traced(t))
        message = (uint64_t)task_tid_in(c, t->ptrace->tracer->pidns);
    if (event || (args->flags & CLONE_PTRACE))
        ptrace_follow(t, c);

    if (args->flags & CLONE_PARENT_SETTID) {
        uint32_t number = (uint32_t)tid;

        (void)!copy_out(&t->ctx, args->parent_tid, &number, sizeof(number));
    }
    if (vfork) {
        t->vfork_done = false;
        c->vfork_waiter = task_ref(t);
    }
    if (!c->thread)
        vfork_lend(t, c);
    set_up_child(t, args, c);
    task_run_start(c);
    task_unref(c);
    if (event)
        (void)ptrace_event(t, event, message);
    if (vfork) {
        (void)!WAIT_EVENT_STATE(&t->ctx, &t->vfork_wait, t->vfork_done, CTX_WAIT_KILLABLE, WAIT_FOREVER);
        if (t->vfork_done)
            (void)ptrace_event(t, PT_EVENT_VFORK_DONE, message);
    }
    return tid;
}

void task_clone_cancel(OWNS struct task *c)
{
    task_abandon(c);
}
