/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocation with a fail-nth seam. */
#include "platform/base/alloc.h"

#include <string.h>

static unsigned mem_fail_countdown;

void mem_fail_nth(unsigned n)
{
    mem_fail_countdown = n;
}

static int mem_should_fail(void)
{
    return unlikely(mem_fail_countdown != 0) && --mem_fail_countdown == 0;
}

void *mem_zalloc(size_t size)
{
    if (mem_should_fail())
        return NULL;
    return calloc(1, size ? size : 1);
}

void *mem_calloc(size_t len, size_t size)
{
    if (mem_should_fail())
        return NULL;
    return calloc(len ? len : 1, size ? size : 1);
}

void *mem_realloc(void *p, size_t len, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(len, size, &total) || mem_should_fail())
        return NULL;
    return realloc(p, total ? total : 1);
}

void *mem_dup(const void *p, size_t size)
{
    void *copy = mem_zalloc(size);
    if (copy)
        memcpy(copy, p, size);
    return copy;
}

char *mem_strndup(const char *s, size_t len)
{
    len = strnlen(s, len);
    char *copy = mem_zalloc(len + 1);
    if (copy)
        memcpy(copy, s, len);
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
    free(p);
}
