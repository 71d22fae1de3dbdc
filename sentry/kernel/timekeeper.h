/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks as guests know them. Guest clocks are the host's, so that the vDSO and the sentry agree, but for the offsets of time
 * namespaces (timens.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/abi_time.h"

struct kernel;
struct task;

/* Reads a clock for t: the system clocks, CPU time of t and its process, and CPU clocks of other threads and processes by
 * their encoded ids (clock_getcpuclockid). Return: 0 or −EINVAL. Source: clock_gettime(2). */
MUST_CHECK int timekeeper_read(struct task *t, int32_t clockid, uint64_t *ret_ns);
/* Resolution. Return: 0 or −EINVAL. */
MUST_CHECK int timekeeper_resolution(struct task *t, int32_t clockid, uint64_t *ret_ns);
/* Whether sleeps and timers may use the clock. Return: 0, −EINVAL, −EOPNOTSUPP. */
MUST_CHECK int timekeeper_check_timer_clock(struct task *t, int32_t clockid);
/* CPU clocks advance only while their thread or process runs. */
bool timekeeper_is_cpu_clock(int32_t clockid);

/* When a wall-time clock (not a CPU clock) will show at_ns (absolute) or has gone on by at_ns (relative), on CLOCK_MONOTONIC,
 * which is what waits and ktimers use. t is whose clock it is. A time already past gives a past deadline. */
uint64_t timekeeper_deadline(const struct task *t, int32_t clockid, bool absolute, uint64_t at_ns);
/* How long ago, in ns, a wall-time clock showed at_ns; 0 when that is still to come. It may be longer than CLOCK_MONOTONIC
 * has run. */
uint64_t timekeeper_late(const struct task *t, int32_t clockid, uint64_t at_ns);
/* How long the container has been up for t, in ns: with the offset of CLOCK_BOOTTIME. t NULL: nobody's. */
uint64_t timekeeper_uptime(const struct task *t, const struct kernel *kernel);

/* Reads a timeout given as an optional guest struct timespec of the relative kind and makes it a deadline; WAIT_FOREVER
 * for NULL. Return: 0, −EFAULT, −EINVAL. */
struct ctx;
MUST_CHECK int timekeeper_timeout_in(struct ctx *ctx, uint64_t uaddr, uint64_t *ret_deadline_ns);
/* Writes what is left until deadline_ns into a guest struct timespec (select, ppoll); faults are ignored, as on Linux. */
void timekeeper_left_out(struct ctx *ctx, uint64_t uaddr, uint64_t deadline_ns);
