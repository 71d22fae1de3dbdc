/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of tmpfs inodes: a short list each, bounded in bytes. */
#include "sentry/fs/tmpfs/tmpfs_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/xattr.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/vfs/acl.h"

static struct tmpfs_xattr **tmpfs_xattr_find(struct tmpfs_inode *ti, const char *name)
{
    struct tmpfs_xattr **at = &ti->xattrs;
    while (*at && strcmp((*at)->name, name))
        at = &(*at)->next;
    return at;
}

static void tmpfs_xattr_free_one(struct tmpfs_xattr *x)
{
    if (!x)
        return;
    mem_free(x->name);
    mem_free(x->value);
    mem_free(x);
}

void tmpfs_xattr_free(struct tmpfs_inode *ti)
{
    while (ti->xattrs) {
        struct tmpfs_xattr *x = ti->xattrs;
        ti->xattrs = x->next;
        tmpfs_xattr_free_one(x);
    }
}

ssize_t tmpfs_getxattr(struct ctx *ctx, struct inode *inode, const char *name, void *dst, size_t size)
{
    const struct tmpfs_xattr *x = *tmpfs_xattr_find(to_tmpfs(inode), name);
    if (!x)
        return -ENODATA;
    if (size) {
        if (size < x->size)
            return -ERANGE;
        if (x->size)
            memcpy(dst, x->value, x->size);
    }
    return x->size;
}

static uint32_t tmpfs_xattr_cost(const struct tmpfs_xattr *x)
{
    return x ? (uint32_t)strlen(x->name) + 1 + x->size : 0;
}

int tmpfs_setxattr(struct ctx *ctx, struct inode *inode, const char *name, const void *src, size_t size,
                   int flags)
{
    struct tmpfs_inode *ti = to_tmpfs(inode);
    struct tmpfs_xattr **at = tmpfs_xattr_find(ti, name);
    struct tmpfs_xattr *old = *at;
    if (old && (flags & XATTR_CREATE))
        return -EEXIST;
    if (!old && (flags & XATTR_REPLACE))
        return -ENODATA;
    struct tmpfs_xattr *x = NEW(struct tmpfs_xattr);
    if (x) {
        x->name = mem_strdup(name);
        x->value = mem_dup(src, size);
        x->size = (uint32_t)size;
    }
    if (!x || !x->name || !x->value) {
        tmpfs_xattr_free_one(x);
        return -ENOMEM;
    }
    uint32_t total = ti->xattr_bytes - tmpfs_xattr_cost(old) + tmpfs_xattr_cost(x);
    if (total > TMPFS_XATTR_BYTES) {
        tmpfs_xattr_free_one(x);
        return -ENOSPC;
    }
    x->next = old ? old->next : NULL;
    *at = x;
    ti->xattr_bytes = total;
    tmpfs_xattr_free_one(old);
    inode_touch(inode, IATTR_CTIME);
    return 0;
}

int tmpfs_xattr_inherit(struct inode *inode, const struct newattr *attr)
{
    for (unsigned i = 0; i < ACL_KINDS; i++) {
        void *data;
        ssize_t size = acl_pack(attr->acls[i], &data);
        int ret = size > 0 ? tmpfs_setxattr(NULL, inode, acl_name((enum acl_kind)i), data, (size_t)size, 0) : (int)size;
        mem_free(data);
        if (ret < 0)
            return ret;
    }
    return 0;
}

int tmpfs_removexattr(struct ctx *ctx, struct inode *inode, const char *name)
{
    struct tmpfs_inode *ti = to_tmpfs(inode);
    struct tmpfs_xattr **at = tmpfs_xattr_find(ti, name);
    struct tmpfs_xattr *old = *at;
    if (!old)
        return -ENODATA;
    *at = old->next;
    ti->xattr_bytes -= tmpfs_xattr_cost(old);
    tmpfs_xattr_free_one(old);
    inode_touch(inode, IATTR_CTIME);
    return 0;
}

ssize_t tmpfs_listxattr(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    bool trusted = cred_has_cap(ctx->cred, CAP_SYS_ADMIN);
    size_t used = 0;
    for (const struct tmpfs_xattr *x = to_tmpfs(inode)->xattrs; x; x = x->next) {
        if (!trusted && !strncmp(x->name, "trusted.", 8))
            continue;
        size_t len = strlen(x->name) + 1;
        if (size) {
            if (used + len > size)
                return -ERANGE;
            memcpy(dst + used, x->name, len);
        }
        used += len;
    }
    return (ssize_t)used;
}
