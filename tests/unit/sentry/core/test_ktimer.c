/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel timers: order, moving, cancelling, random against a sorted list. */
#include "sentry/core/ktimer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "platform/base/alloc.h"

enum { LEN = 2000 };

static struct ktimer timers[LEN];
static uint64_t last;
static int fired;

static void fire(struct ktimer *t)
{
    cr_assert_geq(t->deadline_ns, last);
    cr_assert_not(ktimer_armed(t));
    last = t->deadline_ns;
    fired++;
}

Test(ktimer, random_order)
{
    int armed = 0;

    srand(7);
    for (int i = 0; i < LEN; i++)
        cr_assert_eq(ktimer_set(&timers[i], (uint64_t)rand() % 10000, fire), 0);
    for (int i = 0; i < LEN; i++) {
        if (rand() % 3 == 0)
            ktimer_cancel(&timers[i]);
        else if (rand() % 2)
            cr_assert_eq(ktimer_set(&timers[i], (uint64_t)rand() % 10000, fire), 0);
    }
    for (int i = 0; i < LEN; i++)
        armed += ktimer_armed(&timers[i]);
    for (uint64_t now = 0; now < 10000; now += 97) {
        uint64_t next = ktimer_run(now);

        cr_assert_eq(next, ktimer_next());
        cr_assert_gt(next, now);
    }
    ktimer_run(10000);
    cr_assert_eq(fired, armed);
    cr_assert_eq(ktimer_next(), UINT64_MAX);
}

static void again(struct ktimer *t)
{
    if (++fired < 5)
        cr_assert_eq(ktimer_set(t, t->deadline_ns + 10, again), 0);
}

Test(ktimer, rearms_inside_its_callback)
{
    fired = 0;
    cr_assert_eq(ktimer_set(&timers[0], 10, again), 0);
    cr_assert_eq(ktimer_run(39), 40);
    cr_assert_eq(fired, 3);
    ktimer_run(1000);
    cr_assert_eq(fired, 5);
    ktimer_cancel(&timers[0]);
    ktimer_cancel(&timers[0]);
}

Test(ktimer, no_memory)
{
    mem_fail_nth(1);
    cr_assert_eq(ktimer_set(&timers[0], 10, fire), -ENOMEM);
    mem_fail_nth(0);
    cr_assert_not(ktimer_armed(&timers[0]));
}
