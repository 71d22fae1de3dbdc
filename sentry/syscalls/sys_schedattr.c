/* SPDX-License-Identifier: Apache-2.0 */
/* sched_setattr and sched_getattr: every scheduling property in one structure. */
#include "syscalls_gen.h"

#include <errno.h>
#include <sched.h>

#include "platform/platform.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/schedpolicy.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

enum { ATTR_SIZE_V0 = 48, ATTR_SIZE_V1 = 56 };
enum {
    ATTR_RESET_ON_FORK = 1, ATTR_KEEP_POLICY = 8, ATTR_KEEP_PARAMS = 16, ATTR_UTIL_MIN = 32, ATTR_UTIL_MAX = 64,
    ATTR_DEADLINE = SCHEDPOLICY_RECLAIM | SCHEDPOLICY_OVERRUN, ATTR_FLAGS = 127,
};

/* The kernel's struct sched_attr. */
struct sched_attr_k {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};

static bool is_fair(int policy)
{
    return policy == SCHED_OTHER || policy == SCHED_BATCH;
}

/* The parameters that go with target's policy. */
static void get_params(const struct task *target, struct sched_attr_k *a)
{
    const struct schedpolicy *p = &target->sched;

    if (p->policy == SCHEDPOLICY_DEADLINE) {
        a->priority = (uint32_t)p->priority;
        a->runtime = p->runtime;
        a->deadline = p->deadline;
        a->period = p->period;
        a->flags = (a->flags & ~(uint64_t)ATTR_DEADLINE) | p->dl_flags;
    } else if (schedpolicy_priority_max(p->policy) > 0) {
        a->priority = (uint32_t)p->priority;
    } else {
        a->nice = target->nice;
    }
}

int64_t sys_sched_getattr(struct task *t, int32_t pid, uaddr_t attr, uint32_t size, uint32_t flags)
{
    struct sched_attr_k a = {0};
    struct task *target;

    _Static_assert(sizeof(a) == ATTR_SIZE_V1, "struct sched_attr");
    if (flags || pid < 0 || uaddr_is_null(attr) || size < ATTR_SIZE_V0 || size > PAGE_SIZE)
        return -EINVAL;
    target = pid ? task_find(t->pidns, pid) : task_ref(t);
    if (!target)
        return -ESRCH;
    a.size = MIN(size, (uint32_t)sizeof(a));
    a.policy = (uint32_t)target->sched.policy;
    a.flags = target->sched.reset_on_fork ? ATTR_RESET_ON_FORK : 0;
    get_params(target, &a);
    task_unref(target);
    return copy_out(&t->ctx, attr, &a, a.size);
}

/* Copies the structure in; whoever has a longer or too short one is told our size. */
static int attr_in(struct task *t, uaddr_t attr, struct sched_attr_k *a)
{
    uint32_t size, ours = sizeof(*a);
    int r = COPY_IN(&t->ctx, &size, attr);

    if (r)
        return r;
    size = size ? size : ATTR_SIZE_V0;
    r = size < ATTR_SIZE_V0 || size > PAGE_SIZE ? -E2BIG : copy_in_struct(&t->ctx, a, sizeof(*a), attr, size);
    if (r == -E2BIG && COPY_OUT(&t->ctx, attr, &ours))
        return -EFAULT;
    if (!r && (a->flags & (ATTR_UTIL_MIN | ATTR_UTIL_MAX)) && size < ATTR_SIZE_V1)
        return -EINVAL;
    return r;
}

static int set_attr(struct task *t, struct task *target, struct sched_attr_k *a)
{
    struct schedpolicy p;
    bool keep = a->flags & ATTR_KEEP_POLICY, keep_params = a->flags & ATTR_KEEP_PARAMS;
    struct schedpolicy old = target->sched;
    int r;

    if (keep_params)
        get_params(target, a);
    p = (struct schedpolicy){
        .policy = keep ? target->sched.policy : (int)a->policy,
        .priority = (int)MIN(a->priority, (uint32_t)INT32_MAX),
        .reset_on_fork = keep ? target->sched.reset_on_fork : a->flags & ATTR_RESET_ON_FORK,
    };
    if (p.policy == SCHEDPOLICY_DEADLINE) {
        p.runtime = a->runtime;
        p.deadline = a->deadline;
        p.period = a->period ? a->period : a->deadline;
        p.dl_flags = a->flags & ATTR_DEADLINE;
    }
    if (schedpolicy_priority_max(p.policy) < 0 || (a->flags & ~(uint64_t)ATTR_FLAGS))
        return -EINVAL;
    if (is_fair(p.policy) && a->nice < target->nice && !cred_has_cap(t->ctx.cred, 23 /* CAP_SYS_NICE */) &&
        (uint64_t)(20 - MAX(a->nice, -20)) > target->group->rlimits[RLIMIT_NICE].rlim_cur)
        return -EPERM;
    r = schedpolicy_set(t, target, &p);
    if (!r && keep_params) {
        /* All is checked, and then nothing but the flag changes: not even the policy. */
        old.reset_on_fork = p.reset_on_fork;
        target->sched = old;
    }
    if (r || keep_params)
        return r;
    return is_fair(p.policy) ? schedpolicy_set_nice(t, target, a->nice) : 0;
}

int64_t sys_sched_setattr(struct task *t, int32_t pid, uaddr_t attr, uint32_t flags)
{
    struct sched_attr_k a;
    struct task *target;
    int r;

    if (flags || pid < 0 || uaddr_is_null(attr))
        return -EINVAL;
    r = attr_in(t, attr, &a);
    if (r)
        return r;
    if ((int32_t)a.policy < 0)
        return -EINVAL;
    target = pid ? task_find(t->pidns, pid) : task_ref(t);
    if (!target)
        return -ESRCH;
    r = a.flags & (ATTR_UTIL_MIN | ATTR_UTIL_MAX) ? -EOPNOTSUPP /* built without utilization clamping */
                                                  : set_attr(t, target, &a);
    task_unref(target);
    return r;
}
