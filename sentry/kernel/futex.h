/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes: what host futexes, on which guest threads wait by themselves, do not cover: priority-inheritance
 * locks, whose words hold guest thread numbers, and what a thread owes others when it goes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct task;

/* Takes the lock at addr for t. deadline_ns on CLOCK_MONOTONIC, WAIT_FOREVER, or 0 to try once. Parks. Return: 0, −EAGAIN
 * (try: somebody has it), −EDEADLK, −ESRCH (owner does not exist), −EFAULT, −EINVAL, −ETIMEDOUT, −ENOMEM, or
 * −ERESTARTNOINTR. Source: futex(2), FUTEX_LOCK_PI. */
MUST_CHECK int futex_pi_lock(struct task *t, uaddr_t addr, uint64_t deadline_ns);
/* Gives it to the thread that waits longest. Return: 0, −EPERM (not the owner), −EFAULT, −EINVAL. */
MUST_CHECK int futex_pi_unlock(struct task *t, uaddr_t addr);

/* What a thread owes others when it goes: its robust list and the priority-inheritance locks it holds. On its fiber, while
 * its memory and its host thread are still there (exit and exec). Parks. */
void futex_task_exit(struct task *t);
