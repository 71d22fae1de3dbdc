/* SPDX-License-Identifier: Apache-2.0 */
/* Reading fanotify events: each is a fixed part and records behind it, and brings descriptors. */
#include "sentry/fs/fan_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"
#include "sentry/vfs/path_walk.h"

/* struct file_handle without its bytes. */
struct handle_head {
    uint32_t size;
    int32_t type;
};

enum {
    FID_HEAD = sizeof(struct fanotify_event_info_fid) + sizeof(struct handle_head),
    FID_MAX = FID_HEAD + HANDLE_SIZE + NAME_LEN_MAX + 1 + 3,
    EVENT_MAX = FAN_EVENT_METADATA_LEN + 3 * FID_MAX + sizeof(struct fanotify_event_info_pidfd),
};

/* One event on its way out. */
struct report {
    struct task *task;
    struct fan_group *group;
    struct fan_event *event;
    struct file *file, *pidfd_file; /* referenced */
    int fd, pidfd;                  /* reserved while their files are set; else negative */
    uint32_t size;
    uint8_t bytes[EVENT_MAX];
};

static void put(struct report *r, const void *p, size_t size)
{
    BUG_ON(size > EVENT_MAX - r->size);
    memcpy(r->bytes + r->size, p, size);
    r->size += (uint32_t)size;
}

static void put_fid(struct report *r, uint8_t type, const struct handle *h, const char *name, size_t name_len)
{
    static const uint8_t zeros[4];
    size_t size = FID_HEAD + h->size + (name_len ? name_len + 1 : 0), padded = ALIGN_UP(size, 4UL);
    struct fanotify_event_info_fid info = {.hdr = {.info_type = type, .len = (uint16_t)padded}};
    struct handle_head head = {.size = h->size, .type = h->type};
    memcpy(&info.fsid, r->event->fsid, sizeof(info.fsid));
    put(r, &info, sizeof(info));
    put(r, &head, sizeof(head));
    put(r, h->data, h->size);
    if (name_len)
        put(r, name, name_len + 1);
    put(r, zeros, padded - size);
}

/* The last record, if there is one: the file itself, or the directory that it is. */
static void put_object(struct report *r, bool after_dir)
{
    const struct fan_event *e = r->event;
    uint32_t fid = r->group->flags & FAN_ABI_FID;
    if (fid == FAN_REPORT_FID || after_dir)
        put_fid(r, FAN_EVENT_INFO_TYPE_FID, &e->object, NULL, 0);
    else if ((fid & FAN_REPORT_NAME) && (e->mask & FAN_ONDIR))
        put_fid(r, FAN_EVENT_INFO_TYPE_DFID_NAME, &e->object, ".", 1);
    else if (e->mask & (FAN_ABI_ENTRY_EVENTS | FAN_ONDIR))
        put_fid(r, FAN_EVENT_INFO_TYPE_DFID, &e->object, NULL, 0);
    else
        put_fid(r, FAN_EVENT_INFO_TYPE_FID, &e->object, NULL, 0);
}

static void put_records(struct report *r)
{
    const struct fan_event *e = r->event;
    if (e->has_dir) {
        uint8_t type = e->mask & FAN_RENAME ? FAN_EVENT_INFO_TYPE_OLD_DFID_NAME
                       : e->name_len        ? FAN_EVENT_INFO_TYPE_DFID_NAME
                                            : FAN_EVENT_INFO_TYPE_DFID;
        put_fid(r, type, &e->dir, e->names, e->name_len);
    }
    if (e->has_new_dir)
        put_fid(r, FAN_EVENT_INFO_TYPE_NEW_DFID_NAME, &e->new_dir, e->names + e->name_len + 1, e->new_name_len);
    if (e->has_object)
        put_object(r, e->has_dir || e->has_new_dir);
    if (r->group->flags & FAN_REPORT_PIDFD) {
        struct fanotify_event_info_pidfd info = {
            .hdr = {.info_type = FAN_EVENT_INFO_TYPE_PIDFD, .len = sizeof(info)}, .pidfd = r->pidfd};
        put(r, &info, sizeof(info));
    }
}

static void build(struct report *r)
{
    const struct fan_event *e = r->event;
    struct fanotify_event_metadata head = {
        .vers = FANOTIFY_METADATA_VERSION,
        .metadata_len = FAN_EVENT_METADATA_LEN,
        .mask = e->mask & FAN_ABI_OUTGOING,
        .pid = e->pid ? pid_number(e->pid, r->task->pidns) : 0,
    };
    /* Whoever has no special rights learns what he does himself, and not who else there is. */
    if (r->group->unprivileged && (!r->task->group->leader || e->pid != r->task->group->leader->pid))
        head.pid = 0;
    bool errors = r->group->flags & FAN_REPORT_FD_ERROR;
    head.fd = r->fd >= 0 ? r->fd : errors ? r->fd : FAN_NOFD;
    r->size = 0;
    put(r, &head, sizeof(head));
    if (r->group->flags & FAN_ABI_INFO)
        put_records(r);
    head.event_len = r->size;
    memcpy(r->bytes, &head, sizeof(head));
}

/* Opens the file for the reader: with his rights over writing, but whatever its mode says. Parks. */
static int open_file(struct report *r)
{
    const struct path *path = &r->event->path;
    uint32_t flags = r->group->event_flags & ~(uint32_t)O_CLOEXEC;
    int fd = fdtable_reserve(r->task, 0);
    if (fd < 0)
        return fd;
    int err = (flags & O_ACCMODE) != O_RDONLY ? mount_want_write(path->mount) : 0;
    if (err == 0)
        err = file_open_inode(&r->task->ctx, path, flags | FILE_OPEN_QUIET, &r->file);
    if (err < 0) {
        fdtable_unreserve(r->task, fd);
        return err;
    }
    return fd;
}

static int open_pidfd(struct report *r)
{
    struct task *leader = r->event->pid ? r->event->pid->task : NULL;
    bool shown = leader && leader->group->leader == leader && pid_number(r->event->pid, r->task->pidns);
    if (!shown)
        return -ESRCH;
    int fd = fdtable_reserve(r->task, 0);
    if (fd < 0)
        return fd;
    r->pidfd_file = anon_pidfd_new(leader->group, 0, r->task->ctx.cred);
    if (r->pidfd_file)
        return fd;
    fdtable_unreserve(r->task, fd);
    return -ENOMEM;
}

static void take_back(struct report *r)
{
    if (r->file) {
        fdtable_unreserve(r->task, r->fd);
        file_unref(r->file);
    }
    if (r->pidfd_file) {
        fdtable_unreserve(r->task, r->pidfd);
        file_unref(r->pidfd_file);
    }
}

/* Return: bytes put, 0 (the file is gone) or −errno; nothing stays behind then. */
static ssize_t report(struct report *r, struct uio *u)
{
    uint32_t flags = r->group->flags;
    r->fd = -EBADF;
    r->pidfd = -ESRCH;
    if (r->event->path.dentry) {
        r->fd = open_file(r);
        if (r->fd < 0 && !(flags & FAN_REPORT_FD_ERROR))
            return r->fd == -ESTALE ? 0 : r->fd;
    }
    if (flags & FAN_REPORT_PIDFD) {
        r->pidfd = open_pidfd(r);
        if (r->pidfd < 0 && !(flags & FAN_REPORT_FD_ERROR))
            r->pidfd = r->pidfd == -ESRCH ? FAN_NOPIDFD : FAN_EPIDFD;
    }
    build(r);
    if (uio_put(u, r->bytes, r->size) != (ssize_t)r->size) {
        take_back(r);
        return -EFAULT;
    }
    if (r->file)
        fdtable_install(r->task, r->fd, r->file, r->group->event_flags & O_CLOEXEC);
    if (r->pidfd_file)
        fdtable_install(r->task, r->pidfd, r->pidfd_file, true);
    return r->size;
}

/* How many bytes reading e will take; the descriptors do not matter. */
static uint32_t size_of(const struct report *from, struct fan_event *e)
{
    struct report r;
    r.task = from->task;
    r.group = from->group;
    r.event = e;
    r.fd = r.pidfd = -1;
    build(&r);
    return r.size;
}

static int wait_for_event(struct file *f, struct fan_group *g, struct uio *u)
{
    if (f->flags & O_NONBLOCK)
        return -EAGAIN;
    return WAIT_EVENT(u->ctx, &g->wait, !list_empty(&g->events));
}

ssize_t fan_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct fan_group *g = fan_group_of(f);
    struct report r = {.task = ctx_task(u->ctx), .group = g};
    ssize_t done = 0, n = 0;
    for (;;) {
        if (list_empty(&g->events)) {
            n = done ? 0 : wait_for_event(f, g, u);
            if (done || n < 0)
                break;
        }
        struct fan_event *e = list_first(&g->events, struct fan_event, link);
        if (size_of(&r, e) > u->left) {
            n = -EINVAL;
            break;
        }
        fan_event_unqueue(g, e);
        e->state = e->state == FAN_QUEUED ? FAN_REPORTED : e->state;
        r.event = e;
        r.file = r.pidfd_file = NULL;
        n = report(&r, u);
        if (e->kind == FAN_KIND_ASK) {
            e->fd = n > 0 ? r.fd : -1;
            if (e->fd < 0)
                fan_answer(g, e, FAN_DENY);
            else
                list_add_tail(&g->asked, &e->link);
        } else if (e->kind != FAN_KIND_OVERFLOW) {
            fan_event_free(e);
        }
        if (n < 0)
            break;
        done += n;
    }
    return done && n != -EFAULT ? done : n;
}
