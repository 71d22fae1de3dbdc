/* SPDX-License-Identifier: Apache-2.0 */
/* Wait queues: wake-ups, signals, deadlines, and removal inside callbacks. */
#include "sentry/core/waitq.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/core/ktimer.h"

static struct waitq queue;
static struct ctx ctx;
static bool condition;
static int result;
static enum ctx_wait_state state;
static uint64_t deadline;

static void waits(void *arg)
{
    result = 1;
    result = WAIT_EVENT_STATE(&ctx, &queue, condition, state, deadline);
}

static void begin(enum ctx_wait_state s, uint64_t deadline_ns)
{
    waitq_init(&queue);
    ctx = (struct ctx){0};
    condition = false;
    state = s;
    deadline = deadline_ns;
    cr_assert_eq(fiber_start(waits, NULL), 0);
}

Test(waitq, wake_ends_the_wait)
{
    begin(CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    cr_assert(waitq_active(&queue));
    waitq_wake_all(&queue);
    fiber_run_ready();
    cr_assert_eq(result, 1, "woken without the condition");
    condition = true;
    waitq_wake_all(&queue);
    fiber_run_ready();
    cr_assert_eq(result, 0);
    cr_assert_not(waitq_active(&queue));
}

Test(waitq, signals_by_state)
{
    begin(CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    ctx_interrupt(&ctx);
    fiber_run_ready();
    cr_assert_eq(result, 1);
    ctx.signal_pending = true;
    ctx_interrupt(&ctx);
    fiber_run_ready();
    cr_assert_eq(result, -ERESTARTSYS);

    begin(CTX_WAIT_KILLABLE, WAIT_FOREVER);
    ctx.signal_pending = true;
    ctx_interrupt(&ctx);
    fiber_run_ready();
    cr_assert_eq(result, 1);
    ctx.fatal_pending = true;
    ctx_interrupt(&ctx);
    fiber_run_ready();
    cr_assert_eq(result, -ERESTARTSYS);

    begin(CTX_WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
    ctx.signal_pending = ctx.fatal_pending = true;
    ctx_interrupt(&ctx);
    fiber_run_ready();
    cr_assert_eq(result, 1);
}

Test(waitq, condition_beats_signal)
{
    begin(CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    ctx.signal_pending = true;
    condition = true;
    ctx_interrupt(&ctx);
    fiber_run_ready();
    cr_assert_eq(result, 0);
}

Test(waitq, deadline)
{
    uint64_t at = host_monotonic_ns() + 1000000000U;

    begin(CTX_WAIT_INTERRUPTIBLE, at);
    cr_assert_eq(ktimer_run(at - 1), at);
    fiber_run_ready();
    cr_assert_eq(result, 1);
    cr_assert_eq(ktimer_run(at), UINT64_MAX);
    fiber_run_ready();
    cr_assert_eq(result, -ETIMEDOUT);

    begin(CTX_WAIT_INTERRUPTIBLE, 1);
    cr_assert_eq(result, -ETIMEDOUT, "a deadline in the past does not park");
}

struct counter {
    struct waiter waiter;
    struct waiter *remove;
    int calls;
    bool take;
};

static bool count(struct waiter *w, uint32_t key)
{
    struct counter *c = container_of(w, struct counter, waiter);

    c->calls++;
    if (c->remove)
        waitq_remove(c->remove);
    return c->take;
}

static struct counter counters[4];

static void setup_counters(void)
{
    waitq_init(&queue);
    memset(counters, 0, sizeof(counters));
    for (int i = 0; i < 4; i++) {
        counters[i].waiter.wake = count;
        waitq_add(&queue, &counters[i].waiter);
    }
}

Test(waitq, exclusive_waiters)
{
    setup_counters();
    counters[0].waiter.exclusive = counters[1].waiter.exclusive = counters[2].waiter.exclusive = true;
    counters[1].take = counters[2].take = true;
    waitq_wake(&queue, 1);
    cr_assert_eq(counters[0].calls, 1);
    cr_assert_eq(counters[1].calls, 1);
    cr_assert_eq(counters[2].calls, 0);
    cr_assert_eq(counters[3].calls, 1, "not exclusive: always woken");
}

Test(waitq, removal_inside_a_callback)
{
    setup_counters();
    counters[0].remove = &counters[1].waiter;
    counters[2].remove = &counters[2].waiter;
    waitq_wake(&queue, 1);
    waitq_wake(&queue, 1);
    cr_assert_eq(counters[0].calls, 2);
    cr_assert_eq(counters[1].calls, 0);
    cr_assert_eq(counters[2].calls, 1);
    cr_assert_eq(counters[3].calls, 2);
}

/* The whole loop: a sleeping fiber, the I/O pool and the end. */
static long slow(void *arg)
{
    usleep(20000);
    return *(long *)arg * 2;
}

static void uses_pool(void *arg)
{
    long n = (long)arg;

    result += (int)hostio_run(slow, &n);
}

static void sleeps(void *arg)
{
    struct ctx c = {0};
    uint64_t t = host_monotonic_ns();

    cr_assert_eq(ctx_sleep_until(&c, t + 50000000), 0);
    cr_assert_geq(host_monotonic_ns(), t + 50000000);
    evloop_stop();
}

Test(waitq, loop_sleep_and_pool)
{
    uint64_t t;

    result = 0;
    cr_assert_eq(evloop_init(), 0);
    cr_assert_eq(fiber_spawn(sleeps, NULL), 0);
    for (long i = 1; i <= 8; i++)
        cr_assert_eq(fiber_spawn(uses_pool, (void *)i), 0);
    t = host_monotonic_ns();
    evloop_run();
    cr_assert_lt(host_monotonic_ns() - t, 150000000U, "the pool runs side by side");
    cr_assert_eq(result, 72);
}
