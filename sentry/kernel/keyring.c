/* SPDX-License-Identifier: Apache-2.0 */
/* Links between keyrings and keys. */
#include "sentry/kernel/keyring.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"

static uint64_t visits; /* (k) numbers the searches */

static int32_t find_index(const struct key *ring, const struct key_type *type, const char *desc)
{
    uint32_t hash = key_index_hash(type, desc);

    for (uint32_t i = 0; i < ring->links_len; i++) {
        const struct key *k = ring->links[i].key;

        if (ring->links[i].hash == hash && k->type == type && !strcmp(k->desc, desc))
            return (int32_t)i;
    }
    return -1;
}

struct key *keyring_get_peek(const struct key *ring, const struct key_type *type, const char *desc)
{
    int32_t i = find_index(ring, type, desc);

    return i < 0 ? NULL : ring->links[i].key;
}

/* Whether this search has been at ring before, no deeper than now: rings that are linked often are searched once. */
static bool visited(struct key *ring, unsigned depth)
{
    if (ring->visit == visits && ring->visit_depth <= depth)
        return true;
    ring->visit = visits;
    ring->visit_depth = depth;
    return false;
}

/* Return: 0, −EDEADLK when sought is ring or somewhere below it, −ELOOP when that is too deep to tell. */
static int check_cycle(struct key *ring, const struct key *sought, unsigned depth)
{
    int r = 0;

    if (ring == sought)
        return -EDEADLK;
    if (visited(ring, depth))
        return 0;
    for (uint32_t i = 0; i < ring->links_len && !r; i++) {
        struct key *k = ring->links[i].key;

        if (!k->type->is_keyring)
            continue;
        r = depth == KEYRING_DEPTH_MAX ? -ELOOP : check_cycle(k, sought, depth + 1);
    }
    return r;
}

static int make_room(struct key *ring)
{
    uint32_t cap = ring->links_cap ? ring->links_cap * 2 : 4;
    struct key_link *links;

    if (ring->links_len < ring->links_cap)
        return 0;
    links = mem_realloc(ring->links, cap, sizeof(*links));
    if (!links)
        return -ENOMEM;
    ring->links = links;
    ring->links_cap = cap;
    return 0;
}

/* What a link could be refused for, but for its cost. */
static int check_link(struct key *ring, const struct key *k)
{
    if (!ring->type->is_keyring)
        return -ENOTDIR;
    if (ring->restricted)
        return -EPERM;
    return 0;
}

int keyring_link(struct key *ring, struct key *k)
{
    int32_t at;
    struct key *old;
    int r = check_link(ring, k);

    if (!r && k->type->is_keyring) {
        visits++;
        r = check_cycle(k, ring, 0);
    }
    if (r)
        return r;
    keyring_drop_dead(ring);
    at = find_index(ring, k->type, k->desc);
    if (at >= 0) {
        old = ring->links[at].key;
        ring->links[at].key = key_ref(k);
        key_unref(old);
        return 0;
    }
    r = make_room(ring);
    if (!r)
        r = key_charge(ring, (ring->links_len + 1) * KEY_LINK_BYTES);
    if (r)
        return r;
    ring->links[ring->links_len++] = (struct key_link){k->hash, key_ref(k)};
    return 0;
}

/* Never refused: an account only gets smaller. */
static void recharge(struct key *ring)
{
    int r = key_charge(ring, ring->links_len * KEY_LINK_BYTES);

    BUG_ON(r);
}

static void remove_at(struct key *ring, uint32_t i)
{
    struct key *k = ring->links[i].key;

    memmove(&ring->links[i], &ring->links[i + 1], (ring->links_len - i - 1) * sizeof(ring->links[0]));
    ring->links_len--;
    recharge(ring);
    key_unref(k);
}

int keyring_unlink(struct key *ring, struct key *k)
{
    if (!ring->type->is_keyring)
        return -ENOTDIR;
    for (uint32_t i = 0; i < ring->links_len; i++) {
        if (ring->links[i].key == k) {
            remove_at(ring, i);
            return 0;
        }
    }
    return -ENOENT;
}

int keyring_move(struct key *k, struct key *from, struct key *to, bool excl)
{
    const struct key *there;
    int r;

    if (from == to)
        return 0;
    if (!from->type->is_keyring || !to->type->is_keyring)
        return -ENOTDIR;
    there = keyring_get_peek(from, k->type, k->desc);
    if (there != k)
        return -ENOENT;
    if (excl && keyring_get_peek(to, k->type, k->desc))
        return -EEXIST;
    r = keyring_link(to, k);
    return r ? r : keyring_unlink(from, k);
}

void keyring_clear(struct key *ring)
{
    struct key_link *links = TAKE_PTR(ring->links);
    uint32_t len = ring->links_len;

    if (!ring->type->is_keyring)
        return;
    ring->links_len = ring->links_cap = 0;
    recharge(ring);
    for (uint32_t i = 0; i < len; i++)
        key_unref(links[i].key);
    mem_free(links);
}

void keyring_drop_dead(struct key *ring)
{
    uint32_t kept = 0, len = ring->links_len;
    struct key *dead = NULL;

    /* One after the other: the unref of a keyring may change others, but not this one, which its caller holds. */
    for (uint32_t i = 0; i < len; i++) {
        struct key *k = ring->links[i].key;

        if (!key_is_dead(k)) {
            ring->links[kept++] = ring->links[i];
            continue;
        }
        k->free_next = dead;
        dead = k;
    }
    if (kept == len)
        return;
    ring->links_len = kept;
    recharge(ring);
    while (dead) {
        struct key *next = dead->free_next;

        key_unref(dead);
        dead = next;
    }
}

/* Looks at one key. Return: 1 found, 0 not; *result gets the error of one that matches but can't be had. */
static int try_key(struct key *k, bool possessed, const struct key_search *s, int *result)
{
    if (s->exact ? k != s->exact : k->type != s->type || strcmp(k->desc, s->desc) != 0)
        return 0;
    if (!s->any_state) {
        if (k->invalidated || k->revoked) {
            *result = -EKEYREVOKED;
            return 0;
        }
        if (key_expired(k)) {
            if (!s->skip_expired)
                *result = -EKEYEXPIRED;
            return 0;
        }
    }
    if (key_permission(k, possessed, s->cred, KEY_SEARCH)) {
        *result = -EACCES;
        return 0;
    }
    if (!s->any_state && k->reject) {
        *result = k->reject;
        return 0;
    }
    return 1;
}

static struct key *search_below(struct key *ring, bool possessed, const struct key_search *s, unsigned depth, int *result)
{
    const struct key_type *type = s->exact ? s->exact->type : s->type;
    struct key *k;

    if (ring->revoked || visited(ring, depth))
        return NULL;
    k = keyring_get_peek(ring, type, s->exact ? s->exact->desc : s->desc);
    if (k && try_key(k, possessed, s, result))
        return k;
    if (depth == KEYRING_DEPTH_MAX)
        return NULL;
    for (uint32_t i = 0; i < ring->links_len; i++) {
        struct key *child = ring->links[i].key, *found;

        if (!child->type->is_keyring || key_permission(child, possessed, s->cred, KEY_SEARCH))
            continue;
        found = search_below(child, possessed, s, depth + 1, result);
        if (found)
            return found;
    }
    return NULL;
}

int keyring_search(struct key *ring, bool possessed, const struct key_search *s, struct key **ret_key)
{
    int result = -EAGAIN, r;
    struct key *k = ring;

    if (!ring->type->is_keyring)
        return -ENOTDIR;
    r = key_permission(ring, possessed, s->cred, KEY_SEARCH);
    if (r)
        return r;
    if (!try_key(ring, possessed, s, &result)) {
        if (result != -EAGAIN)
            return result;
        visits++;
        k = search_below(ring, possessed, s, 0, &result);
    }
    if (!k)
        return result;
    *ret_key = key_ref(k);
    return 0;
}

struct key *keyring_find_named(const char *name, const struct cred *c)
{
    for (struct key *k = key_next(NULL); k; k = key_next(k)) {
        if (k->type->is_keyring && !strcmp(k->desc, name) && !k->revoked && !k->invalidated &&
            !key_permission(k, false, c, KEY_SEARCH))
            return key_ref(k);
    }
    return NULL;
}
