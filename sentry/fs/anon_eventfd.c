/* SPDX-License-Identifier: Apache-2.0 */
/* eventfd: a 64-bit counter that reads take and writes add to. */
#include "sentry/fs/anon_eventfd.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

struct event_counter {
    uint64_t count; /* (k) UINT64_MAX: too many signals */
    struct waitq wait;
    bool semaphore; /* (i) */
};

static ssize_t counter_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct event_counter *e = f->priv;
    if (u->left < sizeof(uint64_t))
        return -EINVAL;
    if (e->count == 0) {
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        int r = WAIT_EVENT(u->ctx, &e->wait, e->count > 0);
        if (r)
            return r;
    }
    uint64_t value = e->semaphore ? 1 : e->count;
    ssize_t n = uio_put(u, &value, sizeof(value));
    if (n < (ssize_t)sizeof(value))
        return -EFAULT;
    e->count -= value;
    waitq_wake(&e->wait, EPOLLOUT);
    return n;
}

static ssize_t counter_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct event_counter *e = f->priv;
    uint64_t value = 0;
    if (u->left < sizeof(value))
        return -EINVAL;
    if (uio_get(u, &value, sizeof(value)) < (ssize_t)sizeof(value))
        return -EFAULT;
    if (value == UINT64_MAX)
        return -EINVAL;
    if (value >= UINT64_MAX - e->count) {
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        int r = WAIT_EVENT(u->ctx, &e->wait, value < UINT64_MAX - e->count);
        if (r)
            return r;
    }
    e->count += value;
    waitq_wake(&e->wait, EPOLLIN);
    return sizeof(value);
}

static uint32_t counter_poll(struct file *f, struct poll_table *pt)
{
    struct event_counter *e = f->priv;
    poll_wait(pt, &e->wait);
    return (e->count > 0 ? EPOLLIN : 0U) | (e->count == UINT64_MAX ? EPOLLERR : 0U) |
           (e->count < UINT64_MAX - 1 ? EPOLLOUT : 0U);
}

static void counter_release(struct file *f)
{
    mem_free(f->priv);
}

static void counter_fdinfo(struct file *f, struct buf *out)
{
    struct event_counter *e = f->priv;
    buf_printf(out, "eventfd-count: %16llx\neventfd-id: %llu\neventfd-semaphore: %d\n",
               (unsigned long long)e->count, (unsigned long long)f->inode->ino, e->semaphore);
}

static const struct file_ops counter_ops = {
    .read = counter_read,
    .write = counter_write,
    .poll = counter_poll,
    .release = counter_release,
    .show_fdinfo = counter_fdinfo,
};

struct file *anon_eventfd_new(uint32_t initial, bool semaphore, uint32_t flags, const struct cred *cred)
{
    struct event_counter *e = NEW(struct event_counter);
    if (!e)
        return NULL;
    e->count = initial;
    e->semaphore = semaphore;
    waitq_init(&e->wait);
    struct file *f = file_new_anon("anon_inode:[eventfd]", 0600, O_RDWR | (flags & O_NONBLOCK),
                                   &counter_ops, e, cred);
    if (!f) {
        mem_free(e);
        return NULL;
    }
    f->no_seek = true;
    return f;
}

bool anon_eventfd_is(const struct file *f)
{
    return f->ops == &counter_ops;
}

void anon_eventfd_signal(struct file *f)
{
    struct event_counter *e = f->priv;
    if (e->count < UINT64_MAX)
        e->count++;
    waitq_wake(&e->wait, EPOLLIN | (e->count == UINT64_MAX ? EPOLLERR : 0U));
}
