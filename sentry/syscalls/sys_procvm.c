/* SPDX-License-Identifier: Apache-2.0 */
/* process_vm_readv and process_vm_writev: memory of another process of the same user. */
#include "syscalls_gen.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

enum { PROCVM_CHUNK = 64 * 1024 };

/* The remote side of one call: segments walked one after the other. */
struct procvm_remote {
    struct plat_thread *thread;
    struct uio segs; /* a cursor over remote addresses; nothing is copied through it */
};

static uint64_t procvm_here(struct uio *u, uint64_t *ret_size)
{
    while (u->index < u->len && u->offset == u->segs[u->index].size) {
        u->index++;
        u->offset = 0;
    }
    if (u->index == u->len) {
        *ret_size = 0;
        return 0;
    }
    *ret_size = u->segs[u->index].size - u->offset;
    return u->segs[u->index].base + u->offset;
}

static int64_t procvm_copy(struct uio *local, struct procvm_remote *remote, bool write)
{
    CLEANUP_FREE uint8_t *chunk = mem_zalloc(PROCVM_CHUNK);
    int64_t total = 0;
    if (!chunk)
        return -ENOMEM;
    while (local->left) {
        uint64_t size, addr = procvm_here(&remote->segs, &size);
        if (!size)
            break;
        /* Page by page at the edges, so that what is there is copied up to the fault. */
        size = MIN(MIN(size, local->left), (uint64_t)PROCVM_CHUNK);
        size = MIN(size, PAGE_SIZE - (addr & ~PAGE_MASK));
        ssize_t n;
        int err;
        if (write) {
            n = uio_get(local, chunk, size);
            err = n > 0 ? plat_copy_out(remote->thread, addr, chunk, (uint64_t)n) : 0;
        } else {
            err = plat_copy_in(remote->thread, chunk, addr, size);
            n = err ? 0 : uio_put(local, chunk, size);
        }
        if (err || n <= 0)
            return total ? total : -EFAULT;
        total += n;
        uio_advance(&remote->segs, (uint64_t)n);
    }
    return total;
}

static int64_t procvm(struct task *t, int32_t pid, uaddr_t lvec, uint64_t liovcnt, uaddr_t rvec, uint64_t riovcnt,
                      uint64_t flags, bool write)
{
    struct uio local = {0};
    struct procvm_remote remote = {0};
    if (flags)
        return -EINVAL;
    int64_t ret = uio_init_iovec(&local, &t->ctx, lvec, liovcnt);
    if (ret)
        return ret;
    ret = uio_init_iovec(&remote.segs, &t->ctx, rvec, riovcnt);
    if (!ret) {
        struct task *target = task_find(t->pidns, pid);
        if (!target || !target->mm || !target->thread)
            ret = -ESRCH;
        else if (target->mm != t->mm && ptrace_may_access(t, target, PTRACE_ATTACH_REAL))
            ret = -EPERM;
        else {
            remote.thread = target->thread;
            ret = procvm_copy(&local, &remote, write);
        }
        task_unref(target);
    }
    uio_free(&remote.segs);
    uio_free(&local);
    return ret;
}

int64_t sys_process_vm_readv(struct task *t, int32_t pid, uaddr_t lvec, uint64_t liovcnt, uaddr_t rvec,
                             uint64_t riovcnt, uint64_t flags)
{
    return procvm(t, pid, lvec, liovcnt, rvec, riovcnt, flags, false);
}

int64_t sys_process_vm_writev(struct task *t, int32_t pid, uaddr_t lvec, uint64_t liovcnt, uaddr_t rvec,
                              uint64_t riovcnt, uint64_t flags)
{
    return procvm(t, pid, lvec, liovcnt, rvec, riovcnt, flags, true);
}
