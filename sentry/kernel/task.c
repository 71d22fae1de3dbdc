/* SPDX-License-Identifier: Apache-2.0 */
/* Task objects: making, finding, publishing and releasing them. */
#include "sentry/kernel/task.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/fiber.h"
#include "sentry/core/limits.h"
#include "sentry/core/ucount.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/kernel/utsns.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/mount.h"

void syscall_local_drop(struct task *t); /* the layer above: syscalls/dispatch.h */

bool task_asks(const struct task *t, uint64_t nr)
{
    return t->kernel->strace || ptrace_sees_calls(t) || (t->seccomp_mode && guest_seccomp_asks(t, nr));
}

int task_new(struct kernel *kernel, struct tgroup *group, struct pidns *ns, const struct pid_wish *wish,
             struct task **ret_task)
{
    struct task *t;
    int r = limit_charge(LIMIT_KIND_TASKS, 1);

    if (r)
        return r;
    t = NEW(struct task);
    if (!t) {
        limit_uncharge(LIMIT_KIND_TASKS, 1);
        return -ENOMEM;
    }
    r = pid_new(ns, wish, &t->pid);
    if (r) {
        limit_uncharge(LIMIT_KIND_TASKS, 1);
        mem_free(t);
        return r;
    }
    ref_init(&t->ref);
    t->ctx.is_task = true;
    t->kernel = kernel;
    t->group = tgroup_ref(group);
    t->pidns = pidns_ref(ns);
    t->state = TASK_NEW;
    t->sysno = -1;
    t->start_ns = host_monotonic_ns();
    t->timer_slack_ns = t->timer_slack_default_ns = 50000;
    t->mce_kill = 2; /* PR_MCE_KILL_DEFAULT */
    list_init(&t->thread_link);
    list_init(&t->tracees);
    sigpending_init(&t->pending);
    waitq_init(&t->signal_wait);
    waitq_init(&t->vfork_wait);
    *ret_task = t;
    return 0;
}

struct task *task_ref(struct task *t)
{
    ref_get(&t->ref);
    return t;
}

struct task *task_current(void)
{
    return fiber_owner();
}

void task_unref(struct task *t)
{
    if (!t || !ref_put(&t->ref))
        return;
    BUG_ON(t->thread || t->handling);
    waitq_orphan(&t->signal_wait);
    waitq_orphan(&t->vfork_wait);
    sigpending_flush(&t->pending);
    mem_free(t->undo);
    ptrace_free(t);
    syscall_local_drop(t);
    guest_seccomp_exit(t);
    task_unref(t->vfork_waiter);
    mm_unref(t->mm);
    if (t->files)
        fdtable_unref(NULL, t->files);
    if (t->fs)
        fsctx_unref(t->fs);
    taskkeys_drop(t);
    nsproxy_unref(t->ns);
    cred_unref(t->ctx.cred);
    if (fiber_owner() == t)
        fiber_set_owner(NULL);
    pid_unref(t->pid);
    pidns_unref(t->pidns);
    tgroup_unref(t->group);
    limit_uncharge(LIMIT_KIND_TASKS, 1);
    mem_free(t);
}

void task_abandon(struct task *t)
{
    if (!t)
        return;
    if (t->thread) {
        plat_thread_end(t->thread, 0);
        t->thread = t->ctx.thread = NULL;
    }
    task_unref(t);
}

void task_publish(struct task *t, struct tgroup *parent)
{
    struct tgroup *g = t->group;

    t->pid->task = t;
    list_add_tail(&g->threads, &t->thread_link);
    g->thread_count++;
    t->kernel->forks++;
    g->container->task_count++;
    /* The charge is advice once the task exists: a failed one only makes the counter low. */
    if (ucount_charge(UCOUNT_TASKS, t->ctx.cred->uid, UINT64_MAX))
        t->nproc_uncounted = true;
    if (!g->leader) {
        g->leader = task_ref(t);
        tgroup_publish(g, parent);
    }
}

void task_release(struct task *t)
{
    if (list_empty(&t->thread_link))
        return;
    ptrace_unlink(t);
    list_del(&t->thread_link);
    t->group->container->task_count--;
    if (!t->nproc_uncounted)
        ucount_uncharge(UCOUNT_TASKS, t->ctx.cred->uid);
    if (t->pid->task == t)
        t->pid->task = NULL;
    pid_unref(TAKE_PTR(t->pid));
    t->state = TASK_DEAD;
    task_unref(t);
}

void task_set_cred(struct task *t, OWNS const struct cred *cred)
{
    const struct cred *old = t->ctx.cred;

    if (old && !list_empty(&t->thread_link) && old->uid != cred->uid) {
        if (!t->nproc_uncounted)
            ucount_uncharge(UCOUNT_TASKS, old->uid);
        t->nproc_uncounted = ucount_charge(UCOUNT_TASKS, cred->uid, UINT64_MAX) != 0;
    }
    /* A process that changed who it is does not show its memory to its former equals. */
    if (old && t->mm && (old->euid != cred->euid || old->egid != cred->egid || old->fsuid != cred->fsuid ||
                         old->fsgid != cred->fsgid || !cred_caps_within(old, cred)))
        t->mm->dumpable = 0;
    t->ctx.cred = cred;
    taskkeys_set_owner(t);
    if (t->state != TASK_NEW)
        task_publish_self(t);
    cred_unref(old);
}

int task_tid_in(const struct task *t, const struct pidns *ns)
{
    return pid_number(t->pid, ns);
}

int tgroup_pid_in(const struct tgroup *g, const struct pidns *ns)
{
    return g->leader ? pid_number(g->leader->pid, ns) : 0;
}

int task_tid_for(const struct task *t, const struct task *viewer)
{
    return pid_number(t->pid, viewer->pidns);
}

int tgroup_pid_for(const struct tgroup *g, const struct task *viewer)
{
    return tgroup_pid_in(g, viewer->pidns);
}

struct task *task_find(struct pidns *ns, int tid)
{
    struct pid *pid = pid_peek(ns, tid);

    return pid && pid->task ? task_ref(pid->task) : NULL;
}

struct tgroup *tgroup_find(struct pidns *ns, int number)
{
    struct pid *pid = pid_peek(ns, number);

    if (!pid || !pid->task || pid->task->group->leader != pid->task)
        return NULL;
    return tgroup_ref(pid->task->group);
}

char task_state_char(const struct task *t)
{
    switch (t->state) {
    case TASK_STOPPED:
        return ptrace_is_stopped(t) ? 't' : 'T';
    case TASK_ZOMBIE:
        return 'Z';
    case TASK_DEAD:
        return 'X';
    case TASK_KERNEL:
        if (!t->ctx.parked)
            return 'R';
        return t->ctx.wait_state == CTX_WAIT_INTERRUPTIBLE ? 'S' : 'D';
    default:
        return 'R';
    }
}

void task_set_comm(struct task *t, const char *name)
{
    size_t len = strnlen(name, TASK_COMM_LEN - 1);

    memset(t->comm, 0, sizeof(t->comm));
    memcpy(t->comm, name, len);
}

uint64_t task_cpu_ns(const struct task *t)
{
    if (!t->thread)
        return t->utime_ns;
    uint64_t now = plat_thread_cpu_ns(t->thread);

    /* The backend knows nothing of a thread whose host process is gone. */
    return t->utime_ns + (now > t->cpu_base_ns ? now - t->cpu_base_ns : 0);
}

void task_account_cpu(struct task *t)
{
    if (!t->thread)
        return;
    uint64_t now = plat_thread_cpu_ns(t->thread);

    if (now <= t->cpu_base_ns)
        return;
    t->utime_ns += now - t->cpu_base_ns;
    t->cpu_base_ns = now;
}

bool task_mm_is_shared(const struct task *t)
{
    return t->mm && t->mm->ref.count > t->group->thread_count;
}
