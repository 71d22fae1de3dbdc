/* SPDX-License-Identifier: Apache-2.0 */
/* The end of threads and processes. */
#include "sentry/kernel/task_exit.h"

#include <errno.h>
#include <signal.h>

#include "platform/base/host.h"
#include "sentry/ipc/sysv_sem.h"
#include "sentry/kernel/acct.h"
#include "sentry/kernel/coredump.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/futex.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/signal_deliver.h"
#include "sentry/kernel/task_clone.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

enum { NR_FUTEX = 202, FUTEX_WAKE_OP = 1, EXIT_MEMORY_NS = 10000000 };

/* Clears the word of set_tid_address and wakes its waiter, for a thread whose host thread lives on. */
static void clear_tid_by_hand(struct task *t)
{
    struct plat_hostcall call = {.nr = NR_FUTEX, .fd = -1, .args = {t->clear_child_tid.v, FUTEX_WAKE_OP, 1}};
    uint32_t zero = 0;

    if (!copy_out(&t->ctx, t->clear_child_tid, &zero, sizeof(zero)))
        (void)!plat_thread_hostcalls(t->thread, &call, 1);
}

static void leave_thread(struct task *t)
{
    bool clear = !uaddr_is_null(t->clear_child_tid) && t->mm && t->mm->ref.count > 1;
    struct plat_thread *thread;

    if (t->vfork_parent) {
        if (clear)
            clear_tid_by_hand(t);
        task_vfork_give_back(t);
        return;
    }
    task_account_cpu(t);
    thread = t->thread;
    t->thread = t->ctx.thread = NULL;
    plat_thread_set_owner(thread, NULL);
    plat_thread_end(thread, clear ? t->clear_child_tid.v : 0);
}

void task_leave_mm(struct task *t)
{
    struct mm *mm;

    if (t->thread) {
        if (!t->died_host)
            futex_task_exit(t);
        leave_thread(t);
    }
    task_vfork_orphan(t);
    t->clear_child_tid = UADDR_NULL;
    t->robust_list = UADDR_NULL;
    t->rseq = UADDR_NULL;
    mm = t->mm;
    t->mm = NULL;
    mm_unref(mm);
    task_vfork_release(t);
}

/* Remembers the most memory that the process used, while its host process can still tell. Asking costs more than a short
 * life is worth. */
static void note_memory(struct task *t)
{
    struct tgroup *g = t->group;

    if (g->thread_count != 1 || !t->thread || t->vfork_parent || t->thread->aspace->dead ||
        host_monotonic_ns() - g->start_ns < EXIT_MEMORY_NS)
        return;
    g->max_rss_kb = MAX(g->max_rss_kb, mm_resident_peak(t->mm) / 1024);
}

/* Children that this thread made get word of its end if they asked, and go over to another thread. */
static void leave_children(struct task *t)
{
    struct tgroup *g = t->group, *child;
    struct task *heir = NULL;
    siginfo_t info;

    for (struct task *o = tgroup_first(g); o; o = tgroup_next(g, o)) {
        if (o != t && !o->exiting) {
            heir = o;
            break;
        }
    }
    list_for_each_entry(child, &g->children, sibling) {
        if (child->parent_task != t)
            continue;
        child->parent_task = heir ? heir : g->leader;
        for (struct task *c = tgroup_first(child); c; c = tgroup_next(child, c)) {
            if (!c->pdeath_signal)
                continue;
            siginfo_user(&info, c->pdeath_signal, SI_USER, tgroup_pid_in(g, c->pidns), siginfo_uid(t, c));
            (void)signal_send_group(child, &info);
        }
    }
}

static bool namespace_empty(struct pidns *ns)
{
    struct tgroup *g;
    int number = 1;

    while ((g = pidns_next_tgroup(ns, number, &number))) {
        bool alive = g != ns->init && !g->zombie;

        tgroup_unref(g);
        if (alive)
            return false;
        number++;
    }
    return true;
}

/* Pid 1 ends: so does everybody in its namespace. */
static void kill_namespace(struct task *t)
{
    struct pidns *ns = t->pidns;
    struct tgroup *g;
    int number = 1;

    ns->dying = true;
    while ((g = pidns_next_tgroup(ns, number, &number))) {
        if (g != t->group) {
            g->unkillable = false;
            tgroup_exit(g, SIGKILL);
        }
        tgroup_unref(g);
        number++;
    }
    (void)!WAIT_EVENT_STATE(&t->ctx, &ns->empty_wait, namespace_empty(ns), CTX_WAIT_UNINTERRUPTIBLE,
                            WAIT_FOREVER);
    /* What is left are zombies that nobody will wait for. */
    number = 1;
    while ((g = pidns_next_tgroup(ns, number, &number))) {
        if (g != t->group && g->zombie)
            tgroup_release(g);
        tgroup_unref(g);
        number++;
    }
}

static void end_process(struct tgroup *g)
{
    struct session *s = g->pgrp ? g->pgrp->session : NULL;

    if (!g->group_exiting)
        g->exit_status = g->leader->exit_code;
    g->group_exiting = true;
    itimers_exit(g);
    if (s && s->leader == g) {
        session_ref(s);
        tty_leader_exit(g);
        s->leader = NULL;
        session_unref(s);
    }
    pgrp_check_orphaned(g, g->parent, true);
    g->stopped = false;
    ktimer_cancel(&g->kill_timer);
    sigpending_flush(&g->pending);
    tgroup_reparent_children(g);
    tgroup_end(g);
}

void task_exit(struct task *t)
{
    struct tgroup *g = tgroup_ref(t->group);

    task_ref(t);
    if (g->coredump)
        coredump_join(t);
    t->exiting = true;
    if (unlikely(t->ptrace)) {
        signal_recalc(t);
        ptrace_event_exit(t);
    }
    signal_leave_stop(t);
    signal_recalc(t);
    note_memory(t);
    acct_thread_exit(t);
    task_leave_mm(t);
    itimers_thread_exit(t);
    fdtable_unref(&t->ctx, TAKE_PTR(t->files));
    fsctx_unref(TAKE_PTR(t->fs));
    ptrace_exit_tracer(t); /* before waiting for anybody that it traces */
    if (g->thread_count == 1 && g->unkillable && t->pidns->init == g)
        kill_namespace(t);
    if (g->thread_count == 1)
        sysv_sem_exit(&g->sem_undos, g->leader->pid);
    nsproxy_unref(TAKE_PTR(t->ns));
    taskkeys_drop(t);
    guest_seccomp_exit(t);
    leave_children(t);
    g->utime_ns += t->utime_ns;
    g->stime_ns += t->stime_ns;
    g->min_flt += t->min_flt;
    g->maj_flt += t->maj_flt;
    sigpending_flush(&t->pending);
    t->state = TASK_ZOMBIE;
    t->handling = false;
    waitq_wake_all(&t->signal_wait);
    g->thread_count--;
    if (g->coredump)
        coredump_left(g);
    if (t != g->leader) {
        if (ptrace_traced(t) && !ptrace_notify_exit(t))
            g->dead_threads++;
        else
            task_release(t);
    }
    if (g->thread_count == 0)
        end_process(g);
    else if (g->group_exec)
        waitq_wake_all(&g->exec_wait);
    tgroup_unref(g);
    task_unref(t);
}
