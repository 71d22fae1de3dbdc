/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces: whose numbers user and group ids are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

enum { USERNS_EXTENTS = 340, USERNS_DEPTH_MAX = 32 };

struct userns_extent {
    uint32_t first, lower_first, count;
};

struct userns {
    struct ref ref;
    struct userns *parent;    /* (i) referenced; NULL: the initial one */
    unsigned level;           /* (i) 0: the initial one */
    uint32_t owner, group;    /* (i) who made it, in initial ids */
    uint32_t uid_map_len, gid_map_len;
    struct userns_extent *uid_map, *gid_map; /* (k) owned; NULL: the initial namespace's identity */
};

/* Makes the initial namespace, where every id stands for itself. */
MUST_CHECK int userns_new_initial(struct userns **ret_ns);
struct userns *userns_ref(struct userns *ns); /* NULL is fine */
/* NULL stands for the initial one everywhere. */
static inline bool userns_is_initial(const struct userns *ns)
{
    return !ns || !ns->parent;
}
static inline bool userns_same(const struct userns *a, const struct userns *b)
{
    return a == b || (userns_is_initial(a) && userns_is_initial(b));
}
void userns_unref(struct userns *ns);         /* NULL is fine */
