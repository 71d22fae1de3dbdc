/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocation: NULL on failure (callers return -ENOMEM), with a fail-nth seam for tests. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

#include "platform/base/compiler.h"

/* Return: size zeroed bytes, or NULL. Owns: caller frees with mem_free. */
MUST_CHECK void *mem_zalloc(size_t size);
/* As mem_zalloc for len elements of size bytes; NULL when the product overflows. */
MUST_CHECK void *mem_calloc(size_t len, size_t size);
/* Resizes p to len elements of size bytes, contents kept, new bytes undefined; p stays on failure. */
MUST_CHECK void *mem_realloc(void *p, size_t len, size_t size);
/* Copies size bytes / a string into new memory; NULL on failure. */
MUST_CHECK void *mem_dup(const void *p, size_t size);
MUST_CHECK char *mem_strdup(const char *s);
MUST_CHECK char *mem_strndup(const char *s, size_t len);
/* Frees p; NULL is fine. */
void mem_free(void *p);

/* Tests only: the nth allocation from now (1 = the next one) fails; 0 turns this off. */
void mem_fail_nth(unsigned n);

#define NEW(type) ((type *)mem_zalloc(sizeof(type)))
#define NEW_ARRAY(type, len) ((type *)mem_calloc((len), sizeof(type)))

static inline void mem_freep_(void *pp)
{
    mem_free(*(void **)pp);
}
/* Frees the pointer at the end of its scope. */
#define CLEANUP_FREE __attribute__((cleanup(mem_freep_)))
