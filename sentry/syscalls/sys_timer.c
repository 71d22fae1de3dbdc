/* SPDX-License-Identifier: Apache-2.0 */
/* Interval timers, alarm and POSIX timers. */
#include "syscalls_gen.h"

#include <errno.h>
#include <limits.h>

#include "sentry/kernel/itimer.h"
#include "sentry/kernel/posixtimer.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

int64_t sys_getitimer(struct task *t, int32_t which, uaddr_t value)
{
    struct itimerval v;
    uint64_t left, interval;
    int r = itimer_get(t, which, &left, &interval);

    if (r)
        return r;
    v.it_value = timeval_from_ns(left);
    v.it_interval = timeval_from_ns(interval);
    return COPY_OUT(&t->ctx, value, &v);
}

int64_t sys_setitimer(struct task *t, int32_t which, uaddr_t value, uaddr_t ovalue)
{
    struct itimerval v = {0};
    uint64_t left, interval;
    int r;

    /* A missing new value has always turned the timer off. */
    if (!uaddr_is_null(value)) {
        r = COPY_IN(&t->ctx, &v, value);
        if (r)
            return r;
        if (!timeval_valid(&v.it_value) || !timeval_valid(&v.it_interval))
            return -EINVAL;
    }
    r = itimer_set(t, which, timeval_to_ns(&v.it_value), timeval_to_ns(&v.it_interval), &left, &interval);
    if (r || uaddr_is_null(ovalue))
        return r;
    v.it_value = timeval_from_ns(left);
    v.it_interval = timeval_from_ns(interval);
    return COPY_OUT(&t->ctx, ovalue, &v);
}

int64_t sys_alarm(struct task *t, uint32_t seconds)
{
    uint64_t left, interval;
    int r = itimer_set(t, ITIMER_REAL, (uint64_t)MIN(seconds, (uint32_t)INT_MAX) * NSEC_PER_SEC, 0, &left, &interval);

    if (r)
        return r;
    /* To the nearest second, but an alarm that is due soon is not shown as none. */
    return left && left < NSEC_PER_SEC ? 1 : (int64_t)((left + NSEC_PER_SEC / 2) / NSEC_PER_SEC);
}

int64_t sys_timer_create(struct task *t, int32_t clockid, uaddr_t event, uaddr_t id)
{
    struct sigevent_k e;
    int32_t timer;
    int r;

    _Static_assert(sizeof(e) == 64, "struct sigevent");
    if (!uaddr_is_null(event)) {
        r = COPY_IN(&t->ctx, &e, event);
        if (r)
            return r;
    }
    r = posixtimer_create(t, clockid, uaddr_is_null(event) ? NULL : &e, &timer);
    if (r)
        return r;
    r = COPY_OUT(&t->ctx, id, &timer);
    if (r && posixtimer_delete(t, timer))
        return -EFAULT;
    return r;
}

static void to_itimerspec(uint64_t left, uint64_t interval, struct itimerspec *ret_v)
{
    ret_v->it_value = timespec_from_ns(left);
    ret_v->it_interval = timespec_from_ns(interval);
}

int64_t sys_timer_settime(struct task *t, int32_t id, int32_t flags, uaddr_t value, uaddr_t ovalue)
{
    struct itimerspec v;
    uint64_t left, interval;
    int r;

    if (uaddr_is_null(value))
        return -EINVAL;
    r = COPY_IN(&t->ctx, &v, value);
    if (r)
        return r;
    if (!timespec_valid(&v.it_value) || !timespec_valid(&v.it_interval))
        return -EINVAL;
    r = posixtimer_set(t, id, flags & TIMER_ABSTIME, timespec_to_ns(&v.it_value), timespec_to_ns(&v.it_interval),
                       &left, &interval);
    if (r || uaddr_is_null(ovalue))
        return r;
    to_itimerspec(left, interval, &v);
    return COPY_OUT(&t->ctx, ovalue, &v);
}

int64_t sys_timer_gettime(struct task *t, int32_t id, uaddr_t value)
{
    struct itimerspec v;
    uint64_t left, interval;
    int r = posixtimer_get(t, id, &left, &interval);

    if (r)
        return r;
    to_itimerspec(left, interval, &v);
    return COPY_OUT(&t->ctx, value, &v);
}

int64_t sys_timer_getoverrun(struct task *t, int32_t id)
{
    return posixtimer_overrun(t, id);
}

int64_t sys_timer_delete(struct task *t, int32_t id)
{
    return posixtimer_delete(t, id);
}
