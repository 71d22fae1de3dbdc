/* SPDX-License-Identifier: Apache-2.0 */
/* SECCOMP_RET_USER_NOTIF: calls that wait for another process's answer. Source: seccomp_unotify(2). */
#include "sentry/kernel/guest_seccomp_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

/* Newer than some hosts' headers. */
#define SECCOMP_IOC_SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define SECCOMP_IOC_WRONG_DIR SECCOMP_IOR(2, uint64_t) /* as ID_VALID was numbered at first */
enum { SECCOMP_NOTIF_SYNC_WAKE_UP = 1 };
#define IOC_SIZE_BITS ((uint32_t)_IOC_SIZEMASK << _IOC_SIZESHIFT)

enum notif_state { NOTIF_INIT, NOTIF_SENT, NOTIF_REPLIED };

/* A call that waits. On the stack of its fiber. */
struct guest_notif {
    struct list link;
    struct task *task;
    uint64_t id;
    const struct seccomp_data *data;
    enum notif_state state;
    int64_t val;
    int32_t error;
    uint32_t flags;
    struct waitq wait;
    struct list fds; /* of notif_fd.link */
};

/* A descriptor on its way to the waiting task. On the stack of the fiber that sends it. */
struct notif_fd {
    struct list link;
    struct file *file;
    uint32_t flags, newfd, newfd_flags;
    bool done;
    int result;
    struct waitq wait;
};

struct guest_listener *guest_listener_new(bool wait_killable)
{
    struct guest_listener *l = NEW(struct guest_listener);

    if (!l)
        return NULL;
    host_random(&l->next_id, sizeof(l->next_id));
    list_init(&l->calls);
    waitq_init(&l->wait);
    l->wait_killable = wait_killable;
    return l;
}

void guest_listener_free(struct guest_listener *l)
{
    if (!l)
        return;
    BUG_ON(!list_empty(&l->calls));
    waitq_orphan(&l->wait);
    mem_free(l);
}

void guest_listener_hangup(struct guest_listener *l)
{
    waitq_wake(&l->wait, EPOLLHUP);
}

/* ---- the task whose call it is ---- */

/* Installs the oldest descriptor that waits. */
static void take_fd(struct task *t, struct guest_notif *n)
{
    struct notif_fd *a = container_of(n->fds.next, struct notif_fd, link);
    bool cloexec = a->newfd_flags & O_CLOEXEC;

    list_del(&a->link);
    file_ref(a->file);
    if (a->flags & SECCOMP_ADDFD_FLAG_SETFD)
        a->result = fdtable_replace(t, (int)a->newfd, a->file, cloexec);
    else
        a->result = fdtable_add(t, a->file, 0, cloexec);
    if (a->flags & SECCOMP_ADDFD_FLAG_SEND) {
        if (a->result < 0)
            n->state = NOTIF_SENT;
        else
            n->val = a->result;
    }
    a->done = true;
    waitq_wake_all(&a->wait);
}

static bool killable_now(const struct guest_listener *l, const struct guest_notif *n)
{
    return l->wait_killable && n->state != NOTIF_INIT;
}

/* Return: 0 when it has been answered, or −ERESTARTSYS. */
static int wait_answer(struct task *t, struct guest_listener *l, struct guest_notif *n)
{
    for (;;) {
        bool killable = killable_now(l, n);
        int r = WAIT_EVENT_STATE(&t->ctx, &n->wait,
                                 n->state == NOTIF_REPLIED || !list_empty(&n->fds) || killable_now(l, n) != killable,
                                 killable ? CTX_WAIT_KILLABLE : CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER);

        if (r && killable_now(l, n) == killable)
            return r;
        while (!list_empty(&n->fds))
            take_fd(t, n);
        if (n->state == NOTIF_REPLIED)
            return 0;
    }
}

bool guest_notif_ask(struct task *t, struct seccomp_filter *f, const struct seccomp_data *data, int64_t *ret_result)
{
    struct guest_listener *l = f->listener;
    struct guest_notif n = {.task = t, .data = data};
    int r;

    if (!l || l->closed) {
        *ret_result = -ENOSYS;
        return false;
    }
    n.id = l->next_id++;
    waitq_init(&n.wait);
    list_init(&n.fds);
    list_add_tail(&l->calls, &n.link);
    waitq_wake(&l->wait, EPOLLIN | EPOLLRDNORM);
    r = wait_answer(t, l, &n);
    list_del(&n.link);
    while (!list_empty(&n.fds)) {
        struct notif_fd *a = container_of(n.fds.next, struct notif_fd, link);

        list_del(&a->link);
        a->result = -ESRCH;
        a->done = true;
        waitq_wake_all(&a->wait);
    }
    if (!r && (n.flags & SECCOMP_USER_NOTIF_FLAG_CONTINUE))
        return true;
    *ret_result = r ? r : n.error ? n.error : n.val;
    return false;
}

/* ---- the descriptor ---- */

static struct guest_notif *find(const struct guest_listener *l, uint64_t id)
{
    struct guest_notif *n;

    list_for_each_entry(n, &l->calls, link)
        if (n->id == id)
            return n;
    return NULL;
}

static struct guest_notif *find_state(const struct guest_listener *l, enum notif_state state)
{
    struct guest_notif *n;

    list_for_each_entry(n, &l->calls, link)
        if (n->state == state)
            return n;
    return NULL;
}

static int64_t receive(struct task *t, struct seccomp_filter *f, uaddr_t addr)
{
    struct guest_listener *l = f->listener;
    struct seccomp_notif out, zero;
    struct guest_notif *n;
    int r;

    memset(&zero, 0, sizeof(zero));
    if (COPY_IN(&t->ctx, &out, addr))
        return -EFAULT;
    if (memcmp(&out, &zero, sizeof(out)))
        return -EINVAL;
    r = WAIT_EVENT(&t->ctx, &l->wait, f->users == 0 || find_state(l, NOTIF_INIT));
    if (r)
        return r;
    n = find_state(l, NOTIF_INIT);
    if (!n)
        return -ENOENT;
    out.id = n->id;
    out.pid = (uint32_t)task_tid_for(n->task, t);
    out.data = *n->data;
    if (COPY_OUT(&t->ctx, addr, &out))
        return -EFAULT;
    n->state = NOTIF_SENT;
    waitq_wake(&l->wait, EPOLLOUT | EPOLLWRNORM);
    if (l->wait_killable)
        waitq_wake_all(&n->wait);
    return 0;
}

static int64_t answer(struct task *t, struct guest_listener *l, uaddr_t addr)
{
    struct seccomp_notif_resp resp;
    struct guest_notif *n;

    if (COPY_IN(&t->ctx, &resp, addr))
        return -EFAULT;
    if ((resp.flags & ~(uint32_t)SECCOMP_USER_NOTIF_FLAG_CONTINUE) ||
        ((resp.flags & SECCOMP_USER_NOTIF_FLAG_CONTINUE) && (resp.error || resp.val)))
        return -EINVAL;
    n = find(l, resp.id);
    if (!n)
        return -ENOENT;
    if (n->state != NOTIF_SENT)
        return -EINPROGRESS;
    n->state = NOTIF_REPLIED;
    n->val = resp.val;
    n->error = resp.error;
    n->flags = resp.flags;
    waitq_wake_all(&n->wait);
    return 0;
}

static int64_t id_valid(struct task *t, const struct guest_listener *l, uaddr_t addr)
{
    struct guest_notif *n;
    uint64_t id;

    if (COPY_IN(&t->ctx, &id, addr))
        return -EFAULT;
    n = find(l, id);
    return n && n->state == NOTIF_SENT ? 0 : -ENOENT;
}

/* Hands a over to the task behind n and waits until it has taken it. */
static int64_t hand_over(struct task *t, struct guest_listener *l, uint64_t id, struct notif_fd *a)
{
    struct guest_notif *n = find(l, id);
    int r;

    if (!n)
        return -ENOENT;
    if (n->state != NOTIF_SENT)
        return -EINPROGRESS;
    if (a->flags & SECCOMP_ADDFD_FLAG_SEND) {
        /* What is on its way already would come after the answer. */
        if (!list_empty(&n->fds))
            return -EBUSY;
        n->state = NOTIF_REPLIED;
    }
    waitq_init(&a->wait);
    list_add_tail(&n->fds, &a->link);
    waitq_wake_all(&n->wait);
    r = WAIT_EVENT(&t->ctx, &a->wait, a->done);
    if (r && !list_empty(&a->link)) {
        list_del(&a->link);
        n = find(l, id);
        if (n && (a->flags & SECCOMP_ADDFD_FLAG_SEND))
            n->state = NOTIF_SENT;
        return r;
    }
    /* Taken just now: that does not last. */
    (void)!WAIT_EVENT_STATE(&t->ctx, &a->wait, a->done, CTX_WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
    return a->result;
}

static int64_t add_fd(struct task *t, struct guest_listener *l, uaddr_t addr, uint32_t size)
{
    struct seccomp_notif_addfd in;
    struct notif_fd a = {0};
    int64_t r;

    if (size < sizeof(in) || size >= 4096)
        return -EINVAL;
    r = copy_in_struct(&t->ctx, &in, sizeof(in), addr, size);
    if (r)
        return r;
    if ((in.newfd_flags & ~(uint32_t)O_CLOEXEC) ||
        (in.flags & ~(uint32_t)(SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND)) ||
        (in.newfd && !(in.flags & SECCOMP_ADDFD_FLAG_SETFD)))
        return -EINVAL;
    a.file = fdtable_get(t, (int)in.srcfd);
    if (!a.file)
        return -EBADF;
    list_init(&a.link);
    a.flags = in.flags;
    a.newfd = in.newfd;
    a.newfd_flags = in.newfd_flags;
    r = hand_over(t, l, in.id, &a);
    file_unref(a.file);
    return r;
}

static int64_t listener_ioctl(struct ctx *ctx, struct file *file, uint32_t cmd, uint64_t arg)
{
    struct task *t = ctx_task(ctx);
    struct seccomp_filter *f = file->priv;
    struct guest_listener *l = f->listener;

    switch (cmd) {
    case SECCOMP_IOCTL_NOTIF_RECV:
        return receive(t, f, UADDR(arg));
    case SECCOMP_IOCTL_NOTIF_SEND:
        return answer(t, l, UADDR(arg));
    case SECCOMP_IOCTL_NOTIF_ID_VALID:
    case SECCOMP_IOC_WRONG_DIR:
        return id_valid(t, l, UADDR(arg));
    case SECCOMP_IOC_SET_FLAGS:
        return arg & ~(uint64_t)SECCOMP_NOTIF_SYNC_WAKE_UP ? -EINVAL : 0; /* how the host schedules is not ours */
    default:
        break;
    }
    if ((cmd & ~IOC_SIZE_BITS) == (SECCOMP_IOCTL_NOTIF_ADDFD & ~IOC_SIZE_BITS))
        return add_fd(t, l, UADDR(arg), _IOC_SIZE(cmd));
    return -EINVAL;
}

static uint32_t listener_poll(struct file *file, struct poll_table *pt)
{
    const struct seccomp_filter *f = file->priv;
    struct guest_listener *l = f->listener;

    poll_wait(pt, &l->wait);
    return (find_state(l, NOTIF_INIT) ? EPOLLIN | EPOLLRDNORM : 0u) |
           (find_state(l, NOTIF_SENT) ? EPOLLOUT | EPOLLWRNORM : 0u) | (f->users == 0 ? EPOLLHUP : 0u);
}

static void listener_release(struct file *file)
{
    struct seccomp_filter *f = file->priv;
    struct guest_listener *l = f->listener;
    struct guest_notif *n;

    l->closed = true;
    list_for_each_entry(n, &l->calls, link) {
        if (n->state == NOTIF_REPLIED)
            continue;
        n->state = NOTIF_REPLIED;
        n->error = -ENOSYS;
        n->val = 0;
        n->flags = 0;
        waitq_wake_all(&n->wait);
    }
    guest_filter_unref(f);
}

static const struct file_ops listener_ops = {
    .ioctl = listener_ioctl,
    .poll = listener_poll,
    .release = listener_release,
};

struct file *guest_listener_file(struct seccomp_filter *f, struct task *t)
{
    struct file *file = file_new_anon("anon_inode:seccomp notify", 0600, O_RDWR, &listener_ops, guest_filter_ref(f), t->ctx.cred);

    if (!file) {
        guest_filter_unref(f);
        return NULL;
    }
    file->no_seek = true;
    return file;
}
