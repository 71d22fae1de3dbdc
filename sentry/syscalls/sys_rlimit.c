/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits and usage. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_wait.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

enum { RUSAGE_THREAD_K = 1 };

#define NS_PER_S 1000000000ULL

/* Return: 0, −EPERM, −EINVAL. */
static int check_new(const struct task *t, const struct tgroup *g, uint32_t resource, const struct rlimit *limit)
{
    if (limit->rlim_cur > limit->rlim_max)
        return -EINVAL;
    if (resource == RLIMIT_NOFILE && limit->rlim_max > LIMIT_NR_OPEN)
        return -EPERM;
    if (limit->rlim_max > g->rlimits[resource].rlim_max && !cred_has_cap(t->ctx.cred, CAP_SYS_RESOURCE))
        return -EPERM;
    return 0;
}

static int set_limit(struct task *t, struct tgroup *g, uint32_t resource, const struct rlimit *limit)
{
    int r = check_new(t, g, resource, limit);

    if (r)
        return r;
    g->rlimits[resource] = *limit;
    if (resource == RLIMIT_CPU)
        itimers_watch_cpu_limit(g);
    /* The heap's limit is enforced where brk is carried out. Other processes learn of theirs at exec. */
    if (resource == RLIMIT_DATA && g == t->group && t->mm)
        return plat_set_brk(t->thread, t->mm->brk_start, limit->rlim_cur);
    if (resource == RLIMIT_AS && g->leader && g->leader->mm)
        plat_aspace_set_limit(g->leader->mm->aspace, limit->rlim_cur);
    return 0;
}

static int64_t get_and_set(struct task *t, struct tgroup *g, uint32_t resource, uaddr_t new_addr, uaddr_t old_addr)
{
    struct rlimit limit, old = g->rlimits[resource];
    int r = 0;

    if (!uaddr_is_null(new_addr)) {
        if (COPY_IN(&t->ctx, &limit, new_addr))
            return -EFAULT;
        r = set_limit(t, g, resource, &limit);
    }
    if (!r && !uaddr_is_null(old_addr))
        r = COPY_OUT(&t->ctx, old_addr, &old);
    return r;
}

int64_t sys_getrlimit(struct task *t, int32_t resource, uaddr_t value)
{
    if ((uint32_t)resource >= TASK_RLIMITS)
        return -EINVAL;
    if (uaddr_is_null(value))
        return -EFAULT;
    return get_and_set(t, t->group, (uint32_t)resource, UADDR_NULL, value);
}

int64_t sys_setrlimit(struct task *t, int32_t resource, uaddr_t value)
{
    if ((uint32_t)resource >= TASK_RLIMITS)
        return -EINVAL;
    if (uaddr_is_null(value))
        return -EFAULT;
    return get_and_set(t, t->group, (uint32_t)resource, value, UADDR_NULL);
}

static bool may_change(const struct task *t, const struct task *target)
{
    const struct cred *c = t->ctx.cred, *o = target->ctx.cred;

    return t->group == target->group || cred_ns_cap(c, o->userns, CAP_SYS_RESOURCE) ||
           (c->uid == o->euid && c->uid == o->suid && c->uid == o->uid && c->gid == o->egid &&
            c->gid == o->sgid && c->gid == o->gid);
}

int64_t sys_prlimit64(struct task *t, int32_t pid, int32_t resource, uaddr_t new_addr, uaddr_t old_addr)
{
    struct task *target;
    int64_t r;

    if ((uint32_t)resource >= TASK_RLIMITS)
        return -EINVAL;
    target = pid ? task_find(t->pidns, pid) : task_ref(t);
    if (!target)
        return -ESRCH;
    r = may_change(t, target) ? get_and_set(t, target->group, (uint32_t)resource, new_addr, old_addr) : -EPERM;
    task_unref(target);
    return r;
}

int64_t sys_getrusage(struct task *t, int32_t who, uaddr_t addr)
{
    struct rusage usage = {0};
    uint64_t ns;

    switch (who) {
    case RUSAGE_SELF:
        tgroup_rusage(t->group, &usage);
        break;
    case RUSAGE_CHILDREN:
        tgroup_rusage_children(t->group, &usage);
        break;
    case RUSAGE_THREAD_K:
        ns = task_cpu_ns(t);
        usage.ru_utime.tv_sec = (time_t)(ns / NS_PER_S);
        usage.ru_utime.tv_usec = (long)(ns % NS_PER_S / 1000);
        usage.ru_minflt = (long)t->min_flt;
        usage.ru_majflt = (long)t->maj_flt;
        break;
    default:
        return -EINVAL;
    }
    if (who != RUSAGE_CHILDREN && t->mm)
        usage.ru_maxrss = MAX(usage.ru_maxrss, (long)(mm_resident_peak(t->mm) / 1024));
    return COPY_OUT(&t->ctx, addr, &usage);
}
