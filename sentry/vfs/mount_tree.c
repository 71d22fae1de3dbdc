/* SPDX-License-Identifier: Apache-2.0 */
/* The mount tree: objects, places, copies of trees. */
#include "sentry/vfs/mount_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/handle.h"
#include "sentry/vfs/notify.h"

enum { MOUNT_TABLE_BITS = 8 };

struct list mount_all = LIST_INIT(mount_all);
static struct mount *mount_table[1U << MOUNT_TABLE_BITS];
static uint32_t mount_last_id;
/* Never the same number as an id of the other kind, so that mixing them up is noticed. */
static uint64_t mount_last_unique_id = 1ULL << 31;

static struct mount **mount_bucket(const struct mount *parent, const struct dentry *mp)
{
    uint64_t h = ((uintptr_t)parent >> 4) ^ ((uintptr_t)mp >> 4) * 31;
    h *= 0x9e3779b97f4a7c15ULL;
    return &mount_table[h >> (64 - MOUNT_TABLE_BITS)];
}

struct mount *mount_lookup(const struct mount *parent, const struct dentry *mp)
{
    for (struct mount *m = *mount_bucket(parent, mp); m; m = m->hash_next) {
        if (m->parent == parent && m->mountpoint == mp)
            return m;
    }
    return NULL;
}

struct mount *mount_new(OWNS struct dentry *root, unsigned long flags, const char *source)
{
    struct mount *m = NEW(struct mount);
    char *copy = source ? mem_strdup(source) : NULL;
    if (!m || (source && !copy)) {
        mem_free(m);
        mem_free(copy);
        dentry_unref(root);
        return NULL;
    }
    ref_init(&m->ref);
    m->root = root;
    m->sb = superblock_ref(root->sb);
    m->sb->mount_count++;
    m->sb->dead = false;
    m->flags = flags;
    m->source = copy;
    m->id = ++mount_last_id;
    m->unique_id = ++mount_last_unique_id;
    list_init(&m->children);
    list_init(&m->sibling);
    list_init(&m->ns_link);
    list_add_tail(&mount_all, &m->all_link);
    return m;
}

struct mount *mount_new_internal(OWNS struct dentry *root_dentry)
{
    struct mount *m = mount_new(root_dentry, 0, "none");
    if (m)
        m->internal = true;
    return m;
}

struct mount *mount_ref(struct mount *m)
{
    if (m)
        ref_get(&m->ref);
    return m;
}

void mount_unref(struct mount *m)
{
    if (m)
        m->expire_mark = false; /* it was used */
    mount_unref_unused(m);
}

void mount_unref_unused(struct mount *m)
{
    if (!m || !ref_put(&m->ref))
        return;
    BUG_ON(m->attached || m->parent || !list_empty(&m->children));
    propagate_leave_group(m);
    notify_mount_gone(m);
    list_del(&m->all_link);
    struct superblock *sb = m->sb;
    dentry_unref(m->root);
    if (--sb->mount_count == 0) {
        handle_forget_sb(sb);
        notify_sb_gone(sb);
        dentry_shrink_sb(sb);
        sb->dead = true;
    }
    mem_free(m->source);
    mem_free(m);
    superblock_unref(sb);
}

/* ---- places ---- */

static void mount_plug(struct mount *m, struct mount *parent, struct dentry *mp)
{
    m->parent = parent;
    m->mountpoint = dentry_ref(mp);
    mp->mounted++;
    list_add_tail(&parent->children, &m->sibling);
    struct mount **bucket = mount_bucket(parent, mp);
    m->hash_next = *bucket;
    *bucket = m;
}

void mount_unplug(struct mount *m)
{
    if (!m->parent)
        return;
    struct mount **at = mount_bucket(m->parent, m->mountpoint);
    while (*at != m)
        at = &(*at)->hash_next;
    *at = m->hash_next;
    m->hash_next = NULL;
    list_del(&m->sibling);
    m->mountpoint->mounted--;
    m->parent = NULL;
    dentry_unref(TAKE_PTR(m->mountpoint));
}

struct mount *mount_tree_next(struct mount *m, struct mount *top)
{
    if (!list_empty(&m->children))
        return list_first(&m->children, struct mount, sibling);
    while (m != top) {
        if (m->sibling.next != &m->parent->children)
            return list_entry(m->sibling.next, struct mount, sibling);
        m = m->parent;
    }
    return NULL;
}

unsigned mount_tree_len(struct mount *tree)
{
    unsigned len = 0;
    for (struct mount *m = tree; m; m = mount_tree_next(m, tree))
        len++;
    return len;
}

void mount_tree_attach(struct mount *tree, struct mount *parent, struct dentry *mp)
{
    struct mount *occupant = mount_lookup(parent, mp);
    if (occupant)
        mount_unplug(occupant);
    mount_plug(tree, parent, mp);
    for (struct mount *m = tree; m; m = mount_tree_next(m, tree)) {
        m->attached = true;
        if (m->ns == parent->ns)
            continue;
        if (m->ns) {
            list_del(&m->ns_link);
            m->ns->count--;
        }
        m->ns = parent->ns;
        if (m->ns) {
            list_add_tail(&m->ns->mounts, &m->ns_link);
            m->ns->count++;
        }
    }
    if (occupant)
        mount_plug(occupant, tree, tree->root);
    if (parent->ns)
        mntns_touch(parent->ns);
}

void mount_tree_dissolve(struct mount *tree)
{
    struct mntns *ns = tree->ns;
    mount_unplug(tree);
    /* Last in pre-order first, so that each one has no children left when it goes. */
    for (;;) {
        struct mount *m = tree;
        while (!list_empty(&m->children))
            m = list_last(&m->children, struct mount, sibling);
        mount_unplug(m);
        if (m->ns) {
            list_del(&m->ns_link);
            m->ns->count--;
            m->ns = NULL;
        }
        propagate_leave_group(m);
        m->master_group = 0;
        m->attached = false;
        bool last = m == tree;
        mount_unref(m);
        if (last)
            break;
    }
    if (ns)
        mntns_touch(ns);
}

void mount_tree_free(struct mount *tree)
{
    if (tree)
        mount_tree_dissolve(tree);
}

/* ---- copies ---- */

static struct mount *mount_copy(struct mount *m, struct dentry *root, enum mount_copy_kind kind)
{
    struct mount *c = mount_new(dentry_ref(root), m->flags, m->source);
    if (!c)
        return NULL;
    c->locked = m->locked;
    c->locked_flags = m->locked_flags;
    c->unbindable = m->unbindable;
    if (kind == MOUNT_COPY_PEER) {
        c->peer_group = m->peer_group;
        c->master_group = m->master_group;
    } else if (kind == MOUNT_COPY_SLAVE) {
        c->master_group = m->peer_group ? m->peer_group : m->master_group;
    }
    m->copy = c;
    return c;
}

void mount_tree_forget_copies(struct mount *m)
{
    for (struct mount *at = m; at; at = mount_tree_next(at, m))
        at->copy = NULL;
}

void mount_tree_lock(struct mount *top)
{
    for (struct mount *m = top; m; m = mount_tree_next(m, top)) {
        /* The times are locked whatever they are: their bits here say only that. */
        m->locked_flags |= (m->flags & MOUNT_LOCKABLE) | MOUNT_ATIME;
        m->locked = m->locked || m != top;
    }
}

/* Next in pre-order without going below m. */
static struct mount *mount_tree_skip(struct mount *m, struct mount *top)
{
    while (m != top) {
        if (m->sibling.next != &m->parent->children)
            return list_entry(m->sibling.next, struct mount, sibling);
        m = m->parent;
    }
    return NULL;
}

int mount_tree_copy(struct mount *m, struct dentry *root, bool recursive, bool skip_unbindable,
                    enum mount_copy_kind kind, struct mount **ret_tree)
{
    mount_tree_forget_copies(m);
    struct mount *tree = mount_copy(m, root, kind);
    if (!tree)
        return -ENOMEM;
    tree->locked = false;
    struct mount *at = recursive ? mount_tree_next(m, m) : NULL;
    while (at) {
        bool visible = at->parent != m || dentry_is_ancestor(root, at->mountpoint);
        if (!visible || (skip_unbindable && at->unbindable)) {
            at = mount_tree_skip(at, m);
            continue;
        }
        struct mount *c = mount_copy(at, at->root, kind);
        if (!c) {
            mount_tree_free(tree);
            mount_tree_forget_copies(m);
            return -ENOMEM;
        }
        mount_plug(c, at->parent->copy, at->mountpoint);
        at = mount_tree_next(at, m);
    }
    *ret_tree = tree;
    return 0;
}

/* ---- paths ---- */

struct path path_ref(struct path p)
{
    mount_ref(p.mount);
    if (p.dentry)
        dentry_ref(p.dentry);
    return p;
}

void path_unref(struct path *p)
{
    struct dentry *d = TAKE_PTR(p->dentry);
    struct mount *m = TAKE_PTR(p->mount);
    dentry_unref(d);
    mount_unref(m);
}

void mount_follow_down(struct path *p)
{
    while (p->dentry->mounted) {
        struct mount *m = mount_lookup(p->mount, p->dentry);
        if (!m)
            return;
        struct path down = {mount_ref(m), dentry_ref(m->root)};
        path_unref(p);
        *p = down;
    }
}

bool mount_follow_up(struct path *p)
{
    struct mount *m = p->mount;
    if (!m->parent)
        return false;
    struct path up = {mount_ref(m->parent), dentry_ref(m->mountpoint)};
    path_unref(p);
    *p = up;
    return true;
}

int mount_want_write(const struct mount *m)
{
    return m && ((m->flags | m->sb->flags) & MS_RDONLY) ? -EROFS : 0;
}
