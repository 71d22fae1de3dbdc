/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of ptrace share. */
#pragma once

#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/task.h"

/* ptrace_debug.c: whether any of the debug registers is on. */
bool ptrace_is_watching(const struct ptrace_state *p);
