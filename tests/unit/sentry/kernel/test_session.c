/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups, sessions and pid namespaces. */
#include "sentry/kernel/task.h"

#include "tests/unit/sentry/kernel/kernel_fixture.h"

TestSuite(session, .init = world_up);

static int pid_of(const struct tgroup *g)
{
    return tgroup_pid_in(g, w.c.pidns);
}

Test(session, setsid_rules)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);

    cr_assert_eq(session_setsid(w.init->leader), -EPERM, "a group leader");
    cr_assert_eq(session_setsid(g->leader), pid_of(g));
    cr_assert_eq(session_getsid(g->leader, 0), pid_of(g));
    cr_assert_eq(session_getpgid(g->leader, 0), pid_of(g));
    cr_assert_eq(session_setsid(g->leader), -EPERM);
}

Test(session, setpgid_rules)
{
    struct tgroup *a = w_process(w.init, w.c.pidns), *b = w_process(a, w.c.pidns), *c = w_process(a, w.c.pidns);
    struct tgroup *other = w_process(w.init, w.c.pidns);

    cr_assert_eq(session_setpgid(a->leader, pid_of(b), 0), 0, "a child founds a group");
    cr_assert_eq(session_getpgid(a->leader, pid_of(b)), pid_of(b));
    cr_assert_eq(session_setpgid(a->leader, pid_of(c), pid_of(b)), 0, "another joins it");
    cr_assert_eq(session_getpgid(a->leader, pid_of(c)), pid_of(b));
    cr_assert_eq(session_setpgid(a->leader, pid_of(other), 0), -ESRCH, "not a child");
    cr_assert_eq(session_setpgid(a->leader, 9999, 0), -ESRCH);
    cr_assert_eq(session_setpgid(a->leader, 0, -1), -EINVAL);
    cr_assert_eq(session_setpgid(a->leader, 0, 9999), -EPERM, "no such group");
    b->did_exec = true;
    cr_assert_eq(session_setpgid(a->leader, pid_of(b), 0), -EACCES);
    cr_assert_eq(session_setsid(other->leader), pid_of(other));
    cr_assert_eq(session_setpgid(other->leader, 0, 0), -EPERM, "a session leader");
    cr_assert_eq(session_setpgid(a->leader, 0, pid_of(other)), -EPERM, "a group of another session");
    cr_assert_eq(session_setpgid(w.init->leader, pid_of(other), 0), -EPERM, "a child in another session");
}

Test(session, group_outlives_its_founder)
{
    struct tgroup *a = w_process(w.init, w.c.pidns), *b = w_process(w.init, w.c.pidns);
    int pgid = pid_of(a);
    struct pid *pid = a->leader->pid;
    struct pgrp *p;

    cr_assert_eq(session_setpgid(a->leader, 0, 0), 0);
    cr_assert_eq(session_setpgid(b->leader, 0, pgid), 0);
    a->leader->state = TASK_ZOMBIE;
    a->thread_count = 0;
    a->zombie = true;
    tgroup_release(a);
    cr_assert_null(task_find(w.c.pidns, pgid));
    cr_assert_eq(pid_peek(w.c.pidns, pgid), pid, "the number stays taken");
    p = pgrp_find(w.c.pidns, pgid);
    cr_assert_not_null(p);
    pgrp_unref(p);
    cr_assert_eq(session_setpgid(b->leader, 0, 0), 0);
    cr_assert_null(pid_peek(w.c.pidns, pgid), "the last member has left");
}

Test(session, orphaned_groups)
{
    struct tgroup *shell = w_process(w.init, w.c.pidns), *job = w_process(shell, w.c.pidns);

    cr_assert_eq(session_setsid(shell->leader), pid_of(shell));
    pgrp_join(job, pgrp_ref(shell->pgrp));
    cr_assert_eq(session_setpgid(shell->leader, pid_of(job), 0), 0);
    cr_assert_not(pgrp_is_orphaned(job->pgrp), "its parent is in the session, in another group");
    cr_assert(pgrp_is_orphaned(shell->pgrp), "the shell's parent is in another session");
    /* The shell goes while the job is stopped. */
    job->stopped = true;
    job->stop_signal = SIGTSTP;
    struct sigaction_k a = {.handler = 0x1000};
    cr_assert_eq(signal_set_action(job->leader, SIGHUP, &a, NULL), 0);
    cr_assert_eq(signal_set_action(job->leader, SIGCONT, &a, NULL), 0);
    shell->zombie = true;
    tgroup_reparent_children(shell);
    cr_assert_eq(job->parent, w.init);
    cr_assert_eq(signal_pending_set(job->leader), SIGBIT(SIGHUP) | SIGBIT(SIGCONT));
    cr_assert_eq(job->stop_signal, 0);
}

Test(session, subreaper_adopts)
{
    struct tgroup *a = w_process(w.init, w.c.pidns), *b = w_process(a, w.c.pidns), *c = w_process(b, w.c.pidns);

    a->child_subreaper = true;
    b->zombie = true;
    tgroup_reparent_children(b);
    cr_assert_eq(c->parent, a);
    a->zombie = true;
    tgroup_reparent_children(a);
    cr_assert_eq(c->parent, w.init);
}

Test(session, nested_pid_namespaces)
{
    struct pidns *inner;
    struct tgroup *g;

    cr_assert_eq(pidns_new(w.c.pidns, NULL, &inner), 0);
    g = w_process(w.init, inner);
    cr_assert_eq(tgroup_pid_in(g, inner), 1);
    cr_assert_eq(tgroup_pid_in(g, w.c.pidns), 2);
    cr_assert(g->unkillable);
    cr_assert_eq(tgroup_pid_in(w.init, inner), 0, "invisible from inside");
    cr_assert_null(task_find(inner, 2));
    pidns_unref(inner);
}

Test(session, numbers_are_given_in_turn_and_again)
{
    struct tgroup *g;
    int last = 1, number;

    for (int i = 0; i < 3000; i++) {
        g = w_process(w.init, w.c.pidns);
        number = pid_of(g);
        cr_assert_eq(number, last + 1);
        last = number;
        g->leader->state = TASK_ZOMBIE;
        g->thread_count = 0;
        g->zombie = true;
        tgroup_release(g);
    }
    cr_assert_eq(w.c.pidns->live, 1);
    w.c.pidns->last = 4194303;
    g = w_process(w.init, w.c.pidns);
    cr_assert_eq(pid_of(g), 300, "the wrap leaves the low ones alone");
    g = pidns_next_tgroup(w.c.pidns, 2, &number);
    cr_assert_eq(number, 300);
    tgroup_unref(g);
    cr_assert_null(pidns_next_tgroup(w.c.pidns, 301, &number));
}
