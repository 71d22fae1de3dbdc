/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces: whose numbers user and group ids are. Inside, ids are those of the initial namespace, and they are mapped
 * wherever they come from or go to a guest. NULL is the initial namespace, which has no object. Source: user_namespaces(7). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/ucount.h"

struct cred;

enum {
    USERNS_EXTENTS = 340,
    USERNS_LEVEL_MAX = 33,   /* of the deepest: the initial one and 33 below it */
    USERNS_OVERFLOW = 65534, /* what an id without a number is shown as */
};
#define USERNS_NO_ID UINT32_MAX

/* Ids first … in the namespace are lower_first … of the initial one. */
struct userns_extent {
    uint32_t first, lower_first, count;
};

enum userns_ids { USERNS_UIDS, USERNS_GIDS, USERNS_PROJIDS, USERNS_ID_KINDS };

struct userns_map {
    uint32_t len;                  /* (k) 0: not set yet */
    struct userns_extent *extents; /* (k) owned; does not change once set */
};

struct userns {
    struct ref ref;
    struct userns *parent;    /* (i) referenced */
    unsigned level;           /* (i) 1: right below the initial one */
    uint32_t owner, group;    /* (i) effective ids of who made it, in initial ids */
    uint64_t ino;             /* (i) of /proc/PID/ns/user */
    bool setgroups_denied;    /* (k) */
    bool parent_setfcap;      /* (i) its maker had CAP_SETFCAP: it may map the parent's user 0 */
    struct userns_map maps[USERNS_ID_KINDS]; /* (k) */
    int32_t ucount_max[UCOUNT_NS_KINDS];     /* (k) /proc/sys/user */
    struct ucharge charge;    /* (i) what it counts for in its parent */
};

/* A namespace below parent (NULL is fine), made by a user with these effective ids. Return: 0, −ENOSPC (too deep, or one too many), −EPERM
 * (the maker has no number in parent), −ENOMEM. */
MUST_CHECK int userns_new(struct userns *parent, uint32_t owner, uint32_t group, bool setfcap, struct userns **ret_ns);
struct userns *userns_ref(struct userns *ns); /* NULL is fine */
void userns_unref(struct userns *ns);         /* NULL is fine */
static inline bool userns_is_initial(const struct userns *ns)
{
    return !ns;
}
static inline bool userns_same(const struct userns *a, const struct userns *b)
{
    return a == b;
}
/* Whether ns is outer or below it. */
bool userns_contains(const struct userns *outer, const struct userns *ns);
/* A fresh number for a namespace under /proc/PID/ns. */
uint64_t userns_next_ino(void);

/* The initial id behind id of ns / the number that an initial id has in ns. Return: USERNS_NO_ID when there is none. */
uint32_t userns_map_in(const struct userns *ns, enum userns_ids kind, uint32_t id);
uint32_t userns_map_out(const struct userns *ns, enum userns_ids kind, uint32_t id);
static inline uint32_t userns_uid_in(const struct userns *ns, uint32_t uid)
{
    return likely(userns_is_initial(ns)) ? uid : userns_map_in(ns, USERNS_UIDS, uid);
}
static inline uint32_t userns_gid_in(const struct userns *ns, uint32_t gid)
{
    return likely(userns_is_initial(ns)) ? gid : userns_map_in(ns, USERNS_GIDS, gid);
}
static inline uint32_t userns_uid_out(const struct userns *ns, uint32_t uid)
{
    return likely(userns_is_initial(ns)) ? uid : userns_map_out(ns, USERNS_UIDS, uid);
}
static inline uint32_t userns_gid_out(const struct userns *ns, uint32_t gid)
{
    return likely(userns_is_initial(ns)) ? gid : userns_map_out(ns, USERNS_GIDS, gid);
}
/* As userns_…_out, with the overflow id for what has no number. */
static inline uint32_t userns_uid_shown(const struct userns *ns, uint32_t uid)
{
    uint32_t id = userns_uid_out(ns, uid);

    return id == USERNS_NO_ID ? USERNS_OVERFLOW : id;
}
static inline uint32_t userns_gid_shown(const struct userns *ns, uint32_t gid)
{
    uint32_t id = userns_gid_out(ns, gid);

    return id == USERNS_NO_ID ? USERNS_OVERFLOW : id;
}

/* A write to /proc/PID/{uid,gid,projid}_map (text is terminated) by current, through a file that opener opened. Return: 0,
 * −EPERM, −EINVAL, −ENOMEM; nothing has changed then. */
MUST_CHECK int userns_map_write(struct userns *ns, enum userns_ids kind, const struct cred *current,
                                const struct cred *opener, const char *text);
/* A write to /proc/PID/setgroups. Return: 0, −EPERM, −EINVAL. */
MUST_CHECK int userns_setgroups_write(struct userns *ns, const char *text);
/* Whether the members of ns may set their groups. */
bool userns_may_setgroups(const struct userns *ns);
