/* SPDX-License-Identifier: Apache-2.0 */
/* Counters by user id, in a small hash table whose entries live while anything is counted. */
#include "sentry/core/ucount.h"

#include <errno.h>
#include <stdbool.h>

#include "platform/base/alloc.h"

enum { BUCKETS = 64 };

struct ucount {
    struct ucount *next;
    uint32_t uid;
    uint64_t used[UCOUNT_KINDS];
};

static struct ucount *table[BUCKETS]; /* (k) */

static struct ucount **find(uint32_t uid)
{
    struct ucount **at = &table[uid % BUCKETS];

    while (*at && (*at)->uid != uid)
        at = &(*at)->next;
    return at;
}

int ucount_charge(enum ucount_kind kind, uint32_t uid, uint64_t limit)
{
    struct ucount **at = find(uid);

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
    (*at)->uid = uid;
    (*at)->used[kind] = 1;
    return 0;
}

void ucount_uncharge(enum ucount_kind kind, uint32_t uid)
{
    struct ucount **at = find(uid), *u = *at;

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

uint64_t ucount_used(enum ucount_kind kind, uint32_t uid)
{
    const struct ucount *u = *find(uid);

    return u ? u->used[kind] : 0;
}
