/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the line of a traced call. */
#include "sentry/syscalls/strace.h"

#include <errno.h>
#include <inttypes.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "sentry/kernel/task.h"
#include "sentry/syscalls/dispatch.h"
#include "sentry/syscalls/syscall_table.h"

struct strace_call {
    uint32_t nr;
    int tid;
    uint64_t args[6];
    /* Each argument as decoded before the call; those that only the call fills in stay empty. */
    struct buf before[6];
};

/* Calls that end the thread or may wait for long: their line also appears when they begin. */
static bool announced(uint32_t nr)
{
    switch (nr) {
    case SYS_NR_execve:
    case SYS_NR_execveat:
    case SYS_NR_exit:
    case SYS_NR_exit_group:
    case SYS_NR_wait4:
    case SYS_NR_waitid:
    case SYS_NR_futex:
    case SYS_NR_poll:
    case SYS_NR_ppoll:
    case SYS_NR_select:
    case SYS_NR_pselect6:
    case SYS_NR_epoll_wait:
    case SYS_NR_epoll_pwait:
    case SYS_NR_epoll_pwait2:
    case SYS_NR_nanosleep:
    case SYS_NR_clock_nanosleep:
    case SYS_NR_pause:
    case SYS_NR_rt_sigsuspend:
    case SYS_NR_rt_sigtimedwait:
    case SYS_NR_accept:
    case SYS_NR_accept4:
    case SYS_NR_connect:
    case SYS_NR_flock:
    case SYS_NR_vfork:
        return true;
    default:
        return false;
    }
}

static const struct syscall_desc *desc_of(uint32_t nr)
{
    static const struct syscall_desc none;

    return nr < SYSCALLS_LEN ? &syscall_descs[nr] : &none;
}

static void head(const struct strace_call *call, const struct task *t, struct buf *line)
{
    const char *name = syscall_name(call->nr);

    buf_printf(line, "[%d %s] ", call->tid, t->comm);
    if (name)
        buf_puts(line, name);
    else
        buf_printf(line, "syscall_%" PRIu32, call->nr);
    buf_putc(line, '(');
}

static bool only_filled_in(const struct syscall_arg *arg)
{
    return arg->kind == SYSCALL_OUT || arg->kind == SYSCALL_OUT_BYTES || arg->kind == SYSCALL_OUT_IOVEC;
}

struct strace_call *strace_enter(struct task *t, uint32_t nr, const uint64_t *args)
{
    const struct syscall_desc *desc = desc_of(nr);
    struct strace_call *call = NEW(struct strace_call);

    if (!call)
        return NULL;
    call->nr = nr;
    call->tid = task_tid_in(t, t->pidns);
    for (unsigned i = 0; i < desc->args_len; i++) {
        call->args[i] = args[i];
        if (!only_filled_in(&desc->args[i]))
            strace_arg(t, &call->before[i], &desc->args[i], args, i, false, 0);
    }
    if (announced(nr)) {
        CLEANUP_BUF struct buf line = {0};

        head(call, t, &line);
        for (unsigned i = 0; i < desc->args_len; i++)
            buf_printf(&line, "%s%s", i ? ", " : "",
                       call->before[i].data ? call->before[i].data : "…");
        buf_puts(&line, ") …");
        log_debug("%s", line.data ? line.data : "");
    }
    return call;
}

void strace_drop(struct strace_call *call)
{
    if (!call)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(call->before); i++)
        buf_free(&call->before[i]);
    mem_free(call);
}

void strace_exit(struct task *t, struct strace_call *call, int64_t result)
{
    const struct syscall_desc *desc;
    CLEANUP_BUF struct buf line = {0};

    if (!call)
        return;
    desc = desc_of(call->nr);
    if (call->nr == SYS_NR_exit || call->nr == SYS_NR_exit_group) {
        /* Announced, and never to return. */
        strace_drop(call);
        return;
    }
    head(call, t, &line);
    for (unsigned i = 0; i < desc->args_len; i++) {
        const struct syscall_arg *arg = &desc->args[i];

        if (i)
            buf_puts(&line, ", ");
        if (call->before[i].data)
            buf_puts(&line, call->before[i].data);
        if (only_filled_in(arg)) {
            strace_arg(t, &line, arg, call->args, i, true, result);
        } else if ((arg->kind == SYSCALL_INOUT || arg->kind == SYSCALL_INOUT_BYTES) && call->args[i] &&
                   result >= 0) {
            buf_puts(&line, " => ");
            strace_arg(t, &line, arg, call->args, i, true, result);
        }
    }
    buf_puts(&line, ") = ");
    strace_result(&line, result);
    log_debug("%s", line.data ? line.data : "");
    strace_drop(call);
}
