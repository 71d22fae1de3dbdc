/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp backend's objects and operations. */
#include "platform/seccomp/plat_seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "platform/seccomp/seccomp_priv.h"
#include "platform/seccomp/zygote.h"

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
    list_add_tail(&p->aspaces, &as->link);
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
    list_del(&s->link);
    scp_aspace_detach(scp_of(as->platform), s);
    mem_free(s);
}

_Static_assert(sizeof(struct stub_shared) == sizeof(struct plat_shared) &&
                   offsetof(struct stub_shared, valid) == offsetof(struct plat_shared, valid) &&
                   offsetof(struct stub_shared, ask) == offsetof(struct plat_shared, ask) &&
                   offsetof(struct stub_shared, monotonic_ns) == offsetof(struct plat_shared, monotonic_ns) &&
                   (int)STUB_ASK_ALL == (int)PLAT_ASK_ALL && sizeof(struct stub_mailbox) <= 0x1000,
               "one layout for both sides");

static void scp_pidfd_ready(void *arg)
{
    struct scp_aspace *as = arg;
    scp_aspace_died(scp_of(as->base.platform), as);
}

int scp_aspace_attach(struct scp *p, struct scp_aspace *as, pid_t pid)
{
    as->pidfd = (int)host_ret(syscall(SYS_pidfd_open, pid, 0));
    if (as->pidfd < 0)
        return as->pidfd;
    as->watch = p->config.watch(as->pidfd, scp_pidfd_ready, as);
    if (!as->watch) {
        scp_aspace_detach(p, as);
        return -ENOMEM;
    }
    as->base.host_pid = pid;
    return 0;
}

void scp_aspace_detach(struct scp *p, struct scp_aspace *as)
{
    if (as->watch)
        p->config.unwatch(as->watch);
    as->watch = NULL;
    host_close(as->pidfd);
    as->pidfd = -1;
    as->base.host_pid = 0;
    as->provisional = false;
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
    t->base.shared = (volatile struct plat_shared *)&t->mbox->shared;
    t->send_fd = -1;
    t->slot = slot;
    as->slots_busy[slot / 64] |= 1ULL << (slot % 64);
    t->base.aspace = plat_aspace_ref(&as->base);
    list_add_tail(&as->threads, &t->sibling);
    as->live++;
    list_init(&t->hash_link);
    list_init(&t->token_link);
    list_init(&t->look_link);
    do
        host_random(&t->token, sizeof(t->token));
    while ((int64_t)t->token <= 0);
    return t;
}

void scp_drop_tail(struct scp_thread *t)
{
    if (t->tail_due)
        host_close(t->due_tail.fd);
    t->tail_due = false;
}

void scp_thread_free(struct scp_thread *t)
{
    scp_send_done(t);
    struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    scp_look_forget(scp_of(as->base.platform), t);
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

/* Sends SIGKILL to the process of as, if it is known for sure. */
void scp_aspace_signal(const struct scp_aspace *as)
{
    if (as->pidfd >= 0 && !as->provisional)
        syscall(SYS_pidfd_send_signal, as->pidfd, SIGKILL, NULL, 0);
}

void scp_aspace_kill(struct plat_aspace *base)
{
    base->dead = true;
    scp_aspace_of(base)->killed = true;
    scp_aspace_signal(scp_aspace_of(base));
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

static void scp_thread_died(struct scp *p, struct scp_thread *t, bool asked)
{
    t->death_told = true;
    t->notif_id = 0;
    list_del(&t->hash_link); /* the host may give its number to another */
    if (t->from_zygote && (t->state == SCP_UNBORN || t->warming)) {
        scp_birth_lost(p, t);
        return;
    }
    if (t->in_pool)
        p->pool_len--;
    if (t->state == SCP_ENDED || t->in_pool) {
        scp_thread_free(t);
        return;
    }
    if (t->fiber)
        p->config.ready(t->fiber);
    if (!asked && t->base.owner) {
        t->base.stopped = true;
        p->base.client->on_death(&t->base, t->base.owner, SIGKILL);
    }
}

void scp_aspace_died(struct scp *p, struct scp_aspace *as)
{
    bool asked = as->killed, strays = as->stray_risk;
    as->base.dead = true;
    if (as->watch)
        p->config.unwatch(as->watch);
    as->watch = NULL;
    plat_aspace_ref(&as->base);
    struct scp_thread *t;
    while ((t = scp_next_dead(as))) {
        strays |= t->clone_open == STUB_CLONE_FORK && t->clone_passed;
        scp_thread_died(p, t, asked);
    }
    plat_aspace_unref(&as->base);
    if (strays)
        scp_kill_strays(p);
    p->refill_off = false;
    scp_refill(p);
}

/* The leader must stay (process_vm_* needs it): it is left waiting in its doorbell. */
static void scp_leader_release(struct scp *p, struct scp_thread *t, bool held)
{
    volatile struct stub_mailbox *m = t->mbox;
    if (!t->end_clear_tid || held)
        return;
    m->calls[0].nr = SYS_futex;
    m->calls[0].args[0] = t->end_clear_tid;
    m->calls[0].args[1] = 1; /* FUTEX_WAKE, shared as the host does at exit */
    m->calls[0].args[2] = 1;
    m->calls[0].args[3] = m->calls[0].args[4] = m->calls[0].args[5] = 0;
    m->calls[0].close_fd = -1;
    m->calls_len = 1;
    m->action = STUB_ACT_CALLS;
    scp_reply(p, t, 0);
}

void scp_thread_release(struct scp *p, struct scp_thread *t)
{
    struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    volatile struct stub_mailbox *m = t->mbox;
    bool held = t->mbox_fd >= 0;
    t->state = SCP_ENDED;
    if (t->released)
        return;
    t->released = true;
    scp_send_done(t);
    if (t->tid == as->base.host_pid) {
        scp_leader_release(p, t, held);
        return;
    }
    m->clear_tid = t->end_clear_tid;
    m->action = STUB_ACT_EXIT;
    as->slots_busy[t->slot / 64] &= ~(1ULL << (t->slot % 64));
    /* A held thread has no mailbox to read: a refused birth ends it. */
    scp_reply(p, t, held ? -EPERM : 0);
    scp_look_forget(p, t);
    /* Only the answer is kept, for an echo, until the slot is used again. */
    munmap(t->mbox, STUB_MBOX_SIZE);
    t->mbox = NULL;
    t->base.shared = NULL;
    host_close(t->mbox_fd);
    t->mbox_fd = -1;
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
    t->end_clear_tid = clear_tid;
    if ((t->state == SCP_STOPPED || t->state == SCP_HELD) && t->notif_id) {
        scp_thread_release(p, t);
        return;
    }
    /* Running (or its doorbell is being restarted): at its next ring it is told to end. */
    t->state = SCP_ENDED;
    syscall(SYS_tgkill, as->base.host_pid, t->tid, STUB_KICK_SIGNAL);
}

/* ---- running ---- */

/* Describes a call to the stub. fd: its descriptor there, −1 none; reply_fd: the answer brings it. */
static void scp_fill_call(struct scp_thread *t, unsigned i, const struct plat_hostcall *call, int fd, uint32_t reply_fd)
{
    volatile struct stub_call *c = &t->mbox->calls[i];
    c->nr = call->nr;
    for (int a = 0; a < 6; a++)
        c->args[a] = call->args[a];
    if (fd >= 0)
        c->args[4] = (uint64_t)fd;
    c->close_fd = fd;
    c->reply_fd = reply_fd;
    c->result = -ECANCELED;
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

/* The process has died before t had an owner to tell: the event loop tells now, as of any death. */
static void scp_tell_late(struct scp *p, struct scp_thread *t)
{
    struct scp_aspace *as = scp_aspace_of(t->base.aspace);
    if (as->killed || as->watch || as->pidfd < 0)
        return;
    t->death_told = false;
    as->watch = p->config.watch(as->pidfd, scp_pidfd_ready, as);
}

/* Return: whether a stopped thread can go on; what waits for its end is told when not. */
static bool scp_can_go(struct scp *p, struct scp_thread *t)
{
    if (t->base.aspace->dead) {
        scp_tell_late(p, t);
        return false;
    }
    t->base.stopped = false;
    return true;
}

/* All registers, for an action that sets those that its flags name. */
static void scp_export_all(struct scp_thread *t)
{
    volatile struct stub_mailbox *m = t->mbox;
    scp_export_regs(t);
    m->new_fs = t->base.regs.fs_base;
    m->new_gs = t->base.regs.gs_base;
}

static void scp_resume(struct plat_thread *base, unsigned flags, uint64_t fpu_addr)
{
    struct scp_thread *t = scp_thread_of(base);
    struct scp *p = scp_of(base->aspace->platform);
    volatile struct stub_mailbox *m = t->mbox;
    if (!scp_can_go(p, t))
        return;
    if (base->has_tail && !flags) {
        t->due_tail = base->tail;
        t->tail_due = true;
        base->has_tail = false;
        scp_fill_call(t, 0, &t->due_tail, -1, t->due_tail.fd >= 0 ? STUB_REPLY_FD_CLOSE : 0);
        m->calls_len = 1;
        m->action = STUB_ACT_TAIL;
    } else if (!flags && t->state != SCP_HELD) {
        m->ret = (int64_t)base->regs.rax;
        m->action = STUB_ACT_RETURN;
    } else {
        scp_export_all(t);
        m->fpu_addr = fpu_addr;
        m->flags = flags | STUB_RES_REGS;
        m->action = STUB_ACT_RESUME;
    }
    scp_answer(p, t);
    t->state = SCP_RUNNING;
}

static void scp_run_local(struct plat_thread *base, unsigned flags, bool tell)
{
    struct scp_thread *t = scp_thread_of(base);
    struct scp *p = scp_of(base->aspace->platform);
    volatile struct stub_mailbox *m = t->mbox;
    if (!scp_can_go(p, t))
        return;
    if (flags) {
        scp_export_all(t);
        flags |= STUB_RES_REGS;
    }
    m->sysno = base->regs.orig_rax;
    m->flags = flags | (tell ? STUB_RES_TELL : 0);
    m->action = STUB_ACT_LOCAL;
    t->local = true;
    scp_answer(p, t);
    t->state = SCP_RUNNING;
}

static void scp_kick(struct plat_thread *base)
{
    struct scp_thread *t = scp_thread_of(base);
    if (t->state == SCP_RUNNING && !base->aspace->dead)
        syscall(SYS_tgkill, base->aspace->host_pid, t->tid, STUB_KICK_SIGNAL);
}

/* Describes a batch of calls to the stub. A run of calls on one file, the segments of a program, shares a descriptor: the
 * last one closes it. That of the last run goes along with the answer, which spares a hand-over.
 * Return: how many are described; *ret_err says why not all. */
static unsigned scp_fill_batch(struct scp *p, struct scp_thread *t, const struct plat_hostcall *calls, unsigned len,
                               int *ret_err)
{
    bool with_answer = t->mbox_fd < 0; /* else that is what goes along */
    unsigned i, start, end = len;
    int fd = -1;
    while (end && calls[end - 1].fd < 0)
        end--;
    for (start = end; with_answer && start && calls[start - 1].fd == calls[end - 1].fd;)
        start--;
    for (i = 0; i < start; i++) {
        bool again = i && calls[i].fd >= 0 && calls[i].fd == calls[i - 1].fd;
        if (again)
            t->mbox->calls[i - 1].close_fd = -1;
        else
            fd = calls[i].fd >= 0 ? scp_inject_wait(p, t, calls[i].fd) : -1;
        if (calls[i].fd >= 0 && fd < 0) {
            *ret_err = fd;
            return i;
        }
        scp_fill_call(t, i, &calls[i], fd, 0);
    }
    for (; i < len; i++)
        scp_fill_call(t, i, &calls[i], -1, i >= end ? 0 : i == end - 1 ? STUB_REPLY_FD_CLOSE : STUB_REPLY_FD);
    t->send_fd = with_answer && end ? calls[end - 1].fd : -1;
    return len;
}

static int scp_hostcalls_batch(struct scp *p, struct scp_thread *t, struct plat_hostcall *calls, unsigned len)
{
    volatile struct stub_mailbox *m = t->mbox;
    int err = 0;
    unsigned filled = scp_fill_batch(p, t, calls, len, &err);
    m->calls_len = filled;
    m->calls_done = 0;
    m->action = STUB_ACT_CALLS;
    t->await_op = STUB_OP_CALLS_DONE;
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

static void scp_set_lock_future(struct plat_thread *base, bool on)
{
    volatile struct stub_mailbox *m = scp_thread_of(base)->mbox;
    m->lock_set = on ? 2 : 1;
}

static void scp_set_tsc(struct plat_thread *base, bool on)
{
    volatile struct stub_mailbox *m = scp_thread_of(base)->mbox;
    if (m)
        m->tsc_set = on ? 1 : 2; /* PR_TSC_ENABLE, PR_TSC_SIGSEGV */
}

/* CPU time of one thread among several: clocks by tid are for the caller's own threads, so from its procfs. The file is
 * made without waiting for anything that guests hold. */
static uint64_t scp_thread_schedstat(const struct scp *p, const struct scp_thread *t)
{
    char path[48], text[64];
    snprintf(path, sizeof(path), "%d/task/%d/schedstat", t->base.aspace->host_pid, t->tid);
    CLEANUP_CLOSE int fd = (int)host_ret(openat(p->config.proc_fd, path, O_RDONLY | O_CLOEXEC));
    long n = fd < 0 ? fd : host_ret(read(fd, text, sizeof(text) - 1));
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return strtoull(text, NULL, 10);
}

static uint64_t scp_thread_cpu_ns(struct plat_thread *base)
{
    struct scp_thread *t = scp_thread_of(base);
    struct timespec ts;
    if (!t->tid || base->aspace->host_pid <= 0)
        return 0;
    if (scp_aspace_of(base->aspace)->threaded)
        return scp_thread_schedstat(scp_of(base->aspace->platform), t);
    /* The process's CPU clock by pid, as clock_getcpuclockid makes it. */
    clockid_t clock = (clockid_t)((~(unsigned)base->aspace->host_pid << 3) | 2);
    if (clock_gettime(clock, &ts) < 0)
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- backend ---- */

static void scp_free(struct platform *base)
{
    struct scp *p = scp_of(base);
    struct scp_aspace *as;
    list_for_each_entry(as, &p->aspaces, link)
        scp_aspace_signal(as);
    if (p->zygote_pidfd >= 0)
        syscall(SYS_pidfd_send_signal, p->zygote_pidfd, SIGKILL, NULL, 0);
    if (p->watch)
        p->config.unwatch(p->watch);
    if (p->zygote_watch)
        p->config.unwatch(p->zygote_watch);
    p->config.idle(NULL, p);
    host_close(p->listener);
    host_close(p->zygote_pidfd);
    mem_free(p);
}

static bool scp_waits(const struct plat_thread *base)
{
    return container_of(base, const struct scp_thread, base)->fiber != NULL;
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
    .run_local = scp_run_local,
    .kick = scp_kick,
    .hostcalls = scp_hostcalls,
    .waits = scp_waits,
    .copy_in = scp_copy_in,
    .copy_in_some = scp_copy_in_some,
    .copy_out = scp_copy_out,
    .sync = scp_sync,
    .fpu = scp_fpu,
    .set_brk = scp_set_brk,
    .set_lock_future = scp_set_lock_future,
    .set_tsc = scp_set_tsc,
    .aspace_set_limit = scp_aspace_set_limit,
    .thread_cpu_ns = scp_thread_cpu_ns,
};

static uint32_t scp_probed_fpu_size;

static void scp_probe_fpu(int signo, siginfo_t *info, void *context)
{
    /* The description that the host puts into the bytes that FXSAVE leaves to software. */
    const char *fp = (const char *)((const ucontext_t *)context)->uc_mcontext.fpregs;
    uint32_t sw[2];
    memcpy(sw, fp + 464, sizeof(sw));
    scp_probed_fpu_size = sw[0] == 0x46505853 ? sw[1] : 512;
}

/* Size of the FPU state in a signal frame, the same for every process of the host: looked up in a frame of our own. */
static uint32_t scp_fpu_size(void)
{
    struct sigaction act = {.sa_sigaction = scp_probe_fpu, .sa_flags = SA_SIGINFO}, before;
    if (sigaction(STUB_KICK_SIGNAL, &act, &before) == 0) {
        raise(STUB_KICK_SIGNAL);
        sigaction(STUB_KICK_SIGNAL, &before, NULL);
    }
    return scp_probed_fpu_size ? scp_probed_fpu_size : 512;
}

/* The cases of stub_local_call. */
static const uint16_t scp_local_calls[] = {
    SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_mincore, SYS_msync, SYS_remap_file_pages, 462 /* mseal */,
    SYS_membarrier, SYS_brk, SYS_sched_yield, SYS_restart_syscall, SYS_futex,
    449 /* futex_waitv */, 454 /* futex_wake */, 455 /* futex_wait */, 456 /* futex_requeue */, SYS_rt_sigprocmask, SYS_rt_sigaction,
    SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
};

int plat_seccomp_new(const struct plat_seccomp_config *config, struct errmsg *e,
                     struct platform **ret_platform)
{
    struct scp *p = NEW(struct scp);
    if (!p)
        return errmsg_set(e, -ENOMEM, "seccomp platform: out of memory");
    struct zygote z = {0};
    int err = zygote_spawn(config->proc_fd, e, &z);
    if (err) {
        mem_free(p);
        return err;
    }
    p->base.ops = &scp_ops;
    p->base.task_size = z.zone;
    p->base.vdso = z.vdso;
    unsigned long min = getauxval(AT_MINSIGSTKSZ);
    p->base.min_sigstack = min ? min : 2048;
    p->base.hwcap = host_hwcap();
    p->base.fpu_size = scp_fpu_size();
    for (unsigned i = 0; i < ARRAY_SIZE(scp_local_calls); i++)
        p->base.local_calls[scp_local_calls[i] / 64] |= 1ULL << (scp_local_calls[i] % 64);
    p->config = *config;
    p->listener = z.listener;
    p->zone = z.zone;
    p->zygote_pid = z.pid;
    for (unsigned i = 0; i < SCP_HASH; i++)
        list_init(&p->hash[i]);
    list_init(&p->births);
    list_init(&p->pool);
    list_init(&p->spawn_waiters);
    list_init(&p->aspaces);
    list_init(&p->looked_at);
    scp_look_init(p);
    p->zygote_pidfd = (int)host_ret(syscall(SYS_pidfd_open, z.pid, 0));
    if (p->zygote_pidfd >= 0)
        p->zygote_watch = config->watch(p->zygote_pidfd, scp_zygote_gone, p);
    p->watch = config->watch(p->listener, scp_listener_ready, p);
    if (!p->watch || !p->zygote_watch) {
        scp_free(&p->base);
        return errmsg_set(e, -ENOMEM, "seccomp platform: out of memory or descriptors");
    }
    config->idle(scp_look, p);
    *ret_platform = &p->base;
    return 0;
}

int plat_seccomp_zygote_pid(const struct platform *p)
{
    return container_of(p, const struct scp, base)->zygote_pid;
}
