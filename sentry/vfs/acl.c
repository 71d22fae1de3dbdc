/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX access control lists: parsing, the check, inheritance, and their agreement with mode bits. */
#include "sentry/vfs/acl.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"
#include "sentry/vfs/path_walk.h"

/* Bits of inode->acls_known. */
#define ACL_KNOWN(kind) (1U << (kind))

static const char *const acl_names[ACL_KINDS] = {"system.posix_acl_access", "system.posix_acl_default"};

const char *acl_name(enum acl_kind kind)
{
    return acl_names[kind];
}

int acl_kind_of(const char *name)
{
    for (unsigned i = 0; i < ACL_KINDS; i++) {
        if (!strcmp(name, acl_names[i]))
            return (int)i;
    }
    return -1;
}

/* ---- lists ---- */

static size_t acl_bytes(uint32_t len)
{
    return sizeof(struct acl) + len * sizeof(struct acl_entry);
}

static struct acl *acl_new(uint32_t len)
{
    struct acl *a = mem_zalloc(acl_bytes(len));
    if (a) {
        ref_init(&a->ref);
        a->len = len;
    }
    return a;
}

static struct acl *acl_copy(const struct acl *from)
{
    struct acl *a = acl_new(from->len);
    if (a)
        memcpy(a->v, from->v, from->len * sizeof(a->v[0]));
    return a;
}

struct acl *acl_ref(struct acl *a)
{
    if (a)
        ref_get(&a->ref);
    return a;
}

void acl_unref(struct acl *a)
{
    if (!a || !ref_put(&a->ref))
        return;
    if (a->charged)
        limit_uncharge(LIMIT_KIND_ACL_BYTES, acl_bytes(a->len));
    mem_free(a);
}

/* One entry each of owner, group and others, in the order that the tags have as numbers; named ones need a mask. */
static bool acl_valid(const struct acl *a)
{
    uint16_t before = 0;
    bool named = false, mask = false, others = false;
    for (uint32_t i = 0; i < a->len; i++) {
        const struct acl_entry *e = &a->v[i];
        bool many = e->tag == ACL_USER || e->tag == ACL_GROUP;
        if ((e->perm & ~7U) || (many ? e->tag < before : e->tag <= before))
            return false;
        /* Neither owner nor owning group can be left out. */
        if ((e->tag > ACL_USER_OBJ && before < ACL_USER_OBJ) || (e->tag > ACL_GROUP_OBJ && before < ACL_GROUP_OBJ))
            return false;
        named |= many;
        mask |= e->tag == ACL_MASK;
        others |= e->tag == ACL_OTHER;
        before = e->tag;
    }
    return others && (mask || !named);
}

/* From the value of an attribute with ids of ns. Return: 0 (*ret_acl NULL: no entries), −EINVAL, −EOPNOTSUPP (version), −ENOMEM. */
static int acl_parse(const struct userns *ns, const void *src, size_t size, struct acl **ret_acl)
{
    struct posix_acl_xattr_header head;
    if (size < sizeof(head))
        return -EINVAL;
    memcpy(&head, src, sizeof(head));
    if (head.a_version != POSIX_ACL_XATTR_VERSION)
        return -EOPNOTSUPP;
    size -= sizeof(head);
    if (size % sizeof(struct posix_acl_xattr_entry))
        return -EINVAL;
    uint32_t len = (uint32_t)(size / sizeof(struct posix_acl_xattr_entry));
    if (!len) {
        *ret_acl = NULL;
        return 0;
    }
    struct acl *a = acl_new(len);
    if (!a)
        return -ENOMEM;
    for (uint32_t i = 0; i < len; i++) {
        struct posix_acl_xattr_entry x;
        memcpy(&x, (const char *)src + sizeof(head) + i * sizeof(x), sizeof(x));
        struct acl_entry *e = &a->v[i];
        *e = (struct acl_entry){.tag = x.e_tag, .perm = x.e_perm, .id = USERNS_NO_ID};
        bool ok = true;
        if (e->tag == ACL_USER || e->tag == ACL_GROUP) {
            e->id = e->tag == ACL_USER ? userns_uid_in(ns, x.e_id) : userns_gid_in(ns, x.e_id);
            ok = e->id != USERNS_NO_ID;
        } else {
            ok = e->tag == ACL_USER_OBJ || e->tag == ACL_GROUP_OBJ || e->tag == ACL_MASK || e->tag == ACL_OTHER;
        }
        if (!ok) {
            acl_unref(a);
            return -EINVAL;
        }
    }
    *ret_acl = a;
    return 0;
}

static size_t acl_packed_size(const struct acl *a)
{
    return sizeof(struct posix_acl_xattr_header) + a->len * sizeof(struct posix_acl_xattr_entry);
}

static void acl_write(const struct userns *ns, const struct acl *a, void *dst)
{
    struct posix_acl_xattr_header head = {.a_version = POSIX_ACL_XATTR_VERSION};
    memcpy(dst, &head, sizeof(head));
    for (uint32_t i = 0; i < a->len; i++) {
        const struct acl_entry *e = &a->v[i];
        struct posix_acl_xattr_entry x = {.e_tag = e->tag, .e_perm = e->perm, .e_id = (uint32_t)ACL_UNDEFINED_ID};
        if (e->tag == ACL_USER)
            x.e_id = userns_uid_out(ns, e->id);
        else if (e->tag == ACL_GROUP)
            x.e_id = userns_gid_out(ns, e->id);
        memcpy((char *)dst + sizeof(head) + i * sizeof(x), &x, sizeof(x));
    }
}

ssize_t acl_pack(const struct acl *a, void **ret_data)
{
    if (!a) {
        *ret_data = NULL;
        return 0;
    }
    size_t size = acl_packed_size(a);
    void *data = mem_zalloc(size);
    if (!data)
        return -ENOMEM;
    acl_write(NULL, a, data);
    *ret_data = data;
    return (ssize_t)size;
}

/* ---- lists and mode bits ---- */

/* Return: whether mode bits can say the same. *inout_mode gets the bits in any case. */
static bool acl_equals_mode(const struct acl *a, uint32_t *inout_mode)
{
    uint32_t mode = 0;
    bool same = true;
    for (uint32_t i = 0; i < a->len; i++) {
        const struct acl_entry *e = &a->v[i];
        switch (e->tag) {
        case ACL_USER_OBJ:
            mode |= (uint32_t)e->perm << 6;
            break;
        case ACL_GROUP_OBJ:
            mode |= (uint32_t)e->perm << 3;
            break;
        case ACL_OTHER:
            mode |= e->perm;
            break;
        case ACL_MASK:
            mode = (mode & ~070U) | (uint32_t)e->perm << 3;
            same = false;
            break;
        default:
            same = false;
        }
    }
    *inout_mode = (*inout_mode & ~0777U) | mode;
    return same;
}

/* The entry that the group's bits of a mode stand for. */
static struct acl_entry *acl_group_class(struct acl *a)
{
    struct acl_entry *group = NULL;
    for (uint32_t i = 0; i < a->len; i++) {
        if (a->v[i].tag == ACL_MASK)
            return &a->v[i];
        if (a->v[i].tag == ACL_GROUP_OBJ)
            group = &a->v[i];
    }
    return group;
}

/* Sets the entries that mode bits stand for (clip: takes from them what mode lacks). */
static void acl_apply_mode(struct acl *a, uint32_t mode, bool clip)
{
    struct acl_entry *group = acl_group_class(a);
    for (uint32_t i = 0; i < a->len; i++) {
        struct acl_entry *e = &a->v[i];
        uint32_t bits;
        if (e->tag == ACL_USER_OBJ)
            bits = mode >> 6 & 7;
        else if (e->tag == ACL_OTHER)
            bits = mode & 7;
        else if (e == group)
            bits = mode >> 3 & 7;
        else
            continue;
        e->perm = (uint16_t)(clip ? e->perm & bits : bits);
    }
}

/* ---- the lists of an inode ---- */

static void acl_cache(struct inode *inode, enum acl_kind kind, struct acl *a)
{
    if (a && !a->charged) {
        /* What is too much to keep is read again each time. */
        if (limit_charge(LIMIT_KIND_ACL_BYTES, acl_bytes(a->len)) < 0)
            return;
        a->charged = true;
    }
    acl_unref(inode->acls[kind]);
    inode->acls[kind] = acl_ref(a);
    inode->acls_known |= ACL_KNOWN(kind);
}

void acl_forget(struct inode *inode)
{
    inode->acls_changes++;
    inode->acls_known = 0;
    acl_inode_free(inode);
}

void acl_inode_free(struct inode *inode)
{
    for (unsigned i = 0; i < ACL_KINDS; i++) {
        acl_unref(inode->acls[i]);
        inode->acls[i] = NULL;
    }
}

static int acl_read(struct ctx *ctx, struct inode *inode, enum acl_kind kind, struct acl **ret_acl)
{
    *ret_acl = NULL;
    for (;;) {
        ssize_t size = inode->ops->getxattr(ctx, inode, acl_names[kind], NULL, 0);
        if (size == -ENODATA || size == -EOPNOTSUPP || size == 0)
            return 0;
        if (size < 0)
            return (int)size;
        CLEANUP_FREE void *data = mem_zalloc((size_t)size);
        if (!data)
            return -ENOMEM;
        ssize_t n = inode->ops->getxattr(ctx, inode, acl_names[kind], data, (size_t)size);
        if (n == -ERANGE || n == -ENODATA)
            continue; /* it has changed between */
        if (n < 0)
            return (int)n;
        int ret = acl_parse(NULL, data, (size_t)n, ret_acl);
        if (ret == 0 && *ret_acl && !acl_valid(*ret_acl)) {
            acl_unref(*ret_acl);
            *ret_acl = NULL;
            ret = -EIO;
        }
        return ret == -ENOMEM || ret == 0 ? ret : -EIO;
    }
}

int acl_get(struct ctx *ctx, struct inode *inode, enum acl_kind kind, struct acl **ret_acl)
{
    *ret_acl = NULL;
    if (!inode->sb->acls || S_ISLNK(inode->mode) || (kind == ACL_KIND_DEFAULT && !inode_is_dir(inode)) ||
        !inode->ops->getxattr)
        return 0;
    if (likely(inode->acls_known & ACL_KNOWN(kind))) {
        *ret_acl = acl_ref(inode->acls[kind]);
        return 0;
    }
    uint64_t changes = inode->acls_changes;
    int ret = acl_read(ctx, inode, kind, ret_acl);
    if (ret == 0 && changes == inode->acls_changes)
        acl_cache(inode, kind, *ret_acl);
    return ret;
}

/* Return: 0 or −EACCES. Source: acl(5), "access check algorithm". */
int acl_check(struct ctx *ctx, const struct inode *inode, const struct acl *a, unsigned want)
{
    const struct cred *c = ctx->cred;
    unsigned mask = 7, perm = 0;
    bool in_group = false;
    for (uint32_t i = 0; i < a->len; i++) {
        if (a->v[i].tag == ACL_MASK)
            mask = a->v[i].perm;
    }
    for (uint32_t i = 0; i < a->len; i++) {
        const struct acl_entry *e = &a->v[i];
        switch (e->tag) {
        case ACL_USER:
            if (e->id == c->fsuid)
                return (want & ~(e->perm & mask)) ? -EACCES : 0;
            break;
        case ACL_GROUP_OBJ:
        case ACL_GROUP:
            if (!cred_in_group(c, e->tag == ACL_GROUP ? e->id : inode->gid))
                break;
            in_group = true;
            if (!(want & ~e->perm))
                return (want & ~mask) ? -EACCES : 0;
            break;
        case ACL_OTHER:
            perm = e->perm;
            break;
        }
    }
    return in_group || (want & ~perm) ? -EACCES : 0;
}

/* ---- new inodes ---- */

void newattr_done(struct newattr *attr)
{
    for (unsigned i = 0; i < ACL_KINDS; i++) {
        acl_unref(attr->acls[i]);
        attr->acls[i] = NULL;
    }
}

int acl_inherit(struct ctx *ctx, struct inode *dir, uint32_t umask, struct newattr *inout_attr)
{
    struct acl *from = NULL;
    if (S_ISLNK(inout_attr->mode))
        return 0;
    int ret = acl_get(ctx, dir, ACL_KIND_DEFAULT, &from);
    if (ret < 0)
        return ret;
    if (likely(!from)) {
        inout_attr->mode &= ~(umask & 0777);
        return 0;
    }
    struct acl *a = acl_copy(from);
    if (!a) {
        acl_unref(from);
        return -ENOMEM;
    }
    acl_apply_mode(a, inout_attr->mode, true);
    if (!acl_equals_mode(a, &inout_attr->mode))
        inout_attr->acls[ACL_KIND_ACCESS] = acl_ref(a);
    acl_unref(a);
    if (S_ISDIR(inout_attr->mode))
        inout_attr->acls[ACL_KIND_DEFAULT] = from;
    else
        acl_unref(from);
    return 0;
}

void acl_inherited(const struct inode *dir, struct inode *inode, const struct newattr *attr)
{
    /* Of a list on the host only its absence is certain. */
    if (!(dir->acls_known & ACL_KNOWN(ACL_KIND_DEFAULT)) || attr->acls[ACL_KIND_ACCESS] || attr->acls[ACL_KIND_DEFAULT])
        return;
    acl_cache(inode, ACL_KIND_ACCESS, NULL);
    acl_cache(inode, ACL_KIND_DEFAULT, NULL);
}

/* ---- changes ---- */

/* Gives the list to the file system; a NULL list goes. */
static int acl_store(struct ctx *ctx, struct inode *inode, enum acl_kind kind, struct acl *a)
{
    int ret;
    if (a) {
        void *data;
        ssize_t size = acl_pack(a, &data);
        if (size < 0)
            return (int)size;
        ret = inode->ops->setxattr ? inode->ops->setxattr(ctx, inode, acl_names[kind], data, (size_t)size, 0) : -EOPNOTSUPP;
        mem_free(data);
    } else {
        ret = inode->ops->removexattr ? inode->ops->removexattr(ctx, inode, acl_names[kind]) : -EOPNOTSUPP;
        if (ret == -ENODATA)
            ret = 0;
    }
    acl_forget(inode);
    return ret;
}

int acl_chmod_prepare(struct ctx *ctx, struct inode *inode, uint32_t mode, struct acl **ret_acl)
{
    struct acl *now = NULL;
    *ret_acl = NULL;
    if (inode->sb->acls != SB_ACLS_HERE || !((inode->mode ^ mode) & 0777))
        return 0;
    int ret = acl_get(ctx, inode, ACL_KIND_ACCESS, &now);
    if (ret < 0 || !now)
        return ret;
    struct acl *a = acl_copy(now);
    acl_unref(now);
    if (!a)
        return -ENOMEM;
    acl_apply_mode(a, mode, false);
    *ret_acl = a;
    return 0;
}

int acl_chmod_store(struct ctx *ctx, struct inode *inode, OWNS struct acl *a)
{
    if (inode->sb->acls == SB_ACLS_BELOW)
        acl_forget(inode);
    if (!a)
        return 0;
    int ret = acl_store(ctx, inode, ACL_KIND_ACCESS, a);
    acl_unref(a);
    return ret;
}

/* ---- the attributes ---- */

ssize_t acl_xattr_get(struct ctx *ctx, struct inode *inode, enum acl_kind kind, void *dst, size_t size)
{
    struct acl *a;
    if (!inode->sb->acls || S_ISLNK(inode->mode))
        return -EOPNOTSUPP;
    /* The host knows whether its file system has lists at all. */
    if (inode->sb->acls == SB_ACLS_BELOW) {
        ssize_t n = inode->ops->getxattr(ctx, inode, acl_names[kind], NULL, 0);
        if (n < 0)
            return n;
    }
    int ret = acl_get(ctx, inode, kind, &a);
    if (ret < 0)
        return ret;
    if (!a)
        return -ENODATA;
    size_t need = acl_packed_size(a);
    if (size && size < need)
        ret = -ERANGE;
    else if (size)
        acl_write(ctx->cred->userns, a, dst);
    acl_unref(a);
    return ret < 0 ? ret : (ssize_t)need;
}

/* Every id must have a number in the file system's own user namespace. */
static bool acl_representable(const struct inode *inode, const struct acl *a)
{
    const struct userns *ns = inode->sb->userns;
    for (uint32_t i = 0; i < a->len; i++) {
        const struct acl_entry *e = &a->v[i];
        if ((e->tag == ACL_USER && userns_uid_out(ns, e->id) == USERNS_NO_ID) ||
            (e->tag == ACL_GROUP && userns_gid_out(ns, e->id) == USERNS_NO_ID))
            return false;
    }
    return true;
}

static int acl_may_set(struct ctx *ctx, struct inode *inode, enum acl_kind kind, const struct acl *a)
{
    if (!inode->sb->acls || S_ISLNK(inode->mode))
        return -EOPNOTSUPP;
    if (kind == ACL_KIND_DEFAULT && !inode_is_dir(inode))
        return a ? -EACCES : 1;
    if (!inode_owner_or_capable(ctx, inode))
        return -EPERM;
    return a && !(acl_valid(a) && acl_representable(inode, a)) ? -EINVAL : 0;
}

int acl_xattr_set(struct ctx *ctx, struct inode *inode, enum acl_kind kind, const void *src, size_t size,
                  uint32_t *inout_mode)
{
    struct acl *a = NULL;
    int ret = size ? acl_parse(ctx->cred->userns, src, size, &a) : 0;
    if (ret < 0)
        return ret;
    uint32_t mode = inode->mode;
    ret = acl_may_set(ctx, inode, kind, a);
    if (ret == 0) {
        struct acl *store = a;
        if (kind == ACL_KIND_ACCESS && a && acl_equals_mode(a, &mode))
            store = NULL;
        ret = acl_store(ctx, inode, kind, store);
    } else if (ret > 0) {
        ret = 0; /* nothing to remove */
    }
    acl_unref(a);
    if (ret < 0 || kind != ACL_KIND_ACCESS || (!size && inode->sb->acls == SB_ACLS_BELOW))
        return ret;
    if (!cred_in_group(ctx->cred, inode->gid) && !inode_capable(ctx, inode, CAP_FSETID))
        mode &= ~(uint32_t)S_ISGID;
    *inout_mode = mode;
    return 1;
}
