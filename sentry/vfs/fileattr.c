/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of inodes that chattr sets, and who may. */
#include "sentry/vfs/fileattr.h"

#include <errno.h>
#include <linux/capability.h>

#include "sentry/core/cred.h"
#include "sentry/vfs/path_walk.h"

bool fileattr_has(const struct inode *inode)
{
    return inode->ops->fileattr_get && inode->ops->fileattr_set;
}

int fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags)
{
    return inode->ops->fileattr_get(ctx, inode, ret_flags);
}

int fileattr_set(struct ctx *ctx, const struct path *path, uint32_t mask, uint32_t flags)
{
    struct inode *inode = path->dentry->inode;
    uint32_t now;
    int ret = mount_want_write(path->mount);
    if (ret == 0 && !inode_owner_or_capable(ctx, inode))
        ret = -EPERM;
    if (ret == 0)
        ret = fileattr_get(ctx, inode, &now);
    if (ret < 0)
        return ret;
    flags = (now & ~mask) | (flags & mask);
    /* Whoever sets these for a file of the host's keeps its administrator from removing it: not a matter of user namespaces. */
    if (((flags ^ now) & (INODE_FL_IMMUTABLE | INODE_FL_APPEND)) && !cred_has_cap(ctx->cred, CAP_LINUX_IMMUTABLE))
        return -EPERM;
    return inode->ops->fileattr_set(ctx, inode, flags);
}
