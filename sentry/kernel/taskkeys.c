/* SPDX-License-Identifier: Apache-2.0 */
/* Keyrings of tasks. */
#include "sentry/kernel/taskkeys.h"

#include <errno.h>
#include <stdio.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/key.h"
#include "sentry/kernel/keyring.h"
#include "sentry/kernel/task.h"

enum { NEGATIVE_SECONDS = 60 };
#define PERM_OWN KEY_PERM(KEY_RIGHTS, KEY_VIEW)
#define PERM_SESSION KEY_PERM(KEY_RIGHTS, KEY_VIEW | KEY_READ)
#define PERM_NAMED_SESSION KEY_PERM(KEY_RIGHTS, KEY_VIEW | KEY_READ | KEY_LINK)
#define PERM_USER KEY_PERM(KEY_RIGHTS & ~KEY_SETATTR, KEY_RIGHTS)
#define PERM_PERSISTENT KEY_PERM(KEY_RIGHTS & ~KEY_SETATTR, KEY_VIEW | KEY_READ)

static void replace(struct key **at, OWNS struct key *k)
{
    struct key *old = *at;

    *at = k;
    key_unref(old);
}

static struct key *ref_or_null(struct key *k)
{
    return k ? key_ref(k) : NULL;
}

static int new_ring(const struct task *t, const char *name, uint32_t perm, unsigned flags, struct key **ret)
{
    const struct cred *c = t->ctx.cred;

    return key_new(&key_type_keyring, name, c->uid, c->gid, perm, flags, ret);
}

int taskkeys_install_thread(struct task *t)
{
    return t->keys.thread ? 0 : new_ring(t, "_tid", PERM_OWN, KEY_OVERRUN, &t->keys.thread);
}

int taskkeys_install_process(struct task *t)
{
    return t->keys.process ? 0 : new_ring(t, "_pid", PERM_OWN, KEY_OVERRUN, &t->keys.process);
}

int taskkeys_clone(const struct task *t, struct task *child, bool is_thread)
{
    child->keys.session = ref_or_null(t->keys.session);
    child->keys.request_to = t->keys.request_to;
    if (!is_thread)
        return 0;
    child->keys.process = ref_or_null(t->keys.process);
    return t->keys.thread ? taskkeys_install_thread(child) : 0;
}

void taskkeys_exec(struct task *t)
{
    replace(&t->keys.thread, NULL);
    replace(&t->keys.process, NULL);
}

void taskkeys_drop(struct task *t)
{
    taskkeys_exec(t);
    replace(&t->keys.session, NULL);
}

void taskkeys_set_owner(struct task *t)
{
    struct key *k = t->keys.thread;

    if (!k)
        return;
    k->uid = t->ctx.cred->fsuid;
    k->gid = t->ctx.cred->fsgid;
}

/* The user's own two keyrings, the second with a link to the first. Return: 0 with borrowed ones. */
static int user_rings(const struct task *t, struct key **ret_user, struct key **ret_session)
{
    uint32_t uid = t->ctx.cred->uid;
    struct key_user *u = key_user_get(uid);
    struct key *k;
    char name[32];
    int r = u ? 0 : -ENOMEM;

    if (!r && !u->user) {
        snprintf(name, sizeof(name), "_uid.%u", uid);
        r = key_new(&key_type_keyring, name, uid, (uint32_t)-1, PERM_USER, 0, &u->user);
    }
    if (!r && !u->session) {
        snprintf(name, sizeof(name), "_uid_ses.%u", uid);
        r = key_new(&key_type_keyring, name, uid, (uint32_t)-1, PERM_USER, KEY_USER_SESSION, &k);
        if (!r) {
            r = keyring_link(k, u->user);
            if (r)
                key_unref(k);
            else
                u->session = k;
        }
    }
    if (r)
        return r;
    if (ret_user)
        *ret_user = u->user;
    if (ret_session)
        *ret_session = u->session;
    return 0;
}

int taskkeys_persistent(uint32_t uid, struct key **ret_key)
{
    struct key_user *u = key_user_get(uid);
    struct key *k;
    char name[32];
    int r;

    if (!u)
        return -ENOMEM;
    if (!u->persistent || key_validate(u->persistent)) {
        snprintf(name, sizeof(name), "_persistent.%u", uid);
        r = key_new(&key_type_keyring, name, uid, (uint32_t)-1, PERM_PERSISTENT, KEY_OVERRUN, &k);
        if (r)
            return r;
        replace(&u->persistent, k);
    }
    key_set_timeout(u->persistent, key_tunable(KEY_PERSISTENT_EXPIRY));
    *ret_key = key_ref(u->persistent);
    return 0;
}

int taskkeys_join_session(struct task *t, const char *name)
{
    struct key *k;
    int r;

    if (!name) {
        r = new_ring(t, "_ses", PERM_SESSION, t->keys.session ? 0 : KEY_OVERRUN, &k);
    } else {
        k = keyring_find_named(name, t->ctx.cred);
        r = k ? 0 : new_ring(t, name, PERM_NAMED_SESSION, 0, &k);
    }
    if (r)
        return r;
    replace(&t->keys.session, k);
    return k->serial;
}

/* The caller's session keyring; whoever has none, and wants to change it, gets one that is not the user's common one. */
static int session_ring(struct task *t, bool create)
{
    struct key *k = t->keys.session;
    int r = 0;

    if (k && !(k->user_session && create))
        return 0;
    if (!k)
        r = user_rings(t, NULL, &k);
    if (r)
        return r;
    if (create) {
        r = taskkeys_join_session(t, NULL);
        return r < 0 ? r : 0;
    }
    t->keys.session = key_ref(k);
    return 0;
}

static int own_ring(struct task *t, int32_t id, bool create, struct key **ret)
{
    int r;

    switch (id) {
    case TASKKEYS_THREAD:
        r = create ? taskkeys_install_thread(t) : 0;
        *ret = t->keys.thread;
        break;
    case TASKKEYS_PROCESS:
        r = create ? taskkeys_install_process(t) : 0;
        *ret = t->keys.process;
        break;
    case TASKKEYS_SESSION:
        r = session_ring(t, create);
        *ret = t->keys.session;
        break;
    case TASKKEYS_USER:
        r = user_rings(t, ret, NULL);
        break;
    case TASKKEYS_USER_SESSION:
        r = user_rings(t, NULL, ret);
        break;
    case TASKKEYS_AUTH_KEY: /* nobody instantiates keys for others */
    case TASKKEYS_REQUESTOR:
        return -ENOKEY;
    default:
        return -EINVAL;
    }
    return r ? r : *ret ? 0 : -ENOKEY;
}

/* By serial. A key is possessed when the caller's keyrings lead to it. */
static int find_any(struct task *t, int32_t id, struct key_handle *ret)
{
    struct key_search s = {.cred = t->ctx.cred, .any_state = true};
    struct key *found;

    if (id < 1)
        return -EINVAL;
    ret->key = key_find(id);
    if (!ret->key)
        return -ENOKEY;
    s.exact = ret->key;
    ret->possessed = !taskkeys_search(t, &s, &found);
    if (ret->possessed)
        key_unref(found);
    return 0;
}

int taskkeys_lookup(struct task *t, int32_t id, unsigned flags, unsigned need, struct key_handle *ret)
{
    struct key_handle h = {.possessed = true};
    int r;

    if (id < 0) {
        r = own_ring(t, id, flags & TASKKEYS_CREATE, &h.key);
        if (!r)
            key_ref(h.key);
    } else {
        r = find_any(t, id, &h);
    }
    if (r)
        return r;
    if (need != TASKKEYS_NEED_UNLINK && need != TASKKEYS_NEED_NONE) {
        if (h.key->reject && !(flags & TASKKEYS_PARTIAL))
            r = h.key->reject;
        if (!r)
            r = key_validate(h.key);
        if (!r)
            r = key_permission(h.key, h.possessed, t->ctx.cred, need);
    }
    if (r) {
        key_unref(h.key);
        return r;
    }
    *ret = h;
    return 0;
}

int taskkeys_search(struct task *t, const struct key_search *s, struct key **ret_key)
{
    struct key_user *u = NULL;
    struct key *rings[3] = {t->keys.thread, t->keys.process, t->keys.session};
    int none = 0, err = -EAGAIN;

    if (!rings[2]) {
        while ((u = key_user_next(u)) && u->uid != t->ctx.cred->uid)
            ;
        rings[2] = u ? u->session : NULL;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(rings); i++) {
        int r = rings[i] ? keyring_search(rings[i], true, s, ret_key) : 1;

        if (r == 0)
            return 0;
        /* A negative key says more than that there is none, and that more than a key that can't be used. */
        if (r == -ENOKEY || (r == -EAGAIN && !none))
            none = r;
        else if (r < 0 && r != -EAGAIN)
            err = r;
    }
    return none ? none : err;
}

/* Where request_key puts a key when it is not told. Return: 0 with a borrowed keyring. */
static int default_dest(struct task *t, struct key **ret)
{
    struct key *dest = NULL;
    int r = 0;

    switch (t->keys.request_to) {
    case TASKKEYS_TO_DEFAULT:
    case TASKKEYS_TO_REQUESTOR:
    case TASKKEYS_TO_THREAD:
        dest = t->keys.thread;
        /* fall through */
    case TASKKEYS_TO_PROCESS:
        dest = dest ? dest : t->keys.process;
        /* fall through */
    case TASKKEYS_TO_SESSION:
        dest = dest ? dest : t->keys.session;
        /* fall through */
    case TASKKEYS_TO_USER_SESSION:
        if (!dest)
            r = user_rings(t, NULL, &dest);
        break;
    default:
        r = user_rings(t, &dest, NULL);
        break;
    }
    if (!r)
        r = key_permission(dest, true, t->ctx.cred, KEY_WRITE);
    if (!r)
        *ret = dest;
    return r;
}

/* Nobody answers: a key that says so for a while, so that not every request is a new search for an answer. */
static int leave_negative(struct task *t, const struct key_type *type, const char *desc, struct key *dest)
{
    const struct cred *c = t->ctx.cred;
    struct key *k;
    int r = dest ? 0 : default_dest(t, &dest);

    if (!r)
        r = key_new(type, desc, c->fsuid, c->fsgid, key_default_perm(type), 0, &k);
    if (r)
        return r;
    key_negate(k, -ENOKEY, NEGATIVE_SECONDS);
    r = keyring_link(dest, k);
    key_unref(k);
    return r ? r : -ENOKEY;
}

int taskkeys_request(struct task *t, const struct key_type *type, const char *desc, bool callout, struct key *dest,
                     struct key **ret_key)
{
    struct key_search s = {.cred = t->ctx.cred, .type = type, .desc = desc, .skip_expired = true};
    struct key *k;
    int r = taskkeys_search(t, &s, &k);

    if (r == -EAGAIN)
        return callout ? leave_negative(t, type, desc, dest) : -ENOKEY;
    if (r)
        return r;
    if (dest)
        r = keyring_link(dest, k);
    if (r) {
        key_unref(k);
        return r;
    }
    *ret_key = k;
    return 0;
}

int taskkeys_session_to_parent(struct task *t)
{
    const struct tgroup *pg = t->group->parent;
    const struct cred *c = t->ctx.cred, *p;
    struct task *parent = pg ? pg->leader : NULL;
    struct key_handle own;
    int r = taskkeys_lookup(t, TASKKEYS_SESSION, 0, KEY_LINK, &own);

    if (r)
        return r;
    r = -EPERM;
    if (!parent || !parent->mm || pg->thread_count != 1 || pg->unkillable)
        goto out;
    r = 0;
    if (parent->keys.session == own.key)
        goto out;
    r = -EPERM;
    p = parent->ctx.cred;
    if (p->uid != c->euid || p->euid != c->euid || p->suid != c->euid || p->gid != c->egid || p->egid != c->egid ||
        p->sgid != c->egid)
        goto out;
    if ((parent->keys.session && parent->keys.session->uid != c->euid) || own.key->uid != c->euid)
        goto out;
    replace(&parent->keys.session, key_ref(own.key));
    r = 0;
out:
    key_unref(own.key);
    return r;
}
