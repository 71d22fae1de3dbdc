/* SPDX-License-Identifier: Apache-2.0 */
/* How guest processes and threads come to be: the pool that the zygote fills, host forks and host threads. */
#include "platform/seccomp/seccomp_priv.h"

#include <errno.h>
#include <string.h>

#include "platform/base/host.h"
#include "platform/base/log.h"

void scp_wake_waiters(struct scp *p, bool failed)
{
    struct scp_wait *w, *next;
    list_for_each_entry_safe(w, next, &p->spawn_waiters, link)
    {
        w->failed = failed;
        list_del(&w->link);
        p->config.ready(w->fiber);
    }
}

/* Lets a process map its mailbox and touch what it needs, so that all of it is done when somebody wants the process. */
static void scp_warm(struct scp *p, struct scp_thread *t)
{
    t->mbox->calls_len = 0;
    t->mbox->action = STUB_ACT_CALLS;
    t->await_op = STUB_OP_CALLS_DONE;
    t->warming = true;
    scp_answer(p, t);
    t->state = SCP_RUNNING;
}

void scp_thread_born(struct scp *p, struct scp_thread *t)
{
    if (t->fiber) {
        p->config.ready(t->fiber);
        return;
    }
    /* From the zygote. */
    if (list_empty(&p->spawn_waiters))
        scp_warm(p, t);
    else
        scp_pool_add(p, t);
}

void scp_pool_add(struct scp *p, struct scp_thread *t)
{
    t->warming = false;
    p->spawning--;
    p->refill_off = p->fails_told = false;
    list_add_tail(&p->pool, &t->token_link);
    t->in_pool = true;
    p->pool_len++;
    if (!list_empty(&p->spawn_waiters)) {
        struct scp_wait *w = list_first(&p->spawn_waiters, struct scp_wait, link);
        list_del(&w->link);
        p->config.ready(w->fiber);
    }
}

void scp_birth_failed(struct scp *p, uint64_t token, int err)
{
    struct scp_thread *t, *next;
    list_for_each_entry_safe(t, next, &p->births, token_link)
    {
        if (t->token != token || !t->from_zygote)
            continue;
        if (!p->fails_told)
            log_debug("seccomp: the zygote's clone failed: %s", strerror(-err));
        p->fails_told = true;
        p->spawning--;
        scp_thread_free(t);
    }
    /* Trying again at once would be a busy loop for as long as the container is at its limit. */
    p->refill_off = true;
    scp_wake_waiters(p, true);
}

void scp_birth_lost(struct scp *p, struct scp_thread *t)
{
    p->spawning--;
    scp_thread_free(t);
    scp_wake_waiters(p, false);
}

void scp_zygote_died(struct scp *p)
{
    p->dead = true;
    if (p->watch)
        p->config.unwatch(p->watch);
    if (p->zygote_watch)
        p->config.unwatch(p->zygote_watch);
    p->watch = p->zygote_watch = NULL;
    scp_wake_waiters(p, true);
}

/* Without its zygote a container can't exec any more: it ends rather than to linger half alive. */
void scp_zygote_gone(void *arg)
{
    struct scp *p = arg;
    struct scp_aspace *as;
    log_warn("the container's zygote is gone: its processes end");
    p->dead = true;
    p->config.unwatch(p->zygote_watch);
    p->zygote_watch = NULL;
    list_for_each_entry(as, &p->aspaces, link)
        scp_aspace_signal(as);
    scp_wake_waiters(p, true);
}

/* Asks the zygote for one process more. */
static int scp_spawn_one(struct scp *p)
{
    struct scp_aspace *as = scp_aspace_alloc(p);
    struct scp_thread *t = as ? scp_thread_alloc(p, as, 0) : NULL;
    if (as)
        plat_aspace_unref(&as->base); /* the thread holds it */
    if (!t)
        return -ENOMEM;
    uint64_t r;
    host_random(&r, sizeof(r));
    uint64_t gap = (r & 0x3ffffff) << PAGE_SHIFT; /* up to 256 GiB */
    t->mbox->aslr_gap = gap;
    as->base.mmap_top = p->zone - gap;
    as->slots_mapped[0] = 1;
    t->zygote_wanted = t->from_zygote = true;
    list_add_tail(&p->births, &t->token_link);
    p->spawning++;
    scp_zygote_spawn(p);
    return 0;
}

void scp_refill(struct scp *p)
{
    scp_zygote_spawn(p);
    while (!p->dead && !p->refill_off && p->pool_len + p->spawning < p->config.pool_size)
        if (scp_spawn_one(p))
            break;
}

int scp_aspace_new(struct platform *base, struct plat_thread **ret_thread)
{
    struct scp *p = scp_of(base);
    for (int tries = 0; list_empty(&p->pool); tries++) {
        if (p->dead || tries > SCP_SPAWN_TRIES)
            return -EAGAIN;
        if (p->spawning == 0) {
            int err = scp_spawn_one(p);
            if (err)
                return err;
        }
        struct scp_wait w = {.fiber = p->config.self()};
        list_add_tail(&p->spawn_waiters, &w.link);
        p->config.park();
        list_del(&w.link);
        if (w.failed)
            return -EAGAIN;
    }
    struct scp_thread *t = list_first(&p->pool, struct scp_thread, token_link);
    list_del(&t->token_link);
    t->in_pool = false;
    p->pool_len--;
    memset(&t->base.regs, 0, sizeof(t->base.regs));
    t->base.regs.rflags = 0x202;
    t->base.regs.cs = 0x33;
    t->base.regs.ss = 0x2b;
    t->base.regs.orig_rax = (uint64_t)-1;
    t->base.stopped = true;
    *ret_thread = &t->base;
    scp_refill(p);
    return 0;
}

/* Waits until parent has cloned and child has rung, or either will never come. */
static void scp_await_clone(struct scp *p, struct scp_thread *parent, struct scp_thread *child, uint64_t flags)
{
    struct scp_aspace *as = scp_aspace_of(child->base.aspace);
    int64_t result = 0;
    while (!parent->base.aspace->dead && !child->base.aspace->dead) {
        if (parent->op_done) {
            if (!result)
                result = ((volatile struct stub_mailbox *)parent->mbox)->clone_result;
            if (result <= 0 || child->state != SCP_UNBORN)
                return;
            /* The child may die before it rings, and only its parent knows which it is: good enough to stop waiting. */
            if (flags == STUB_CLONE_FORK && !as->base.host_pid) {
                const struct scp_thread *other = scp_find(p, (pid_t)result);
                if (other && other->base.aspace->host_pid == (pid_t)result && !other->base.aspace->dead)
                    return; /* the number has passed on to a process of ours */
                int err = result <= INT32_MAX ? scp_aspace_attach(p, as, (pid_t)result) : -ESRCH;
                if (err == -ESRCH)
                    return;
                as->provisional = err == 0;
            }
        }
        p->config.park();
    }
}

/* Lets parent make child, and waits until both have rung (or the attempt has failed). */
static int scp_run_clone(struct scp *p, struct scp_thread *parent, struct scp_thread *child, uint64_t flags,
                         bool slot_used)
{
    volatile struct stub_mailbox *m = parent->mbox;
    struct scp_aspace *as = scp_aspace_of(parent->base.aspace);
    m->clone_flags = flags;
    m->clone_token = child->token;
    m->clone_slot = child->slot;
    m->clone_slot_used = slot_used;
    m->action = STUB_ACT_CLONE;
    parent->clone_open = flags;
    parent->clone_passed = 0;
    parent->clone_child = child;
    parent->await_op = STUB_OP_CLONE_DONE;
    parent->op_done = false;
    parent->fiber = child->fiber = p->config.self();
    list_add_tail(&p->births, &child->token_link);
    scp_reply(p, parent, 0);
    scp_await_clone(p, parent, child, flags);
    parent->fiber = child->fiber = NULL;
    parent->clone_open = 0;
    parent->clone_child = NULL;
    list_del(&child->token_link);
    if (child->state == SCP_HELD && !child->base.aspace->dead && !as->base.dead) {
        child->base.regs = parent->base.regs;
        child->base.stopped = true;
        return 0;
    }
    if (flags == STUB_CLONE_FORK && parent->clone_passed && child->state == SCP_UNBORN) {
        /* A process may have come of it that never rings. */
        if (!as->base.dead && scp_has_stray(p, parent, flags))
            scp_violation(parent, "it hides a child");
        if (as->watch)
            as->stray_risk = true;
        else
            scp_kill_strays(p);
    }
    return as->base.dead ? -ESRCH : -EAGAIN;
}

int scp_fork(struct plat_thread *base, struct plat_thread **ret_child)
{
    struct scp_thread *parent = scp_thread_of(base);
    struct scp *p = scp_of(base->aspace->platform);
    if (base->aspace->dead)
        return -ESRCH;
    struct scp_aspace *as = scp_aspace_alloc(p);
    struct scp_thread *child = as ? scp_thread_alloc(p, as, parent->slot) : NULL;
    if (as)
        plat_aspace_unref(&as->base);
    if (!child)
        return -ENOMEM;
    as->slots_mapped[parent->slot / 64] |= 1ULL << (parent->slot % 64);
    as->base.mmap_top = base->aspace->mmap_top;
    child->fpu_at = parent->fpu_at;
    int err = scp_run_clone(p, parent, child, STUB_CLONE_FORK, false);
    if (err) {
        as->live--;
        if (as->provisional)
            scp_aspace_detach(p, as);
        scp_aspace_kill(&as->base);
        if (as->watch)
            child->state = SCP_ENDED;
        else
            scp_thread_free(child);
        return err;
    }
    *ret_child = &child->base;
    return 0;
}

static int scp_pick_slot(const struct scp_aspace *as)
{
    for (unsigned i = 0; i < ARRAY_SIZE(as->slots_busy); i++)
        if (~as->slots_busy[i])
            return (int)(i * 64 + (unsigned)__builtin_ctzll(~as->slots_busy[i]));
    return -EAGAIN;
}

int scp_clone_thread(struct plat_thread *base, struct plat_thread **ret_thread)
{
    struct scp_thread *sibling = scp_thread_of(base);
    struct scp_aspace *as = scp_aspace_of(base->aspace);
    struct scp *p = scp_of(base->aspace->platform);
    if (base->aspace->dead)
        return -ESRCH;
    int slot = scp_pick_slot(as);
    if (slot < 0)
        return slot;
    struct scp_thread *t = scp_thread_alloc(p, as, (unsigned)slot);
    if (!t)
        return -ENOMEM;
    uint64_t bit = 1ULL << (slot % 64);
    bool used = as->slots_mapped[slot / 64] & bit;
    if (sibling->fpu_at) /* where the stub copies it to */
        t->fpu_at = ALIGN_DOWN(p->zone + STUB_SLOTS_OFF + (uint64_t)slot * STUB_SLOT_SIZE + STUB_STACK_OFF +
                                   STUB_STACK_SIZE - p->base.fpu_size,
                               64UL);
    int err = scp_run_clone(p, sibling, t, STUB_CLONE_THREAD, used);
    if (err) {
        as->live--;
        as->slots_busy[slot / 64] &= ~bit;
        scp_thread_free(t);
        return err;
    }
    as->slots_mapped[slot / 64] |= bit;
    as->threaded = true;
    /* The stub has seen the slot's former thread gone. */
    struct scp_thread *old, *next;
    list_for_each_entry_safe(old, next, &as->threads, sibling)
        if (old->state == SCP_ENDED && old->slot == t->slot && old->tid != as->base.host_pid)
            scp_thread_free(old);
    *ret_thread = &t->base;
    return 0;
}
