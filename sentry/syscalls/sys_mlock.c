/* SPDX-License-Identifier: Apache-2.0 */
/* mlock and its kin. The host pins the pages; what a guest may pin is decided here.
 *
 * The host has a limit of its own (RLIMIT_MEMLOCK of whoever made the container). What a guest is entitled to beyond it is
 * brought in and not pinned. */
#include "syscalls_gen.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/memlock.h"

enum { CAP_IPC_LOCK_ = 14, MLOCK_ONFAULT_ = 1, MCL_ONFAULT_ = 4, MADV_POPULATE_READ_ = 22 };

int memlock_check(struct task *t, uint64_t start, uint64_t size, bool *ret_host_allows)
{
    uint64_t limit = t->group->rlimits[RLIMIT_MEMLOCK].rlim_cur;
    bool capable = cred_has_cap(t->ctx.cred, CAP_IPC_LOCK_);
    struct rlimit host = {.rlim_cur = 0};
    if (!capable && limit == 0)
        return -EPERM;
    if (getrlimit(RLIMIT_MEMLOCK, &host) < 0)
        host.rlim_cur = 0;
    *ret_host_allows = host.rlim_cur == RLIM_INFINITY;
    if (*ret_host_allows && (capable || limit == RLIM_INFINITY))
        return 0;
    uint64_t all = 0, inside = 0;
    int err = mm_locked_size(t->mm, start, start + size, &all, &inside);
    if (err)
        return err;
    uint64_t sum = all - inside + size;
    if (sum < size || (!capable && sum > limit))
        return -EAGAIN;
    *ret_host_allows = sum <= host.rlim_cur;
    return 0;
}

/* Runs one call in the guest process. Return: its result. */
static int64_t lock_hostcall(struct task *t, uint32_t nr, uint64_t start, uint64_t size, uint64_t flags)
{
    struct plat_hostcall call = {.nr = nr, .fd = -1, .args = {start, size, flags}};
    return plat_thread_hostcalls(t->ctx.thread, &call, 1) ? -EINTR : call.result;
}

/* All of the range has to be mapped; the host brings it in, but does not keep it. */
static int64_t lock_unpinned(struct task *t, uint64_t start, uint64_t size, uint32_t flags)
{
    int64_t ret = flags & MLOCK_ONFAULT_ ? lock_hostcall(t, SYS_msync, start, size, MS_ASYNC)
                                         : lock_hostcall(t, SYS_madvise, start, size, MADV_POPULATE_READ_);
    if (ret == -ENOMEM || ret == -EFAULT)
        return -ENOMEM;
    return ret == -EINTR ? ret : 0; /* a host without the advice */
}

static int64_t lock_range(struct task *t, uaddr_t addr, uint64_t length, uint32_t flags)
{
    uint64_t start = addr.v & PAGE_MASK, size, end;
    bool pin;
    if (__builtin_add_overflow(length, addr.v & ~PAGE_MASK, &size) || size > UINT64_MAX - PAGE_SIZE)
        size = UINT64_MAX & PAGE_MASK;
    size = ALIGN_UP(size, PAGE_SIZE);
    int err = memlock_check(t, start, size, &pin);
    if (err)
        return err == -EAGAIN ? -ENOMEM : err;
    if (__builtin_add_overflow(start, size, &end))
        return -EINVAL;
    if (size == 0)
        return 0;
    if (end > mm_task_size(t->mm))
        return -ENOMEM;
    if (!pin)
        return lock_unpinned(t, start, size, flags);
    return lock_hostcall(t, flags ? SYS_mlock2 : SYS_mlock, start, size, flags);
}

int64_t sys_mlock(struct task *t, uaddr_t addr, uint64_t length)
{
    return lock_range(t, addr, length, 0);
}

int64_t sys_mlock2(struct task *t, uaddr_t addr, uint64_t length, int32_t flags)
{
    return flags & ~MLOCK_ONFAULT_ ? -EINVAL : lock_range(t, addr, length, (uint32_t)flags);
}

int64_t sys_munlock(struct task *t, uaddr_t addr, uint64_t length)
{
    uint64_t start = addr.v & PAGE_MASK, size, end;
    if (__builtin_add_overflow(length, addr.v & ~PAGE_MASK, &size) || size > UINT64_MAX - PAGE_SIZE ||
        __builtin_add_overflow(start, ALIGN_UP(size, PAGE_SIZE), &end))
        return -EINVAL;
    if (end == start)
        return 0;
    return end > mm_task_size(t->mm) ? -ENOMEM : lock_hostcall(t, SYS_munlock, start, end - start, 0);
}

/* Makes the call for every mapping, whatever it says of single ones. */
static int64_t lock_all(struct task *t, uint32_t nr, uint64_t flags)
{
    struct mm_range *ranges;
    unsigned len;
    int64_t ret = mm_list_maps(t->mm, &ranges, &len);
    for (unsigned i = 0; ret == 0 && i < len; i++)
        if (lock_hostcall(t, nr, ranges[i].start, ranges[i].end - ranges[i].start, flags) == -EINTR)
            ret = -EINTR;
    if (ret == 0 || ret == -EINTR)
        mem_free(ranges);
    return ret;
}

static int64_t lock_everything(struct task *t, int32_t flags)
{
    struct mm_usage usage;
    int err = mm_get_usage(&t->ctx, t->mm, &usage);
    if (err)
        return err;
    uint64_t limit = t->group->rlimits[RLIMIT_MEMLOCK].rlim_cur;
    if (usage.size > limit && !cred_has_cap(t->ctx.cred, CAP_IPC_LOCK_))
        return -ENOMEM;
    return lock_all(t, SYS_mlock2, flags & MCL_ONFAULT_ ? MLOCK_ONFAULT_ : 0);
}

int64_t sys_mlockall(struct task *t, int32_t flags)
{
    if (flags == 0 || (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT_)) || flags == MCL_ONFAULT_)
        return -EINVAL;
    if (!cred_has_cap(t->ctx.cred, CAP_IPC_LOCK_) && t->group->rlimits[RLIMIT_MEMLOCK].rlim_cur == 0)
        return -EPERM;
    int64_t ret = flags & MCL_CURRENT ? lock_everything(t, flags) : 0;
    if (ret == 0) {
        t->mm->lock_future = flags & MCL_FUTURE;
        plat_set_lock_future(t->ctx.thread, t->mm->lock_future);
    }
    return ret;
}

int64_t sys_munlockall(struct task *t)
{
    t->mm->lock_future = false;
    plat_set_lock_future(t->ctx.thread, false);
    return lock_all(t, SYS_munlock, 0);
}
