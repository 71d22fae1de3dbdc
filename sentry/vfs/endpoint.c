/* SPDX-License-Identifier: Apache-2.0 */
/* Ties sockets to the inodes that name them. */
#include "sentry/vfs/endpoint.h"

#include "sentry/vfs/dentry.h"
#include "sentry/vfs/inode.h"

void endpoint_bind(struct endpoint *ep, OWNS struct path path)
{
    BUG_ON(ep->path.dentry);
    ep->path = path;
    path.dentry->inode->endpoint = ep;
}

void endpoint_unbind(struct endpoint *ep)
{
    if (!ep->path.dentry)
        return;
    if (ep->path.dentry->inode && ep->path.dentry->inode->endpoint == ep)
        ep->path.dentry->inode->endpoint = NULL;
    path_unref(&ep->path);
}
