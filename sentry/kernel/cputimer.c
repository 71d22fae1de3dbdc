/* SPDX-License-Identifier: Apache-2.0 */
/* Timers and limits on CPU time. Guests run without the sentry's knowledge, so their CPU clocks are looked at when
 * the earliest timer could have come, had all threads run all the time. */
#include "sentry/kernel/itimer_priv.h"

#include <errno.h>
#include <sys/resource.h>

#include "platform/base/host.h"
#include "sentry/kernel/task.h"

/* As fine as a real kernel's tick: CPU timers are not more exact there either. */
#define CHECK_MIN_NS 1000000ULL
/* The longest that a deadline may lie ahead. */
#define CHECK_MAX_NS (24 * 3600 * 1000000000ULL)

static void check_fired(struct ktimer *t);

static void earlier(uint64_t *left, uint64_t expires, uint64_t now)
{
    *left = MIN(*left, expires > now ? expires - now : 0);
}

static uint64_t limit_ns(rlim_t seconds)
{
    return seconds >= UINT64_MAX / 1000000000U ? UINT64_MAX : MAX(seconds, 1UL) * 1000000000U;
}

/* What of RLIMIT_CPU comes next: the soft limit, then each further second, and the hard limit. */
static uint64_t next_limit(const struct tgroup *g, uint64_t now)
{
    const struct rlimit *lim = &g->rlimits[RLIMIT_CPU];
    uint64_t soft = limit_ns(lim->rlim_cur), hard = limit_ns(lim->rlim_max);

    if (soft != UINT64_MAX && now >= soft)
        soft += ((now - soft) / 1000000000U + 1) * 1000000000U;
    return MIN(soft, hard);
}

void cputimer_rearm(struct itimers *timers)
{
    struct tgroup *g = timers->group;
    uint64_t now, left = UINT64_MAX;
    struct posixtimer *p;

    if (g->zombie || g->group_exiting) {
        ktimer_cancel(&timers->cpu_check);
        return;
    }
    now = tgroup_cpu_ns(g);
    for (int i = 0; i < 2; i++) {
        if (timers->cpu[i].expires_ns)
            earlier(&left, timers->cpu[i].expires_ns, now);
    }
    list_for_each_entry(p, &timers->posix, link) {
        if (p->armed && posixtimer_is_cpu(p) && !p->queued)
            earlier(&left, p->expires_ns, posixtimer_cpu_now(p));
    }
    if (next_limit(g, now) != UINT64_MAX)
        earlier(&left, next_limit(g, now), now);
    if (left == UINT64_MAX) {
        ktimer_cancel(&timers->cpu_check);
        return;
    }
    left /= MAX(g->thread_count, 1U);
    left = MIN(MAX(left, CHECK_MIN_NS), CHECK_MAX_NS);
    /* Without memory the timers stand still; there is nobody to tell. */
    if (ktimer_set(&timers->cpu_check, host_monotonic_ns() + left, check_fired))
        ktimer_cancel(&timers->cpu_check);
}

static void check_itimer(struct tgroup *g, struct cpu_itimer *c, int signo, uint64_t now)
{
    siginfo_t info;

    if (!c->expires_ns || c->expires_ns > now)
        return;
    if (c->interval_ns)
        c->expires_ns += ((now - c->expires_ns) / c->interval_ns + 1) * c->interval_ns;
    else
        c->expires_ns = 0;
    siginfo_kernel(&info, signo, SI_KERNEL);
    signal_send_group(g, &info);
}

static void check_limit(struct tgroup *g, uint64_t now)
{
    const struct rlimit *lim = &g->rlimits[RLIMIT_CPU];
    uint64_t soft = limit_ns(lim->rlim_cur), since;
    siginfo_t info;

    if (limit_ns(lim->rlim_max) <= now) {
        siginfo_kernel(&info, SIGKILL, SI_KERNEL);
        signal_send_group(g, &info);
    } else if (soft <= now) {
        /* One signal a second beyond the limit: this check runs close after each full second. */
        since = (now - soft) % 1000000000U;
        if (since < 100000000U) {
            siginfo_kernel(&info, SIGXCPU, SI_KERNEL);
            signal_send_group(g, &info);
        }
    }
}

static void check_fired(struct ktimer *t)
{
    struct itimers *timers = container_of(t, struct itimers, cpu_check);
    struct tgroup *g = timers->group;
    uint64_t now = tgroup_cpu_ns(g);
    struct posixtimer *p, *next;

    check_itimer(g, &timers->cpu[0], SIGVTALRM, now);
    check_itimer(g, &timers->cpu[1], SIGPROF, now);
    list_for_each_entry_safe(p, next, &timers->posix, link) {
        uint64_t shown = p->armed && posixtimer_is_cpu(p) && !p->queued ? posixtimer_cpu_now(p) : 0;

        if (shown && shown >= p->expires_ns)
            posixtimer_expire(p, shown);
    }
    check_limit(g, now);
    cputimer_rearm(timers);
}

void itimers_watch_cpu_limit(struct tgroup *g)
{
    struct itimers *timers = g->timers;

    if (!timers && g->rlimits[RLIMIT_CPU].rlim_cur == RLIM_INFINITY &&
        g->rlimits[RLIMIT_CPU].rlim_max == RLIM_INFINITY)
        return;
    timers = itimers_get(g);
    if (timers)
        cputimer_rearm(timers);
}
