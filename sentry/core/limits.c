/* SPDX-License-Identifier: Apache-2.0 */
/* Counters behind the sandbox-wide limits. */
#include "sentry/core/limits.h"

#include <errno.h>

static const uint64_t ceilings[LIMIT_KIND_LEN] = {
    [LIMIT_KIND_TASKS] = LIMIT_TASKS,
    [LIMIT_KIND_FILES] = LIMIT_FILES,
    [LIMIT_KIND_PIPE_PAGES] = LIMIT_PIPE_PAGES,
    [LIMIT_KIND_FLOCKS] = LIMIT_FLOCKS,
    [LIMIT_KIND_WATCHES] = LIMIT_WATCHES,
    [LIMIT_KIND_NOTIFY_EVENTS] = LIMIT_NOTIFY_EVENTS,
    [LIMIT_KIND_EPOLL_WATCHES] = LIMIT_EPOLL_WATCHES,
    [LIMIT_KIND_TMPFS_INODES] = 1 << 20,
    [LIMIT_KIND_AIO] = LIMIT_AIO_REQUESTS,
    [LIMIT_KIND_UNIX_BYTES] = 1ULL << 30,
    [LIMIT_KIND_SECCOMP_INSNS] = LIMIT_SECCOMP_INSNS,
    [LIMIT_KIND_LANDLOCK_RULES] = 1 << 22,
    [LIMIT_KIND_ACL_BYTES] = LIMIT_ACL_BYTES,
};

static uint64_t used[LIMIT_KIND_LEN]; /* (k) */

int32_t limit_tuned[LIMIT_TUNED_LEN] = {
    [LIMIT_TUNED_INOTIFY_QUEUE] = LIMIT_INOTIFY_QUEUE,
    [LIMIT_TUNED_FANOTIFY_QUEUE] = LIMIT_INOTIFY_QUEUE,
    [LIMIT_TUNED_LEASE_BREAK_TIME] = 45,
    [LIMIT_TUNED_LEASES_ENABLE] = 1,
};

int limit_charge(enum limit_kind kind, uint64_t amount)
{
    if (amount > ceilings[kind] - used[kind])
        return -EAGAIN;
    used[kind] += amount;
    return 0;
}

void limit_uncharge(enum limit_kind kind, uint64_t amount)
{
    BUG_ON(amount > used[kind]);
    used[kind] -= amount;
}

uint64_t limit_used(enum limit_kind kind)
{
    return used[kind];
}
