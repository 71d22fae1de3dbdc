/* SPDX-License-Identifier: Apache-2.0 */
/* Capability sets of files across user namespaces. */
#include "sentry/vfs/filecaps.h"

#include <errno.h>
#include <string.h>

#include "sentry/core/cred.h"
#include "sentry/core/ctx.h"
#include "sentry/vfs/inode.h"

static bool filecaps_valid(const struct vfs_ns_cap_data *d, size_t size)
{
    uint32_t revision = d->magic_etc & VFS_CAP_REVISION_MASK;
    return (revision == VFS_CAP_REVISION_2 && size == XATTR_CAPS_SZ_2) ||
           (revision == VFS_CAP_REVISION_3 && size == XATTR_CAPS_SZ_3);
}

static void filecaps_set_revision(struct vfs_ns_cap_data *d, uint32_t revision)
{
    d->magic_etc = (d->magic_etc & ~(uint32_t)VFS_CAP_REVISION_MASK) | revision;
}

bool filecaps_owned(const struct userns *ns, uint32_t uid)
{
    while (userns_uid_out(ns, uid) != 0) {
        if (userns_is_initial(ns))
            return false;
        ns = ns->parent;
    }
    return true;
}

ssize_t filecaps_in(struct ctx *ctx, const struct inode *inode, const void *src, size_t size,
                    struct vfs_ns_cap_data *ret_data)
{
    const struct cred *c = ctx->cred;
    struct vfs_ns_cap_data d = {0};
    if (size > sizeof(d))
        return -EINVAL;
    memcpy(&d, src, size);
    if (!filecaps_valid(&d, size))
        return -EINVAL;
    if (!cred_cap_wrt(c, inode->uid, inode->gid, CAP_SETFCAP))
        return -EPERM;
    /* Whoever rules the whole file system may say that they hold everywhere. */
    if (size == XATTR_CAPS_SZ_2 && cred_ns_cap(c, inode->sb->userns, CAP_SETFCAP)) {
        *ret_data = d;
        return XATTR_CAPS_SZ_2;
    }
    uint32_t root = userns_uid_in(c->userns, size == XATTR_CAPS_SZ_3 ? d.rootid : 0);
    if (root != USERNS_NO_ID)
        root = userns_uid_out(inode->sb->userns, root);
    if (root == USERNS_NO_ID)
        return -EINVAL;
    filecaps_set_revision(&d, VFS_CAP_REVISION_3);
    d.rootid = root;
    *ret_data = d;
    return XATTR_CAPS_SZ_3;
}

ssize_t filecaps_out(struct ctx *ctx, const struct inode *inode, struct vfs_ns_cap_data *data, size_t size)
{
    const struct userns *ns = ctx->cred->userns;
    if (!filecaps_valid(data, size))
        return -EINVAL;
    uint32_t root = userns_uid_in(inode->sb->userns, size == XATTR_CAPS_SZ_3 ? data->rootid : 0);
    uint32_t shown = root == USERNS_NO_ID ? USERNS_NO_ID : userns_uid_out(ns, root);
    if (shown != USERNS_NO_ID && shown != 0) {
        filecaps_set_revision(data, VFS_CAP_REVISION_3);
        data->rootid = shown;
        return XATTR_CAPS_SZ_3;
    }
    if (root == USERNS_NO_ID || !filecaps_owned(ns, root))
        return -EOVERFLOW;
    filecaps_set_revision(data, VFS_CAP_REVISION_2);
    return XATTR_CAPS_SZ_2;
}
