/* SPDX-License-Identifier: Apache-2.0 */
/* Keyrings: links to keys, one of each type and description, and the search through nested ones. Source: keyrings(7). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/kernel/key.h"

enum { KEYRING_DEPTH_MAX = 6 };

/* Return: the linked key, borrowed, or NULL. */
struct key *keyring_get_peek(const struct key *ring, const struct key_type *type, const char *desc);
/* Links k; what has its type and description goes. Takes its own reference. Return: 0, −ENOTDIR, −EPERM (restricted),
 * −EDEADLK (a cycle), −ELOOP (nested too deep), −EDQUOT, −ENOMEM. */
MUST_CHECK int keyring_link(struct key *ring, struct key *k);
/* Return: 0, −ENOTDIR, −ENOENT. */
MUST_CHECK int keyring_unlink(struct key *ring, struct key *k);
/* Return: 0, −ENOTDIR, −ENOENT, −EEXIST (with excl), what keyring_link returns. */
MUST_CHECK int keyring_move(struct key *k, struct key *from, struct key *to, bool excl);
void keyring_clear(struct key *ring); /* does nothing to other keys */
/* Drops links to keys that are of no use any more. */
void keyring_drop_dead(struct key *ring);

struct key_search {
    const struct cred *cred;
    const struct key_type *type;
    const char *desc;
    const struct key *exact; /* this very key, or NULL */
    bool any_state;          /* takes keys that are revoked, expired or negative */
    bool skip_expired;       /* as if expired keys were not there */
};
/* Looks at ring, its keys, and those of keyrings in it that may be searched. Return: 0 with a referenced key; −EAGAIN (none),
 * −EACCES, −EKEYREVOKED, −EKEYEXPIRED, a negative key's error, −ENOTDIR. */
MUST_CHECK int keyring_search(struct key *ring, bool possessed, const struct key_search *s, struct key **ret_key);
/* The keyring of that name that c may join (needs the right to search it without possession). Return: referenced or NULL. */
MUST_CHECK struct key *keyring_find_named(const char *name, const struct cred *c);
