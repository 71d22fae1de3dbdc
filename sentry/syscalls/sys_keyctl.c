/* SPDX-License-Identifier: Apache-2.0 */
/* keyctl: one function an operation. Source: keyctl(2). */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/keyring.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/key_args.h"

enum {
    OP_GET_KEYRING_ID, OP_JOIN_SESSION, OP_UPDATE, OP_REVOKE, OP_CHOWN, OP_SETPERM, OP_DESCRIBE, OP_CLEAR, OP_LINK, OP_UNLINK,
    OP_SEARCH, OP_READ, OP_INSTANTIATE, OP_NEGATE, OP_SET_REQKEY, OP_SET_TIMEOUT, OP_ASSUME, OP_GET_SECURITY, OP_SESSION_TO_PARENT,
    OP_REJECT, OP_INSTANTIATE_IOV, OP_INVALIDATE, OP_GET_PERSISTENT, OP_RESTRICT = 29, OP_MOVE, OP_CAPABILITIES,
};
enum { MOVE_EXCL = 1, ERRNO_MAX = 4095, SECONDS_MAX = INT32_MAX };

static int64_t get_keyring_id(struct task *t, int32_t id, bool create)
{
    struct key_handle h;
    int r = taskkeys_lookup(t, id, create ? TASKKEYS_CREATE : 0, KEY_SEARCH, &h);

    if (r)
        return r;
    r = h.key->serial;
    key_unref(h.key);
    return r;
}

static int64_t join_session(struct task *t, uaddr_t addr)
{
    CLEANUP_FREE char *name = NULL;
    int r = uaddr_is_null(addr) ? 0 : key_string_in(t, addr, &name);

    if (!r && name && name[0] == '.')
        return -EPERM; /* the kernel's own */
    if (!r && name && !*name)
        return -EINVAL;
    return r ? r : taskkeys_join_session(t, name);
}

static int64_t update(struct task *t, int32_t id, uaddr_t addr, uint64_t size)
{
    struct key_handle h;
    void *payload;
    int r;

    if (size > PAGE_SIZE)
        return -EINVAL;
    r = key_payload_in(t, addr, size, &payload);
    if (r)
        return r;
    r = taskkeys_lookup(t, id, 0, KEY_WRITE, &h);
    if (r) {
        mem_free(payload);
        return r;
    }
    r = h.key->type->updatable ? key_check_payload(h.key->type, (uint32_t)size) : -EOPNOTSUPP;
    if (r)
        mem_free(payload);
    else
        r = key_set_payload(h.key, payload, (uint32_t)size);
    key_unref(h.key);
    return r;
}

static int64_t revoke_key(struct task *t, int32_t id)
{
    struct key_handle h;
    int r = taskkeys_lookup(t, id, 0, KEY_WRITE, &h);

    if (r == -EACCES)
        r = taskkeys_lookup(t, id, 0, KEY_SETATTR, &h);
    if (r)
        return r;
    key_revoke(h.key);
    key_unref(h.key);
    return 0;
}

static int64_t invalidate(struct task *t, int32_t id)
{
    struct key_handle h;
    int r = taskkeys_lookup(t, id, 0, KEY_SEARCH, &h);

    if (r)
        return r;
    h.key->invalidated = true;
    key_unref(h.key);
    return 0;
}

static int64_t change_owner(struct task *t, int32_t id, uint32_t uid, uint32_t gid)
{
    const struct cred *c = t->ctx.cred;
    struct key_handle h;
    uint32_t kuid = userns_uid_in(c->userns, uid), kgid = userns_gid_in(c->userns, gid);

    if ((uid != (uint32_t)-1 && kuid == USERNS_NO_ID) || (gid != (uint32_t)-1 && kgid == USERNS_NO_ID))
        return -EINVAL;
    uid = kuid;
    gid = kgid;
    int r = taskkeys_lookup(t, id, TASKKEYS_CREATE | TASKKEYS_PARTIAL, KEY_SETATTR, &h);

    if (r)
        return r;
    if (!cred_has_cap(c, CAP_SYS_ADMIN) &&
        ((uid != (uint32_t)-1 && uid != h.key->uid) ||
         (gid != (uint32_t)-1 && gid != h.key->gid && !cred_in_group(c, gid))))
        r = -EACCES;
    else
        r = key_chown(h.key, uid, gid);
    key_unref(h.key);
    return r;
}

static int64_t set_perm(struct task *t, int32_t id, uint32_t perm)
{
    struct key_handle h;
    int r;

    if (perm & ~KEY_PERM_MASK)
        return -EINVAL;
    r = taskkeys_lookup(t, id, TASKKEYS_CREATE | TASKKEYS_PARTIAL, KEY_SETATTR, &h);
    if (r)
        return r;
    if (h.key->uid == t->ctx.cred->fsuid || cred_has_cap(t->ctx.cred, CAP_SYS_ADMIN))
        h.key->perm = perm;
    else
        r = -EACCES;
    key_unref(h.key);
    return r;
}

/* Copies what there is room for all of. Return: the size needed. */
static int64_t out_all(struct task *t, uaddr_t buf, uint64_t room, const void *p, size_t size)
{
    if (uaddr_is_null(buf) || room < size || !size)
        return (int64_t)size;
    return copy_out(&t->ctx, buf, p, size) ? -EFAULT : (int64_t)size;
}

static int64_t describe(struct task *t, int32_t id, uaddr_t buf, uint64_t room)
{
    struct key_handle h;
    char *text;
    int64_t ret = -ENOMEM;
    int r = taskkeys_lookup(t, id, TASKKEYS_PARTIAL, KEY_VIEW, &h);

    if (r)
        return r;
    size_t size = strlen(h.key->desc) + 96;
    text = mem_zalloc(size);
    if (text) {
        int n = snprintf(text, size, "%s;%u;%u;%08x;%s", h.key->type->name,
                         userns_uid_shown(t->ctx.cred->userns, h.key->uid),
                         userns_gid_shown(t->ctx.cred->userns, key_shown_gid(h.key)), h.key->perm, h.key->desc);
        ret = out_all(t, buf, room, text, (size_t)n + 1);
        mem_free(text);
    }
    key_unref(h.key);
    return ret;
}

static int64_t clear(struct task *t, int32_t id)
{
    struct key_handle h;
    int r = taskkeys_lookup(t, id, TASKKEYS_CREATE, KEY_WRITE, &h);

    if (r)
        return r;
    if (h.key->type->is_keyring)
        keyring_clear(h.key);
    else
        r = -ENOTDIR;
    key_unref(h.key);
    return r;
}

static int64_t link_key(struct task *t, int32_t id, int32_t ring_id)
{
    struct key_handle ring, h;
    int r = taskkeys_lookup(t, ring_id, TASKKEYS_CREATE, KEY_WRITE, &ring);

    if (r)
        return r;
    r = taskkeys_lookup(t, id, TASKKEYS_CREATE, KEY_LINK, &h);
    if (!r) {
        r = keyring_link(ring.key, h.key);
        key_unref(h.key);
    }
    key_unref(ring.key);
    return r;
}

static int64_t unlink_key(struct task *t, int32_t id, int32_t ring_id)
{
    struct key_handle ring, h;
    int r = taskkeys_lookup(t, ring_id, 0, KEY_WRITE, &ring);

    if (r)
        return r;
    r = taskkeys_lookup(t, id, TASKKEYS_PARTIAL, TASKKEYS_NEED_UNLINK, &h);
    if (!r) {
        r = keyring_unlink(ring.key, h.key);
        key_unref(h.key);
    }
    key_unref(ring.key);
    return r;
}

static int64_t move_key(struct task *t, int32_t id, int32_t from_id, int32_t to_id, uint32_t flags)
{
    struct key_handle h, from, to;
    int r;

    if (flags & ~(uint32_t)MOVE_EXCL)
        return -EINVAL;
    r = taskkeys_lookup(t, id, TASKKEYS_CREATE, KEY_LINK, &h);
    if (r)
        return r;
    r = taskkeys_lookup(t, from_id, 0, KEY_WRITE, &from);
    if (!r) {
        r = taskkeys_lookup(t, to_id, TASKKEYS_CREATE, KEY_WRITE, &to);
        if (!r) {
            r = keyring_move(h.key, from.key, to.key, flags & MOVE_EXCL);
            key_unref(to.key);
        }
        key_unref(from.key);
    }
    key_unref(h.key);
    return r;
}

/* Links what a search has found. Return: its serial. Consumes k. */
static int64_t take_found(struct task *t, OWNS struct key *k, bool possessed, const struct key_handle *dest)
{
    int r = dest->key ? key_permission(k, possessed, t->ctx.cred, KEY_LINK) : 0;

    if (!r && dest->key)
        r = keyring_link(dest->key, k);
    if (!r)
        r = k->serial;
    key_unref(k);
    return r;
}

static int64_t search(struct task *t, int32_t ring_id, uaddr_t type_addr, uaddr_t desc_addr, int32_t dest_id)
{
    char name[KEY_TYPE_SIZE];
    CLEANUP_FREE char *desc = NULL;
    struct key_search s = {.cred = t->ctx.cred};
    struct key_handle ring = {0}, dest = {0};
    struct key *k;
    int64_t ret;
    int r = key_type_in(t, type_addr, name);

    if (!r)
        r = key_string_in(t, desc_addr, &desc);
    if (!r)
        r = taskkeys_lookup(t, ring_id, 0, KEY_SEARCH, &ring);
    if (!r && dest_id)
        r = taskkeys_lookup(t, dest_id, TASKKEYS_CREATE, KEY_WRITE, &dest);
    if (!r) {
        s.type = key_type_find(name);
        s.desc = desc;
        r = s.type ? keyring_search(ring.key, ring.possessed, &s, &k) : -ENOKEY;
    }
    ret = r == -EAGAIN ? -ENOKEY : r;
    if (!r)
        ret = take_found(t, k, ring.possessed, &dest);
    key_unref(dest.key);
    key_unref(ring.key);
    return ret;
}

static int64_t read_ring(struct task *t, struct key *ring, uaddr_t buf, uint64_t room)
{
    int32_t *serials;
    int64_t ret;

    keyring_drop_dead(ring);
    if (!ring->links_len)
        return 0;
    serials = NEW_ARRAY(int32_t, ring->links_len);
    if (!serials)
        return -ENOMEM;
    for (uint32_t i = 0; i < ring->links_len; i++)
        serials[i] = ring->links[i].key->serial;
    ret = out_all(t, buf, room, serials, ring->links_len * sizeof(serials[0]));
    mem_free(serials);
    return ret;
}

static int64_t read_key(struct task *t, int32_t id, uaddr_t buf, uint64_t room)
{
    struct key_handle h;
    int64_t ret;
    int r = taskkeys_lookup(t, id, 0, TASKKEYS_NEED_NONE, &h);

    if (r)
        return -ENOKEY;
    /* Whoever can find it may read it. */
    r = h.key->reject ? h.key->reject : h.possessed ? 0 : key_permission(h.key, false, t->ctx.cred, KEY_READ);
    if (!r && !h.key->type->readable)
        r = -EOPNOTSUPP;
    if (!r)
        r = key_validate(h.key);
    if (r)
        ret = r;
    else if (h.key->type->is_keyring)
        ret = read_ring(t, h.key, buf, room);
    else
        ret = out_all(t, buf, room, h.key->payload, h.key->size);
    key_unref(h.key);
    return ret;
}

static int64_t set_request_dest(struct task *t, int32_t to)
{
    int64_t old = t->keys.request_to;
    int r = 0;

    switch (to) {
    case -1:
        return old;
    case TASKKEYS_TO_THREAD:
        r = taskkeys_install_thread(t);
        break;
    case TASKKEYS_TO_PROCESS:
        r = taskkeys_install_process(t);
        break;
    case TASKKEYS_TO_DEFAULT:
    case TASKKEYS_TO_SESSION:
    case TASKKEYS_TO_USER:
    case TASKKEYS_TO_USER_SESSION:
    case TASKKEYS_TO_REQUESTOR:
        break;
    default:
        return -EINVAL;
    }
    if (r)
        return r;
    t->keys.request_to = (uint8_t)to;
    return old;
}

static int64_t set_timeout(struct task *t, int32_t id, uint32_t seconds)
{
    struct key_handle h;
    int r = taskkeys_lookup(t, id, TASKKEYS_CREATE | TASKKEYS_PARTIAL, KEY_SETATTR, &h);

    if (r)
        return r;
    key_set_timeout(h.key, seconds);
    key_unref(h.key);
    return 0;
}

/* Without a security module the label is empty. */
static int64_t get_security(struct task *t, int32_t id, uaddr_t buf, uint64_t room)
{
    struct key_handle h;
    int r = taskkeys_lookup(t, id, TASKKEYS_PARTIAL, KEY_VIEW, &h);

    if (r)
        return r;
    key_unref(h.key);
    return out_all(t, buf, room, "", 1);
}

static int64_t get_persistent(struct task *t, uint32_t uid, int32_t dest_id)
{
    const struct cred *c = t->ctx.cred;
    struct key_handle dest;
    struct key *k;
    int r;

    uint32_t kuid = userns_uid_in(c->userns, uid);

    if (uid != (uint32_t)-1 && kuid == USERNS_NO_ID)
        return -EINVAL;
    uid = kuid;
    if (uid == (uint32_t)-1)
        uid = c->uid;
    else if (uid != c->uid && uid != c->euid && !cred_own_cap(c, CAP_SETUID))
        return -EPERM;
    r = taskkeys_lookup(t, dest_id, TASKKEYS_CREATE, KEY_WRITE, &dest);
    if (r)
        return r;
    r = dest.key->type->is_keyring ? taskkeys_persistent(uid, &k) : -ENOTDIR;
    if (!r) {
        r = key_permission(k, false, c, KEY_LINK);
        /* The possessor of a user's persistent keyring may link it, and its user possesses it. */
        if (r && (uid == c->uid || uid == c->euid || cred_own_cap(c, CAP_SETUID)))
            r = 0;
        if (!r)
            r = keyring_link(dest.key, k);
        if (!r)
            r = k->serial;
        key_unref(k);
    }
    key_unref(dest.key);
    return r;
}

/* Every link can be refused; there are no types that judge keys. */
static int64_t restrict_ring(struct task *t, int32_t id, uaddr_t type_addr, uaddr_t restriction)
{
    char name[KEY_TYPE_SIZE];
    struct key_handle h;
    int r = taskkeys_lookup(t, id, 0, KEY_SETATTR, &h);

    if (r)
        return r;
    if (!uaddr_is_null(type_addr)) {
        r = key_type_in(t, type_addr, name);
        if (!r)
            r = key_type_find(name) ? -ENOENT : -ENOKEY;
    } else if (!uaddr_is_null(restriction)) {
        r = -EINVAL;
    }
    if (!r)
        r = !h.key->type->is_keyring ? -ENOTDIR : h.key->restricted ? -EEXIST : 0;
    if (!r)
        h.key->restricted = true;
    key_unref(h.key);
    return r;
}

static int64_t capabilities(struct task *t, uaddr_t buf, uint64_t room)
{
    /* This call itself, persistent and big keys, invalidation, restriction, moving. */
    static const uint8_t caps[2] = {0x01 | 0x02 | 0x10 | 0x20 | 0x40 | 0x80, 0};
    size_t n = MIN(room, sizeof(caps));

    if (n && copy_out(&t->ctx, buf, caps, n))
        return -EFAULT;
    if (room > n && room <= KEY_PAYLOAD_MAX && zero_out(&t->ctx, UADDR(buf.v + n), room - n))
        return -EFAULT;
    return sizeof(caps);
}

/* Nobody is ever asked to instantiate a key, so nobody has the authority to. */
static int64_t instantiate(int32_t op, uint64_t size, uint64_t error)
{
    if (op == OP_INSTANTIATE && size > KEY_PAYLOAD_MAX)
        return -EINVAL;
    if (op == OP_REJECT && (error == 0 || error >= ERRNO_MAX || (error >= 512 && error <= 516)))
        return -EINVAL;
    return -EPERM;
}

int64_t sys_keyctl(struct task *t, int32_t op, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
    int32_t id = (int32_t)a2;

    switch (op) {
    case OP_GET_KEYRING_ID:
        return get_keyring_id(t, id, (int32_t)a3);
    case OP_JOIN_SESSION:
        return join_session(t, UADDR(a2));
    case OP_UPDATE:
        return update(t, id, UADDR(a3), a4);
    case OP_REVOKE:
        return revoke_key(t, id);
    case OP_CHOWN:
        return change_owner(t, id, (uint32_t)a3, (uint32_t)a4);
    case OP_SETPERM:
        return set_perm(t, id, (uint32_t)a3);
    case OP_DESCRIBE:
        return describe(t, id, UADDR(a3), (uint32_t)a4);
    case OP_CLEAR:
        return clear(t, id);
    case OP_LINK:
        return link_key(t, id, (int32_t)a3);
    case OP_UNLINK:
        return unlink_key(t, id, (int32_t)a3);
    case OP_SEARCH:
        return search(t, id, UADDR(a3), UADDR(a4), (int32_t)a5);
    case OP_READ:
        return read_key(t, id, UADDR(a3), a4);
    case OP_SET_REQKEY:
        return set_request_dest(t, id);
    case OP_SET_TIMEOUT:
        return set_timeout(t, id, (uint32_t)a3);
    case OP_ASSUME:
        return id < 0 ? -EINVAL : id == 0 ? 0 : -ENOKEY;
    case OP_GET_SECURITY:
        return get_security(t, id, UADDR(a3), a4);
    case OP_SESSION_TO_PARENT:
        return taskkeys_session_to_parent(t);
    case OP_INSTANTIATE:
    case OP_INSTANTIATE_IOV:
    case OP_NEGATE:
    case OP_REJECT:
        return instantiate(op, a4, a4);
    case OP_INVALIDATE:
        return invalidate(t, id);
    case OP_GET_PERSISTENT:
        return get_persistent(t, (uint32_t)a2, (int32_t)a3);
    case OP_RESTRICT:
        return restrict_ring(t, id, UADDR(a3), UADDR(a4));
    case OP_MOVE:
        return move_key(t, id, (int32_t)a3, (int32_t)a4, (uint32_t)a5);
    case OP_CAPABILITIES:
        return capabilities(t, UADDR(a2), a3);
    default:
        return -EOPNOTSUPP;
    }
}
