/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of processes, groups and sessions. */
#include "sentry/kernel/task.h"
#include "syscalls_gen.h"

int64_t sys_getpid(struct task *t)
{
    return tgroup_pid_for(t->group, t);
}

int64_t sys_gettid(struct task *t)
{
    return task_tid_for(t, t);
}

int64_t sys_getppid(struct task *t)
{
    return t->group->parent ? tgroup_pid_for(t->group->parent, t) : 0;
}

int64_t sys_getpgrp(struct task *t)
{
    return session_getpgid(t, 0);
}

int64_t sys_getpgid(struct task *t, int32_t pid)
{
    return session_getpgid(t, pid);
}

int64_t sys_setpgid(struct task *t, int32_t pid, int32_t pgid)
{
    return session_setpgid(t, pid, pgid);
}

int64_t sys_getsid(struct task *t, int32_t pid)
{
    return session_getsid(t, pid);
}

int64_t sys_setsid(struct task *t)
{
    return session_setsid(t);
}
