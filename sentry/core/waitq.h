/* SPDX-License-Identifier: Apache-2.0 */
/* Wait queues: parked fibers and callbacks that are told when something may have changed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/ctx.h"

struct waitq {
    struct list waiters; /* (k) of struct waiter.link */
};

struct waiter {
    struct list link;
    /* Called on every wake of the queue with its key (a mask of EPOLL* events, or ~0). May remove itself; may not
     * park. Return: true when this exclusive waiter took the wake. */
    bool (*wake)(struct waiter *w, uint32_t key);
    void *arg;
    bool exclusive;
};

#define WAIT_FOREVER UINT64_MAX
#define WAIT_KEY_ALL UINT32_MAX

void waitq_init(struct waitq *q);
void waitq_add(struct waitq *q, struct waiter *w);
void waitq_remove(struct waiter *w); /* harmless when not queued */
/* Wakes all non-exclusive waiters and exclusive ones until one took it. */
void waitq_wake(struct waitq *q, uint32_t key);
void waitq_wake_all(struct waitq *q);
bool waitq_active(const struct waitq *q);

/* Drops every waiter without a wake: for an object (a task's signal_wait) that dies while an eventpoll may still
 * be hooked to it. */
static inline void waitq_orphan(struct waitq *q)
{
    while (!list_empty(&q->waiters))
        list_del(q->waiters.next);
}

/* Parks the calling fiber on q until a wake, a signal (by state), or the deadline (CLOCK_MONOTONIC ns).
 * The caller re-checks its condition, for it may also return early: use WAIT_EVENT.
 * Return: 0, −ERESTARTSYS, −ETIMEDOUT, −ENOMEM (with a deadline). */
MUST_CHECK int waitq_wait(struct ctx *ctx, struct waitq *q, enum ctx_wait_state state, uint64_t deadline_ns);

/* Waits until cond is true. Value: 0, −ERESTARTSYS or −ETIMEDOUT. Nothing runs between the check and the
 * park, so no wake-up is lost. */
#define WAIT_EVENT_STATE(ctx, q, cond, state, deadline_ns)                                         \
    ({                                                                                             \
        int we_ret_ = 0;                                                                           \
        while (!(cond)) {                                                                          \
            we_ret_ = waitq_wait((ctx), (q), (state), (deadline_ns));                              \
            if (we_ret_) {                                                                         \
                if (we_ret_ == -ETIMEDOUT && (cond))                                               \
                    we_ret_ = 0;                                                                   \
                break;                                                                             \
            }                                                                                      \
        }                                                                                          \
        we_ret_;                                                                                   \
    })
#define WAIT_EVENT(ctx, q, cond) WAIT_EVENT_STATE(ctx, q, cond, CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER)
#define WAIT_EVENT_UNTIL(ctx, q, cond, deadline_ns)                                                \
    WAIT_EVENT_STATE(ctx, q, cond, CTX_WAIT_INTERRUPTIBLE, deadline_ns)

/* Sleeps until the deadline or a signal. Return: 0 (deadline passed), −ERESTARTSYS or −ENOMEM. */
MUST_CHECK int ctx_sleep_until(struct ctx *ctx, uint64_t deadline_ns);

/* ---- poll ---- */

/* Passed to file_poll: the file calls poll_wait for each queue it would wake. pt may be NULL (ask only), and so
 * may queue. ctx is the caller's (signalfd answers by it); NULL when nobody asks for himself. */
struct poll_table {
    void (*queue)(struct poll_table *pt, struct waitq *q);
    struct ctx *ctx;
};

static inline void poll_wait(struct poll_table *pt, struct waitq *q)
{
    if (pt && pt->queue)
        pt->queue(pt, q);
}
