/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for children. */
#include "sentry/kernel/task_wait.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "sentry/kernel/ptrace.h"
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

/* Whether the spec names t, or with t the process that it leads. */
static bool named(const struct wait_spec *spec, const struct task *t)
{
    const struct tgroup *g = t->group;

    if (spec->nothing || g->reaped)
        return false;
    if (spec->pid)
        return t->pid == spec->pid;
    if (spec->group)
        return g == spec->group && t == g->leader;
    return !spec->pgrp || g->pgrp == spec->pgrp;
}

/* Whether the spec speaks of child at all, in whatever state it is. */
static bool eligible(const struct task *t, const struct wait_spec *spec, const struct tgroup *child)
{
    bool is_clone = child->exit_signal != SIGCHLD;

    if (!named(spec, child->leader))
        return false;
    if ((spec->options & __WNOTHREAD) && child->parent_task != t)
        return false;
    if (!(spec->options & __WALL) && is_clone != !!(spec->options & __WCLONE))
        return false;
    return true;
}

static void describe(const struct task *t, const struct task *child, struct wait_result *ret, int status,
                     int code, int value)
{
    ret->pid = task_tid_for(child, t);
    ret->uid = siginfo_uid(child, t);
    ret->status = status;
    ret->code = code;
    ret->value = value;
    tgroup_rusage(child->group, &ret->usage);
}

static void describe_end(const struct task *t, const struct task *child, struct wait_result *ret)
{
    const struct tgroup *g = child->group;
    int status = g->group_exiting ? g->exit_status : child->exit_code;

    if (WIFSIGNALED(status))
        describe(t, child, ret, status, WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED, WTERMSIG(status));
    else
        describe(t, child, ret, status, CLD_EXITED, WEXITSTATUS(status));
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

static bool take_continued(struct task *t, const struct wait_spec *spec, struct task *child, struct wait_result *ret)
{
    struct tgroup *g = child->group;

    if (!g->continued || g->zombie || !(spec->options & WCONTINUED))
        return false;
    describe(t, child, ret, 0xffff, CLD_CONTINUED, SIGCONT);
    g->continued = spec->options & WNOWAIT;
    return true;
}

/* Return: whether child has news of the kind asked for; takes it unless WNOWAIT. */
static bool take_news(struct task *t, const struct wait_spec *spec, struct tgroup *child, struct wait_result *ret)
{
    bool keep = spec->options & WNOWAIT;

    /* One that somebody else traces is his until he has waited for it. */
    if (child->zombie && (spec->options & WEXITED) && !ptrace_is_foreign(child->leader)) {
        describe_end(t, child->leader, ret);
        if (!keep)
            reap(t->group, child);
        return true;
    }
    if (child->stopped && !child->stop_reported && (spec->options & WSTOPPED)) {
        describe(t, child->leader, ret, W_STOPCODE(child->stop_signal), CLD_STOPPED, child->stop_signal);
        child->stop_reported = !keep;
        return true;
    }
    return take_continued(t, spec, child->leader, ret);
}

/* A dead tracee was waited for: a process of somebody else's is now his to wait for. */
static void reap_tracee(struct task *child)
{
    struct tgroup *g = child->group;

    if (child != g->leader) {
        tgroup_reap_thread(child);
        return;
    }
    ptrace_unlink(child);
    if (tgroup_notify_exit(g))
        tgroup_release(g);
}

/* The same for a tracee of the caller's. */
static bool take_tracee_news(struct task *t, const struct wait_spec *spec, struct task *child, struct wait_result *ret)
{
    struct ptrace_state *p = child->ptrace;
    bool keep = spec->options & WNOWAIT;

    if (child->state == TASK_ZOMBIE && (child != child->group->leader || child->group->zombie)) {
        if (!(spec->options & WEXITED))
            return false;
        describe_end(t, child, ret);
        if (keep)
            return true;
        if (child == child->group->leader && !ptrace_is_foreign(child))
            reap(t->group, child->group);
        else
            reap_tracee(child);
        return true;
    }
    if (p->stopped && !p->listening && p->code) {
        describe(t, child, ret, p->code << 8 | 0x7f, CLD_TRAPPED, p->code);
        p->code = keep ? p->code : 0;
        return true;
    }
    return take_continued(t, spec, child, ret);
}

/* Return: 1 with news in ret, 0 none yet, −ECHILD nobody to wait for. */
static int look_at_tracees(struct task *t, struct task *tracer, const struct wait_spec *spec, struct wait_result *ret)
{
    struct ptrace_state *p, *next;
    int r = -ECHILD;

    list_for_each_entry_safe(p, next, &tracer->tracees, link) {
        if (!named(spec, p->owner))
            continue;
        r = 0;
        if (take_tracee_news(t, spec, p->owner, ret))
            return 1;
    }
    return r;
}

static int look(struct task *t, const struct wait_spec *spec, struct wait_result *ret)
{
    struct tgroup *child, *next;
    int r = -ECHILD, traced;

    list_for_each_entry_safe(child, next, &t->group->children, sibling) {
        if (!eligible(t, spec, child))
            continue;
        r = 0;
        /* What the process itself traces is looked at below, as a tracee alone. */
        if (ptrace_traced(child->leader) && !ptrace_is_foreign(child->leader))
            continue;
        if (take_news(t, spec, child, ret))
            return 1;
    }
    for (struct task *o = tgroup_first(t->group); o; o = tgroup_next(t->group, o)) {
        if ((spec->options & __WNOTHREAD) && o != t)
            continue;
        traced = look_at_tracees(t, o, spec, ret);
        if (traced == 1)
            return 1;
        r = traced ? r : 0;
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
