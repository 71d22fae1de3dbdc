/* SPDX-License-Identifier: Apache-2.0 */
/* Guest addresses: a type of their own, so that nobody can dereference one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t v;
} uaddr_t;

#define UADDR(x) ((uaddr_t){(uint64_t)(x)})
#define UADDR_NULL UADDR(0)

static inline bool uaddr_is_null(uaddr_t a)
{
    return a.v == 0;
}

static inline uaddr_t uaddr_add(uaddr_t a, uint64_t offset)
{
    return UADDR(a.v + offset);
}
