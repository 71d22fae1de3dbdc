/* SPDX-License-Identifier: Apache-2.0 */
/* PR_SET_SECCOMP. */
#pragma once

#include <stdint.h>

struct task;

/* Return: as prctl(2). */
int64_t sys_seccomp_prctl(struct task *t, uint64_t mode, uint64_t filter);
