/* SPDX-License-Identifier: Apache-2.0 */
/* New tasks: fork, vfork, clone, and the loan of a host thread to a vfork child. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct pid_wish;
struct task;

struct clone_args_k {
    uint64_t flags;      /* CLONE_*, without the exit signal */
    int exit_signal;     /* 0 … 64 */
    uint64_t stack;      /* the child's stack pointer; 0: as the parent's */
    uint64_t tls;        /* with CLONE_SETTLS */
    uaddr_t parent_tid, child_tid;
    const struct pid_wish *wish; /* NULL: any numbers */
};

/* Makes a child of t as a copy that neither runs nor is visible to others. Parks. Return: 0 with a task to be handed to
 * task_clone_start or task_clone_cancel, without a park in between; −EINVAL, −EAGAIN, −ENOMEM, −EPERM, −ERESTARTNOINTR. */
MUST_CHECK int task_clone(struct task *t, const struct clone_args_k *args, struct task **ret_child);
/* Makes the child visible, lets it run, and consumes it; for CLONE_VFORK waits until it has gone its own way. Return: its number
 * for t. */
int64_t task_clone_start(struct task *t, const struct clone_args_k *args, OWNS struct task *child);
/* The child is not to be after all. */
void task_clone_cancel(OWNS struct task *child);

/* The borrowed host thread goes back to its owner. Nothing to do when there is no loan. */
void task_vfork_give_back(struct task *child);
/* t goes while its host thread is lent: it stays with the borrower for good. */
void task_vfork_orphan(struct task *t);
/* t has exec'd or exited: a parent that waits in vfork goes on. */
void task_vfork_release(struct task *t);
