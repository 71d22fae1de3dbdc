/* SPDX-License-Identifier: Apache-2.0 */
/* timerfd on kernel timers. Deadlines are kept on the monotonic clock; those of other clocks are compared
 * with their own clock again when they fire, so that a step backwards does not fire them early. */
#include "sentry/fs/anon_timerfd.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/ktimer.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/timens.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

#define NS_PER_S 1000000000ULL
/* Far enough for any program, near enough that sums do not overflow. */
#define NS_MAX ((uint64_t)INT64_MAX / 2)
#define TFD_IOC_SET_TICKS_NR _IOW('T', 0, uint64_t)

struct alarm {
    struct ktimer timer;
    struct waitq wait;
    int clock;            /* (i) */
    int settime_flags;    /* (k) */
    bool absolute;        /* (k) deadline_ns is on the timer's clock, else on CLOCK_MONOTONIC */
    uint64_t deadline_ns; /* (k) next expiration; 0 = disarmed */
    uint64_t interval_ns; /* (k) */
    uint64_t ticks;       /* (k) not yet read */
};

static uint64_t clock_ns(int clock)
{
    struct timespec ts = {0};
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_ALARM:
        return host_realtime_ns();
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        clock_gettime(CLOCK_BOOTTIME, &ts);
        return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    default:
        return host_monotonic_ns();
    }
}

static uint64_t alarm_now(const struct alarm *a)
{
    return a->absolute ? clock_ns(a->clock) : host_monotonic_ns();
}

static uint64_t spec_ns(const struct timespec *ts)
{
    if ((uint64_t)ts->tv_sec >= NS_MAX / NS_PER_S)
        return NS_MAX;
    return (uint64_t)ts->tv_sec * NS_PER_S + (uint64_t)ts->tv_nsec;
}

static struct timespec ns_spec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static void alarm_fire(struct ktimer *kt);

static int alarm_arm(struct alarm *a, uint64_t now)
{
    uint64_t left = a->deadline_ns > now ? a->deadline_ns - now : 0;
    return ktimer_set(&a->timer, host_monotonic_ns() + left, alarm_fire);
}

/* Moves the deadline past now, counting expirations. */
static void alarm_advance(struct alarm *a, uint64_t now)
{
    if (!a->deadline_ns || now < a->deadline_ns)
        return;
    if (!a->interval_ns) {
        a->ticks++;
        a->deadline_ns = 0;
        return;
    }
    uint64_t n = (now - a->deadline_ns) / a->interval_ns + 1;
    a->ticks += n;
    a->deadline_ns += n * a->interval_ns;
}

static void alarm_fire(struct ktimer *kt)
{
    struct alarm *a = container_of(kt, struct alarm, timer);
    uint64_t now = alarm_now(a), before = a->ticks;
    alarm_advance(a, now);
    /* A periodic timer that nobody reads stays silent after its first tick; read and gettime catch up. */
    if (a->deadline_ns && (before == a->ticks || !a->interval_ns))
        (void)!alarm_arm(a, now);
    if (a->ticks != before)
        waitq_wake(&a->wait, EPOLLIN);
}

/* Accounts for ticks that passed while the timer was silent. */
static void alarm_catch_up(struct alarm *a)
{
    alarm_advance(a, alarm_now(a));
}

static ssize_t alarm_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct alarm *a = f->priv;
    if (u->left < sizeof(uint64_t))
        return -EINVAL;
    alarm_catch_up(a);
    if (a->ticks == 0) {
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        int r = WAIT_EVENT(u->ctx, &a->wait, a->ticks > 0);
        if (r)
            return r;
    }
    uint64_t ticks = a->ticks;
    a->ticks = 0;
    if (a->deadline_ns) {
        int r = alarm_arm(a, alarm_now(a));
        if (r) {
            a->ticks = ticks;
            return r;
        }
    }
    ssize_t n = uio_put(u, &ticks, sizeof(ticks));
    return n < (ssize_t)sizeof(ticks) ? -EFAULT : n;
}

static uint32_t alarm_poll(struct file *f, struct poll_table *pt)
{
    struct alarm *a = f->priv;
    poll_wait(pt, &a->wait);
    return a->ticks ? EPOLLIN : 0;
}

static int64_t alarm_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct alarm *a = f->priv;
    uint64_t ticks;
    if (cmd != TFD_IOC_SET_TICKS_NR)
        return -ENOTTY;
    if (COPY_IN(ctx, &ticks, UADDR(arg)))
        return -EFAULT;
    if (!ticks)
        return -EINVAL;
    a->ticks = ticks;
    waitq_wake(&a->wait, EPOLLIN);
    return 0;
}

static void alarm_release(struct file *f)
{
    struct alarm *a = f->priv;
    ktimer_cancel(&a->timer);
    mem_free(a);
}

static void alarm_fdinfo(struct file *f, struct buf *out)
{
    struct alarm *a = f->priv;
    struct itimerspec v;
    anon_timerfd_gettime(f, &v);
    buf_printf(out,
               "clockid: %d\nticks: %llu\nsettime flags: 0%o\nit_value: (%llu, %llu)\n"
               "it_interval: (%llu, %llu)\n",
               a->clock, (unsigned long long)a->ticks, (unsigned)a->settime_flags,
               (unsigned long long)v.it_value.tv_sec, (unsigned long long)v.it_value.tv_nsec,
               (unsigned long long)v.it_interval.tv_sec, (unsigned long long)v.it_interval.tv_nsec);
}

static const struct file_ops alarm_ops = {
    .read = alarm_read,
    .poll = alarm_poll,
    .ioctl = alarm_ioctl,
    .release = alarm_release,
    .show_fdinfo = alarm_fdinfo,
};

bool anon_timerfd_is(const struct file *f)
{
    return f->ops == &alarm_ops;
}

void anon_timerfd_gettime(struct file *f, struct itimerspec *ret_value)
{
    struct alarm *a = f->priv;
    alarm_catch_up(a);
    uint64_t now = alarm_now(a), left = 0;
    if (a->deadline_ns)
        left = a->deadline_ns > now ? a->deadline_ns - now : 1;
    ret_value->it_value = ns_spec(left);
    ret_value->it_interval = ns_spec(a->interval_ns);
}

int anon_timerfd_clock(const struct file *f)
{
    return ((const struct alarm *)f->priv)->clock;
}

int anon_timerfd_settime(struct file *f, int flags, int64_t offset_ns, const struct itimerspec *value,
                         struct itimerspec *ret_old)
{
    struct alarm *a = f->priv;
    struct itimerspec old;
    anon_timerfd_gettime(f, &old);
    uint64_t ns = spec_ns(&value->it_value);
    if (ns) {
        bool absolute = flags & TFD_TIMER_ABSTIME;
        uint64_t now = absolute ? clock_ns(a->clock) : host_monotonic_ns();
        uint64_t deadline = absolute ? MIN(timens_to_host(offset_ns, ns), NS_MAX) : now + ns;

        deadline = MAX(deadline, 1UL); /* 0 would be off */
        uint64_t left = deadline > now ? deadline - now : 0;
        int r = ktimer_set(&a->timer, host_monotonic_ns() + left, alarm_fire);
        if (r)
            return r;
        a->absolute = absolute;
        a->deadline_ns = deadline;
    } else {
        ktimer_cancel(&a->timer);
        a->deadline_ns = 0;
    }
    a->interval_ns = spec_ns(&value->it_interval);
    a->settime_flags = flags;
    a->ticks = 0;
    *ret_old = old;
    return 0;
}

struct file *anon_timerfd_new(int clock, uint32_t flags, const struct cred *cred)
{
    struct alarm *a = NEW(struct alarm);
    if (!a)
        return NULL;
    a->clock = clock;
    waitq_init(&a->wait);
    struct file *f = file_new_anon("anon_inode:[timerfd]", 0600, O_RDWR | (flags & O_NONBLOCK), &alarm_ops,
                                   a, cred);
    if (!f) {
        mem_free(a);
        return NULL;
    }
    f->no_seek = true;
    return f;
}
