/* SPDX-License-Identifier: Apache-2.0 */
/* A lock between fibers, held across parks: a flag and a queue. Uncontended use costs two stores. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"
#include "sentry/core/waitq.h"

struct sleeplock {
    bool held;           /* (k) */
    unsigned waiting;    /* (k) fibers in q */
    struct waitq q;      /* (k) */
};

static inline void sleeplock_init(struct sleeplock *l)
{
    l->held = false;
    l->waiting = 0;
    waitq_init(&l->q);
}

/* Waits until the lock is free, without regard to signals (holders wait for a host reply at most). */
void sleeplock_wait(struct ctx *ctx, struct sleeplock *l);

static inline void sleeplock_take(struct ctx *ctx, struct sleeplock *l)
{
    if (unlikely(l->held))
        sleeplock_wait(ctx, l);
    l->held = true;
}

static inline void sleeplock_release(struct sleeplock *l)
{
    l->held = false;
    if (unlikely(l->waiting))
        waitq_wake_all(&l->q);
}
