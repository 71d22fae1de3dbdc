/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one parsed document: allocated piece by piece, freed as a whole. */
#pragma once

#include <stddef.h>

#include "platform/base/compiler.h"

struct arena_block;

/* Zero-initialise before use. */
struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes taken of the newest block */
    size_t capacity;            /* bytes in the newest block */
};

/* Return: size zeroed bytes aligned for any type, or NULL. Owns: the arena. */
MUST_CHECK void *arena_alloc(struct arena *a, size_t size);
/* As arena_alloc for len elements of size bytes; NULL when the product overflows. */
MUST_CHECK void *arena_calloc(struct arena *a, size_t len, size_t size);
/* Copies len bytes and adds a NUL. Return: the copy, or NULL. */
MUST_CHECK char *arena_strndup(struct arena *a, const char *s, size_t len);
/* Formats into the arena. Return: the string, or NULL. */
MUST_CHECK char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);
/* Frees everything; the arena is empty and usable again. */
void arena_free(struct arena *a);
