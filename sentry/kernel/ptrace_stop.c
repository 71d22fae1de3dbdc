/* SPDX-License-Identifier: Apache-2.0 */
/* The stops of a traced task, and how its tracer ends them. A stopped task waits on its own fiber. */
#include "sentry/kernel/ptrace.h"

#include <errno.h>
#include <string.h>

#include "sentry/kernel/ptrace_debug.h"
#include "sentry/kernel/ptrace_priv.h"
#include "sentry/kernel/signal_deliver.h"
#include "sentry/kernel/tgroup.h"

/* What a wait by the tracer reports of the stop. code: CLD_*. */
static void tell_tracer(struct task *t, int code)
{
    const struct ptrace_state *p = t->ptrace;
    struct tgroup *to = p->tracer->group;
    const struct sigaction_k *action = &to->sighand->actions[SIGCHLD - 1];
    siginfo_t info;

    if (action->handler != (uint64_t)(uintptr_t)SIG_IGN && !(action->flags & SA_NOCLDSTOP)) {
        siginfo_user(&info, SIGCHLD, code, task_tid_for(t, p->tracer), t->ctx.cred->uid);
        info.si_status = p->code & 0x7f;
        (void)signal_send_group(to, &info);
    }
    waitq_wake_all(&to->child_wait);
}

/* Takes part in the group stop that is pending for t. */
static void join_group_stop(struct task *t)
{
    bool foreign = ptrace_is_foreign(t);

    /* A parent that is the tracer as well hears of it by the tracer's way alone. */
    if (signal_join_stop(t) && foreign)
        tgroup_notify_stop(t->group, false);
}

/* Stops until the tracer lets t go on, lets it go altogether, or t is killed (but not in its last stop, final).
 * info: the signal of this stop, NULL none. Return: the signal to go on with, 0 none. */
static int stop(struct task *t, int code, int why, const siginfo_t *info, bool final)
{
    struct ptrace_state *p = ptrace_of(t);

    if (!p || (t->ctx.fatal_pending && !final))
        return 0;
    /* What the tracer looks at and changes is the memory itself. */
    if (t->thread && plat_thread_flush_tail(t->thread))
        return 0;
    if (t->thread && plat_thread_sync(t->thread))
        t->thread->regs.rax = (uint64_t)-EFAULT;
    p = ptrace_of(t);
    if (!p || (t->ctx.fatal_pending && !final))
        return 0;
    ptrace_disarm_step(t);
    p->code = code;
    p->has_info = info != NULL;
    if (info)
        p->info = *info;
    p->signo = 0;
    p->resumed = p->listening = false;
    p->stopped = true;
    t->state = TASK_STOPPED;
    if (why == CLD_STOPPED && t->stop_pending)
        join_group_stop(t);
    p->trap_stop = false;
    if (code >> 8 == PT_EVENT_STOP)
        p->trap_notify = false;
    signal_recalc(t);
    tell_tracer(t, why);
    waitq_wake_all(&p->wait); /* whoever attaches */
    (void)!WAIT_EVENT_STATE(&t->ctx, &p->wait, p->resumed || !p->tracer || (p->listening && p->trap_notify),
                            final ? CTX_WAIT_UNINTERRUPTIBLE : CTX_WAIT_KILLABLE, WAIT_FOREVER);
    t->state = TASK_KERNEL;
    p->stopped = p->listening = p->delivers = false;
    p->code = 0;
    p->message = 0;
    p->has_info = false;
    signal_recalc(t);
    if (t->thread)
        ptrace_arm_step(t);
    task_publish_self(t);
    waitq_wake_all(&p->wait);
    return p->signo;
}

/* A stop that is about no signal of t's: code is its whole number. */
static int stop_notify(struct task *t, int code, int why, bool final)
{
    siginfo_t info;

    siginfo_user(&info, code & 0x7f, code, task_tid_for(t, t), t->ctx.cred->uid);
    return stop(t, code, why, &info, final);
}

/* The tracer goes on with a signal where none was to be delivered. */
static void send_injected(struct task *t, int signo)
{
    siginfo_t info;

    if (!signo)
        return;
    siginfo_kernel(&info, signo, SI_KERNEL);
    (void)signal_send_task(t, &info);
}

void ptrace_stop_for_job(struct task *t)
{
    struct ptrace_state *p = t->ptrace;
    const struct tgroup *g = t->group;
    bool in_force = g->stop_signal && (g->stop_count || g->stopped);
    int signo = g->stop_signal ? g->stop_signal : p->stop_signo ? p->stop_signo : SIGSTOP;

    p->stop_signo = signo;
    if (p->seized)
        stop_notify(t, (in_force ? signo : SIGTRAP) | PT_EVENT_STOP << 8, CLD_STOPPED, false);
    else
        stop(t, signo, CLD_STOPPED, NULL, false);
}

int ptrace_stop_for_signal(struct task *t, int signo, siginfo_t *info)
{
    struct ptrace_state *p = t->ptrace;
    struct task *tracer = p->tracer;

    p->delivers = true;
    signo = stop(t, signo, CLD_TRAPPED, info, false);
    if (!signo)
        return 0;
    if (signo == p->info.si_signo) {
        *info = p->info;
    } else {
        tracer = p->tracer;
        siginfo_user(info, signo, SI_USER, tracer ? task_tid_for(tracer, t) : 0, tracer ? tracer->ctx.cred->uid : 0);
    }
    if ((t->blocked & SIGBIT(signo)) || t->ctx.fatal_pending) {
        (void)signal_send_task(t, info);
        return 0;
    }
    return signo;
}

static int syscall_stop(struct task *t, uint64_t message)
{
    struct ptrace_state *p = t->ptrace;

    p->message = message;
    return stop_notify(t, SIGTRAP | (p->options & PT_O_TRACESYSGOOD ? 0x80 : 0), CLD_TRAPPED, false);
}

/* The tracer may have made another call of it. */
static void reload_call(struct task *t)
{
    const struct regs *r = &t->thread->regs;
    const uint64_t args[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};

    t->sysno = (int64_t)r->orig_rax;
    memcpy(t->sysargs, args, sizeof(args));
}

bool ptrace_syscall_enter(struct task *t)
{
    struct ptrace_state *p = ptrace_of(t);
    bool emulated;

    if (!p || (p->how != PTRACE_HOW_SYSCALL && p->how < PTRACE_HOW_SYSEMU))
        return true;
    emulated = p->how >= PTRACE_HOW_SYSEMU;
    t->thread->regs.rax = (uint64_t)-ENOSYS;
    send_injected(t, syscall_stop(t, PT_MSG_SYSCALL_ENTRY));
    reload_call(t);
    return !emulated && !t->ctx.fatal_pending && (int64_t)t->thread->regs.orig_rax != -1;
}

void ptrace_syscall_exit(struct task *t)
{
    struct ptrace_state *p = ptrace_of(t);
    siginfo_t info;

    if (!p || !t->thread || t->exiting || t->group->group_exiting)
        return;
    if (ptrace_is_watching(p))
        ptrace_debug_refresh(t);
    if (p->how == PTRACE_HOW_STEP || p->how == PTRACE_HOW_SYSEMU_STEP) {
        if (plat_thread_flush_tail(t->thread))
            return;
        siginfo_kernel(&info, SIGTRAP, TRAP_BRKPT);
        info.si_addr = (void *)(uintptr_t)t->thread->regs.rip;
        signal_force(t, &info);
        return;
    }
    if (p->how == PTRACE_HOW_SYSCALL)
        send_injected(t, syscall_stop(t, PT_MSG_SYSCALL_EXIT));
}

bool ptrace_event_wanted(const struct task *t, int event)
{
    const struct ptrace_state *p = ptrace_of(t);

    return p && (p->options & 1U << event);
}

bool ptrace_event(struct task *t, int event, uint64_t message)
{
    if (!ptrace_event_wanted(t, event))
        return false;
    t->ptrace->message = message;
    (void)stop_notify(t, SIGTRAP | event << 8, CLD_TRAPPED, event == PT_EVENT_EXIT);
    return true;
}

bool ptrace_event_seccomp(struct task *t, uint16_t data)
{
    t->thread->regs.rax = (uint64_t)-ENOSYS;
    if (!ptrace_event(t, PT_EVENT_SECCOMP, data))
        return false;
    reload_call(t);
    return true;
}

void ptrace_event_exec(struct task *t, int old_tid)
{
    siginfo_t info;

    if (ptrace_event(t, PT_EVENT_EXEC, (uint64_t)old_tid) || !ptrace_traced(t) || t->ptrace->seized)
        return;
    siginfo_user(&info, SIGTRAP, SI_USER, tgroup_pid_for(t->group, t), t->ctx.cred->uid);
    (void)signal_send_task(t, &info);
}

void ptrace_event_exit(struct task *t)
{
    int status = t->group->group_exiting ? t->group->exit_status : t->exit_code;

    (void)ptrace_event(t, PT_EVENT_EXIT, (uint64_t)status);
}

void ptrace_stepped_into_handler(struct task *t)
{
    (void)stop_notify(t, SIGTRAP, CLD_TRAPPED, false);
}

void ptrace_trap_notify(struct task *t)
{
    struct ptrace_state *p = ptrace_of(t);

    if (!p || !p->seized)
        return;
    p->trap_notify = true;
    signal_recalc(t);
    if (!p->stopped)
        task_kick(t);
    else if (p->listening)
        waitq_wake_all(&p->wait);
}

void ptrace_resume(struct task *t, enum ptrace_how how, int signo)
{
    struct ptrace_state *p = t->ptrace;

    p->how = how;
    p->signo = signo;
    p->code = 0;
    p->resumed = true;
    waitq_wake_all(&p->wait);
}

int ptrace_interrupt(struct task *t)
{
    struct ptrace_state *p = t->ptrace;

    if (!p->seized)
        return -EIO;
    if (t->exiting || t->group->group_exiting)
        return 0;
    p->trap_stop = true;
    signal_recalc(t);
    if (!p->stopped) {
        task_kick(t);
    } else if (p->listening) {
        p->trap_notify = true;
        waitq_wake_all(&p->wait);
    }
    return 0;
}

int ptrace_listen(struct task *t)
{
    struct ptrace_state *p = t->ptrace;

    if (!p->seized || !p->has_info || p->info.si_code >> 8 != PT_EVENT_STOP)
        return -EIO;
    p->listening = true;
    if (p->trap_notify)
        waitq_wake_all(&p->wait);
    return 0;
}
