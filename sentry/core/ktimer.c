/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel timers: a binary heap of pointers, ordered by deadline. */
#include "sentry/core/ktimer.h"

#include <errno.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"

/* heap[1] is the earliest; index 0 stays unused so that 0 means "not armed". */
static struct ktimer **heap;
static uint32_t heap_len, heap_capacity;

static void place(struct ktimer *t, uint32_t i)
{
    heap[i] = t;
    t->heap_index = i;
}

static void sift_up(struct ktimer *t, uint32_t i)
{
    while (i > 1 && heap[i / 2]->deadline_ns > t->deadline_ns) {
        place(heap[i / 2], i);
        i /= 2;
    }
    place(t, i);
}

static void sift_down(struct ktimer *t, uint32_t i)
{
    for (;;) {
        uint32_t child = i * 2;

        if (child > heap_len)
            break;
        if (child < heap_len && heap[child + 1]->deadline_ns < heap[child]->deadline_ns)
            child++;
        if (heap[child]->deadline_ns >= t->deadline_ns)
            break;
        place(heap[child], i);
        i = child;
    }
    place(t, i);
}

static void settle(struct ktimer *t, uint32_t i)
{
    if (i > 1 && heap[i / 2]->deadline_ns > t->deadline_ns)
        sift_up(t, i);
    else
        sift_down(t, i);
}

static int make_room(void)
{
    uint32_t capacity;
    struct ktimer **p;

    if (heap_len + 1 < heap_capacity)
        return 0;
    if (heap_len >= LIMIT_KTIMERS)
        return -ENOMEM;
    capacity = heap_capacity ? heap_capacity * 2 : 64;
    p = mem_realloc(heap, capacity, sizeof(struct ktimer *));
    if (!p)
        return -ENOMEM;
    heap = p;
    heap_capacity = capacity;
    return 0;
}

int ktimer_set(struct ktimer *t, uint64_t deadline_ns, void (*fn)(struct ktimer *t))
{
    int r;

    t->fn = fn;
    if (t->heap_index) {
        t->deadline_ns = deadline_ns;
        settle(t, t->heap_index);
        return 0;
    }
    r = make_room();
    if (r)
        return r;
    t->deadline_ns = deadline_ns;
    sift_up(t, ++heap_len);
    return 0;
}

void ktimer_cancel(struct ktimer *t)
{
    uint32_t i = t->heap_index;
    struct ktimer *last;

    if (!i)
        return;
    t->heap_index = 0;
    last = heap[heap_len--];
    if (last != t)
        settle(last, i);
}

bool ktimer_armed(const struct ktimer *t)
{
    return t->heap_index != 0;
}

uint64_t ktimer_next(void)
{
    return heap_len ? heap[1]->deadline_ns : UINT64_MAX;
}

uint64_t ktimer_run(uint64_t now_ns)
{
    while (heap_len && heap[1]->deadline_ns <= now_ns) {
        struct ktimer *t = heap[1];

        ktimer_cancel(t);
        t->fn(t);
    }
    return ktimer_next();
}
