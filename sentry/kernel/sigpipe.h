/* SPDX-License-Identifier: Apache-2.0 */
/* SIGPIPE for writers whose readers are gone: pipes and sockets. */
#pragma once

#include "sentry/core/cred.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"

/* Sends SIGPIPE to the task behind ctx; nothing for the sentry's own contexts. */
static inline void sigpipe_raise(struct ctx *ctx)
{
    struct task *t = ctx_task_or_null(ctx);
    if (!t)
        return;
    siginfo_t info;
    siginfo_user(&info, SIGPIPE, SI_USER, tgroup_pid_for(t->group, t), ctx->cred->uid);
    (void)signal_send_task(t, &info);
}
