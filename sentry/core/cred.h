/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials: immutable once published, counted, replaced as a whole (copy, change, commit). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

struct landlock_set; /* core/landlock.h */
struct userns;       /* core/userns.h */

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
bool cred_has_cap(const struct cred *c, int cap);                      /* CAP_* in c's user namespace */
bool cred_in_group(const struct cred *c, uint32_t gid);                /* fsgid or supplementary */
bool cred_in_egroup(const struct cred *c, uint32_t gid);
