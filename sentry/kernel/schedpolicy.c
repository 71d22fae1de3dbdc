/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling policies. */
#include "sentry/kernel/schedpolicy.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/affinity.h"
#include "sentry/kernel/task.h"

enum { RT_PRIORITY_MAX = 99, RUNTIME_MIN_NS = 1024 };
#define PERIOD_MIN_NS 100000ULL             /* kernel.sched_deadline_period_min_us */
#define PERIOD_MAX_NS ((1ULL << 22) * 1000) /* kernel.sched_deadline_period_max_us */

int schedpolicy_priority_max(int policy)
{
    switch (policy) {
    case SCHED_FIFO:
    case SCHED_RR:
        return RT_PRIORITY_MAX;
    case SCHED_OTHER:
    case SCHED_BATCH:
    case SCHED_IDLE:
    case SCHEDPOLICY_DEADLINE:
        return 0;
    default:
        return -EINVAL;
    }
}

bool schedpolicy_may_change(const struct task *t, const struct task *target)
{
    const struct cred *c = t->ctx.cred, *o = target->ctx.cred;

    return c->euid == o->euid || c->euid == o->uid || cred_ns_cap(c, o->userns, CAP_SYS_NICE);
}

/* The three times of a deadline are in order and of a size that the scheduler can work with. */
static bool deadline_valid(const struct schedpolicy *p)
{
    uint64_t period = p->period ? p->period : p->deadline;

    if (p->deadline == 0 || p->runtime < RUNTIME_MIN_NS || (int64_t)p->deadline < 0 || (int64_t)p->period < 0)
        return false;
    return p->runtime <= p->deadline && p->deadline <= period && period >= PERIOD_MIN_NS && period <= PERIOD_MAX_NS;
}

/* All CPUs have to be allowed, and one task can't have more than 95 % of one of a single CPU (sched_rt_runtime_us). */
static int deadline_admit(const struct task *target, const struct schedpolicy *p)
{
    unsigned cpus = affinity_cpus(target->group->container), allowed = 0;
    uint64_t mask[AFFINITY_WORDS], period = p->period ? p->period : p->deadline;

    affinity_get(target, mask);
    for (unsigned i = 0; i < AFFINITY_WORDS; i++)
        allowed += (unsigned)__builtin_popcountll(mask[i]);
    if (allowed < cpus)
        return -EPERM;
    return cpus == 1 && p->runtime > period / 100 * 95 ? -EBUSY : 0;
}

/* What takes a privilege. Source: sched(7), sched_setscheduler(2). */
static int check_rights(const struct task *t, const struct task *target, const struct schedpolicy *p, int max)
{
    const struct schedpolicy *old = &target->sched;
    uint64_t limit = target->group->rlimits[RLIMIT_RTPRIO].rlim_cur;

    if (cred_has_cap(t->ctx.cred, CAP_SYS_NICE))
        return 0;
    if (!schedpolicy_may_change(t, target) || p->policy == SCHEDPOLICY_DEADLINE)
        return -EPERM;
    if (max && ((p->policy != old->policy && !limit) ||
                (p->priority > old->priority && (uint64_t)p->priority > limit)))
        return -EPERM;
    if (old->policy == SCHED_IDLE && p->policy != SCHED_IDLE &&
        (uint64_t)(20 - target->nice) > target->group->rlimits[RLIMIT_NICE].rlim_cur)
        return -EPERM;
    return old->reset_on_fork && !p->reset_on_fork ? -EPERM : 0;
}

int schedpolicy_set(const struct task *t, struct task *target, const struct schedpolicy *p)
{
    int max = schedpolicy_priority_max(p->policy), r;

    if (max < 0 || p->priority < (max ? 1 : 0) || p->priority > max)
        return -EINVAL;
    if (p->policy == SCHEDPOLICY_DEADLINE && !deadline_valid(p))
        return -EINVAL;
    r = check_rights(t, target, p, max);
    if (!r && p->policy == SCHEDPOLICY_DEADLINE)
        r = deadline_admit(target, p);
    if (!r)
        target->sched = *p;
    return r;
}

int schedpolicy_set_nice(const struct task *t, struct task *target, int nice)
{
    uint64_t limit = target->group->rlimits[RLIMIT_NICE].rlim_cur;

    nice = MAX(MIN(nice, 19), -20);
    if (!schedpolicy_may_change(t, target))
        return -EPERM;
    if (nice < target->nice && !cred_has_cap(t->ctx.cred, CAP_SYS_NICE) && (uint64_t)(20 - nice) > limit)
        return -EACCES;
    target->nice = nice;
    return 0;
}
