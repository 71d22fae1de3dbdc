/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does about its signals before it goes back to guest code. */
#pragma once

#include <stdbool.h>

#include "sentry/kernel/signal.h"

/* Acts on one pending signal of t: frame, default action, group stop. Parks while stopped. Return: true when there
 * may be more to do (call again), false when nothing is left that concerns signals. After it t may be exiting. */
bool signal_deliver(struct task *t);
/* Takes part in the group stop under way: parks until it is over or t is killed. */
void signal_take_stop(struct task *t);
/* t, whose stop_pending is set, has stopped. Return: whether that was the last thread, which is news for the parent. */
bool signal_join_stop(struct task *t);
/* A thread that exits leaves the group stop under way. */
void signal_leave_stop(struct task *t);
/* Rewinds or ends the call that t is in, when it asked for a restart. action: the handler that will run, or NULL. */
void signal_fix_restart(struct task *t, const struct sigaction_k *action);
