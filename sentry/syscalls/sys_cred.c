/* SPDX-License-Identifier: Apache-2.0 */
/* User and group ids, and the groups one belongs to. Source: setuid(2), setreuid(2), capabilities(7). */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdlib.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

#define ID_NONE UINT32_MAX
/* Capabilities that follow the file-system user id. */
#define CAPS_FS                                                                                    \
    (1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_FOWNER | \
     1ULL << CAP_FSETID | 1ULL << CAP_LINUX_IMMUTABLE | 1ULL << CAP_MKNOD | 1ULL << CAP_MAC_OVERRIDE)

static const struct cred *cred_of(const struct task *t)
{
    return t->ctx.cred;
}

static int begin(const struct task *t, struct cred **ret)
{
    return cred_dup(cred_of(t), cred_of(t)->groups_len, ret);
}

/* What becomes of capabilities when user ids move from or to 0. */
static void fix_caps(const struct cred *old, struct cred *c)
{
    uint32_t root = userns_uid_in(c->userns, 0);
    bool was_root = old->uid == root || old->euid == root || old->suid == root;
    bool is_root = c->uid == root || c->euid == root || c->suid == root;

    if (c->securebits & SECBIT_NO_SETUID_FIXUP)
        return;
    if (was_root && !is_root) {
        if (!(c->securebits & SECBIT_KEEP_CAPS))
            c->cap_permitted = c->cap_effective = 0;
        c->cap_ambient = 0;
    }
    if (old->euid == root && c->euid != root)
        c->cap_effective = 0;
    if (old->euid != root && c->euid == root)
        c->cap_effective = c->cap_permitted;
}

/* Ids of calls: −1 is not one, and each other one needs an id behind it. Return: 0 or −EINVAL. */
static int uid_in(const struct task *t, int32_t id, uint32_t *ret)
{
    *ret = id == -1 ? ID_NONE : userns_uid_in(cred_of(t)->userns, (uint32_t)id);
    return id != -1 && *ret == USERNS_NO_ID ? -EINVAL : 0;
}

static int gid_in(const struct task *t, int32_t id, uint32_t *ret)
{
    *ret = id == -1 ? ID_NONE : userns_gid_in(cred_of(t)->userns, (uint32_t)id);
    return id != -1 && *ret == USERNS_NO_ID ? -EINVAL : 0;
}

static int64_t uid_out(const struct task *t, uint32_t uid)
{
    return userns_uid_shown(cred_of(t)->userns, uid);
}

static int64_t gid_out(const struct task *t, uint32_t gid)
{
    return userns_gid_shown(cred_of(t)->userns, gid);
}

static int64_t finish_uid(struct task *t, struct cred *c)
{
    fix_caps(cred_of(t), c);
    task_set_cred(t, c);
    return 0;
}

static int64_t finish_gid(struct task *t, struct cred *c)
{
    task_set_cred(t, c);
    return 0;
}

static int64_t refuse(struct cred *c)
{
    cred_unref(c);
    return -EPERM;
}

int64_t sys_getuid(struct task *t)
{
    return uid_out(t, cred_of(t)->uid);
}

int64_t sys_geteuid(struct task *t)
{
    return uid_out(t, cred_of(t)->euid);
}

int64_t sys_getgid(struct task *t)
{
    return gid_out(t, cred_of(t)->gid);
}

int64_t sys_getegid(struct task *t)
{
    return gid_out(t, cred_of(t)->egid);
}

int64_t sys_getresuid(struct task *t, uaddr_t ruid, uaddr_t euid, uaddr_t suid)
{
    const struct cred *c = cred_of(t);
    uint32_t ids[] = {(uint32_t)uid_out(t, c->uid), (uint32_t)uid_out(t, c->euid), (uint32_t)uid_out(t, c->suid)};

    return COPY_OUT(&t->ctx, ruid, &ids[0]) || COPY_OUT(&t->ctx, euid, &ids[1]) || COPY_OUT(&t->ctx, suid, &ids[2])
               ? -EFAULT
               : 0;
}

int64_t sys_getresgid(struct task *t, uaddr_t rgid, uaddr_t egid, uaddr_t sgid)
{
    const struct cred *c = cred_of(t);
    uint32_t ids[] = {(uint32_t)gid_out(t, c->gid), (uint32_t)gid_out(t, c->egid), (uint32_t)gid_out(t, c->sgid)};

    return COPY_OUT(&t->ctx, rgid, &ids[0]) || COPY_OUT(&t->ctx, egid, &ids[1]) || COPY_OUT(&t->ctx, sgid, &ids[2])
               ? -EFAULT
               : 0;
}

int64_t sys_setuid(struct task *t, int32_t id)
{
    const struct cred *old = cred_of(t);
    uint32_t uid;
    struct cred *c;
    int r = uid_in(t, id, &uid);

    if (r || uid == ID_NONE)
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    if (cred_own_cap(old, CAP_SETUID))
        c->uid = c->suid = uid;
    else if (uid != old->uid && uid != old->suid)
        return refuse(c);
    c->euid = c->fsuid = uid;
    return finish_uid(t, c);
}

int64_t sys_setgid(struct task *t, int32_t id)
{
    const struct cred *old = cred_of(t);
    uint32_t gid;
    struct cred *c;
    int r = gid_in(t, id, &gid);

    if (r || gid == ID_NONE)
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    if (cred_own_cap(old, CAP_SETGID))
        c->gid = c->sgid = gid;
    else if (gid != old->gid && gid != old->sgid)
        return refuse(c);
    c->egid = c->fsgid = gid;
    return finish_gid(t, c);
}

int64_t sys_setreuid(struct task *t, int32_t r_id, int32_t e_id)
{
    const struct cred *old = cred_of(t);
    uint32_t ruid, euid;
    bool cap = cred_own_cap(old, CAP_SETUID);
    struct cred *c;
    int r;

    if (uid_in(t, r_id, &ruid) || uid_in(t, e_id, &euid))
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    if (ruid != ID_NONE) {
        if (!cap && ruid != old->uid && ruid != old->euid)
            return refuse(c);
        c->uid = ruid;
    }
    if (euid != ID_NONE) {
        if (!cap && euid != old->uid && euid != old->euid && euid != old->suid)
            return refuse(c);
        c->euid = euid;
    }
    if (ruid != ID_NONE || (euid != ID_NONE && euid != old->uid))
        c->suid = c->euid;
    c->fsuid = c->euid;
    return finish_uid(t, c);
}

int64_t sys_setregid(struct task *t, int32_t r_id, int32_t e_id)
{
    const struct cred *old = cred_of(t);
    uint32_t rgid, egid;
    bool cap = cred_own_cap(old, CAP_SETGID);
    struct cred *c;
    int r;

    if (gid_in(t, r_id, &rgid) || gid_in(t, e_id, &egid))
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    if (rgid != ID_NONE) {
        if (!cap && rgid != old->gid && rgid != old->egid)
            return refuse(c);
        c->gid = rgid;
    }
    if (egid != ID_NONE) {
        if (!cap && egid != old->gid && egid != old->egid && egid != old->sgid)
            return refuse(c);
        c->egid = egid;
    }
    if (rgid != ID_NONE || (egid != ID_NONE && egid != old->gid))
        c->sgid = c->egid;
    c->fsgid = c->egid;
    return finish_gid(t, c);
}

static bool one_of(uint32_t id, uint32_t a, uint32_t b, uint32_t c)
{
    return id == ID_NONE || id == a || id == b || id == c;
}

int64_t sys_setresuid(struct task *t, int32_t r_id, int32_t e_id, int32_t s_id)
{
    const struct cred *old = cred_of(t);
    uint32_t ruid, euid, suid;
    struct cred *c;
    int r;

    if (uid_in(t, r_id, &ruid) || uid_in(t, e_id, &euid) || uid_in(t, s_id, &suid))
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    if (!cred_own_cap(old, CAP_SETUID) &&
        !(one_of(ruid, old->uid, old->euid, old->suid) && one_of(euid, old->uid, old->euid, old->suid) &&
          one_of(suid, old->uid, old->euid, old->suid)))
        return refuse(c);
    if (ruid != ID_NONE)
        c->uid = ruid;
    if (euid != ID_NONE)
        c->euid = euid;
    if (suid != ID_NONE)
        c->suid = suid;
    c->fsuid = c->euid;
    return finish_uid(t, c);
}

int64_t sys_setresgid(struct task *t, int32_t r_id, int32_t e_id, int32_t s_id)
{
    const struct cred *old = cred_of(t);
    uint32_t rgid, egid, sgid;
    struct cred *c;
    int r;

    if (gid_in(t, r_id, &rgid) || gid_in(t, e_id, &egid) || gid_in(t, s_id, &sgid))
        return -EINVAL;
    r = begin(t, &c);
    if (r)
        return r;
    if (!cred_own_cap(old, CAP_SETGID) &&
        !(one_of(rgid, old->gid, old->egid, old->sgid) && one_of(egid, old->gid, old->egid, old->sgid) &&
          one_of(sgid, old->gid, old->egid, old->sgid)))
        return refuse(c);
    if (rgid != ID_NONE)
        c->gid = rgid;
    if (egid != ID_NONE)
        c->egid = egid;
    if (sgid != ID_NONE)
        c->sgid = sgid;
    c->fsgid = c->egid;
    return finish_gid(t, c);
}

/* Both answer with the old id, whatever happens. */
int64_t sys_setfsuid(struct task *t, int32_t id)
{
    const struct cred *old = cred_of(t);
    uint32_t uid, was = old->fsuid;
    struct cred *c;

    if (uid_in(t, id, &uid) || uid == ID_NONE || uid == was ||
        !(one_of(uid, old->uid, old->euid, old->suid) || cred_own_cap(old, CAP_SETUID)) || begin(t, &c))
        return uid_out(t, was);
    c->fsuid = uid;
    if (!(c->securebits & SECBIT_NO_SETUID_FIXUP)) {
        uint32_t root = userns_uid_in(c->userns, 0);

        if (was == root)
            c->cap_effective &= ~CAPS_FS;
        else if (uid == root)
            c->cap_effective |= c->cap_permitted & CAPS_FS;
    }
    task_set_cred(t, c);
    return uid_out(t, was);
}

int64_t sys_setfsgid(struct task *t, int32_t id)
{
    const struct cred *old = cred_of(t);
    uint32_t gid, was = old->fsgid;
    struct cred *c;

    if (gid_in(t, id, &gid) || gid == ID_NONE || gid == was ||
        !(one_of(gid, old->gid, old->egid, old->sgid) || cred_own_cap(old, CAP_SETGID)) || begin(t, &c))
        return gid_out(t, was);
    c->fsgid = gid;
    task_set_cred(t, c);
    return gid_out(t, was);
}

int64_t sys_getgroups(struct task *t, int32_t size, uaddr_t list)
{
    const struct cred *c = cred_of(t);

    if (size < 0)
        return -EINVAL;
    if (size == 0)
        return c->groups_len;
    if ((uint32_t)size < c->groups_len)
        return -EINVAL;
    if (userns_is_initial(c->userns))
        return copy_out(&t->ctx, list, c->groups, c->groups_len * sizeof(c->groups[0])) ? -EFAULT : c->groups_len;
    for (uint32_t i = 0; i < c->groups_len; i++) {
        uint32_t gid = userns_gid_shown(c->userns, c->groups[i]);

        if (COPY_OUT(&t->ctx, UADDR(list.v + i * sizeof(gid)), &gid))
            return -EFAULT;
    }
    return c->groups_len;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int64_t sys_setgroups(struct task *t, int32_t size, uaddr_t list)
{
    struct cred *c;
    int r;

    if (!cred_own_cap(cred_of(t), CAP_SETGID) || !userns_may_setgroups(cred_of(t)->userns))
        return -EPERM;
    if (size < 0 || size > LIMIT_GROUPS)
        return -EINVAL;
    r = cred_dup(cred_of(t), (uint32_t)size, &c);
    if (r)
        return r;
    if (copy_in(&t->ctx, c->groups, list, (uint32_t)size * sizeof(c->groups[0]))) {
        cred_unref(c);
        return -EFAULT;
    }
    for (int32_t i = 0; i < size; i++) {
        c->groups[i] = userns_gid_in(c->userns, c->groups[i]);
        if (c->groups[i] == USERNS_NO_ID) {
            cred_unref(c);
            return -EINVAL;
        }
    }
    qsort(c->groups, (uint32_t)size, sizeof(c->groups[0]), compare_ids);
    task_set_cred(t, c);
    return 0;
}
