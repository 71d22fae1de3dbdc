/* SPDX-License-Identifier: Apache-2.0 */
/* Reference counts that trap when a dead object is revived or the count overflows. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"

struct ref {
    uint32_t count; /* (k) */
};

static inline void ref_init(struct ref *r)
{
    r->count = 1;
}

static inline void ref_get(struct ref *r)
{
    BUG_ON(r->count == 0 || r->count == UINT32_MAX);
    r->count++;
}

/* Return: true when that was the last reference and the caller must free the object. */
static inline MUST_CHECK bool ref_put(struct ref *r)
{
    BUG_ON(r->count == 0);
    return --r->count == 0;
}
