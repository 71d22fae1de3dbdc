/* SPDX-License-Identifier: Apache-2.0 */
/* FPU state of a stopped tracee, in the layouts of user_fpregs_struct and of XSAVE. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct task;

enum { PTRACE_FXSAVE_SIZE = 512 };

/* Bytes of an XSAVE image; 0: the CPU has none. */
uint64_t ptrace_xstate_size(const struct task *t);
/* Copies the first size bytes. Return: 0, −ENOMEM, −EIO. */
MUST_CHECK int ptrace_fpu_get(struct task *t, void *p, uint64_t size);
/* Takes PTRACE_FXSAVE_SIZE bytes, or a whole XSAVE image. Return: 0, −EINVAL (bits that the CPU does not have), −ENOMEM, −EIO. */
MUST_CHECK int ptrace_fpu_set(struct task *t, const void *p, uint64_t size);
