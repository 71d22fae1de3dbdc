/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that the stub answers without the sentry: anonymous memory, the heap, futexes, identity, signal masks. */
#include "platform/seccomp/stub.h"

enum { MAP_SHARED_ = 1, MAP_PRIVATE_ = 2, MAP_TYPE_ = 15, MAP_FIXED_ = 0x10, MAP_ANON_ = 0x20,
       MAP_LOCKED_ = 0x2000, MAP_HUGETLB_ = 0x40000, MAP_FIXED_NOREPLACE_ = 0x100000,
       MAP_SYNC_ = 0x80000 };
enum { FUTEX_WAIT_ = 0, FUTEX_WAKE_ = 1, FUTEX_REQUEUE_ = 3, FUTEX_CMP_REQUEUE_ = 4, FUTEX_WAKE_OP_ = 5,
       FUTEX_WAIT_BITSET_ = 9, FUTEX_WAKE_BITSET_ = 10, FUTEX_PRIVATE_ = 128, FUTEX_REALTIME_ = 256, FUTEX_SIZE_MASK_ = 3 };
enum { E_INTR = 4, E_NOMEM = 12, E_FAULT = 14, E_INVAL = 22, E_RESTARTSYS = 512, E_RESTARTBLOCK = 516 };

/* Whether [addr, addr+size) stays below the zone. */
static int local_range_ok(const struct stub_slot *s, uint64_t addr, uint64_t size)
{
    uint64_t zone = stub_zone(s);
    return addr <= zone && size <= zone - addr;
}

static long local_mmap(struct stub_slot *s, const uint64_t *a, int *ret_how)
{
    uint64_t flags = a[3];
    if (!(flags & MAP_ANON_) || (flags & (MAP_HUGETLB_ | MAP_LOCKED_)) || stub_proc(s)->lock_flag) {
        *ret_how = STUB_LOCAL_NO;
        return 0;
    }
    uint64_t addr = a[0];
    if (!local_range_ok(s, addr, a[1])) {
        if (flags & (MAP_FIXED_ | MAP_FIXED_NOREPLACE_))
            return -E_NOMEM;
        addr = 0;
    }
    return stub_syscall(NR_MMAP, addr, a[1], a[2], flags, (uint64_t)-1, 0);
}

/* A range that goes on into the zone, but not beyond what a process may have, loses what is below: a program that unmaps all
 * of its memory is to find none. */
static long local_munmap(struct stub_slot *s, uint64_t addr, uint64_t size)
{
    uint64_t zone = stub_zone(s);
    if (addr < zone && size > zone - addr && size <= stub_config(s)->zone_top - addr)
        size = zone - addr;
    return local_range_ok(s, addr, size) ? stub_syscall(NR_MUNMAP, addr, size, 0, 0, 0, 0) : -E_INVAL;
}

static long local_mremap(struct stub_slot *s, const uint64_t *a)
{
    if (!local_range_ok(s, a[0], a[1]) || a[2] > stub_zone(s))
        return -E_FAULT;
    if ((a[3] & 2) && !local_range_ok(s, a[4], a[2]))
        return -E_INVAL;
    return stub_syscall(NR_MREMAP, a[0], a[1], a[2], a[3], a[4], 0);
}

static long local_brk(struct stub_slot *s, uint64_t addr)
{
    struct stub_proc *p = stub_proc(s);
    if (p->brk_start == 0)
        return 0;
    while (__atomic_exchange_n(&p->brk_lock, 1, __ATOMIC_ACQUIRE))
        stub_syscall(NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
    uint64_t cur = p->brk_cur;
    if (addr >= p->brk_start && addr - p->brk_start <= p->brk_limit && local_range_ok(s, addr, 0)) {
        uint64_t old_end = (cur + 4095) & ~4095UL, new_end = (addr + 4095) & ~4095UL;
        long r = 0;
        if (new_end > old_end) {
            r = stub_syscall(NR_MMAP, old_end, new_end - old_end, 3,
                             MAP_PRIVATE_ | MAP_ANON_ | MAP_FIXED_NOREPLACE_ | p->lock_flag, (uint64_t)-1, 0);
            if (r > 0 && (uint64_t)r != old_end) { /* a host without NOREPLACE */
                stub_syscall(NR_MUNMAP, (uint64_t)r, new_end - old_end, 0, 0, 0, 0);
                r = -E_NOMEM;
            }
        } else if (new_end < old_end) {
            r = stub_syscall(NR_MUNMAP, new_end, old_end - new_end, 0, 0, 0, 0);
        }
        if (r >= 0 || r < -4095) {
            p->brk_cur = addr;
            cur = addr;
        }
    }
    __atomic_store_n(&p->brk_lock, 0, __ATOMIC_RELEASE);
    return (long)cur;
}

static long local_wait(struct stub_slot *s, uint64_t addr, uint64_t op, uint64_t val, const void *timeout, uint64_t val3)
{
    const uint64_t args[6] = {addr, op, val, (uint64_t)timeout, 0, val3};
    return stub_futex_wait(args, NR_FUTEX, s);
}

/* Waits with an absolute limit, so that the wait can go on after an interruption. */
static int local_futex_go(struct stub_slot *s, long *ret)
{
    const uint64_t *f = s->futex_args;
    long r = local_wait(s, f[0], f[1], f[2], s->futex_deadline, f[3]);
    if (r == -E_INTR) {
        s->futex_restart = 1;
        *ret = -E_RESTARTBLOCK;
        return STUB_LOCAL_INTERRUPTED;
    }
    *ret = r;
    return STUB_LOCAL_DONE;
}

/* Makes an absolute limit on the guest's CLOCK_MONOTONIC one on the host's. What is not a time stays as it is, to be refused. */
static void local_unshift(const struct stub_slot *s, int64_t ts[2])
{
    int64_t shift = stub_mailbox(s)->shared.monotonic_ns;
    if (!shift || ts[0] < 0 || ts[1] < 0 || ts[1] >= 1000000000)
        return;
    ts[0] -= shift / 1000000000;
    ts[1] -= shift % 1000000000;
    if (ts[1] < 0) {
        ts[1] += 1000000000;
        ts[0]--;
    } else if (ts[1] >= 1000000000) {
        ts[1] -= 1000000000;
        ts[0]++;
    }
    if (ts[0] < 0)
        ts[0] = ts[1] = 0;
}

static int local_futex_wait(struct stub_slot *s, const uint64_t *a, long *ret)
{
    uint64_t base = a[1] & 127;
    int64_t ts[2] = {0, 0};
    if (a[3] && (!local_range_ok(s, a[3], sizeof(ts)) || stub_copy(ts, (const void *)a[3], sizeof(ts)))) {
        *ret = -E_FAULT;
        return STUB_LOCAL_DONE;
    }
    if (a[3] && base == FUTEX_WAIT_) {
        if (ts[0] < 0 || ts[1] < 0 || ts[1] >= 1000000000) {
            *ret = -E_INVAL;
            return STUB_LOCAL_DONE;
        }
        int64_t now[2] = {0, 0};
        stub_syscall(NR_CLOCK_GETTIME, 1 /* MONOTONIC */, (uint64_t)now, 0, 0, 0, 0);
        s->futex_deadline[0] = ts[0] > INT64_MAX / 4 ? INT64_MAX / 4 : now[0] + ts[0];
        s->futex_deadline[1] = now[1] + ts[1];
        if (s->futex_deadline[1] >= 1000000000) {
            s->futex_deadline[1] -= 1000000000;
            s->futex_deadline[0]++;
        }
        s->futex_args[0] = a[0];
        s->futex_args[1] = FUTEX_WAIT_BITSET_ | (a[1] & FUTEX_PRIVATE_);
        s->futex_args[2] = a[2];
        s->futex_args[3] = 0xffffffffu;
        return local_futex_go(s, ret);
    }
    if (!(a[1] & FUTEX_REALTIME_))
        local_unshift(s, ts);
    long r = local_wait(s, a[0], a[1], a[2], a[3] ? ts : 0, a[5]);
    if (r == -E_INTR) {
        *ret = -E_RESTARTSYS; /* no limit or an absolute one: simply made again */
        return STUB_LOCAL_INTERRUPTED;
    }
    *ret = r;
    return STUB_LOCAL_DONE;
}

static int local_futex(struct stub_slot *s, const uint64_t *a, long *ret)
{
    uint64_t op = a[1] & ~(uint64_t)(FUTEX_PRIVATE_ | FUTEX_REALTIME_);
    if (!local_range_ok(s, a[0], 4)) {
        *ret = -E_FAULT;
        return STUB_LOCAL_DONE;
    }
    switch (op) {
    case FUTEX_WAIT_:
    case FUTEX_WAIT_BITSET_:
        return local_futex_wait(s, a, ret);
    case FUTEX_WAKE_:
    case FUTEX_WAKE_BITSET_:
    case FUTEX_REQUEUE_:
    case FUTEX_CMP_REQUEUE_:
    case FUTEX_WAKE_OP_:
        if (op >= FUTEX_REQUEUE_ && op <= FUTEX_WAKE_OP_ && !local_range_ok(s, a[4], 4)) {
            *ret = -E_FAULT;
            return STUB_LOCAL_DONE;
        }
        *ret = stub_syscall(NR_FUTEX, a[0], a[1], a[2], a[3], a[4], a[5]);
        return STUB_LOCAL_DONE;
    default:
        return STUB_LOCAL_NO; /* priority inheritance: words hold guest tids, so the sentry's */
    }
}

/* The calls of one operation each. Their limits are absolute, so a wait is simply made again. */
static int local_futex2(struct stub_slot *s, uint64_t nr, const uint64_t *a, long *ret)
{
    /* What later hosts know besides sizes and PRIVATE: a node's number in the word (NUMA), policies. */
    uint64_t flags = nr == NR_FUTEX_WAKE || nr == NR_FUTEX2_WAIT ? a[3] : nr == NR_FUTEX_REQUEUE ? a[1] : 0;
    if ((uint32_t)flags & ~(uint32_t)(FUTEX_SIZE_MASK_ | FUTEX_PRIVATE_)) {
        *ret = -E_INVAL;
        return STUB_LOCAL_DONE;
    }
    if (!local_range_ok(s, a[0], 4)) {
        *ret = -E_FAULT;
        return STUB_LOCAL_DONE;
    }
    if (nr == NR_FUTEX_WAKE || nr == NR_FUTEX_REQUEUE) {
        *ret = stub_syscall(nr, a[0], a[1], a[2], a[3], 0, 0);
        return STUB_LOCAL_DONE;
    }
    uint64_t args[6];
    for (int i = 0; i < 6; i++)
        args[i] = a[i];
    uint64_t *limit = &args[nr == NR_FUTEX2_WAIT ? 4 : 3], clock = limit[1];
    int64_t ts[2];
    /* The copy is the host's to read only where there is something to change. */
    if (*limit && (uint32_t)clock == 1 /* MONOTONIC */ && stub_mailbox(s)->shared.monotonic_ns) {
        if (!local_range_ok(s, *limit, sizeof(ts)) || stub_copy(ts, (const void *)*limit, sizeof(ts))) {
            *ret = -E_FAULT;
            return STUB_LOCAL_DONE;
        }
        local_unshift(s, ts);
        *limit = (uint64_t)ts;
    }
    long r = stub_futex_wait(args, nr, s);
    if (r == -E_INTR) {
        *ret = -E_RESTARTSYS;
        return STUB_LOCAL_INTERRUPTED;
    }
    *ret = r;
    return STUB_LOCAL_DONE;
}

/* Advice that stays inside the process; the rest is the sentry's to judge. */
static int local_madvise_ok(uint64_t advice)
{
    switch (advice) {
    case 0: case 1: case 2: case 3: case 4: case 8: case 10: case 11: case 14: case 15: case 16:
    case 17: case 18: case 19: case 22: case 23:
        return 1;
    default:
        return 0;
    }
}

enum { SIG_BLOCK_ = 0, SIG_UNBLOCK_ = 1, SIG_SETMASK_ = 2, SIGSET_SIZE = 8, SIGACTION_SIZE = 32 };
#define SIGSET_UNBLOCKABLE (1UL << 8 | 1UL << 18)
#define SA_RESTORER_ 0x04000000UL

/* The mask changes here, and the sentry looks at it whenever it has a signal: it notes a signal as pending before it reads
 * the mask, and we write the mask before we read what is pending, so one of us sees the other. */
static int local_sigprocmask(struct stub_slot *s, const uint64_t *a, long *ret)
{
    struct stub_shared *sh = &stub_mailbox(s)->shared;
    uint64_t old = sh->sig_blocked, set;
    if (!sh->valid || a[3] != SIGSET_SIZE)
        return STUB_LOCAL_NO;
    *ret = -E_FAULT;
    if (a[1]) {
        if (!local_range_ok(s, a[1], SIGSET_SIZE) || stub_copy(&set, (const void *)a[1], SIGSET_SIZE))
            return STUB_LOCAL_DONE;
        if ((uint32_t)a[0] == SIG_BLOCK_)
            set |= old;
        else if ((uint32_t)a[0] == SIG_UNBLOCK_)
            set = old & ~set;
        else if ((uint32_t)a[0] != SIG_SETMASK_)
            return STUB_LOCAL_NO;
        set &= ~SIGSET_UNBLOCKABLE;
        __atomic_exchange_n(&sh->sig_blocked, set, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&sh->sig_pending, __ATOMIC_SEQ_CST) & ~set) {
            sh->sig_blocked = old;
            return STUB_LOCAL_NO;
        }
    }
    if (a[2] && (!local_range_ok(s, a[2], SIGSET_SIZE) || stub_copy((void *)a[2], &old, SIGSET_SIZE)))
        return STUB_LOCAL_DONE;
    *ret = 0;
    return STUB_LOCAL_DONE;
}

/* Asking for a default action, and setting one that is in force: a new process does little else. */
static int local_sigaction(struct stub_slot *s, const uint64_t *a, long *ret)
{
    const struct stub_shared *sh = &stub_mailbox(s)->shared;
    uint64_t act[4], zero[4];
    if (!sh->valid || a[3] != SIGSET_SIZE || a[0] < 1 || a[0] > 64 || !(sh->sig_default >> (a[0] - 1) & 1))
        return STUB_LOCAL_NO;
    if (a[1]) {
        if (!local_range_ok(s, a[1], SIGACTION_SIZE) || stub_copy(act, (const void *)a[1], SIGACTION_SIZE))
            return STUB_LOCAL_NO;
        if (act[0] || (act[1] & ~SA_RESTORER_) || act[3])
            return STUB_LOCAL_NO;
    }
    for (int i = 0; i < 4; i++)
        zero[i] = 0;
    *ret = 0;
    if (a[2] && (!local_range_ok(s, a[2], SIGACTION_SIZE) || stub_copy((void *)a[2], zero, SIGACTION_SIZE)))
        *ret = -E_FAULT;
    return STUB_LOCAL_DONE;
}

static int local_identity(struct stub_slot *s, uint64_t nr, long *ret)
{
    const struct stub_shared *sh = &stub_mailbox(s)->shared;
    if (!sh->valid)
        return STUB_LOCAL_NO;
    switch (nr) {
    case NR_GETPID:
        *ret = sh->pid;
        break;
    case NR_GETTID:
        *ret = sh->tid;
        break;
    case NR_GETPPID:
        *ret = sh->ppid;
        break;
    case NR_GETUID:
        *ret = sh->uid;
        break;
    case NR_GETEUID:
        *ret = sh->euid;
        break;
    case NR_GETGID:
        *ret = sh->gid;
        break;
    default:
        *ret = sh->egid;
    }
    return STUB_LOCAL_DONE;
}

/* Synchronises with the host's other threads of this process, which are the guest's. Without restartable sequences, of which
 * the commands for them are a part. */
static long local_membarrier(const uint64_t *a)
{
    enum { RSEQ_COMMANDS = 128 | 256 };
    uint32_t cmd = (uint32_t)a[0];
    if (cmd & RSEQ_COMMANDS)
        return -E_INVAL;
    long r = stub_syscall(NR_MEMBARRIER, cmd, (uint32_t)a[1], a[2], 0, 0, 0);
    return r > 0 ? r & ~(long)RSEQ_COMMANDS : r;
}

/* For ranges that reach into the zone: what the flags alone decide comes first. */
static long local_msync_bad(const uint64_t *a)
{
    enum { MS_ASYNC_ = 1, MS_ALL = 7, MS_SYNC_ = 4 };
    uint32_t flags = (uint32_t)a[2];
    int bad = (flags & ~(uint32_t)MS_ALL) || (a[0] & 4095) || ((flags & MS_ASYNC_) && (flags & MS_SYNC_));
    return bad ? -E_INVAL : -E_NOMEM;
}

int stub_local_call(struct stub_slot *s, struct stub_ucontext *uc, uint64_t nr, long *ret_result)
{
    const uint64_t *g = uc->gregs;
    uint64_t a[6] = {g[G_RDI], g[G_RSI], g[G_RDX], g[G_R10], g[G_R8], g[G_R9]};
    int how = STUB_LOCAL_DONE;
    switch (nr) {
    case NR_MMAP:
        *ret_result = local_mmap(s, a, &how);
        return how;
    case NR_MUNMAP:
        *ret_result = local_munmap(s, a[0], a[1]);
        return STUB_LOCAL_DONE;
    case NR_MPROTECT:
        *ret_result = local_range_ok(s, a[0], a[1]) ? stub_syscall(nr, a[0], a[1], a[2], 0, 0, 0) : -E_NOMEM;
        return STUB_LOCAL_DONE;
    case NR_MREMAP:
        *ret_result = local_mremap(s, a);
        return STUB_LOCAL_DONE;
    case NR_MADVISE:
        if (!local_madvise_ok(a[2]))
            return STUB_LOCAL_NO;
        *ret_result = local_range_ok(s, a[0], a[1]) ? stub_syscall(nr, a[0], a[1], a[2], 0, 0, 0) : -E_NOMEM;
        return STUB_LOCAL_DONE;
    case NR_MINCORE:
        if (!local_range_ok(s, a[0], a[1]))
            *ret_result = a[0] & 4095 ? -E_INVAL : -E_NOMEM;
        else if (!local_range_ok(s, a[2], (a[1] + 4095) >> 12))
            *ret_result = a[0] & 4095 ? -E_INVAL : -E_FAULT;
        else
            *ret_result = stub_syscall(nr, a[0], a[1], a[2], 0, 0, 0);
        return STUB_LOCAL_DONE;
    case NR_MSYNC:
        *ret_result = local_range_ok(s, a[0], a[1]) ? stub_syscall(nr, a[0], a[1], a[2], 0, 0, 0) : local_msync_bad(a);
        return STUB_LOCAL_DONE;
    case NR_REMAP_FILE_PAGES:
        *ret_result = local_range_ok(s, a[0], a[1]) ? stub_syscall(nr, a[0], a[1], a[2], a[3], a[4], 0) : -E_INVAL;
        return STUB_LOCAL_DONE;
    case NR_MSEAL:
        if (!local_range_ok(s, a[0], a[1]))
            *ret_result = a[2] || (a[0] & 4095) || a[0] + a[1] < a[0] ? -E_INVAL : -E_NOMEM;
        else
            *ret_result = stub_syscall(nr, a[0], a[1], a[2], 0, 0, 0);
        return STUB_LOCAL_DONE;
    case NR_MEMBARRIER:
        *ret_result = local_membarrier(a);
        return STUB_LOCAL_DONE;
    case NR_BRK:
        *ret_result = local_brk(s, a[0]);
        return STUB_LOCAL_DONE;
    case NR_SCHED_YIELD:
        *ret_result = stub_syscall(nr, 0, 0, 0, 0, 0, 0);
        return STUB_LOCAL_DONE;
    case NR_RESTART_SYSCALL:
        return s->futex_restart ? local_futex_go(s, ret_result) : STUB_LOCAL_NO;
    case NR_FUTEX:
        return local_futex(s, a, ret_result);
    case NR_FUTEX_WAITV:
    case NR_FUTEX_WAKE:
    case NR_FUTEX2_WAIT:
    case NR_FUTEX_REQUEUE:
        return local_futex2(s, nr, a, ret_result);
    case NR_RT_SIGPROCMASK:
        return local_sigprocmask(s, a, ret_result);
    case NR_RT_SIGACTION:
        return local_sigaction(s, a, ret_result);
    case NR_GETPID:
    case NR_GETTID:
    case NR_GETPPID:
    case NR_GETUID:
    case NR_GETEUID:
    case NR_GETGID:
    case NR_GETEGID:
        return local_identity(s, nr, ret_result);
    default:
        return STUB_LOCAL_NO;
    }
}
