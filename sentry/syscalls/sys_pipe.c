/* SPDX-License-Identifier: Apache-2.0 */
/* pipe and pipe2. */
#include "syscalls_gen.h"

#include <fcntl.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/fs/pipe.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

#define NOTIFICATION_PIPE O_EXCL /* linux/watch_queue.h; built without watch queues */

int64_t sys_pipe2(struct task *t, uaddr_t fds, int32_t flags)
{
    struct file *r, *w;
    if (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT | NOTIFICATION_PIPE))
        return -EINVAL;
    if (flags & NOTIFICATION_PIPE)
        return -ENOPKG;
    int err = pipe_new(t->ctx.cred, (uint32_t)flags, &r, &w);
    if (err)
        return err;
    int32_t pair[2];
    pair[0] = fdtable_reserve(t, 0);
    if (pair[0] < 0) {
        err = pair[0];
        goto out_files;
    }
    pair[1] = fdtable_reserve(t, 0);
    if (pair[1] < 0) {
        err = pair[1];
        goto out_first;
    }
    err = COPY_OUT(&t->ctx, fds, &pair);
    if (err)
        goto out_both;
    fdtable_install(t, pair[0], r, flags & O_CLOEXEC);
    fdtable_install(t, pair[1], w, flags & O_CLOEXEC);
    return 0;
out_both:
    fdtable_unreserve(t, pair[1]);
out_first:
    fdtable_unreserve(t, pair[0]);
out_files:
    file_unref(r);
    file_unref(w);
    return err;
}

int64_t sys_pipe(struct task *t, uaddr_t fds)
{
    return sys_pipe2(t, fds, 0);
}
