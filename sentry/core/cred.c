/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials. */
#include "sentry/core/cred.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/landlock.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"

/* CAP_CHECKPOINT_RESTORE (40) is the last one that the reported release knows. */
#define CAP_FULL_SET ((1ULL << 41) - 1)

static struct cred *cred_alloc(uint32_t groups_len)
{
    struct cred *c;

    if (groups_len > LIMIT_GROUPS)
        return NULL;
    c = mem_zalloc(sizeof(*c) + groups_len * sizeof(c->groups[0]));
    if (c) {
        ref_init(&c->ref);
        c->groups_len = groups_len;
    }
    return c;
}

int cred_new_root(struct cred **ret_cred)
{
    struct cred *c = cred_alloc(0);

    if (!c)
        return -ENOMEM;
    c->cap_effective = c->cap_permitted = c->cap_bounding = CAP_FULL_SET;
    *ret_cred = c;
    return 0;
}

int cred_dup(const struct cred *c, uint32_t groups_len, struct cred **ret_cred)
{
    struct cred *n = cred_alloc(groups_len);

    if (!n)
        return -ENOMEM;
    memcpy((char *)n + sizeof(n->ref), (const char *)c + sizeof(n->ref),
           offsetof(struct cred, groups_len) - sizeof(n->ref));
    userns_ref(n->userns);
    landlock_ref(n->landlock);
    memcpy(n->groups, c->groups, MIN(groups_len, c->groups_len) * sizeof(c->groups[0]));
    *ret_cred = n;
    return 0;
}

const struct cred *cred_ref(const struct cred *c)
{
    ref_get(&((struct cred *)c)->ref);
    return c;
}

void cred_unref(const struct cred *c)
{
    if (!c || !ref_put(&((struct cred *)c)->ref))
        return;
    userns_unref(c->userns);
    landlock_unref(c->landlock);
    mem_free((void *)c);
}

bool cred_own_cap(const struct cred *c, int cap)
{
    return cap >= 0 && cap < 64 && (c->cap_effective >> cap & 1);
}

bool cred_has_cap(const struct cred *c, int cap)
{
    return userns_is_initial(c->userns) && cred_own_cap(c, cap);
}

bool cred_ns_cap(const struct cred *c, const struct userns *ns, int cap)
{
    for (;;) {
        if (userns_same(ns, c->userns))
            return cred_own_cap(c, cap);
        if (userns_is_initial(ns))
            return false;
        if (userns_same(ns->parent, c->userns) && ns->owner == c->euid)
            return true;
        ns = ns->parent;
    }
}

bool cred_cap_wrt(const struct cred *c, uint32_t uid, uint32_t gid, int cap)
{
    return cred_own_cap(c, cap) && userns_uid_out(c->userns, uid) != USERNS_NO_ID &&
           userns_gid_out(c->userns, gid) != USERNS_NO_ID;
}

int cred_enter_userns(const struct cred *c, struct userns *ns, struct cred **ret_cred)
{
    struct cred *n;
    int r = cred_dup(c, c->groups_len, &n);

    if (r)
        return r;
    userns_unref(n->userns);
    n->userns = userns_ref(ns);
    n->securebits = 0;
    n->cap_inheritable = n->cap_ambient = 0;
    n->cap_permitted = n->cap_effective = n->cap_bounding = CAP_FULL_SET;
    *ret_cred = n;
    return 0;
}

int cred_new_userns(const struct cred *c, struct cred **ret_cred)
{
    struct userns *ns;
    int r = userns_new(c->userns, c->euid, c->egid, cred_own_cap(c, CAP_SETFCAP), &ns);

    if (r)
        return r;
    r = cred_enter_userns(c, ns, ret_cred);
    userns_unref(ns);
    return r;
}

bool cred_caps_within(const struct cred *old, const struct cred *n)
{
    if (userns_same(old->userns, n->userns))
        return !(n->cap_permitted & ~old->cap_permitted);
    for (const struct userns *ns = n->userns; !userns_is_initial(ns); ns = ns->parent) {
        if (userns_same(ns->parent, old->userns) && ns->owner == old->euid)
            return true;
    }
    return false;
}

static bool supplementary(const struct cred *c, uint32_t gid)
{
    uint32_t low = 0, high = c->groups_len;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (c->groups[mid] == gid)
            return true;
        if (c->groups[mid] < gid)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

bool cred_in_group(const struct cred *c, uint32_t gid)
{
    return c->fsgid == gid || supplementary(c, gid);
}

bool cred_in_egroup(const struct cred *c, uint32_t gid)
{
    return c->egid == gid || supplementary(c, gid);
}
