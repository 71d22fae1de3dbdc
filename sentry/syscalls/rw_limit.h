/* SPDX-License-Identifier: Apache-2.0 */
/* RLIMIT_FSIZE for the calls that write. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct file;
struct task;

/* Shortens a write of *inout_size bytes at start to what RLIMIT_FSIZE allows. Return: 0, or −EFBIG (with SIGXFSZ) when it
 * allows nothing. */
MUST_CHECK int rw_limit(struct task *t, const struct file *f, uint64_t start, uint64_t *inout_size);
