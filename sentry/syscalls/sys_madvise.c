/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about memory that the stub does not serve itself, and advice about another process's. */
#include "syscalls_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"
#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/filemap.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

/* The range of one piece of advice. Return: 0, −EINVAL, −ENOMEM (beyond the address space). */
static int advice_range(const struct mm *mm, uint64_t addr, uint64_t length, uint64_t *ret_size)
{
    uint64_t size = ALIGN_UP(length, PAGE_SIZE), end;
    if ((addr & ~PAGE_MASK) || size < length || __builtin_add_overflow(addr, size, &end))
        return -EINVAL;
    if (end > mm_task_size(mm))
        return -ENOMEM;
    *ret_size = size;
    return 0;
}

/* Whether the range is all mapped: asked of the host by a call that changes nothing. */
static int64_t advice_hint(struct task *t, uint64_t addr, uint64_t size)
{
    struct plat_hostcall call = {.nr = SYS_msync, .fd = -1, .args = {addr, size, MS_ASYNC}};
    plat_thread_tail_hostcall(t->ctx.thread, &call);
    return 0;
}

/* ---- MADV_REMOVE ---- */

/* Punches [start, end) of a mapping out of its file. The guest's processes may not do so themselves: that would reach every
 * file that the host has mapped for them, the stub's own among them. */
static int remove_from_file(struct task *t, const struct mm_vma *v, uint64_t start, uint64_t end)
{
    struct file *f;
    if (v->locked || !v->path)
        return -EINVAL;
    if (!v->shared || !v->may_write)
        return -EACCES;
    int err = file_open_inode(&t->ctx, v->path, O_RDWR | FILE_OPEN_QUIET, &f);
    if (err)
        return err;
    err = file_fallocate(&t->ctx, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (int64_t)(v->offset + (start - v->start)),
                         (int64_t)(end - start));
    file_unref(f);
    return err;
}

/* As Linux: a hole does not keep what is behind it from being done, and is told at the end. */
static int64_t advice_remove(struct task *t, uint64_t addr, uint64_t size)
{
    uint64_t end = addr + size;
    struct mm_vma *vmas;
    unsigned len;
    int err = 0, ret = mm_list_vmas(t->mm, &vmas, &len);
    if (ret)
        return ret;
    struct filemaps *files = filemaps_ref(t->mm->filemaps); /* which the paths are in */
    for (unsigned i = 0; i < len && addr < end && !err; i++) {
        const struct mm_vma *v = &vmas[i];
        if (v->end <= addr)
            continue;
        if (v->start > addr)
            ret = -ENOMEM;
        uint64_t from = MAX(addr, v->start), to = MIN(end, v->end);
        if (from < to)
            err = remove_from_file(t, v, from, to);
        addr = v->end;
    }
    if (addr < end)
        ret = -ENOMEM;
    filemaps_unref(files);
    mem_free(vmas);
    return err ? err : ret;
}

int64_t sys_madvise(struct task *t, uaddr_t addr, uint64_t length, int32_t advice)
{
    uint64_t size;
    if (advice != MADV_COLD && advice != MADV_PAGEOUT && advice != MADV_REMOVE)
        return -EINVAL; /* among others MADV_MERGEABLE: built without KSM */
    int ret = advice_range(t->mm, addr.v, length, &size);
    if (ret || !size)
        return ret;
    if (advice == MADV_REMOVE)
        return advice_remove(t, addr.v, size);
    /* Only hints about reclaim; acting on them would touch page cache that other sandboxes share. */
    return advice_hint(t, addr.v, size);
}

/* ---- other processes ---- */

/* Whether all of [start, end) is mapped. */
static bool covered(const struct mm_range *r, unsigned len, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < len && start < end; i++) {
        if (r[i].end > start && r[i].start > start)
            return false;
        if (r[i].end > start)
            start = r[i].end;
    }
    return start >= end;
}

/* All that may be advised here are hints that change nothing to be seen, so what is left to do is to find the ranges. */
static int64_t advise_ranges(struct mm *mm, const struct uio *ranges)
{
    struct mm_range *maps;
    unsigned maps_len;
    int64_t done = 0;
    int ret = mm_list_maps(mm, &maps, &maps_len);
    if (ret)
        return ret;
    for (unsigned i = 0; i < ranges->len && !ret; i++) {
        uint64_t size, base = ranges->segs[i].base;
        ret = advice_range(mm, base, ranges->segs[i].size, &size);
        if (!ret && size && !covered(maps, maps_len, base, base + size))
            ret = -ENOMEM;
        if (!ret)
            done += (int64_t)ranges->segs[i].size;
    }
    mem_free(maps);
    return done ? done : ret;
}

/* The process behind a descriptor. Return: 0 with the file (which keeps it) referenced, −EBADF, −ESRCH. */
static int pidfd_get(struct task *t, int fd, struct file **ret_file, struct tgroup **ret_group)
{
    struct file *f = fdtable_get(t, fd);
    struct tgroup *g = f ? anon_pidfd_group(f) : NULL;
    int ret = !g ? -EBADF : !g->leader || !g->leader->pid ? -ESRCH : 0;
    if (ret) {
        file_unref(f);
        return ret;
    }
    *ret_file = f;
    *ret_group = g;
    return 0;
}

static bool remote_advice(int32_t advice)
{
    return advice == MADV_COLD || advice == MADV_PAGEOUT || advice == MADV_WILLNEED;
}

int64_t sys_process_madvise(struct task *t, int32_t pidfd, uaddr_t iov, uint64_t vlen, int32_t advice, uint32_t flags)
{
    struct uio ranges;
    struct file *f;
    struct tgroup *g;
    if (flags)
        return -EINVAL;
    int64_t ret = uio_init_iovec(&ranges, &t->ctx, iov, vlen);
    if (ret)
        return ret;
    ret = pidfd_get(t, pidfd, &f, &g);
    if (ret) {
        uio_free(&ranges);
        return ret;
    }
    struct mm *mm = g->leader->mm;
    if (!remote_advice(advice))
        ret = -EINVAL;
    else if (!mm)
        ret = -ESRCH;
    else if (mm != t->mm && ptrace_may_access(t, g->leader, PTRACE_READ_FS))
        ret = -EACCES;
    else if (mm != t->mm && !cred_has_cap(t->ctx.cred, CAP_SYS_NICE))
        ret = -EPERM;
    if (!ret) {
        mm_ref(mm);
        ret = advise_ranges(mm, &ranges);
        mm_unref(mm);
    }
    file_unref(f);
    uio_free(&ranges);
    return ret;
}

int64_t sys_process_mrelease(struct task *t, int32_t pidfd, uint32_t flags)
{
    struct file *f;
    struct tgroup *g;
    if (flags)
        return -EINVAL;
    int64_t ret = pidfd_get(t, pidfd, &f, &g);
    if (ret)
        return ret;
    struct task *first = tgroup_first(g);
    if (!first || !first->mm)
        ret = -ESRCH; /* there is nothing left of it */
    else if (!g->group_exiting || task_mm_is_shared(first))
        ret = -EINVAL;
    else
        plat_aspace_kill(first->mm->aspace); /* the host takes all of it back, whatever the threads are at */
    file_unref(f);
    return ret;
}
