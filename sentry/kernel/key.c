/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: table, types, quotas, rights. */
#include "sentry/kernel/key.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/keyring.h"

enum { BUCKETS = 1024, KEY_DESC_KEYS = 1 };
#define NS_PER_SECOND 1000000000ULL

static struct {
    struct key *by_serial[BUCKETS]; /* (k) */
    struct key_user *users;         /* (k) */
    struct key *to_free;            /* (k) */
    bool freeing;                   /* (k) */
    uint32_t count;                 /* (k) */
    uint64_t bytes;                 /* (k) of all accounts */
    uint32_t tunables[KEY_TUNABLES]; /* (k) */
} keys = {
    .tunables = {[KEY_MAX_KEYS] = 200, [KEY_MAX_BYTES] = 20000, [KEY_ROOT_MAX_KEYS] = 1000000,
                 [KEY_ROOT_MAX_BYTES] = 25000000, [KEY_GC_DELAY] = 300, [KEY_PERSISTENT_EXPIRY] = 3 * 24 * 3600},
};

const struct key_type key_type_keyring = {.name = "keyring", .is_keyring = true, .readable = true};
static const struct key_type types[] = {
    {.name = "user", .readable = true, .updatable = true, .payload_max = 32767},
    {.name = "logon", .updatable = true, .service_prefix = true, .payload_max = 32767},
    {.name = "big_key", .readable = true, .updatable = true, .payload_max = KEY_PAYLOAD_MAX},
};

uint32_t key_tunable(enum key_tunable which)
{
    return keys.tunables[which];
}

void key_set_tunable(enum key_tunable which, uint32_t value)
{
    keys.tunables[which] = value;
}

const struct key_type *key_type_find(const char *name)
{
    if (!strcmp(name, key_type_keyring.name))
        return &key_type_keyring;
    for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
        if (!strcmp(name, types[i].name))
            return &types[i];
    }
    return NULL;
}

uint32_t key_index_hash(const struct key_type *type, const char *desc)
{
    uint32_t h = 2166136261U ^ (uint32_t)type->name[0];

    for (; *desc; desc++)
        h = (h ^ (uint8_t)*desc) * 16777619U;
    return h;
}

uint32_t key_default_perm(const struct key_type *type)
{
    unsigned possessor = KEY_VIEW | KEY_SEARCH | KEY_LINK | KEY_SETATTR;

    if (type->readable)
        possessor |= KEY_READ;
    if (type->is_keyring || type->updatable)
        possessor |= KEY_WRITE;
    return KEY_PERM(possessor, KEY_VIEW);
}

/* ---- accounts ---- */

struct key_user *key_user_get(uint32_t uid)
{
    struct key_user *u;

    for (u = keys.users; u; u = u->next) {
        if (u->uid == uid)
            return u;
    }
    u = NEW(struct key_user);
    if (!u)
        return NULL;
    u->uid = uid;
    u->next = keys.users;
    keys.users = u;
    return u;
}

struct key_user *key_user_next(struct key_user *u)
{
    return u ? u->next : keys.users;
}

/* Accounts go with the last key in them. */
static void user_put(struct key_user *u)
{
    struct key_user **at = &keys.users;

    if (u->keys)
        return;
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    mem_free(u);
}

void key_user_limits(const struct key_user *u, uint32_t *ret_keys, uint32_t *ret_bytes)
{
    *ret_keys = keys.tunables[u->uid ? KEY_MAX_KEYS : KEY_ROOT_MAX_KEYS];
    *ret_bytes = keys.tunables[u->uid ? KEY_MAX_BYTES : KEY_ROOT_MAX_BYTES];
}

static bool fits(const struct key_user *u, uint32_t more_keys, uint64_t more_bytes)
{
    uint32_t max_keys, max_bytes;

    key_user_limits(u, &max_keys, &max_bytes);
    return u->charged_keys + more_keys <= max_keys && u->charged_bytes + more_bytes <= max_bytes;
}

/* The last resort before a refusal: links to dead keys are otherwise dropped only when somebody passes. */
static void sweep(void)
{
    static uint64_t last_ns; /* (k) */
    uint64_t now = host_monotonic_ns();

    if (now - last_ns < NS_PER_SECOND)
        return;
    last_ns = now;
    struct key *k = key_next(NULL), *next;
    if (k)
        key_ref(k);
    for (; k; k = next) {
        keyring_drop_dead(k);
        next = key_next(k);
        if (next)
            key_ref(next); /* it may be below k, which may go now */
        key_unref(k);
    }
}

static int admit(const struct key_user *u, uint32_t more_keys, uint64_t more_bytes, bool overrun)
{
    for (int i = 0; i < 2; i++) {
        if (keys.count + more_keys <= LIMIT_KEYS && keys.bytes + more_bytes <= LIMIT_KEY_BYTES &&
            (overrun || fits(u, more_keys, more_bytes)))
            return 0;
        if (i == 0)
            sweep();
    }
    return -EDQUOT;
}

static uint32_t own_bytes(const struct key *k)
{
    return (uint32_t)strlen(k->desc) + 1;
}

static void put_charge(struct key *k, uint32_t charged)
{
    k->owner->charged_bytes += charged;
    k->owner->charged_bytes -= k->charged;
    keys.bytes += charged;
    keys.bytes -= k->charged;
    k->charged = charged;
}

int key_charge(struct key *k, uint32_t bytes)
{
    uint32_t charged = own_bytes(k) + bytes;
    int r = charged > k->charged ? admit(k->owner, 0, charged - k->charged, false) : 0;

    if (!r)
        put_charge(k, charged);
    return r;
}

/* ---- life ---- */

static struct key **bucket(int32_t serial)
{
    return &keys.by_serial[(uint32_t)serial % BUCKETS];
}

struct key *key_find(int32_t serial)
{
    for (struct key *k = *bucket(serial); k; k = k->hash_next) {
        if (k->serial == serial)
            return key_ref(k);
    }
    return NULL;
}

struct key *key_next(struct key *k)
{
    unsigned i = 0;

    if (k) {
        if (k->hash_next)
            return k->hash_next;
        i = (uint32_t)k->serial % BUCKETS + 1;
    }
    for (; i < BUCKETS; i++) {
        if (keys.by_serial[i])
            return keys.by_serial[i];
    }
    return NULL;
}

/* Random, so that numbers tell nothing about others. */
static void take_serial(struct key *k)
{
    struct key *other;

    do {
        host_random(&k->serial, sizeof(k->serial));
        k->serial &= INT32_MAX;
        other = key_find(k->serial);
        key_unref(other);
    } while (k->serial < 3 || other);
    k->hash_next = *bucket(k->serial);
    *bucket(k->serial) = k;
}

int key_new(const struct key_type *type, const char *desc, uint32_t uid, uint32_t gid, uint32_t perm, unsigned flags,
            struct key **ret_key)
{
    struct key_user *u;
    struct key *k;
    const char *colon = strchr(desc, ':');
    int r;

    if (!*desc || (type->service_prefix && (!colon || colon == desc)))
        return -EINVAL;
    u = key_user_get(uid);
    k = u ? NEW(struct key) : NULL;
    if (k)
        k->desc = mem_strdup(desc);
    r = !k || !k->desc ? -ENOMEM : admit(u, KEY_DESC_KEYS, strlen(desc) + 1, flags & KEY_OVERRUN);
    if (r) {
        if (k)
            mem_free(k->desc);
        mem_free(k);
        if (u)
            user_put(u);
        return r;
    }
    ref_init(&k->ref);
    k->type = type;
    k->hash = key_index_hash(type, desc);
    k->owner = u;
    k->uid = uid;
    k->gid = gid;
    k->perm = perm;
    k->user_session = flags & KEY_USER_SESSION;
    u->keys++;
    u->charged_keys++;
    keys.count++;
    put_charge(k, own_bytes(k));
    take_serial(k);
    *ret_key = k;
    return 0;
}

struct key *key_ref(struct key *k)
{
    ref_get(&k->ref);
    return k;
}

static void zap_payload(struct key *k)
{
    if (k->payload)
        explicit_bzero(k->payload, k->size);
    mem_free(k->payload);
    k->payload = NULL;
    k->size = 0;
}

static void key_free(struct key *k)
{
    struct key **at = bucket(k->serial);

    while (*at != k)
        at = &(*at)->hash_next;
    *at = k->hash_next;
    keyring_clear(k);
    zap_payload(k);
    put_charge(k, 0);
    keys.count--;
    k->owner->keys--;
    k->owner->charged_keys--;
    user_put(k->owner);
    mem_free(k->desc);
    mem_free(k);
}

void key_unref(struct key *k)
{
    if (!k || !ref_put(&k->ref))
        return;
    /* A keyring may be the last to hold another one, and so on: in a loop, whatever the depth. */
    k->free_next = keys.to_free;
    keys.to_free = k;
    if (keys.freeing)
        return;
    keys.freeing = true;
    while ((k = keys.to_free)) {
        keys.to_free = k->free_next;
        key_free(k);
    }
    keys.freeing = false;
}

int key_check_payload(const struct key_type *type, uint32_t size)
{
    if (type->is_keyring)
        return size ? -EINVAL : 0;
    return size == 0 || size > type->payload_max ? -EINVAL : 0;
}

int key_set_payload(struct key *k, OWNS void *payload, uint32_t size)
{
    int r = key_charge(k, size);

    if (r) {
        mem_free(payload);
        return r;
    }
    zap_payload(k);
    k->payload = payload;
    k->size = size;
    k->reject = 0;
    k->expiry_ns = 0;
    return 0;
}

void key_negate(struct key *k, int err, uint32_t seconds)
{
    k->reject = err;
    key_set_timeout(k, seconds);
}

void key_revoke(struct key *k)
{
    k->revoked = true;
    keyring_clear(k);
    zap_payload(k);
    put_charge(k, own_bytes(k));
}

void key_set_timeout(struct key *k, uint32_t seconds)
{
    k->expiry_ns = seconds ? host_monotonic_ns() + seconds * NS_PER_SECOND : 0;
}

int key_chown(struct key *k, uint32_t uid, uint32_t gid)
{
    struct key_user *old = k->owner, *u;
    uint32_t charged = k->charged;

    if (uid != (uint32_t)-1 && uid != k->uid) {
        u = key_user_get(uid);
        if (!u)
            return -ENOMEM;
        if (u != old && !fits(u, 1, charged)) {
            user_put(u);
            return -EDQUOT;
        }
        put_charge(k, 0);
        old->keys--;
        old->charged_keys--;
        k->owner = u;
        k->uid = uid;
        u->keys++;
        u->charged_keys++;
        put_charge(k, charged);
        user_put(old);
    }
    if (gid != (uint32_t)-1)
        k->gid = gid;
    return 0;
}

/* ---- state and rights ---- */

bool key_expired(const struct key *k)
{
    return k->expiry_ns && host_monotonic_ns() >= k->expiry_ns;
}

bool key_is_dead(const struct key *k)
{
    return k->invalidated ||
           (k->expiry_ns && host_monotonic_ns() >= k->expiry_ns + keys.tunables[KEY_GC_DELAY] * NS_PER_SECOND);
}

int key_validate(const struct key *k)
{
    if (k->invalidated)
        return -ENOKEY;
    if (k->revoked)
        return -EKEYREVOKED;
    return key_expired(k) ? -EKEYEXPIRED : 0;
}

int key_permission(const struct key *k, bool possessed, const struct cred *c, unsigned need)
{
    uint32_t rights = k->perm;

    if (k->uid == c->fsuid)
        rights = k->perm >> 16;
    else if (k->gid != (uint32_t)-1 && (k->perm & KEY_RIGHTS << 8) && cred_in_group(c, k->gid))
        rights = k->perm >> 8;
    if (possessed)
        rights |= k->perm >> 24;
    return (rights & need) == need ? 0 : -EACCES;
}
