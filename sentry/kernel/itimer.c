/* SPDX-License-Identifier: Apache-2.0 */
/* The three interval timers of a process. */
#include "sentry/kernel/itimer.h"

#include <errno.h>
#include <sys/time.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/kernel/itimer_priv.h"
#include "sentry/kernel/task.h"

/* A period below this is stretched while the last signal is still pending, so that a process that
 * never takes it costs little. */
#define UNTAKEN_PERIOD_NS 1000000ULL

static void real_fired(struct ktimer *t)
{
    struct itimers *timers = container_of(t, struct itimers, real);
    struct tgroup *g = timers->group;
    uint64_t interval = timers->real_interval_ns, now, next;
    bool untaken = g->pending.set & SIGBIT(SIGALRM);
    siginfo_t info;

    if (interval) {
        now = host_monotonic_ns();
        if (untaken)
            interval *= UNTAKEN_PERIOD_NS / MIN(interval, UNTAKEN_PERIOD_NS);
        next = t->deadline_ns + interval;
        if (next <= now)
            next += (now - next) / interval * interval + interval;
        /* Cannot fail for want of room: the slot that has just become free is still there. */
        if (ktimer_set(t, next, real_fired))
            timers->real_interval_ns = 0;
    }
    siginfo_kernel(&info, SIGALRM, SI_KERNEL);
    signal_send_group(g, &info);
}

struct itimers *itimers_get(struct tgroup *g)
{
    struct itimers *timers = g->timers;

    if (timers)
        return timers;
    timers = NEW(struct itimers);
    if (!timers)
        return NULL;
    timers->group = g;
    list_init(&timers->posix);
    list_init(&timers->dead);
    g->timers = timers;
    return timers;
}

int itimer_get(struct task *t, int which, uint64_t *ret_left, uint64_t *ret_interval)
{
    const struct itimers *timers = t->group->timers;
    uint64_t now;

    if (which < ITIMER_REAL || which > ITIMER_PROF)
        return -EINVAL;
    *ret_left = *ret_interval = 0;
    if (!timers)
        return 0;
    if (which == ITIMER_REAL) {
        *ret_interval = timers->real_interval_ns;
        if (ktimer_armed(&timers->real)) {
            now = host_monotonic_ns();
            /* An armed timer is never shown as off. */
            *ret_left = timers->real.deadline_ns > now + 1000 ? timers->real.deadline_ns - now : 1000;
        }
        return 0;
    }
    *ret_interval = timers->cpu[which - 1].interval_ns;
    if (timers->cpu[which - 1].expires_ns) {
        now = tgroup_cpu_ns(t->group);
        *ret_left = MAX(timers->cpu[which - 1].expires_ns, now + 1000) - now;
    }
    return 0;
}

int itimer_set(struct task *t, int which, uint64_t value, uint64_t interval, uint64_t *ret_left,
               uint64_t *ret_interval)
{
    struct itimers *timers;
    int r = itimer_get(t, which, ret_left, ret_interval);

    if (r)
        return r;
    timers = t->group->timers;
    if (!timers && !value)
        return 0;
    timers = itimers_get(t->group);
    if (!timers)
        return -ENOMEM;
    if (which != ITIMER_REAL) {
        timers->cpu[which - 1].expires_ns = value ? time_add_ns(tgroup_cpu_ns(t->group), value) : 0;
        timers->cpu[which - 1].interval_ns = value ? interval : 0;
        cputimer_rearm(timers);
        return 0;
    }
    if (value) {
        r = ktimer_set(&timers->real, time_add_ns(host_monotonic_ns(), value), real_fired);
        if (r)
            return r;
    } else {
        ktimer_cancel(&timers->real);
    }
    timers->real_interval_ns = value ? interval : 0;
    return 0;
}

void itimers_exec(struct tgroup *g)
{
    if (g->timers) {
        posixtimers_drop(g->timers);
        cputimer_rearm(g->timers);
    }
}

void itimers_exit(struct tgroup *g)
{
    struct itimers *timers = g->timers;

    if (!timers)
        return;
    posixtimers_drop(timers);
    ktimer_cancel(&timers->real);
    ktimer_cancel(&timers->cpu_check);
    timers->real_interval_ns = 0;
    timers->cpu[0] = timers->cpu[1] = (struct cpu_itimer){0};
}

void itimers_free(struct itimers *timers)
{
    if (!timers)
        return;
    itimers_exit(timers->group);
    posixtimers_free_dead(timers);
    mem_free(timers);
}
