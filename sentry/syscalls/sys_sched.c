/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling: CPU masks, policies, nice values, I/O priorities. All are kept and shown; the host decides who runs. */
#include "syscalls_gen.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/platform.h"
#include "sentry/abi/abi_time.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/affinity.h"
#include "sentry/kernel/schedpolicy.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

enum { CAP_SYS_NICE_ = 23, RR_INTERVAL_NS = 100000000 };

static struct task *target_of(struct task *t, int32_t pid)
{
    return pid ? task_find(t->pidns, pid) : task_ref(t);
}

int64_t sys_sched_yield(struct task *t)
{
    return 0;
}

int64_t sys_getcpu(struct task *t, uaddr_t cpu, uaddr_t node, uaddr_t cache)
{
    unsigned n = affinity_cpus(t->group->container);
    int here = sched_getcpu();
    uint32_t value = here < 0 ? 0 : (uint32_t)here % n, zero = 0;
    int r = 0;

    if (!uaddr_is_null(cpu))
        r = COPY_OUT(&t->ctx, cpu, &value);
    if (!r && !uaddr_is_null(node))
        r = COPY_OUT(&t->ctx, node, &zero);
    return r;
}

/* Bytes of a mask of this machine's CPUs, as the kernel counts them. */
static uint32_t mask_bytes(const struct task *t)
{
    return ALIGN_UP(affinity_cpus(t->group->container), 64U) / 8;
}

int64_t sys_sched_getaffinity(struct task *t, int32_t pid, uint32_t size, uaddr_t mask)
{
    uint64_t bits[AFFINITY_WORDS];
    struct task *target;
    uint32_t n = mask_bytes(t);
    int r;

    if (size * 8ULL < affinity_cpus(t->group->container) || size % 8)
        return -EINVAL;
    target = target_of(t, pid);
    if (!target)
        return -ESRCH;
    affinity_get(target, bits);
    task_unref(target);
    n = MIN(n, size);
    r = copy_out(&t->ctx, mask, bits, n);
    return r ? r : (int64_t)n;
}

int64_t sys_sched_setaffinity(struct task *t, int32_t pid, uint32_t size, uaddr_t mask)
{
    uint64_t bits[AFFINITY_WORDS] = {0};
    struct task *target;
    int r = copy_in(&t->ctx, bits, mask, MIN(size, (uint32_t)sizeof(bits)));

    if (r)
        return r;
    target = target_of(t, pid);
    if (!target)
        return -ESRCH;
    r = schedpolicy_may_change(t, target) ? affinity_set(target, bits) : -EPERM;
    task_unref(target);
    return r;
}

int64_t sys_sched_get_priority_max(struct task *t, int32_t policy)
{
    return schedpolicy_priority_max(policy);
}

int64_t sys_sched_get_priority_min(struct task *t, int32_t policy)
{
    int max = schedpolicy_priority_max(policy);

    return max > 0 ? 1 : max;
}

/* policy may carry SCHED_RESET_ON_FORK; −1 keeps what is set. */
static int64_t set_policy(struct task *t, int32_t pid, int32_t policy, int32_t priority)
{
    struct task *target = target_of(t, pid);
    struct schedpolicy p;
    int r;

    if (!target)
        return -ESRCH;
    p = (struct schedpolicy){.policy = policy == -1 ? target->sched.policy : policy & ~SCHED_RESET_ON_FORK,
                             .priority = priority,
                             .reset_on_fork = policy == -1 ? target->sched.reset_on_fork : policy & SCHED_RESET_ON_FORK};
    r = schedpolicy_set(t, target, &p);
    task_unref(target);
    return r;
}

int64_t sys_sched_setscheduler(struct task *t, int32_t pid, int32_t policy, uaddr_t param)
{
    int32_t priority;
    int r;

    if (policy < 0 || pid < 0 || uaddr_is_null(param))
        return -EINVAL;
    r = COPY_IN(&t->ctx, &priority, param);
    return r ? r : set_policy(t, pid, policy, priority);
}

int64_t sys_sched_setparam(struct task *t, int32_t pid, uaddr_t param)
{
    int32_t priority;
    int r;

    if (pid < 0 || uaddr_is_null(param))
        return -EINVAL;
    r = COPY_IN(&t->ctx, &priority, param);
    return r ? r : set_policy(t, pid, -1, priority);
}

int64_t sys_sched_getscheduler(struct task *t, int32_t pid)
{
    struct task *target = pid < 0 ? NULL : target_of(t, pid);
    int64_t r;

    if (!target)
        return pid < 0 ? -EINVAL : -ESRCH;
    r = target->sched.policy | (target->sched.reset_on_fork ? SCHED_RESET_ON_FORK : 0);
    task_unref(target);
    return r;
}

int64_t sys_sched_getparam(struct task *t, int32_t pid, uaddr_t param)
{
    struct task *target;
    int32_t priority;

    if (pid < 0 || uaddr_is_null(param))
        return -EINVAL;
    target = target_of(t, pid);
    if (!target)
        return -ESRCH;
    priority = target->sched.priority;
    task_unref(target);
    return COPY_OUT(&t->ctx, param, &priority);
}

int64_t sys_sched_rr_get_interval(struct task *t, int32_t pid, uaddr_t interval)
{
    struct task *target = pid < 0 ? NULL : target_of(t, pid);
    struct timespec ts;

    if (!target)
        return pid < 0 ? -EINVAL : -ESRCH;
    ts = timespec_from_ns(target->sched.policy == SCHED_FIFO ? 0 : RR_INTERVAL_NS);
    task_unref(target);
    return COPY_OUT(&t->ctx, interval, &ts);
}

/* ---- priorities of processes, groups and users ---- */

typedef int (*each_fn)(struct task *t, struct task *target, int *value);

static int each_of_group(struct task *t, struct tgroup *g, each_fn fn, int *value)
{
    int r = -ESRCH;

    for (struct task *o = tgroup_first(g); o; o = tgroup_next(g, o)) {
        int one = fn(t, o, value);

        r = r == -ESRCH || one ? one : r;
    }
    return r;
}

/* Applies fn to the threads that which and who name. Return: its last error, 0, or −ESRCH for nobody. */
static int each(struct task *t, int32_t which, int32_t who, each_fn fn, int *value)
{
    struct task *target;
    struct tgroup *g;
    struct pgrp *group;
    int r = -ESRCH, one, pid = 0;
    uint32_t uid;

    switch (which) {
    case PRIO_PROCESS:
        target = target_of(t, who);
        if (!target)
            return -ESRCH;
        r = fn(t, target, value);
        task_unref(target);
        return r;
    case PRIO_PGRP:
        group = who ? pgrp_find(t->pidns, who) : pgrp_ref(t->group->pgrp);
        if (!group)
            return -ESRCH;
        list_for_each_entry(g, &group->members, pgrp_link) {
            one = each_of_group(t, g, fn, value);
            r = r == -ESRCH || one ? one : r;
        }
        pgrp_unref(group);
        return r;
    case PRIO_USER:
        uid = who ? userns_uid_in(t->ctx.cred->userns, (uint32_t)who) : t->ctx.cred->uid;
        if (uid == USERNS_NO_ID)
            return -ESRCH;
        while ((g = pidns_next_tgroup(t->pidns, pid + 1, &pid))) {
            if (g->leader && g->leader->ctx.cred->uid == uid) {
                one = each_of_group(t, g, fn, value);
                r = r == -ESRCH || one ? one : r;
            }
            tgroup_unref(g);
        }
        return r;
    default:
        return -EINVAL;
    }
}

static int lowest(struct task *t, struct task *target, int *value)
{
    *value = MAX(*value, 20 - target->nice);
    return 0;
}

static int change(struct task *t, struct task *target, int *value)
{
    return schedpolicy_set_nice(t, target, *value);
}

int64_t sys_getpriority(struct task *t, int32_t which, int32_t who)
{
    int best = 0, r = each(t, which, who, lowest, &best);

    return r ? r : best;
}

int64_t sys_setpriority(struct task *t, int32_t which, int32_t who, int32_t prio)
{
    return each(t, which, who, change, &prio);
}

/* ---- I/O priority ---- */

enum { IOPRIO_CLASS_SHIFT_ = 13, IOPRIO_WHO_PROCESS_ = 1, IOPRIO_WHO_USER_ = 3 };

static int io_get(struct task *t, struct task *target, int *value)
{
    *value = (int)target->ioprio;
    return 0;
}

static int io_set(struct task *t, struct task *target, int *value)
{
    if (!schedpolicy_may_change(t, target))
        return -EPERM;
    target->ioprio = (uint32_t)*value;
    return 0;
}

int64_t sys_ioprio_get(struct task *t, int32_t which, int32_t who)
{
    int value = 0, r;

    if (which < IOPRIO_WHO_PROCESS_ || which > IOPRIO_WHO_USER_)
        return -EINVAL;
    r = each(t, which - 1, who, io_get, &value);
    return r ? r : value;
}

int64_t sys_ioprio_set(struct task *t, int32_t which, int32_t who, int32_t ioprio)
{
    int class = ioprio >> IOPRIO_CLASS_SHIFT_ & 7, level = ioprio & 7;

    if (which < IOPRIO_WHO_PROCESS_ || which > IOPRIO_WHO_USER_ || class > 3 || (!class && level))
        return -EINVAL;
    if (class == 1 && !cred_has_cap(t->ctx.cred, CAP_SYS_NICE_) && !cred_has_cap(t->ctx.cred, 21))
        return -EPERM;
    return each(t, which - 1, who, io_set, &ioprio);
}
