/* SPDX-License-Identifier: Apache-2.0 */
/* Clock reading and the conversion of guest times into deadlines. */
#include "sentry/kernel/timekeeper.h"

#include <errno.h>

#include "platform/base/host.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"
#include "sentry/mm/usermem.h"

/* Clock ids that older libc headers do not name. */
enum { CLOCK_ID_TAI = 11, CLOCK_ID_BOOTTIME_ALARM = 9, CLOCK_ID_REALTIME_ALARM = 8 };

/* A negative id names a CPU clock: ~pid in the upper bits, bit 2 for one thread, the kind below. */
enum { CPUCLOCK_THREAD = 4, CPUCLOCK_KIND = 3, CPUCLOCK_NONE = 3 };

enum { COARSE_NS = 4000000 }; /* the reported kernel ticks at 250 Hz */

static bool is_system_clock(int32_t clockid)
{
    return (clockid >= CLOCK_REALTIME && clockid <= CLOCK_ID_BOOTTIME_ALARM &&
            clockid != CLOCK_PROCESS_CPUTIME_ID && clockid != CLOCK_THREAD_CPUTIME_ID) ||
           clockid == CLOCK_ID_TAI;
}

bool timekeeper_is_cpu_clock(int32_t clockid)
{
    return clockid < 0 || clockid == CLOCK_PROCESS_CPUTIME_ID || clockid == CLOCK_THREAD_CPUTIME_ID;
}

static uint64_t read_host(int32_t clockid)
{
    struct timespec ts = {0};

    if (clockid == CLOCK_ID_REALTIME_ALARM)
        clockid = CLOCK_REALTIME;
    else if (clockid == CLOCK_ID_BOOTTIME_ALARM)
        clockid = CLOCK_BOOTTIME;
    BUG_ON(clock_gettime(clockid, &ts));
    return timespec_to_ns(&ts);
}

/* An encoded CPU clock. t NULL never. Return: 0 with the time, or −EINVAL. */
static int read_encoded(struct task *t, int32_t clockid, uint64_t *ret_ns)
{
    int pid = ~(clockid >> 3);
    struct tgroup *g;
    struct task *other;

    if ((clockid & CPUCLOCK_KIND) == CPUCLOCK_NONE || pid < 0)
        return -EINVAL;
    if (clockid & CPUCLOCK_THREAD) {
        other = pid ? task_find(t->pidns, pid) : task_ref(t);
        if (!other || other->group != t->group) {
            task_unref(other);
            return -EINVAL;
        }
        *ret_ns = task_cpu_ns(other);
        task_unref(other);
        return 0;
    }
    g = pid ? tgroup_find(t->pidns, pid) : tgroup_ref(t->group);
    if (!g)
        return -EINVAL;
    *ret_ns = tgroup_cpu_ns(g);
    tgroup_unref(g);
    return 0;
}

int timekeeper_read(struct task *t, int32_t clockid, uint64_t *ret_ns)
{
    if (is_system_clock(clockid)) {
        *ret_ns = timens_from_host(timens_offset(t->ns->time, clockid), read_host(clockid));
        return 0;
    }
    if (clockid == CLOCK_PROCESS_CPUTIME_ID) {
        *ret_ns = tgroup_cpu_ns(t->group);
        return 0;
    }
    if (clockid == CLOCK_THREAD_CPUTIME_ID) {
        *ret_ns = task_cpu_ns(t);
        return 0;
    }
    return clockid < 0 ? read_encoded(t, clockid, ret_ns) : -EINVAL;
}

int timekeeper_resolution(struct task *t, int32_t clockid, uint64_t *ret_ns)
{
    uint64_t now;
    int r = timekeeper_read(t, clockid, &now);

    if (!r)
        *ret_ns = clockid == CLOCK_REALTIME_COARSE || clockid == CLOCK_MONOTONIC_COARSE ? COARSE_NS : 1;
    return r;
}

int timekeeper_check_timer_clock(struct task *t, int32_t clockid)
{
    uint64_t now;

    switch (clockid) {
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_ID_REALTIME_ALARM: /* no clock that could wake a sleeping machine */
    case CLOCK_ID_BOOTTIME_ALARM:
        return -EOPNOTSUPP;
    default:
        return timekeeper_read(t, clockid, &now);
    }
}

uint64_t timekeeper_deadline(const struct task *t, int32_t clockid, bool absolute, uint64_t at_ns)
{
    uint64_t now = host_monotonic_ns(), shown;

    if (!absolute)
        return time_add_ns(now, at_ns);
    at_ns = timens_to_host(timens_offset(t->ns->time, clockid), at_ns);
    if (clockid == CLOCK_MONOTONIC)
        return MIN(at_ns, UINT64_MAX - 1);
    shown = read_host(clockid);
    if (at_ns <= shown)
        return now;
    return time_add_ns(now, at_ns - shown);
}

uint64_t timekeeper_late(const struct task *t, int32_t clockid, uint64_t at_ns)
{
    uint64_t shown = read_host(clockid);

    at_ns = timens_to_host(timens_offset(t->ns->time, clockid), at_ns);
    return shown > at_ns ? shown - at_ns : 0;
}

uint64_t timekeeper_uptime(const struct task *t, const struct kernel *kernel)
{
    uint64_t up = host_monotonic_ns() - (kernel ? kernel->boot_ns : 0);

    return timens_from_host(t && t->ns ? timens_offset(t->ns->time, CLOCK_BOOTTIME) : 0, up);
}

int timekeeper_timeout_in(struct ctx *ctx, uint64_t uaddr, uint64_t *ret_deadline_ns)
{
    struct timespec ts;
    int r;

    if (!uaddr) {
        *ret_deadline_ns = WAIT_FOREVER;
        return 0;
    }
    r = COPY_IN(ctx, &ts, UADDR(uaddr));
    if (r)
        return r;
    if (!timespec_valid(&ts))
        return -EINVAL;
    *ret_deadline_ns = time_add_ns(host_monotonic_ns(), timespec_to_ns(&ts));
    return 0;
}

void timekeeper_left_out(struct ctx *ctx, uint64_t uaddr, uint64_t deadline_ns)
{
    uint64_t now;
    struct timespec ts;

    if (!uaddr || deadline_ns == WAIT_FOREVER)
        return;
    now = host_monotonic_ns();
    ts = timespec_from_ns(deadline_ns > now ? deadline_ns - now : 0);
    if (COPY_OUT(ctx, UADDR(uaddr), &ts))
        return;
}
