/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded byte queue between the two sides of a terminal. */
#include "sentry/fs/tty_ring.h"

#include <string.h>

#include "platform/base/alloc.h"

void tty_ring_init(struct tty_ring *r, uint32_t capacity)
{
    *r = (struct tty_ring){.capacity = capacity};
}

void tty_ring_clear(struct tty_ring *r)
{
    mem_free(r->data);
    r->data = NULL;
    r->head = r->tail = 0;
}

size_t tty_ring_put(struct tty_ring *r, const void *p, size_t size)
{
    const uint8_t *from = p;
    size_t n = MIN(size, tty_ring_room(r)), done = 0;

    if (n == 0)
        return 0;
    if (!r->data) {
        r->data = mem_zalloc(r->capacity);
        if (!r->data)
            return 0;
    }
    while (done < n) {
        uint32_t at = r->head & (r->capacity - 1);
        size_t part = MIN(n - done, (size_t)(r->capacity - at));

        memcpy(r->data + at, from + done, part);
        r->head += (uint32_t)part;
        done += part;
    }
    return n;
}

size_t tty_ring_peek(const struct tty_ring *r, const uint8_t **ret_data)
{
    uint32_t at = r->tail & (r->capacity - 1);

    *ret_data = r->data + at;
    return MIN(tty_ring_used(r), (size_t)(r->capacity - at));
}

void tty_ring_consume(struct tty_ring *r, size_t size)
{
    BUG_ON(size > tty_ring_used(r));
    r->tail += (uint32_t)size;
    if (r->head == r->tail)
        tty_ring_clear(r);
}

size_t tty_ring_get(struct tty_ring *r, void *p, size_t size)
{
    uint8_t *to = p;
    size_t done = 0;

    while (done < size && tty_ring_used(r)) {
        const uint8_t *from;
        size_t part = MIN(tty_ring_peek(r, &from), size - done);

        memcpy(to + done, from, part);
        done += part;
        tty_ring_consume(r, part);
    }
    return done;
}
