/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the mounts of a namespace, for statmount(2), listmount(2) and mountinfo. */
#include "sentry/vfs/mount_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"

uint64_t mntns_id(const struct mntns *ns)
{
    return ns->id;
}

struct mntns *mntns_find_peek(uint64_t id)
{
    struct mount *m;
    list_for_each_entry(m, &mount_all, all_link) {
        if (m->ns && m->ns->id == id)
            return m->ns;
    }
    return NULL;
}

struct mount *mntns_mount_peek(struct mntns *ns, uint64_t unique_id)
{
    struct mount *m;
    list_for_each_entry(m, &ns->mounts, ns_link) {
        if (m->unique_id == unique_id)
            return m;
    }
    return NULL;
}

bool mount_reachable(const struct mount *m, const struct path *root)
{
    const struct dentry *d = m->root;
    while (m != root->mount && m->parent) {
        d = m->mountpoint;
        m = m->parent;
    }
    return m == root->mount && dentry_is_ancestor(root->dentry, d);
}

uint32_t mount_propagates_from(const struct mount *m, const struct path *root)
{
    uint32_t group = m->master_group;
    /* Groups form a chain without rings, of which each has a mount; the bound is for good measure. */
    for (unsigned steps = 0; group && steps < LIMIT_MOUNTS; steps++) {
        const struct mount *at, *member = NULL;
        list_for_each_entry(at, &mount_all, all_link) {
            if (at->peer_group != group)
                continue;
            member = at;
            if (at->ns == m->ns && mount_reachable(at, root))
                return group;
        }
        group = member ? member->master_group : 0;
    }
    return 0;
}

static int mount_query_cmp(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int mntns_list_below(struct mntns *ns, const struct path *top, uint64_t except, uint64_t **ret_ids,
                     unsigned *ret_len)
{
    uint64_t *ids = NEW_ARRAY(uint64_t, ns->count + 1);
    unsigned len = 0;
    if (!ids)
        return -ENOMEM;
    struct mount *m;
    list_for_each_entry(m, &ns->mounts, ns_link) {
        if (m->unique_id != except && mount_reachable(m, top))
            ids[len++] = m->unique_id;
    }
    qsort(ids, len, sizeof(*ids), mount_query_cmp);
    *ret_ids = ids;
    *ret_len = len;
    return 0;
}
