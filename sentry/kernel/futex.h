/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes: what host futexes, on which guest threads wait by themselves, do not cover. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct mm;
struct task;

/* What a thread owes others when it goes: its robust list and the priority-inheritance locks it holds. On its fiber, while
 * its memory and its host thread are still there (exit and exec). Parks. */
void futex_task_exit(struct task *t);
