/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded byte queue between the two sides of a terminal. Holds memory only while it holds bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct tty_ring {
    uint8_t *data;       /* (k) owned; NULL while empty */
    uint32_t capacity;   /* (i) a power of two */
    uint32_t head, tail; /* (k) free-running */
};

void tty_ring_init(struct tty_ring *r, uint32_t capacity);
void tty_ring_clear(struct tty_ring *r);
static inline size_t tty_ring_used(const struct tty_ring *r)
{
    return r->head - r->tail;
}
static inline size_t tty_ring_room(const struct tty_ring *r)
{
    return r->capacity - tty_ring_used(r);
}
/* Appends what fits. Return: bytes taken (0 also on no memory). */
MUST_CHECK size_t tty_ring_put(struct tty_ring *r, const void *p, size_t size);
/* The oldest bytes that lie together. Return: their number. */
MUST_CHECK size_t tty_ring_peek(const struct tty_ring *r, const uint8_t **ret_data);
void tty_ring_consume(struct tty_ring *r, size_t size);
/* Moves up to size bytes out. Return: bytes. */
MUST_CHECK size_t tty_ring_get(struct tty_ring *r, void *p, size_t size);
