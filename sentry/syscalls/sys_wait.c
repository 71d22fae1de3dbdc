/* SPDX-License-Identifier: Apache-2.0 */
/* wait4, waitid. */
#include "syscalls_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/task_wait.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

enum { P_PIDFD_K = 3 };

/* References behind a spec. */
struct target {
    struct pid *pid;
    struct tgroup *group;
    struct pgrp *pgrp;
};

static void target_free(struct target *target)
{
    pid_unref(target->pid);
    tgroup_unref(target->group);
    pgrp_unref(target->pgrp);
}

static void by_pid(struct task *t, int pid, struct target *target, struct wait_spec *spec)
{
    struct pid *found = pid_peek(t->pidns, pid);

    target->pid = found ? pid_ref(found) : NULL;
    spec->pid = target->pid;
    spec->nothing = !found;
}

/* id 0: the caller's own group. */
static void by_pgid(struct task *t, int id, struct target *target, struct wait_spec *spec)
{
    target->pgrp = id ? pgrp_find(t->pidns, id) : pgrp_ref(t->group->pgrp);
    spec->pgrp = target->pgrp;
    spec->nothing = !target->pgrp;
}

int64_t sys_wait4(struct task *t, int32_t pid, uaddr_t status, int32_t options, uaddr_t usage)
{
    struct wait_spec spec = {.options = options | WEXITED};
    struct target target = {0};
    struct wait_result res;
    int r;

    if (options & ~(WNOHANG | WUNTRACED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL))
        return -EINVAL;
    if (pid == INT_MIN)
        return -ESRCH;
    if (pid > 0)
        by_pid(t, pid, &target, &spec);
    else if (pid != -1)
        by_pgid(t, -pid, &target, &spec);
    r = task_wait(t, &spec, &res);
    target_free(&target);
    if (r || !res.pid)
        return r;
    if (!uaddr_is_null(status) && COPY_OUT(&t->ctx, status, &res.status))
        return -EFAULT;
    if (!uaddr_is_null(usage) && COPY_OUT(&t->ctx, usage, &res.usage))
        return -EFAULT;
    return res.pid;
}

/* Return: 0, −EINVAL, −EBADF. nonblock: the descriptor says not to wait. */
static int find_target(struct task *t, int which, int id, struct target *target, struct wait_spec *spec,
                       bool *ret_nonblock)
{
    struct file *f;

    *ret_nonblock = false;
    switch (which) {
    case P_ALL:
        return 0;
    case P_PID:
        if (id <= 0)
            return -EINVAL;
        by_pid(t, id, target, spec);
        return 0;
    case P_PGID:
        if (id < 0)
            return -EINVAL;
        by_pgid(t, id, target, spec);
        return 0;
    case P_PIDFD_K:
        if (id < 0)
            return -EINVAL;
        f = fdtable_get(t, id);
        if (!f)
            return -EBADF;
        target->group = anon_pidfd_group(f);
        if (target->group)
            tgroup_ref(target->group);
        *ret_nonblock = f->flags & O_NONBLOCK;
        file_unref(f);
        spec->group = target->group;
        return target->group ? 0 : -EBADF;
    default:
        return -EINVAL;
    }
}

int64_t sys_waitid(struct task *t, int32_t which, int32_t id, uaddr_t info_addr, int32_t options, uaddr_t usage)
{
    struct wait_spec spec = {.options = options};
    struct target target = {0};
    struct wait_result res;
    siginfo_t info;
    bool nonblock;
    int r;

    if ((options & ~(WNOHANG | WNOWAIT | WEXITED | WSTOPPED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL)) ||
        !(options & (WEXITED | WSTOPPED | WCONTINUED)))
        return -EINVAL;
    r = find_target(t, which, id, &target, &spec, &nonblock);
    if (r)
        return r;
    if (nonblock)
        spec.options |= WNOHANG;
    r = task_wait(t, &spec, &res);
    target_free(&target);
    if (r)
        return r;
    if (!res.pid && nonblock && !(options & WNOHANG))
        return -EAGAIN;
    if (res.pid && !uaddr_is_null(usage) && COPY_OUT(&t->ctx, usage, &res.usage))
        return -EFAULT;
    if (uaddr_is_null(info_addr))
        return 0;
    memset(&info, 0, sizeof(info));
    if (res.pid) {
        info.si_signo = SIGCHLD;
        info.si_code = res.code;
        info.si_pid = res.pid;
        info.si_uid = res.uid;
        info.si_status = res.value;
    }
    /* Neither the gap after the first three fields nor the clocks are this call's to write. */
    if (copy_out(&t->ctx, info_addr, &info, 3 * sizeof(int)))
        return -EFAULT;
    return copy_out(&t->ctx, uaddr_add(info_addr, offsetof(siginfo_t, si_pid)), &info.si_pid,
                    offsetof(siginfo_t, si_utime) - offsetof(siginfo_t, si_pid));
}
