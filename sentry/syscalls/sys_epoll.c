/* SPDX-License-Identifier: Apache-2.0 */
/* epoll_create, epoll_ctl, epoll_wait and their kin. */
#include "syscalls_gen.h"

#include <limits.h>
#include <sys/epoll.h>

#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/sigmask_arg.h"
#include "sentry/vfs/eventpoll.h"
#include "sentry/vfs/file.h"

#define NS_PER_S 1000000000ULL
#define EVENTS_MAX (INT_MAX / (int)sizeof(struct epoll_event))

int64_t sys_epoll_create1(struct task *t, int32_t flags)
{
    if (flags & ~EPOLL_CLOEXEC)
        return -EINVAL;
    struct file *f = eventpoll_new(t->ctx.cred);
    if (!f)
        return -ENOMEM;
    return fdtable_add(t, f, 0, flags & EPOLL_CLOEXEC);
}

int64_t sys_epoll_create(struct task *t, int32_t size)
{
    return size <= 0 ? -EINVAL : sys_epoll_create1(t, 0);
}

int64_t sys_epoll_ctl(struct task *t, int32_t epfd, int32_t op, int32_t fd, uaddr_t event)
{
    struct epoll_event ev = {0};
    if (op != EPOLL_CTL_DEL && COPY_IN(&t->ctx, &ev, event))
        return -EFAULT;
    struct file *epf = fdtable_get(t, epfd);
    struct file *target = epf ? fdtable_get(t, fd) : NULL;
    int r = target ? eventpoll_ctl(&t->ctx, epf, op, fd, target, &ev) : -EBADF;
    file_unref(target);
    file_unref(epf);
    return r;
}

static int64_t wait_common(struct task *t, int32_t epfd, uaddr_t events, int32_t max, uint64_t deadline)
{
    if (max <= 0 || max > EVENTS_MAX)
        return -EINVAL;
    struct file *epf = fdtable_get(t, epfd);
    if (!epf)
        return -EBADF;
    int r = eventpoll_wait(&t->ctx, epf, events, max, deadline);
    file_unref(epf);
    return r;
}

static uint64_t deadline_ms(int32_t ms)
{
    if (ms < 0)
        return WAIT_FOREVER;
    return ms ? host_monotonic_ns() + (uint64_t)ms * 1000000 : 0;
}

static int64_t pwait_common(struct task *t, int32_t epfd, uaddr_t events, int32_t max, uint64_t deadline,
                            uaddr_t sigmask, uint64_t sigsetsize)
{
    int r = sigmask_arg_begin(t, sigmask, sigsetsize);
    if (r)
        return r;
    int64_t n = wait_common(t, epfd, events, max, deadline);
    sigmask_arg_end(t, n == -EINTR);
    return n;
}

int64_t sys_epoll_wait(struct task *t, int32_t epfd, uaddr_t events, int32_t maxevents, int32_t timeout)
{
    return wait_common(t, epfd, events, maxevents, deadline_ms(timeout));
}

int64_t sys_epoll_pwait(struct task *t, int32_t epfd, uaddr_t events, int32_t maxevents, int32_t timeout,
                        uaddr_t sigmask, uint64_t sigsetsize)
{
    return pwait_common(t, epfd, events, maxevents, deadline_ms(timeout), sigmask, sigsetsize);
}

int64_t sys_epoll_pwait2(struct task *t, int32_t epfd, uaddr_t events, int32_t maxevents, uaddr_t timeout,
                         uaddr_t sigmask, uint64_t sigsetsize)
{
    uint64_t deadline = WAIT_FOREVER;
    if (!uaddr_is_null(timeout)) {
        struct timespec ts;
        if (COPY_IN(&t->ctx, &ts, timeout))
            return -EFAULT;
        if (ts.tv_sec < 0 || ts.tv_nsec < 0 || (uint64_t)ts.tv_nsec >= NS_PER_S)
            return -EINVAL;
        uint64_t now = host_monotonic_ns();
        if (ts.tv_sec == 0 && ts.tv_nsec == 0)
            deadline = 0;
        else if ((uint64_t)ts.tv_sec < (WAIT_FOREVER - now) / NS_PER_S - 1)
            deadline = now + (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    }
    return pwait_common(t, epfd, events, maxevents, deadline, sigmask, sigsetsize);
}
