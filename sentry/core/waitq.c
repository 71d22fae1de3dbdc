/* SPDX-License-Identifier: Apache-2.0 */
/* Wait queues and the one place where a task's fiber goes to sleep. */
#include "sentry/core/waitq.h"

#include <errno.h>

#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/fiber.h"
#include "sentry/core/ktimer.h"

/* One sleep of one fiber; on the fiber's stack. */
struct sleep {
    struct waiter waiter;
    struct ktimer timer;
    struct fiber *fiber;
    bool timed_out;
};

void waitq_init(struct waitq *q)
{
    list_init(&q->waiters);
}

void waitq_add(struct waitq *q, struct waiter *w)
{
    list_add_tail(&q->waiters, &w->link);
}

void waitq_remove(struct waiter *w)
{
    if (w->link.next)
        list_del(&w->link);
}

void waitq_wake(struct waitq *q, uint32_t key)
{
    struct list todo;
    struct waiter *w;
    bool taken = false;

    if (list_empty(&q->waiters))
        return;
    /* Entries move back one by one before their callback runs: callbacks may then take any entry
     * off the queue, and those that callbacks add are not visited. */
    list_init(&todo);
    list_splice_tail(&todo, &q->waiters);
    while ((w = list_first_or_null(&todo, struct waiter, link))) {
        list_del(&w->link);
        list_add_tail(&q->waiters, &w->link);
        if (w->exclusive && taken)
            continue;
        if (w->wake(w, key) && w->exclusive)
            taken = true;
    }
}

void waitq_wake_all(struct waitq *q)
{
    waitq_wake(q, WAIT_KEY_ALL);
}

bool waitq_active(const struct waitq *q)
{
    return !list_empty(&q->waiters);
}

static bool sleep_wake(struct waiter *w, uint32_t key)
{
    struct sleep *s = container_of(w, struct sleep, waiter);

    fiber_ready(s->fiber);
    return true;
}

static void sleep_timeout(struct ktimer *t)
{
    struct sleep *s = container_of(t, struct sleep, timer);

    s->timed_out = true;
    fiber_ready(s->fiber);
}

static bool interrupted(const struct ctx *ctx, enum ctx_wait_state state)
{
    return (state == CTX_WAIT_INTERRUPTIBLE && ctx->signal_pending) ||
           (state <= CTX_WAIT_KILLABLE && ctx->fatal_pending);
}

/* q may be NULL: sleep on the deadline and signals alone. */
static int sleep_on(struct ctx *ctx, struct waitq *q, enum ctx_wait_state state, uint64_t deadline_ns)
{
    struct sleep s = {.waiter = {.wake = sleep_wake}, .fiber = fiber_current()};
    int r = 0;

    BUG_ON(!s.fiber || ctx->parked || state == CTX_RUNNING);
    if (interrupted(ctx, state))
        return -ERESTARTSYS;
    if (deadline_ns != WAIT_FOREVER) {
        if (deadline_ns <= host_monotonic_ns())
            return -ETIMEDOUT;
        r = ktimer_set(&s.timer, deadline_ns, sleep_timeout);
        if (r)
            return r;
    }
    if (q)
        waitq_add(q, &s.waiter);
    ctx->parked = s.fiber;
    ctx->wait_state = state;
    fiber_park();
    ctx->wait_state = CTX_RUNNING;
    ctx->parked = NULL;
    waitq_remove(&s.waiter);
    ktimer_cancel(&s.timer);
    if (s.timed_out)
        return -ETIMEDOUT;
    /* The caller looks at its condition first; a signal that is still pending ends the next round. */
    return 0;
}

int waitq_wait(struct ctx *ctx, struct waitq *q, enum ctx_wait_state state, uint64_t deadline_ns)
{
    return sleep_on(ctx, q, state, deadline_ns);
}

int ctx_sleep_until(struct ctx *ctx, uint64_t deadline_ns)
{
    int r;

    do {
        r = sleep_on(ctx, NULL, CTX_WAIT_INTERRUPTIBLE, deadline_ns);
    } while (!r);
    return r == -ETIMEDOUT ? 0 : r;
}

void ctx_interrupt(struct ctx *ctx)
{
    if (ctx->parked && interrupted(ctx, ctx->wait_state))
        fiber_ready(ctx->parked);
}
