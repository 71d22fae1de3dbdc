/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX timers. An expired periodic timer stays off until its signal is taken; the periods missed meanwhile are
 * its overrun, so a process that does not look costs nothing. */
#include "sentry/kernel/posixtimer.h"

#include <errno.h>
#include <limits.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/limits.h"
#include "sentry/core/ucount.h"
#include "sentry/kernel/itimer_priv.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"

#define IGNORED_PERIOD_NS 1000000ULL

static void fired(struct ktimer *t);

bool posixtimer_is_cpu(const struct posixtimer *p)
{
    return timekeeper_is_cpu_clock(p->clockid);
}

uint64_t posixtimer_cpu_now(const struct posixtimer *p)
{
    if (p->clockid == CLOCK_PROCESS_CPUTIME_ID)
        return tgroup_cpu_ns(p->timers->group);
    return p->cpu_task ? task_cpu_ns(p->cpu_task) : 0;
}

static uint64_t now_of(const struct posixtimer *p)
{
    return posixtimer_is_cpu(p) ? posixtimer_cpu_now(p) : host_monotonic_ns();
}

static void start(struct posixtimer *p)
{
    p->armed = true;
    if (posixtimer_is_cpu(p))
        cputimer_rearm(p->timers);
    else if (p->notify != SIGEV_NONE && ktimer_set(&p->timer, p->expires_ns, fired))
        p->armed = false;
}

static void stop(struct posixtimer *p)
{
    p->armed = false;
    ktimer_cancel(&p->timer);
}

/* Moves expires_ns past now. Return: periods that passed. */
static uint64_t forward(struct posixtimer *p, uint64_t now)
{
    uint64_t n;

    if (p->expires_ns > now)
        return 0;
    n = (now - p->expires_ns) / p->interval_ns + 1;
    p->expires_ns += n * p->interval_ns;
    return n;
}

void posixtimer_delivered(struct sigqueue *q)
{
    struct posixtimer *p = container_of(q, struct posixtimer, q);

    q->info.si_overrun = 0;
    if (p->deleted || !p->queued)
        return; /* of a timer that is gone, or of an earlier setting */
    p->queued = false;
    if (p->interval_ns) {
        uint64_t n = forward(p, now_of(p));

        p->overrun = (uint32_t)MIN(p->overrun + n, (uint64_t)INT_MAX);
        start(p);
    }
    p->overrun_last = MIN(p->overrun, (uint32_t)INT_MAX);
    p->overrun = 0;
    q->info.si_overrun = (int)p->overrun_last;
}

void posixtimer_expire(struct posixtimer *p, uint64_t now_ns)
{
    struct tgroup *g = p->timers->group;

    if (p->notify != SIGEV_NONE && !p->target_gone) {
        p->queued = true;
        /* The signal of an earlier setting may still be queued; now it stands for this one. */
        (void)signal_send_prealloc(g, p->target, &p->q);
        if (!list_empty(&p->q.link)) {
            if (p->interval_ns)
                p->expires_ns += p->interval_ns;
            else
                p->armed = false;
            return;
        }
        p->queued = false;
    }
    if (!p->interval_ns) {
        p->armed = false;
        return;
    }
    /* Ignored: it goes on, but not faster than anybody could notice. */
    forward(p, now_ns + (p->interval_ns < IGNORED_PERIOD_NS ? IGNORED_PERIOD_NS : 0));
    if (!posixtimer_is_cpu(p))
        start(p);
}

static void fired(struct ktimer *t)
{
    posixtimer_expire(container_of(t, struct posixtimer, timer), host_monotonic_ns());
}

static void free_timer(struct posixtimer *p)
{
    list_del(&p->link);
    p->timers->posix_len--;
    ucount_uncharge(UCOUNT_SIGPENDING, p->q.quota_uid);
    mem_free(p);
}

static void drop(struct posixtimer *p)
{
    struct itimers *timers = p->timers;

    stop(p);
    p->deleted = true;
    list_del(&p->link);
    if (!list_empty(&p->q.link)) {
        /* Its signal is still queued and will be delivered, as on Linux. */
        list_add_tail(&timers->dead, &p->link);
        return;
    }
    free_timer(p);
}

void posixtimers_drop(struct itimers *timers)
{
    struct posixtimer *p, *next;

    list_for_each_entry_safe(p, next, &timers->posix, link)
        drop(p);
}

static void reap(struct itimers *timers)
{
    struct posixtimer *p, *next;

    list_for_each_entry_safe(p, next, &timers->dead, link) {
        if (list_empty(&p->q.link))
            free_timer(p);
    }
}

void posixtimers_free_dead(struct itimers *timers)
{
    struct posixtimer *p, *next;

    list_for_each_entry_safe(p, next, &timers->dead, link) {
        list_del(&p->q.link);
        free_timer(p);
    }
}

void itimers_thread_exit(struct task *t)
{
    struct itimers *timers = t->group->timers;
    struct posixtimer *p;

    if (!timers)
        return;
    list_for_each_entry(p, &timers->posix, link) {
        if (p->target == t) {
            p->target = NULL;
            p->target_gone = true;
        }
        if (p->cpu_task == t) {
            p->cpu_task = NULL;
            p->armed = false;
        }
    }
}

static struct posixtimer *find(struct task *t, int32_t id)
{
    struct itimers *timers = t->group->timers;
    struct posixtimer *p;

    if (timers) {
        list_for_each_entry(p, &timers->posix, link) {
            if (p->id == id)
                return p;
        }
    }
    return NULL;
}

/* Checks the event and finds the thread that it names. */
static int set_event(struct posixtimer *p, struct task *t, const struct sigevent_k *event)
{
    struct task *target;
    int signo = event ? event->signo : SIGALRM;

    p->notify = event ? event->notify : SIGEV_SIGNAL;
    switch (p->notify) {
    case SIGEV_SIGNAL | SIGEV_THREAD_ID:
        target = task_find(t->pidns, event->tid);
        p->target = target && target->group == t->group ? target : NULL;
        task_unref(target);
        if (!p->target)
            return -EINVAL;
        /* fall through */
    case SIGEV_SIGNAL:
    case SIGEV_THREAD:
        if (signo <= 0 || signo > NSIG_K)
            return -EINVAL;
        break;
    case SIGEV_NONE:
        break;
    default:
        return -EINVAL;
    }
    p->q.info.si_signo = signo;
    p->q.info.si_code = SI_TIMER;
    p->q.info.si_timerid = p->id;
    if (event)
        p->q.info.si_value.sival_ptr = (void *)(uintptr_t)event->value;
    else
        p->q.info.si_value.sival_int = p->id;
    return 0;
}

static int set_clock(struct posixtimer *p, struct task *t, int32_t clockid)
{
    int r = timekeeper_check_timer_clock(t, clockid), tid;
    struct task *of;

    if (r)
        return r;
    p->clockid = clockid;
    if (clockid == CLOCK_THREAD_CPUTIME_ID)
        p->cpu_task = t;
    if (clockid >= 0)
        return 0;
    /* An encoded clock: of this process, or of one of its threads. */
    tid = ~(clockid >> 3);
    of = tid ? task_find(t->pidns, tid) : task_ref(t);
    if (of && of->group == t->group) {
        if (clockid & 4)
            p->cpu_task = of;
        else
            p->clockid = CLOCK_PROCESS_CPUTIME_ID;
    } else {
        r = -EINVAL;
    }
    task_unref(of);
    return r;
}

int posixtimer_create(struct task *t, int32_t clockid, const struct sigevent_k *event, int32_t *ret_id)
{
    struct itimers *timers = itimers_get(t->group);
    struct posixtimer *p;
    int r;

    if (!timers)
        return -EAGAIN;
    reap(timers);
    if (timers->posix_len >= LIMIT_POSIX_TIMERS)
        return -EAGAIN;
    r = ucount_charge(UCOUNT_SIGPENDING, t->ctx.cred->uid, t->group->rlimits[RLIMIT_SIGPENDING].rlim_cur);
    if (r)
        return -EAGAIN;
    p = NEW(struct posixtimer);
    if (!p) {
        ucount_uncharge(UCOUNT_SIGPENDING, t->ctx.cred->uid);
        return -EAGAIN;
    }
    p->q.quota_uid = t->ctx.cred->uid;
    p->timers = timers;
    list_init(&p->q.link);
    p->q.preallocated = true;
    do {
        p->id = timers->next_id;
        timers->next_id = p->id == INT_MAX ? 0 : p->id + 1;
    } while (find(t, p->id));
    r = set_clock(p, t, clockid);
    if (!r)
        r = set_event(p, t, event);
    list_add_tail(&timers->posix, &p->link);
    timers->posix_len++;
    if (r) {
        free_timer(p);
        return r;
    }
    *ret_id = p->id;
    return 0;
}

int posixtimer_delete(struct task *t, int32_t id)
{
    struct posixtimer *p = find(t, id);

    if (!p)
        return -EINVAL;
    drop(p);
    return 0;
}

int posixtimer_get(struct task *t, int32_t id, uint64_t *ret_left, uint64_t *ret_interval)
{
    struct posixtimer *p = find(t, id);
    uint64_t now;

    if (!p)
        return -EINVAL;
    *ret_interval = p->interval_ns;
    *ret_left = 0;
    if (!p->armed && !(p->queued && p->interval_ns))
        return 0;
    now = now_of(p);
    if (p->expires_ns > now)
        *ret_left = p->expires_ns - now;
    else if (p->interval_ns)
        *ret_left = p->interval_ns - (now - p->expires_ns) % p->interval_ns;
    else
        *ret_left = p->notify == SIGEV_NONE ? 0 : 1;
    return 0;
}

/* The first expiration was set in the past: whole periods since then are overruns already, and the phase is kept. */
static void count_past(const struct task *t, struct posixtimer *p, uint64_t value)
{
    bool cpu = posixtimer_is_cpu(p);
    uint64_t now = now_of(p), late = cpu ? (now > value ? now - value : 0) : timekeeper_late(t, p->clockid, value);

    if (!late)
        return;
    p->overrun = (uint32_t)MIN(late / p->interval_ns, (uint64_t)INT_MAX);
    p->expires_ns = now - MIN(late % p->interval_ns, now);
}

int posixtimer_set(struct task *t, int32_t id, bool absolute, uint64_t value, uint64_t interval, uint64_t *ret_left,
                   uint64_t *ret_interval)
{
    struct posixtimer *p = find(t, id);
    int r = posixtimer_get(t, id, ret_left, ret_interval);

    if (r)
        return r;
    stop(p);
    p->queued = false;
    p->overrun = p->overrun_last = 0;
    p->interval_ns = 0;
    if (!value)
        return 0;
    p->interval_ns = interval;
    if (posixtimer_is_cpu(p))
        p->expires_ns = absolute ? value : time_add_ns(posixtimer_cpu_now(p), value);
    else
        p->expires_ns = timekeeper_deadline(t, p->clockid, absolute, value);
    if (absolute && interval)
        count_past(t, p, value);
    start(p);
    if (!p->armed)
        return -ENOMEM;
    if (!posixtimer_is_cpu(p) && p->notify != SIGEV_NONE && p->expires_ns <= host_monotonic_ns()) {
        ktimer_cancel(&p->timer);
        posixtimer_expire(p, host_monotonic_ns());
    }
    return 0;
}

int posixtimer_overrun(struct task *t, int32_t id)
{
    const struct posixtimer *p = find(t, id);

    return p ? (int)p->overrun_last : -EINVAL;
}
