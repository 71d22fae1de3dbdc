/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes of an overlay: which names the layers keep them under, and the overlay's own marks among them. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/vfs/acl.h"

/* Prefixes in the layers. A private overlay's layers take user.* only, so that what guests call trusted.* is kept there, too. */
#define OVL_PRIVATE "user.cloister."

const char *ovl_xattr_prefix(const struct ovl_sb *s)
{
    switch (s->prefix) {
    case OVERLAY_PREFIX_USER:
        return "user.overlay.";
    case OVERLAY_PREFIX_PRIVATE:
        return OVL_PRIVATE "overlay.";
    default:
        return "trusted.overlay.";
    }
}

struct ovl_xattr_rename {
    const char *shown, *below;
};

/* Names that are kept under others: those the overlay has for itself, and those the layers can't take. */
static const struct ovl_xattr_rename ovl_renames[3][2] = {
    [OVERLAY_PREFIX_TRUSTED] = {{"trusted.overlay.", "trusted.overlay.overlay."}},
    [OVERLAY_PREFIX_USER] = {{"user.overlay.", "user.overlay.overlay."}},
    [OVERLAY_PREFIX_PRIVATE] = {{OVL_PRIVATE, OVL_PRIVATE "escaped."}, {"trusted.", OVL_PRIVATE "trusted."}},
};

/* Puts to in the place of from, with which name begins. Return: dst; NULL when that is too long. */
static const char *ovl_xattr_replace(const char *name, const char *from, const char *to, char dst[static XATTR_NAME_MAX + 1])
{
    int n = snprintf(dst, XATTR_NAME_MAX + 1, "%s%s", to, name + strlen(from));
    return n <= XATTR_NAME_MAX ? dst : NULL;
}

/* Return: the layer's name for the guest's (name itself or dst), NULL when it is too long. */
static const char *ovl_xattr_below(const struct ovl_sb *s, const char *name, char dst[static XATTR_NAME_MAX + 1])
{
    for (unsigned i = 0; i < ARRAY_SIZE(ovl_renames[0]); i++) {
        const struct ovl_xattr_rename *r = &ovl_renames[s->prefix][i];
        if (r->shown && !strncmp(name, r->shown, strlen(r->shown)))
            return ovl_xattr_replace(name, r->shown, r->below, dst);
    }
    return name;
}

/* Return: the guest's name for the layer's (name itself or dst), NULL for those that guests don't see. */
static const char *ovl_xattr_shown(const struct ovl_sb *s, const char *name, char dst[static XATTR_NAME_MAX + 1])
{
    for (unsigned i = 0; i < ARRAY_SIZE(ovl_renames[0]); i++) {
        const struct ovl_xattr_rename *r = &ovl_renames[s->prefix][i];
        if (r->below && !strncmp(name, r->below, strlen(r->below)))
            return ovl_xattr_replace(name, r->below, r->shown, dst);
    }
    const char *own = s->prefix == OVERLAY_PREFIX_PRIVATE ? OVL_PRIVATE : ovl_xattr_prefix(s);
    return strncmp(name, own, strlen(own)) ? name : NULL;
}

bool ovl_xattr_copies(const struct ovl_sb *s, const char *name)
{
    char dst[XATTR_NAME_MAX + 1];
    return ovl_xattr_shown(s, name, dst) != NULL;
}

/* ---- operations ---- */

ssize_t ovl_getxattr(struct ctx *ctx, struct inode *inode, const char *name, void *dst, size_t size)
{
    char below[XATTR_NAME_MAX + 1];
    name = ovl_xattr_below(ovl_sb(inode), name, below);
    return name ? inode_getxattr(ctx, ovl_real(to_ovl(inode)), name, dst, size) : -ENODATA;
}

int ovl_setxattr(struct ctx *ctx, struct inode *inode, const char *name, const void *src, size_t size, int flags)
{
    char below[XATTR_NAME_MAX + 1];
    name = ovl_xattr_below(ovl_sb(inode), name, below);
    if (!name)
        return -EOPNOTSUPP;
    int ret = ovl_copy_up(ctx, inode);
    if (ret < 0)
        return ret;
    struct inode *real = ovl_real(to_ovl(inode));
    ret = real->ops->setxattr ? real->ops->setxattr(ctx, real, name, src, size, flags) : -EOPNOTSUPP;
    acl_forget(real);
    real->no_sec = false;
    if (ret == 0)
        ovl_sync(to_ovl(inode));
    return ret;
}

int ovl_removexattr(struct ctx *ctx, struct inode *inode, const char *name)
{
    char below[XATTR_NAME_MAX + 1];
    name = ovl_xattr_below(ovl_sb(inode), name, below);
    if (!name)
        return -ENODATA;
    /* What is not there is no reason to copy the file. */
    if (!to_ovl(inode)->upper) {
        ssize_t n = inode_getxattr(ctx, ovl_real(to_ovl(inode)), name, NULL, 0);
        if (n < 0)
            return (int)n;
    }
    int ret = ovl_copy_up(ctx, inode);
    if (ret < 0)
        return ret;
    struct inode *real = ovl_real(to_ovl(inode));
    ret = real->ops->removexattr ? real->ops->removexattr(ctx, real, name) : -EOPNOTSUPP;
    acl_forget(real);
    if (ret == 0)
        ovl_sync(to_ovl(inode));
    return ret;
}

ssize_t ovl_listxattr(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    struct inode *real = ovl_real(to_ovl(inode));
    if (!real->ops->listxattr)
        return -EOPNOTSUPP;
    CLEANUP_FREE char *all = mem_zalloc(XATTR_LIST_MAX + 1);
    if (!all)
        return -ENOMEM;
    bool trusted = cred_has_cap(ctx->cred, CAP_SYS_ADMIN);
    ssize_t n = real->ops->listxattr(ctx, real, all, XATTR_LIST_MAX);
    size_t out = 0;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(all + at) + 1) {
        char buf[XATTR_NAME_MAX + 1];
        const char *shown = ovl_xattr_shown(ovl_sb(inode), all + at, buf);
        if (!shown || (!trusted && !strncmp(shown, "trusted.", strlen("trusted."))))
            continue;
        size_t len = strlen(shown) + 1;
        if (size && out + len > size)
            return -ERANGE;
        if (size)
            memcpy(dst + out, shown, len);
        out += len;
    }
    return n < 0 ? n : (ssize_t)out;
}

/* ---- marks ---- */

int ovl_is_opaque(struct ctx *ctx, const struct ovl_sb *s, struct inode *dir)
{
    char name[64], value[4];
    snprintf(name, sizeof(name), "%sopaque", ovl_xattr_prefix(s));
    ssize_t n = inode_getxattr(ctx, dir, name, value, sizeof(value));
    if (n == 1 && value[0] == 'y')
        return 1;
    if (n >= 0 || n == -ENODATA || n == -EOPNOTSUPP || n == -ERANGE)
        return 0;
    return (int)n;
}

int ovl_set_opaque(struct ctx *ctx, const struct ovl_sb *s, struct inode *dir)
{
    char name[64];
    snprintf(name, sizeof(name), "%sopaque", ovl_xattr_prefix(s));
    return dir->ops->setxattr ? dir->ops->setxattr(ctx, dir, name, "y", 1, 0) : -EOPNOTSUPP;
}
