/* SPDX-License-Identifier: Apache-2.0 */
/* What each user holds in the sandbox: for limits that count by real user id, and for the number of namespaces. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct userns;

enum ucount_kind {
    /* Namespaces, in the order of /proc/sys/user; also indices of a user namespace's limits. */
    UCOUNT_USER_NS,
    UCOUNT_PID_NS,
    UCOUNT_UTS_NS,
    UCOUNT_IPC_NS,
    UCOUNT_NET_NS,
    UCOUNT_MNT_NS,
    UCOUNT_CGROUP_NS,
    UCOUNT_TIME_NS,
    UCOUNT_NS_KINDS,
    UCOUNT_TASKS = UCOUNT_NS_KINDS,
    UCOUNT_SIGPENDING,
    UCOUNT_KINDS,
};

/* Takes one unit for uid unless it has limit of them already. Return: 0, −EAGAIN, −ENOMEM. */
MUST_CHECK int ucount_charge(enum ucount_kind kind, uint32_t uid, uint64_t limit);
void ucount_uncharge(enum ucount_kind kind, uint32_t uid);
uint64_t ucount_used(enum ucount_kind kind, uint32_t uid);

/* One namespace counted for the user who made it in the user namespace that owns it, and for the makers of that one and those
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
/* The limit of a kind of namespaces in ns, to read or to change. */
int32_t *ucount_max_of(struct userns *ns, enum ucount_kind kind);
