/* SPDX-License-Identifier: Apache-2.0 */
/* Growable byte buffer. */
#include "platform/base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"

static bool buf_reserve(struct buf *b, size_t more)
{
    size_t need;
    if (b->failed || __builtin_add_overflow(b->size + 1, more, &need)) {
        b->failed = true;
        return false;
    }
    if (need <= b->capacity)
        return true;
    size_t capacity = MAX(need, b->capacity * 2);
    char *data = mem_realloc(b->data, MAX(capacity, (size_t)64), 1);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = MAX(capacity, (size_t)64);
    return true;
}

void buf_append(struct buf *b, const void *p, size_t size)
{
    if (!buf_reserve(b, size))
        return;
    memcpy(b->data + b->size, p, size);
    b->size += size;
    b->data[b->size] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_append(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !buf_reserve(b, (size_t)n + 1)) {
        b->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(b->data + b->size, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->size += (size_t)n;
}

void buf_reset(struct buf *b)
{
    b->size = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

void buf_free(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf){0};
}

int buf_error(const struct buf *b)
{
    return b->failed ? -ENOMEM : 0;
}
