/* SPDX-License-Identifier: Apache-2.0 */
/* Wrappers of the backend's operations: the one place that every call passes. */
#include "platform/platform.h"

#include <errno.h>
#include <fcntl.h>

#include "platform/base/host.h"

int platform_start(struct platform *p, const struct plat_client *client)
{
    p->client = client;
    return 0;
}

void platform_free(struct platform *p)
{
    if (p)
        p->ops->free(p);
}

int plat_aspace_new(struct platform *p, struct plat_thread **ret_thread)
{
    return p->ops->aspace_new(p, ret_thread);
}

int plat_fork(struct plat_thread *parent, struct plat_thread **ret_child)
{
    int err = parent->aspace->platform->ops->fork(parent, ret_child);
    if (!err)
        (*ret_child)->no_tsc = parent->no_tsc;
    return err;
}

int plat_clone_thread(struct plat_thread *sibling, struct plat_thread **ret_thread)
{
    int err = sibling->aspace->platform->ops->clone_thread(sibling, ret_thread);
    if (!err)
        (*ret_thread)->no_tsc = sibling->no_tsc;
    return err;
}

static void plat_drop_tail(struct plat_thread *t)
{
    if (t->has_tail)
        host_close(t->tail.fd);
    t->has_tail = false;
}

void plat_thread_end(struct plat_thread *t, uint64_t clear_tid)
{
    if (!t)
        return;
    plat_drop_tail(t);
    t->owner = NULL;
    t->aspace->platform->ops->thread_end(t, clear_tid);
}

void plat_aspace_kill(struct plat_aspace *as)
{
    as->platform->ops->aspace_kill(as);
}

void plat_thread_set_owner(struct plat_thread *t, void *owner)
{
    t->owner = owner;
}

void plat_thread_resume(struct plat_thread *t, unsigned flags, uint64_t fpu_addr)
{
    BUG_ON(!t->stopped);
    t->aspace->platform->ops->resume(t, flags, fpu_addr);
    plat_drop_tail(t);
}

void plat_thread_run_local(struct plat_thread *t, unsigned flags, bool tell)
{
    BUG_ON(!t->stopped || t->has_tail);
    t->aspace->platform->ops->run_local(t, flags, tell);
}

void plat_thread_kick(struct plat_thread *t)
{
    if (!t->stopped)
        t->aspace->platform->ops->kick(t);
}

int plat_thread_hostcalls(struct plat_thread *t, struct plat_hostcall *calls, unsigned len)
{
    BUG_ON(!t->stopped);
    return t->aspace->platform->ops->hostcalls(t, calls, len);
}

void plat_thread_tail_hostcall(struct plat_thread *t, const struct plat_hostcall *call)
{
    plat_drop_tail(t);
    t->tail = *call;
    if (call->fd >= 0) {
        t->tail.fd = (int)host_ret(fcntl(call->fd, F_DUPFD_CLOEXEC, 3));
        if (t->tail.fd < 0) {
            t->regs.rax = (uint64_t)-ENFILE;
            return;
        }
    }
    t->has_tail = true;
}

int plat_thread_flush_tail(struct plat_thread *t)
{
    if (!t->has_tail)
        return 0;
    struct plat_hostcall call = t->tail;
    int err = plat_thread_hostcalls(t, &call, 1);
    t->regs.rax = (uint64_t)(err ? -EINTR : call.result);
    plat_drop_tail(t);
    return err;
}

int plat_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size)
{
    return t->aspace->platform->ops->copy_in(t, dst, src, size);
}

int plat_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size)
{
    return t->aspace->platform->ops->copy_out(t, dst, src, size);
}

int plat_thread_sync(struct plat_thread *t)
{
    return t->aspace->platform->ops->sync(t);
}

int plat_thread_fpu(struct plat_thread *t, void *p, uint64_t size, bool write)
{
    return t->aspace->platform->ops->fpu(t, p, size, write);
}

void plat_set_lock_future(struct plat_thread *t, bool on)
{
    t->aspace->platform->ops->set_lock_future(t, on);
}

void plat_set_tsc(struct plat_thread *t, bool on)
{
    t->no_tsc = !on;
    t->aspace->platform->ops->set_tsc(t, on);
}

int plat_set_brk(struct plat_thread *t, uint64_t start, uint64_t limit_bytes)
{
    return t->aspace->platform->ops->set_brk(t, start, limit_bytes);
}

uint64_t plat_thread_cpu_ns(struct plat_thread *t)
{
    return t->aspace->platform->ops->thread_cpu_ns(t);
}

void plat_aspace_set_limit(struct plat_aspace *as, uint64_t bytes)
{
    as->platform->ops->aspace_set_limit(as, bytes);
}

bool plat_thread_waits(const struct plat_thread *t)
{
    return t->aspace->platform->ops->waits(t);
}
