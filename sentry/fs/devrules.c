/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a container may open. */
#include "sentry/fs/devrules.h"

#include <errno.h>

#include "platform/base/alloc.h"
#include "sentry/fs/devfs.h"

enum {
    RULES_MAX = 4096,
    ALL = DEV_ACCESS_READ | DEV_ACCESS_WRITE | DEV_ACCESS_MKNOD,
};

/* What is otherwise than the default; in a list without two of the same device. */
struct devrules {
    bool allow; /* the default */
    unsigned len;
    struct devrule except[];
};

static const struct devrule standard[] = {
    {true, 'c', -1, -1, DEV_ACCESS_MKNOD},           {true, 'b', -1, -1, DEV_ACCESS_MKNOD},
    {true, 'c', DEV_MEM_MAJOR, DEV_NULL, ALL},       {true, 'c', DEV_MEM_MAJOR, DEV_ZERO, ALL},
    {true, 'c', DEV_MEM_MAJOR, DEV_FULL, ALL},       {true, 'c', DEV_MEM_MAJOR, DEV_RANDOM, ALL},
    {true, 'c', DEV_MEM_MAJOR, DEV_URANDOM, ALL},    {true, 'c', DEV_TTYAUX_MAJOR, DEV_TTY, ALL},
    {true, 'c', DEV_TTYAUX_MAJOR, DEV_CONSOLE, ALL}, /* what runc has there is a pty */
    {true, 'c', DEV_TTYAUX_MAJOR, DEV_PTMX, ALL},    {true, 'c', DEV_PTS_MAJOR, -1, ALL},
};

static bool same_device(const struct devrule *a, const struct devrule *b)
{
    return a->type == b->type && a->major == b->major && a->minor == b->minor;
}

static void apply(struct devrules *r, const struct devrule *rule)
{
    if (rule->type == 'a') {
        r->allow = rule->allow;
        r->len = 0;
        return;
    }
    struct devrule *e = r->except;
    while (e < r->except + r->len && !same_device(e, rule))
        e++;
    bool known = e < r->except + r->len;
    if (rule->allow != r->allow) {
        if (known)
            e->access |= rule->access;
        else
            r->except[r->len++] = *rule;
    } else if (known) {
        e->access &= ~rule->access;
        if (!e->access)
            *e = r->except[--r->len];
    }
}

int devrules_new(const struct devrule *rules, unsigned len, struct devrules **ret_rules)
{
    if (len > RULES_MAX)
        return -E2BIG;
    struct devrules *r =
        mem_zalloc(sizeof(*r) + (len + ARRAY_SIZE(standard)) * sizeof(r->except[0]));
    if (!r)
        return -ENOMEM;
    for (unsigned i = 0; i < len; i++)
        apply(r, &rules[i]);
    for (unsigned i = 0; i < ARRAY_SIZE(standard); i++)
        apply(r, &standard[i]);
    *ret_rules = r;
    return 0;
}

void devrules_free(struct devrules *r)
{
    mem_free(r);
}

bool devrules_allow(const struct devrules *r, char type, uint32_t major, uint32_t minor,
                    unsigned access)
{
    for (unsigned i = 0; i < r->len; i++) {
        const struct devrule *e = &r->except[i];
        if (e->type != type || (e->major >= 0 && e->major != major) ||
            (e->minor >= 0 && e->minor != minor))
            continue;
        /* An exception from "denied" has to cover all that is wanted; from "allowed", any part of
         * it is enough. */
        if (r->allow ? (access & e->access) != 0 : (access & ~e->access) == 0)
            return !r->allow;
    }
    return r->allow;
}
