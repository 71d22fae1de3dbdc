/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a call up in the generated table and runs it. */
#include "sentry/syscalls/dispatch.h"

#include <errno.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/syscalls/strace.h"
#include "sentry/syscalls/syscall_table.h"

static int64_t run(struct task *t, uint32_t nr, const uint64_t *args)
{
    syscall_fn fn;

    if (nr >= SYSCALLS_LEN)
        return -ENOSYS;
    fn = syscall_fns[nr];
    if (fn)
        return fn(t, args);
    return syscall_descs[nr].absent_errno ? -(int64_t)syscall_descs[nr].absent_errno : -ENOSYS;
}

int64_t syscall_dispatch(struct task *t, uint64_t nr, const uint64_t args[6])
{
    struct strace_call *call;
    int64_t r;

    /* As on Linux, only the low half of the number counts. */
    if (!unlikely(t->kernel->strace))
        return run(t, (uint32_t)nr, args);
    call = strace_enter(t, (uint32_t)nr, args);
    r = run(t, (uint32_t)nr, args);
    strace_exit(t, call, r);
    return r;
}

bool syscall_local_enter(struct task *t, uint64_t nr, const uint64_t args[6])
{
    if (!t->kernel->strace)
        return false;
    syscall_local_drop(t);
    t->local_trace = strace_enter(t, (uint32_t)nr, args);
    return true;
}

void syscall_local_exit(struct task *t, int64_t result)
{
    struct strace_call *call = t->local_trace;

    t->local_trace = NULL;
    strace_exit(t, call, result);
}

void syscall_local_drop(struct task *t)
{
    strace_drop(t->local_trace);
    t->local_trace = NULL;
}

const char *syscall_name(uint64_t nr)
{
    if (nr >= SYSCALLS_LEN || !syscall_descs[nr].name_offset)
        return NULL;
    return syscall_names + syscall_descs[nr].name_offset;
}
