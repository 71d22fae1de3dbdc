/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that stand for processes. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct file;
struct tgroup;

/* A pidfd of g (takes its own reference). flags: O_NONBLOCK. NULL on no memory. */
MUST_CHECK struct file *anon_pidfd_new(struct tgroup *g, uint32_t flags, const struct cred *cred);
/* Return: the process behind f, borrowed while f lives; NULL when f is no pidfd. */
struct tgroup *anon_pidfd_group(const struct file *f);
