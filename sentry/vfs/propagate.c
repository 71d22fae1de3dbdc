/* SPDX-License-Identifier: Apache-2.0 */
/* Mount propagation: shared, slave, private and unbindable mounts.
 *
 * Groups are numbers, and a group's members are found by going through all mounts: there are few, and mounting is rare.
 * Work that spreads from group to group goes through a list instead of recursion. */
#include "sentry/vfs/mount_priv.h"

#include <errno.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"

static uint32_t propagate_last_group;
static uint64_t propagate_pass;

uint32_t propagate_new_group(void)
{
    return ++propagate_last_group;
}

/* ---- changing the type ---- */

static struct mount *propagate_any_peer(uint32_t group, const struct mount *except)
{
    struct mount *m;
    list_for_each_entry(m, &mount_all, all_link) {
        if (m != except && m->peer_group == group)
            return m;
    }
    return NULL;
}

void propagate_leave_group(struct mount *m)
{
    uint32_t group = m->peer_group;
    if (!group)
        return;
    m->peer_group = 0;
    if (propagate_any_peer(group, m))
        return;
    struct mount *slave;
    list_for_each_entry(slave, &mount_all, all_link) {
        if (slave->master_group == group)
            slave->master_group = m->master_group;
    }
}

void propagate_set_type(struct mount *m, unsigned long type)
{
    if (type == MS_SHARED) {
        if (!m->peer_group)
            m->peer_group = propagate_new_group();
        m->unbindable = false;
        return;
    }
    uint32_t group = m->peer_group;
    bool has_peers = group && propagate_any_peer(group, m);
    propagate_leave_group(m);
    if (type == MS_SLAVE) {
        if (has_peers)
            m->master_group = group;
        m->unbindable = false;
    } else {
        m->master_group = 0;
        m->unbindable = type == MS_UNBINDABLE;
    }
}

/* ---- who receives ---- */

/* One place where an event on a shared mount repeats. */
struct propagate_dest {
    struct mount *parent; /* attach: borrowed (nothing goes away meanwhile); umount: referenced */
    struct mount *tree;   /* attach: the copy for it, owned until attached */
    struct mount *source; /* the tree it was copied from */
};

struct propagate_work {
    struct propagate_dest *dests;
    unsigned len, capacity;
};

static struct propagate_dest *propagate_add(struct propagate_work *w, struct mount *parent)
{
    if (w->len == w->capacity) {
        unsigned capacity = w->capacity ? w->capacity * 2 : 16;
        struct propagate_dest *dests = mem_realloc(w->dests, capacity, sizeof(*dests));
        if (!dests)
            return NULL;
        w->dests = dests;
        w->capacity = capacity;
    }
    parent->propagate_pass = propagate_pass;
    w->dests[w->len] = (struct propagate_dest){.parent = parent};
    return &w->dests[w->len++];
}

static bool propagate_receives(const struct mount *m, const struct dentry *mp)
{
    return m->attached && m->propagate_pass != propagate_pass && m->sb == mp->sb &&
           dentry_is_ancestor(m->root, mp);
}

static void propagate_share_tree(struct mount *tree)
{
    for (struct mount *m = tree; m; m = mount_tree_next(m, tree)) {
        if (!m->peer_group && !m->unbindable)
            m->peer_group = propagate_new_group();
    }
}

/* ---- attaching ---- */

static int propagate_copy_to(struct propagate_work *w, struct mount *dest, struct mount *source,
                             enum mount_copy_kind kind)
{
    if (dest->ns && dest->ns->count + mount_tree_len(source) > LIMIT_MOUNTS)
        return -ENOSPC;
    struct propagate_dest *d = propagate_add(w, dest);
    if (!d)
        return -ENOMEM;
    d->source = source;
    int ret = mount_tree_copy(source, source->root, true, false, kind, &d->tree);
    mount_tree_forget_copies(source);
    if (ret < 0)
        return ret;
    if (kind == MOUNT_COPY_SLAVE && dest->peer_group)
        propagate_share_tree(d->tree);
    return 0;
}

/* Whether a member of that group has its copy: then the others get theirs as its peers. */
static bool propagate_entered(const struct propagate_work *w, uint32_t group)
{
    for (unsigned i = 0; group && i < w->len; i++) {
        if (w->dests[i].parent->peer_group == group)
            return true;
    }
    return false;
}

/* Copies for the peers of group, which look like source, and for its direct slaves. */
static int propagate_group(struct propagate_work *w, uint32_t group, struct mount *source, struct dentry *mp)
{
    struct mount *m;
    list_for_each_entry(m, &mount_all, all_link) {
        if (m->peer_group != group || !propagate_receives(m, mp))
            continue;
        int ret = propagate_copy_to(w, m, source, MOUNT_COPY_PEER);
        if (ret < 0)
            return ret;
    }
    list_for_each_entry(m, &mount_all, all_link) {
        if (m->master_group != group || !propagate_receives(m, mp) || propagate_entered(w, m->peer_group))
            continue;
        int ret = propagate_copy_to(w, m, source, MOUNT_COPY_SLAVE);
        if (ret < 0)
            return ret;
    }
    return 0;
}

int propagate_attach(struct mount *tree, struct mount *parent, struct dentry *mp)
{
    if (!parent->peer_group) {
        mount_tree_attach(tree, parent, mp);
        return 0;
    }
    struct propagate_work w = {0};
    propagate_pass++;
    propagate_share_tree(tree);
    /* Mounts of the new tree itself are unattached and so receive nothing. */
    parent->propagate_pass = propagate_pass;
    int ret = propagate_group(&w, parent->peer_group, tree, mp);
    for (unsigned i = 0; ret == 0 && i < w.len; i++) {
        /* Each further group is entered through the first of its members that was reached as a slave. */
        struct mount *dest = w.dests[i].parent;
        if (dest->peer_group && dest->peer_group != parent->peer_group)
            ret = propagate_group(&w, dest->peer_group, w.dests[i].tree, mp);
    }
    for (unsigned i = 0; i < w.len; i++) {
        if (ret == 0) {
            struct mount *dest = w.dests[i].parent;
            if (dest->ns && parent->ns && !userns_same(dest->ns->owner, parent->ns->owner))
                mount_tree_lock(w.dests[i].tree);
            mount_tree_attach(w.dests[i].tree, dest, mp);
        } else
            mount_tree_free(w.dests[i].tree);
    }
    mem_free(w.dests);
    if (ret == 0)
        mount_tree_attach(tree, parent, mp);
    return ret;
}

/* ---- detaching ---- */

static void propagate_find_group(struct propagate_work *w, uint32_t group, struct dentry *mp)
{
    struct mount *m;
    list_for_each_entry(m, &mount_all, all_link) {
        if ((m->peer_group != group && m->master_group != group) || !propagate_receives(m, mp))
            continue;
        if (!propagate_add(w, m))
            return; /* no memory: the twin stays mounted, which harms nobody */
        mount_ref(m);
    }
}

/* The twin at dest goes when nothing but a mount tucked on its root depends on it. */
static void propagate_drop_twin(struct mount *dest, struct dentry *mp, struct dentry *root)
{
    struct mount *twin = dest->attached ? mount_lookup(dest, mp) : NULL;
    if (!twin || twin->root != root || twin->locked)
        return;
    struct mount *topper = mount_lookup(twin, twin->root);
    if (topper) {
        mount_unplug(topper);
        mount_tree_dissolve(twin);
        mount_tree_attach(topper, dest, mp);
    } else {
        mount_tree_dissolve(twin);
    }
}

void propagate_umount(struct mount *m)
{
    struct mount *parent = m->parent;
    struct propagate_work w = {0};
    struct dentry *mp = dentry_ref(m->mountpoint), *root = dentry_ref(m->root);
    if (parent->peer_group) {
        propagate_pass++;
        parent->propagate_pass = propagate_pass;
        propagate_find_group(&w, parent->peer_group, mp);
        for (unsigned i = 0; i < w.len; i++) {
            if (w.dests[i].parent->peer_group)
                propagate_find_group(&w, w.dests[i].parent->peer_group, mp);
        }
    }
    mount_tree_dissolve(m);
    for (unsigned i = 0; i < w.len; i++) {
        /* A destination may itself have been below an earlier twin and be gone: then it is not attached. */
        propagate_drop_twin(w.dests[i].parent, mp, root);
        mount_unref(w.dests[i].parent);
    }
    mem_free(w.dests);
    dentry_unref(mp);
    dentry_unref(root);
}
