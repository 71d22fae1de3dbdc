/* SPDX-License-Identifier: Apache-2.0 */
/* pidfd_open, pidfd_getfd. */
#include "syscalls_gen.h"

#include <errno.h>
#include <fcntl.h>

#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

enum { CAP_SYS_PTRACE_ = 19 };

int64_t sys_pidfd_open(struct task *t, int32_t pid, uint32_t flags)
{
    struct tgroup *g;
    struct task *thread;
    struct file *f;

    if ((flags & ~(uint32_t)O_NONBLOCK) || pid <= 0)
        return -EINVAL;
    g = tgroup_find(t->pidns, pid);
    if (!g) {
        thread = task_find(t->pidns, pid);
        task_unref(thread);
        return thread ? -ENOENT : -ESRCH;
    }
    f = anon_pidfd_new(g, flags, t->ctx.cred);
    tgroup_unref(g);
    return f ? fdtable_add(t, f, 0, true) : -ENOMEM;
}

/* As for ptrace(2): same user throughout and readable memory, or the capability. */
static bool may_take(const struct task *t, const struct task *target)
{
    const struct cred *c = t->ctx.cred, *o = target->ctx.cred;

    if (t->group == target->group || cred_has_cap(c, CAP_SYS_PTRACE_))
        return true;
    return c->uid == o->euid && c->uid == o->suid && c->uid == o->uid && c->gid == o->egid &&
           c->gid == o->sgid && c->gid == o->gid && !(o->cap_permitted & ~c->cap_permitted);
}

int64_t sys_pidfd_getfd(struct task *t, int32_t pidfd, int32_t fd, uint32_t flags)
{
    struct file *f, *got = NULL;
    struct tgroup *g;
    int64_t r = 0;

    if (flags)
        return -EINVAL;
    f = fdtable_get(t, pidfd);
    g = f ? anon_pidfd_group(f) : NULL;
    if (!g)
        r = -EBADF;
    else if (!g->leader || !g->leader->files)
        r = -ESRCH;
    else if (!may_take(t, g->leader))
        r = -EPERM;
    else if (!(got = fdtable_get(g->leader, fd)))
        r = -EBADF;
    file_unref(f);
    return r ? r : fdtable_add(t, got, 0, true);
}
