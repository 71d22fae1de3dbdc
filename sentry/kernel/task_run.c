/* SPDX-License-Identifier: Apache-2.0 */
/* The run loop of tasks. Each event is handled on a fiber from start to end: the call or fault itself, then what must be
 * done before guest code runs again (signals, stops, exit), then the resumption, after which the task is not touched. */
#include "sentry/kernel/task_run.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/fiber.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/ptrace_debug.h"
#include "sentry/kernel/sigframe_x86_64.h"
#include "sentry/kernel/signal_deliver.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_exit.h"
#include "sentry/mm/mm.h"

/* The layer above: syscalls/dispatch.h. */
int64_t syscall_dispatch(struct task *t, uint64_t nr, const uint64_t args[6]);
bool syscall_local_enter(struct task *t, uint64_t nr, const uint64_t args[6]);
void syscall_local_exit(struct task *t, int64_t result);
void syscall_local_drop(struct task *t);

static inline bool is_restart(uint64_t rax)
{
    return (int64_t)rax <= -ERESTARTSYS && (int64_t)rax >= -ERESTART_RESTARTBLOCK;
}

static void resume(struct task *t)
{
    unsigned flags = t->resume_flags, local = t->local;
    uint64_t fpu_addr = t->fpu_addr;

    t->resume_flags = 0;
    t->fpu_addr = 0;
    t->in_syscall = false;
    t->restart_off = false;
    t->sysno = -1;
    t->handling = false;
    if (likely(t->thread->shared != NULL)) {
        t->thread->shared->sig_blocked = t->blocked;
        t->thread->shared->sig_pending = t->pending.set | t->group->pending.set;
    }
    /* An exec or a thread that was lent may have brought one that is set otherwise. */
    if (unlikely(t->thread->no_tsc != t->no_tsc))
        plat_set_tsc(t->thread, !t->no_tsc);
    t->state = TASK_GUEST;
    t->local = TASK_LOCAL_NO;
    if (unlikely(local))
        plat_thread_run_local(t->thread, flags, local == TASK_LOCAL_TELL);
    else
        plat_thread_resume(t->thread, flags, fpu_addr);
}

/* Everything that stands between the kernel and guest code. Return: false when the task has ended. */
static bool settle(struct task *t)
{
    /* A frame has to show the result of a call that the backend was yet to run. */
    if (t->thread && plat_thread_flush_tail(t->thread))
        tgroup_exit(t->group, SIGKILL);
    for (;;) {
        while (t->ctx.signal_pending && signal_deliver(t))
            ;
        if (t->exiting || t->group->group_exiting) {
            task_exit(t);
            return false;
        }
        if (is_restart(t->thread->regs.rax))
            signal_fix_restart(t, NULL);
        if (!t->restore_blocked)
            return true;
        /* No handler's frame took the mask that the call had put aside. */
        t->restore_blocked = false;
        signal_set_blocked(t, t->saved_blocked);
    }
}

/* What a call leaves to do. */
static bool has_work(const struct task *t)
{
    return t->ctx.signal_pending || t->restore_blocked || t->exiting ||
           ((t->in_syscall || t->ptrace) && !t->restart_off && is_restart(t->thread->regs.rax));
}

static void finish(struct task *t)
{
    /* A signal comes before a call that has not begun; but whose beginning was shown, that has to end first. */
    if (unlikely(t->local && ptrace_sees_calls(t) && t->ctx.signal_pending && !t->ctx.fatal_pending)) {
        struct plat_thread *thread = t->thread;

        resume(t);
        plat_thread_kick(thread);
        return;
    }
    if (unlikely(t->local && (t->ctx.signal_pending || t->exiting))) {
        t->local = TASK_LOCAL_NO;
        syscall_local_drop(t);
        t->thread->regs.rax = (uint64_t)-ERESTARTNOINTR;
    }
    if (unlikely(has_work(t)) && !settle(t))
        return;
    resume(t);
}

static void note_call(struct task *t)
{
    const struct regs *regs = &t->thread->regs;

    t->sysno = (int64_t)regs->orig_rax;
    t->sysargs[0] = regs->rdi;
    t->sysargs[1] = regs->rsi;
    t->sysargs[2] = regs->rdx;
    t->sysargs[3] = regs->r10;
    t->sysargs[4] = regs->r8;
    t->sysargs[5] = regs->r9;
}

/* Filters of the guest's own. Return: whether the call is to run. */
static bool judged(struct task *t)
{
    int64_t result = 0;

    switch (guest_seccomp_enter(t, false, &result)) {
    case GUEST_SECCOMP_RUN:
        return true;
    case GUEST_SECCOMP_RESULT:
        if (t->thread)
            t->thread->regs.rax = (uint64_t)result;
        return false;
    case GUEST_SECCOMP_LEAVE:
        break;
    }
    if (t->thread)
        t->thread->regs.rax = t->thread->regs.orig_rax;
    t->restart_off = true; /* whatever the number in rax looks like */
    return false;
}

/* A new call's beginning is shown to whoever wants to see it, and judged. Return: whether the call is to be made. */
static bool enter_call(struct task *t)
{
    if (unlikely(t->ptrace) && !ptrace_syscall_enter(t))
        return false;
    return likely(!t->seccomp_mode) || judged(t);
}

static void run_syscall(struct task *t)
{
    uint64_t nr;
    int64_t r;

    t->in_syscall = true;
    note_call(t);
    if (t->event.declined) {
        syscall_local_drop(t);
    } else if (!enter_call(t)) {
        if (unlikely(t->ptrace))
            ptrace_syscall_exit(t);
        return;
    }
    nr = t->thread->regs.orig_rax;
    if (!t->event.declined && unlikely(task_asks(t, nr)) && plat_serves(t->thread->aspace->platform, nr)) {
        t->local = syscall_local_enter(t, nr, t->sysargs) || ptrace_sees_calls(t) ? TASK_LOCAL_TELL : TASK_LOCAL_RUN;
        return;
    }
    r = syscall_dispatch(t, nr, t->sysargs);
    /* The thread may be another one (exec), or gone (killed in vfork). */
    if (t->thread && !t->restart_off)
        t->thread->regs.rax = (uint64_t)r;
    if (unlikely(t->ptrace))
        ptrace_syscall_exit(t);
}

static void run_fault(struct task *t)
{
    const struct plat_event *e = &t->event;
    siginfo_t info;
    int code = e->code;

    t->fault_trapno = e->trapno;
    t->fault_error = e->error_code;
    t->fault_addr = e->addr;
    if (e->on_resume && sigframe_undo(t) == SIGSEGV)
        t->group->sighand->actions[SIGSEGV - 1].handler = 0;
    /* Below its lowest address a stack ends in unmapped memory, as far as guests know. */
    if (e->signo == SIGSEGV && t->mm && e->addr < t->mm->stack_low &&
        t->mm->stack_low - e->addr <= MM_STACK_GUARD)
        code = SEGV_MAPERR;
    if (unlikely(t->ptrace) && e->signo == SIGTRAP && code == TRAP_TRACE && !ptrace_debug_trap(t, &code))
        return;
    siginfo_kernel(&info, e->signo, code);
    info.si_addr = (void *)(uintptr_t)e->addr;
    signal_force(t, &info);
}

static void handle_event(void *arg)
{
    struct task *t = arg;

    fiber_set_owner(t);
    switch (t->event.kind) {
    case PLAT_EVENT_SYSCALL:
        run_syscall(t);
        break;
    case PLAT_EVENT_FAULT:
        run_fault(t);
        break;
    case PLAT_EVENT_LOCAL:
        t->in_syscall = true;
        t->sysno = (int64_t)t->thread->regs.orig_rax;
        syscall_local_exit(t, (int64_t)t->thread->regs.rax);
        if (unlikely(t->ptrace))
            ptrace_syscall_exit(t);
        break;
    case PLAT_EVENT_KICK:
        break;
    }
    finish(t);
}

/* Handles the event until it has to wait; what that takes is the process's system time. */
static int start_fiber(struct task *t)
{
    struct tgroup *g = tgroup_ref(t->group);
    uint64_t start = host_monotonic_ns();
    int r = fiber_start(handle_event, t); /* t may be gone after it */

    g->stime_ns += host_monotonic_ns() - start;
    tgroup_unref(g);
    return r;
}

static void on_event(struct plat_thread *thread, void *owner, const struct plat_event *event)
{
    struct task *t = owner;

    if (t->handling)
        return; /* killed meanwhile: the fiber that sees to it ends the thread */
    t->handling = true;
    t->state = TASK_KERNEL;
    t->event = *event;
    signal_import_blocked(t);
    if (unlikely(t->undo) && !event->on_resume)
        t->undo->valid = false;
    if (likely(!start_fiber(t)))
        return;
    /* No stack to be had: a call fails, anything else comes again by itself. */
    if (event->kind == PLAT_EVENT_SYSCALL)
        thread->regs.rax = (uint64_t)-ENOMEM;
    resume(t);
    if (event->kind != PLAT_EVENT_SYSCALL)
        plat_thread_kick(thread);
}

static void on_death(struct plat_thread *thread, void *owner, int signo)
{
    struct task *t = owner;

    log_debug("task %d: host process died of signal %d", task_tid_in(t, t->pidns), signo);
    t->died_host = true;
    tgroup_exit(t->group, SIGKILL);
    if (t->state == TASK_GUEST)
        task_run_spawn(t);
}

const struct plat_client task_run_client = {.on_event = on_event, .on_death = on_death};

void task_run_spawn(struct task *t)
{
    if (t->handling)
        return;
    t->handling = true;
    t->state = TASK_KERNEL;
    memset(&t->event, 0, sizeof(t->event));
    t->event.kind = PLAT_EVENT_KICK;
    /* Without a stack now the timer of the dying process, or the next event, comes back to it. */
    if (fiber_spawn(handle_event, t)) {
        t->handling = false;
        t->state = TASK_GUEST;
    }
}

void task_run_start(struct task *t)
{
    task_publish_self(t);
    if (t->ctx.signal_pending || t->exiting) {
        task_run_spawn(t);
        return;
    }
    resume(t);
}

static void run_first(void *arg)
{
    struct task *t = arg;
    void (*fn)(struct task *t) = t->first_fn;

    t->first_fn = NULL;
    fiber_set_owner(t);
    fn(t);
    signal_recalc(t);
    finish(t);
}

int task_run_first(struct task *t, void (*fn)(struct task *t))
{
    int r;

    t->handling = true;
    t->state = TASK_KERNEL;
    t->first_fn = fn;
    r = fiber_spawn(run_first, t);
    if (r)
        t->handling = false;
    return r;
}
