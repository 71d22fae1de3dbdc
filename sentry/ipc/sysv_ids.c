/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of System V objects. */
#include "sentry/ipc/sysv_ids.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/ctx.h"
#include "sentry/ipc/ipc_caller.h"
#include "sentry/ipc/ipcns.h"

#define SLOT_BITS 15
#define SEQ_MAX 0xffff

void sysv_object_unref(struct sysv_object *o)
{
    if (o && ref_put(&o->ref))
        o->free(o);
}

void sysv_ids_free(struct sysv_ids *ids)
{
    for (uint32_t i = 0; i < ids->capacity; i++) {
        if (ids->slots[i])
            sysv_ids_remove(ids, ids->slots[i]);
    }
    mem_free(ids->slots);
    *ids = (struct sysv_ids){0};
}

static int slot_take(struct sysv_ids *ids)
{
    for (uint32_t i = 0; i < ids->capacity; i++) {
        if (!ids->slots[i])
            return (int)i;
    }
    if (ids->capacity == SYSV_SLOTS_MAX)
        return -ENOSPC;
    uint32_t capacity = MAX(16U, MIN(ids->capacity * 2, (uint32_t)SYSV_SLOTS_MAX));
    struct sysv_object **slots = mem_realloc(ids->slots, capacity, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    memset(slots + ids->capacity, 0, (capacity - ids->capacity) * sizeof(*slots));
    int slot = (int)ids->capacity;
    ids->slots = slots;
    ids->capacity = capacity;
    return slot;
}

int sysv_ids_add(struct ctx *ctx, struct sysv_ids *ids, struct sysv_object *o, int32_t key, uint32_t mode,
                 uint32_t max)
{
    if (ids->used >= max)
        return -ENOSPC;
    int slot = slot_take(ids);
    if (slot < 0)
        return slot;
    ref_init(&o->ref);
    o->key = key;
    o->mode = mode;
    o->uid = o->cuid = ctx->cred->euid;
    o->gid = o->cgid = ctx->cred->egid;
    o->seq = ids->seq;
    ids->seq = ids->seq == SEQ_MAX ? 0 : ids->seq + 1;
    o->id = (int32_t)((uint32_t)o->seq << SLOT_BITS | (uint32_t)slot) & INT32_MAX;
    ids->slots[slot] = o;
    ids->used++;
    return o->id;
}

void sysv_ids_remove(struct sysv_ids *ids, struct sysv_object *o)
{
    uint32_t slot = (uint32_t)o->id & (SYSV_SLOTS_MAX - 1);
    BUG_ON(ids->slots[slot] != o);
    ids->slots[slot] = NULL;
    ids->used--;
    o->removed = true;
    sysv_object_unref(o);
}

struct sysv_object *sysv_ids_by_key(const struct sysv_ids *ids, int32_t key)
{
    for (uint32_t i = 0; i < ids->capacity; i++) {
        if (ids->slots[i] && ids->slots[i]->key == key)
            return ids->slots[i];
    }
    return NULL;
}

struct sysv_object *sysv_ids_at(const struct sysv_ids *ids, uint32_t slot)
{
    slot &= SYSV_SLOTS_MAX - 1; /* whole ids are taken as well */
    return slot < ids->capacity ? ids->slots[slot] : NULL;
}

int sysv_ids_by_id(const struct sysv_ids *ids, int id, struct sysv_object **ret_object)
{
    if (id < 0)
        return -EINVAL;
    struct sysv_object *o = sysv_ids_at(ids, (uint32_t)id & (SYSV_SLOTS_MAX - 1));
    if (!o || o->id != id)
        return -EINVAL;
    *ret_object = o;
    return 0;
}

int sysv_ids_max_slot(const struct sysv_ids *ids)
{
    for (uint32_t i = ids->capacity; i > 0; i--) {
        if (ids->slots[i - 1])
            return (int)i - 1;
    }
    return -1;
}

int sysv_permission(struct ctx *ctx, const struct sysv_object *o, uint32_t want)
{
    const struct cred *c = ctx->cred;
    uint32_t asked = (want >> 6) | (want >> 3) | want, granted = o->mode;
    if (c->euid == o->cuid || c->euid == o->uid)
        granted >>= 6;
    else if (cred_in_egroup(c, o->cgid) || cred_in_egroup(c, o->gid))
        granted >>= 3;
    if ((asked & ~granted & 7) && !cred_ns_cap(c, ipc_caller_ns(ctx)->userns, CAP_IPC_OWNER))
        return -EACCES;
    return 0;
}

int sysv_owner(struct ctx *ctx, const struct sysv_object *o)
{
    const struct cred *c = ctx->cred;
    if (c->euid == o->uid || c->euid == o->cuid || cred_ns_cap(c, ipc_caller_ns(ctx)->userns, CAP_SYS_ADMIN))
        return 0;
    return -EPERM;
}

int sysv_get(struct ctx *ctx, const struct sysv_ids *ids, int32_t key, int32_t flags,
             struct sysv_object **ret_object)
{
    struct sysv_object *o = key == IPC_PRIVATE ? NULL : sysv_ids_by_key(ids, key);
    if (key == IPC_PRIVATE)
        return 0;
    if (!o)
        return flags & IPC_CREAT ? 0 : -ENOENT;
    if ((flags & IPC_CREAT) && (flags & IPC_EXCL))
        return -EEXIST;
    int r = sysv_permission(ctx, o, (uint32_t)flags & 0777);
    if (r)
        return r;
    *ret_object = o;
    return 1;
}

void sysv_fill_perm(struct ctx *ctx, const struct sysv_object *o, struct sysv_perm64 *ret_perm)
{
    const struct userns *ns = ctx ? ctx->cred->userns : NULL;
    *ret_perm = (struct sysv_perm64){
        .key = o->key,
        .uid = userns_uid_shown(ns, o->uid),
        .gid = userns_gid_shown(ns, o->gid),
        .cuid = userns_uid_shown(ns, o->cuid),
        .cgid = userns_gid_shown(ns, o->cgid),
        .mode = o->mode,
        .seq = o->seq,
    };
}

int sysv_set_perm(struct ctx *ctx, struct sysv_object *o, const struct sysv_perm64 *p)
{
    uint32_t uid = userns_uid_in(ctx->cred->userns, p->uid), gid = userns_gid_in(ctx->cred->userns, p->gid);
    if (uid == USERNS_NO_ID || gid == USERNS_NO_ID)
        return -EINVAL;
    o->uid = uid;
    o->gid = gid;
    o->mode = (o->mode & ~0777U) | (p->mode & 0777);
    return 0;
}
