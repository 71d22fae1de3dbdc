/* SPDX-License-Identifier: Apache-2.0 */
/* io_setup and its kin. Reads, writes and syncs are made by the submitting call, which may wait for them, as Linux's does for
 * whatever it has no asynchronous way for; polls go on in the background. */
#include "syscalls_gen.h"

#include <linux/aio_abi.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/abi/abi_time.h"
#include "sentry/core/cred.h"
#include "sentry/fs/aio.h"
#include "sentry/fs/anon_eventfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/rw_limit.h"
#include "sentry/syscalls/sigmask_arg.h"
#include "sentry/vfs/file.h"

_Static_assert(sizeof(struct iocb) == 64 && sizeof(struct io_event) == sizeof(struct aio_event), "guest layout");

enum { RING_SIZE = 4096, SUBMIT_KEY = 0 };

/* ---- contexts ---- */

static int unmap_ring(struct task *t, uint64_t at)
{
    struct plat_hostcall call = {.nr = SYS_munmap, .fd = -1, .args = {at, RING_SIZE}};
    return plat_thread_hostcalls(t->thread, &call, 1);
}

int64_t sys_io_setup(struct task *t, uint32_t nr, uaddr_t ctx)
{
    uint64_t id;
    if (COPY_IN(&t->ctx, &id, ctx))
        return -EFAULT;
    int r = id ? -EINVAL : aio_check_nr(nr);
    if (r)
        return r;
    struct plat_hostcall call = {.nr = SYS_mmap, .fd = -1, .args = {0, RING_SIZE, PROT_READ | PROT_WRITE,
                                                                   MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0}};
    if (plat_thread_hostcalls(t->thread, &call, 1))
        return -EINTR;
    if (call.result < 0)
        return call.result;
    id = (uint64_t)call.result;
    call = (struct plat_hostcall){.nr = SYS_madvise, .fd = -1, .args = {id, RING_SIZE, MADV_DONTFORK}};
    if (plat_thread_hostcalls(t->thread, &call, 1))
        return -EINTR;
    r = call.result < 0 ? (int)call.result : aio_ctx_new(t->mm, id, nr);
    if (!r && COPY_OUT(&t->ctx, ctx, &id)) {
        struct aio_ctx *a = aio_ctx_find(t->mm, id);
        (void)aio_ctx_end(a);
        aio_ctx_unref(a);
        r = -EFAULT;
    }
    if (r && unmap_ring(t, id))
        return -EINTR;
    return r;
}

int64_t sys_io_destroy(struct task *t, uint64_t ctx)
{
    struct aio_ctx *a = aio_ctx_find(t->mm, ctx);
    if (!a)
        return -EINVAL;
    int r = aio_ctx_end(a) ? 0 : -EINVAL;
    if (!r)
        r = aio_ctx_drain(&t->ctx, a);
    if (!r)
        r = unmap_ring(t, ctx) ? -EINTR : 0;
    aio_ctx_unref(a);
    return r;
}

/* ---- requests ---- */

/* Return: 0, −EPERM, −EINVAL. Source: ioprio_set(2). */
static int check_ioprio(const struct task *t, uint32_t value)
{
    uint32_t level = value & 7;
    switch (value >> IOPRIO_CLASS_SHIFT) {
    case IOPRIO_CLASS_NONE:
        return level ? -EINVAL : 0;
    case IOPRIO_CLASS_RT:
        return cred_has_cap(t->ctx.cred, CAP_SYS_ADMIN) || cred_has_cap(t->ctx.cred, CAP_SYS_NICE) ? 0 : -EPERM;
    case IOPRIO_CLASS_BE:
    case IOPRIO_CLASS_IDLE:
        return 0;
    default:
        return -EINVAL;
    }
}

static int rw_buffers(struct task *t, const struct iocb *cb, bool vector, struct uio *u)
{
    if (vector)
        return uio_init_iovec(u, &t->ctx, UADDR(cb->aio_buf), cb->aio_nbytes);
    if (cb->aio_buf > mm_task_size(t->mm) || cb->aio_nbytes > mm_task_size(t->mm) - cb->aio_buf)
        return -EFAULT;
    uio_init_user(u, &t->ctx, UADDR(cb->aio_buf), cb->aio_nbytes);
    return 0;
}

/* Errors before the transfer are the call's, those of the transfer are the event's. */
static int submit_rw(struct task *t, const struct iocb *cb, struct aio_req *req, bool write, bool vector)
{
    struct file *f = aio_req_file(req);
    int r = cb->aio_flags & IOCB_FLAG_IOPRIO ? check_ioprio(t, (uint16_t)cb->aio_reqprio) : 0;
    if (r)
        return r;
    if (cb->aio_rw_flags & ~RW_FLAGS_KNOWN)
        return -EOPNOTSUPP;
    if (!(write ? file_writable(f) : file_readable(f)))
        return -EBADF;
    if (!(write ? (void *)f->ops->write : (void *)f->ops->read))
        return -EINVAL;
    struct uio u = {0};
    r = rw_buffers(t, cb, vector, &u);
    if (r)
        return r;
    if (cb->aio_offset < 0) {
        uio_free(&u);
        return -EINVAL;
    }
    int64_t n = rw_file(t, f, &u, f->no_seek ? -1 : cb->aio_offset, cb->aio_rw_flags, write);
    uio_free(&u);
    if (n <= -ERESTARTSYS)
        n = -EINTR;
    aio_req_complete(req, n);
    return 0;
}

static int submit_sync(struct task *t, const struct iocb *cb, struct aio_req *req, bool data_only)
{
    struct file *f = aio_req_file(req);
    if (cb->aio_buf || cb->aio_offset || cb->aio_nbytes || cb->aio_rw_flags || !f->ops->fsync)
        return -EINVAL;
    aio_req_complete(req, file_fsync(&t->ctx, f, data_only));
    return 0;
}

static int submit_poll(const struct iocb *cb, struct aio_req *req)
{
    if ((uint16_t)cb->aio_buf != cb->aio_buf || cb->aio_offset || cb->aio_nbytes || cb->aio_rw_flags)
        return -EINVAL;
    return aio_req_poll(req, (uint32_t)cb->aio_buf);
}

static int submit_request(struct task *t, const struct iocb *cb, struct aio_req *req)
{
    switch (cb->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
        return submit_rw(t, cb, req, false, false);
    case IOCB_CMD_PWRITE:
        return submit_rw(t, cb, req, true, false);
    case IOCB_CMD_PREADV:
        return submit_rw(t, cb, req, false, true);
    case IOCB_CMD_PWRITEV:
        return submit_rw(t, cb, req, true, true);
    case IOCB_CMD_FSYNC:
        return submit_sync(t, cb, req, false);
    case IOCB_CMD_FDSYNC:
        return submit_sync(t, cb, req, true);
    case IOCB_CMD_POLL:
        return submit_poll(cb, req);
    default: /* IOCB_CMD_NOOP as well */
        return -EINVAL;
    }
}

static int submit_one(struct task *t, struct aio_ctx *a, uint64_t at)
{
    struct iocb cb;
    uint32_t key = SUBMIT_KEY;
    struct aio_req *req;
    if (COPY_IN(&t->ctx, &cb, UADDR(at)))
        return -EFAULT;
    if (cb.aio_reserved2 || (int64_t)cb.aio_nbytes < 0)
        return -EINVAL;
    struct file *f = fdtable_get(t, (int)cb.aio_fildes), *resfd = NULL;
    int r = f ? 0 : -EBADF;
    if (!r && (cb.aio_flags & IOCB_FLAG_RESFD)) {
        resfd = fdtable_get(t, (int)cb.aio_resfd);
        r = !resfd ? -EBADF : anon_eventfd_is(resfd) ? 0 : -EINVAL;
    }
    if (!r && COPY_OUT(&t->ctx, UADDR(at + offsetof(struct iocb, aio_key)), &key))
        r = -EFAULT;
    if (r) {
        file_unref(f);
        file_unref(resfd);
        return r;
    }
    r = aio_req_new(a, f, resfd, at, cb.aio_data, &req);
    if (r)
        return r;
    r = submit_request(t, &cb, req);
    if (r)
        aio_req_drop(req);
    return r;
}

int64_t sys_io_submit(struct task *t, uint64_t ctx, int64_t nr, uaddr_t iocbs)
{
    if (nr < 0)
        return -EINVAL;
    struct aio_ctx *a = aio_ctx_find(t->mm, ctx);
    if (!a)
        return -EINVAL;
    nr = MIN(nr, (int64_t)aio_ctx_capacity(a));
    int64_t done = 0;
    int r = 0;
    while (!r && done < nr) {
        uint64_t at;
        r = COPY_IN(&t->ctx, &at, UADDR(iocbs.v + (uint64_t)done * sizeof(at)));
        if (!r)
            r = submit_one(t, a, at);
        if (!r)
            done++;
    }
    aio_ctx_unref(a);
    return done ? done : r;
}

int64_t sys_io_cancel(struct task *t, uint64_t ctx, uaddr_t iocb, uaddr_t result)
{
    uint32_t key;
    if (COPY_IN(&t->ctx, &key, UADDR(iocb.v + offsetof(struct iocb, aio_key))))
        return -EFAULT;
    if (key != SUBMIT_KEY)
        return -EINVAL;
    struct aio_ctx *a = aio_ctx_find(t->mm, ctx);
    if (!a)
        return -EINVAL;
    int r = aio_cancel(a, iocb.v);
    aio_ctx_unref(a);
    return r;
}

/* ---- events ---- */

/* Only times in the past are odd here: they are over, not refused. */
static int events_deadline(struct task *t, uaddr_t timeout, uint64_t *ret_deadline_ns)
{
    struct timespec ts;
    *ret_deadline_ns = WAIT_FOREVER;
    if (uaddr_is_null(timeout))
        return 0;
    if (COPY_IN(&t->ctx, &ts, timeout))
        return -EFAULT;
    if (ts.tv_sec < 0 || ts.tv_nsec < 0 || (ts.tv_sec == 0 && ts.tv_nsec == 0))
        *ret_deadline_ns = 0;
    else
        *ret_deadline_ns = timekeeper_deadline(t, CLOCK_MONOTONIC, false, timespec_to_ns(&ts));
    return 0;
}

static int64_t get_events(struct task *t, uint64_t ctx, int64_t min_nr, int64_t nr, uaddr_t events, uint64_t deadline_ns)
{
    struct aio_ctx *a = aio_ctx_find(t->mm, ctx);
    if (!a)
        return -EINVAL;
    int64_t n = min_nr >= 0 && min_nr <= nr ? aio_get_events(&t->ctx, a, min_nr, nr, events, deadline_ns) : -EINVAL;
    aio_ctx_unref(a);
    return n;
}

int64_t sys_io_getevents(struct task *t, uint64_t ctx, int64_t min_nr, int64_t nr, uaddr_t events, uaddr_t timeout)
{
    uint64_t deadline_ns;
    int r = events_deadline(t, timeout, &deadline_ns);
    if (r)
        return r;
    int64_t n = get_events(t, ctx, min_nr, nr, events, deadline_ns);
    return n == -ERESTARTSYS ? -EINTR : n;
}

int64_t sys_io_pgetevents(struct task *t, uint64_t ctx, int64_t min_nr, int64_t nr, uaddr_t events, uaddr_t timeout,
                          uaddr_t sigmask)
{
    struct {
        uint64_t set, size;
    } arg = {0, 0};
    uint64_t deadline_ns;
    int r = events_deadline(t, timeout, &deadline_ns);
    if (!r && !uaddr_is_null(sigmask))
        r = COPY_IN(&t->ctx, &arg, sigmask);
    if (!r)
        r = sigmask_arg_begin(t, UADDR(arg.set), arg.size);
    if (r)
        return r;
    int64_t n = get_events(t, ctx, min_nr, nr, events, deadline_ns);
    sigmask_arg_end(t, n == -ERESTARTSYS);
    return n == -ERESTARTSYS ? -ERESTARTNOHAND : n;
}
