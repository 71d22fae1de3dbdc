/* SPDX-License-Identifier: Apache-2.0 */
/* eventfd, timerfd and signalfd. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/fs/anon_eventfd.h"
#include "sentry/fs/anon_signalfd.h"
#include "sentry/fs/anon_timerfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

int64_t sys_eventfd2(struct task *t, uint32_t count, int32_t flags)
{
    if (flags & ~(EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK))
        return -EINVAL;
    struct file *f = anon_eventfd_new(count, flags & EFD_SEMAPHORE, (uint32_t)flags, t->ctx.cred);
    if (!f)
        return -ENOMEM;
    return fdtable_add(t, f, 0, flags & EFD_CLOEXEC);
}

int64_t sys_eventfd(struct task *t, uint32_t count)
{
    return sys_eventfd2(t, count, 0);
}

/* ---- timerfd ---- */

int64_t sys_timerfd_create(struct task *t, int32_t clockid, int32_t flags)
{
    if (flags & ~(TFD_CLOEXEC | TFD_NONBLOCK))
        return -EINVAL;
    switch (clockid) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME:
        break;
    case CLOCK_REALTIME_ALARM:
    case CLOCK_BOOTTIME_ALARM:
        if (!cred_has_cap(t->ctx.cred, CAP_WAKE_ALARM))
            return -EPERM;
        break;
    default:
        return -EINVAL;
    }
    struct file *f = anon_timerfd_new(clockid, (uint32_t)flags, t->ctx.cred);
    if (!f)
        return -ENOMEM;
    return fdtable_add(t, f, 0, flags & TFD_CLOEXEC);
}

/* Return: 0 with a referenced timerfd, −EBADF, −EINVAL. */
static int timerfd_get(struct task *t, int fd, struct file **ret_file)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    if (!anon_timerfd_is(f)) {
        file_unref(f);
        return -EINVAL;
    }
    *ret_file = f;
    return 0;
}

static bool spec_valid(const struct timespec *ts)
{
    return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < 1000000000;
}

int64_t sys_timerfd_settime(struct task *t, int32_t fd, int32_t flags, uaddr_t value, uaddr_t ovalue)
{
    struct itimerspec new, old;
    struct file *f;
    if (COPY_IN(&t->ctx, &new, value))
        return -EFAULT;
    if ((flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET)) || !spec_valid(&new.it_value) ||
        !spec_valid(&new.it_interval))
        return -EINVAL;
    int r = timerfd_get(t, fd, &f);
    if (r)
        return r;
    r = anon_timerfd_settime(f, flags, timens_offset(t->ns->time, anon_timerfd_clock(f)), &new, &old);
    file_unref(f);
    if (!r && !uaddr_is_null(ovalue))
        r = COPY_OUT(&t->ctx, ovalue, &old);
    return r;
}

int64_t sys_timerfd_gettime(struct task *t, int32_t fd, uaddr_t value)
{
    struct itimerspec v;
    struct file *f;
    int r = timerfd_get(t, fd, &f);
    if (r)
        return r;
    anon_timerfd_gettime(f, &v);
    file_unref(f);
    return COPY_OUT(&t->ctx, value, &v);
}

/* ---- signalfd ---- */

int64_t sys_signalfd4(struct task *t, int32_t fd, uaddr_t mask, uint64_t sizemask, int32_t flags)
{
    sigset_k set;
    if (sizemask != sizeof(set))
        return -EINVAL;
    if (COPY_IN(&t->ctx, &set, mask))
        return -EFAULT;
    if (flags & ~(SFD_CLOEXEC | SFD_NONBLOCK))
        return -EINVAL;
    if (fd != -1) {
        struct file *old = fdtable_get(t, fd);
        if (!old)
            return -EBADF;
        bool is = anon_signalfd_is(old);
        if (is) {
            anon_signalfd_set_mask(old, set);
            waitq_wake_all(&t->signal_wait); /* what is pending may match now */
        }
        file_unref(old);
        return is ? fd : -EINVAL;
    }
    struct file *f = anon_signalfd_new(set, (uint32_t)flags, t->ctx.cred);
    if (!f)
        return -ENOMEM;
    return fdtable_add(t, f, 0, flags & SFD_CLOEXEC);
}

int64_t sys_signalfd(struct task *t, int32_t fd, uaddr_t mask, uint64_t sizemask)
{
    return sys_signalfd4(t, fd, mask, sizemask, 0);
}
