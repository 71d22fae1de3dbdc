/* SPDX-License-Identifier: Apache-2.0 */
/* Priority-inheritance futexes and robust lists.
 *
 * Guests change lock words with atomic instructions at any time, and the sentry can only copy. Two facts make that
 * enough: the host's FUTEX_WAKE_OP, run in the guest, sets a bit atomically; and once FUTEX_WAITERS is set in a PI word,
 * user space leaves the word to the kernel, so plain copies are safe from then on. */
#include "sentry/kernel/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"
#include "sentry/core/limits.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

/* A PI word that threads of the sentry's guests wait for or are about to. */
struct pi_lock {
    struct list link;     /* pi_locks */
    const struct mm *mm;  /* compared only: every user is a task of it */
    uint64_t addr;
    unsigned users;       /* threads inside futex_pi_lock: keeps the object */
    struct list waiters;  /* of pi_waiter.link, oldest first */
    struct task *owner;   /* not owned: whose exit hands it on; NULL when unknown */
};

struct pi_waiter {
    struct list link;
    struct task *task;
    struct waitq wait;
    bool granted;
};

static struct list pi_locks = LIST_INIT(pi_locks); /* (k) few: only contended ones */
static unsigned waiters_len;                       /* (k) */

enum bit { BIT_OWNER_DIED = 30, BIT_WAITERS = 31 };
enum { TID_BITS = 30 };

/* Sets one bit of a guest word atomically, and wakes one host waiter of it. Parks. */
static int set_bit(struct task *t, uint64_t addr, enum bit bit)
{
    /* WAKE_OP stores word |= 1 << bit; its comparison (old value equal 0) is of no use here. */
    uint32_t op = (uint32_t)(FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT) << 28 | (uint32_t)bit << 12;
    struct plat_hostcall call = {
        .nr = SYS_futex, .fd = -1, .args = {addr, FUTEX_WAKE_OP, 1, 0, addr, op}};
    int r;

    if (!t->thread || !t->thread->stopped)
        return -EFAULT;
    r = plat_thread_hostcalls(t->thread, &call, 1);
    if (r)
        return -EFAULT;
    return call.result < 0 ? (int)call.result : 0;
}

static struct pi_lock *find(const struct mm *mm, uint64_t addr)
{
    struct pi_lock *l;

    list_for_each_entry(l, &pi_locks, link) {
        if (l->mm == mm && l->addr == addr)
            return l;
    }
    return NULL;
}

static struct pi_lock *get(const struct mm *mm, uint64_t addr)
{
    struct pi_lock *l = find(mm, addr);

    if (!l) {
        l = NEW(struct pi_lock);
        if (!l)
            return NULL;
        l->mm = mm;
        l->addr = addr;
        list_init(&l->waiters);
        list_add(&pi_locks, &l->link);
    }
    l->users++;
    return l;
}

static void put(struct pi_lock *l)
{
    if (--l->users)
        return;
    list_del(&l->link);
    mem_free(l);
}

static uint32_t tid_of(const struct task *t)
{
    return (uint32_t)task_tid_in(t, t->pidns);
}

/* Makes t the owner in the word; the bit stays set while anybody may still look. */
static int own(struct task *t, struct pi_lock *l, uint32_t old)
{
    uint32_t word = tid_of(t) | (old & FUTEX_OWNER_DIED);
    int r;

    if (!list_empty(&l->waiters) || l->users > 1)
        word |= FUTEX_WAITERS;
    r = COPY_OUT(&t->ctx, UADDR(l->addr), &word);
    if (!r)
        l->owner = t;
    return r;
}

/* Hands the lock from t to the oldest waiter, or frees it. flags: FUTEX_OWNER_DIED or 0. t's memory is used. */
static int pass_on(struct task *t, struct pi_lock *l, uint32_t flags)
{
    struct pi_waiter *w = list_first_or_null(&l->waiters, struct pi_waiter, link);
    uint32_t word = flags;
    int r;

    /* Threads on their way to wait have announced themselves: the bit keeps others off the word until they look. */
    if (l->users > (w ? 1U : 0U))
        word |= FUTEX_WAITERS;
    if (w)
        word |= tid_of(w->task);
    r = COPY_OUT(&t->ctx, UADDR(l->addr), &word);
    if (r)
        return r;
    l->owner = w ? w->task : NULL;
    if (w) {
        w->granted = true;
        list_del(&w->link);
        waitq_wake_all(&w->wait);
    }
    return 0;
}

static int wait_for(struct task *t, struct pi_lock *l, uint64_t deadline_ns)
{
    struct pi_waiter w = {.task = t};
    int r;

    if (waiters_len >= LIMIT_FUTEX_WAITERS)
        return -ENOMEM;
    waiters_len++;
    waitq_init(&w.wait);
    list_add_tail(&l->waiters, &w.link);
    r = WAIT_EVENT_UNTIL(&t->ctx, &w.wait, w.granted, deadline_ns);
    list_del(&w.link);
    waiters_len--;
    if (w.granted)
        return 0;
    return r == -ERESTARTSYS ? -ERESTARTNOINTR : r;
}

/* The bit is set: looks who owns the word, and takes it or waits. */
static int lock_marked(struct task *t, struct pi_lock *l, uint64_t deadline_ns)
{
    struct task *owner;
    uint32_t word;
    int r = COPY_IN(&t->ctx, &word, UADDR(l->addr));

    if (r)
        return r;
    if (!(word & FUTEX_TID_MASK))
        return own(t, l, word);
    if ((word & FUTEX_TID_MASK) == tid_of(t))
        return -EDEADLK;
    if (!deadline_ns)
        return -EAGAIN;
    owner = task_find(t->pidns, (int)(word & FUTEX_TID_MASK));
    if (!owner || owner->state >= TASK_ZOMBIE) {
        task_unref(owner);
        return -ESRCH;
    }
    l->owner = owner;
    task_unref(owner);
    return wait_for(t, l, deadline_ns);
}

static int check(struct task *t, uaddr_t addr)
{
    if (addr.v & 3)
        return -EINVAL;
    return t->mm ? 0 : -EFAULT;
}

int futex_pi_lock(struct task *t, uaddr_t addr, uint64_t deadline_ns)
{
    struct pi_lock *l;
    int r = check(t, addr);

    if (r)
        return r;
    l = get(t->mm, addr.v);
    if (!l)
        return -ENOMEM;
    r = set_bit(t, addr.v, BIT_WAITERS);
    if (!r)
        r = lock_marked(t, l, deadline_ns);
    put(l);
    return r;
}

int futex_pi_unlock(struct task *t, uaddr_t addr)
{
    uint32_t word, zero = 0;
    struct pi_lock *l;
    int r = check(t, addr);

    if (!r)
        r = COPY_IN(&t->ctx, &word, addr);
    if (r)
        return r;
    if ((word & FUTEX_TID_MASK) != tid_of(t))
        return -EPERM;
    l = find(t->mm, addr.v);
    return l ? pass_on(t, l, 0) : COPY_OUT(&t->ctx, addr, &zero);
}

/* ---- exit ---- */

struct robust_head {
    uint64_t next;
    int64_t offset;
    uint64_t pending;
};

/* Makes the dead thread's number OWNER_DIED, keeps WAITERS, and wakes a waiter. Others may set WAITERS at any time and take the
 * lock as soon as the word is 0 or bears OWNER_DIED; no single operation of the host does it all. But the number may be anything
 * that is not 0 until it goes: with all its bits set, adding 1 clears them and carries into OWNER_DIED. */
static int mark_died(struct task *t, uint64_t addr)
{
    const uint32_t never = (uint32_t)FUTEX_OP_CMP_EQ << 24; /* the comparison: the word is not 0 */
    const uint32_t bit = (uint32_t)FUTEX_OP_OPARG_SHIFT << 28;
    struct plat_hostcall calls[TID_BITS - 11 + 3];
    unsigned n = 0;
    uint32_t ops[ARRAY_SIZE(calls)];

    ops[n++] = (uint32_t)FUTEX_OP_ANDN << 28 | bit | never | (uint32_t)BIT_OWNER_DIED << 12;
    ops[n++] = (uint32_t)FUTEX_OP_OR << 28 | never | 0x7ff << 12;
    for (uint32_t i = 11; i < TID_BITS; i++)
        ops[n++] = (uint32_t)FUTEX_OP_OR << 28 | bit | never | i << 12;
    ops[n++] = (uint32_t)FUTEX_OP_ADD << 28 | never | 1 << 12;
    BUG_ON(n != ARRAY_SIZE(calls));
    /* Each operation also wakes a waiter of its first word: the list's head, which nobody waits for, until the last. */
    for (unsigned i = 0; i < n; i++)
        calls[i] = (struct plat_hostcall){.nr = SYS_futex, .fd = -1,
            .args = {i + 1 < n ? t->robust_list.v & ~3ULL : addr, FUTEX_WAKE_OP, 1, 0, addr, ops[i]}};
    if (!t->thread || !t->thread->stopped || plat_thread_hostcalls(t->thread, calls, n))
        return -EFAULT;
    for (unsigned i = 0; i < n; i++) {
        if (calls[i].result < 0)
            return (int)calls[i].result;
    }
    return 0;
}

/* One lock of a dying thread. Return: 0, or −errno to stop the walk. */
static int handle_death(struct task *t, uint64_t addr, bool pi, bool pending)
{
    struct plat_hostcall wake = {.nr = SYS_futex, .fd = -1, .args = {addr, FUTEX_WAKE, 1}};
    struct pi_lock *l;
    uint32_t word;
    int r;

    if (addr & 3)
        return -EINVAL;
    r = COPY_IN(&t->ctx, &word, UADDR(addr));
    if (r)
        return r;
    if (pending && !pi && !word) {
        /* Died between unlocking and waking. */
        return t->thread->stopped ? plat_thread_hostcalls(t->thread, &wake, 1) : 0;
    }
    if ((word & FUTEX_TID_MASK) != tid_of(t))
        return 0;
    if (pi) {
        l = find(t->mm, addr);
        word = FUTEX_OWNER_DIED;
        return l ? pass_on(t, l, FUTEX_OWNER_DIED) : COPY_OUT(&t->ctx, UADDR(addr), &word);
    }
    return mark_died(t, addr);
}

static void walk_robust_list(struct task *t)
{
    struct robust_head head;
    uint64_t entry, next, pending;
    bool pi, next_pi;

    if (uaddr_is_null(t->robust_list) || COPY_IN(&t->ctx, &head, t->robust_list))
        return;
    pending = head.pending & ~1ULL;
    entry = head.next & ~1ULL;
    pi = head.next & 1;
    for (unsigned n = 0; entry != t->robust_list.v && n < LIMIT_ROBUST_LIST; n++) {
        /* The next one first: once its lock is free, the entry may be reused. */
        if (COPY_IN(&t->ctx, &next, UADDR(entry)))
            return;
        next_pi = next & 1;
        if (entry != pending && handle_death(t, entry + (uint64_t)head.offset, pi, false))
            return;
        entry = next & ~1ULL;
        pi = next_pi;
    }
    if (pending && handle_death(t, pending + (uint64_t)head.offset, head.pending & 1, true))
        return;
}

void futex_task_exit(struct task *t)
{
    struct pi_lock *l, *next;

    walk_robust_list(t);
    t->robust_list = UADDR_NULL;
    list_for_each_entry_safe(l, next, &pi_locks, link) {
        if (l->owner != t)
            continue;
        l->owner = NULL;
        if (l->mm == t->mm && !list_empty(&l->waiters) && pass_on(t, l, FUTEX_OWNER_DIED))
            continue;
    }
}
