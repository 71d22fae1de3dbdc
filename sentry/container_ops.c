/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime does to a container once it is made: start, kill, exec, resize. */
#include "sentry/sentry.h"

#include <errno.h>
#include <signal.h>

#include "sentry/fs/tty_console.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task_run.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/process.h"

int sentry_container_start(struct container *c, struct errmsg *e, void (*on_exit)(void *arg, int wait_status),
                           void *arg)
{
    struct process *p = c->init_process;
    int r;

    if (!p)
        return errmsg_set(e, -EINVAL, "the container has been started before");
    c->init_process = NULL;
    if (p->tty)
        c->console = p->tty;
    p->tty = NULL;
    c->on_exit = on_exit;
    c->on_exit_arg = arg;
    r = process_start(p, e, NULL, NULL);
    if (r < 0) {
        c->on_exit = NULL;
        return r;
    }
    return 0;
}

void container_emptied(struct container *c)
{
    void (*on_exit)(void *arg, int wait_status) = c->on_exit;

    c->exited = true;
    c->on_exit = NULL;
    if (on_exit)
        on_exit(c->on_exit_arg, c->init ? c->init->exit_status : 0);
}

static int send_from_outside(struct tgroup *g, int signo)
{
    siginfo_t info;

    if (g->zombie || !g->leader)
        return -ESRCH;
    siginfo_user(&info, signo, SI_USER, 0, 0);
    /* A process that was never started is its maker's: it dies of what kills such a maker. */
    if (g->leader->state == TASK_NEW) {
        if (!(SIGBIT(signo) & (SIGSET_IGNORE | SIGSET_STOP))) {
            tgroup_exit(g, signo);
            task_run_spawn(g->leader);
        }
        return 0;
    }
    return signal_send_group(g, &info);
}

int sentry_container_kill(struct container *c, int signo, bool all)
{
    struct tgroup *g, *next;
    int r = -ESRCH;

    if (signo < 0 || signo > NSIG_K)
        return -EINVAL;
    if (!c->init || c->init->zombie || c->exited)
        return -ESRCH;
    if (signo == 0)
        return 0;
    if (!all)
        return send_from_outside(c->init, signo);
    list_for_each_entry_safe(g, next, &c->groups, container_link) {
        if (!send_from_outside(g, signo))
            r = 0;
    }
    return r;
}

int sentry_container_exec(struct container *c, const struct sentry_process *p, struct errmsg *e,
                          void (*on_exit)(void *arg, int wait_status), void *arg)
{
    struct process *process;
    int r;

    if (!c->init || c->init->zombie || c->init->group_exiting || c->exited)
        return errmsg_set(e, -ESRCH, "cannot exec in a container that is not running");
    r = process_new(c, p, false, e, &process);
    return r ? r : process_start(process, e, on_exit, arg);
}

int sentry_container_kill_pid(struct container *c, int guest_pid, int signo)
{
    struct tgroup *g;
    int r;

    if (signo < 1 || signo > NSIG_K)
        return -EINVAL;
    g = tgroup_find(c->pidns, guest_pid);
    if (!g)
        return -ESRCH;
    r = send_from_outside(g, signo);
    tgroup_unref(g);
    return r;
}

unsigned sentry_container_pids(struct container *c, int *ret_pids, unsigned len)
{
    struct tgroup *g;
    unsigned count = 0;

    list_for_each_entry(g, &c->groups, container_link) {
        if (g->zombie)
            continue;
        if (count < len)
            ret_pids[count] = tgroup_pid_in(g, c->pidns);
        count++;
    }
    return count;
}

void sentry_container_resize(struct container *c, uint16_t rows, uint16_t cols)
{
    struct tty *tty = c->console ? c->console : c->init_process ? c->init_process->tty : NULL;

    if (tty)
        tty_console_resize(tty, rows, cols);
}

void sentry_container_resize_pid(struct container *c, int guest_pid, uint16_t rows, uint16_t cols)
{
    struct tgroup *g = tgroup_find(c->pidns, guest_pid);

    if (!g)
        return;
    if (g->pgrp && g->pgrp->session->tty)
        tty_console_resize(g->pgrp->session->tty, rows, cols);
    tgroup_unref(g);
}
