/* SPDX-License-Identifier: Apache-2.0 */
/* The keyrings of a thread, its process, its session and its user, and the keys that are found through them.
 * Source: keyrings(7), thread-keyring(7) and its kin, keyctl(2). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct key;
struct key_search;
struct key_type;
struct task;

/* Serials that stand for a keyring of the caller. */
enum {
    TASKKEYS_THREAD = -1, TASKKEYS_PROCESS = -2, TASKKEYS_SESSION = -3, TASKKEYS_USER = -4, TASKKEYS_USER_SESSION = -5,
    TASKKEYS_GROUP = -6, TASKKEYS_AUTH_KEY = -7, TASKKEYS_REQUESTOR = -8,
};
/* Where request_key puts what it makes. */
enum { TASKKEYS_TO_DEFAULT, TASKKEYS_TO_THREAD, TASKKEYS_TO_PROCESS, TASKKEYS_TO_SESSION, TASKKEYS_TO_USER,
       TASKKEYS_TO_USER_SESSION, TASKKEYS_TO_GROUP, TASKKEYS_TO_REQUESTOR };

/* Part of a task; members referenced, NULL until there is one. */
struct taskkeys {
    struct key *thread, *process, *session; /* (k) */
    uint8_t request_to;                     /* (k) TASKKEYS_TO_* */
};

/* A key and whether the caller possesses it. */
struct key_handle {
    struct key *key; /* referenced */
    bool possessed;
};

/* For clone: a thread shares the process's keyring and gets a thread keyring of its own if its maker has one.
 * Return: 0, −ENOMEM, −EDQUOT. */
MUST_CHECK int taskkeys_clone(const struct task *t, struct task *child, bool is_thread);
void taskkeys_exec(struct task *t);
void taskkeys_drop(struct task *t);
/* The file-system ids have changed: so does the owner of the thread keyring. */
void taskkeys_set_owner(struct task *t);

enum { TASKKEYS_CREATE = 1, TASKKEYS_PARTIAL = 2 };
/* Special needs, beside KEY_* rights. */
enum { TASKKEYS_NEED_NONE = 0, TASKKEYS_NEED_UNLINK = 1 << 8 };
/* The key of a serial or a TASKKEYS_* id. CREATE makes a keyring that is missing; PARTIAL accepts a negative key; NEED_NONE leaves
 * the rights to the caller; NEED_UNLINK asks for nothing, not even a usable key.
 * Return: 0, −EINVAL, −ENOKEY, −EACCES, −EKEYREVOKED, −EKEYEXPIRED, a negative key's error, −EDQUOT, −ENOMEM. */
MUST_CHECK int taskkeys_lookup(struct task *t, int32_t id, unsigned flags, unsigned need, struct key_handle *ret);
/* Looks through thread, process and session keyring. Return: as keyring_search. */
MUST_CHECK int taskkeys_search(struct task *t, const struct key_search *s, struct key **ret_key);
/* request_key(2): finds a key, and links it to dest (may be NULL). With callout and nothing found it leaves a negative key, as
 * nobody makes keys on request here. Return: 0 with a referenced key, or −errno. */
MUST_CHECK int taskkeys_request(struct task *t, const struct key_type *type, const char *desc, bool callout, struct key *dest,
                                struct key **ret_key);
/* A new session keyring (name NULL), or the one of that name, made if need be. Return: serial, −EACCES, −EDQUOT, −ENOMEM. */
MUST_CHECK int taskkeys_join_session(struct task *t, const char *name);
/* The parent gets the caller's session keyring. Return: 0, −EPERM, and what taskkeys_lookup returns. */
MUST_CHECK int taskkeys_session_to_parent(struct task *t);
/* Makes what is missing. Return: 0, −ENOMEM, −EDQUOT. */
MUST_CHECK int taskkeys_install_thread(struct task *t);
MUST_CHECK int taskkeys_install_process(struct task *t);
/* The persistent keyring of uid, made if need be; its life begins anew. Return: 0 with a reference, −ENOMEM, −EDQUOT. */
MUST_CHECK int taskkeys_persistent(uint32_t uid, struct key **ret_key);
