/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: order, parking, early readies, reuse of stacks. */
#include "sentry/core/fiber.h"

#include <criterion/criterion.h>

#include "platform/base/host.h"

static struct fiber *self;
static int steps;

static void parks_twice(void *arg)
{
    self = fiber_current();
    steps++;
    fiber_park();
    steps++;
    fiber_park();
    steps++;
}

Test(fiber, parks_and_resumes)
{
    steps = 0;
    cr_assert_null(fiber_current());
    cr_assert_eq(fiber_start(parks_twice, NULL), 0);
    cr_assert_eq(steps, 1);
    fiber_run_ready();
    cr_assert_eq(steps, 1);
    fiber_ready(self);
    fiber_ready(self);
    fiber_run_ready();
    cr_assert_eq(steps, 2);
    fiber_ready(self);
    cr_assert(fiber_any_ready());
    fiber_run_ready();
    cr_assert_eq(steps, 3);
    cr_assert_not(fiber_any_ready());
    cr_assert_null(fiber_current());
}

static void readies_itself(void *arg)
{
    fiber_ready(fiber_current());
    fiber_park();
    *(int *)arg = 1;
}

Test(fiber, early_ready_is_kept)
{
    int done = 0;

    cr_assert_eq(fiber_start(readies_itself, &done), 0);
    cr_assert_eq(done, 1);
}

static char order[8];

static void yields(void *arg)
{
    char *name = arg;

    strncat(order, name, 1);
    fiber_yield();
    strncat(order, name, 1);
}

Test(fiber, yield_rotates)
{
    cr_assert_eq(fiber_spawn(yields, (void *)"a"), 0);
    cr_assert_eq(fiber_spawn(yields, (void *)"b"), 0);
    fiber_run_ready();
    cr_assert_str_eq(order, "abab");
}

static void deep(void *arg)
{
    char big[48 * 1024];

    memset(big, 1, sizeof(big));
    __asm__ volatile("" ::"r"(big) : "memory");
    fiber_park();
    *(int *)arg += big[17];
}

static void starts_nested(void *arg)
{
    /* On a fiber, a start only queues. */
    cr_assert_eq(fiber_start(parks_twice, NULL), 0);
    *(int *)arg = steps;
}

Test(fiber, start_on_a_fiber_queues)
{
    int seen = -1;

    steps = 0;
    cr_assert_eq(fiber_start(starts_nested, &seen), 0);
    cr_assert_eq(seen, 0);
    fiber_run_ready();
    cr_assert_eq(steps, 1);
}

static struct fiber *many[500];
static int many_len, sum;

static void joins_many(void *arg)
{
    many[many_len++] = fiber_current();
    deep(&sum);
}

Test(fiber, five_hundred_deep_stacks)
{
    for (int round = 0; round < 3; round++) {
        many_len = sum = 0;
        for (int i = 0; i < 500; i++)
            cr_assert_eq(fiber_start(joins_many, NULL), 0);
        for (int i = 0; i < 500; i++)
            fiber_ready(many[i]);
        while (fiber_any_ready())
            fiber_run_ready();
        cr_assert_eq(sum, 500);
    }
}

static void nothing(void *arg)
{
    ++*(int *)arg;
}

Test(fiber, start_is_cheap)
{
    int n = 0;
    uint64_t t = host_monotonic_ns();

    for (int i = 0; i < 1000000; i++)
        cr_assert_eq(fiber_start(nothing, &n), 0);
    t = host_monotonic_ns() - t;
    cr_log_info("fiber_start: %d ns", (int)(t / 1000000));
    cr_assert_eq(n, 1000000);
    cr_assert_lt(t, 2000000000U, "%d ns each", (int)(t / 1000000));
}
