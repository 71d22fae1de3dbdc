/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers, keys and permissions that System V shared memory, semaphores and message queues have in common. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/ipc.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

struct ctx;
struct sysv_object;

enum { SYSV_SLOTS_MAX = 32768 /* objects of one kind: kernel.shmmni and the like bound them further */ };

/* First member of every object. */
struct sysv_object {
    struct ref ref;            /* the table's, and one for each who waits or is attached */
    void (*free)(struct sysv_object *o); /* (i) last reference gone */
    int32_t key, id;           /* (i) */
    uint32_t uid, gid, cuid, cgid, mode; /* (k) mode: permissions and flags of the kind */
    uint16_t seq;              /* (i) */
    bool removed;              /* (k) no longer in the table */
};

/* The table of one kind; zeroed is empty. */
struct sysv_ids {
    struct sysv_object **slots; /* (k) */
    uint32_t capacity, used;    /* (k) */
    uint16_t seq;               /* (k) of the next object */
};

void sysv_ids_free(struct sysv_ids *ids);
/* Adds o (zeroed but for free and mode): takes over its reference. max: objects allowed. Return: id, −ENOSPC, −ENOMEM. */
MUST_CHECK int sysv_ids_add(struct ctx *ctx, struct sysv_ids *ids, struct sysv_object *o, int32_t key,
                            uint32_t mode, uint32_t max);
/* Takes o out and drops the table's reference. */
void sysv_ids_remove(struct sysv_ids *ids, struct sysv_object *o);
/* Return: borrowed object or NULL. */
struct sysv_object *sysv_ids_by_key(const struct sysv_ids *ids, int32_t key);
/* Return: 0 with a borrowed object; −EINVAL (no such id). */
MUST_CHECK int sysv_ids_by_id(const struct sysv_ids *ids, int id, struct sysv_object **ret_object);
/* By slot, for the STAT commands; NULL: empty. Borrowed. */
struct sysv_object *sysv_ids_at(const struct sysv_ids *ids, uint32_t slot);
/* Highest slot in use, or −1. */
int sysv_ids_max_slot(const struct sysv_ids *ids);
/* want: S_IRUGO | S_IWUGO style bits, of which one class must grant all. Return: 0 or −EACCES. */
MUST_CHECK int sysv_permission(struct ctx *ctx, const struct sysv_object *o, uint32_t want);
/* Whether ctx may change or remove o. Return: 0 or −EPERM. */
MUST_CHECK int sysv_owner(struct ctx *ctx, const struct sysv_object *o);
/* The get calls: finds by key, checks flags (IPC_CREAT, IPC_EXCL, permission bits). Return: 1 with an object, 0 = make a new
 * one, −ENOENT, −EEXIST, −EACCES. */
MUST_CHECK int sysv_get(struct ctx *ctx, const struct sysv_ids *ids, int32_t key, int32_t flags,
                        struct sysv_object **ret_object);
void sysv_object_unref(struct sysv_object *o);

/* As user space sees permissions: struct ipc64_perm of x86-64. */
struct sysv_perm64 {
    int32_t key;
    uint32_t uid, gid, cuid, cgid, mode;
    uint16_t seq, pad1;
    uint32_t pad2;
    uint64_t unused1, unused2;
};
/* ctx NULL: in initial ids. */
void sysv_fill_perm(struct ctx *ctx, const struct sysv_object *o, struct sysv_perm64 *ret_perm);
/* IPC_SET: owner, group and permission bits. Return: 0, −EINVAL (an id that is none to ctx). */
MUST_CHECK int sysv_set_perm(struct ctx *ctx, struct sysv_object *o, const struct sysv_perm64 *p);
