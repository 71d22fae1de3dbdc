/* SPDX-License-Identifier: Apache-2.0 */
/* Memory calls that the stub does not answer itself: file maps, and what needs judgement. */
#include "syscalls_gen.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "platform/platform.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/memlock.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"

/* Flags that mean the same to the host for a map of one of its files. */
#define MMAP_PASS                                                                                  \
    (MAP_TYPE | MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_NORESERVE | MAP_POPULATE | MAP_LOCKED | MAP_NONBLOCK | MAP_32BIT | MAP_STACK)

static bool range_ok(const struct task *t, uint64_t addr, uint64_t size)
{
    return addr <= mm_task_size(t->mm) && size <= mm_task_size(t->mm) - addr;
}

/* Access that the mapping may be given later by mprotect decides how the host's file must be open. */
static uint32_t mmap_most_prot(const struct file *f, uint32_t prot, bool shared)
{
    return shared && (f->flags & 3) == 2 ? prot | PROT_WRITE : prot;
}

static int mmap_file(struct task *t, struct file *f, struct plat_hostcall *call, uint64_t offset)
{
    uint32_t prot = (uint32_t)call->args[2];
    uint64_t type = call->args[3] & MAP_TYPE;
    bool shared = type == MAP_SHARED || type == MAP_SHARED_VALIDATE;
    struct file_map map = {.host_fd = -1};
    if ((prot & PROT_EXEC) && file_readable(f) && f->path.mount && (f->path.mount->flags & MS_NOEXEC))
        return -EPERM;
    int err = file_mmap(&t->ctx, f, mmap_most_prot(f, prot, shared), shared, &map);
    if (err)
        return err;
    if (map.anonymous) {
        call->args[3] |= MAP_ANONYMOUS;
        call->args[5] = 0;
    } else {
        call->fd = map.host_fd;
        call->args[5] = map.offset + offset;
        err = mm_note_file(t->mm, f, map.host_fd);
        if (err)
            return err;
    }
    plat_thread_tail_hostcall(t->ctx.thread, call);
    return 0;
}

/* MAP_LOCKED, or mlockall(MCL_FUTURE). What the host would not pin is only brought in. */
static int mmap_lock(struct task *t, uint64_t size, int32_t *inout_flags)
{
    bool pin;
    bool asked = *inout_flags & MAP_LOCKED;
    if (!asked && !t->mm->lock_future)
        return 0;
    int err = memlock_check(t, 0, size, &pin);
    if (err)
        return err == -EPERM && !asked ? -EAGAIN : err;
    *inout_flags &= ~MAP_LOCKED;
    *inout_flags |= pin ? MAP_LOCKED : MAP_POPULATE;
    return 0;
}

/* There is no pool of huge pages, but wrong arguments are found before a page is missed. */
static int mmap_huge(uint64_t length, int32_t flags)
{
    uint32_t type = (uint32_t)flags & MAP_TYPE, size_log = (uint32_t)flags >> MAP_HUGE_SHIFT & MAP_HUGE_MASK;
    if (length == 0 || (size_log && size_log != 21 && size_log != 30))
        return -EINVAL;
    return type == MAP_SHARED || type == MAP_PRIVATE || type == MAP_SHARED_VALIDATE ? -ENOMEM : -EINVAL;
}

/* The stub makes anonymous maps; here come those that it has declined. */
static int64_t mmap_anon(struct task *t, uint64_t addr, uint64_t length, int32_t prot, int32_t flags)
{
    if (flags & MAP_HUGETLB)
        return mmap_huge(length, flags);
    uint64_t size = ALIGN_UP(length, PAGE_SIZE);
    if (length == 0)
        return -EINVAL;
    if (size < length || size > mm_task_size(t->mm))
        return -ENOMEM;
    if (!range_ok(t, addr, size)) {
        if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
            return -ENOMEM;
        addr = 0;
    }
    int err = mmap_lock(t, size, &flags);
    if (err)
        return err;
    struct plat_hostcall call = {
        .nr = SYS_mmap, .fd = -1,
        .args = {addr, length, (uint64_t)prot, (uint64_t)(uint32_t)flags, (uint64_t)-1, 0},
    };
    plat_thread_tail_hostcall(t->ctx.thread, &call);
    return 0;
}

int64_t sys_mmap(struct task *t, uaddr_t addr, uint64_t length, int32_t prot, int32_t flags, int32_t fd,
                 uint64_t offset)
{
    uint64_t type = (uint64_t)flags & MAP_TYPE;
    if (offset & ~PAGE_MASK)
        return -EINVAL;
    if (flags & MAP_ANONYMOUS)
        return mmap_anon(t, addr.v, length, prot, flags);
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    int64_t ret = -EINVAL;
    uint64_t size = ALIGN_UP(length, PAGE_SIZE);
    if (length == 0 || (type != MAP_SHARED && type != MAP_PRIVATE && type != MAP_SHARED_VALIDATE))
        goto out;
    if ((flags & MAP_HUGETLB) && !(flags & MAP_ANONYMOUS))
        goto out;
    if (type == MAP_SHARED_VALIDATE && ((uint64_t)flags & ~(uint64_t)(MMAP_PASS | MAP_SHARED_VALIDATE |
                                                                      MAP_GROWSDOWN | MAP_DENYWRITE | MAP_EXECUTABLE))) {
        ret = -EOPNOTSUPP;
        goto out;
    }
    ret = -ENOMEM;
    if (size < length || size > mm_task_size(t->mm))
        goto out;
    uint64_t end;
    if (__builtin_add_overflow(offset, size, &end) || end > INT64_MAX) {
        ret = -EOVERFLOW;
        goto out;
    }
    uint64_t hint = addr.v;
    if (!range_ok(t, hint, size)) {
        if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE))
            goto out;
        hint = 0;
    }
    ret = mmap_lock(t, size, &flags);
    if (ret)
        goto out;
    struct plat_hostcall call = {
        .nr = SYS_mmap,
        .fd = -1,
        .args = {hint, length, (uint64_t)(prot & (PROT_READ | PROT_WRITE | PROT_EXEC)), (uint64_t)flags & MMAP_PASS,
                 (uint64_t)-1, offset},
    };
    ret = mmap_file(t, f, &call, offset);
out:
    file_unref(f);
    return ret;
}

/* The following come here only when the stub has declined them. */

int64_t sys_brk(struct task *t, uaddr_t addr)
{
    return (int64_t)t->mm->brk_start;
}

int64_t sys_mprotect(struct task *t, uaddr_t addr, uint64_t length, int32_t prot)
{
    return -EINVAL;
}

int64_t sys_munmap(struct task *t, uaddr_t addr, uint64_t length)
{
    return -EINVAL;
}

int64_t sys_mremap(struct task *t, uaddr_t addr, uint64_t old_size, uint64_t new_size, int32_t flags,
                   uaddr_t new_addr)
{
    return -EINVAL;
}

int64_t sys_msync(struct task *t, uaddr_t addr, uint64_t length, int32_t flags)
{
    return -EINVAL;
}

int64_t sys_mincore(struct task *t, uaddr_t addr, uint64_t length, uaddr_t vec)
{
    return -EINVAL;
}

int64_t sys_remap_file_pages(struct task *t, uaddr_t addr, uint64_t size, int32_t prot, uint64_t pgoff, int32_t flags)
{
    return -EINVAL;
}

int64_t sys_mseal(struct task *t, uaddr_t addr, uint64_t length, uint64_t flags)
{
    return -EINVAL;
}

int64_t sys_membarrier(struct task *t, int32_t cmd, uint32_t flags, int32_t cpu_id)
{
    return -EINVAL;
}
