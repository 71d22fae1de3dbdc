/* SPDX-License-Identifier: Apache-2.0 */
/* timerfd: a timer whose expirations are read from a descriptor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "platform/base/compiler.h"

struct cred;
struct file;

/* clock: CLOCK_REALTIME, MONOTONIC, BOOTTIME or an _ALARM kind (checked by the caller). flags: O_NONBLOCK. NULL on no memory. */
MUST_CHECK struct file *anon_timerfd_new(int clock, uint32_t flags, const struct cred *cred);
bool anon_timerfd_is(const struct file *f);
/* timerfd_settime(2): flags TFD_TIMER_*; the values are valid. offset_ns: what the timer's clock shows the caller more than the host.
 * Return: 0 with the old setting, or −ENOMEM. */
MUST_CHECK int anon_timerfd_settime(struct file *f, int flags, int64_t offset_ns, const struct itimerspec *value,
                                    struct itimerspec *ret_old);
int anon_timerfd_clock(const struct file *f);
void anon_timerfd_gettime(struct file *f, struct itimerspec *ret_value);
