/* SPDX-License-Identifier: Apache-2.0 */
/* What a task stops sharing with others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct task;

/* unshare(2) of files, fs, namespaces, and the user namespace; all or nothing. Return: 0, −EINVAL, −EPERM, −ENOSPC, −ENOMEM. */
MUST_CHECK int task_unshare(struct task *t, uint64_t flags);
/* Whether t's root is not that of its mount namespace: such a task must not get the rights to undo that. */
bool task_is_chrooted(const struct task *t);
