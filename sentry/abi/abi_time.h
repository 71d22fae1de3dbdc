/* SPDX-License-Identifier: Apache-2.0 */
/* Guest time structures (the host's: same ABI) and their conversion to nanoseconds, which never overflows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000LL
/* The longest time that is told apart from forever: 292 years. */
#define TIME_MAX_NS INT64_MAX

_Static_assert(sizeof(struct timespec) == 16 && sizeof(struct timeval) == 16, "64-bit time");

/* Valid as a time span or a point in time of a non-settable clock. */
static inline bool timespec_valid(const struct timespec *ts)
{
    return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < NSEC_PER_SEC;
}

static inline bool timeval_valid(const struct timeval *tv)
{
    return tv->tv_sec >= 0 && tv->tv_usec >= 0 && tv->tv_usec < 1000000;
}

/* Of a valid one; saturates. */
static inline uint64_t timespec_to_ns(const struct timespec *ts)
{
    if (ts->tv_sec >= TIME_MAX_NS / NSEC_PER_SEC)
        return TIME_MAX_NS;
    return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

static inline uint64_t timeval_to_ns(const struct timeval *tv)
{
    struct timespec ts = {tv->tv_sec, tv->tv_usec * 1000};

    return timespec_to_ns(&ts);
}

static inline struct timespec timespec_from_ns(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC)};
}

static inline struct timeval timeval_from_ns(uint64_t ns)
{
    return (struct timeval){(time_t)(ns / NSEC_PER_SEC), (suseconds_t)(ns % NSEC_PER_SEC / 1000)};
}

/* a + b, at most UINT64_MAX − 1 so that the sum is never taken for "forever". */
static inline uint64_t time_add_ns(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - 1 - b ? UINT64_MAX - 1 : a + b;
}
