/* SPDX-License-Identifier: Apache-2.0 */
/* Path arguments of calls: copied in, and walked from a directory descriptor. */
#pragma once

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"
#include "sentry/kernel/fsctx.h"

struct task;

/* Copies a path in. Return: 0 with a buffer for pathname_free; −EFAULT, −ENAMETOOLONG, −ENOMEM. */
MUST_CHECK int pathname_in(struct task *t, uaddr_t addr, char **ret_path);
void pathname_free(char *path); /* NULL is fine */
/* Copies a path in and resolves it from dirfd (AT_FDCWD or a descriptor). walk_flags: WALK_*; with WALK_EMPTY a null address
 * is an empty path. Return: 0 with a referenced path, or −errno. */
MUST_CHECK int pathname_walk(struct task *t, int dirfd, uaddr_t addr, unsigned walk_flags,
                             struct path *ret_path);

static inline void pathname_freep_(char **p)
{
    pathname_free(*p);
}
#define CLEANUP_PATHNAME __attribute__((cleanup(pathname_freep_)))
