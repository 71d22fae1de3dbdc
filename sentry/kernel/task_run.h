/* SPDX-License-Identifier: Apache-2.0 */
/* The run loop: from an event of the platform to the resumption of guest code. */
#pragma once

#include <stdint.h>

#include "platform/platform.h"

struct task;

/* For platform_start of every container. */
extern const struct plat_client task_run_client;

/* Lets a published task run for the first time, with the registers of its thread; t->resume_flags say what to set. */
void task_run_start(struct task *t);
/* Puts a fiber to work on t (which is in guest code, or new) as if it had been kicked. Harmless when one is at work. */
void task_run_spawn(struct task *t);
/* Runs fn(t) on a fiber of its own and then lets t run: the first exec of a container's process. */
MUST_CHECK int task_run_first(struct task *t, void (*fn)(struct task *t));
