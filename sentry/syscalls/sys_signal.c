/* SPDX-License-Identifier: Apache-2.0 */
/* Signal dispositions, masks, waits and alternate stacks. */
#include "syscalls_gen.h"

#include <errno.h>
#include <signal.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/sigframe_x86_64.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"
#include "sentry/mm/usermem.h"

enum { ALTSTACK_MIN = 2048 };

int64_t sys_rt_sigaction(struct task *t, int32_t sig, uaddr_t act_addr, uaddr_t old_addr, uint64_t size)
{
    struct sigaction_k act, old;
    bool set = !uaddr_is_null(act_addr);
    int r;

    if (size != sizeof(sigset_k))
        return -EINVAL;
    if (set && COPY_IN(&t->ctx, &act, act_addr))
        return -EFAULT;
    r = signal_set_action(t, sig, set ? &act : NULL, &old);
    if (!r && !uaddr_is_null(old_addr))
        r = COPY_OUT(&t->ctx, old_addr, &old);
    return r;
}

int64_t sys_rt_sigprocmask(struct task *t, int32_t how, uaddr_t set_addr, uaddr_t old_addr, uint64_t size)
{
    sigset_k old = t->blocked, set;

    if (size != sizeof(set))
        return -EINVAL;
    if (!uaddr_is_null(set_addr)) {
        if (COPY_IN(&t->ctx, &set, set_addr))
            return -EFAULT;
        switch (how) {
        case SIG_BLOCK:
            set |= old;
            break;
        case SIG_UNBLOCK:
            set = old & ~set;
            break;
        case SIG_SETMASK:
            break;
        default:
            return -EINVAL;
        }
        signal_set_blocked(t, set);
    }
    return uaddr_is_null(old_addr) ? 0 : COPY_OUT(&t->ctx, old_addr, &old);
}

int64_t sys_rt_sigreturn(struct task *t)
{
    siginfo_t info;

    t->restart_off = true;
    if (sigframe_pop(t)) {
        siginfo_kernel(&info, SIGSEGV, SI_KERNEL);
        signal_force(t, &info);
    }
    return (int64_t)t->thread->regs.rax;
}

int64_t sys_rt_sigpending(struct task *t, uaddr_t addr, uint64_t size)
{
    sigset_k set = signal_pending_set(t) & t->blocked;

    if (size > sizeof(set))
        return -EINVAL;
    return copy_out(&t->ctx, addr, &set, size);
}

int64_t sys_rt_sigtimedwait(struct task *t, uaddr_t set_addr, uaddr_t info_addr, uaddr_t timeout, uint64_t size)
{
    uint64_t deadline;
    siginfo_t info;
    sigset_k set;
    int r, sig;

    if (size != sizeof(set))
        return -EINVAL;
    if (COPY_IN(&t->ctx, &set, set_addr))
        return -EFAULT;
    set &= ~SIGSET_UNBLOCKABLE;
    r = timekeeper_timeout_in(&t->ctx, timeout.v, &deadline);
    if (r)
        return r;
    r = WAIT_EVENT_UNTIL(&t->ctx, &t->signal_wait, signal_pending_set(t) & set, deadline);
    sig = signal_dequeue(t, set, &info);
    if (!sig)
        return r == -ETIMEDOUT ? -EAGAIN : r == -ERESTARTSYS || !r ? -EINTR : r;
    if (!uaddr_is_null(info_addr) && COPY_OUT(&t->ctx, info_addr, &info))
        return -EFAULT;
    return sig;
}

/* Sleeps until a handler is to run. */
static int64_t sleep_for_signal(struct task *t)
{
    int r = ctx_sleep_until(&t->ctx, WAIT_FOREVER);

    return r == -ENOMEM ? r : -ERESTARTNOHAND;
}

int64_t sys_rt_sigsuspend(struct task *t, uaddr_t set_addr, uint64_t size)
{
    sigset_k set;

    if (size != sizeof(set))
        return -EINVAL;
    if (COPY_IN(&t->ctx, &set, set_addr))
        return -EFAULT;
    t->saved_blocked = t->blocked;
    t->restore_blocked = true;
    signal_set_blocked(t, set);
    return sleep_for_signal(t);
}

int64_t sys_pause(struct task *t)
{
    return sleep_for_signal(t);
}

int64_t sys_restart_syscall(struct task *t)
{
    return t->restart_fn ? t->restart_fn(t) : -EINTR;
}

int64_t sys_sigaltstack(struct task *t, uaddr_t set_addr, uaddr_t old_addr)
{
    uint64_t sp = t->thread->regs.rsp;
    struct sigaltstack_k old = sigaltstack_get(t, sp), set;
    int r = 0;

    if (!uaddr_is_null(set_addr)) {
        if (COPY_IN(&t->ctx, &set, set_addr))
            return -EFAULT;
        r = sigaltstack_set(t, &set, sp, ALTSTACK_MIN);
    }
    if (!r && !uaddr_is_null(old_addr))
        r = COPY_OUT(&t->ctx, old_addr, &old);
    return r;
}
