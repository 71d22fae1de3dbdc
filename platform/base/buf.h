/* SPDX-License-Identifier: Apache-2.0 */
/* Growable byte buffer and string builder with a sticky out-of-memory state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "platform/base/compiler.h"

/* Zero-initialise before use. data is NUL-terminated whenever it is not NULL. */
struct buf {
    char *data;
    size_t size;     /* bytes in use, without the NUL */
    size_t capacity; /* bytes allocated */
    bool failed;     /* an allocation failed; later appends do nothing */
};

void buf_append(struct buf *b, const void *p, size_t size);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* Drops the contents, keeps the memory. */
void buf_reset(struct buf *b);
void buf_free(struct buf *b);
/* Return: 0, or -ENOMEM when any append failed. */
MUST_CHECK int buf_error(const struct buf *b);

#define CLEANUP_BUF __attribute__((cleanup(buf_free)))
