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

    bool over = cred_ns_cap(c, o->userns, CAP_SYS_PTRACE);
    bool same = uid == o->uid && uid == o->euid && uid == o->suid && gid == o->gid && gid == o->egid && gid == o->sgid;
    if (!same && !over)
        return -EPERM;
    /* What is not dumpable is a secret of the user namespace in which it was executed, wherever its process is now. */
    if (target->mm && target->mm->dumpable != 1 && !cred_ns_cap(c, target->mm->userns, CAP_SYS_PTRACE))
        return -EPERM;
    return over || (userns_same(c->userns, o->userns) && !(o->cap_permitted & ~caps)) ? 0 : -EPERM;
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
