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

/* A group that events on the first one reach, with the place of the one whose slaves it has members among. */
struct propagate_hop {
    uint32_t group;
    unsigned from;        /* index of that one; its own for the first */
    struct mount *source; /* attach: what its members' copies are made from */
};

/* One place where an event on a shared mount repeats. */
struct propagate_dest {
    struct mount *parent; /* borrowed: nothing goes away meanwhile */
    struct mount *tree;   /* attach: the copy for it, owned until attached */
};

struct propagate_work {
    struct propagate_hop *hops;
    unsigned hops_len, hops_capacity;
    struct propagate_dest *dests;
    unsigned len, capacity;
};

static void propagate_work_free(struct propagate_work *w)
{
    mem_free(w->hops);
    mem_free(w->dests);
}

static int propagate_add_hop(struct propagate_work *w, uint32_t group, unsigned from)
{
    for (unsigned i = 0; i < w->hops_len; i++) {
        if (w->hops[i].group == group)
            return 0;
    }
    if (w->hops_len == w->hops_capacity) {
        unsigned capacity = w->hops_capacity ? w->hops_capacity * 2 : 16;
        struct propagate_hop *hops = mem_realloc(w->hops, capacity, sizeof(*hops));
        if (!hops)
            return -ENOMEM;
        w->hops = hops;
        w->hops_capacity = capacity;
    }
    w->hops[w->hops_len++] = (struct propagate_hop){.group = group, .from = from};
    return 0;
}

/* Gathers the groups that are slaves of group, of those, and so on, whether their members see the place of the event or not: a group
 * further down may see it again. */
static int propagate_find_hops(struct propagate_work *w, uint32_t group)
{
    int ret = propagate_add_hop(w, group, 0);
    for (unsigned i = 0; ret == 0 && i < w->hops_len; i++) {
        struct mount *m;
        list_for_each_entry(m, &mount_all, all_link) {
            if (m->master_group == w->hops[i].group && m->peer_group && m->attached)
                ret = propagate_add_hop(w, m->peer_group, i);
            if (ret < 0)
                break;
        }
    }
    return ret;
}

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
    int ret = mount_tree_copy(source, source->root, true, false, kind, &d->tree);
    mount_tree_forget_copies(source);
    if (ret < 0)
        return ret;
    if (kind == MOUNT_COPY_SLAVE && dest->peer_group)
        propagate_share_tree(d->tree);
    return 0;
}

/* The copy that a member of that group has, of which the others get peers. */
static struct mount *propagate_copy_in(const struct propagate_work *w, uint32_t group)
{
    for (unsigned i = 0; group && i < w->len; i++) {
        if (w->dests[i].parent->peer_group == group)
            return w->dests[i].tree;
    }
    return NULL;
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
        if (m->master_group != group || !propagate_receives(m, mp) || propagate_copy_in(w, m->peer_group))
            continue;
        int ret = propagate_copy_to(w, m, source, MOUNT_COPY_SLAVE);
        if (ret < 0)
            return ret;
    }
    return 0;
}

/* Makes all copies. */
static int propagate_copies(struct propagate_work *w, struct mount *tree, struct mount *parent, struct dentry *mp)
{
    int ret = propagate_find_hops(w, parent->peer_group);
    for (unsigned i = 0; ret == 0 && i < w->hops_len; i++) {
        struct propagate_hop *hop = &w->hops[i];
        /* A group that does not see the place hands on what the one above it has. */
        hop->source = i ? propagate_copy_in(w, hop->group) : tree;
        if (!hop->source)
            hop->source = w->hops[hop->from].source;
        ret = propagate_group(w, hop->group, hop->source, mp);
    }
    return ret;
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
    int ret = propagate_copies(&w, tree, parent, mp);
    for (unsigned i = 0; i < w.len; i++) {
        if (ret == 0) {
            struct mount *dest = w.dests[i].parent;
            if (dest->ns && parent->ns && !userns_same(dest->ns->owner, parent->ns->owner))
                mount_tree_lock(w.dests[i].tree);
            mount_tree_attach(w.dests[i].tree, dest, mp);
        } else
            mount_tree_free(w.dests[i].tree);
    }
    propagate_work_free(&w);
    if (ret == 0)
        mount_tree_attach(tree, parent, mp);
    return ret;
}

/* ---- detaching ---- */

/* What an unmount takes along: those mounted in the same places of the receiving mounts. */
struct propagate_twins {
    struct mount **v; /* referenced */
    unsigned len, capacity;
    uint64_t mark; /* mounts that go have it */
};

static bool propagate_goes(const struct propagate_twins *t, const struct mount *m)
{
    return m->umount_mark == t->mark;
}

static void propagate_add_twin(struct propagate_twins *t, struct mount *m)
{
    if (t->len == t->capacity) {
        unsigned capacity = t->capacity ? t->capacity * 2 : 16;
        struct mount **v = mem_realloc(t->v, capacity, sizeof(struct mount *));
        if (!v)
            return; /* the twin stays mounted, which harms nobody */
        t->v = v;
        t->capacity = capacity;
    }
    m->umount_mark = t->mark;
    t->v[t->len++] = mount_ref(m);
}

/* The twins of m, which is about to go. */
static void propagate_find_twins(struct propagate_twins *t, struct mount *m)
{
    struct propagate_work w = {0};
    struct mount *dest;
    if (!m->parent->peer_group || propagate_find_hops(&w, m->parent->peer_group) < 0) {
        propagate_work_free(&w);
        return;
    }
    propagate_pass++;
    m->parent->propagate_pass = propagate_pass;
    for (unsigned i = 0; i < w.hops_len; i++) {
        list_for_each_entry(dest, &mount_all, all_link) {
            if ((dest->peer_group != w.hops[i].group && dest->master_group != w.hops[i].group) ||
                !propagate_receives(dest, m->mountpoint))
                continue;
            dest->propagate_pass = propagate_pass;
            struct mount *twin = mount_lookup(dest, m->mountpoint);
            if (twin && !propagate_goes(t, twin))
                propagate_add_twin(t, twin);
        }
    }
    propagate_work_free(&w);
}

/* Whether a twin may go: locked mounts go with their parents only, and nothing may depend on it but what also goes, or what is tucked
 * on its root. */
static bool propagate_may_go(const struct propagate_twins *t, struct mount *twin)
{
    struct mount *child;
    if (twin->locked && !propagate_goes(t, twin->parent))
        return false;
    list_for_each_entry(child, &twin->children, sibling) {
        if (child->mountpoint != twin->root && !propagate_goes(t, child))
            return false;
    }
    return true;
}

static void propagate_keep_needed(struct propagate_twins *t)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (unsigned i = 0; i < t->len; i++) {
            if (propagate_goes(t, t->v[i]) && !propagate_may_go(t, t->v[i])) {
                t->v[i]->umount_mark = 0;
                changed = true;
            }
        }
    }
}

/* What is tucked on the root of a twin and stays comes to where that was, or, if its parent goes as well, to where that is. The way
 * there may still be full of what goes: it comes to sit on top until it has gone. */
static void propagate_save_topper(const struct propagate_twins *t, struct mount *twin)
{
    struct mount *parent = twin->parent, *topper = mount_lookup(twin, twin->root);
    struct dentry *mp = twin->mountpoint;
    if (!topper || propagate_goes(t, topper))
        return;
    while (parent->parent && propagate_goes(t, parent)) {
        mp = parent->mountpoint;
        parent = parent->parent;
    }
    mp = dentry_ref(mp);
    mount_unplug(topper);
    mount_tree_attach(topper, parent, mp);
    dentry_unref(mp);
}

void propagate_umount(struct mount *m)
{
    static uint64_t last_mark;
    struct propagate_twins t = {.mark = ++last_mark};
    for (struct mount *x = m; x; x = mount_tree_next(x, m))
        x->umount_mark = t.mark;
    for (struct mount *x = m; x; x = mount_tree_next(x, m))
        propagate_find_twins(&t, x);
    propagate_keep_needed(&t);
    mount_tree_dissolve(m);
    for (unsigned i = 0; i < t.len; i++) {
        if (t.v[i]->attached && propagate_goes(&t, t.v[i]))
            propagate_save_topper(&t, t.v[i]);
    }
    for (unsigned i = 0; i < t.len; i++) {
        /* One that was below an earlier one is gone by now. */
        if (t.v[i]->attached && propagate_goes(&t, t.v[i]))
            mount_tree_dissolve(t.v[i]);
        mount_unref(t.v[i]);
    }
    mem_free(t.v);
}
