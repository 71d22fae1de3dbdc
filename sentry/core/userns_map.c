/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the id maps of user namespaces: their syntax, and who may map what. Source: user_namespaces(7), "Defining user
 * and group ID mappings: writing to uid_map and gid_map". */
#include "sentry/core/userns.h"

#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"

/* One decimal number; more than 32 bits wrap, as they do on Linux. Return: what follows, NULL when there is none. */
static const char *parse_number(const char *s, uint32_t *ret)
{
    uint32_t value = 0;

    if (!isdigit((unsigned char)*s))
        return NULL;
    for (; isdigit((unsigned char)*s); s++)
        value = value * 10 + (uint32_t)(*s - '0');
    *ret = value;
    return s;
}

static const char *skip_blanks(const char *s)
{
    while (*s && *s != '\n' && isspace((unsigned char)*s))
        s++;
    return s;
}

/* Return: the start of the next line, NULL when this one makes no sense. */
static const char *parse_line(const char *s, struct userns_extent *e)
{
    uint32_t *const fields[] = {&e->first, &e->lower_first, &e->count};

    for (int i = 0; i < 3; i++) {
        s = parse_number(skip_blanks(s), fields[i]);
        if (!s || (i < 2 && (*s == '\n' || !isspace((unsigned char)*s))))
            return NULL;
    }
    s = skip_blanks(s);
    if (*s && *s != '\n')
        return NULL;
    if (e->first == USERNS_NO_ID || e->lower_first == USERNS_NO_ID || e->first + e->count <= e->first ||
        e->lower_first + e->count <= e->lower_first)
        return NULL;
    return *s ? s + 1 : s;
}

static bool ranges_meet(uint32_t a, uint32_t a_count, uint32_t b, uint32_t b_count)
{
    return a <= b + (b_count - 1) && b <= a + (a_count - 1);
}

static bool overlaps(const struct userns_map *map, const struct userns_extent *e)
{
    for (uint32_t i = 0; i < map->len; i++) {
        const struct userns_extent *o = &map->extents[i];

        if (ranges_meet(o->first, o->count, e->first, e->count) ||
            ranges_meet(o->lower_first, o->count, e->lower_first, e->count))
            return true;
    }
    return false;
}

static int parse(const char *text, struct userns_map *map)
{
    do {
        struct userns_extent e;

        text = parse_line(text, &e);
        if (!text || map->len == USERNS_EXTENTS || overlaps(map, &e))
            return -EINVAL;
        map->extents[map->len++] = e;
    } while (*text);
    return 0;
}

/* Who maps the parent's user 0 could give files capabilities that hold in the parent: that takes CAP_SETFCAP there. */
static bool may_map_root(const struct userns *ns, const struct cred *opener, const struct userns_map *map)
{
    for (uint32_t i = 0; i < map->len; i++) {
        if (map->extents[i].lower_first)
            continue;
        if (userns_same(opener->userns, ns))
            return ns->parent_setfcap;
        return cred_ns_cap(opener, ns->parent, CAP_SETFCAP);
    }
    return true;
}

static bool may_map(const struct userns *ns, enum userns_ids kind, const struct cred *current,
                    const struct cred *opener, const struct userns_map *map)
{
    const struct userns_extent *e = map->extents;
    int cap = kind == USERNS_UIDS ? CAP_SETUID : CAP_SETGID;

    if (kind == USERNS_PROJIDS)
        return true;
    if (kind == USERNS_UIDS && !may_map_root(ns, opener, map))
        return false;
    /* Anybody may give his own id another number. For groups only without setgroups, which would be a way out of them. */
    if (map->len == 1 && e->count == 1 && ns->owner == opener->euid) {
        if (kind == USERNS_UIDS && userns_uid_in(ns->parent, e->lower_first) == opener->euid)
            return true;
        if (kind == USERNS_GIDS && ns->setgroups_denied && userns_gid_in(ns->parent, e->lower_first) == opener->egid)
            return true;
    }
    return cred_ns_cap(current, ns->parent, cap) && cred_ns_cap(opener, ns->parent, cap);
}

/* From the parent's numbers to initial ids, for the whole range of each extent. */
static int lower(const struct userns *parent, enum userns_ids kind, struct userns_map *map)
{
    for (uint32_t i = 0; i < map->len; i++) {
        struct userns_extent *e = &map->extents[i];
        uint32_t first = userns_map_in(parent, kind, e->lower_first);
        uint32_t last = userns_map_in(parent, kind, e->lower_first + (e->count - 1));
        bool whole = userns_is_initial(parent);

        /* Within one extent of the parent's. */
        for (uint32_t j = 0; !whole && j < parent->maps[kind].len; j++) {
            const struct userns_extent *p = &parent->maps[kind].extents[j];

            whole = e->lower_first >= p->first && e->lower_first - p->first < p->count &&
                    e->count <= p->count - (e->lower_first - p->first);
        }
        if (!whole || first == USERNS_NO_ID || last == USERNS_NO_ID)
            return -EPERM;
        e->lower_first = first;
    }
    return 0;
}

static int compare_extents(const void *a, const void *b)
{
    const struct userns_extent *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

int userns_map_write(struct userns *ns, enum userns_ids kind, const struct cred *current, const struct cred *opener,
                     const char *text)
{
    enum { SORTED_FROM = 6 };
    struct userns_map map = {0};
    int r;

    if (userns_is_initial(ns))
        return -EPERM;
    if (!userns_same(opener->userns, ns) && !userns_same(opener->userns, ns->parent))
        return -EPERM;
    if (ns->maps[kind].len)
        return -EPERM;
    if (kind != USERNS_PROJIDS && !cred_ns_cap(opener, ns, CAP_SYS_ADMIN))
        return -EPERM;
    map.extents = NEW_ARRAY(struct userns_extent, USERNS_EXTENTS);
    if (!map.extents)
        return -ENOMEM;
    r = parse(text, &map);
    if (!r && !may_map(ns, kind, current, opener, &map))
        r = -EPERM;
    if (!r)
        r = lower(ns->parent, kind, &map);
    if (r) {
        mem_free(map.extents);
        return r;
    }
    if (map.len >= SORTED_FROM)
        qsort(map.extents, map.len, sizeof(map.extents[0]), compare_extents);
    ns->maps[kind] = map;
    return 0;
}

int userns_setgroups_write(struct userns *ns, const char *text)
{
    bool allow = strncmp(text, "allow", 5) == 0;

    if (!allow && strncmp(text, "deny", 4) != 0)
        return -EINVAL;
    for (text += allow ? 5 : 4; *text; text++) {
        if (!isspace((unsigned char)*text))
            return -EINVAL;
    }
    if (allow)
        return ns->setgroups_denied ? -EPERM : 0;
    /* Once there are groups the decision has been made. */
    if (userns_is_initial(ns) || ns->maps[USERNS_GIDS].len)
        return -EPERM;
    ns->setgroups_denied = true;
    return 0;
}

bool userns_may_setgroups(const struct userns *ns)
{
    return userns_is_initial(ns) || (ns->maps[USERNS_GIDS].len && !ns->setgroups_denied);
}
