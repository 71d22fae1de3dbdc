/* SPDX-License-Identifier: Apache-2.0 */
/* How the gofer process ends: with the container's wait status. */
#pragma once

#include "platform/base/compiler.h"

/* Called once at start: no core dumps, and what srv_exit must know later. */
void srv_exit_prepare(void);
/* Ends the process so that its parent's wait() gives wait_status (without the core flag): by exit
 * or by that signal. */
NORETURN void srv_exit(int wait_status);
