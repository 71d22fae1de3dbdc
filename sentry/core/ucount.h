/* SPDX-License-Identifier: Apache-2.0 */
/* What each user holds in the sandbox: for limits that count by real user id, and for the number of namespaces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct userns;

enum ucount_kind {
    /* What has limits in /proc/sys/user: namespaces, and what watches files. Also indices of a user namespace's limits. */
    UCOUNT_USER_NS,
    UCOUNT_PID_NS,
    UCOUNT_UTS_NS,
    UCOUNT_IPC_NS,
    UCOUNT_NET_NS,
    UCOUNT_MNT_NS,
    UCOUNT_CGROUP_NS,
    UCOUNT_TIME_NS,
    UCOUNT_INOTIFY_INSTANCES,
    UCOUNT_INOTIFY_WATCHES,
    UCOUNT_FANOTIFY_GROUPS,
    UCOUNT_FANOTIFY_MARKS,
    UCOUNT_NS_KINDS,
    UCOUNT_TASKS = UCOUNT_NS_KINDS,
    UCOUNT_SIGPENDING,
    UCOUNT_KINDS,
};

/* Takes one unit for uid unless it has limit of them already. Return: 0, −EAGAIN, −ENOMEM. */
MUST_CHECK int ucount_charge(enum ucount_kind kind, uint32_t uid, uint64_t limit);
void ucount_uncharge(enum ucount_kind kind, uint32_t uid);
uint64_t ucount_used(enum ucount_kind kind, uint32_t uid);

/* One namespace (or the like) counted for the user who made it in the user namespace that owns it, and for the makers of that one and those
 * above it. Zeroed: nothing. */
struct ucharge {
    struct userns *ns; /* (i) referenced; NULL: the initial one */
    uint32_t uid;      /* (i) */
    uint8_t kind;      /* (i) enum ucount_kind */
    bool held;         /* (i) */
};
/* Return: 0, −ENOSPC (a limit is reached), −ENOMEM. */
MUST_CHECK int ucharge_take(struct ucharge *c, enum ucount_kind kind, struct userns *ns, uint32_t uid);
void ucharge_drop(struct ucharge *c); /* of one not held: nothing */
/* One more unit of the same kind and owner / one less, for what is counted in large numbers: c must be held, but its kind is
 * not looked at. Return: 0, −ENOSPC, −ENOMEM. */
MUST_CHECK int ucharge_more(const struct ucharge *c, enum ucount_kind kind);
void ucharge_less(const struct ucharge *c, enum ucount_kind kind);
/* The limit of a kind in ns, to read or to change. */
int32_t *ucount_max_of(struct userns *ns, enum ucount_kind kind);
