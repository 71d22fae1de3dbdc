/* SPDX-License-Identifier: Apache-2.0 */
/* Signal queues, dispositions, quotas and job-control effects, on tasks that never run. */
#include "sentry/kernel/signal.h"

#include "tests/unit/sentry/kernel/kernel_fixture.h"

TestSuite(signal, .init = world_up);

static void handle(struct tgroup *g, int signo)
{
    struct sigaction_k a = {.handler = 0x1000};

    cr_assert_eq(signal_set_action(g->leader, signo, &a, NULL), 0);
}

Test(signal, ordinary_signals_do_not_queue)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    siginfo_t info;

    handle(g, SIGUSR1);
    cr_assert_eq(w_send(g, SIGUSR1), 0);
    cr_assert_eq(w_send(g, SIGUSR1), 0);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), SIGUSR1);
    cr_assert_eq(info.si_pid, 1);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), 0);
}

Test(signal, realtime_signals_queue_in_order_up_to_the_limit)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    siginfo_t info;

    signal_set_blocked(g->leader, ~0ULL);
    for (int i = 0; i < 100; i++) {
        siginfo_user(&info, 40, SI_QUEUE, 1, 0);
        info.si_value.sival_int = i;
        cr_assert_eq(signal_send_group(g, &info), 0);
    }
    cr_assert_eq(signal_send_group(g, &info), -EAGAIN);
    siginfo_user(&info, 41, SI_USER, 1, 0);
    cr_assert_eq(signal_send_group(g, &info), 0, "kill(2) goes through without details");
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(signal_dequeue(g->leader, SIGBIT(40), &info), 40);
        cr_assert_eq(info.si_value.sival_int, i);
    }
    cr_assert_eq(signal_dequeue(g->leader, SIGBIT(40), &info), 0);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), 41);
    cr_assert_eq(info.si_pid, 0);
}

Test(signal, low_numbers_and_faults_come_first)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    siginfo_t info;

    signal_set_blocked(g->leader, ~0ULL);
    w_send(g, 50);
    w_send(g, SIGTERM);
    w_send(g, SIGHUP);
    w_send(g, SIGSEGV);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), SIGSEGV);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), SIGHUP);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), SIGTERM);
    cr_assert_eq(signal_dequeue(g->leader, ~0ULL, &info), 50);
}

Test(signal, ignored_ones_are_dropped_unless_blocked)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    struct sigaction_k ignore = {.handler = 1};

    w_send(g, SIGCHLD);
    cr_assert_eq(signal_pending_set(g->leader), 0);
    signal_set_blocked(g->leader, SIGBIT(SIGCHLD));
    w_send(g, SIGCHLD);
    cr_assert_eq(signal_pending_set(g->leader), SIGBIT(SIGCHLD));
    cr_assert_not(g->leader->ctx.signal_pending);
    cr_assert_eq(signal_set_action(g->leader, SIGCHLD, &ignore, NULL), 0);
    cr_assert_eq(signal_pending_set(g->leader), 0, "ignoring takes back what is pending");
}

Test(signal, kill_and_stop_cannot_be_blocked_or_caught)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    struct sigaction_k a = {.handler = 0x1000};

    signal_set_blocked(g->leader, ~0ULL);
    cr_assert_eq(g->leader->blocked, ~SIGSET_UNBLOCKABLE);
    cr_assert_eq(signal_set_action(g->leader, SIGKILL, &a, NULL), -EINVAL);
    cr_assert_eq(signal_set_action(g->leader, SIGSTOP, &a, NULL), -EINVAL);
    cr_assert_eq(signal_set_action(g->leader, 0, &a, NULL), -EINVAL);
    cr_assert_eq(signal_set_action(g->leader, 65, &a, NULL), -EINVAL);
    w_send(g, SIGKILL);
    cr_assert(g->group_exiting);
    cr_assert_eq(g->exit_status, SIGKILL);
    cr_assert(g->leader->ctx.fatal_pending);
}

Test(signal, default_death_reaches_every_thread_at_once)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    struct task *t = w_thread(g, w.c.pidns);

    task_publish(t, NULL);
    w_send(g, SIGTERM);
    cr_assert(g->group_exiting);
    cr_assert(t->ctx.fatal_pending && g->leader->ctx.fatal_pending);
    cr_assert_eq(w_send(g, SIGUSR1), 0, "nothing reaches the dying, and nobody is told");
}

Test(signal, process_signal_goes_to_a_thread_that_takes_it)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    struct task *t = w_thread(g, w.c.pidns);

    task_publish(t, NULL);
    handle(g, SIGUSR1);
    signal_set_blocked(g->leader, SIGBIT(SIGUSR1));
    w_send(g, SIGUSR1);
    cr_assert_not(g->leader->ctx.signal_pending);
    cr_assert(t->ctx.signal_pending);
    /* When it blocks the signal too, the other one gets it back after unblocking. */
    signal_set_blocked(t, SIGBIT(SIGUSR1));
    cr_assert_not(t->ctx.signal_pending);
    signal_set_blocked(g->leader, 0);
    cr_assert(g->leader->ctx.signal_pending);
}

Test(signal, blocking_hands_a_pending_signal_over)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    struct task *t = w_thread(g, w.c.pidns);

    task_publish(t, NULL);
    handle(g, SIGUSR1);
    w_send(g, SIGUSR1);
    cr_assert(g->leader->ctx.signal_pending);
    cr_assert_not(t->ctx.signal_pending);
    signal_set_blocked(g->leader, SIGBIT(SIGUSR1));
    cr_assert(t->ctx.signal_pending);
}

Test(signal, init_survives_what_it_does_not_handle)
{
    siginfo_t info;

    cr_assert(w.init->unkillable);
    w_send(w.init, SIGTERM);
    w_send(w.init, SIGKILL);
    cr_assert_not(w.init->group_exiting);
    handle(w.init, SIGTERM);
    w_send(w.init, SIGTERM);
    cr_assert(w.init->leader->ctx.signal_pending);
    /* From outside its namespace SIGKILL works. */
    siginfo_user(&info, SIGKILL, SI_USER, 0, 0);
    cr_assert_eq(signal_send_group(w.init, &info), 0);
    cr_assert(w.init->group_exiting);
}

Test(signal, stop_and_continue_cancel_each_other)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);

    signal_set_blocked(g->leader, ~0ULL);
    handle(g, SIGCONT);
    w_send(g, SIGCONT);
    w_send(g, SIGTSTP);
    cr_assert_eq(signal_pending_set(g->leader), SIGBIT(SIGTSTP));
    w_send(g, SIGCONT);
    cr_assert_eq(signal_pending_set(g->leader), SIGBIT(SIGCONT));
}

Test(signal, fault_breaks_through)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    siginfo_t info;

    handle(g, SIGSEGV);
    signal_set_blocked(g->leader, SIGBIT(SIGSEGV));
    siginfo_kernel(&info, SIGSEGV, SEGV_MAPERR);
    signal_force(g->leader, &info);
    cr_assert_eq(g->sighand->actions[SIGSEGV - 1].handler, 0);
    cr_assert_eq(g->leader->blocked, 0);
    cr_assert(g->leader->ctx.signal_pending);
}

Test(signal, prealloc_counts_overruns)
{
    struct tgroup *g = w_process(w.init, w.c.pidns);
    struct sigqueue q = {.preallocated = true};

    list_init(&q.link);
    siginfo_kernel(&q.info, SIGALRM, SI_TIMER);
    signal_set_blocked(g->leader, SIGBIT(SIGALRM));
    cr_assert_eq(signal_send_prealloc(g, NULL, &q), 0);
    cr_assert_eq(signal_send_prealloc(g, NULL, &q), 1);
    sigpending_flush(&g->pending);
    cr_assert(list_empty(&q.link));
}

Test(signal, permission)
{
    struct tgroup *a = w_process(w.init, w.c.pidns), *b = w_process(w.init, w.c.pidns);
    struct cred *user;

    cr_assert_eq(cred_dup(w.root, 0, &user), 0);
    user->uid = user->euid = user->suid = 1000;
    user->cap_effective = 0;
    task_set_cred(a->leader, user);
    cr_assert_eq(signal_may_send(a->leader, b->leader, SIGTERM), -EPERM);
    cr_assert_eq(signal_may_send(b->leader, a->leader, SIGTERM), 0);
    cr_assert_eq(signal_may_send(a->leader, b->leader, SIGCONT), 0, "same session");
    cr_assert_eq(signal_may_send(a->leader, a->leader, SIGTERM), 0);
}
