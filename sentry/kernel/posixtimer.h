/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX timers of a process: timer_create and its kin. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct task;

/* The kernel's struct sigevent, as far as it matters. */
struct sigevent_k {
    uint64_t value;
    int32_t signo, notify, tid;
    int32_t pad[11];
};

/* event NULL: SIGALRM with the timer's number. Return: 0, −EINVAL, −EOPNOTSUPP, −EAGAIN. */
MUST_CHECK int posixtimer_create(struct task *t, int32_t clockid, const struct sigevent_k *event,
                                 int32_t *ret_id);
MUST_CHECK int posixtimer_delete(struct task *t, int32_t id); /* −EINVAL */
/* Times in ns; value 0 turns it off. Return: 0, −EINVAL, −ENOMEM. */
MUST_CHECK int posixtimer_set(struct task *t, int32_t id, bool absolute, uint64_t value, uint64_t interval,
                              uint64_t *ret_left, uint64_t *ret_interval);
MUST_CHECK int posixtimer_get(struct task *t, int32_t id, uint64_t *ret_left, uint64_t *ret_interval);
MUST_CHECK int posixtimer_overrun(struct task *t, int32_t id); /* count or −EINVAL */
