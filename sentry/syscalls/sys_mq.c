/* SPDX-License-Identifier: Apache-2.0 */
/* mq_open, mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/ipc/posix_mq.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/socket.h"
#include "sentry/vfs/file.h"

#define NS_PER_S 1000000000ULL

static int name_in(struct task *t, uaddr_t addr, char *name)
{
    ssize_t n = copy_in_str(&t->ctx, name, addr, MQ_NAME_MAX + 1);
    return n < 0 ? (int)n : 0;
}

int64_t sys_mq_open(struct task *t, uaddr_t name, int32_t flags, int32_t mode, uaddr_t attr)
{
    char text[MQ_NAME_MAX + 1];
    struct mq_attr a;
    struct file *f;
    int r = name_in(t, name, text);
    if (!r && !uaddr_is_null(attr) && (flags & O_CREAT))
        r = COPY_IN(&t->ctx, &a, attr);
    else
        attr = UADDR_NULL;
    if (!r)
        r = posix_mq_open_file(&t->ctx, text, (uint32_t)flags, (uint32_t)mode, uaddr_is_null(attr) ? NULL : &a, &f);
    return r ? r : fdtable_add(t, f, 0, flags & O_CLOEXEC);
}

int64_t sys_mq_unlink(struct task *t, uaddr_t name)
{
    char text[MQ_NAME_MAX + 1];
    int r = name_in(t, name, text);
    return r ? r : posix_mq_unlink_name(&t->ctx, text);
}

static int queue_get(struct task *t, int fd, struct file **ret_file)
{
    struct file *f = fdtable_get(t, fd);
    if (!f || !posix_mq_is(f)) {
        file_unref(f);
        return -EBADF;
    }
    *ret_file = f;
    return 0;
}

/* An absolute time of CLOCK_REALTIME as a monotonic deadline. */
static int deadline_in(struct task *t, uaddr_t timeout, uint64_t *ret_deadline)
{
    struct timespec ts;
    *ret_deadline = WAIT_FOREVER;
    if (uaddr_is_null(timeout))
        return 0;
    if (COPY_IN(&t->ctx, &ts, timeout))
        return -EFAULT;
    if (ts.tv_sec < 0 || ts.tv_nsec < 0 || (uint64_t)ts.tv_nsec >= NS_PER_S)
        return -EINVAL;
    if ((uint64_t)ts.tv_sec >= INT64_MAX / NS_PER_S)
        return 0;
    uint64_t at = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec, now = host_realtime_ns();
    *ret_deadline = host_monotonic_ns() + (at > now ? at - now : 0);
    return 0;
}

int64_t sys_mq_timedsend(struct task *t, int32_t mqd, uaddr_t msg, uint64_t len, uint32_t prio, uaddr_t timeout)
{
    uint64_t deadline;
    struct file *f;
    int r = deadline_in(t, timeout, &deadline);
    if (!r && prio >= MQ_PRIO_MAX_K)
        r = -EINVAL;
    if (!r)
        r = queue_get(t, mqd, &f);
    if (r)
        return r;
    int64_t n = posix_mq_send(&t->ctx, f, msg, len, prio, deadline);
    file_unref(f);
    return n;
}

int64_t sys_mq_timedreceive(struct task *t, int32_t mqd, uaddr_t msg, uint64_t len, uaddr_t prio, uaddr_t timeout)
{
    uint64_t deadline;
    struct file *f;
    int r = deadline_in(t, timeout, &deadline);
    if (!r)
        r = queue_get(t, mqd, &f);
    if (r)
        return r;
    int64_t n = posix_mq_receive(&t->ctx, f, msg, len, prio, deadline);
    file_unref(f);
    return n;
}

/* For SIGEV_THREAD the signal number is a netlink socket and the value points to the cookie to send there. */
static int thread_in(struct task *t, const struct sigevent *ev, uint8_t *cookie, struct file **ret_file)
{
    if (copy_in(&t->ctx, cookie, UADDR((uintptr_t)ev->sigev_value.sival_ptr), MQ_COOKIE_SIZE))
        return -EFAULT;
    struct file *f = fdtable_get(t, ev->sigev_signo);
    if (!f)
        return -EBADF;
    const struct socket *s = socket_of(f);
    if (!s || s->family != AF_NETLINK) {
        file_unref(f);
        return s ? -EINVAL : -ENOTSOCK;
    }
    *ret_file = f;
    return 0;
}

int64_t sys_mq_notify(struct task *t, int32_t mqd, uaddr_t event)
{
    struct sigevent ev = {0};
    uint8_t cookie[MQ_COOKIE_SIZE] = {0};
    struct file *f, *thread = NULL;
    bool on = !uaddr_is_null(event);
    if (on) {
        if (COPY_IN(&t->ctx, &ev, event))
            return -EFAULT;
        if (ev.sigev_notify != SIGEV_NONE && ev.sigev_notify != SIGEV_SIGNAL && ev.sigev_notify != SIGEV_THREAD)
            return -EINVAL;
        if (ev.sigev_notify == SIGEV_SIGNAL && (ev.sigev_signo < 0 || ev.sigev_signo > NSIG_K)) /* 0: registers, and says nothing */
            return -EINVAL;
    }
    int r = on && ev.sigev_notify == SIGEV_THREAD ? thread_in(t, &ev, cookie, &thread) : 0;
    if (!r)
        r = queue_get(t, mqd, &f);
    if (!r) {
        r = posix_mq_set_notify(&t->ctx, f, on ? &ev : NULL, thread, cookie);
        file_unref(f);
    }
    file_unref(thread);
    return r;
}

int64_t sys_mq_getsetattr(struct task *t, int32_t mqd, uaddr_t newattr, uaddr_t oldattr)
{
    struct mq_attr new = {0}, old;
    struct file *f;
    bool set = !uaddr_is_null(newattr);
    if (set) {
        if (COPY_IN(&t->ctx, &new, newattr))
            return -EFAULT;
        if (new.mq_flags & ~O_NONBLOCK)
            return -EINVAL;
    }
    int r = queue_get(t, mqd, &f);
    if (r)
        return r;
    posix_mq_get_attr(f, &old);
    if (!uaddr_is_null(oldattr))
        r = COPY_OUT(&t->ctx, oldattr, &old);
    if (!r && set)
        posix_mq_set_flags(f, new.mq_flags);
    file_unref(f);
    return r;
}
