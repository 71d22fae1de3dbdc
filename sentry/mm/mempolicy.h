/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA memory policies on a machine that is shown as one node: checked, kept and told, as a kernel with one node does; there is
 * nowhere else for a page to go. Source: set_mempolicy(2), mbind(2), get_mempolicy(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

/* Newer than the C library's header: the last mode that there is. */
enum { MEMPOLICY_WEIGHTED_INTERLEAVE = 6 };

/* Zero is the default policy. */
struct mempolicy {
    uint16_t mode;  /* MPOL_* */
    uint16_t flags; /* MPOL_F_STATIC_NODES and its kin */
    uint64_t nodes; /* as the guest gave them, where the policy keeps them so; else those of them that are there */
};

/* Policies of ranges: ascending, disjoint. */
enum { MEMPOLICY_RANGES_MAX = 4096 };
struct mempolicy_range {
    uint64_t start, end;
    struct mempolicy policy;
};
struct mempolicy_ranges {
    struct mempolicy_range *at;
    unsigned len;
};

/* Makes a policy of the mode (with its flags) and the first 64 nodes of the guest's mask; more: the mask has others. Return: 0, −EINVAL. */
MUST_CHECK int mempolicy_make(uint32_t mode, uint64_t nodes, bool more, struct mempolicy *ret_policy);
/* What get_mempolicy shows. */
uint32_t mempolicy_mode_shown(const struct mempolicy *p);

/* Gives start to end the policy (the default one: none). Return: 0, −ENOMEM (also for too many ranges). */
MUST_CHECK int mempolicy_set_range(struct mempolicy_ranges *r, uint64_t start, uint64_t end, const struct mempolicy *p);
/* Return: the policy at addr, or NULL. */
const struct mempolicy *mempolicy_find(const struct mempolicy_ranges *r, uint64_t addr);
MUST_CHECK int mempolicy_copy(const struct mempolicy_ranges *from, struct mempolicy_ranges *to); /* −ENOMEM */
void mempolicy_free(struct mempolicy_ranges *r);
