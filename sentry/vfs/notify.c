/* SPDX-License-Identifier: Apache-2.0 */
/* Hands events of the VFS to inotify, dnotify and fanotify. */
#include "sentry/vfs/notify.h"

#include <fcntl.h>
#include <sys/inotify.h>

#include "sentry/core/ctx.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/dnotify.h"
#include "sentry/vfs/file.h"

uint32_t notify_watches;
static notify_fn notify_handler;
static notify_sb_fn notify_sb_handler;
static const struct notify_fan_ops *notify_fan;
static uint32_t notify_last_cookie;

void notify_set_handler(notify_fn fn, notify_sb_fn sb_fn)
{
    notify_handler = fn;
    notify_sb_handler = sb_fn;
}

void notify_set_fan_ops(const struct notify_fan_ops *ops)
{
    notify_fan = ops;
}

void notify_watches_changed(int delta)
{
    notify_watches += (uint32_t)delta;
}

/* inotify and dnotify: both know inodes only. */
static void notify_tell(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie)
{
    if (inode->dnotify)
        dnotify_tell(inode, mask);
    if (inode->watches && notify_handler)
        notify_handler(inode, mask, name, cookie);
}

static void notify_tell_fan(const struct notify_event *ev)
{
    if (ev->sb->fan_marks && notify_fan)
        notify_fan->event(ev);
}

void notify_inode_slow(struct inode *inode, uint32_t mask)
{
    /* inotify has never said of a directory that moves or goes that it is one. */
    uint32_t dir_bit = inode_is_dir(inode) ? NOTIFY_ISDIR : 0;
    notify_tell(inode, mask & (IN_MOVE_SELF | IN_DELETE_SELF) ? mask : mask | dir_bit, NULL, 0);
    notify_tell_fan(&(struct notify_event){
        .mask = mask | dir_bit, .sb = inode->sb, .inode = inode});
}

void notify_entry_slow(struct inode *dir, uint32_t mask, const char *name, uint32_t cookie, struct inode *child)
{
    if (child && inode_is_dir(child))
        mask |= NOTIFY_ISDIR;
    notify_tell(dir, mask, name, cookie);
    notify_tell_fan(
        &(struct notify_event){.mask = mask, .sb = dir->sb, .inode = child, .dir = dir, .name = name});
}

void notify_renamed(struct inode *old_dir, const char *old_name, struct inode *new_dir, const char *new_name,
                    struct inode *moved)
{
    uint32_t cookie = ++notify_last_cookie;
    if (likely(!notify_watches))
        return;
    notify_tell_fan(&(struct notify_event){
        .mask = NOTIFY_RENAME | (inode_is_dir(moved) ? NOTIFY_ISDIR : 0U),
        .sb = old_dir->sb,
        .inode = moved,
        .dir = old_dir,
        .name = old_name,
        .new_dir = new_dir,
        .new_name = new_name,
    });
    notify_entry_slow(old_dir, IN_MOVED_FROM, old_name, cookie, moved);
    notify_entry_slow(new_dir, IN_MOVED_TO, new_name, cookie, moved);
}

static struct notify_event notify_event_of(struct dentry *d, const struct path *path, uint32_t mask)
{
    struct inode *dir = d->parent != d && !d->detached ? d->parent->inode : NULL;
    return (struct notify_event){
        .mask = inode_is_dir(d->inode) ? mask | NOTIFY_ISDIR : mask,
        .path = path,
        .sb = d->inode->sb,
        .inode = d->inode,
        .dir = dir,
        .name = dir ? d->name : NULL,
    };
}

static void notify_child(struct dentry *d, const struct path *path, uint32_t mask)
{
    if (!d->inode)
        return;
    struct notify_event ev = notify_event_of(d, path, mask);
    if (ev.dir)
        notify_tell(ev.dir, d->deleted ? ev.mask | IN_EXCL_UNLINK : ev.mask, ev.name, 0);
    notify_tell(d->inode, ev.mask, NULL, 0);
    notify_tell_fan(&ev);
}

void notify_dentry_slow(struct dentry *d, uint32_t mask)
{
    notify_child(d, NULL, mask);
}

void notify_file_slow(struct file *f, uint32_t mask)
{
    if (!f->no_notify && !(f->flags & O_PATH))
        notify_child(f->path.dentry, &f->path, mask);
}

int notify_ask_slow(struct ctx *ctx, struct file *f, uint32_t mask)
{
    if (f->no_notify || (f->flags & O_PATH) || !f->inode->sb->fan_judges || !ctx || !ctx->is_task)
        return 0;
    struct notify_event ev = notify_event_of(f->path.dentry, &f->path, mask);
    return notify_fan->ask(ctx, &ev);
}

void notify_inode_gone_slow(struct inode *inode)
{
    if (inode->fan_set)
        notify_fan->inode_gone(inode);
}

void notify_mount_gone(struct mount *m)
{
    if (m->fan_set)
        notify_fan->mount_gone(m);
}

void notify_sb_gone(struct superblock *sb)
{
    if (likely(!notify_watches))
        return;
    if (notify_sb_handler)
        notify_sb_handler(sb);
    if (sb->fan_marks)
        notify_fan->sb_gone(sb);
}
