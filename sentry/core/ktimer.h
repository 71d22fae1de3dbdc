/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel timers on CLOCK_MONOTONIC; one host timer stands for the earliest, none when there is none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

/* Embed it, zero it. fn runs on the kernel thread's own stack and must not park. */
struct ktimer {
    uint64_t deadline_ns;
    void (*fn)(struct ktimer *t);
    uint32_t heap_index; /* 0: not armed */
};

/* Arms (or moves) t. Return: 0 or −ENOMEM (never for a timer that is already armed). */
MUST_CHECK int ktimer_set(struct ktimer *t, uint64_t deadline_ns, void (*fn)(struct ktimer *t));
void ktimer_cancel(struct ktimer *t);
bool ktimer_armed(const struct ktimer *t);
/* For the event loop: runs what is due. Return: next deadline, or UINT64_MAX. */
uint64_t ktimer_run(uint64_t now_ns);
/* Return: the earliest deadline, or UINT64_MAX when no timer is armed. */
uint64_t ktimer_next(void);
