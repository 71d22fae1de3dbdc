/* SPDX-License-Identifier: Apache-2.0 */
/* The signal mask that ppoll, pselect6 and epoll_pwait put in place while they wait. */
#pragma once

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

/* Installs the mask at addr (NULL: nothing) until sigmask_arg_end or the next signal frame. Return: 0, −EINVAL, −EFAULT. */
static inline MUST_CHECK int sigmask_arg_begin(struct task *t, uaddr_t addr, uint64_t size)
{
    sigset_k set;
    if (uaddr_is_null(addr))
        return 0;
    if (size != sizeof(set))
        return -EINVAL;
    if (COPY_IN(&t->ctx, &set, addr))
        return -EFAULT;
    t->saved_blocked = t->blocked;
    t->restore_blocked = true;
    signal_set_blocked(t, set);
    return 0;
}

/* Puts the old mask back unless a signal ended the wait: then its handler runs under the new mask and the
 * frame restores the old one. */
static inline void sigmask_arg_end(struct task *t, bool interrupted)
{
    if (!t->restore_blocked || interrupted)
        return;
    t->restore_blocked = false;
    signal_set_blocked(t, t->saved_blocked);
}
