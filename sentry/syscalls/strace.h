/* SPDX-License-Identifier: Apache-2.0 */
/* --strace: one line a call with decoded arguments and result. */
#pragma once

#include <stdint.h>

#include <stdbool.h>
#include "platform/base/buf.h"

struct strace_call;
struct syscall_arg;
struct task;

/* Decodes what the call reads, before it runs; calls that may not come back or may wait long are announced at once.
 * Return: state for strace_exit; NULL when there was no memory, which is fine. */
struct strace_call *strace_enter(struct task *t, uint32_t nr, const uint64_t *args);
/* Writes the line. Consumes call. */
void strace_exit(struct task *t, struct strace_call *call, int64_t result);
/* Forgets a call whose end is not to be shown. NULL is fine. */
void strace_drop(OWNS struct strace_call *call);

/* strace_fmt.c: appends argument i as its format tells. after: the call has run, output memory can be shown. */
void strace_arg(struct task *t, struct buf *out, const struct syscall_arg *arg, const uint64_t *args,
                unsigned i, bool after, int64_t result);
/* Appends a signal's name / an error's name with its sign. */
void strace_signal(struct buf *out, int signo);
void strace_result(struct buf *out, int64_t result);
