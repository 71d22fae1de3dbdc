/* SPDX-License-Identifier: Apache-2.0 */
/* prctl, arch_prctl, personality, set_tid_address. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/sys_seccomp.h"

enum {
    ARCH_SET_GS_K = 0x1001, ARCH_SET_FS_K, ARCH_GET_FS_K, ARCH_GET_GS_K,
    ARCH_GET_CPUID_K = 0x1011, ARCH_SET_CPUID_K,
};

static bool cap_known(uint64_t cap)
{
    return cap <= CAP_CHECKPOINT_RESTORE;
}

static int begin(struct task *t, struct cred **ret)
{
    return cred_dup(t->ctx.cred, t->ctx.cred->groups_len, ret);
}

static int64_t set_name(struct task *t, uint64_t addr)
{
    char name[TASK_COMM_LEN];
    ssize_t n = copy_in_str(&t->ctx, name, UADDR(addr), sizeof(name));

    if (n < 0 && n != -ENAMETOOLONG)
        return n;
    if (n < 0 && copy_in(&t->ctx, name, UADDR(addr), sizeof(name)))
        return -EFAULT;
    task_set_comm(t, name);
    return 0;
}

static int64_t drop_bounding(struct task *t, uint64_t cap)
{
    struct cred *c;
    int r;

    if (!cred_own_cap(t->ctx.cred, CAP_SETPCAP))
        return -EPERM;
    if (!cap_known(cap))
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    c->cap_bounding &= ~(1ULL << cap);
    task_set_cred(t, c);
    return 0;
}

static int64_t set_securebits(struct task *t, uint64_t bits)
{
    const struct cred *old = t->ctx.cred;
    struct cred *c;
    int r;

    /* A lock holds for the bit below it and for itself; only known bits. */
    if ((((old->securebits & SECURE_ALL_LOCKS) >> 1) & (old->securebits ^ bits)) ||
        ((old->securebits & SECURE_ALL_LOCKS) & ~bits) || (bits & ~(uint64_t)(SECURE_ALL_LOCKS | SECURE_ALL_BITS)) ||
        !cred_own_cap(old, CAP_SETPCAP))
        return -EPERM;
    r = begin(t, &c);
    if (r)
        return r;
    c->securebits = (uint32_t)bits;
    task_set_cred(t, c);
    return 0;
}

static int64_t set_keep_caps(struct task *t, uint64_t on)
{
    struct cred *c;
    int r;

    if (on > 1)
        return -EINVAL;
    if (t->ctx.cred->securebits & SECBIT_KEEP_CAPS_LOCKED)
        return -EPERM;
    r = begin(t, &c);
    if (r)
        return r;
    c->securebits = on ? c->securebits | SECBIT_KEEP_CAPS : c->securebits & ~(uint32_t)SECBIT_KEEP_CAPS;
    task_set_cred(t, c);
    return 0;
}

static int64_t ambient(struct task *t, uint64_t op, uint64_t cap, uint64_t arg4, uint64_t arg5)
{
    const struct cred *old = t->ctx.cred;
    uint64_t bit;
    struct cred *c;
    int r;

    if (arg4 || arg5 || (op == PR_CAP_AMBIENT_CLEAR_ALL ? cap != 0 : !cap_known(cap)))
        return -EINVAL;
    bit = 1ULL << cap;
    switch (op) {
    case PR_CAP_AMBIENT_IS_SET:
        return !!(old->cap_ambient & bit);
    case PR_CAP_AMBIENT_RAISE:
        if (!(old->cap_permitted & bit) || !(old->cap_inheritable & bit) ||
            (old->securebits & SECBIT_NO_CAP_AMBIENT_RAISE))
            return -EPERM;
        break;
    case PR_CAP_AMBIENT_LOWER:
    case PR_CAP_AMBIENT_CLEAR_ALL:
        break;
    default:
        return -EINVAL;
    }
    r = begin(t, &c);
    if (r)
        return r;
    if (op == PR_CAP_AMBIENT_RAISE)
        c->cap_ambient |= bit;
    else
        c->cap_ambient &= op == PR_CAP_AMBIENT_LOWER ? ~bit : 0;
    task_set_cred(t, c);
    return 0;
}

static int64_t out_i32(struct task *t, uint64_t addr, int32_t value)
{
    return COPY_OUT(&t->ctx, UADDR(addr), &value);
}

static int64_t cred_options(struct task *t, int32_t option, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
    switch (option) {
    case PR_GET_KEEPCAPS:
        return !!(t->ctx.cred->securebits & SECBIT_KEEP_CAPS);
    case PR_SET_KEEPCAPS:
        return set_keep_caps(t, a2);
    case PR_CAPBSET_READ:
        return cap_known(a2) ? (int64_t)(t->ctx.cred->cap_bounding >> a2 & 1) : -EINVAL;
    case PR_CAPBSET_DROP:
        return drop_bounding(t, a2);
    case PR_GET_SECUREBITS:
        return t->ctx.cred->securebits;
    case PR_SET_SECUREBITS:
        return set_securebits(t, a2);
    case PR_CAP_AMBIENT:
        return ambient(t, a2, a3, a4, a5);
    case PR_SET_NO_NEW_PRIVS:
        if (a2 != 1 || a3 || a4 || a5)
            return -EINVAL;
        t->no_new_privs = true;
        return 0;
    case PR_GET_NO_NEW_PRIVS:
        return a2 || a3 || a4 || a5 ? -EINVAL : t->no_new_privs;
    default:
        return -ENOSYS;
    }
}

static int64_t set_timer_slack(struct task *t, uint64_t ns)
{
    t->timer_slack_ns = (int64_t)ns <= 0 ? t->timer_slack_default_ns : ns;
    return 0;
}

/* Which processes die of a broken page of memory is kept and told; the host decides. */
static int64_t mce_kill(struct task *t, uint64_t op, uint64_t policy, uint64_t a4, uint64_t a5)
{
    if (a4 || a5)
        return -EINVAL;
    if (op == PR_MCE_KILL_CLEAR && !policy)
        t->mce_kill = PR_MCE_KILL_DEFAULT;
    else if (op == PR_MCE_KILL_SET && policy <= PR_MCE_KILL_DEFAULT)
        t->mce_kill = (uint8_t)policy;
    else
        return -EINVAL;
    return 0;
}

static int64_t process_options(struct task *t, int32_t option, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
    switch (option) {
    case PR_SET_PDEATHSIG:
        if (a2 > NSIG_K)
            return -EINVAL;
        t->pdeath_signal = (int)a2;
        return 0;
    case PR_GET_PDEATHSIG:
        return out_i32(t, a2, t->pdeath_signal);
    case PR_GET_DUMPABLE:
        return t->mm->dumpable;
    case PR_SET_DUMPABLE:
        if (a2 > 1)
            return -EINVAL;
        t->mm->dumpable = (int)a2;
        return 0;
    case PR_SET_NAME:
        return set_name(t, a2);
    case PR_GET_NAME:
        return copy_out(&t->ctx, UADDR(a2), t->comm, TASK_COMM_LEN);
    case PR_GET_SECCOMP:
        return t->seccomp_mode;
    case PR_SET_SECCOMP:
        return sys_seccomp_prctl(t, a2, a3);
    case PR_GET_TIMING:
        return PR_TIMING_STATISTICAL;
    case PR_SET_TIMING:
        return a2 == PR_TIMING_STATISTICAL ? 0 : -EINVAL;
    case PR_GET_TSC:
        return out_i32(t, a2, t->no_tsc ? PR_TSC_SIGSEGV : PR_TSC_ENABLE);
    case PR_SET_TSC:
        if ((uint32_t)a2 != PR_TSC_ENABLE && (uint32_t)a2 != PR_TSC_SIGSEGV)
            return -EINVAL;
        t->no_tsc = (uint32_t)a2 == PR_TSC_SIGSEGV;
        return 0;
    case PR_MCE_KILL:
        return mce_kill(t, a2, a3, a4, a5);
    case PR_MCE_KILL_GET:
        return a2 || a3 || a4 || a5 ? -EINVAL : t->mce_kill;
    case PR_GET_THP_DISABLE:
        return a2 || a3 || a4 || a5 ? -EINVAL : 0;
    case PR_SET_TIMERSLACK:
        return set_timer_slack(t, a2);
    case PR_GET_TIMERSLACK:
        return (int64_t)t->timer_slack_ns;
    case PR_SET_CHILD_SUBREAPER:
        t->group->child_subreaper = a2 != 0;
        return 0;
    case PR_GET_CHILD_SUBREAPER:
        return out_i32(t, a2, t->group->child_subreaper);
    case PR_GET_TID_ADDRESS:
        return COPY_OUT(&t->ctx, UADDR(a2), &t->clear_child_tid.v);
    default:
        return -EINVAL;
    }
}

int64_t sys_prctl(struct task *t, int32_t option, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
    int64_t r = cred_options(t, option, a2, a3, a4, a5);

    return r == -ENOSYS ? process_options(t, option, a2, a3, a4, a5) : r;
}

int64_t sys_arch_prctl(struct task *t, int32_t option, uint64_t addr)
{
    struct regs *regs = &t->thread->regs;

    switch (option) {
    case ARCH_SET_FS_K:
    case ARCH_SET_GS_K:
        if (addr >= t->group->container->platform->task_size)
            return -EPERM;
        if (option == ARCH_SET_FS_K) {
            regs->fs_base = addr;
            t->resume_flags |= PLAT_SET_FS;
        } else {
            regs->gs_base = addr;
            t->resume_flags |= PLAT_SET_GS;
        }
        return 0;
    case ARCH_GET_FS_K:
        return COPY_OUT(&t->ctx, UADDR(addr), &regs->fs_base);
    case ARCH_GET_GS_K:
        return COPY_OUT(&t->ctx, UADDR(addr), &regs->gs_base);
    case ARCH_GET_CPUID_K:
        return 1;
    case ARCH_SET_CPUID_K:
        return -ENODEV; /* as on CPUs that can't make the instruction fault */
    default:
        return -EINVAL;
    }
}

int64_t sys_personality(struct task *t, uint32_t persona)
{
    int64_t old = (int64_t)t->personality;

    if (persona != UINT32_MAX)
        t->personality = persona;
    return old;
}

int64_t sys_set_tid_address(struct task *t, uaddr_t addr)
{
    t->clear_child_tid = addr;
    return task_tid_for(t, t);
}
