/* SPDX-License-Identifier: Apache-2.0 */
/* eventfd: a counter behind a descriptor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct file;

/* flags: O_NONBLOCK. NULL on no memory. Source: eventfd(2). */
MUST_CHECK struct file *anon_eventfd_new(uint32_t initial, bool semaphore, uint32_t flags,
                                         const struct cred *cred);
/* Whether f is one. */
bool anon_eventfd_is(const struct file *f);
/* Adds one to the counter of an eventfd, without waiting when it is full. Does not park; not to be called from a wake. */
void anon_eventfd_signal(struct file *f);
