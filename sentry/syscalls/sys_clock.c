/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: reading, setting (refused), sleeping. */
#include "syscalls_gen.h"

#include <errno.h>
#include <string.h>
#include <sys/timex.h>

#include "platform/base/host.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"
#include "sentry/mm/usermem.h"

enum { CLK_TCK_NS = 10000000 };

int64_t sys_clock_gettime(struct task *t, int32_t clockid, uaddr_t tp)
{
    struct timespec ts;
    uint64_t now;
    int r = timekeeper_read(t, clockid, &now);

    if (r)
        return r;
    ts = timespec_from_ns(now);
    return COPY_OUT(&t->ctx, tp, &ts);
}

int64_t sys_clock_getres(struct task *t, int32_t clockid, uaddr_t tp)
{
    struct timespec ts;
    uint64_t res;
    int r = timekeeper_resolution(t, clockid, &res);

    if (r || uaddr_is_null(tp))
        return r;
    ts = timespec_from_ns(res);
    return COPY_OUT(&t->ctx, tp, &ts);
}

int64_t sys_clock_settime(struct task *t, int32_t clockid, uaddr_t tp)
{
    struct timespec ts;
    int r;

    if (clockid != CLOCK_REALTIME)
        return -EINVAL;
    r = COPY_IN(&t->ctx, &ts, tp);
    if (r)
        return r;
    return timespec_valid(&ts) ? -EPERM : -EINVAL;
}

int64_t sys_gettimeofday(struct task *t, uaddr_t tv, uaddr_t tz)
{
    static const int32_t no_zone[2];
    struct timeval now;
    int r = 0;

    if (!uaddr_is_null(tv)) {
        now = timeval_from_ns(host_realtime_ns());
        r = COPY_OUT(&t->ctx, tv, &now);
    }
    if (!r && !uaddr_is_null(tz))
        r = copy_out(&t->ctx, tz, no_zone, sizeof(no_zone));
    return r;
}

int64_t sys_settimeofday(struct task *t, uaddr_t tv, uaddr_t tz)
{
    struct timeval value;
    int32_t zone[2];
    int r;

    if (!uaddr_is_null(tv)) {
        r = COPY_IN(&t->ctx, &value, tv);
        if (r)
            return r;
        if (!timeval_valid(&value))
            return -EINVAL;
    }
    if (!uaddr_is_null(tz)) {
        r = copy_in(&t->ctx, zone, tz, sizeof(zone));
        if (r)
            return r;
    }
    return -EPERM;
}

int64_t sys_time(struct task *t, uaddr_t tloc)
{
    int64_t now = (int64_t)(host_realtime_ns() / 1000000000U);
    int r;

    if (!uaddr_is_null(tloc)) {
        r = COPY_OUT(&t->ctx, tloc, &now);
        if (r)
            return r;
    }
    return now;
}

int64_t sys_times(struct task *t, uaddr_t buf)
{
    const struct tgroup *g = t->group;
    int64_t ticks[4];
    int r;

    if (!uaddr_is_null(buf)) {
        ticks[0] = (int64_t)(tgroup_cpu_ns(g) / CLK_TCK_NS);
        ticks[1] = (int64_t)(g->stime_ns / CLK_TCK_NS);
        ticks[2] = (int64_t)(g->cutime_ns / CLK_TCK_NS);
        ticks[3] = (int64_t)(g->cstime_ns / CLK_TCK_NS);
        r = copy_out(&t->ctx, buf, ticks, sizeof(ticks));
        if (r)
            return r;
    }
    return (int64_t)((host_monotonic_ns() - t->kernel->boot_ns) / CLK_TCK_NS);
}

/* The clock's state as a kernel without time synchronisation shows it. */
static int64_t clock_state(struct task *t, uaddr_t buf)
{
    struct timex tx;
    int r = COPY_IN(&t->ctx, &tx, buf);

    if (r)
        return r;
    if (tx.modes && tx.modes != ADJ_OFFSET_SS_READ)
        return -EPERM;
    memset(&tx, 0, sizeof(tx));
    tx.maxerror = tx.esterror = 16000000;
    tx.status = STA_UNSYNC;
    tx.constant = 2;
    tx.precision = 1;
    tx.tolerance = 32768000;
    tx.tick = 10000;
    tx.time = timeval_from_ns(host_realtime_ns());
    r = COPY_OUT(&t->ctx, buf, &tx);
    return r ? r : TIME_ERROR;
}

int64_t sys_adjtimex(struct task *t, uaddr_t buf)
{
    return clock_state(t, buf);
}

int64_t sys_clock_adjtime(struct task *t, int32_t clockid, uaddr_t buf)
{
    uint64_t now;
    int r = timekeeper_read(t, clockid, &now);

    if (r)
        return r;
    return clockid == CLOCK_REALTIME ? clock_state(t, buf) : -EOPNOTSUPP;
}

/* ---- sleeping ---- */

/* Writes the time left for an interrupted relative sleep. */
static int64_t interrupted(struct task *t, uint64_t deadline, uaddr_t rem)
{
    uint64_t now = host_monotonic_ns();
    struct timespec left = timespec_from_ns(deadline > now ? deadline - now : 0);

    if (!uaddr_is_null(rem) && COPY_OUT(&t->ctx, rem, &left))
        return -EFAULT;
    return -ERESTART_RESTARTBLOCK;
}

/* Continues after a signal without handler, with the deadline of the first call. */
static int64_t sleep_restart(struct task *t)
{
    int r = ctx_sleep_until(&t->ctx, t->restart_deadline_ns);

    return r == -ERESTARTSYS ? interrupted(t, t->restart_deadline_ns, UADDR(t->restart_args[0])) : r;
}

static int64_t sleep_relative(struct task *t, int32_t clockid, uint64_t ns, uaddr_t rem)
{
    uint64_t deadline = timekeeper_deadline(t, clockid, false, ns);
    int r = ctx_sleep_until(&t->ctx, deadline);

    if (r != -ERESTARTSYS)
        return r;
    t->restart_fn = sleep_restart;
    t->restart_deadline_ns = deadline;
    t->restart_args[0] = rem.v;
    return interrupted(t, deadline, rem);
}

/* Sleeps until a process has used CPU time, looked at now and then. */
static int64_t sleep_cpu(struct task *t, int32_t clockid, bool absolute, uint64_t ns, uaddr_t rem)
{
    uint64_t now, until;
    struct timespec left;
    int r = timekeeper_read(t, clockid, &now);

    if (r)
        return r;
    until = absolute ? ns : time_add_ns(now, ns);
    while (!r && now < until) {
        r = ctx_sleep_until(&t->ctx, time_add_ns(host_monotonic_ns(), MAX(until - now, 1000000UL)));
        if (!r)
            r = timekeeper_read(t, clockid, &now);
    }
    if (r == -ERESTARTSYS && !absolute && !uaddr_is_null(rem)) {
        left = timespec_from_ns(until - now);
        if (COPY_OUT(&t->ctx, rem, &left))
            return -EFAULT;
    }
    return r == -ERESTARTSYS ? (absolute ? -ERESTARTNOHAND : -EINTR) : r;
}

int64_t sys_nanosleep(struct task *t, uaddr_t req, uaddr_t rem)
{
    struct timespec ts;
    int r = COPY_IN(&t->ctx, &ts, req);

    if (r)
        return r;
    if (!timespec_valid(&ts))
        return -EINVAL;
    return sleep_relative(t, CLOCK_MONOTONIC, timespec_to_ns(&ts), rem);
}

int64_t sys_clock_nanosleep(struct task *t, int32_t clockid, int32_t flags, uaddr_t req, uaddr_t rem)
{
    bool absolute = flags & TIMER_ABSTIME;
    struct timespec ts;
    int r;

    if (clockid == CLOCK_THREAD_CPUTIME_ID)
        return -EOPNOTSUPP;
    r = timekeeper_check_timer_clock(t, clockid);
    if (r)
        return r;
    r = COPY_IN(&t->ctx, &ts, req);
    if (r)
        return r;
    if (!timespec_valid(&ts))
        return -EINVAL;
    if (timekeeper_is_cpu_clock(clockid))
        return sleep_cpu(t, clockid, absolute, timespec_to_ns(&ts), rem);
    if (!absolute)
        return sleep_relative(t, clockid, timespec_to_ns(&ts), rem);
    r = ctx_sleep_until(&t->ctx, timekeeper_deadline(t, clockid, true, timespec_to_ns(&ts)));
    return r == -ERESTARTSYS ? -ERESTARTNOHAND : r;
}
