/* SPDX-License-Identifier: Apache-2.0 */
/* User namespace objects and the mapping of ids. */
#include "sentry/core/userns.h"

#include <errno.h>

#include "platform/base/alloc.h"

int userns_new(struct userns *parent, uint32_t owner, uint32_t group, bool setfcap, struct userns **ret_ns)
{
    unsigned level = parent ? parent->level + 1 : 1;
    struct userns *ns;
    int r;

    if (level > USERNS_LEVEL_MAX)
        return -ENOSPC;
    ns = NEW(struct userns);
    if (!ns)
        return -ENOMEM;
    r = ucharge_take(&ns->charge, UCOUNT_USER_NS, parent, owner);
    if (!r && (userns_uid_out(parent, owner) == USERNS_NO_ID || userns_gid_out(parent, group) == USERNS_NO_ID))
        r = -EPERM;
    if (r) {
        ucharge_drop(&ns->charge);
        mem_free(ns);
        return r;
    }
    ref_init(&ns->ref);
    ns->parent = userns_ref(parent);
    ns->level = level;
    ns->owner = owner;
    ns->group = group;
    ns->ino = userns_next_ino();
    ns->setgroups_denied = parent && parent->setgroups_denied;
    ns->parent_setfcap = setfcap;
    for (int i = 0; i < UCOUNT_NS_KINDS; i++)
        ns->ucount_max[i] = INT32_MAX;
    *ret_ns = ns;
    return 0;
}

struct userns *userns_ref(struct userns *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

void userns_unref(struct userns *ns)
{
    /* Depth is bounded, and a loop costs no stack. */
    while (ns && ref_put(&ns->ref)) {
        struct userns *parent = ns->parent;

        for (int i = 0; i < USERNS_ID_KINDS; i++)
            mem_free(ns->maps[i].extents);
        ucharge_drop(&ns->charge);
        mem_free(ns);
        ns = parent;
    }
}

bool userns_contains(const struct userns *outer, const struct userns *ns)
{
    while (!userns_same(outer, ns)) {
        if (userns_is_initial(ns))
            return false;
        ns = ns->parent;
    }
    return true;
}

uint64_t userns_next_ino(void)
{
    /* Where Linux's dynamic ones start. */
    static uint64_t next = 0xf0000010U; /* (k) */

    return next++;
}

/* out: from the initial namespace's ids to those of ns; else the other way. */
static uint32_t map_id(const struct userns *ns, enum userns_ids kind, uint32_t id, bool out)
{
    const struct userns_map *map;

    if (userns_is_initial(ns))
        return id;
    map = &ns->maps[kind];
    for (uint32_t i = 0; i < map->len; i++) {
        const struct userns_extent *e = &map->extents[i];
        uint32_t from = out ? e->lower_first : e->first, to = out ? e->first : e->lower_first;

        if (id >= from && id - from < e->count)
            return to + (id - from);
    }
    return USERNS_NO_ID;
}

uint32_t userns_map_in(const struct userns *ns, enum userns_ids kind, uint32_t id)
{
    return map_id(ns, kind, id, false);
}

uint32_t userns_map_out(const struct userns *ns, enum userns_ids kind, uint32_t id)
{
    return map_id(ns, kind, id, true);
}
