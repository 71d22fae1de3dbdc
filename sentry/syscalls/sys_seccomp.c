/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp, and the part of prctl that does the same. */
#include "sentry/syscalls/sys_seccomp.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "syscalls_gen.h"

enum {
    FLAGS_KNOWN = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW |
                  SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC_ESRCH |
                  SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
};

struct fprog_k { /* struct sock_fprog */
    uint16_t len;
    uint16_t pad[3];
    uint64_t filter;
};

static int64_t set_filter(struct task *t, uint32_t flags, uaddr_t addr)
{
    CLEANUP_FREE struct cbpf_insn *prog = NULL;
    struct fprog_k fprog;
    size_t size;

    if (flags & ~(uint32_t)FLAGS_KNOWN)
        return -EINVAL;
    /* Both would answer with a number of their own. */
    if ((flags & SECCOMP_FILTER_FLAG_TSYNC) && (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) &&
        !(flags & SECCOMP_FILTER_FLAG_TSYNC_ESRCH))
        return -EINVAL;
    if ((flags & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) && !(flags & SECCOMP_FILTER_FLAG_NEW_LISTENER))
        return -EINVAL;
    if (COPY_IN(&t->ctx, &fprog, addr))
        return -EFAULT;
    if (fprog.len == 0 || fprog.len > CBPF_MAX_LEN)
        return -EINVAL;
    if (!t->no_new_privs && !cred_own_cap(t->ctx.cred, CAP_SYS_ADMIN))
        return -EACCES;
    size = fprog.len * sizeof(*prog);
    prog = mem_zalloc(size);
    if (!prog)
        return -ENOMEM;
    if (copy_in(&t->ctx, prog, UADDR(fprog.filter), size))
        return -EFAULT;
    return guest_seccomp_set_filter(t, flags, prog, fprog.len);
}

static int64_t action_avail(struct task *t, uaddr_t addr)
{
    uint32_t action;

    if (COPY_IN(&t->ctx, &action, addr))
        return -EFAULT;
    return guest_seccomp_action_known(action) ? 0 : -EOPNOTSUPP;
}

static int64_t notif_sizes(struct task *t, uaddr_t addr)
{
    struct seccomp_notif_sizes sizes = {
        .seccomp_notif = sizeof(struct seccomp_notif),
        .seccomp_notif_resp = sizeof(struct seccomp_notif_resp),
        .seccomp_data = sizeof(struct seccomp_data),
    };

    return COPY_OUT(&t->ctx, addr, &sizes);
}

int64_t sys_seccomp(struct task *t, uint32_t op, uint32_t flags, uaddr_t args)
{
    switch (op) {
    case SECCOMP_SET_MODE_STRICT:
        return flags || !uaddr_is_null(args) ? -EINVAL : guest_seccomp_set_strict(t);
    case SECCOMP_SET_MODE_FILTER:
        return set_filter(t, flags, args);
    case SECCOMP_GET_ACTION_AVAIL:
        return flags ? -EINVAL : action_avail(t, args);
    case SECCOMP_GET_NOTIF_SIZES:
        return flags ? -EINVAL : notif_sizes(t, args);
    default:
        return -EINVAL;
    }
}

int64_t sys_seccomp_prctl(struct task *t, uint64_t mode, uint64_t filter)
{
    switch (mode) {
    case SECCOMP_MODE_STRICT:
        return guest_seccomp_set_strict(t);
    case SECCOMP_MODE_FILTER:
        return set_filter(t, 0, UADDR(filter));
    default:
        return -EINVAL;
    }
}
