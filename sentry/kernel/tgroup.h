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
/* g has no thread left that runs: it is a zombie as soon as no dead one waits for its tracer. Tells the leader's tracer or the parent; g
 * may be gone afterwards. */
void tgroup_end(struct tgroup *g);
/* A dead thread that was kept for its tracer goes. */
void tgroup_reap_thread(struct task *t);
void tgroup_notify_stop(struct tgroup *g, bool continued);
