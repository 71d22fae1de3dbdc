/* SPDX-License-Identifier: Apache-2.0 */
/* The end of threads and processes. */
#pragma once

struct task;

/* Ends t on its own fiber: gives back what it holds, tells whom it concerns. With its last thread the process becomes a
 * zombie, or is gone when nobody wants to know. Parks. t may be freed on return. */
void task_exit(struct task *t);
/* Lets go of t's memory and host thread (exit and exec): robust futexes, a borrowed thread goes back to its owner, a
 * parent that waits in vfork goes on. t->thread and t->mm are NULL afterwards. Parks. */
void task_leave_mm(struct task *t);
