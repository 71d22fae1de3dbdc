/* SPDX-License-Identifier: Apache-2.0 */
/* Process groups and sessions. */
#include "sentry/kernel/task.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "platform/base/alloc.h"

int pgrp_new(struct pid *pid, struct session *session, struct pgrp **ret_pgrp)
{
    struct pgrp *p = NEW(struct pgrp);

    if (!p)
        return -ENOMEM;
    ref_init(&p->ref);
    p->pid = pid_ref(pid);
    p->session = session_ref(session);
    list_init(&p->members);
    pid->pgrp = p;
    *ret_pgrp = p;
    return 0;
}

struct pgrp *pgrp_ref(struct pgrp *p)
{
    ref_get(&p->ref);
    return p;
}

void pgrp_unref(struct pgrp *p)
{
    if (!p || !ref_put(&p->ref))
        return;
    if (p->pid->pgrp == p)
        p->pid->pgrp = NULL;
    session_unref(p->session);
    pid_unref(p->pid);
    mem_free(p);
}

struct session *session_ref(struct session *s)
{
    ref_get(&s->ref);
    return s;
}

void session_unref(struct session *s)
{
    if (!s || !ref_put(&s->ref))
        return;
    if (s->pid->session == s)
        s->pid->session = NULL;
    pgrp_unref(s->tty_old_pgrp);
    pid_unref(s->pid);
    mem_free(s);
}

int pgrp_id_in(const struct pgrp *p, const struct pidns *ns)
{
    return p ? pid_number(p->pid, ns) : 0;
}

int session_id_in(const struct session *s, const struct pidns *ns)
{
    return s ? pid_number(s->pid, ns) : 0;
}

struct pgrp *pgrp_find(struct pidns *ns, int id)
{
    struct pid *pid = pid_peek(ns, id);

    return pid && pid->pgrp && !list_empty(&pid->pgrp->members) ? pgrp_ref(pid->pgrp) : NULL;
}

void pgrp_join(struct tgroup *g, OWNS struct pgrp *p)
{
    struct pgrp *old = g->pgrp;

    list_del(&g->pgrp_link);
    g->pgrp = p;
    list_add_tail(&p->members, &g->pgrp_link);
    pgrp_unref(old);
}

/* Nobody in the group (but for ignore, who is leaving) has a parent in the same session and another group. */
static bool orphaned_but_for(const struct pgrp *p, const struct tgroup *ignore)
{
    struct tgroup *g;

    list_for_each_entry(g, &p->members, pgrp_link) {
        if (g == ignore || g->zombie || !g->parent || !g->parent->pgrp)
            continue;
        if (g->parent->pgrp != p && g->parent->pgrp->session == p->session)
            return false;
    }
    return true;
}

bool pgrp_is_orphaned(const struct pgrp *p)
{
    return orphaned_but_for(p, NULL);
}

static bool has_stopped_member(const struct pgrp *p)
{
    struct tgroup *g;

    list_for_each_entry(g, &p->members, pgrp_link) {
        if (g->stopped)
            return true;
    }
    return false;
}

void pgrp_check_orphaned(struct tgroup *g, struct tgroup *parent, bool exiting)
{
    struct pgrp *p = g->pgrp;
    siginfo_t info;

    if (!p || !parent || !parent->pgrp || parent->pgrp == p || parent->pgrp->session != p->session)
        return;
    if (!orphaned_but_for(p, exiting ? g : NULL) || !has_stopped_member(p))
        return;
    p = pgrp_ref(p);
    siginfo_kernel(&info, SIGHUP, SI_KERNEL);
    (void)signal_send_pgrp(p, &info);
    siginfo_kernel(&info, SIGCONT, SI_KERNEL);
    (void)signal_send_pgrp(p, &info);
    pgrp_unref(p);
}

int session_start(struct tgroup *g)
{
    struct session *s = NEW(struct session);
    struct pgrp *p;
    int r;

    if (!s)
        return -ENOMEM;
    ref_init(&s->ref);
    s->pid = pid_ref(g->leader->pid);
    r = pgrp_new(g->leader->pid, s, &p);
    if (!r) {
        s->pid->session = s;
        s->leader = g;
        g->tty_given_up = false;
        pgrp_join(g, p);
    }
    /* The group holds the session. */
    session_unref(s);
    return r;
}

int session_setsid(struct task *t)
{
    struct tgroup *g = t->group;
    int r;

    /* A group of our number, whoever is in it, would end up in two sessions. */
    if (g->leader->pid->pgrp || g->leader->pid->session)
        return -EPERM;
    r = session_start(g);
    return r ? r : tgroup_pid_for(g, t);
}

/* Return: referenced process, pid 0 = t's own; NULL: none of that number. */
static struct tgroup *by_pid(struct task *t, int pid)
{
    return pid ? tgroup_find(t->pidns, pid) : tgroup_ref(t->group);
}

static int may_move(struct task *t, struct tgroup *g)
{
    if (g->parent == t->group && g != t->group) {
        if (g->zombie || !g->pgrp || g->pgrp->session != t->group->pgrp->session)
            return g->pgrp && !g->zombie ? -EPERM : -ESRCH;
        if (g->did_exec)
            return -EACCES;
    } else if (g != t->group) {
        return -ESRCH;
    }
    return g->pgrp->session->leader == g ? -EPERM : 0;
}

static int move_to(struct task *t, struct tgroup *g, int pgid)
{
    struct pid *pid = pid_peek(t->pidns, pgid);
    struct pgrp *p;

    if (pid == g->leader->pid) {
        if (g->pgrp->pid == pid)
            return 0;
        if (pid->pgrp) {
            p = pgrp_ref(pid->pgrp);
        } else {
            int r = pgrp_new(pid, g->pgrp->session, &p);

            if (r)
                return r;
        }
    } else {
        p = pgrp_find(t->pidns, pgid);
        if (!p)
            return -EPERM;
    }
    if (p->session != g->pgrp->session) {
        pgrp_unref(p);
        return -EPERM;
    }
    pgrp_join(g, p);
    return 0;
}

int session_setpgid(struct task *t, int pid, int pgid)
{
    struct tgroup *g;
    int r;

    if (pid == 0)
        pid = tgroup_pid_for(t->group, t);
    if (pgid == 0)
        pgid = pid;
    if (pgid < 0)
        return -EINVAL;
    g = by_pid(t, pid);
    if (!g) {
        struct task *other = task_find(t->pidns, pid);

        task_unref(other);
        return other ? -EINVAL : -ESRCH;
    }
    r = may_move(t, g);
    if (!r)
        r = move_to(t, g, pgid);
    tgroup_unref(g);
    return r;
}

int session_getpgid(struct task *t, int pid)
{
    struct tgroup *g = by_pid(t, pid);
    struct task *other;
    int r;

    if (!g && (other = task_find(t->pidns, pid))) { /* a thread's number does as well */
        g = tgroup_ref(other->group);
        task_unref(other);
    }
    if (!g || !g->pgrp) {
        tgroup_unref(g);
        return -ESRCH;
    }
    r = pgrp_id_in(g->pgrp, t->pidns);
    tgroup_unref(g);
    return r;
}

int session_getsid(struct task *t, int pid)
{
    struct tgroup *g = by_pid(t, pid);
    struct task *other;
    int r;

    if (!g && (other = task_find(t->pidns, pid))) {
        g = tgroup_ref(other->group);
        task_unref(other);
    }
    if (!g || !g->pgrp) {
        tgroup_unref(g);
        return -ESRCH;
    }
    r = session_id_in(g->pgrp->session, t->pidns);
    tgroup_unref(g);
    return r;
}
