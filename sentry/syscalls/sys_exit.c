/* SPDX-License-Identifier: Apache-2.0 */
/* exit, exit_group. The run loop does the rest when the handler is back. */
#include "sentry/kernel/task.h"
#include "syscalls_gen.h"

static int wait_status(int32_t status)
{
    return (status & 0xff) << 8;
}

int64_t sys_exit(struct task *t, int32_t status)
{
    t->exit_code = wait_status(status);
    t->exiting = true;
    signal_recalc(t);
    return 0;
}

int64_t sys_exit_group(struct task *t, int32_t status)
{
    t->exit_code = wait_status(status);
    tgroup_exit(t->group, wait_status(status));
    return 0;
}
