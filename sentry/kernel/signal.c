/* SPDX-License-Identifier: Apache-2.0 */
/* Sending signals: queues, quotas, who gets it, and what happens at once. */
#include "sentry/kernel/signal.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/landlock.h"
#include "sentry/core/ucount.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"
#include "sentry/kernel/tgroup.h"

#define HANDLER_DFL 0ULL
#define HANDLER_IGN 1ULL
/* Faults come before other signals, so that their frame shows the faulting instruction. */
#define SIGSET_SYNC                                                                                \
    (SIGBIT(SIGSEGV) | SIGBIT(SIGBUS) | SIGBIT(SIGILL) | SIGBIT(SIGTRAP) | SIGBIT(SIGFPE) |        \
     SIGBIT(SIGSYS))

/* Other bits do not stick, so that programs can find out what a kernel knows: SA_EXPOSE_TAGBITS and SA_RESTORER by number. */
#define SA_KNOWN                                                                                   \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER |             \
     (uint64_t)SA_RESETHAND | 0x800 | SA_RESTORER_K)
#define SA_RESTORER_K 0x04000000U

/* Signals that may be set to their default, plain, without anybody noticing: there is no handler, and nothing that is pending
 * would be dropped. */
static void note_defaults(struct sighand *s)
{
    s->plain_default = 0;
    for (int i = 0; i < NSIG_K; i++) {
        const struct sigaction_k *a = &s->actions[i];

        if (a->handler == HANDLER_DFL && !(a->flags & ~(uint64_t)SA_RESTORER_K) && !a->mask)
            s->plain_default |= SIGBIT(i + 1);
    }
    s->plain_default &= ~(SIGSET_IGNORE | SIGSET_UNBLOCKABLE);
}

int sighand_new(struct sighand **ret_sighand)
{
    struct sighand *s = NEW(struct sighand);

    if (!s)
        return -ENOMEM;
    ref_init(&s->ref);
    note_defaults(s);
    *ret_sighand = s;
    return 0;
}

int sighand_dup(const struct sighand *s, struct sighand **ret_sighand)
{
    struct sighand *n;
    int r = sighand_new(&n);

    if (r)
        return r;
    memcpy(n->actions, s->actions, sizeof(n->actions));
    n->plain_default = s->plain_default;
    *ret_sighand = n;
    return 0;
}

struct sighand *sighand_ref(struct sighand *s)
{
    ref_get(&s->ref);
    return s;
}

void sighand_unref(struct sighand *s)
{
    if (s && ref_put(&s->ref))
        mem_free(s);
}

void sighand_reset(struct sighand *s, bool all)
{
    for (int i = 0; i < NSIG_K; i++) {
        struct sigaction_k *a = &s->actions[i];
        bool ignored = a->handler == HANDLER_IGN && !all;

        memset(a, 0, sizeof(*a));
        if (ignored)
            a->handler = HANDLER_IGN;
    }
    note_defaults(s);
}

void sigpending_init(struct sigpending *p)
{
    p->set = 0;
    list_init(&p->queue);
}

static void sigqueue_drop(struct sigqueue *q)
{
    list_del(&q->link);
    if (q->preallocated)
        return;
    if (q->charged)
        ucount_uncharge(UCOUNT_SIGPENDING, q->quota_uid);
    mem_free(q);
}

void sigpending_flush_sigs(struct sigpending *p, sigset_k set)
{
    struct sigqueue *q, *next;

    if (!(p->set & set))
        return;
    p->set &= ~set;
    list_for_each_entry_safe(q, next, &p->queue, link) {
        if (SIGBIT(q->info.si_signo) & set)
            sigqueue_drop(q);
    }
}

void sigpending_flush(struct sigpending *p)
{
    sigpending_flush_sigs(p, ~0ULL);
}

void siginfo_kernel(siginfo_t *info, int signo, int code)
{
    memset(info, 0, sizeof(*info));
    info->si_signo = signo;
    info->si_code = code;
}

uint32_t siginfo_uid(const struct task *from, const struct task *to)
{
    return userns_uid_shown(to->ctx.cred->userns, from->ctx.cred->uid);
}

void siginfo_user(siginfo_t *info, int signo, int code, int pid, uint32_t uid)
{
    siginfo_kernel(info, signo, code);
    info->si_pid = pid;
    info->si_uid = uid;
}

sigset_k signal_blocked(struct task *t)
{
    if (t->state == TASK_GUEST && t->thread && t->thread->shared)
        t->blocked = t->thread->shared->sig_blocked & ~SIGSET_UNBLOCKABLE;
    return t->blocked;
}

void task_publish_self(struct task *t)
{
    volatile struct plat_shared *s = t->thread ? t->thread->shared : NULL;
    const struct cred *c = t->ctx.cred;

    if (!s)
        return;
    s->pid = tgroup_pid_for(t->group, t);
    s->tid = task_tid_for(t, t);
    s->ppid = t->group->parent ? tgroup_pid_for(t->group->parent, t) : 0;
    s->uid = userns_uid_shown(c->userns, c->uid);
    s->euid = userns_uid_shown(c->userns, c->euid);
    s->gid = userns_gid_shown(c->userns, c->gid);
    s->egid = userns_gid_shown(c->userns, c->egid);
    s->sig_default = t->group->sighand->plain_default;
    s->monotonic_ns = timens_offset(t->ns ? t->ns->time : NULL, CLOCK_MONOTONIC);
    s->valid = true;
    guest_seccomp_publish(t, s);
    /* A trace is to show every call. */
    if (t->kernel->strace || ptrace_sees_calls(t))
        s->ask_how = PLAT_ASK_ALL;
}

void task_publish_group(struct tgroup *g)
{
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t))
        task_publish_self(t);
}

/* Tells threads in guest code what waits for being unblocked, before their masks are looked at. */
static void publish_pending(struct tgroup *g, struct task *t)
{
    for (struct task *o = t ? t : tgroup_first(g); o; o = t ? NULL : tgroup_next(g, o)) {
        if (o->state == TASK_GUEST && o->thread && o->thread->shared)
            o->thread->shared->sig_pending = o->pending.set | g->pending.set;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void signal_recalc(struct task *t)
{
    struct tgroup *g = t->group;
    sigset_k pending = (t->pending.set | g->pending.set) & ~signal_blocked(t);

    t->ctx.fatal_pending = t->exiting || g->group_exiting;
    t->ctx.signal_pending = pending || t->stop_pending || t->ctx.fatal_pending || ptrace_wants_stop(t);
}

void task_kick(struct task *t)
{
    if (!t->ctx.signal_pending)
        return;
    if (t->state == TASK_GUEST)
        plat_thread_kick(t->thread);
    else
        ctx_interrupt(&t->ctx);
}

/* Gives pending process-directed signals that t no longer takes to threads that do. */
static void retarget(struct task *t, sigset_k now_blocked)
{
    sigset_k set = t->group->pending.set & now_blocked;

    if (!set)
        return;
    for (struct task *o = tgroup_first(t->group); o && set; o = tgroup_next(t->group, o)) {
        if (o == t || !(set & ~signal_blocked(o)) || o->exiting)
            continue;
        set &= o->blocked;
        signal_recalc(o);
        task_kick(o);
    }
}

void signal_import_blocked(struct task *t)
{
    const volatile struct plat_shared *s = t->thread->shared;
    sigset_k now;

    if (!s)
        return;
    now = s->sig_blocked & ~SIGSET_UNBLOCKABLE;
    /* After a kick the mask may have been seen before: by whoever sent a signal that t has blocked since. */
    if (likely(now == t->blocked && t->event.kind != PLAT_EVENT_KICK))
        return;
    t->blocked = now;
    retarget(t, now);
    signal_recalc(t);
}

void signal_set_blocked(struct task *t, sigset_k set)
{
    sigset_k more;

    set &= ~SIGSET_UNBLOCKABLE;
    more = set & ~t->blocked;
    t->blocked = set;
    if (more)
        retarget(t, more);
    signal_recalc(t);
}

sigset_k signal_pending_set(const struct task *t)
{
    return t->pending.set | t->group->pending.set;
}

bool signal_ignored(const struct task *t, int signo)
{
    uint64_t handler = t->group->sighand->actions[signo - 1].handler;

    return handler == HANDLER_IGN || (handler == HANDLER_DFL && (SIGBIT(signo) & SIGSET_IGNORE));
}

/* Whether signo would do nothing to process g, so that it is not even queued. force: it comes from outside the namespace
 * whose pid 1 g is. */
static bool dropped(const struct tgroup *g, struct task *t, int signo, bool force)
{
    uint64_t handler = g->sighand->actions[signo - 1].handler;

    /* A blocked signal may find another disposition when it gets unblocked. */
    if (signal_blocked(t) & SIGBIT(signo))
        return false;
    /* A tracer may want to know of it all the same. */
    if (ptrace_traced(t) && signo != SIGKILL)
        return false;
    if (g->unkillable && handler == HANDLER_DFL && !(force && (SIGBIT(signo) & SIGSET_UNBLOCKABLE)))
        return true;
    return signal_ignored(t, signo);
}

void signal_continue(struct tgroup *g)
{
    bool was_stopped = g->stopped, stopping = g->stop_signal != 0;

    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t))
        ptrace_trap_notify(t);
    if (!stopping)
        return;
    if (was_stopped) {
        g->continued = true;
        tgroup_notify_stop(g, true);
    } else {
        tgroup_notify_stop(g, false);
    }
    g->stop_signal = 0;
    g->stopped = false;
    g->stop_count = 0;
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
        t->stop_pending = t->stop_counted = false;
        signal_recalc(t);
    }
    waitq_wake_all(&g->stop_wait);
}

static void flush_everywhere(struct tgroup *g, sigset_k set)
{
    sigpending_flush_sigs(&g->pending, set);
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
        sigpending_flush_sigs(&t->pending, set);
        signal_recalc(t);
    }
}

/* What stop and continue signals do on their way in, whether or not they are caught or blocked. */
static void act_on_job_control(struct tgroup *g, int signo)
{
    if (SIGBIT(signo) & SIGSET_STOP) {
        flush_everywhere(g, SIGBIT(SIGCONT));
    } else if (signo == SIGCONT) {
        flush_everywhere(g, SIGSET_STOP);
        signal_continue(g);
    }
}

/* Stopped threads take nothing but SIGKILL; what comes meanwhile waits for SIGCONT. */
static bool takes(struct task *t, int signo)
{
    if (t->exiting || t->state >= TASK_ZOMBIE || (signal_blocked(t) & SIGBIT(signo)))
        return false;
    return signo == SIGKILL || t->state != TASK_STOPPED;
}

/* The thread of g that takes signo, or NULL when none does now. */
static struct task *pick_thread(struct tgroup *g, int signo)
{
    struct task *fallback = NULL;

    if (takes(g->leader, signo))
        return g->leader;
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
        if (!takes(t, signo))
            continue;
        if (!t->ctx.signal_pending)
            return t;
        fallback = fallback ? fallback : t;
    }
    return fallback;
}

static void wake_watchers(struct tgroup *g, struct task *t)
{
    if (t) {
        waitq_wake_all(&t->signal_wait);
        return;
    }
    for (t = tgroup_first(g); t; t = tgroup_next(g, t))
        waitq_wake_all(&t->signal_wait);
}

/* The signal is pending; makes it felt. t: directed at that thread alone, or NULL. */
static void complete(struct tgroup *g, struct task *t, int signo)
{
    uint64_t handler = g->sighand->actions[signo - 1].handler;
    struct task *taker;

    wake_watchers(g, t);
    if (t)
        taker = takes(t, signo) ? t : NULL;
    else
        taker = pick_thread(g, signo);
    if (!taker)
        return;
    /* Certain death needs no thread to find out about it first. */
    if (signo == SIGKILL || (handler == HANDLER_DFL && !g->unkillable && !ptrace_traced(taker) &&
                             !(SIGBIT(signo) & (SIGSET_CORE | SIGSET_STOP | SIGSET_IGNORE)))) {
        tgroup_exit(g, signo);
        return;
    }
    signal_recalc(taker);
    task_kick(taker);
}

static int enqueue(struct tgroup *g, struct task *t, const siginfo_t *info)
{
    struct sigpending *p = t ? &t->pending : &g->pending;
    const struct cred *cred = (t ? t : g->leader)->ctx.cred;
    int signo = info->si_signo, r;
    uint64_t limit = g->rlimits[RLIMIT_SIGPENDING].rlim_cur;
    struct sigqueue *q;

    if (signo == SIGKILL || (signo < SIGRT_FIRST && (p->set & SIGBIT(signo))))
        goto pend;
    /* There can't be many of what does not queue: the kernel's and kill(2)'s keep their details. */
    if (signo < SIGRT_FIRST && info->si_code >= 0)
        limit = UINT64_MAX;
    r = ucount_charge(UCOUNT_SIGPENDING, cred->uid, limit);
    q = r ? NULL : NEW(struct sigqueue);
    if (!q) {
        if (!r)
            ucount_uncharge(UCOUNT_SIGPENDING, cred->uid);
        /* Only what was queued on purpose may fail; kill(2) goes through without its details. */
        if (signo >= SIGRT_FIRST && info->si_code != SI_USER)
            return -EAGAIN;
        goto pend;
    }
    q->info = *info;
    q->charged = true;
    q->quota_uid = cred->uid;
    list_add_tail(&p->queue, &q->link);
pend:
    p->set |= SIGBIT(signo);
    return 0;
}

static int send(struct tgroup *g, struct task *t, const siginfo_t *info)
{
    int signo = info->si_signo, r;
    bool force = info->si_code == SI_KERNEL || (info->si_code <= 0 && info->si_pid == 0);

    if (signo < 1 || signo > NSIG_K || g->zombie || g->group_exiting || !g->leader)
        return 0;
    act_on_job_control(g, signo);
    if (dropped(g, t ? t : g->leader, signo, force))
        return 0;
    r = enqueue(g, t, info);
    if (r)
        return r;
    publish_pending(g, t);
    complete(g, t, signo);
    return 0;
}

int signal_send_task(struct task *t, const siginfo_t *info)
{
    if (t->state == TASK_ZOMBIE || t->state == TASK_DEAD)
        return 0;
    return send(t->group, t, info);
}

int signal_send_group(struct tgroup *g, const siginfo_t *info)
{
    return send(g, NULL, info);
}

int signal_send_pgrp(struct pgrp *p, const siginfo_t *info)
{
    struct tgroup *g, *next;
    int r = -ESRCH;

    list_for_each_entry_safe(g, next, &p->members, pgrp_link) {
        if (g->forks_in_flight)
            g->fork_missed |= SIGBIT(info->si_signo);
        if (!signal_send_group(g, info))
            r = 0;
    }
    return r;
}

int signal_send_prealloc(struct tgroup *g, struct task *t, struct sigqueue *q)
{
    struct sigpending *p = t ? &t->pending : &g->pending;
    int signo = q->info.si_signo;

    if (!list_empty(&q->link))
        return 1;
    if (g->zombie || g->group_exiting || !g->leader || (t && t->state >= TASK_ZOMBIE))
        return 0;
    act_on_job_control(g, signo);
    if (dropped(g, t ? t : g->leader, signo, true))
        return 0;
    list_add_tail(&p->queue, &q->link);
    p->set |= SIGBIT(signo);
    publish_pending(g, t);
    complete(g, t, signo);
    return 0;
}

void signal_force(struct task *t, const siginfo_t *info)
{
    int signo = info->si_signo;
    struct sigaction_k *a = &t->group->sighand->actions[signo - 1];

    if ((t->blocked & SIGBIT(signo)) || a->handler == HANDLER_IGN) {
        a->handler = HANDLER_DFL;
        t->blocked &= ~SIGBIT(signo);
    }
    if (a->handler == HANDLER_DFL && !ptrace_traced(t))
        t->group->unkillable = false;
    if (send(t->group, t, info))
        t->pending.set |= SIGBIT(signo);
    signal_recalc(t);
}

static bool may_send_by_cred(const struct task *sender, const struct task *target, int signo)
{
    const struct cred *s = sender->ctx.cred, *c = target->ctx.cred;

    if (s->euid == c->suid || s->euid == c->uid || s->uid == c->suid || s->uid == c->uid ||
        cred_ns_cap(s, c->userns, CAP_KILL))
        return true;
    return signo == SIGCONT && sender->group->pgrp && target->group->pgrp &&
           sender->group->pgrp->session == target->group->pgrp->session;
}

int signal_may_send(const struct task *sender, const struct task *target, int signo)
{
    if (sender->group == target->group)
        return 0;
    if (!may_send_by_cred(sender, target, signo))
        return -EPERM;
    return landlock_scope_denies(sender->ctx.cred->landlock, target->ctx.cred->landlock, LANDLOCK_SCOPE_SIGNAL)
               ? -EPERM
               : 0;
}

/* Takes one entry of signo off p. */
static void collect(struct sigpending *p, int signo, siginfo_t *ret_info)
{
    struct sigqueue *q, *found = NULL;
    bool more = false;

    list_for_each_entry(q, &p->queue, link) {
        if (q->info.si_signo != signo)
            continue;
        if (found) {
            more = true;
            break;
        }
        found = q;
    }
    if (!more)
        p->set &= ~SIGBIT(signo);
    if (!found) {
        /* There was no room for its details. */
        siginfo_user(ret_info, signo, SI_USER, 0, 0);
        return;
    }
    if (found->preallocated) {
        list_del(&found->link);
        posixtimer_delivered(found);
        *ret_info = found->info;
        return;
    }
    *ret_info = found->info;
    sigqueue_drop(found);
}

static int first_of(sigset_k set)
{
    if (set & SIGSET_SYNC)
        set &= SIGSET_SYNC;
    return set ? __builtin_ctzll(set) + 1 : 0;
}

int signal_dequeue(struct task *t, sigset_k set, siginfo_t *ret_info)
{
    struct sigpending *p = &t->pending;
    int signo = first_of(p->set & set);

    if (!signo) {
        p = &t->group->pending;
        signo = first_of(p->set & set);
    }
    if (signo)
        collect(p, signo, ret_info);
    signal_recalc(t);
    return signo;
}

/* An action changed: every thread that shares the table hears of it before the call returns. */
static void publish_defaults(struct task *t)
{
    struct sighand *s = t->group->sighand;
    sigset_k before = s->plain_default;
    struct tgroup *g;

    note_defaults(s);
    if (s->plain_default == before)
        return;
    if (s->ref.count == 1) {
        task_publish_group(t->group);
        return;
    }
    list_for_each_entry(g, &t->group->container->groups, container_link) {
        if (g->sighand == s && !g->zombie)
            task_publish_group(g);
    }
}

int signal_set_action(struct task *t, int signo, const struct sigaction_k *act,
                      struct sigaction_k *ret_old)
{
    struct sigaction_k *a, old;

    if (signo < 1 || signo > NSIG_K || (act && (SIGBIT(signo) & SIGSET_UNBLOCKABLE)))
        return -EINVAL;
    a = &t->group->sighand->actions[signo - 1];
    old = *a;
    if (act) {
        *a = *act;
        a->mask &= ~SIGSET_UNBLOCKABLE;
        a->flags &= SA_KNOWN;
        publish_defaults(t);
        if (signal_ignored(t, signo))
            flush_everywhere(t->group, SIGBIT(signo));
    }
    if (ret_old)
        *ret_old = old;
    return 0;
}
