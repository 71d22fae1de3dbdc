/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative fibers on the kernel thread: a small stack for each call that may have to wait. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"

struct fiber;

/* Usable stack of a fiber in bytes: keep buffers above 2 KiB off it. */
enum { FIBER_STACK_SIZE = 64 * 1024 };

/* Queues fn(arg) to run on a fiber. Return: 0 or −ENOMEM. */
MUST_CHECK int fiber_spawn(void (*fn)(void *arg), void *arg);
/* Runs fn(arg) on a fiber right now, until it first parks or ends. Only from the kernel thread's own
 * stack. Return: 0 or −ENOMEM. */
MUST_CHECK int fiber_start(void (*fn)(void *arg), void *arg);
/* Return: the running fiber, or NULL on the kernel thread's own stack. */
struct fiber *fiber_current(void);
/* Suspends the calling fiber until fiber_ready. A ready that came before the park is not lost. */
void fiber_park(void);
/* Queues a parked fiber to run; idempotent. */
void fiber_ready(struct fiber *f);
/* Runs queued fibers until none is left. For the event loop only. */
void fiber_run_ready(void);
/* Lets others run first. */
void fiber_yield(void);
