/* SPDX-License-Identifier: Apache-2.0 */
/* RLIMIT_MEMLOCK for the calls that lock memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct task;

/* Whether t may have [start, start+size) locked besides what it has locked elsewhere. Parks. ret_host_allows: the host would
 * pin it as well. Return: 0, −EPERM (none at all), −EAGAIN (too much), −ESRCH. Source: mlock(2), mmap(2). */
MUST_CHECK int memlock_check(struct task *t, uint64_t start, uint64_t size, bool *ret_host_allows);
