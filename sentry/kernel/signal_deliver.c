/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery: restart of interrupted calls, frames for handlers, default actions, group stops. */
#include "sentry/kernel/signal_deliver.h"

#include <errno.h>
#include <string.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/coredump.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/sigframe_x86_64.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/tgroup.h"

enum { NR_RESTART_SYSCALL = 219, SYSCALL_INSN = 2 };

bool signal_join_stop(struct task *t)
{
    struct tgroup *g = t->group;
    bool counted = t->stop_counted;

    t->stop_pending = t->stop_counted = false;
    if (!counted || !g->stop_count || --g->stop_count || !g->stop_signal || g->stopped)
        return false;
    g->stopped = true;
    g->stop_reported = false;
    g->continued = false;
    return true;
}

void signal_leave_stop(struct task *t)
{
    if (t->stop_pending && signal_join_stop(t))
        tgroup_notify_stop(t->group, false);
}

void signal_take_stop(struct task *t)
{
    struct tgroup *g = t->group;

    if (signal_join_stop(t))
        tgroup_notify_stop(g, false);
    signal_recalc(t);
    if (!g->stop_signal)
        return;
    t->state = TASK_STOPPED;
    (void)!WAIT_EVENT_STATE(&t->ctx, &g->stop_wait, !g->stop_signal || t->exiting || ptrace_wants_stop(t),
                            CTX_WAIT_KILLABLE, WAIT_FOREVER);
    t->state = TASK_KERNEL;
}

/* A stop signal's default action: all threads are to stop. One that its tracer let go on may begin a stop anew. */
static void start_stop(struct task *t, int signo)
{
    struct tgroup *g = t->group;

    if (g->group_exiting || g->group_exec || t->stop_pending || (g->stop_signal && !ptrace_traced(t)))
        return;
    if (!g->stopped)
        g->stop_signal = signo;
    g->stop_count = 0;
    for (struct task *o = tgroup_first(g); o; o = tgroup_next(g, o)) {
        if (o->exiting || (o != t && o->state == TASK_STOPPED && !ptrace_is_stopped(o)))
            continue;
        o->stop_pending = o->stop_counted = true;
        g->stop_count++;
        signal_recalc(o);
        if (o == t)
            continue;
        ptrace_trap_notify(o);
        task_kick(o);
    }
}

static bool wants_restart(const struct task *t)
{
    const struct regs *regs = &t->thread->regs;
    int64_t rax = (int64_t)regs->rax;

    /* The registers alone tell: a tracer may have put those of an interrupted call back, or have called it off. */
    return (int64_t)regs->orig_rax != -1 && !t->restart_off && rax <= -ERESTARTSYS && rax >= -ERESTART_RESTARTBLOCK;
}

void signal_fix_restart(struct task *t, const struct sigaction_k *action)
{
    struct regs *regs = &t->thread->regs;
    uint64_t number = regs->orig_rax;

    if (!wants_restart(t))
        return;
    t->restart_off = true;
    t->resume_flags |= PLAT_SET_REGS;
    switch (-(int64_t)regs->rax) {
    case ERESTARTSYS:
        if (action && !(action->flags & SA_RESTART)) {
            regs->rax = (uint64_t)-EINTR;
            return;
        }
        break;
    case ERESTARTNOINTR:
        break;
    case ERESTART_RESTARTBLOCK:
        number = NR_RESTART_SYSCALL;
        /* fall through */
    default: /* ERESTARTNOHAND */
        if (action) {
            regs->rax = (uint64_t)-EINTR;
            return;
        }
    }
    regs->rax = number;
    regs->rip -= SYSCALL_INSN;
}

static void run_handler(struct task *t, int signo, const siginfo_t *info, const struct sigaction_k *action)
{
    sigset_k old = t->restore_blocked ? t->saved_blocked : t->blocked, mask;
    siginfo_t segv;
    bool stepped = ptrace_traced(t) && t->ptrace->forced_tf;

    signal_fix_restart(t, action);
    if (stepped)
        ptrace_disarm_step(t);
    if (sigframe_push(t, signo, info, action, old)) {
        if (t->thread->aspace->dead) {
            tgroup_exit(t->group, SIGKILL); /* there is no memory to fault in: the host has ended it */
            return;
        }
        /* No room for a frame of SIGSEGV's own handler: it must not try again. */
        if (signo == SIGSEGV)
            t->group->sighand->actions[SIGSEGV - 1].handler = 0;
        siginfo_kernel(&segv, SIGSEGV, SI_KERNEL);
        signal_force(t, &segv);
        return;
    }
    t->restore_blocked = false;
    mask = t->blocked | action->mask;
    if (!(action->flags & SA_NODEFER))
        mask |= SIGBIT(signo);
    signal_set_blocked(t, mask);
    if (stepped)
        ptrace_stepped_into_handler(t);
}

static void run_default(struct task *t, int signo, const siginfo_t *info)
{
    struct tgroup *g = t->group;

    if (SIGBIT(signo) & SIGSET_IGNORE)
        return;
    if (SIGBIT(signo) & SIGSET_STOP) {
        /* Nobody could continue an orphaned group. */
        if (signo != SIGSTOP && (!g->pgrp || pgrp_is_orphaned(g->pgrp)))
            return;
        start_stop(t, signo);
        return;
    }
    if (SIGBIT(signo) & SIGSET_CORE)
        coredump(t, info);
    else
        tgroup_exit(g, signo);
}

bool signal_deliver(struct task *t)
{
    struct sigaction_k *action, copy;
    bool traced = ptrace_traced(t);
    siginfo_t info;
    int signo;

    if (t->exiting || t->group->group_exiting)
        return false;
    if (traced && (t->stop_pending || ptrace_wants_stop(t))) {
        ptrace_stop_for_job(t);
        return true;
    }
    if (t->stop_pending) {
        signal_take_stop(t);
        return true;
    }
    signo = signal_dequeue(t, ~t->blocked, &info);
    if (!signo)
        return false;
    if (traced && signo != SIGKILL) {
        signo = ptrace_stop_for_signal(t, signo, &info);
        if (!signo)
            return true;
    }
    action = &t->group->sighand->actions[signo - 1];
    if (action->handler == 1)
        return true;
    if (action->handler == 0) {
        if (!t->group->unkillable || (SIGBIT(signo) & SIGSET_UNBLOCKABLE))
            run_default(t, signo, &info);
        return true;
    }
    copy = *action;
    if (copy.flags & SA_RESETHAND)
        action->handler = 0;
    run_handler(t, signo, &info, &copy);
    return true;
}
