/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA memory policies: what they may be, and which ranges have one. */
#include "sentry/mm/mempolicy.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>

#include "platform/base/alloc.h"

int mempolicy_make(uint32_t mode, uint64_t nodes, bool more, struct mempolicy *ret_policy)
{
    uint32_t flags = mode & MPOL_MODE_FLAGS;
    bool empty = !nodes && !more;

    mode &= ~flags;
    if (mode > MEMPOLICY_WEIGHTED_INTERLEAVE || ((flags & MPOL_F_STATIC_NODES) && (flags & MPOL_F_RELATIVE_NODES)))
        return -EINVAL;
    if ((flags & MPOL_F_NUMA_BALANCING) && mode != MPOL_BIND && mode != MPOL_PREFERRED_MANY)
        return -EINVAL;
    *ret_policy = (struct mempolicy){0};
    if (mode == MPOL_DEFAULT)
        return empty ? 0 : -EINVAL;
    if (mode == MPOL_LOCAL || (mode == MPOL_PREFERRED && empty)) {
        if (!empty || (flags & (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES)))
            return -EINVAL;
        *ret_policy = (struct mempolicy){.mode = MPOL_LOCAL, .flags = (uint16_t)flags};
        return 0;
    }
    /* Relative nodes are counted round and round: any of them is node 0. */
    if (empty || (!(flags & MPOL_F_RELATIVE_NODES) && !(nodes & 1)))
        return -EINVAL;
    if (!(flags & (MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES)))
        nodes = 1;
    *ret_policy = (struct mempolicy){.mode = (uint16_t)mode, .flags = (uint16_t)flags, .nodes = nodes};
    return 0;
}

uint32_t mempolicy_mode_shown(const struct mempolicy *p)
{
    return (uint32_t)p->mode | p->flags;
}

static bool same(const struct mempolicy *a, const struct mempolicy *b)
{
    return a->mode == b->mode && a->flags == b->flags && a->nodes == b->nodes;
}

static void append(struct mempolicy_ranges *r, uint64_t start, uint64_t end, const struct mempolicy *p)
{
    struct mempolicy_range *last = r->len ? &r->at[r->len - 1] : NULL;

    if (start >= end)
        return;
    if (last && last->end == start && same(&last->policy, p))
        last->end = end;
    else
        r->at[r->len++] = (struct mempolicy_range){start, end, *p};
}

int mempolicy_set_range(struct mempolicy_ranges *r, uint64_t start, uint64_t end, const struct mempolicy *p)
{
    struct mempolicy_ranges made = {.at = NEW_ARRAY(struct mempolicy_range, (size_t)r->len + 2)};
    bool done = p->mode == MPOL_DEFAULT;

    if (!made.at)
        return -ENOMEM;
    for (unsigned i = 0; i < r->len; i++) {
        const struct mempolicy_range *old = &r->at[i];
        append(&made, old->start, MIN(old->end, start), &old->policy);
        if (!done && old->end > start) {
            append(&made, start, end, p);
            done = true;
        }
        append(&made, MAX(old->start, end), old->end, &old->policy);
    }
    if (!done)
        append(&made, start, end, p);
    if (made.len > MEMPOLICY_RANGES_MAX) {
        mem_free(made.at);
        return -ENOMEM;
    }
    mem_free(r->at);
    *r = made;
    return 0;
}

const struct mempolicy *mempolicy_find(const struct mempolicy_ranges *r, uint64_t addr)
{
    unsigned low = 0, high = r->len;

    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (addr >= r->at[mid].end)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->len && addr >= r->at[low].start ? &r->at[low].policy : NULL;
}

int mempolicy_copy(const struct mempolicy_ranges *from, struct mempolicy_ranges *to)
{
    *to = (struct mempolicy_ranges){0};
    if (!from->len)
        return 0;
    to->at = NEW_ARRAY(struct mempolicy_range, from->len);
    if (!to->at)
        return -ENOMEM;
    memcpy(to->at, from->at, from->len * sizeof(*to->at));
    to->len = from->len;
    return 0;
}

void mempolicy_free(struct mempolicy_ranges *r)
{
    mem_free(r->at);
    *r = (struct mempolicy_ranges){0};
}
