/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp backend's objects and operations. */
#include "platform/seccomp/plat_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "platform/seccomp/seccomp_priv.h"
#include "platform/seccomp/zygote.h"

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define SCP_SYNC_WAKE_UP 1UL

/* ---- objects ---- */

struct scp_aspace *scp_aspace_alloc(struct scp *p)
{
    struct scp_aspace *as = NEW(struct scp_aspace);
    if (!as)
        return NULL;
    as->base.platform = &p->base;
    as->base.refs = 1;
    as->pidfd = -1;
    list_init(&as->threads);
    return as;
}

struct plat_aspace *plat_aspace_ref(struct plat_aspace *as)
{
    BUG_ON(as->refs == 0);
    as->refs++;
    return as;
}

void plat_aspace_unref(struct plat_aspace *as)
{
    if (!as || --as->refs)
        return;
    struct scp_aspace *s = scp_aspace_of(as);
    if (s->watch)
        scp_of(as->platform)->config.unwatch(s->watch);
    host_close(s->pidfd);
    mem_free(s);
}

/* A thread object with its mailbox, member of as (takes a reference). NULL on no memory or descriptors. */
struct scp_thread *scp_thread_alloc(struct scp *p, struct scp_aspace *as, unsigned slot)
{
    struct scp_thread *t = NEW(struct scp_thread);
    if (!t)
        return NULL;
    t->mbox_fd = host_memfd("mailbox", STUB_MBOX_SIZE);
    if (t->mbox_fd < 0) {
        mem_free(t);
        return NULL;
    }
    void *m = mmap(NULL, STUB_MBOX_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->mbox_fd, 0);
    if (m == MAP_FAILED) {
        host_close(t->mbox_fd);
        mem_free(t);
        return NULL;
    }
    t->mbox = m;
    t->slot = slot;
    as->slots_busy[slot / 64] |= 1ULL << (slot % 64);
    t->base.aspace = plat_aspace_ref(&as->base);
    list_add_tail(&as->threads, &t->sibling);
    as->live++;
    list_init(&t->hash_link);
    list_init(&t->token_link);
    do
        host_random(&t->token, sizeof(t->token));
    while ((int64_t)t->token <= 0);
    return t;
}

void scp_thread_free(struct scp_thread *t)
{
    struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    list_del(&t->hash_link);
    list_del(&t->sibling);
    list_del(&t->token_link);
    if (t->mbox)
        munmap(t->mbox, STUB_MBOX_SIZE);
    host_close(t->mbox_fd);
    mem_free(t);
    plat_aspace_unref(&as->base);
}

/* ---- death ---- */

static void scp_aspace_kill(struct plat_aspace *base)
{
    struct scp_aspace *as = scp_aspace_of(base);
    base->dead = true;
    if (as->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, as->pidfd, SIGKILL, NULL, 0);
}

/* The next thread of as that has not been told of its death. */
static struct scp_thread *scp_next_dead(struct scp_aspace *as)
{
    struct scp_thread *t;
    list_for_each_entry(t, &as->threads, sibling)
        if (!t->death_told)
            return t;
    return NULL;
}

void scp_aspace_died(struct scp *p, struct scp_aspace *as)
{
    bool asked = as->base.dead;
    as->base.dead = true;
    if (as->watch)
        p->config.unwatch(as->watch);
    as->watch = NULL;
    plat_aspace_ref(&as->base);
    struct scp_thread *t;
    while ((t = scp_next_dead(as))) {
        t->death_told = true;
        t->notif_id = 0;
        if (t->in_pool)
            p->pool_len--;
        if (t->state == SCP_ENDED || t->in_pool) {
            scp_thread_free(t);
            continue;
        }
        if (t->fiber)
            p->config.ready(t->fiber);
        if (!asked && t->base.owner) {
            t->base.stopped = true;
            p->base.client->on_death(&t->base, t->base.owner, SIGKILL);
        }
    }
    plat_aspace_unref(&as->base);
    scp_refill(p);
}

static void scp_pidfd_ready(void *arg)
{
    struct scp_aspace *as = arg;
    scp_aspace_died(scp_of(as->base.platform), as);
}

/* Ends the host thread that waits in its doorbell. The leader must stay (process_vm_* needs it): it is left waiting. */
void scp_thread_release(struct scp *p, struct scp_thread *t, uint64_t clear_tid)
{
    struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    volatile struct stub_mailbox *m = t->mbox;
    t->state = SCP_ENDED;
    if (t->tid == as->base.host_pid) {
        if (!clear_tid)
            return;
        m->calls[0].nr = SYS_futex;
        m->calls[0].args[0] = clear_tid;
        m->calls[0].args[1] = 1; /* FUTEX_WAKE, shared as the host does at exit */
        m->calls[0].args[2] = 1;
        m->calls[0].args[3] = m->calls[0].args[4] = m->calls[0].args[5] = 0;
        m->calls[0].close_fd = -1;
        m->calls_len = 1;
        m->action = STUB_ACT_CALLS;
    } else {
        m->clear_tid = clear_tid;
        m->action = STUB_ACT_EXIT;
        as->slots_busy[t->slot / 64] &= ~(1ULL << (t->slot % 64));
    }
    scp_reply(p, t, 0);
    if (t->tid != as->base.host_pid) {
        /* Only the answer is kept, for an echo, until the slot is used again. */
        munmap(t->mbox, STUB_MBOX_SIZE);
        t->mbox = NULL;
    }
}

static void scp_thread_end(struct plat_thread *base, uint64_t clear_tid)
{
    struct scp_thread *t = scp_thread_of(base);
    struct scp_aspace *as = scp_aspace_of(base->aspace);
    struct scp *p = scp_of(base->aspace->platform);
    BUG_ON(t->state == SCP_ENDED);
    as->live--;
    if (as->base.dead) {
        if (as->watch)
            t->state = SCP_ENDED; /* freed when the host says that the process is gone */
        else
            scp_thread_free(t);
        return;
    }
    if (as->live == 0) {
        t->state = SCP_ENDED;
        scp_aspace_kill(&as->base);
        if (!as->watch)
            scp_aspace_died(p, as);
        return;
    }
    if (t->state == SCP_STOPPED && t->notif_id) {
        scp_thread_release(p, t, clear_tid);
        return;
    }
    /* Running (or its doorbell is being restarted): at its next ring it is told to end. */
    t->state = SCP_ENDED;
    syscall(SYS_tgkill, as->base.host_pid, t->tid, STUB_KICK_SIGNAL);
}

/* ---- births ---- */

void scp_thread_born(struct scp *p, struct scp_thread *t)
{
    struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    if (as->base.host_pid == 0) {
        as->base.host_pid = t->tid;
        as->pidfd = (int)host_ret(syscall(SYS_pidfd_open, t->tid, 0));
        if (as->pidfd >= 0)
            as->watch = p->config.watch(as->pidfd, scp_pidfd_ready, as);
        if (!as->watch) {
            /* Dead already, or no descriptors: it can't be trusted to end with us. */
            syscall(SYS_tkill, t->tid, SIGKILL);
            as->base.dead = true;
        }
    }
    if (t->fiber) {
        p->config.ready(t->fiber);
        return;
    }
    /* From the zygote: into the pool. */
    p->spawning--;
    if (as->base.dead) {
        scp_thread_free(t);
    } else {
        list_add_tail(&p->pool, &t->token_link);
        t->in_pool = true;
        p->pool_len++;
    }
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
        log_debug("seccomp: the zygote's clone failed: %s", strerror(-err));
        p->spawning--;
        scp_thread_free(t);
    }
    struct scp_wait *w, *wnext;
    list_for_each_entry_safe(w, wnext, &p->spawn_waiters, link)
    {
        list_del(&w->link);
        p->config.ready(w->fiber);
    }
}

void scp_zygote_died(struct scp *p)
{
    p->dead = true;
    if (p->watch)
        p->config.unwatch(p->watch);
    p->watch = NULL;
    struct scp_wait *w, *next;
    list_for_each_entry_safe(w, next, &p->spawn_waiters, link)
    {
        list_del(&w->link);
        p->config.ready(w->fiber);
    }
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
    while (p->pool_len + p->spawning < p->config.pool_size)
        if (scp_spawn_one(p))
            break;
}

static int scp_aspace_new(struct platform *base, struct plat_thread **ret_thread)
{
    struct scp *p = scp_of(base);
    for (int tries = 0; list_empty(&p->pool); tries++) {
        if (p->dead || tries > 2)
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

/* Lets parent make child, and waits until both have rung (or the attempt has failed). */
static int scp_run_clone(struct scp *p, struct scp_thread *parent, struct scp_thread *child, uint64_t flags,
                         bool slot_used)
{
    struct stub_mailbox *m = parent->mbox;
    void *self = p->config.self();
    m->clone_flags = flags;
    m->clone_token = child->token;
    m->clone_slot = child->slot;
    m->clone_slot_used = slot_used;
    m->action = STUB_ACT_CLONE;
    parent->clone_open = flags;
    parent->op_done = false;
    parent->fiber = child->fiber = self;
    list_add_tail(&p->births, &child->token_link);
    scp_reply(p, parent, 0);
    int64_t result = 1;
    while (!parent->base.aspace->dead && !child->base.aspace->dead) {
        if (parent->op_done) {
            result = ((volatile struct stub_mailbox *)m)->clone_result;
            if (result < 0 || child->state != SCP_UNBORN)
                break;
        }
        p->config.park();
    }
    parent->fiber = child->fiber = NULL;
    list_del(&child->token_link);
    if (child->state == SCP_HELD && !child->base.aspace->dead) {
        child->base.regs = parent->base.regs;
        child->base.stopped = true;
        return 0;
    }
    return parent->base.aspace->dead ? -ESRCH : -EAGAIN;
}

static int scp_fork(struct plat_thread *base, struct plat_thread **ret_child)
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
    int err = scp_run_clone(p, parent, child, STUB_CLONE_FORK, false);
    if (err) {
        as->live--;
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

static int scp_clone_thread(struct plat_thread *base, struct plat_thread **ret_thread)
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
    int err = scp_run_clone(p, sibling, t, STUB_CLONE_THREAD, used);
    if (err) {
        as->live--;
        as->slots_busy[slot / 64] &= ~bit;
        scp_thread_free(t);
        return err;
    }
    as->slots_mapped[slot / 64] |= bit;
    /* The stub has seen the slot's former thread gone. */
    struct scp_thread *old, *next;
    list_for_each_entry_safe(old, next, &as->threads, sibling)
        if (old->state == SCP_ENDED && old->slot == t->slot && old->tid != as->base.host_pid)
            scp_thread_free(old);
    *ret_thread = &t->base;
    return 0;
}

/* ---- running ---- */

/* Answers a stopped thread; a held one gets its mailbox with the answer. */
static void scp_answer(struct scp *p, struct scp_thread *t)
{
    int64_t value = 0;
    if (t->state == SCP_HELD) {
        value = scp_inject(p, t, t->mbox_fd);
        host_close(t->mbox_fd);
        t->mbox_fd = -1;
    }
    scp_reply(p, t, value);
    scp_guestmem_reset(t);
}

/* Describes a call to the stub; its descriptor goes into the process now. */
static int scp_fill_call(struct scp *p, struct scp_thread *t, unsigned i, const struct plat_hostcall *call)
{
    volatile struct stub_call *c = &t->mbox->calls[i];
    c->nr = call->nr;
    for (int a = 0; a < 6; a++)
        c->args[a] = call->args[a];
    c->close_fd = -1;
    c->result = -ECANCELED;
    if (call->fd >= 0) {
        int fd = scp_inject(p, t, call->fd);
        if (fd < 0)
            return fd;
        c->args[4] = (uint64_t)fd;
        c->close_fd = fd;
    }
    return 0;
}

static void scp_export_regs(struct scp_thread *t)
{
    const struct regs *r = &t->base.regs;
    volatile uint64_t *g = t->mbox->gregs;
    g[G_R8] = r->r8;
    g[G_R9] = r->r9;
    g[G_R10] = r->r10;
    g[G_R11] = r->r11;
    g[G_R12] = r->r12;
    g[G_R13] = r->r13;
    g[G_R14] = r->r14;
    g[G_R15] = r->r15;
    g[G_RDI] = r->rdi;
    g[G_RSI] = r->rsi;
    g[G_RBP] = r->rbp;
    g[G_RBX] = r->rbx;
    g[G_RDX] = r->rdx;
    g[G_RAX] = r->rax;
    g[G_RCX] = r->rcx;
    g[G_RSP] = r->rsp;
    g[G_RIP] = r->rip;
    g[G_EFL] = r->rflags;
}

static void scp_resume(struct plat_thread *base, unsigned flags, uint64_t fpu_addr)
{
    struct scp_thread *t = scp_thread_of(base);
    struct scp *p = scp_of(base->aspace->platform);
    volatile struct stub_mailbox *m = t->mbox;
    if (base->aspace->dead)
        return;
    base->stopped = false;
    if (base->has_tail && !flags) {
        int err = scp_fill_call(p, t, 0, &base->tail);
        m->calls_len = 1;
        m->ret = err;
        m->action = err ? STUB_ACT_RETURN : STUB_ACT_TAIL;
    } else if (!flags && t->state != SCP_HELD) {
        m->ret = (int64_t)base->regs.rax;
        m->action = STUB_ACT_RETURN;
    } else {
        scp_export_regs(t);
        m->new_fs = base->regs.fs_base;
        m->new_gs = base->regs.gs_base;
        m->fpu_addr = fpu_addr;
        m->flags = flags | STUB_RES_REGS;
        m->action = STUB_ACT_RESUME;
    }
    scp_answer(p, t);
    t->state = SCP_RUNNING;
}

static void scp_kick(struct plat_thread *base)
{
    struct scp_thread *t = scp_thread_of(base);
    if (t->state == SCP_RUNNING && !base->aspace->dead)
        syscall(SYS_tgkill, base->aspace->host_pid, t->tid, STUB_KICK_SIGNAL);
}

static int scp_hostcalls_batch(struct scp *p, struct scp_thread *t, struct plat_hostcall *calls, unsigned len)
{
    volatile struct stub_mailbox *m = t->mbox;
    unsigned filled;
    int err = 0;
    for (filled = 0; filled < len; filled++) {
        err = scp_fill_call(p, t, filled, &calls[filled]);
        if (err)
            break;
    }
    m->calls_len = filled;
    m->calls_done = 0;
    m->action = STUB_ACT_CALLS;
    t->op_done = false;
    t->fiber = p->config.self();
    scp_answer(p, t);
    t->state = SCP_RUNNING;
    while (!t->op_done && !t->base.aspace->dead)
        p->config.park();
    t->fiber = NULL;
    if (t->base.aspace->dead)
        return -ESRCH;
    bool failed = false;
    for (unsigned i = 0; i < len; i++) {
        calls[i].result = failed || i > filled ? -ECANCELED : i == filled ? err : m->calls[i].result;
        if (calls[i].result < 0 && calls[i].result >= -4095)
            failed = true;
    }
    return 0;
}

static int scp_hostcalls(struct plat_thread *base, struct plat_hostcall *calls, unsigned len)
{
    struct scp_thread *t = scp_thread_of(base);
    struct scp *p = scp_of(base->aspace->platform);
    bool failed = false;
    for (unsigned at = 0; at < len;) {
        unsigned n = MIN(len - at, (unsigned)STUB_CALLS_MAX);
        if (failed) {
            for (unsigned i = at; i < len; i++)
                calls[i].result = -ECANCELED;
            return 0;
        }
        if (base->aspace->dead)
            return -ESRCH;
        int err = scp_hostcalls_batch(p, t, calls + at, n);
        if (err)
            return err;
        int64_t last = calls[at + n - 1].result;
        failed = last < 0 && last >= -4095;
        at += n;
    }
    return 0;
}

static int scp_set_brk(struct plat_thread *base, uint64_t start, uint64_t limit_bytes)
{
    volatile struct stub_mailbox *m = scp_thread_of(base)->mbox;
    m->brk_start = start;
    m->brk_limit = limit_bytes;
    m->brk_set = 1;
    return 0;
}

static uint64_t scp_thread_cpu_ns(struct plat_thread *base)
{
    struct scp_thread *t = scp_thread_of(base);
    struct timespec ts;
    /* The thread's CPU clock by tid, as pthread_getcpuclockid makes it. */
    clockid_t clock = (clockid_t)(((unsigned)~t->tid << 3) | 6);
    if (!t->tid || clock_gettime(clock, &ts) < 0)
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- backend ---- */

static void scp_free(struct platform *base)
{
    struct scp *p = scp_of(base);
    if (p->watch)
        p->config.unwatch(p->watch);
    host_close(p->listener);
    syscall(SYS_tkill, p->zygote_pid, SIGKILL);
    mem_free(p);
}

static const struct platform_ops scp_ops = {
    .name = "seccomp",
    .free = scp_free,
    .aspace_new = scp_aspace_new,
    .fork = scp_fork,
    .clone_thread = scp_clone_thread,
    .thread_end = scp_thread_end,
    .aspace_kill = scp_aspace_kill,
    .resume = scp_resume,
    .kick = scp_kick,
    .hostcalls = scp_hostcalls,
    .copy_in = scp_copy_in,
    .copy_in_some = scp_copy_in_some,
    .copy_out = scp_copy_out,
    .set_brk = scp_set_brk,
    .thread_cpu_ns = scp_thread_cpu_ns,
};

int plat_seccomp_new(const struct plat_seccomp_config *config, struct errmsg *e,
                     struct platform **ret_platform)
{
    struct scp *p = NEW(struct scp);
    if (!p)
        return errmsg_set(e, -ENOMEM, "seccomp platform: out of memory");
    struct zygote z = {0};
    int err = zygote_spawn(e, &z);
    if (err) {
        mem_free(p);
        return err;
    }
    p->base.ops = &scp_ops;
    p->base.task_size = z.zone;
    p->base.vdso = z.vdso;
    unsigned long min = getauxval(AT_MINSIGSTKSZ);
    p->base.min_sigstack = min ? min : 2048;
    p->config = *config;
    p->listener = z.listener;
    p->zone = z.zone;
    p->zygote_pid = z.pid;
    for (unsigned i = 0; i < SCP_HASH; i++)
        list_init(&p->hash[i]);
    list_init(&p->births);
    list_init(&p->pool);
    list_init(&p->spawn_waiters);
    /* 6.6+: the notified thread runs on the notifier's CPU at once. Older hosts just are slower. */
    if (ioctl(p->listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SCP_SYNC_WAKE_UP) < 0)
        log_debug("seccomp: no SYNC_WAKE_UP on this host");
    p->watch = config->watch(p->listener, scp_listener_ready, p);
    if (!p->watch) {
        scp_free(&p->base);
        return errmsg_set(e, -ENOMEM, "seccomp platform: out of memory");
    }
    *ret_platform = &p->base;
    return 0;
}

int plat_seccomp_zygote_pid(const struct platform *p)
{
    return container_of(p, const struct scp, base)->zygote_pid;
}
