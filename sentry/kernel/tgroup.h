/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: what is not in task.h because only the kernel directory uses it. */
#pragma once

#include "sentry/kernel/task.h"

struct sighand;

/* The parts of task_publish that concern a new process. */
void tgroup_publish(struct tgroup *g, struct tgroup *parent);
/* Makes every other thread of t's process go (exec). Parks until they are gone. Return: 0, −EAGAIN (another thread came
 * first with an exec or exit), −ERESTARTSYS (killed). */
MUST_CHECK int tgroup_kill_others(struct task *t);
/* Gives g's children to whoever adopts them. g is dead. */
void tgroup_reparent_children(struct tgroup *g);
/* Tells the parent of a process's death, stop or continuation: SIGCHLD and its waiters.
 * Return: true when the parent does not care and the process shall be reaped at once. */
bool tgroup_notify_exit(struct tgroup *g);
void tgroup_notify_stop(struct tgroup *g, bool continued);
