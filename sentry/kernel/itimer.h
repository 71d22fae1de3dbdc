/* SPDX-License-Identifier: Apache-2.0 */
/* Interval timers (setitimer, alarm) and POSIX timers of a process. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/abi_time.h"

struct itimers;
struct task;
struct tgroup;

/* ITIMER_REAL, _VIRTUAL, _PROF of t's process. Values in ns, 0 = off. Return: 0, −EINVAL, −ENOMEM. */
MUST_CHECK int itimer_get(struct task *t, int which, uint64_t *ret_left, uint64_t *ret_interval);
MUST_CHECK int itimer_set(struct task *t, int which, uint64_t value, uint64_t interval, uint64_t *ret_left,
                          uint64_t *ret_interval);

/* For exec: POSIX timers go, interval timers stay. */
void itimers_exec(struct tgroup *g);
/* For the end of a process, before it becomes a zombie: all timers stop. */
void itimers_exit(struct tgroup *g);
/* Frees what is left with the process object. NULL is fine. */
void itimers_free(struct itimers *timers);
/* A thread exits: POSIX timers that signal it (SIGEV_THREAD_ID) lose their target. */
void itimers_thread_exit(struct task *t);
/* RLIMIT_CPU of g was set or inherited (setrlimit, fork, exec): watches it from now on. */
void itimers_watch_cpu_limit(struct tgroup *g);
/* A POSIX timer's signal was dequeued: puts its overruns into q->info and starts the next period. Called by the
 * signal code when it dequeues a preallocated entry; q must not be queued any more. Does not free it. */
struct sigqueue;
void posixtimer_delivered(struct sigqueue *q);
