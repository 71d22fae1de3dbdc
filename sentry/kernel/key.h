/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: objects with a type, a description, a payload, an owner, permissions and a life time. Source: keyrings(7).
 *
 * There is one table of keys for the sandbox. Nothing here parks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

struct cred;
struct key;

/* Rights, as in each byte of a permission mask: possessor, user, group, other. */
enum { KEY_VIEW = 1, KEY_READ = 2, KEY_WRITE = 4, KEY_SEARCH = 8, KEY_LINK = 16, KEY_SETATTR = 32, KEY_RIGHTS = 63 };
#define KEY_PERM(possessor, user) ((uint32_t)(possessor) << 24 | (uint32_t)(user) << 16)
#define KEY_PERM_MASK 0x3f3f3f3fU

/* How a key without a group shows it. */
enum { KEY_OVERFLOW_GID = 65534 };
enum { KEY_DESC_SIZE = 4096, KEY_PAYLOAD_MAX = (1 << 20) - 1, KEY_TYPE_SIZE = 32, KEY_LINK_BYTES = 4 };

struct key_type {
    const char *name;
    bool is_keyring, readable, updatable;
    bool service_prefix; /* descriptions begin with "service:" */
    uint32_t payload_max;
};

struct key_link {
    uint32_t hash; /* of the key's type and description */
    struct key *key; /* referenced */
};

/* What a user's keys cost, and the keyrings that every process of the user has. */
struct key_user {
    struct key_user *next;
    uint32_t uid;
    uint32_t keys, charged_keys; /* (k) */
    uint64_t charged_bytes;      /* (k) */
    struct key *user, *session, *persistent; /* (k) referenced; NULL until asked for */
};

struct key {
    struct ref ref;
    int32_t serial;             /* (i) > 0 */
    const struct key_type *type; /* (i) */
    char *desc;                 /* (i) owned */
    uint32_t hash;              /* (i) of type and description */
    struct key_user *owner;     /* (k) who pays; uid below may differ after setfsuid for a thread keyring */
    uint32_t uid, gid, perm;    /* (k) */
    uint64_t expiry_ns;         /* (k) CLOCK_MONOTONIC; 0: never */
    int reject;                 /* (k) −errno of a negative key, else 0 */
    bool revoked, invalidated;  /* (k) */
    bool user_session;          /* (i) the session keyring that a user's processes share by default */
    bool restricted;            /* (k) of a keyring: takes no further links */
    uint32_t charged;           /* (k) bytes in owner's account */
    void *payload;              /* (k) owned */
    uint32_t size;              /* (k) of the payload */
    struct key_link *links;     /* (k) of a keyring, owned */
    uint32_t links_len, links_cap;
    struct key *hash_next;      /* (k) by serial */
    struct key *free_next;      /* (k) waits to be freed */
    uint64_t visit;             /* (k) the last search that came here, and how deep */
    unsigned visit_depth;
};

/* /proc/sys/kernel/keys */
enum key_tunable {
    KEY_MAX_KEYS, KEY_MAX_BYTES, KEY_ROOT_MAX_KEYS, KEY_ROOT_MAX_BYTES, KEY_GC_DELAY, KEY_PERSISTENT_EXPIRY, KEY_TUNABLES,
};
uint32_t key_tunable(enum key_tunable which);
void key_set_tunable(enum key_tunable which, uint32_t value);

static inline uint32_t key_shown_gid(const struct key *k)
{
    return k->gid == (uint32_t)-1 ? (uint32_t)KEY_OVERFLOW_GID : k->gid;
}
/* Return: the type or NULL. */
const struct key_type *key_type_find(const char *name);
extern const struct key_type key_type_keyring;
uint32_t key_index_hash(const struct key_type *type, const char *desc);
/* Rights of a new key whose maker says nothing. */
uint32_t key_default_perm(const struct key_type *type);

enum { KEY_OVERRUN = 1, KEY_USER_SESSION = 2 };
/* A key without payload, owned by uid and gid. Flags: KEY_OVERRUN (the quota does not refuse it).
 * Return: 0, −EDQUOT, −ENOMEM, −EINVAL (description does not suit the type). */
MUST_CHECK int key_new(const struct key_type *type, const char *desc, uint32_t uid, uint32_t gid, uint32_t perm,
                       unsigned flags, struct key **ret_key);
struct key *key_ref(struct key *k);
void key_unref(struct key *k); /* NULL is fine */
/* Return: referenced, or NULL. */
MUST_CHECK struct key *key_find(int32_t serial);
/* Visits all keys in no order; k NULL: the first. Borrowed. */
struct key *key_next(struct key *k);
/* Whether a payload of that size suits the type. Return: 0 or −EINVAL. */
MUST_CHECK int key_check_payload(const struct key_type *type, uint32_t size);
/* Takes the payload (consumed), which has been checked; the key is positive and lives for ever then. Return: 0 or −EDQUOT. */
MUST_CHECK int key_set_payload(struct key *k, OWNS void *payload, uint32_t size);
/* Makes it answer err (−errno) for seconds. */
void key_negate(struct key *k, int err, uint32_t seconds);
void key_revoke(struct key *k);
void key_set_timeout(struct key *k, uint32_t seconds); /* 0: none */
/* Return: 0 or −EDQUOT. */
MUST_CHECK int key_chown(struct key *k, uint32_t uid, uint32_t gid);
/* Puts k's account at bytes besides what its description takes. Return: 0 or −EDQUOT. */
MUST_CHECK int key_charge(struct key *k, uint32_t bytes);

bool key_expired(const struct key *k);
/* Whether nobody can use it any more, so that links to it may go: invalidated, or expired for a while. */
bool key_is_dead(const struct key *k);
/* Return: 0, −ENOKEY (invalidated), −EKEYREVOKED, −EKEYEXPIRED. */
MUST_CHECK int key_validate(const struct key *k);
/* Return: 0 or −EACCES. */
MUST_CHECK int key_permission(const struct key *k, bool possessed, const struct cred *c, unsigned need);

/* Return: uid's account, made if need be; NULL on no memory. */
MUST_CHECK struct key_user *key_user_get(uint32_t uid);
/* Visits all accounts; u NULL: the first. Borrowed. */
struct key_user *key_user_next(struct key_user *u);
void key_user_limits(const struct key_user *u, uint32_t *ret_keys, uint32_t *ret_bytes);
