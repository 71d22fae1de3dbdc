/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials: immutable once published, counted, replaced as a whole (copy, change, commit). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"

struct landlock_set; /* core/landlock.h */

struct cred {
    struct ref ref;
    uint32_t uid, euid, suid, fsuid;
    uint32_t gid, egid, sgid, fsgid;
    uint64_t cap_effective, cap_permitted, cap_inheritable, cap_bounding, cap_ambient;
    uint32_t securebits;
    struct userns *userns; /* owned reference; NULL: the initial one */
    struct landlock_set *landlock; /* owned reference: the domain; NULL: none */
    uint32_t groups_len;
    uint32_t groups[]; /* supplementary, sorted */
};

/* Root with all capabilities and no supplementary groups. Owns: caller unrefs. */
MUST_CHECK int cred_new_root(struct cred **ret_cred);
/* A private copy with count 1 to change before publishing; groups_len entries of room (copied up to that). */
MUST_CHECK int cred_dup(const struct cred *c, uint32_t groups_len, struct cred **ret_cred);
const struct cred *cred_ref(const struct cred *c);
void cred_unref(const struct cred *c); /* NULL is fine */
/* CAP_* over the whole sandbox: what only the initial user namespace can give. The right question for all that no namespace
 * confines. */
bool cred_has_cap(const struct cred *c, int cap);
/* CAP_* over what belongs to the user namespace ns: c has it there, or c's user made ns or one above it. */
bool cred_ns_cap(const struct cred *c, const struct userns *ns, int cap);
bool cred_own_cap(const struct cred *c, int cap);                      /* in c's own user namespace */
/* CAP_* of c over something that belongs to these ids, both of which have to have numbers in c's user namespace. */
bool cred_cap_wrt(const struct cred *c, uint32_t uid, uint32_t gid, int cap);
/* A copy whose user namespace is ns, with every capability there. Owns: caller unrefs. */
MUST_CHECK int cred_enter_userns(const struct cred *c, struct userns *ns, struct cred **ret_cred);
/* The same with a new user namespace below c's. Return: 0, −ENOSPC, −EPERM, −ENOMEM. */
MUST_CHECK int cred_new_userns(const struct cred *c, struct cred **ret_cred);
/* Whether whoever has become n has no more than before: same or a self-made user namespace, no more capabilities. */
bool cred_caps_within(const struct cred *old, const struct cred *n);
bool cred_in_group(const struct cred *c, uint32_t gid);                /* fsgid or supplementary */
bool cred_in_egroup(const struct cred *c, uint32_t gid);
