/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups are told of an event, and how much of it: what their marks on the file system, the mount, the file and its
 * directory ask for, less what they ignore. */
#include "sentry/fs/fan_priv.h"

#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/vfs/inode.h"

static uint64_t hit_pass; /* (k) */

/* Whether a mask with FAN_ONDIR and FAN_EVENT_ON_CHILD among it speaks of such an event. */
static bool applies(uint32_t mask, bool is_dir, enum fan_role role)
{
    return (!is_dir || (mask & FAN_ONDIR)) && (role != FAN_BY_PARENT || (mask & FAN_EVENT_ON_CHILD));
}

/* What m ignores of the event. */
static uint32_t ignored_by(const struct fan_mark *m, bool is_dir, enum fan_role role)
{
    uint32_t ignore = m->ignore;
    if (!(ignore & (FAN_ABI_EVENTS | FAN_ABI_PERM_EVENTS)))
        return 0;
    if (!is_dir && role != FAN_BY_PARENT)
        return ignore & ~FAN_ABI_EVENT_FLAGS;
    /* Without flags of its own an ignored mask is for directories, too, and for children if the mark is. */
    if (!m->ignore_has_flags)
        ignore |= FAN_ONDIR | (m->mask & FAN_EVENT_ON_CHILD);
    return applies(ignore, is_dir, role) ? ignore : 0;
}

static bool watches_children(const struct fan_mark *m)
{
    return (m->mask | (m->ignore_has_flags ? m->ignore : 0)) & FAN_EVENT_ON_CHILD;
}

/* A file that changes ends what is ignored until then; for its directory's mark only if that is for its files. */
static void clear_ignored(struct fan_group *g)
{
    for (int role = 0; role < FAN_ROLES; role++) {
        struct fan_mark *m = g->found[role];
        if (m && m->ignore && !m->survives_modify && (role != FAN_BY_PARENT || watches_children(m))) {
            m->ignore = 0;
            fan_mark_recalc(m->set);
        }
    }
}

/* What g is told of ev. Return: 0: nothing. */
static uint32_t hit_mask(struct fan_group *g, const struct notify_event *ev, struct fan_hit *hit)
{
    bool is_dir = ev->mask & FAN_ONDIR;
    uint32_t fid = g->flags & FAN_ABI_FID, wanted = 0, ignored = 0;
    if (!fid) {
        /* A file is opened for the reader: there must be one, of a harmless kind. */
        if (!ev->path || !(S_ISREG(ev->inode->mode) || S_ISDIR(ev->inode->mode)))
            return 0;
    } else if (!(fid & FAN_REPORT_FID) && !ev->dir && !is_dir) {
        return 0;
    }
    for (enum fan_role role = 0; role < FAN_ROLES; role++) {
        const struct fan_mark *m = g->found[role];
        if (!m)
            continue;
        ignored |= ignored_by(m, is_dir, role);
        if (!hit->fsid[0] && !hit->fsid[1]) {
            hit->fsid[0] = m->fsid[0];
            hit->fsid[1] = m->fsid[1];
        }
        if (!applies(m->mask, is_dir, role))
            continue;
        wanted |= m->mask;
        hit->roles |= 1U << role;
    }
    uint32_t mask = ev->mask & wanted & ~ignored;
    if (!fid)
        return mask & FAN_ABI_OUTGOING & ~FAN_ABI_EVENT_FLAGS;
    return mask & ~FAN_ABI_EVENT_FLAGS ? mask & (FAN_ABI_OUTGOING | FAN_ABI_EVENT_FLAGS) : 0;
}

/* Sorts the groups that have a mark in s by priority. */
static unsigned collect(const struct fan_set *s, enum fan_role role, struct list by_priority[3])
{
    struct fan_mark *m;
    unsigned len = 0;
    if (!s)
        return 0;
    list_for_each_entry (m, &s->marks, set_link) {
        struct fan_group *g = m->group;
        if (g->pass != hit_pass) {
            g->pass = hit_pass;
            for (int i = 0; i < FAN_ROLES; i++)
                g->found[i] = NULL;
            list_add_tail(&by_priority[2 - g->priority], &g->pass_link);
            len++;
        }
        g->found[role] = m;
    }
    return len;
}

static const struct fan_set *set_of(const struct inode *inode)
{
    return inode ? inode->fan_set : NULL;
}

int fan_hits_find(const struct notify_event *ev, struct fan_hit **ret_hits, unsigned *ret_len)
{
    bool entry = ev->mask & NOTIFY_ENTRY_EVENTS;
    const struct fan_set *sets[FAN_ROLES] = {
        [FAN_BY_SB] = ev->sb->fan_set,
        [FAN_BY_MOUNT] = ev->path ? ev->path->mount->fan_set : NULL,
        [FAN_BY_INODE] = set_of(entry ? ev->dir : ev->inode),
        [FAN_BY_PARENT] = entry ? NULL : set_of(ev->dir),
        [FAN_BY_NEW_DIR] = set_of(ev->new_dir),
    };
    const struct fan_set *parent = sets[FAN_BY_PARENT];
    if (parent && !((parent->mask & FAN_EVENT_ON_CHILD) && (parent->mask & FAN_ABI_CHILD_EVENTS & ev->mask)))
        sets[FAN_BY_PARENT] = NULL;
    uint32_t any = 0;
    for (int i = 0; i < FAN_ROLES; i++)
        any |= sets[i] ? sets[i]->mask : 0;
    *ret_hits = NULL;
    *ret_len = 0;
    if (!(any & ev->mask & ~FAN_ABI_EVENT_FLAGS))
        return 0;

    struct list by_priority[3] = {LIST_INIT(by_priority[0]), LIST_INIT(by_priority[1]), LIST_INIT(by_priority[2])};
    unsigned groups = 0, len = 0;
    hit_pass++;
    for (enum fan_role role = 0; role < FAN_ROLES; role++)
        groups += collect(sets[role], role, by_priority);
    struct fan_hit *hits = mem_realloc(NULL, groups, sizeof(*hits));
    for (int i = 0; i < 3; i++) {
        while (!list_empty(&by_priority[i])) {
            struct fan_group *g = list_first(&by_priority[i], struct fan_group, pass_link);
            list_del(&g->pass_link);
            if (!hits) {
                fan_event_overflow(g);
                continue;
            }
            if (ev->mask & FAN_MODIFY)
                clear_ignored(g);
            hits[len] = (struct fan_hit){0};
            hits[len].mask = hit_mask(g, ev, &hits[len]);
            if (hits[len].mask)
                hits[len++].group = fan_group_ref(g);
        }
    }
    if (!hits)
        return -ENOMEM;
    *ret_hits = hits;
    *ret_len = len;
    return 0;
}

void fan_hits_free(struct fan_hit *hits, unsigned len)
{
    for (unsigned i = 0; i < len; i++)
        fan_group_unref(hits[i].group);
    mem_free(hits);
}
