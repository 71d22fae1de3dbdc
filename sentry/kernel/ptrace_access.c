/* SPDX-License-Identifier: Apache-2.0 */
/* One rule for looking into another process: its user throughout, its memory readable, no right that we lack; or the capability. */
#include "sentry/kernel/ptrace_access.h"

#include <errno.h>
#include <linux/capability.h>

#include "sentry/core/cred.h"
#include "sentry/core/landlock.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"

static int access_by_cred(const struct task *caller, const struct task *target, unsigned mode)
{
    const struct cred *c = caller->ctx.cred, *o = target->ctx.cred;
    bool fs = mode & PTRACE_MODE_FSCREDS;
    uint32_t uid = fs ? c->fsuid : c->uid, gid = fs ? c->fsgid : c->gid;
    uint64_t caps = fs ? c->cap_effective : c->cap_permitted;

    if (cred_has_cap(c, CAP_SYS_PTRACE))
        return 0;
    if (uid != o->uid || uid != o->euid || uid != o->suid || gid != o->gid || gid != o->egid || gid != o->sgid)
        return -EPERM;
    if (target->mm && target->mm->dumpable != 1)
        return -EPERM;
    return o->cap_permitted & ~caps ? -EPERM : 0;
}

int ptrace_may_access(const struct task *caller, const struct task *target, unsigned mode)
{
    if (caller->group == target->group)
        return 0;
    int r = access_by_cred(caller, target, mode);
    if (r)
        return r;
    return landlock_contains(caller->ctx.cred->landlock, target->ctx.cred->landlock) ? 0 : -EPERM;
}
