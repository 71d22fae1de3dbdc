/* SPDX-License-Identifier: Apache-2.0 */
/* Process objects: family ties, the end of all their threads, and what parents are told. */
#include "sentry/kernel/tgroup.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/core/fiber.h"
#include "sentry/kernel/coredump.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/task_run.h"

/* How long a thread in guest code may take to follow a kick before its host process is killed. */
#define TGROUP_KILL_NS 500000000ULL
enum { TGROUP_KILL_TRIES_SHARED = 20 };
/* A unit of si_utime and times(2): USER_HZ. */
#define TGROUP_TICK_NS 10000000ULL

int tgroup_new(struct container *c, struct tgroup **ret_group)
{
    struct tgroup *g = NEW(struct tgroup);

    if (!g)
        return -ENOMEM;
    ref_init(&g->ref);
    g->container = c;
    g->exit_signal = SIGCHLD;
    g->start_ns = host_monotonic_ns();
    list_init(&g->threads);
    list_init(&g->container_link);
    list_init(&g->children);
    list_init(&g->sibling);
    list_init(&g->pgrp_link);
    waitq_init(&g->child_wait);
    waitq_init(&g->exec_wait);
    waitq_init(&g->stop_wait);
    waitq_init(&g->pidfd_wait);
    waitq_init(&g->exec_done);
    sigpending_init(&g->pending);
    *ret_group = g;
    return 0;
}

struct tgroup *tgroup_ref(struct tgroup *g)
{
    ref_get(&g->ref);
    return g;
}

void tgroup_unref(struct tgroup *g)
{
    if (!g || !ref_put(&g->ref))
        return;
    ktimer_cancel(&g->kill_timer);
    waitq_orphan(&g->child_wait);
    waitq_orphan(&g->pidfd_wait);
    waitq_orphan(&g->exec_done);
    sigpending_flush(&g->pending);
    sighand_unref(g->sighand);
    itimers_free(g->timers);
    if (g->pgrp) {
        list_del(&g->pgrp_link);
        pgrp_unref(g->pgrp);
    }
    mem_free(g);
}

struct task *tgroup_first(const struct tgroup *g)
{
    return tgroup_next(g, NULL);
}

struct task *tgroup_next(const struct tgroup *g, const struct task *t)
{
    const struct list *at = t ? t->thread_link.next : g->threads.next;

    for (; at != &g->threads; at = at->next) {
        struct task *next = list_entry((struct list *)at, struct task, thread_link);

        if (next->state != TASK_ZOMBIE)
            return next;
    }
    return NULL;
}

static void adopt(struct tgroup *g, struct tgroup *parent)
{
    list_del(&g->sibling);
    g->parent = parent;
    g->parent_task = parent ? parent->leader : NULL;
    if (parent)
        list_add_tail(&parent->children, &g->sibling);
    task_publish_group(g); /* getppid */
}

void tgroup_publish(struct tgroup *g, struct tgroup *parent)
{
    struct pidns *ns = g->leader->pidns;
    struct task *maker = g->parent_task;

    adopt(g, parent);
    if (maker)
        g->parent_task = maker;
    list_add_tail(&g->container->groups, &g->container_link);
    g->container->group_count++;
    if (!ns->init && pid_number(g->leader->pid, ns) == 1) {
        ns->init = g;
        g->unkillable = true;
    }
}

/* A guest can delay its kicks, and what the backend does through it, for ever: past the limit its host process goes. One
 * that others use as well gets much more time, for they would go with it. */
static void kill_timer_fired(struct ktimer *timer)
{
    struct tgroup *g = container_of(timer, struct tgroup, kill_timer);
    bool again = false;

    g->kill_tries++;
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
        bool guest = t->state == TASK_GUEST;

        if (!(g->group_exiting || t->exiting))
            continue;
        if (!guest && !(t->state == TASK_KERNEL && t->thread && plat_thread_waits(t->thread))) {
            /* In a call, which may yet come to wait for its guest. */
            again |= t->state == TASK_KERNEL;
            continue;
        }
        if (g->kill_tries < TGROUP_KILL_TRIES_SHARED && (t->vfork_parent || task_mm_is_shared(t))) {
            plat_thread_kick(t->thread);
            again = true;
            continue;
        }
        plat_aspace_kill(t->thread->aspace);
        if (guest)
            task_run_spawn(t);
        /* Without a stack for its fiber just now. */
        again |= t->state == TASK_GUEST;
    }
    if (again && ktimer_set(&g->kill_timer, host_monotonic_ns() + TGROUP_KILL_NS, kill_timer_fired))
        log_warn("no memory for a timer: a dying process may linger");
}

static void arm_kill_timer(struct tgroup *g)
{
    if (ktimer_armed(&g->kill_timer))
        return;
    g->kill_tries = 0;
    if (ktimer_set(&g->kill_timer, host_monotonic_ns() + TGROUP_KILL_NS, kill_timer_fired)) {
        g->kill_tries = TGROUP_KILL_TRIES_SHARED;
        kill_timer_fired(&g->kill_timer);
    }
}

void tgroup_begin_exit(struct tgroup *g, int wait_status, struct task *dumper)
{
    g->group_exiting = true;
    g->exit_status = wait_status;
    g->stop_signal = 0;
    g->stopped = false;
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
        t->stop_pending = t->stop_counted = false;
        if (t == dumper)
            continue;
        signal_recalc(t);
        task_kick(t);
    }
}

void tgroup_force_exit(struct tgroup *g)
{
    arm_kill_timer(g);
}

void tgroup_exit(struct tgroup *g, int wait_status)
{
    if (g->coredump && wait_status == SIGKILL)
        coredump_abort(g);
    if (g->group_exiting || g->zombie)
        return;
    tgroup_begin_exit(g, wait_status, NULL);
    arm_kill_timer(g);
}

/* t, the only thread left, takes the number and the place of the leader. */
static void take_leader_place(struct task *t)
{
    struct tgroup *g = t->group;
    struct task *old = g->leader;
    struct pid *pid = t->pid;

    t->pid = old->pid;
    old->pid = pid;
    t->pid->task = t;
    old->pid->task = old;
    t->start_ns = old->start_ns;
    g->leader = task_ref(t);
    /* Its tracer does not get to wait for it any more. */
    if (ptrace_traced(old))
        waitq_wake_all(&old->ptrace->tracer->group->child_wait);
    list_del(&t->thread_link);
    list_add(&g->threads, &t->thread_link);
    task_release(old);
    task_unref(old);
}

int tgroup_kill_others(struct task *t)
{
    struct tgroup *g = t->group;
    int r;

    if (g->group_exiting || g->group_exec || t->exiting)
        return -EAGAIN;
    if (g->thread_count == 1 && g->leader == t && !g->dead_threads)
        return 0;
    g->group_exec = true;
    g->exec_task = t;
    for (struct task *other = tgroup_first(g); other; other = tgroup_next(g, other)) {
        if (other == t)
            continue;
        other->exiting = true;
        other->exit_code = SIGKILL;
        signal_recalc(other);
        task_kick(other);
    }
    arm_kill_timer(g);
    r = WAIT_EVENT_STATE(&t->ctx, &g->exec_wait, g->thread_count == 1 && !g->dead_threads, CTX_WAIT_KILLABLE, WAIT_FOREVER);
    g->group_exec = false;
    g->exec_task = NULL;
    if (r)
        return r;
    ktimer_cancel(&g->kill_timer);
    if (g->leader != t)
        take_leader_place(t);
    return 0;
}

void tgroup_end(struct tgroup *g)
{
    struct task *leader = g->leader;

    if (g->thread_count || g->dead_threads || g->zombie)
        return;
    g->zombie = true;
    /* It was a member of those above as well. */
    for (struct pidns *ns = leader->pidns; ns; ns = ns->parent)
        waitq_wake_all(&ns->empty_wait);
    waitq_wake_all(&g->pidfd_wait);
    if (ptrace_is_foreign(leader)) {
        if (!ptrace_notify_exit(leader))
            return;
        ptrace_unlink(leader);
    }
    if (tgroup_notify_exit(g))
        tgroup_release(g);
}

void tgroup_reap_thread(struct task *t)
{
    struct tgroup *g = tgroup_ref(t->group);

    task_release(t);
    g->dead_threads--;
    if (g->group_exec)
        waitq_wake_all(&g->exec_wait);
    else
        tgroup_end(g);
    tgroup_unref(g);
}

/* The nearest living ancestor that asked for orphans, else pid 1 of the namespace. NULL: nobody. */
static struct tgroup *find_reaper(struct tgroup *g)
{
    struct pidns *ns = g->leader->pidns;

    if (ns->init == g)
        return NULL;
    for (struct tgroup *up = g->parent; up && up != ns->init; up = up->parent) {
        if (!up->leader || up->leader->pidns != ns)
            break;
        if (up->child_subreaper && !up->zombie && !up->group_exiting)
            return up;
    }
    return ns->init && !ns->init->zombie ? ns->init : NULL;
}

void tgroup_reparent_children(struct tgroup *g)
{
    struct tgroup *child, *next, *reaper;

    if (list_empty(&g->children))
        return;
    reaper = find_reaper(g);
    list_for_each_entry_safe(child, next, &g->children, sibling) {
        adopt(child, reaper);
        child->exit_signal = SIGCHLD;
        if (child->zombie) {
            if (!ptrace_is_foreign(child->leader) && tgroup_notify_exit(child))
                tgroup_release(child);
        } else {
            pgrp_check_orphaned(child, g, false);
        }
    }
}

static void child_info(struct tgroup *g, siginfo_t *info, int code, int status)
{
    memset(info, 0, sizeof(*info));
    info->si_signo = SIGCHLD;
    info->si_code = code;
    info->si_pid = tgroup_pid_in(g, g->parent->leader->pidns);
    info->si_uid = siginfo_uid(g->leader, g->parent->leader);
    info->si_status = status;
    info->si_utime = (clock_t)(tgroup_cpu_ns(g) / TGROUP_TICK_NS);
    info->si_stime = (clock_t)(g->stime_ns / TGROUP_TICK_NS);
}

bool tgroup_notify_exit(struct tgroup *g)
{
    struct tgroup *parent = g->parent;
    struct sigaction_k *action;
    siginfo_t info;
    bool reap = false, silent = false;

    waitq_wake_all(&g->pidfd_wait);
    if (!parent || parent->zombie || !parent->leader)
        return true;
    action = &parent->sighand->actions[SIGCHLD - 1];
    if (g->exit_signal == SIGCHLD) {
        if (action->handler == (uint64_t)(uintptr_t)SIG_IGN)
            reap = silent = true;
        else if (action->flags & SA_NOCLDWAIT)
            reap = true;
    }
    /* Pid 1 on its way out waits for nobody. */
    if (parent->leader->pidns->dying && parent->leader->pidns->init == parent)
        reap = silent = true;
    if (g->exit_signal && !silent) {
        int status = g->exit_status;

        if (WIFSIGNALED(status))
            child_info(g, &info, WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED, WTERMSIG(status));
        else
            child_info(g, &info, CLD_EXITED, WEXITSTATUS(status));
        info.si_signo = g->exit_signal;
        (void)signal_send_group(parent, &info);
    }
    waitq_wake_all(&parent->child_wait);
    return reap;
}

void tgroup_notify_stop(struct tgroup *g, bool continued)
{
    struct tgroup *parent = g->parent;
    siginfo_t info;

    if (!parent || parent->zombie || !parent->leader)
        return;
    if (!(parent->sighand->actions[SIGCHLD - 1].flags & SA_NOCLDSTOP)) {
        if (continued)
            child_info(g, &info, CLD_CONTINUED, SIGCONT);
        else
            child_info(g, &info, CLD_STOPPED, g->stop_signal);
        (void)signal_send_group(parent, &info);
    }
    waitq_wake_all(&parent->child_wait);
}

void tgroup_release(struct tgroup *g)
{
    struct container *c = g->container;
    struct task *leader = g->leader;
    struct pidns *ns;

    if (g->reaped)
        return;
    g->reaped = true;
    ns = pidns_ref(leader->pidns);
    list_del(&g->sibling);
    g->parent = NULL;
    if (g->pgrp) {
        list_del(&g->pgrp_link);
        pgrp_unref(TAKE_PTR(g->pgrp));
    }
    list_del(&g->container_link);
    c->group_count--;
    if (ns->init == g)
        ns->init = NULL;
    task_release(leader);
    g->leader = NULL;
    waitq_wake_all(&ns->empty_wait);
    waitq_wake_all(&g->pidfd_wait);
    if (g->on_exit)
        g->on_exit(g->on_exit_arg, g->exit_status);
    task_unref(leader);
    pidns_unref(ns);
    if (c->group_count == 0)
        container_emptied(c);
}

uint64_t tgroup_cpu_ns(const struct tgroup *g)
{
    uint64_t sum = g->utime_ns;

    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t))
        sum += task_cpu_ns(t);
    return sum;
}
