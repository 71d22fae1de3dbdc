/* SPDX-License-Identifier: Apache-2.0 */
/* Directory notification by signals: an entry a directory, open file and descriptor table. */
#include "sentry/vfs/dnotify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"
#include "sentry/vfs/notify.h"

struct dnotify {
    struct dnotify *next; /* (k) inode.dnotify */
    struct file *file;    /* (i) not owned: its end is told by dnotify_close */
    const void *table;    /* (i) compared only */
    int fd;               /* (k) */
    uint32_t events;      /* (k) DN_* */
};

static void drop(struct dnotify **at)
{
    struct dnotify *d = *at;
    *at = d->next;
    mem_free(d);
    limit_uncharge(LIMIT_KIND_WATCHES, 1);
    notify_watches_changed(-1);
}

void dnotify_close(struct file *f, const void *table)
{
    struct dnotify **at = &f->inode->dnotify;
    while (*at) {
        if ((*at)->file == f && (!table || (*at)->table == table))
            drop(at);
        else
            at = &(*at)->next;
    }
}

int dnotify_set(struct file *f, const void *table, int fd, uint32_t events)
{
    if (!(events & ~(uint32_t)DN_MULTISHOT)) {
        dnotify_close(f, table);
        return 0;
    }
    if (!inode_is_dir(f->inode))
        return -ENOTDIR;
    struct dnotify *d = f->inode->dnotify;
    while (d && (d->file != f || d->table != table))
        d = d->next;
    if (!d) {
        if (limit_charge(LIMIT_KIND_WATCHES, 1) < 0)
            return -ENOSPC;
        d = NEW(struct dnotify);
        if (!d) {
            limit_uncharge(LIMIT_KIND_WATCHES, 1);
            return -ENOMEM;
        }
        d->file = f;
        d->table = table;
        d->next = f->inode->dnotify;
        f->inode->dnotify = d;
        notify_watches_changed(1);
    }
    d->fd = fd;
    d->events |= events;
    return 0;
}

static void tell(struct inode *dir, uint32_t events)
{
    struct dnotify **at = &dir->dnotify;
    while (*at) {
        struct dnotify *d = *at;
        if (!(d->events & events)) {
            at = &d->next;
            continue;
        }
        file_tell_owner(d->file, d->fd, POLL_MSG);
        if (d->events & DN_MULTISHOT)
            at = &d->next;
        else
            drop(at);
    }
}

void dnotify_tell(struct inode *dir, uint32_t mask)
{
    uint32_t events = (mask & IN_ACCESS ? DN_ACCESS : 0U) | (mask & IN_MODIFY ? DN_MODIFY : 0U) |
                      (mask & (IN_CREATE | IN_MOVED_TO) ? DN_CREATE : 0U) |
                      (mask & (IN_DELETE | IN_MOVED_FROM) ? DN_DELETE : 0U) | (mask & IN_ATTRIB ? DN_ATTRIB : 0U);
    if (events)
        tell(dir, events);
}

void dnotify_tell_renamed(struct inode *dir)
{
    tell(dir, DN_RENAME);
}
