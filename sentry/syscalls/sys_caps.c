/* SPDX-License-Identifier: Apache-2.0 */
/* capget, capset. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

#define CAPS_ALL ((1ULL << (CAP_CHECKPOINT_RESTORE + 1)) - 1)

/* How many 32-bit halves the caller's version has; −EINVAL (after telling ours) for an unknown one. */
static int version_words(struct task *t, uaddr_t header, uint32_t version)
{
    uint32_t ours = _LINUX_CAPABILITY_VERSION_3;

    switch (version) {
    case _LINUX_CAPABILITY_VERSION_1:
        return 1;
    case _LINUX_CAPABILITY_VERSION_2:
    case _LINUX_CAPABILITY_VERSION_3:
        return 2;
    default:
        return COPY_OUT(&t->ctx, header, &ours) ? -EFAULT : -EINVAL;
    }
}

int64_t sys_capget(struct task *t, uaddr_t header_addr, uaddr_t data_addr)
{
    struct __user_cap_header_struct header;
    struct __user_cap_data_struct data[2];
    const struct cred *c;
    struct task *target;
    int words;

    if (COPY_IN(&t->ctx, &header, header_addr))
        return -EFAULT;
    words = version_words(t, header_addr, header.version);
    if (words < 0) /* without a place for data the call only asks for the version */
        return words == -EINVAL && uaddr_is_null(data_addr) ? 0 : words;
    if (uaddr_is_null(data_addr))
        return 0;
    if (header.pid < 0)
        return -EINVAL;
    target = header.pid ? task_find(t->pidns, header.pid) : task_ref(t);
    if (!target)
        return -ESRCH;
    c = target->ctx.cred;
    for (int i = 0; i < 2; i++) {
        data[i].effective = (uint32_t)(c->cap_effective >> (32 * i));
        data[i].permitted = (uint32_t)(c->cap_permitted >> (32 * i));
        data[i].inheritable = (uint32_t)(c->cap_inheritable >> (32 * i));
    }
    task_unref(target);
    return copy_out(&t->ctx, data_addr, data, (size_t)words * sizeof(data[0]));
}

/* The rules of capabilities(7) for what a thread may make of its own sets. */
static bool allowed(const struct cred *old, uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
    if (!cred_own_cap(old, CAP_SETPCAP) && (inheritable & ~(old->cap_inheritable | old->cap_permitted)))
        return false;
    if (inheritable & ~(old->cap_inheritable | old->cap_bounding))
        return false;
    return !(permitted & ~old->cap_permitted) && !(effective & ~permitted);
}

int64_t sys_capset(struct task *t, uaddr_t header_addr, uaddr_t data_addr)
{
    struct __user_cap_header_struct header;
    struct __user_cap_data_struct data[2] = {0};
    uint64_t effective, permitted, inheritable;
    struct cred *c;
    int words, r;

    if (COPY_IN(&t->ctx, &header, header_addr))
        return -EFAULT;
    words = version_words(t, header_addr, header.version);
    if (words < 0)
        return words;
    if (header.pid && header.pid != task_tid_for(t, t))
        return -EPERM;
    if (copy_in(&t->ctx, data, data_addr, (size_t)words * sizeof(data[0])))
        return -EFAULT;
    effective = (data[0].effective | (uint64_t)data[1].effective << 32) & CAPS_ALL;
    permitted = (data[0].permitted | (uint64_t)data[1].permitted << 32) & CAPS_ALL;
    inheritable = (data[0].inheritable | (uint64_t)data[1].inheritable << 32) & CAPS_ALL;
    if (!allowed(t->ctx.cred, effective, permitted, inheritable))
        return -EPERM;
    r = cred_dup(t->ctx.cred, t->ctx.cred->groups_len, &c);
    if (r)
        return r;
    c->cap_effective = effective;
    c->cap_permitted = permitted;
    c->cap_inheritable = inheritable;
    c->cap_ambient &= permitted & inheritable;
    task_set_cred(t, c);
    return 0;
}
