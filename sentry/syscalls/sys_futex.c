/* SPDX-License-Identifier: Apache-2.0 */
/* futex and robust lists. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "platform/platform.h"
#include "sentry/abi/abi_time.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"
#include "sentry/mm/usermem.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

enum { ROBUST_HEAD_SIZE = 24 };
enum { NR_WAITV = 449, NR_WAKE = 454, NR_WAIT = 455, NR_REQUEUE = 456 }; /* not in older headers */

/* PI lock times are absolute. */
static int lock_deadline(struct task *t, int32_t clockid, uaddr_t timeout, uint64_t *ret_deadline_ns)
{
    struct timespec ts;
    int r;

    *ret_deadline_ns = WAIT_FOREVER;
    if (uaddr_is_null(timeout))
        return 0;
    r = COPY_IN(&t->ctx, &ts, timeout);
    if (r)
        return r;
    if (!timespec_valid(&ts))
        return -EINVAL;
    *ret_deadline_ns = MAX(timekeeper_deadline(t, clockid, true, timespec_to_ns(&ts)), 1UL);
    return 0;
}

/* Waits and wakes belong to the host's futexes, where all threads of the guests wait; threads make these calls by themselves
 * and only come here when their backend can't. */
static int64_t on_host(struct task *t, uaddr_t addr, int32_t op, uint32_t val, uaddr_t timeout, uaddr_t addr2,
                       uint32_t val3)
{
    struct plat_hostcall call = {.nr = SYS_futex, .fd = -1,
                                 .args = {addr.v, (uint32_t)op, val, timeout.v, addr2.v, val3}};

    plat_thread_tail_hostcall(t->thread, &call);
    return 0;
}

int64_t sys_futex(struct task *t, uaddr_t addr, int32_t op, uint32_t val, uaddr_t timeout, uaddr_t addr2,
                  uint32_t val3)
{
    bool realtime = op & FUTEX_CLOCK_REALTIME;
    int cmd = op & FUTEX_CMD_MASK, r;
    uint64_t deadline;

    if (realtime && cmd != FUTEX_WAIT && cmd != FUTEX_WAIT_BITSET && cmd != FUTEX_LOCK_PI2)
        return -ENOSYS;
    switch (cmd) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
        return on_host(t, addr, op, val, timeout, addr2, val3);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        realtime = realtime || cmd == FUTEX_LOCK_PI;
        r = lock_deadline(t, realtime ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout, &deadline);
        return r ? r : futex_pi_lock(t, addr, deadline);
    case FUTEX_TRYLOCK_PI:
        return futex_pi_lock(t, addr, 0);
    case FUTEX_UNLOCK_PI:
        return futex_pi_unlock(t, addr);
    default:
        return -ENOSYS;
    }
}

/* The calls of one operation each: the host's, likewise. Hosts that lack them (before 5.16, or 6.7) answer ENOSYS. */
static int64_t other_on_host(struct task *t, uint32_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
    struct plat_hostcall call = {.nr = nr, .fd = -1, .args = {a, b, c, d, e, f}};

    plat_thread_tail_hostcall(t->thread, &call);
    return 0;
}

int64_t sys_futex_waitv(struct task *t, uaddr_t waiters, uint32_t nr_futexes, uint32_t flags, uaddr_t timeout, int32_t clockid)
{
    return other_on_host(t, NR_WAITV, waiters.v, nr_futexes, flags, timeout.v, (uint32_t)clockid, 0);
}

int64_t sys_futex_wake(struct task *t, uaddr_t addr, uint64_t mask, int32_t nr, uint32_t flags)
{
    return other_on_host(t, NR_WAKE, addr.v, mask, (uint32_t)nr, flags, 0, 0);
}

int64_t sys_futex_wait(struct task *t, uaddr_t addr, uint64_t val, uint64_t mask, uint32_t flags, uaddr_t timeout, int32_t clockid)
{
    return other_on_host(t, NR_WAIT, addr.v, val, mask, flags, timeout.v, (uint32_t)clockid);
}

int64_t sys_futex_requeue(struct task *t, uaddr_t waiters, uint32_t flags, int32_t nr_wake, int32_t nr_requeue)
{
    return other_on_host(t, NR_REQUEUE, waiters.v, flags, (uint32_t)nr_wake, (uint32_t)nr_requeue, 0, 0);
}

int64_t sys_set_robust_list(struct task *t, uaddr_t head, uint64_t len)
{
    if (len != ROBUST_HEAD_SIZE)
        return -EINVAL;
    t->robust_list = head;
    t->robust_list_len = len;
    return 0;
}

int64_t sys_get_robust_list(struct task *t, int32_t pid, uaddr_t head, uaddr_t len)
{
    struct task *target = pid ? task_find(t->pidns, pid) : task_ref(t);
    uint64_t size = ROBUST_HEAD_SIZE, value;
    int r;

    if (!target)
        return -ESRCH;
    value = target->robust_list.v;
    r = ptrace_may_access(t, target, PTRACE_READ_REAL);
    task_unref(target);
    if (!r)
        r = COPY_OUT(&t->ctx, len, &size);
    return r ? r : COPY_OUT(&t->ctx, head, &value);
}
