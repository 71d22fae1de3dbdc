/* SPDX-License-Identifier: Apache-2.0 */
/* What the sentry and the gofer have in common before they exec: empty root, clean signals, limits,
 * and descriptors at fixed numbers. For child processes only: most of it can't be undone. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Puts every signal back to its default action and unblocks all. */
void confine_reset_signals(void);
/* Raises limits of process pid that would stop or starve the sandbox's own processes: open files to
 * the host's maximum, file size, address space, CPU time and processes to infinity; cores to 1 byte
 * (0 would still run a piped core_pattern as host root). Where that takes a right that is missing, the
 * hard limit is what there is. Return: 0, −errno with a message. */
MUST_CHECK int confine_raise_limits(pid_t pid, struct errmsg *e);
/* Replaces the root of this process's own mount namespace by an empty read-only directory and
 * detaches everything else. Return: 0, −errno with a message. */
MUST_CHECK int confine_empty_root(struct errmsg *e);
/* Moves fds[i] to descriptor first + i (−1 leaves that number closed) without close-on-exec, and
 * marks everything from first + len on close-on-exec. Descriptors 0 to 2 become copies of null.
 * Return: 0, −errno with a message. */
MUST_CHECK int confine_place_fds(const int *fds, size_t len, int first, int null, struct errmsg *e);
