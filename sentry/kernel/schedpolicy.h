/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduling policies, priorities and nice values: checked as the kernel does, kept and shown. The host places threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct task;

enum { SCHEDPOLICY_DEADLINE = 6, SCHEDPOLICY_RECLAIM = 2, SCHEDPOLICY_OVERRUN = 4 };

struct schedpolicy {
    int policy, priority;
    bool reset_on_fork;
    uint64_t runtime, deadline, period; /* ns, of SCHEDPOLICY_DEADLINE */
    uint64_t dl_flags;                  /* SCHEDPOLICY_RECLAIM, SCHEDPOLICY_OVERRUN */
};

/* Return: highest static priority of a policy, or −EINVAL for one that does not exist. */
int schedpolicy_priority_max(int policy);
/* Whether t may change how target is scheduled: same user, or CAP_SYS_NICE. */
bool schedpolicy_may_change(const struct task *t, const struct task *target);
/* Checks and stores. Return: 0, −EINVAL, −EPERM, −EBUSY (more than all CPUs have). Source: sched_setattr(2), sched(7). */
MUST_CHECK int schedpolicy_set(const struct task *t, struct task *target, const struct schedpolicy *p);
/* Return: 0, −EPERM (somebody else's), −EACCES (above RLIMIT_NICE). nice is cut to what there is. */
MUST_CHECK int schedpolicy_set_nice(const struct task *t, struct task *target, int nice);
