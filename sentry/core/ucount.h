/* SPDX-License-Identifier: Apache-2.0 */
/* What each user holds in the sandbox, for limits that count by real user id. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

enum ucount_kind { UCOUNT_TASKS, UCOUNT_SIGPENDING, UCOUNT_KINDS };

/* Takes one unit for uid unless it has limit of them already. Return: 0, −EAGAIN, −ENOMEM. */
MUST_CHECK int ucount_charge(enum ucount_kind kind, uint32_t uid, uint64_t limit);
void ucount_uncharge(enum ucount_kind kind, uint32_t uid);
uint64_t ucount_used(enum ucount_kind kind, uint32_t uid);
