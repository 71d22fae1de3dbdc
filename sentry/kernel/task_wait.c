/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for children. */
#include "sentry/kernel/task_wait.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "sentry/kernel/tgroup.h"

#define NS_PER_S 1000000000ULL

static struct timeval to_timeval(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / NS_PER_S), .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};
}

void tgroup_rusage(const struct tgroup *g, struct rusage *ret)
{
    uint64_t stime = g->stime_ns;

    memset(ret, 0, sizeof(*ret));
    ret->ru_minflt = (long)g->min_flt;
    ret->ru_majflt = (long)g->maj_flt;
    ret->ru_nvcsw = (long)g->nvcsw;
    ret->ru_nivcsw = (long)g->nivcsw;
    for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
        stime += t->stime_ns;
        ret->ru_minflt += (long)t->min_flt;
        ret->ru_majflt += (long)t->maj_flt;
        ret->ru_nvcsw += (long)t->nvcsw;
        ret->ru_nivcsw += (long)t->nivcsw;
    }
    ret->ru_utime = to_timeval(tgroup_cpu_ns(g));
    ret->ru_stime = to_timeval(stime);
    ret->ru_maxrss = (long)g->max_rss_kb;
}

void tgroup_rusage_children(const struct tgroup *g, struct rusage *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->ru_utime = to_timeval(g->cutime_ns);
    ret->ru_stime = to_timeval(g->cstime_ns);
    ret->ru_minflt = (long)g->cmin_flt;
    ret->ru_majflt = (long)g->cmaj_flt;
    ret->ru_maxrss = (long)g->cmax_rss_kb;
}

/* Whether the spec speaks of child at all, in whatever state it is. */
static bool eligible(const struct task *t, const struct wait_spec *spec, const struct tgroup *child)
{
    bool is_clone = child->exit_signal != SIGCHLD;

    if (spec->nothing || child->reaped)
        return false;
    if (spec->group && child != spec->group)
        return false;
    if (spec->pgrp && child->pgrp != spec->pgrp)
        return false;
    if ((spec->options & __WNOTHREAD) && child->parent_task != t)
        return false;
    if (!(spec->options & __WALL) && is_clone != !!(spec->options & __WCLONE))
        return false;
    return true;
}

static void describe(const struct task *t, const struct tgroup *child, struct wait_result *ret, int status,
                     int code, int value)
{
    ret->pid = tgroup_pid_for(child, t);
    ret->uid = siginfo_uid(child->leader, t);
    ret->status = status;
    ret->code = code;
    ret->value = value;
    tgroup_rusage(child, &ret->usage);
}

static void reap(struct tgroup *parent, struct tgroup *child)
{
    parent->cutime_ns += tgroup_cpu_ns(child) + child->cutime_ns;
    parent->cstime_ns += child->stime_ns + child->cstime_ns;
    parent->cmin_flt += child->min_flt + child->cmin_flt;
    parent->cmaj_flt += child->maj_flt + child->cmaj_flt;
    parent->cmax_rss_kb = MAX(parent->cmax_rss_kb, child->max_rss_kb);
    parent->cmax_rss_kb = MAX(parent->cmax_rss_kb, child->cmax_rss_kb);
    tgroup_release(child);
}

/* Return: whether child has news of the kind asked for; takes it unless WNOWAIT. */
static bool take_news(struct task *t, const struct wait_spec *spec, struct tgroup *child, struct wait_result *ret)
{
    bool keep = spec->options & WNOWAIT;

    if (child->zombie && (spec->options & WEXITED)) {
        int status = child->exit_status;

        if (WIFSIGNALED(status))
            describe(t, child, ret, status, WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED, WTERMSIG(status));
        else
            describe(t, child, ret, status, CLD_EXITED, WEXITSTATUS(status));
        if (!keep)
            reap(t->group, child);
        return true;
    }
    if (child->stopped && !child->stop_reported && (spec->options & WSTOPPED)) {
        describe(t, child, ret, W_STOPCODE(child->stop_signal), CLD_STOPPED, child->stop_signal);
        child->stop_reported = !keep;
        return true;
    }
    if (child->continued && !child->zombie && (spec->options & WCONTINUED)) {
        describe(t, child, ret, 0xffff, CLD_CONTINUED, SIGCONT);
        child->continued = keep;
        return true;
    }
    return false;
}

/* Return: 1 with news in ret, 0 none yet, −ECHILD nobody to wait for. */
static int look(struct task *t, const struct wait_spec *spec, struct wait_result *ret)
{
    struct tgroup *child, *next;
    int r = -ECHILD;

    list_for_each_entry_safe(child, next, &t->group->children, sibling) {
        if (!eligible(t, spec, child))
            continue;
        r = 0;
        if (take_news(t, spec, child, ret))
            return 1;
    }
    return r;
}

int task_wait(struct task *t, const struct wait_spec *spec, struct wait_result *ret_result)
{
    int found, r;

    memset(ret_result, 0, sizeof(*ret_result));
    found = look(t, spec, ret_result);
    if (found || (spec->options & WNOHANG))
        return found < 0 ? found : 0;
    r = WAIT_EVENT(&t->ctx, &t->group->child_wait, (found = look(t, spec, ret_result)) != 0);
    if (r)
        return r;
    return found < 0 ? found : 0;
}
