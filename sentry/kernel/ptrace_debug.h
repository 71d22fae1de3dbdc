/* SPDX-License-Identifier: Apache-2.0 */
/* Debug registers of a tracee, as PTRACE_PEEKUSER and POKEUSER see them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct task;

uint64_t ptrace_get_debug(const struct task *t, unsigned n);
/* Return: 0, −EIO (registers 4 and 5), −EINVAL (an address, size or kind that can't be watched). */
MUST_CHECK int ptrace_set_debug(struct task *t, unsigned n, uint64_t value);
/* t, whose memory is being watched, is about to run: what is there now is nothing new. */
void ptrace_debug_refresh(struct task *t);
/* t has run one instruction under the trap flag. *code: si_code of the trap, which may become TRAP_HWBKPT. Return: whether it is a trap
 * that anybody asked for. */
MUST_CHECK bool ptrace_debug_trap(struct task *t, int *code);
