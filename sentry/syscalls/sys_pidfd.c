/* SPDX-License-Identifier: Apache-2.0 */
/* pidfd_open, pidfd_getfd, kcmp. */
#include "syscalls_gen.h"

#include <errno.h>
#include <fcntl.h>

#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

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
    else if (ptrace_may_access(t, g->leader, PTRACE_ATTACH_REAL))
        r = -EPERM;
    else if (!(got = fdtable_get(g->leader, fd)))
        r = -EBADF;
    file_unref(f);
    return r ? r : fdtable_add(t, got, 0, true);
}

enum { KCMP_FILE_K, KCMP_VM_K, KCMP_FILES_K, KCMP_FS_K, KCMP_SIGHAND_K, KCMP_IO_K, KCMP_SYSVSEM_K };

/* An order of kernel objects that does not give their addresses away. */
static int64_t compare(const void *a, const void *b)
{
    static uint64_t factor; /* (k) */
    uint64_t x, y;

    if (!factor) {
        host_random(&factor, sizeof(factor));
        factor |= 1;
    }
    x = (uint64_t)(uintptr_t)a * factor;
    y = (uint64_t)(uintptr_t)b * factor;
    return x < y ? 1 : x > y ? 2 : 0;
}

static int64_t compare_files(struct task *a, struct task *b, uint64_t fd_a, uint64_t fd_b)
{
    struct file *x, *y;
    int64_t r;

    if (!a->files || !b->files)
        return -EBADF;
    x = fdtable_get_any(a, (int)fd_a);
    y = fdtable_get_any(b, (int)fd_b);
    r = x && y ? compare(x, y) : -EBADF;
    file_unref(x);
    file_unref(y);
    return r;
}

static int64_t compare_tasks(struct task *a, struct task *b, int32_t type, uint64_t idx1, uint64_t idx2)
{
    switch (type) {
    case KCMP_FILE_K:
        return compare_files(a, b, idx1, idx2);
    case KCMP_VM_K:
        return compare(a->mm, b->mm);
    case KCMP_FILES_K:
        return compare(a->files, b->files);
    case KCMP_FS_K:
        return compare(a->fs, b->fs);
    case KCMP_SIGHAND_K:
        return compare(a->group->sighand, b->group->sighand);
    case KCMP_IO_K:
    case KCMP_SYSVSEM_K:
        return 0; /* nobody has one */
    default:
        return -EINVAL;
    }
}

int64_t sys_kcmp(struct task *t, int32_t pid1, int32_t pid2, int32_t type, uint64_t idx1, uint64_t idx2)
{
    struct task *a = task_find(t->pidns, pid1), *b = task_find(t->pidns, pid2);
    int64_t r = -ESRCH;

    if (a && b)
        r = ptrace_may_access(t, a, PTRACE_READ_REAL) || ptrace_may_access(t, b, PTRACE_READ_REAL)
                ? -EPERM
                : compare_tasks(a, b, type, idx1, idx2);
    task_unref(a);
    task_unref(b);
    return r;
}
