/* SPDX-License-Identifier: Apache-2.0 */
/* signalfd: whoever reads takes his own pending signals; the file only holds the mask. */
#include "sentry/fs/anon_signalfd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

struct sig_mask {
    sigset_k mask; /* (k) */
};

static void info_to_record(const siginfo_t *info, struct signalfd_siginfo *r)
{
    memset(r, 0, sizeof(*r));
    r->ssi_signo = (uint32_t)info->si_signo;
    r->ssi_errno = info->si_errno;
    r->ssi_code = info->si_code;
    switch (info->si_code) {
    case SI_TIMER:
        r->ssi_tid = (uint32_t)info->si_timerid;
        r->ssi_overrun = (uint32_t)info->si_overrun;
        r->ssi_ptr = (uint64_t)(uintptr_t)info->si_ptr;
        r->ssi_int = info->si_int;
        return;
    case SI_USER:
    case SI_TKILL:
        r->ssi_pid = (uint32_t)info->si_pid;
        r->ssi_uid = info->si_uid;
        return;
    default:
        break;
    }
    if (info->si_code < 0) { /* SI_QUEUE, SI_MESGQ, SI_ASYNCIO */
        r->ssi_pid = (uint32_t)info->si_pid;
        r->ssi_uid = info->si_uid;
        r->ssi_ptr = (uint64_t)(uintptr_t)info->si_ptr;
        r->ssi_int = info->si_int;
        return;
    }
    switch (info->si_signo) {
    case SIGCHLD:
        r->ssi_pid = (uint32_t)info->si_pid;
        r->ssi_uid = info->si_uid;
        r->ssi_status = info->si_status;
        r->ssi_utime = (uint64_t)info->si_utime;
        r->ssi_stime = (uint64_t)info->si_stime;
        break;
    case SIGPOLL:
        r->ssi_band = (uint32_t)info->si_band;
        r->ssi_fd = info->si_fd;
        break;
    case SIGILL:
    case SIGFPE:
    case SIGSEGV:
    case SIGBUS:
    case SIGTRAP:
        r->ssi_addr = (uint64_t)(uintptr_t)info->si_addr;
        break;
    case SIGSYS:
        r->ssi_call_addr = (uint64_t)(uintptr_t)info->si_call_addr;
        r->ssi_syscall = info->si_syscall;
        r->ssi_arch = info->si_arch;
        break;
    default:
        r->ssi_pid = (uint32_t)info->si_pid;
        r->ssi_uid = info->si_uid;
        break;
    }
}

static ssize_t mask_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct sig_mask *m = f->priv;
    if (u->left < sizeof(struct signalfd_siginfo))
        return -EINVAL;
    struct task *t = ctx_task_or_null(u->ctx);
    if (!t)
        return -EINVAL;
    ssize_t done = 0;
    while (u->left >= sizeof(struct signalfd_siginfo)) {
        siginfo_t info;
        int signo = signal_dequeue(t, m->mask, &info);
        if (!signo) {
            if (done)
                break;
            if (f->flags & O_NONBLOCK)
                return -EAGAIN;
            int r = WAIT_EVENT(&t->ctx, &t->signal_wait, signal_pending_set(t) & m->mask);
            if (r)
                return r;
            continue;
        }
        struct signalfd_siginfo record;
        info_to_record(&info, &record);
        ssize_t n = uio_put(u, &record, sizeof(record));
        if (n < (ssize_t)sizeof(record))
            return done ? done : -EFAULT;
        done += n;
    }
    return done;
}

static uint32_t mask_poll(struct file *f, struct poll_table *pt)
{
    struct sig_mask *m = f->priv;
    struct task *t = ctx_task_or_null(pt ? pt->ctx : NULL);
    if (!t)
        return 0;
    poll_wait(pt, &t->signal_wait);
    return signal_pending_set(t) & m->mask ? EPOLLIN : 0;
}

static void mask_release(struct file *f)
{
    mem_free(f->priv);
}

static void mask_fdinfo(struct file *f, struct buf *out)
{
    struct sig_mask *m = f->priv;
    buf_printf(out, "sigmask:\t%016llx\n", (unsigned long long)m->mask);
}

static const struct file_ops mask_ops = {
    .read = mask_read,
    .poll = mask_poll,
    .release = mask_release,
    .show_fdinfo = mask_fdinfo,
};

bool anon_signalfd_is(const struct file *f)
{
    return f->ops == &mask_ops;
}

void anon_signalfd_set_mask(struct file *f, uint64_t mask)
{
    struct sig_mask *m = f->priv;
    m->mask = mask & ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
}

struct file *anon_signalfd_new(uint64_t mask, uint32_t flags, const struct cred *cred)
{
    struct sig_mask *m = NEW(struct sig_mask);
    if (!m)
        return NULL;
    struct file *f = file_new_anon("anon_inode:[signalfd]", 0600, O_RDWR | (flags & O_NONBLOCK), &mask_ops,
                                   m, cred);
    if (!f) {
        mem_free(m);
        return NULL;
    }
    f->no_seek = true;
    anon_signalfd_set_mask(f, mask);
    return f;
}
