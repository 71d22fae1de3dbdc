/* SPDX-License-Identifier: Apache-2.0 */
/* The dentry cache.
 *
 * Invariants. A hashed dentry holds one reference for the table, so "unused" is a count of 1 while hashed; those sit on
 * the LRU list and are what the bound is about. Every dentry references its parent, so a parent outlives its children
 * and is never unused before them. Exactly the hashed children are on parent->children. */
#include "sentry/vfs/dentry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/dentry_priv.h"
#include "sentry/vfs/handle.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/notify.h"
#include "sentry/vfs/path_walk.h"

static struct dentry *dentry_table[1U << DENTRY_TABLE_BITS];
static struct list dentry_lru = LIST_INIT(dentry_lru);
static uint32_t dentry_lru_len, dentry_lru_max = DENTRY_LRU_MAX, dentry_total;

uint32_t dentry_count(void)
{
    return dentry_total;
}

uint32_t dentry_unused_count(void)
{
    return dentry_lru_len;
}

uint32_t dentry_hash_name(const char *name, size_t len)
{
    uint64_t h = DENTRY_HASH_SEED;
    for (size_t i = 0; i < len; i++)
        h = dentry_hash_step(h, (unsigned char)name[i]);
    return dentry_hash_end(h);
}

static struct dentry **dentry_bucket(const struct dentry *parent, uint32_t hash)
{
    uint64_t h = ((uintptr_t)parent >> 4) + hash;
    h *= 0x9e3779b97f4a7c15ULL;
    return &dentry_table[h >> (64 - DENTRY_TABLE_BITS)];
}

/* ---- object ---- */

static bool dentry_set_name(struct dentry *d, const char *name, size_t len)
{
    char *to = d->inline_name;
    if (len >= sizeof(d->inline_name)) {
        to = mem_zalloc(len + 1);
        if (!to)
            return false;
    }
    char *old = d->name;
    memcpy(to, name, len);
    to[len] = '\0';
    if (old && old != d->inline_name)
        mem_free(old);
    d->name = to;
    d->name_len = (uint16_t)len;
    d->hash = dentry_hash_name(to, len);
    return true;
}

/* parent NULL: a root. The result has count 1 and is not hashed. */
static struct dentry *dentry_alloc(struct superblock *sb, struct dentry *parent, const char *name, size_t len)
{
    struct dentry *d = NEW(struct dentry);
    if (!d)
        return NULL;
    if (!dentry_set_name(d, name, len)) {
        mem_free(d);
        return NULL;
    }
    ref_init(&d->ref);
    d->parent = parent ? dentry_ref(parent) : d;
    d->sb = superblock_ref(sb);
    list_init(&d->children);
    list_init(&d->sibling);
    list_init(&d->alias);
    list_init(&d->lru);
    dentry_total++;
    return d;
}

static void dentry_set_inode(struct dentry *d, OWNS struct inode *inode)
{
    d->inode = inode;
    list_add(&inode->dentries, &d->alias);
}

static void dentry_inode_removed(struct inode *inode)
{
    notify_inode(inode, IN_DELETE_SELF);
    notify_inode_gone(inode);
}

static void dentry_drop_inode(struct dentry *d)
{
    struct inode *inode = TAKE_PTR(d->inode);
    if (!inode)
        return;
    list_del(&d->alias);
    if (inode->nlink == 0 && list_empty(&inode->dentries))
        dentry_inode_removed(inode);
    inode_unref(inode);
}

static void dentry_lru_del(struct dentry *d)
{
    if (list_empty(&d->lru))
        return;
    list_del(&d->lru);
    dentry_lru_len--;
}

/* Frees d; the caller then owes one dentry_unref to the returned parent (NULL: none). */
static struct dentry *dentry_free(struct dentry *d)
{
    struct dentry *parent = d->parent != d ? d->parent : NULL;
    struct superblock *sb = d->sb;
    dentry_lru_del(d);
    dentry_drop_inode(d);
    if (d->name != d->inline_name)
        mem_free(d->name);
    mem_free(d);
    dentry_total--;
    superblock_unref(sb);
    return parent;
}

static void dentry_hash(struct dentry *d)
{
    struct dentry **bucket = dentry_bucket(d->parent, d->hash);
    d->hash_next = *bucket;
    if (d->hash_next)
        d->hash_next->hash_pprev = &d->hash_next;
    *bucket = d;
    d->hash_pprev = bucket;
    list_add_tail(&d->parent->children, &d->sibling);
}

static void dentry_unhash_keep_ref(struct dentry *d)
{
    *d->hash_pprev = d->hash_next;
    if (d->hash_next)
        d->hash_next->hash_pprev = d->hash_pprev;
    d->hash_next = NULL;
    d->hash_pprev = NULL;
    list_del(&d->sibling);
}

/* Gives the table's reference back, too: the caller must hold one of its own. */
static void dentry_unhash(struct dentry *d)
{
    if (!d->hash_pprev)
        return;
    dentry_unhash_keep_ref(d);
    dentry_lru_del(d);
    BUG_ON(ref_put(&d->ref));
}

/* Takes an unused dentry out of the cache. Return: the parent, which is owed an unref. */
static struct dentry *dentry_kill_unused(struct dentry *d)
{
    if (d->inode)
        d->parent->child_evictions++;
    dentry_unhash_keep_ref(d);
    bool last = ref_put(&d->ref);
    BUG_ON(!last);
    return dentry_free(d);
}

static bool dentry_keeps_unused(const struct dentry *d)
{
    return !d->sb->no_dcache && !d->sb->dead && (d->inode || !d->sb->no_dcache_negative);
}

/* Drops one reference without looking at the bound. Loops up the parents instead of recursing: trees can be deep. */
static void dentry_put(struct dentry *d)
{
    while (d) {
        if (ref_put(&d->ref)) {
            d = dentry_free(d);
            continue;
        }
        if (d->ref.count != 1 || !d->hash_pprev)
            return;
        if (dentry_keeps_unused(d)) {
            if (list_empty(&d->lru)) {
                list_add_tail(&dentry_lru, &d->lru);
                dentry_lru_len++;
                d->lru_referenced = false;
            } else {
                d->lru_referenced = true;
            }
            return;
        }
        d = dentry_kill_unused(d);
    }
}

/* Second chance: a dentry used since it was queued goes round once more. */
static void dentry_evict_one(bool force)
{
    struct dentry *d = list_first(&dentry_lru, struct dentry, lru);
    if (d->ref.count != 1) {
        dentry_lru_del(d);
        d->lru_referenced = false;
    } else if (d->lru_referenced && !force) {
        d->lru_referenced = false;
        list_del(&d->lru);
        list_add_tail(&dentry_lru, &d->lru);
    } else {
        dentry_put(dentry_kill_unused(d));
    }
}

static void dentry_check_bound(void)
{
    /* What goes may let go of dentries of other file systems (an overlay's of its layers): those are for the loop that runs. */
    static bool busy;
    if (busy)
        return;
    busy = true;
    /* A few steps beyond what came in, so that second chances can't hold the bound off for ever. */
    for (unsigned i = 0; unlikely(dentry_lru_len > dentry_lru_max && !list_empty(&dentry_lru)); i++)
        dentry_evict_one(i >= 16);
    busy = false;
}

struct dentry *dentry_ref(struct dentry *d)
{
    ref_get(&d->ref);
    return d;
}

void dentry_unref(struct dentry *d)
{
    if (!d)
        return;
    /* The common case: others hold it as well (a directory with cached children, an open file). */
    if (likely(d->ref.count > 2)) {
        d->ref.count--;
        return;
    }
    dentry_put(d);
    dentry_check_bound();
}

void dentry_set_limit(uint32_t max)
{
    dentry_lru_max = max;
    dentry_check_bound();
}

void dentry_shrink(uint32_t keep)
{
    while (dentry_lru_len > keep && !list_empty(&dentry_lru))
        dentry_evict_one(true);
}

void dentry_shrink_sb(struct superblock *sb)
{
    bool again = true;
    while (again) {
        again = false;
        /* Set aside first: what goes may take others off the list, whose order is nobody's promise. */
        struct list mine = LIST_INIT(mine);
        struct dentry *d, *tmp;
        list_for_each_entry_safe(d, tmp, &dentry_lru, lru) {
            if (d->sb != sb)
                continue;
            list_del(&d->lru);
            list_add_tail(&mine, &d->lru);
        }
        while (!list_empty(&mine)) {
            d = list_first(&mine, struct dentry, lru);
            if (d->ref.count != 1) {
                dentry_lru_del(d); /* in use: it comes back when it is not */
                continue;
            }
            /* The parent may become unused in turn and joins at the tail. */
            dentry_put(dentry_kill_unused(d));
            again = true;
        }
    }
}

struct dentry *dentry_new_root(OWNS struct inode *inode)
{
    struct dentry *d = dentry_alloc(inode->sb, NULL, "", 0);
    if (!d) {
        inode_unref(inode);
        return NULL;
    }
    dentry_set_inode(d, inode);
    return d;
}

struct dentry *dentry_new_detached(OWNS struct inode *inode, const char *name)
{
    struct dentry *d = dentry_alloc(inode->sb, NULL, name, MIN(strlen(name), (size_t)NAME_LEN_MAX));
    if (!d) {
        inode_unref(inode);
        return NULL;
    }
    d->detached = true;
    dentry_set_inode(d, inode);
    return d;
}

struct dentry *dentry_new_unlinked(struct dentry *parent, OWNS struct inode *inode)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "#%llu", (unsigned long long)inode->ino);
    struct dentry *d = dentry_alloc(inode->sb, parent, name, (size_t)len);
    if (!d) {
        inode_unref(inode);
        return NULL;
    }
    d->deleted = true;
    dentry_set_inode(d, inode);
    return d;
}

/* ---- look-up ---- */

struct dentry *dentry_peek(struct dentry *parent, const char *name, size_t len, uint32_t hash)
{
    for (struct dentry *d = *dentry_bucket(parent, hash); d; d = d->hash_next) {
        if (d->hash == hash && d->parent == parent && d->name_len == len && !memcmp(d->name, name, len))
            return d;
    }
    return NULL;
}

struct dentry *dentry_find(struct dentry *parent, const char *name, size_t len)
{
    struct dentry *d = dentry_peek(parent, name, len, dentry_hash_name(name, len));
    return d ? dentry_ref(d) : NULL;
}

/* A new hashed child with a reference for the caller. Takes its own reference of inode (NULL: negative). */
static struct dentry *dentry_add_child(struct dentry *parent, const char *name, size_t len,
                                       struct inode *inode)
{
    struct dentry *d = dentry_alloc(parent->sb, parent, name, len);
    if (!d)
        return NULL;
    if (inode)
        dentry_set_inode(d, inode_ref(inode));
    dentry_hash(d);
    ref_get(&d->ref); /* the table's */
    return d;
}

void dentry_prime(struct dentry *parent, const char *name, size_t len, struct inode *inode)
{
    if (parent->deleted || !len || len > NAME_LEN_MAX || (!inode && parent->sb->no_dcache_negative))
        return;
    if (dentry_peek(parent, name, len, dentry_hash_name(name, len)))
        return;
    dentry_unref(dentry_add_child(parent, name, len, inode));
}

/* Asks the file system whether the cached child d is still good. Return: 1, 0 (d was dropped), −errno. */
static int dentry_revalidate(struct ctx *ctx, struct dentry *parent, struct dentry *d)
{
    struct inode *inode = d->inode ? inode_ref(d->inode) : NULL;
    int ret = parent->inode->ops->revalidate(ctx, parent->inode, d->name, inode);
    /* It may have changed meanwhile by our own doing; then it is as fresh as can be. */
    if (ret == 0 && d->inode == inode && !d->mounted)
        dentry_invalidate(d);
    else if (ret == 0)
        ret = 1;
    inode_unref(inode);
    return ret;
}

static int dentry_find_fresh(struct ctx *ctx, struct dentry *parent, const char *name, size_t len,
                             struct dentry **ret_dentry)
{
    struct dentry *d = dentry_find(parent, name, len);
    if (!d)
        return 0;
    if (parent->inode->ops->revalidate) {
        int ret = dentry_revalidate(ctx, parent, d);
        if (ret <= 0) {
            dentry_unref(d);
            return ret;
        }
    }
    *ret_dentry = d;
    return 1;
}

/* Asks the file system. Return: 0, −errno, or 1 when the directory changed meanwhile, so that the answer may be older. */
static int dentry_ask(struct ctx *ctx, struct dentry *parent, const char *name, size_t len,
                      struct dentry **ret_dentry)
{
    uint32_t seq = parent->dir_seq;
    struct inode *inode = NULL;
    int ret = parent->inode->ops->lookup(ctx, parent->inode, name, &inode);
    if (ret < 0 && ret != -ENOENT)
        return ret;
    struct dentry *d = dentry_find(parent, name, len);
    if (!d) {
        if (seq == parent->dir_seq && !parent->deleted)
            d = dentry_add_child(parent, name, len, inode);
        ret = parent->deleted ? -ENOENT : seq != parent->dir_seq ? 1 : -ENOMEM;
    }
    inode_unref(inode);
    if (!d)
        return ret;
    *ret_dentry = d;
    return 0;
}

int dentry_lookup(struct ctx *ctx, struct dentry *parent, const char *name, size_t len,
                  struct dentry **ret_dentry)
{
    if (len > NAME_LEN_MAX)
        return -ENAMETOOLONG;
    if (!parent->inode || !inode_is_dir(parent->inode))
        return -ENOTDIR;
    int ret = dentry_find_fresh(ctx, parent, name, len, ret_dentry);
    if (ret)
        return ret < 0 ? ret : 0;
    if (parent->deleted)
        return -ENOENT;
    if (!parent->inode->ops->lookup)
        return -ENOTDIR;
    char zname[NAME_LEN_MAX + 1];
    memcpy(zname, name, len);
    zname[len] = '\0';
    ret = dentry_ask(ctx, parent, zname, len, ret_dentry);
    if (ret != 1)
        return ret;
    /* The directory changed under our feet, so we are not the one who holds its lock: ask again where it can't. */
    sleeplock_take(ctx, &parent->inode->dir_lock);
    ret = dentry_ask(ctx, parent, zname, len, ret_dentry);
    sleeplock_release(&parent->inode->dir_lock);
    return ret == 1 ? -ESTALE : ret;
}

/* ---- changes ---- */

void dentry_instantiate(struct dentry *d, OWNS struct inode *inode)
{
    d->parent->dir_seq++;
    if (d->inode) {
        inode_unref(inode);
        return;
    }
    dentry_set_inode(d, inode);
}

/* What is cached below a removed directory can only be negative. */
static void dentry_drop_children(struct dentry *d)
{
    while (!list_empty(&d->children)) {
        struct dentry *child = dentry_ref(list_first(&d->children, struct dentry, sibling));
        dentry_unhash(child);
        dentry_unref(child);
    }
}

void dentry_delete(struct dentry *d)
{
    d->parent->dir_seq++;
    handle_forget(d);
    if (d->inode && inode_is_dir(d->inode))
        dentry_drop_children(d);
    if (d->hash_pprev && d->ref.count == 2 && !d->sb->no_dcache_negative) {
        /* Only the caller and the table know it: it can say "no such name" from now on. */
        dentry_drop_inode(d);
        return;
    }
    bool was_hashed = d->hash_pprev != NULL;
    dentry_unhash(d);
    d->deleted = true;
    if (was_hashed && !d->sb->no_dcache_negative && !d->parent->deleted)
        dentry_unref(dentry_add_child(d->parent, d->name, d->name_len, NULL));
}

static void dentry_drop_cached(struct dentry *parent, const char *name, size_t len)
{
    struct dentry *d = dentry_find(parent, name, len);
    if (!d)
        return;
    handle_forget(d);
    dentry_unhash(d);
    dentry_unref(d);
}

void dentry_move(struct dentry *d, struct dentry *new_parent, const char *new_name)
{
    size_t len = strlen(new_name);
    struct dentry *old_parent = dentry_ref(d->parent);
    old_parent->dir_seq++;
    new_parent->dir_seq++;
    struct dentry *occupant = dentry_find(new_parent, new_name, len);
    if (occupant == d) {
        dentry_unref(occupant);
        dentry_unref(old_parent);
        return;
    }
    if (occupant) {
        handle_forget(occupant);
        dentry_unhash(occupant);
        dentry_unref(occupant);
    }
    dentry_unhash(d);
    struct dentry *negative = NULL;
    if (!old_parent->sb->no_dcache_negative && !old_parent->deleted)
        negative = dentry_add_child(old_parent, d->name, d->name_len, NULL);
    /* Without memory for the name d stays out of the cache and is looked up anew. */
    if (dentry_set_name(d, new_name, len)) {
        struct dentry *last = d->parent;
        d->parent = dentry_ref(new_parent);
        dentry_unref(last);
        dentry_hash(d);
        ref_get(&d->ref);
    } else {
        new_parent->child_evictions++;
    }
    dentry_unref(negative);
    dentry_unref(old_parent);
}

static void dentry_swap_names(struct dentry *a, struct dentry *b)
{
    char inline_a[sizeof(a->inline_name)];
    char *name_a = a->name == a->inline_name ? NULL : a->name;
    char *name_b = b->name == b->inline_name ? NULL : b->name;
    memcpy(inline_a, a->inline_name, sizeof(inline_a));
    memcpy(a->inline_name, b->inline_name, sizeof(inline_a));
    memcpy(b->inline_name, inline_a, sizeof(inline_a));
    a->name = name_b ? name_b : a->inline_name;
    b->name = name_a ? name_a : b->inline_name;
    uint16_t len = a->name_len;
    a->name_len = b->name_len;
    b->name_len = len;
    uint32_t hash = a->hash;
    a->hash = b->hash;
    b->hash = hash;
}

void dentry_exchange(struct dentry *a, struct dentry *b)
{
    a->parent->dir_seq++;
    b->parent->dir_seq++;
    dentry_unhash(a);
    dentry_unhash(b);
    dentry_swap_names(a, b);
    struct dentry *parent = a->parent;
    a->parent = b->parent;
    b->parent = parent;
    struct dentry *both[2] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        dentry_drop_cached(both[i]->parent, both[i]->name, both[i]->name_len);
        dentry_hash(both[i]);
        ref_get(&both[i]->ref);
    }
}

void dentry_invalidate(struct dentry *d)
{
    d->parent->child_evictions++;
    /* Depth first without recursion: each step down takes a reference, each step up gives one back. */
    struct dentry *at = dentry_ref(d);
    for (;;) {
        if (!list_empty(&at->children)) {
            at = dentry_ref(list_first(&at->children, struct dentry, sibling));
            continue;
        }
        struct dentry *up = at == d ? NULL : at->parent;
        if (at->mounted)
            mount_detach_dentry(at);
        handle_forget(at);
        dentry_unhash(at);
        dentry_unref(at);
        if (!up)
            break;
        at = up;
    }
}

bool dentry_is_ancestor(const struct dentry *ancestor, const struct dentry *d)
{
    for (;; d = d->parent) {
        if (d == ancestor)
            return true;
        if (d->parent == d)
            return false;
    }
}
