/* SPDX-License-Identifier: Apache-2.0 */
/* add_key and request_key. */
#include "syscalls_gen.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/keyring.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/key_args.h"

int key_type_in(struct task *t, uaddr_t addr, char ret_name[KEY_TYPE_SIZE])
{
    ssize_t n = copy_in_str(&t->ctx, ret_name, addr, KEY_TYPE_SIZE);

    if (n == -ENAMETOOLONG || n == 0)
        return -EINVAL;
    if (n < 0)
        return (int)n;
    return ret_name[0] == '.' ? -EPERM : 0;
}

int key_string_in(struct task *t, uaddr_t addr, char **ret_text)
{
    char *text = mem_zalloc(KEY_DESC_SIZE);
    ssize_t n = text ? copy_in_str(&t->ctx, text, addr, KEY_DESC_SIZE) : -ENOMEM;

    if (n < 0) {
        mem_free(text);
        return n == -ENAMETOOLONG ? -EINVAL : (int)n;
    }
    *ret_text = text;
    return 0;
}

int key_payload_in(struct task *t, uaddr_t addr, uint64_t size, void **ret_payload)
{
    void *p;
    int r;

    *ret_payload = NULL;
    if (!size)
        return 0;
    p = mem_zalloc(size);
    r = p ? copy_in(&t->ctx, p, addr, size) : -ENOMEM;
    if (r)
        mem_free(p);
    else
        *ret_payload = p;
    return r;
}

/* Puts a new payload into the key that ring has already. */
static int update(struct task *t, struct key *k, bool possessed, OWNS void *payload, uint32_t size)
{
    int r = key_permission(k, possessed, t->ctx.cred, KEY_WRITE);

    if (r) {
        mem_free(payload);
        return r;
    }
    return key_set_payload(k, payload, size);
}

/* Makes the key or updates the one that ring has. Return: its serial. */
static int64_t add(struct task *t, const struct key_type *type, const char *desc, OWNS void *payload, uint32_t size,
                   const struct key_handle *ring)
{
    const struct cred *c = t->ctx.cred;
    struct key *k;
    int64_t serial;
    int r = !ring->key->type->is_keyring ? -ENOTDIR : !*desc ? -EINVAL : key_check_payload(type, size);

    if (!r && ring->key->restricted)
        r = -EPERM;
    if (r) {
        mem_free(payload);
        return r;
    }
    k = type->updatable ? keyring_get_peek(ring->key, type, desc) : NULL;
    if (k && !k->revoked && !k->invalidated) {
        serial = k->serial;
        r = update(t, k, ring->possessed, payload, size);
        return r ? r : serial;
    }
    r = key_new(type, desc, c->fsuid, c->fsgid, key_default_perm(type), 0, &k);
    if (r) {
        mem_free(payload);
        return r;
    }
    serial = k->serial;
    r = type->is_keyring ? 0 : key_set_payload(k, payload, size);
    if (!r)
        r = keyring_link(ring->key, k);
    key_unref(k);
    return r ? r : serial;
}

int64_t sys_add_key(struct task *t, uaddr_t type_addr, uaddr_t desc_addr, uaddr_t payload_addr, uint64_t size,
                    int32_t ring_id)
{
    char name[KEY_TYPE_SIZE];
    CLEANUP_FREE char *desc = NULL;
    const struct key_type *type;
    struct key_handle ring;
    void *payload;
    int64_t ret;
    int r;

    if (size > KEY_PAYLOAD_MAX)
        return -EINVAL;
    r = key_type_in(t, type_addr, name);
    if (!r && !uaddr_is_null(desc_addr))
        r = key_string_in(t, desc_addr, &desc);
    if (r)
        return r;
    if (desc && desc[0] == '.' && !strncmp(name, "keyring", 7))
        return -EPERM;
    r = key_payload_in(t, payload_addr, size, &payload);
    if (r)
        return r;
    r = taskkeys_lookup(t, ring_id, TASKKEYS_CREATE, KEY_WRITE, &ring);
    if (r) {
        mem_free(payload);
        return r;
    }
    type = key_type_find(name);
    if (!type) {
        mem_free(payload);
        ret = -ENODEV;
    } else {
        ret = add(t, type, desc ? desc : "", payload, (uint32_t)size, &ring);
    }
    key_unref(ring.key);
    return ret;
}

int64_t sys_request_key(struct task *t, uaddr_t type_addr, uaddr_t desc_addr, uaddr_t callout_addr, int32_t ring_id)
{
    char name[KEY_TYPE_SIZE];
    CLEANUP_FREE char *desc = NULL, *callout = NULL;
    struct key_handle dest = {0};
    const struct key_type *type;
    struct key *k;
    int64_t ret;
    int r = key_type_in(t, type_addr, name);

    if (!r)
        r = key_string_in(t, desc_addr, &desc);
    if (!r && !uaddr_is_null(callout_addr))
        r = key_string_in(t, callout_addr, &callout);
    if (!r && ring_id)
        r = taskkeys_lookup(t, ring_id, TASKKEYS_CREATE, KEY_WRITE, &dest);
    if (r)
        return r;
    type = key_type_find(name);
    r = type ? taskkeys_request(t, type, desc, callout, dest.key, &k) : -ENOKEY;
    ret = r;
    if (!r) {
        ret = k->serial;
        key_unref(k);
    }
    key_unref(dest.key);
    return ret;
}
