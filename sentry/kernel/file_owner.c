/* SPDX-License-Identifier: Apache-2.0 */
/* Signals from files. O_ASYNC hooks the queues that a poll would wait on: each wake of them is news. */
#include "sentry/kernel/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/landlock.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

enum { HOOKS_LEN = 3 }; /* queues that one file may name in its poll op */

#define BITS_IN (EPOLLIN | EPOLLRDNORM | EPOLLHUP | EPOLLRDHUP)
#define BITS_OUT (EPOLLOUT | EPOLLWRNORM)

struct hook {
    struct waiter waiter;
    struct owner *owner;
};

struct owner {
    struct file_async base; /* must stay first: of(f) */
    struct file *file;      /* (i) not owned: it owns us */
    struct pid *pid;        /* (k) the owner, referenced, or NULL */
    int type;               /* (k) F_OWNER_* */
    uint32_t uid, euid;     /* (k) of whoever named it */
    struct landlock_set *domain; /* (k) referenced: that of whoever named it, unless it is his own process; or NULL */
    int signo;              /* (k) 0: SIGIO without siginfo */
    int fd;                 /* (k) shown in si_fd */
    unsigned hooks_len;     /* (k) 0: O_ASYNC is off */
    struct hook hooks[HOOKS_LEN];
};

struct hook_table {
    struct poll_table pt;
    struct owner *owner;
};

static void owner_free(struct file *f);
static void owner_tell(struct file *f, int fd, int code);

/* Return: f's, or NULL. */
static struct owner *of(const struct file *f)
{
    return (struct owner *)f->async;
}

static struct owner *of_new(struct file *f)
{
    struct owner *a = of(f);

    if (!a && (a = NEW(struct owner))) {
        a->base.tell = owner_tell;
        a->base.free = owner_free;
        a->file = f;
        a->type = F_OWNER_TID;
        f->async = &a->base;
    }
    return a;
}

static void unhook(struct owner *a)
{
    while (a->hooks_len > 0)
        waitq_remove(&a->hooks[--a->hooks_len].waiter);
}

static void owner_free(struct file *f)
{
    struct owner *a = of(f);

    unhook(a);
    pid_unref(a->pid);
    landlock_unref(a->domain);
    mem_free(a);
    f->async = NULL;
}

/* ---- owners ---- */

static int own(struct task *t, struct file *f, int type, struct pid *pid)
{
    struct owner *a = of_new(f);

    if (!a)
        return -ENOMEM;
    pid_unref(a->pid);
    a->pid = pid ? pid_ref(pid) : NULL;
    a->type = type;
    a->uid = t->ctx.cred->uid;
    a->euid = t->ctx.cred->euid;
    bool self = pid && type != F_OWNER_PGRP && pid->task && pid->task->group == t->group;
    landlock_unref(a->domain);
    a->domain = self ? NULL : landlock_ref(t->ctx.cred->landlock);
    return 0;
}

int file_owner_set(struct task *t, struct file *f, int type, int number)
{
    struct pid *pid = number > 0 ? pid_peek(t->pidns, number) : NULL;

    return number && !pid ? -ESRCH : own(t, f, type, pid);
}

int file_owner_set_signed(struct task *t, struct file *f, int32_t who)
{
    if (who == INT32_MIN)
        return -EINVAL;
    return who < 0 ? file_owner_set(t, f, F_OWNER_PGRP, -who) : file_owner_set(t, f, F_OWNER_PID, who);
}

int file_owner_default(struct task *t, struct file *f)
{
    return of(f) && of(f)->pid ? 0 : own(t, f, F_OWNER_PID, t->group->leader->pid);
}

int file_owner_get(struct task *t, const struct file *f, int *ret_type)
{
    const struct owner *a = of(f);

    *ret_type = a ? a->type : F_OWNER_TID;
    if (!a || !a->pid || !(a->type == F_OWNER_PGRP ? (void *)a->pid->pgrp : (void *)a->pid->task))
        return 0;
    return pid_number(a->pid, t->pidns);
}

int file_owner_set_signal(struct file *f, uint64_t signo)
{
    struct owner *a;

    if (signo > NSIG_K)
        return -EINVAL;
    a = of_new(f);
    if (!a)
        return -ENOMEM;
    a->signo = (int)signo;
    return 0;
}

int file_owner_signal(const struct file *f)
{
    return of(f) ? of(f)->signo : 0;
}

void file_owner_uids(const struct file *f, uint32_t ret_uids[2])
{
    ret_uids[0] = of(f) ? of(f)->uid : 0;
    ret_uids[1] = of(f) ? of(f)->euid : 0;
}

/* ---- sending ---- */

static bool may_tell(const struct owner *a, const struct task *t)
{
    const struct cred *c = t->ctx.cred;

    if (landlock_scope_denies(a->domain, c->landlock, LANDLOCK_SCOPE_SIGNAL))
        return false;
    return a->euid == 0 || a->euid == c->suid || a->euid == c->uid || a->uid == c->suid || a->uid == c->uid;
}

static siginfo_t info_for(const struct owner *a, int fd, int code)
{
    static const int bands[] = {
        [POLL_IN] = EPOLLIN | EPOLLRDNORM,
        [POLL_OUT] = EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND,
        [POLL_MSG] = EPOLLIN | EPOLLRDNORM | EPOLLMSG,
        [POLL_ERR] = EPOLLERR,
        [POLL_PRI] = EPOLLPRI | EPOLLRDBAND,
        [POLL_HUP] = EPOLLHUP | EPOLLERR,
    };
    siginfo_t info;

    siginfo_kernel(&info, a->signo, code);
    info.si_band = bands[code];
    info.si_fd = fd;
    /* Signals whose codes mean something else get a neutral one. */
    switch (a->signo) {
    case SIGILL:
    case SIGFPE:
    case SIGSEGV:
    case SIGBUS:
    case SIGTRAP:
    case SIGCHLD:
    case SIGSYS:
        info.si_code = SI_SIGIO;
    }
    return info;
}

static void tell(const struct owner *a, struct task *t, bool thread, int fd, int code)
{
    siginfo_t info;

    if (!may_tell(a, t))
        return;
    if (a->signo) {
        info = info_for(a, fd, code);
        if (!(thread ? signal_send_task(t, &info) : signal_send_group(t->group, &info)))
            return;
    }
    /* Also when there is no room for one more that is queued. */
    siginfo_kernel(&info, SIGIO, SI_KERNEL);
    (void)(thread ? signal_send_task(t, &info) : signal_send_group(t->group, &info));
}

static void owner_tell(struct file *f, int fd, int code)
{
    const struct owner *a = of(f);
    struct tgroup *g, *next;

    if (!a || !a->pid)
        return;
    if (a->type != F_OWNER_PGRP) {
        if (a->pid->task && a->pid->task->state < TASK_ZOMBIE)
            tell(a, a->pid->task, a->type == F_OWNER_TID, fd, code);
        return;
    }
    if (!a->pid->pgrp)
        return;
    list_for_each_entry_safe(g, next, &a->pid->pgrp->members, pgrp_link) {
        if (g->leader && !g->zombie)
            tell(a, g->leader, false, fd, code);
    }
}

/* ---- O_ASYNC ---- */

/* Room for sending is told even when there was room before: too much news is harmless. */
static bool async_wake(struct waiter *w, uint32_t key)
{
    struct owner *a = container_of(w, struct hook, waiter)->owner;
    struct file *f = a->file;

    if (key == WAIT_KEY_ALL)
        key = file_poll(f, NULL);
    if ((key & EPOLLHUP) && S_ISSOCK(f->inode->mode))
        owner_tell(f, a->fd, POLL_HUP);
    else if ((key & BITS_IN) && file_readable(f))
        owner_tell(f, a->fd, POLL_IN);
    else if ((key & EPOLLPRI) && file_readable(f))
        owner_tell(f, a->fd, POLL_PRI);
    else if ((key & (BITS_OUT | EPOLLERR)) && file_writable(f))
        owner_tell(f, a->fd, POLL_OUT);
    return false;
}

static void async_hook(struct poll_table *pt, struct waitq *q)
{
    struct owner *a = container_of(pt, struct hook_table, pt)->owner;

    if (a->hooks_len == HOOKS_LEN)
        return;
    struct hook *h = &a->hooks[a->hooks_len++];
    h->waiter.wake = async_wake;
    h->owner = a;
    waitq_add(q, &h->waiter);
}

int file_owner_async(struct task *t, struct file *f, int fd, bool on)
{
    struct owner *a = on ? of_new(f) : of(f);
    struct hook_table table = {.pt = {.queue = async_hook}, .owner = a};

    if (!a)
        return on ? -ENOMEM : 0;
    unhook(a);
    if (!on)
        return 0;
    /* Terminals have an owner from then on. */
    if (S_ISCHR(f->inode->mode) && file_owner_default(t, f))
        return -ENOMEM;
    a->fd = fd;
    (void)file_poll(f, &table.pt);
    return 0;
}
