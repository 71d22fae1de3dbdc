/* SPDX-License-Identifier: Apache-2.0 */
/* Hands events of the VFS to the inotify layer. */
#include "sentry/vfs/notify.h"

#include <sys/inotify.h>

#include "sentry/vfs/dentry.h"
#include "sentry/vfs/dnotify.h"

uint32_t notify_watches;
static notify_fn notify_handler;
static notify_sb_fn notify_sb_handler;
static uint32_t notify_last_cookie;

void notify_set_handler(notify_fn fn, notify_sb_fn sb_fn)
{
    notify_handler = fn;
    notify_sb_handler = sb_fn;
}

void notify_watches_changed(int delta)
{
    notify_watches += (uint32_t)delta;
}

uint32_t notify_next_cookie(void)
{
    return ++notify_last_cookie;
}

void notify_inode_slow(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie)
{
    if (inode && inode->dnotify)
        dnotify_tell(inode, mask);
    if (inode && inode->watches && notify_handler)
        notify_handler(inode, mask, name, cookie);
}

void notify_sb_gone(const struct superblock *sb)
{
    if (unlikely(notify_watches != 0) && notify_sb_handler)
        notify_sb_handler(sb);
}

void notify_dentry_slow(struct dentry *d, uint32_t mask)
{
    if (!d->inode)
        return;
    if (inode_is_dir(d->inode))
        mask |= IN_ISDIR;
    if (d->parent != d && d->parent->inode)
        notify_inode_slow(d->parent->inode, d->deleted ? mask | IN_EXCL_UNLINK : mask, d->name, 0);
    notify_inode_slow(d->inode, mask, NULL, 0);
}
