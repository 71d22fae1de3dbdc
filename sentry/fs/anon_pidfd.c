/* SPDX-License-Identifier: Apache-2.0 */
/* pidfd: a reference to a process whose end poll reports. */
#include "sentry/fs/anon_pidfd.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

static uint32_t process_poll(struct file *f, struct poll_table *pt)
{
    struct tgroup *g = f->priv;
    poll_wait(pt, &g->pidfd_wait);
    if (g->reaped)
        return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
    return g->zombie ? EPOLLIN | EPOLLRDNORM : 0;
}

static void process_release(struct file *f)
{
    tgroup_unref(f->priv);
}

static void process_fdinfo(struct file *f, struct buf *out)
{
    struct tgroup *g = f->priv;
    int pid = g->reaped ? -1 : tgroup_pid_in(g, g->container->pidns);
    buf_printf(out, "Pid:\t%d\nNSpid:\t%d\n", pid, pid);
}

static const struct file_ops process_ops = {
    .poll = process_poll,
    .release = process_release,
    .show_fdinfo = process_fdinfo,
};

struct tgroup *anon_pidfd_group(const struct file *f)
{
    return f->ops == &process_ops ? f->priv : NULL;
}

struct file *anon_pidfd_new(struct tgroup *g, uint32_t flags, const struct cred *cred)
{
    struct file *f = file_new_anon("anon_inode:[pidfd]", 0600, O_RDWR | (flags & O_NONBLOCK), &process_ops, g,
                                   cred);
    if (f) {
        tgroup_ref(g);
        f->no_seek = true;
    }
    return f;
}
