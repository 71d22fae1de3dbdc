/* SPDX-License-Identifier: Apache-2.0 */
/* Counters by user id, in a small hash table whose entries live while anything is counted. */
#include "sentry/core/ucount.h"

#include <errno.h>
#include <stdbool.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"

enum { BUCKETS = 64 };

struct ucount {
    struct ucount *next;
    const struct userns *ns; /* NULL: the initial one */
    uint32_t uid;
    uint64_t used[UCOUNT_KINDS];
};

static struct ucount *table[BUCKETS]; /* (k) */

static struct ucount **find(const struct userns *ns, uint32_t uid)
{
    struct ucount **at = &table[uid % BUCKETS];

    while (*at && ((*at)->uid != uid || (*at)->ns != ns))
        at = &(*at)->next;
    return at;
}

static int charge(const struct userns *ns, enum ucount_kind kind, uint32_t uid, uint64_t limit)
{
    struct ucount **at = find(ns, uid);

    if (*at) {
        if ((*at)->used[kind] >= limit)
            return -EAGAIN;
        (*at)->used[kind]++;
        return 0;
    }
    if (limit == 0)
        return -EAGAIN;
    *at = NEW(struct ucount);
    if (!*at)
        return -ENOMEM;
    (*at)->ns = ns;
    (*at)->uid = uid;
    (*at)->used[kind] = 1;
    return 0;
}

static void uncharge(const struct userns *ns, enum ucount_kind kind, uint32_t uid)
{
    struct ucount **at = find(ns, uid), *u = *at;

    /* A charge that a change of credentials could not make (no memory) is not there to be given back. */
    if (!u || !u->used[kind])
        return;
    u->used[kind]--;
    for (int i = 0; i < UCOUNT_KINDS; i++) {
        if (u->used[i])
            return;
    }
    *at = u->next;
    mem_free(u);
}

int ucount_charge(enum ucount_kind kind, uint32_t uid, uint64_t limit)
{
    return charge(NULL, kind, uid, limit);
}

void ucount_uncharge(enum ucount_kind kind, uint32_t uid)
{
    uncharge(NULL, kind, uid);
}

uint64_t ucount_used(enum ucount_kind kind, uint32_t uid)
{
    const struct ucount *u = *find(NULL, uid);

    return u ? u->used[kind] : 0;
}

/* ---- namespaces ---- */

int32_t *ucount_max_of(struct userns *ns, enum ucount_kind kind)
{
    static int32_t initial[UCOUNT_NS_KINDS] = {
        [0 ... UCOUNT_TIME_NS] = LIMIT_TASKS / 2,
        [UCOUNT_INOTIFY_INSTANCES] = LIMIT_INOTIFY_INSTANCES,
        [UCOUNT_INOTIFY_WATCHES] = LIMIT_INOTIFY_WATCHES,
        [UCOUNT_FANOTIFY_GROUPS] = LIMIT_FANOTIFY_GROUPS,
        [UCOUNT_FANOTIFY_MARKS] = LIMIT_FANOTIFY_MARKS,
    };

    return userns_is_initial(ns) ? &initial[kind] : &ns->ucount_max[kind];
}

/* Gives back what was counted from (ns, uid) up to, not including, (end, …). */
static void give_back(const struct userns *ns, enum ucount_kind kind, uint32_t uid, const struct userns *end)
{
    while (ns != end) {
        uncharge(ns, kind, uid);
        uid = ns->owner;
        ns = ns->parent;
    }
}

static int take(struct userns *ns, enum ucount_kind kind, uint32_t uid)
{
    struct userns *at = ns;
    uint32_t who = uid;

    for (;;) {
        int32_t max = *ucount_max_of(at, kind);
        int r = charge(at, kind, who, max < 0 ? 0 : (uint64_t)max);

        if (r) {
            give_back(ns, kind, uid, at);
            return r == -EAGAIN ? -ENOSPC : r;
        }
        if (userns_is_initial(at))
            return 0;
        who = at->owner;
        at = at->parent;
    }
}

static void drop(const struct userns *ns, enum ucount_kind kind, uint32_t uid)
{
    for (;; ns = ns->parent) {
        uncharge(ns, kind, uid);
        if (userns_is_initial(ns))
            return;
        uid = ns->owner;
    }
}

int ucharge_take(struct ucharge *c, enum ucount_kind kind, struct userns *ns, uint32_t uid)
{
    int r = take(ns, kind, uid);

    if (r)
        return r;
    *c = (struct ucharge){.ns = userns_ref(ns), .uid = uid, .kind = (uint8_t)kind, .held = true};
    return 0;
}

void ucharge_drop(struct ucharge *c)
{
    if (!c->held)
        return;
    drop(c->ns, c->kind, c->uid);
    c->held = false;
    userns_unref(c->ns);
}

int ucharge_more(const struct ucharge *c, enum ucount_kind kind)
{
    return take(c->ns, kind, c->uid);
}

void ucharge_less(const struct ucharge *c, enum ucount_kind kind)
{
    drop(c->ns, kind, c->uid);
}
