/* SPDX-License-Identifier: Apache-2.0 */
/* signalfd: pending signals read from a descriptor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct file;

/* mask: signals that reads take (SIGKILL and SIGSTOP are left out). flags: O_NONBLOCK. NULL on no memory. */
MUST_CHECK struct file *anon_signalfd_new(uint64_t mask, uint32_t flags, const struct cred *cred);
bool anon_signalfd_is(const struct file *f);
void anon_signalfd_set_mask(struct file *f, uint64_t mask);
