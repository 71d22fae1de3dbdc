/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change mounts. */
#pragma once

#include <stdbool.h>

struct task;

/* CAP_SYS_ADMIN over the user namespace that owns the caller's mount namespace. */
bool mount_right(struct task *t);
