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
/* Runs fn(arg) on a fiber right now, until it first parks or ends. Meant for the kernel thread's own stack;
 * called on a fiber it queues like fiber_spawn. Return: 0 or −ENOMEM. */
MUST_CHECK int fiber_start(void (*fn)(void *arg), void *arg);
/* Return: the running fiber, or NULL on the kernel thread's own stack. */
struct fiber *fiber_current(void);
/* Whom the running fiber works for: a struct task. Return: NULL on the kernel thread's own stack, and when nobody was set. */
void *fiber_owner(void);
void fiber_set_owner(void *owner); /* of the running fiber; borrowed: set it back to NULL before it goes */
/* Suspends the calling fiber until fiber_ready. A ready that came before the park is not lost, so a
 * park may return early: callers re-check what they wait for. */
void fiber_park(void);
/* Queues a parked fiber to run; idempotent. */
void fiber_ready(struct fiber *f);
/* Runs queued fibers, with a bound on how many, so that descriptors get their turn. For the event loop only. */
void fiber_run_ready(void);
/* Return: whether fibers are queued to run. */
bool fiber_any_ready(void);
/* Lets others run first. */
void fiber_yield(void);
