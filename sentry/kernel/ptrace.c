/* SPDX-License-Identifier: Apache-2.0 */
/* Who traces whom: attaching, letting go, and what happens when either side exits. Stops are in ptrace_stop.c. */
#include "sentry/kernel/ptrace.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/landlock.h"
#include "sentry/core/userns.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/ptrace_priv.h"
#include "sentry/kernel/tgroup.h"

struct ptrace_state *ptrace_of(const struct task *t)
{
    return t->ptrace && t->ptrace->tracer ? t->ptrace : NULL;
}

bool ptrace_is_stopped(const struct task *t)
{
    const struct ptrace_state *p = ptrace_of(t);

    return p && p->stopped;
}

bool ptrace_is_foreign(const struct task *t)
{
    const struct ptrace_state *p = ptrace_of(t);

    return p && p->tracer->group != t->group->parent;
}

bool ptrace_wants_stop(const struct task *t)
{
    const struct ptrace_state *p = ptrace_of(t);

    return p && (p->trap_stop || p->trap_notify);
}

bool ptrace_sees_calls(const struct task *t)
{
    const struct ptrace_state *p = ptrace_of(t);

    return p && (p->how != PTRACE_HOW_CONT || ptrace_is_watching(p));
}

bool ptrace_seccomp_suspended(const struct task *t)
{
    const struct ptrace_state *p = ptrace_of(t);

    return p && (p->options & PT_O_SUSPEND_SECCOMP);
}

bool ptrace_tracer_is_able(const struct task *t)
{
    const struct ptrace_state *p = ptrace_of(t);

    return !p || cred_ns_cap(p->cred, t->ctx.cred->userns, CAP_SYS_PTRACE);
}

int ptrace_prepare(struct task *t)
{
    struct ptrace_state *p;

    if (t->ptrace)
        return 0;
    p = NEW(struct ptrace_state);
    if (!p)
        return -ENOMEM;
    p->owner = t;
    list_init(&p->link);
    waitq_init(&p->wait);
    t->ptrace = p;
    return 0;
}

void ptrace_free(struct task *t)
{
    struct ptrace_state *p = t->ptrace;

    if (!p)
        return;
    ptrace_unlink(t);
    mem_free(p);
    t->ptrace = NULL;
}

/* t (prepared) is traced by tracer from now on. */
static void ptrace_link(struct task *t, struct task *tracer, const struct cred *cred)
{
    struct ptrace_state *p = t->ptrace;

    p->tracer = tracer;
    p->cred = cred_ref(cred);
    p->options = 0;
    p->seized = p->trap_stop = p->trap_notify = p->listening = false;
    p->how = PTRACE_HOW_CONT;
    p->forced_tf = false;
    p->code = p->signo = p->stop_signo = 0;
    p->message = 0;
    memset(p->debug, 0, sizeof(p->debug));
    list_add_tail(&tracer->tracees, &p->link);
}

void ptrace_unlink(struct task *t)
{
    struct ptrace_state *p = ptrace_of(t);
    struct tgroup *g = t->group;

    if (!p)
        return;
    list_del(&p->link);
    p->tracer = NULL;
    cred_unref(p->cred);
    p->cred = NULL;
    p->trap_stop = p->trap_notify = p->listening = false;
    p->how = PTRACE_HOW_CONT;
    if (t->state >= TASK_ZOMBIE)
        return;
    if (p->stopped)
        ptrace_disarm_step(t);
    /* It stops with its process, as if it had never been traced. */
    if (!t->exiting && g->stop_signal && (g->stopped || g->stop_count))
        t->stop_pending = true;
    signal_recalc(t);
    if (p->stopped)
        waitq_wake_all(&p->wait);
    else
        task_kick(t);
    task_publish_self(t);
}

int ptrace_traceme(struct task *t)
{
    struct task *parent = t->group->parent_task;
    const struct cred *c, *own = t->ctx.cred;
    int r;

    if (ptrace_of(t) || !parent || parent->exiting || parent->group->group_exiting)
        return -EPERM;
    c = parent->ctx.cred;
    if ((!userns_same(c->userns, own->userns) || (own->cap_permitted & ~c->cap_permitted)) &&
        !cred_ns_cap(c, own->userns, CAP_SYS_PTRACE))
        return -EPERM;
    if (!landlock_contains(c->landlock, own->landlock))
        return -EPERM;
    r = ptrace_prepare(t);
    if (!r)
        ptrace_link(t, parent, c);
    return r;
}

int ptrace_check_options(const struct task *t, uint64_t options)
{
    if (options & ~(uint64_t)PT_O_MASK)
        return -EINVAL;
    if ((options & PT_O_SUSPEND_SECCOMP) &&
        (!cred_has_cap(t->ctx.cred, CAP_SYS_ADMIN) || t->seccomp || ptrace_seccomp_suspended(t)))
        return -EPERM;
    return 0;
}

/* Attach waits for an exec under way, whose rights are settled already. Return: 0 or −ERESTARTNOINTR. */
static int wait_for_exec(struct task *t, struct tgroup *g)
{
    return WAIT_EVENT(&t->ctx, &g->exec_done, !g->execs) ? -ERESTARTNOINTR : 0;
}

int ptrace_attach(struct task *t, struct task *target, bool seize, uint64_t addr, uint64_t data)
{
    siginfo_t info;
    int r = 0;

    if (seize) {
        if (addr || (data & ~(uint64_t)PT_O_MASK))
            return -EIO;
        r = ptrace_check_options(t, data);
    }
    if (!r && t->group == target->group)
        r = -EPERM;
    if (!r)
        r = wait_for_exec(t, target->group);
    if (!r)
        r = ptrace_may_access(t, target, PTRACE_ATTACH_REAL);
    if (!r && (target->state >= TASK_ZOMBIE || ptrace_of(target)))
        r = -EPERM;
    if (!r)
        r = ptrace_prepare(target);
    if (r)
        return r;
    ptrace_link(target, t, t->ctx.cred);
    if (seize) {
        target->ptrace->seized = true;
        target->ptrace->options = (uint32_t)data;
    }
    /* What is stopped already turns over into a stop of ours. */
    if (target->state == TASK_STOPPED) {
        target->ptrace->trap_stop = true;
        target->ptrace->stop_signo = target->group->stop_signal;
        signal_recalc(target);
        waitq_wake_all(&target->group->stop_wait);
    }
    if (!seize) {
        siginfo_kernel(&info, SIGSTOP, SI_KERNEL);
        (void)signal_send_task(target, &info);
    }
    /* That is soon: nothing stands between it and its stop. */
    if (target->ptrace->trap_stop && target->state == TASK_STOPPED)
        (void)!WAIT_EVENT_STATE(&t->ctx, &target->ptrace->wait,
                                !ptrace_of(target) || target->ptrace->stopped || target->exiting ||
                                    target->state >= TASK_ZOMBIE,
                                CTX_WAIT_KILLABLE, WAIT_FOREVER);
    return 0;
}

void ptrace_detach(struct task *t, int signo)
{
    t->ptrace->signo = signo;
    t->ptrace->resumed = true;
    ptrace_unlink(t);
}

void ptrace_follow(const struct task *t, struct task *child)
{
    const struct ptrace_state *from = ptrace_of(t);

    if (!from || !child->ptrace)
        return;
    ptrace_link(child, from->tracer, from->cred);
    child->ptrace->options = from->options;
    child->ptrace->seized = from->seized;
    if (from->seized) {
        child->ptrace->trap_stop = true;
    } else {
        siginfo_t info;

        siginfo_user(&info, SIGSTOP, SI_USER, 0, 0);
        child->pending.set |= SIGBIT(SIGSTOP);
    }
    signal_recalc(child);
}

int ptrace_clone_event(const struct task *t, uint64_t flags, int exit_signal)
{
    int event = flags & 0x00004000 /* CLONE_VFORK */ ? PT_EVENT_VFORK
                : exit_signal != SIGCHLD             ? PT_EVENT_CLONE
                                                     : PT_EVENT_FORK;

    if (flags & 0x00800000 /* CLONE_UNTRACED */)
        return 0;
    return ptrace_event_wanted(t, event) ? event : 0;
}

/* A tracee that was waiting to be waited for is the parent's again, or nobody's. */
static void release_dead(struct task *t)
{
    struct tgroup *g = t->group;

    if (t != g->leader)
        tgroup_reap_thread(t);
    else if (g->zombie && tgroup_notify_exit(g))
        tgroup_release(g);
}

void ptrace_exit_tracer(struct task *tracer)
{
    siginfo_t info;

    while (!list_empty(&tracer->tracees)) {
        struct ptrace_state *p = list_first(&tracer->tracees, struct ptrace_state, link);
        struct task *t = task_ref(p->owner);
        bool dead = t->state >= TASK_ZOMBIE;
        bool kill = p->options & PT_O_EXITKILL;

        p->resumed = true;
        /* What the tracer has not taken note of goes on; what it has, it would have decided about. */
        p->signo = p->delivers ? p->code : 0;
        ptrace_unlink(t);
        if (kill && !dead) {
            siginfo_kernel(&info, SIGKILL, SI_KERNEL);
            (void)signal_send_task(t, &info);
        }
        if (dead)
            release_dead(t);
        task_unref(t);
    }
}

bool ptrace_notify_exit(struct task *t)
{
    const struct tgroup *g = t->group;
    struct tgroup *to = t->ptrace->tracer->group;
    int status = g->group_exiting ? g->exit_status : t->exit_code;
    int signo = t == g->leader && !ptrace_is_foreign(t) ? g->exit_signal : SIGCHLD;
    const struct sigaction_k *action = &to->sighand->actions[SIGCHLD - 1];
    bool ignored = signo == SIGCHLD && action->handler == (uint64_t)(uintptr_t)SIG_IGN;
    siginfo_t info;

    if (signo && !ignored) {
        siginfo_user(&info, signo, status & 0x7f ? (status & 0x80 ? CLD_DUMPED : CLD_KILLED) : CLD_EXITED,
                     task_tid_for(t, t->ptrace->tracer), t->ctx.cred->uid);
        info.si_status = status & 0x7f ? status & 0x7f : status >> 8 & 0xff;
        (void)signal_send_group(to, &info);
    }
    waitq_wake_all(&to->child_wait);
    return ignored || (signo == SIGCHLD && (action->flags & SA_NOCLDWAIT));
}
