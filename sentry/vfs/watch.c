/* SPDX-License-Identifier: Apache-2.0 */
/* inotify: a mark ties an inode to an instance; events of the inode are queued there. A mark keeps its inode, not a name of
 * it, so that the last unlink still ends it. */
#include "sentry/vfs/watch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/ucount.h"
#include "sentry/core/waitq.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/handle.h"
#include "sentry/vfs/inode.h"
#include "sentry/vfs/notify.h"

struct instance;

/* One watch of an instance. */
struct mark {
    struct list inode_link;    /* (k) watch_set.marks */
    struct list all_link;      /* (k) marks_all */
    struct instance *instance; /* (i) */
    struct inode *inode;       /* (i) referenced */
    int wd;                    /* (i) */
    uint32_t mask;             /* (k) IN_ALL_EVENTS bits, IN_ONESHOT, IN_EXCL_UNLINK */
};

/* Hangs on an inode while it has marks. */
struct watch_set {
    struct list marks; /* (k) of mark.inode_link */
};

struct event {
    struct list link;
    uint32_t size;     /* of the record, name and padding included */
    struct inotify_event record; /* followed by the name */
};

struct instance {
    struct waitq wait;
    struct list events;   /* (k) of event.link */
    uint32_t events_len;  /* (k) */
    uint32_t events_max;  /* (i) */
    uint64_t bytes;       /* (k) of all records: FIONREAD */
    bool overflowed;      /* (k) the overflow event is the last one queued */
    struct mark **marks;  /* (k) by rising wd */
    uint32_t marks_len, marks_capacity; /* (k) */
    int last_wd;          /* (k) */
    struct ucharge charge; /* (i) whom it and its watches count for */
};

static struct list marks_all = LIST_INIT(marks_all); /* (k) of mark.all_link */

/* ---- events ---- */

static struct event *event_new(int wd, uint32_t mask, uint32_t cookie, const char *name)
{
    size_t len = name ? strlen(name) + 1 : 0;
    uint32_t padded = (uint32_t)ALIGN_UP(len, sizeof(struct inotify_event));
    /* What says that there was no room needs none. */
    if (!(mask & IN_Q_OVERFLOW) && limit_charge(LIMIT_KIND_NOTIFY_EVENTS, 1) < 0)
        return NULL;
    struct event *e = mem_zalloc(sizeof(*e) + padded);
    if (!e) {
        if (!(mask & IN_Q_OVERFLOW))
            limit_uncharge(LIMIT_KIND_NOTIFY_EVENTS, 1);
        return NULL;
    }
    e->size = (uint32_t)sizeof(struct inotify_event) + padded;
    e->record.wd = wd;
    e->record.mask = mask;
    e->record.cookie = cookie;
    e->record.len = padded;
    if (len)
        memcpy((char *)&e->record + sizeof(e->record), name, len);
    return e;
}

static void event_free(struct event *e)
{
    if (!(e->record.mask & IN_Q_OVERFLOW))
        limit_uncharge(LIMIT_KIND_NOTIFY_EVENTS, 1);
    mem_free(e);
}

static void event_push(struct instance *in, struct event *e)
{
    list_add_tail(&in->events, &e->link);
    in->events_len++;
    in->bytes += e->size;
    waitq_wake(&in->wait, EPOLLIN | EPOLLRDNORM);
}

static void event_drop(struct instance *in)
{
    struct event *e = list_first(&in->events, struct event, link);
    list_del(&e->link);
    in->events_len--;
    in->bytes -= e->size;
    event_free(e);
}

/* Queues an event; one that repeats the last is not told twice, and a full queue says so once. */
static void event_report(struct instance *in, int wd, uint32_t mask, uint32_t cookie, const char *name)
{
    bool full = in->events_len >= in->events_max;
    if (full && in->overflowed)
        return;
    struct event *e = full ? event_new(-1, IN_Q_OVERFLOW, 0, NULL) : event_new(wd, mask, cookie, name);
    if (!e) {
        if (!in->overflowed && (e = event_new(-1, IN_Q_OVERFLOW, 0, NULL)))
            in->overflowed = true;
        if (e)
            event_push(in, e);
        return;
    }
    if (!list_empty(&in->events)) {
        const struct event *last = list_last(&in->events, struct event, link);
        if (last->size == e->size && !memcmp(&last->record, &e->record, e->size)) {
            event_free(e);
            return;
        }
    }
    in->overflowed = full;
    event_push(in, e);
}

/* ---- marks ---- */

/* Return: index of the mark with the lowest wd ≥ wd. */
static uint32_t mark_index(const struct instance *in, int wd)
{
    uint32_t low = 0, high = in->marks_len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (in->marks[mid]->wd < wd)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Takes a mark off its inode and frees it; the instance's table is the caller's to mend. */
static void mark_free(struct mark *m)
{
    struct inode *inode = m->inode;
    struct instance *in = m->instance;
    list_del(&m->inode_link);
    list_del(&m->all_link);
    if (inode->watches && list_empty(&inode->watches->marks)) {
        mem_free(inode->watches);
        inode->watches = NULL;
    }
    mem_free(m);
    limit_uncharge(LIMIT_KIND_WATCHES, 1);
    ucharge_less(&in->charge, UCOUNT_INOTIFY_WATCHES);
    notify_watches_changed(-1);
    inode_unref(inode);
}

/* Ends a mark: its watch descriptor is told to be gone. */
static void mark_end(struct mark *m)
{
    struct instance *in = m->instance;
    uint32_t i = mark_index(in, m->wd);
    event_report(in, m->wd, IN_IGNORED, 0, NULL);
    memmove(&in->marks[i], &in->marks[i + 1], (in->marks_len - i - 1) * sizeof(in->marks[0]));
    in->marks_len--;
    mark_free(m);
}

/* Told by the VFS. */
static void on_event(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie)
{
    bool gone = mask & (IN_DELETE_SELF | IN_UNMOUNT);
    struct mark *m, *tmp;
    inode_ref(inode);
    list_for_each_entry_safe(m, tmp, &inode->watches->marks, inode_link)
    {
        uint32_t seen = mask & (m->mask | IN_UNMOUNT);
        if (mask & m->mask & IN_EXCL_UNLINK)
            seen = 0;
        if (seen & (IN_ALL_EVENTS | IN_UNMOUNT))
            event_report(m->instance, m->wd, (seen & (IN_ALL_EVENTS | IN_UNMOUNT)) | (mask & IN_ISDIR), cookie,
                         name);
        bool last = &tmp->inode_link == &inode->watches->marks;
        if (gone || ((m->mask & IN_ONESHOT) && (seen & IN_ALL_EVENTS)))
            mark_end(m);
        if (last)
            break; /* the list's head may be gone with its last mark */
    }
    inode_unref(inode);
}

/* Told by the VFS: nobody can come to the files of sb any more. */
static void on_sb_gone(struct superblock *sb)
{
    struct mark *m, *tmp;
    list_for_each_entry_safe(m, tmp, &marks_all, all_link)
    {
        if (m->inode->sb != sb)
            continue;
        event_report(m->instance, m->wd, IN_UNMOUNT, 0, NULL);
        mark_end(m);
    }
}

static struct watch_set *set_of(struct inode *inode)
{
    if (!inode->watches) {
        struct watch_set *s = NEW(struct watch_set);
        if (!s)
            return NULL;
        list_init(&s->marks);
        inode->watches = s;
    }
    return inode->watches;
}

static struct mark *mark_find(const struct instance *in, const struct inode *inode)
{
    struct mark *m;
    if (!inode->watches)
        return NULL;
    list_for_each_entry(m, &inode->watches->marks, inode_link)
    {
        if (m->instance == in)
            return m;
    }
    return NULL;
}

static int mark_new(struct instance *in, struct inode *inode, uint32_t mask)
{
    if (in->last_wd == INT32_MAX)
        return -ENOSPC;
    int r = ucharge_more(&in->charge, UCOUNT_INOTIFY_WATCHES);
    if (r)
        return r;
    if (limit_charge(LIMIT_KIND_WATCHES, 1)) {
        ucharge_less(&in->charge, UCOUNT_INOTIFY_WATCHES);
        return -ENOSPC;
    }
    if (in->marks_len == in->marks_capacity) {
        uint32_t capacity = in->marks_capacity ? in->marks_capacity * 2 : 8;
        struct mark **marks = mem_realloc(in->marks, capacity, sizeof(*marks));
        if (!marks)
            goto no_memory;
        in->marks = marks;
        in->marks_capacity = capacity;
    }
    struct mark *m = NEW(struct mark);
    if (!m)
        goto no_memory;
    struct watch_set *set = set_of(inode);
    if (!set) {
        mem_free(m);
        goto no_memory;
    }
    *m = (struct mark){.instance = in, .inode = inode_ref(inode), .wd = ++in->last_wd, .mask = mask};
    list_add_tail(&set->marks, &m->inode_link);
    list_add_tail(&marks_all, &m->all_link);
    in->marks[in->marks_len++] = m;
    notify_watches_changed(1);
    return m->wd;
no_memory:
    limit_uncharge(LIMIT_KIND_WATCHES, 1);
    ucharge_less(&in->charge, UCOUNT_INOTIFY_WATCHES);
    return -ENOMEM;
}

/* ---- the file ---- */

static ssize_t instance_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct instance *in = f->priv;
    ssize_t done = 0;
    if (list_empty(&in->events)) {
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        int r = WAIT_EVENT(u->ctx, &in->wait, !list_empty(&in->events));
        if (r)
            return r;
    }
    while (!list_empty(&in->events)) {
        struct event *e = list_first(&in->events, struct event, link);
        if (e->size > u->left)
            return done ? done : -EINVAL;
        ssize_t n = uio_put(u, &e->record, e->size);
        if (n < (ssize_t)e->size)
            return done ? done : -EFAULT;
        done += n;
        event_drop(in);
    }
    return done;
}

static uint32_t instance_poll(struct file *f, struct poll_table *pt)
{
    struct instance *in = f->priv;
    poll_wait(pt, &in->wait);
    return list_empty(&in->events) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static int64_t instance_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct instance *in = f->priv;
    int32_t n = (int32_t)in->bytes;
    return cmd == FIONREAD ? COPY_OUT(ctx, UADDR(arg), &n) : -ENOTTY;
}

static void instance_release(struct file *f)
{
    struct instance *in = f->priv;
    while (in->marks_len)
        mark_free(in->marks[--in->marks_len]);
    while (!list_empty(&in->events))
        event_drop(in);
    ucharge_drop(&in->charge);
    mem_free(in->marks);
    mem_free(in);
}

static void instance_fdinfo(struct file *f, struct buf *out)
{
    struct instance *in = f->priv;
    for (uint32_t i = 0; i < in->marks_len; i++) {
        const struct mark *m = in->marks[i];
        uint64_t dev = m->inode->sb->dev;
        buf_printf(out, "inotify wd:%x ino:%llx sdev:%x mask:%x ignored_mask:0 ", (unsigned)m->wd,
                   (unsigned long long)m->inode->ino, major(dev) << 20 | minor(dev), m->mask);
        handle_print(m->inode, out);
        buf_putc(out, '\n');
    }
}

static const struct file_ops instance_ops = {
    .signals_io = true,
    .read = instance_read,
    .poll = instance_poll,
    .ioctl = instance_ioctl,
    .release = instance_release,
    .show_fdinfo = instance_fdinfo,
};

void watch_init(void)
{
    notify_set_handler(on_event, on_sb_gone);
}

int watch_new(const struct cred *cred, uint32_t flags, struct file **ret_file)
{
    struct instance *in = NEW(struct instance);
    if (!in)
        return -ENOMEM;
    int r = ucharge_take(&in->charge, UCOUNT_INOTIFY_INSTANCES, cred->userns, cred->euid);
    if (r) {
        mem_free(in);
        return r == -ENOSPC ? -EMFILE : r;
    }
    in->events_max = (uint32_t)limit_tuned[LIMIT_TUNED_INOTIFY_QUEUE];
    waitq_init(&in->wait);
    list_init(&in->events);
    struct file *f = file_new_anon("anon_inode:inotify", 0600, O_RDONLY | (flags & O_NONBLOCK), &instance_ops, in,
                                   cred);
    if (!f) {
        ucharge_drop(&in->charge);
        mem_free(in);
        return -ENOMEM;
    }
    f->no_seek = true;
    *ret_file = f;
    return 0;
}

bool watch_is(const struct file *f)
{
    return f->ops == &instance_ops;
}

int watch_add(struct file *f, struct inode *inode, uint32_t mask)
{
    struct instance *in = f->priv;
    uint32_t keep = mask & (IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK);
    struct mark *m = mark_find(in, inode);
    if (!m)
        return mark_new(in, inode, keep);
    if (mask & IN_MASK_CREATE)
        return -EEXIST;
    m->mask = mask & IN_MASK_ADD ? m->mask | keep : keep;
    return m->wd;
}

int watch_remove(struct file *f, int wd)
{
    struct instance *in = f->priv;
    uint32_t i = mark_index(in, wd);
    if (i == in->marks_len || in->marks[i]->wd != wd)
        return -EINVAL;
    mark_end(in->marks[i]);
    return 0;
}
