/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed as a whole. */
#include "oci/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"

#define ARENA_BLOCK_SIZE ((size_t)16 << 10)

struct arena_block {
    struct arena_block *next;
    _Alignas(16) char data[];
};

void *arena_alloc(struct arena *a, size_t size)
{
    size_t need;
    if (__builtin_add_overflow(size, 15, &need))
        return NULL;
    need &= ~(size_t)15;
    if (!a->blocks || need > a->capacity - a->used) {
        size_t capacity = MAX(need, ARENA_BLOCK_SIZE);
        struct arena_block *block = mem_zalloc(sizeof(*block) + capacity);
        if (!block)
            return NULL;
        block->next = a->blocks;
        a->blocks = block;
        a->used = 0;
        a->capacity = capacity;
    }
    void *p = a->blocks->data + a->used;
    a->used += need;
    return p;
}

void *arena_calloc(struct arena *a, size_t len, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(len, size, &total))
        return NULL;
    return arena_alloc(a, total);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *copy = arena_alloc(a, len + 1);
    if (copy && len)
        memcpy(copy, s, len);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return NULL;
    char *s = arena_alloc(a, (size_t)n + 1);
    if (!s)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}

void arena_free(struct arena *a)
{
    struct arena_block *block = a->blocks;
    while (block) {
        struct arena_block *next = block->next;
        mem_free(block);
        block = next;
    }
    *a = (struct arena){0};
}
