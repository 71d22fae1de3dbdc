/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify events: how one is made, and when it is only added to one that waits already. */
#include "sentry/fs/fan_priv.h"

#include <string.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/dentry.h"

/* ---- making ---- */

/* What of an event is told by file identifiers. NULL: that part is not. */
struct parts {
    enum fan_kind kind;
    struct inode *object, *dir, *new_dir;
    const char *name, *new_name;
};

static struct parts parts_of(const struct fan_hit *hit, const struct notify_event *ev)
{
    uint32_t fid = hit->group->flags & FAN_ABI_FID, mask = hit->mask;
    bool entry = mask & FAN_ABI_ENTRY_EVENTS, is_dir = mask & FAN_ONDIR;
    bool with_child = entry ? fid & FAN_REPORT_TARGET_FID : (fid & FAN_REPORT_FID) && !is_dir;
    struct inode *object = entry && !with_child ? ev->dir : ev->inode;
    struct inode *dir = !entry && ev->inode && inode_is_dir(ev->inode) ? ev->inode : ev->dir;
    if (!(fid & FAN_REPORT_DIR_FID) || !dir)
        return (struct parts){.kind = FAN_KIND_FID, .object = object};

    struct parts p = {.kind = FAN_KIND_NAME, .object = with_child && object != dir ? object : NULL, .dir = dir};
    if ((fid & FAN_REPORT_NAME) && (entry || !is_dir))
        p.name = ev->name;
    if (mask & FAN_RENAME) {
        /* Who watches one of the directories is told that half. */
        bool both = hit->roles & 1U << FAN_BY_SB;
        if (both || (hit->roles & 1U << FAN_BY_NEW_DIR)) {
            p.new_dir = ev->new_dir;
            p.new_name = ev->new_name;
        }
        if (!both && !(hit->roles & 1U << FAN_BY_INODE)) {
            p.dir = NULL;
            p.name = NULL;
        }
    }
    if (!p.name && !p.new_name && !p.object)
        return (struct parts){.kind = FAN_KIND_FID, .object = dir};
    return p;
}

/* The handle that name_to_handle_at would give, as far as the file has a name that is known. */
static void encode(struct inode *inode, struct handle *ret_handle)
{
    struct dentry *d;
    if (inode->sb->has_handles) {
        list_for_each_entry (d, &inode->dentries, alias) {
            if ((d->hash_pprev || d->parent == d) && handle_encode(d, false, ret_handle) == 0)
                return;
        }
    }
    handle_encode_fid(inode, ret_handle);
}

static uint32_t hash_of(uint32_t h, const void *p, size_t size)
{
    const uint8_t *bytes = p;
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * 16777619U;
    return h;
}

static uint32_t event_hash(const struct fan_event *e)
{
    uint32_t h = hash_of(2166136261U, &e->pid, sizeof(e->pid));
    h = hash_of(h, &e->path.dentry, sizeof(e->path.dentry));
    if (e->has_object)
        h = hash_of(h, e->object.data, e->object.size);
    if (e->has_dir)
        h = hash_of(h, e->dir.data, e->dir.size);
    return hash_of(h, e->names, e->name_len);
}

static struct pid *current_pid(const struct fan_group *g)
{
    struct task *t = task_current();
    if (!t)
        return NULL;
    if (!(g->flags & FAN_REPORT_TID) && t->group->leader)
        t = t->group->leader;
    return t->pid ? pid_ref(t->pid) : NULL;
}

static void fill_parts(struct fan_event *e, const struct parts *p)
{
    if ((e->has_object = p->object != NULL))
        encode(p->object, &e->object);
    if ((e->has_dir = p->dir != NULL))
        encode(p->dir, &e->dir);
    if ((e->has_new_dir = p->new_dir != NULL))
        encode(p->new_dir, &e->new_dir);
    memcpy(e->names, p->name ? p->name : "", e->name_len + 1U);
    memcpy(e->names + e->name_len + 1, p->new_name ? p->new_name : "", e->new_name_len + 1U);
}

struct fan_event *fan_event_make(const struct fan_hit *hit, const struct notify_event *ev)
{
    bool fid = hit->group->flags & FAN_ABI_FID;
    struct parts p = {.kind = hit->mask & FAN_ABI_PERM_EVENTS ? FAN_KIND_ASK : FAN_KIND_PATH};
    if (fid)
        p = parts_of(hit, ev);
    size_t name_len = p.name ? strlen(p.name) : 0, new_name_len = p.new_name ? strlen(p.new_name) : 0;
    if (limit_charge(LIMIT_KIND_NOTIFY_EVENTS, 1) < 0)
        return NULL;
    struct fan_event *e = mem_zalloc(sizeof(*e) + name_len + new_name_len + 2);
    if (!e) {
        limit_uncharge(LIMIT_KIND_NOTIFY_EVENTS, 1);
        return NULL;
    }
    e->names = (char *)(e + 1);
    e->name_len = (uint16_t)name_len;
    e->new_name_len = (uint16_t)new_name_len;
    list_init(&e->link);
    list_init(&e->hash_link);
    e->kind = p.kind;
    e->mask = hit->mask;
    e->fd = -1;
    e->pid = current_pid(hit->group);
    memcpy(e->fsid, hit->fsid, sizeof(e->fsid));
    if (fid)
        fill_parts(e, &p);
    else
        e->path = path_ref(*ev->path);
    e->hash = event_hash(e);
    return e;
}

void fan_event_free(struct fan_event *e)
{
    if (!e)
        return;
    path_unref(&e->path);
    pid_unref(e->pid);
    mem_free(e);
    limit_uncharge(LIMIT_KIND_NOTIFY_EVENTS, 1);
}

/* ---- queueing ---- */

static void push(struct fan_group *g, struct fan_event *e)
{
    list_add_tail(&g->events, &e->link);
    g->events_len++;
    waitq_wake(&g->wait, EPOLLIN | EPOLLRDNORM);
}

void fan_event_unqueue(struct fan_group *g, struct fan_event *e)
{
    list_del(&e->link);
    list_del(&e->hash_link);
    g->events_len--;
}

void fan_event_overflow(struct fan_group *g)
{
    if (!g->closed && list_empty(&g->overflow.link))
        push(g, &g->overflow);
}

static bool handle_same(const struct handle *a, const struct handle *b)
{
    return a->type == b->type && a->size == b->size && !memcmp(a->data, b->data, a->size);
}

/* Whether b says nothing that a could not say with more bits. */
static bool mergeable(const struct fan_event *a, const struct fan_event *b)
{
    const uint32_t alike = FAN_ONDIR | FAN_RENAME;
    if (a->hash != b->hash || a->kind != b->kind || a->pid != b->pid || ((a->mask ^ b->mask) & alike))
        return false;
    if (a->kind == FAN_KIND_PATH)
        return path_equal(&a->path, &b->path);
    if (memcmp(a->fsid, b->fsid, sizeof(a->fsid)) || a->has_object != b->has_object || a->has_dir != b->has_dir ||
        a->has_new_dir != b->has_new_dir || a->name_len != b->name_len || a->new_name_len != b->new_name_len)
        return false;
    return (!a->has_object || handle_same(&a->object, &b->object)) && (!a->has_dir || handle_same(&a->dir, &b->dir)) &&
           (!a->has_new_dir || handle_same(&a->new_dir, &b->new_dir)) &&
           !memcmp(a->names, b->names, a->name_len + b->new_name_len + 2U);
}

static bool merged(struct fan_group *g, const struct fan_event *e)
{
    struct fan_event *old;
    unsigned looked = 0;
    list_for_each_entry (old, &g->buckets[e->hash % FAN_BUCKETS], hash_link) {
        if (looked++ == FAN_MERGE_MAX)
            return false;
        if (mergeable(old, e)) {
            old->mask |= e->mask;
            return true;
        }
    }
    return false;
}

static void queue(struct fan_group *g, OWNS struct fan_event *e)
{
    if (!e || g->events_len >= g->events_max)
        fan_event_overflow(g);
    else if (!g->closed && !merged(g, e)) {
        list_add(&g->buckets[e->hash % FAN_BUCKETS], &e->hash_link);
        push(g, TAKE_PTR(e));
    }
    fan_event_free(e);
}

/* ---- the VFS's calls ---- */

static void on_event(const struct notify_event *ev)
{
    struct fan_hit *hits;
    unsigned len;
    if (fan_hits_find(ev, &hits, &len) < 0)
        return; /* the groups know that they have missed something */
    for (unsigned i = 0; i < len; i++)
        queue(hits[i].group, fan_event_make(&hits[i], ev));
    fan_hits_free(hits, len);
}

static const struct notify_fan_ops fan_ops = {
    .event = on_event,
    .ask = fan_ask,
    .inode_gone = fan_mark_inode_gone,
    .mount_gone = fan_mark_mount_gone,
    .sb_gone = fan_mark_sb_gone,
};

void fan_init(void)
{
    notify_set_fan_ops(&fan_ops);
}
