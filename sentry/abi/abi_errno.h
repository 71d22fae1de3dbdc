/* SPDX-License-Identifier: Apache-2.0 */
/* Error numbers: the host's (same ABI) and Linux's internal restart codes, which never reach a guest. */
#pragma once

#include <errno.h>

#define ERESTARTSYS 512           /* restart if SA_RESTART or no handler, else EINTR */
#define ERESTARTNOINTR 513        /* always restart */
#define ERESTARTNOHAND 514        /* restart only when no handler runs, else EINTR */
#define ERESTART_RESTARTBLOCK 516 /* as NOHAND, but through task.restart (the deadline is kept) */
