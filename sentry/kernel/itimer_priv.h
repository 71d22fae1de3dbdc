/* SPDX-License-Identifier: Apache-2.0 */
/* What itimer.c, posixtimer.c and cputimer.c share. */
#pragma once

#include "platform/base/list.h"
#include "sentry/core/ktimer.h"
#include "sentry/kernel/itimer.h"
#include "sentry/kernel/signal.h"

struct cpu_itimer {
    uint64_t expires_ns; /* process CPU time; 0: off */
    uint64_t interval_ns;
};

/* Timers of one process; made with the first of them. */
struct itimers {
    struct tgroup *group; /* (i) not owned: owns us */
    struct ktimer real;   /* ITIMER_REAL */
    uint64_t real_interval_ns;
    struct cpu_itimer cpu[2]; /* ITIMER_VIRTUAL, ITIMER_PROF */
    struct ktimer cpu_check;  /* looks at all timers and limits on CPU time */
    struct list posix;        /* of posixtimer.link */
    struct list dead;         /* deleted POSIX timers whose signal is still queued */
    uint32_t posix_len;       /* on both lists */
    int32_t next_id;
};

struct posixtimer {
    struct list link;
    struct itimers *timers;
    int32_t id, clockid, notify;
    struct task *target;   /* SIGEV_THREAD_ID: not owned, cleared when it exits */
    struct task *cpu_task; /* clock of one thread: likewise */
    bool target_gone;
    bool armed;
    bool queued;           /* q carries an expiry of the current setting */
    bool deleted;
    uint64_t expires_ns;   /* on CLOCK_MONOTONIC, or CPU time for CPU clocks */
    uint64_t interval_ns;
    uint32_t overrun, overrun_last;
    struct ktimer timer;
    struct sigqueue q;
};

/* Return: the process's timers, made when needed; NULL when there is no memory. */
struct itimers *itimers_get(struct tgroup *g);

/* cputimer.c: sets cpu_check for the earliest thing that waits on CPU time, or off. */
void cputimer_rearm(struct itimers *timers);
/* posixtimer.c: a timer on a CPU clock: its time now / it has come. */
bool posixtimer_is_cpu(const struct posixtimer *p);
uint64_t posixtimer_cpu_now(const struct posixtimer *p);
void posixtimer_expire(struct posixtimer *p, uint64_t now_ns);
/* Deletes all / frees deleted ones whatever is still queued of them. */
void posixtimers_drop(struct itimers *timers);
void posixtimers_free_dead(struct itimers *timers);
