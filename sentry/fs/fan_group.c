/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify groups and their files. */
#include "sentry/fs/fan_group.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/userns.h"
#include "sentry/fs/fan_priv.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"

struct list fan_groups = LIST_INIT(fan_groups);

/* Flags of the files that come with events: those of fanotify_init(2). */
#define EVENT_FLAGS (O_ACCMODE | O_APPEND | O_NONBLOCK | O_SYNC | O_DSYNC | O_CLOEXEC | 0100000U /* O_LARGEFILE */ | O_NOATIME)

struct fan_group *fan_group_ref(struct fan_group *g)
{
    ref_get(&g->ref);
    return g;
}

void fan_group_unref(struct fan_group *g)
{
    if (!ref_put(&g->ref))
        return;
    ucharge_drop(&g->charge);
    mem_free(g);
}

static uint32_t group_poll(struct file *f, struct poll_table *pt)
{
    struct fan_group *g = f->priv;
    poll_wait(pt, &g->wait);
    return list_empty(&g->events) ? 0 : EPOLLIN | EPOLLRDNORM;
}

/* Linux counts the fixed part of each event, whatever else will be read with it. */
static int64_t group_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    const struct fan_group *g = f->priv;
    int32_t n = (int32_t)(g->events_len * FAN_EVENT_METADATA_LEN);
    return cmd == FIONREAD ? COPY_OUT(ctx, UADDR(arg), &n) : -ENOTTY;
}

static int64_t group_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    return f->pos;
}

/* Nobody can answer any more: what was asked is allowed. */
static void group_release(struct file *f)
{
    struct fan_group *g = f->priv;
    g->closed = true;
    while (!list_empty(&g->asked)) {
        struct fan_event *e = list_first(&g->asked, struct fan_event, link);
        list_del(&e->link);
        fan_answer(g, e, FAN_ALLOW);
    }
    while (!list_empty(&g->events)) {
        struct fan_event *e = list_first(&g->events, struct fan_event, link);
        fan_event_unqueue(g, e);
        if (e->kind == FAN_KIND_ASK)
            fan_answer(g, e, FAN_ALLOW);
        else if (e->kind != FAN_KIND_OVERFLOW)
            fan_event_free(e);
    }
    while (!list_empty(&g->marks))
        fan_mark_free(list_first(&g->marks, struct fan_mark, group_link));
    list_del(&g->all_link);
    fan_group_unref(g);
}

static unsigned kernel_dev(const struct superblock *sb)
{
    return major(sb->dev) << 20 | minor(sb->dev);
}

static void group_fdinfo(struct file *f, struct buf *out)
{
    struct fan_group *g = f->priv;
    struct fan_mark *m;
    buf_printf(out, "fanotify flags:%x event-flags:%x\n", g->flags & FAN_ABI_INIT, g->event_flags);
    list_for_each_entry (m, &g->marks, group_link) {
        const struct fan_set *s = m->set;
        switch (s->kind) {
        case FAN_BY_INODE:
            buf_printf(out, "fanotify ino:%llx sdev:%x ", (unsigned long long)s->inode->ino, kernel_dev(s->sb));
            break;
        case FAN_BY_MOUNT:
            buf_printf(out, "fanotify mnt_id:%x ", s->mount->id);
            break;
        default:
            buf_printf(out, "fanotify sdev:%x ", kernel_dev(s->sb));
        }
        buf_printf(out, "mflags:%x mask:%x ignored_mask:%x", fan_mark_user_flags(m), m->mask, m->ignore);
        if (s->kind == FAN_BY_INODE) {
            buf_putc(out, ' ');
            handle_print(s->inode, out);
        }
        buf_putc(out, '\n');
    }
}

static const struct file_ops group_ops = {
    .read = fan_read,
    .write = fan_write,
    .poll = group_poll,
    .ioctl = group_ioctl,
    .llseek = group_llseek,
    .release = group_release,
    .show_fdinfo = group_fdinfo,
};

bool fan_group_is(const struct file *f)
{
    return f->ops == &group_ops;
}

struct fan_group *fan_group_of(const struct file *f)
{
    return f->priv;
}

/* Linux's order: rights, then what the bits mean. */
static int check_init(const struct cred *cred, uint32_t flags, uint32_t event_flags)
{
    uint32_t fid = flags & FAN_ABI_FID;
    if (!cred_has_cap(cred, CAP_SYS_ADMIN) && ((flags & FAN_ABI_INIT_ADMIN) || !fid))
        return -EPERM;
    if (flags & ~FAN_ABI_INIT)
        return -EINVAL;
    if ((flags & FAN_REPORT_PIDFD) && (flags & FAN_REPORT_TID))
        return -EINVAL;
    if ((event_flags & ~EVENT_FLAGS) || (event_flags & O_ACCMODE) == O_ACCMODE)
        return -EINVAL;
    if (fid && (flags & FAN_ABI_JUDGES))
        return -EINVAL;
    if ((flags & FAN_REPORT_NAME) && !(flags & FAN_REPORT_DIR_FID))
        return -EINVAL;
    if ((flags & FAN_REPORT_TARGET_FID) && (!(flags & FAN_REPORT_NAME) || !(flags & FAN_REPORT_FID)))
        return -EINVAL;
    return 0;
}

static int group_make(const struct cred *cred, uint32_t flags, uint32_t event_flags, struct fan_group **ret_group)
{
    struct fan_group *g = NEW(struct fan_group);
    if (!g)
        return -ENOMEM;
    ref_init(&g->ref);
    int r = ucharge_take(&g->charge, UCOUNT_FANOTIFY_GROUPS, cred->userns, cred->euid);
    if (r == 0 && (flags & FAN_ABI_JUDGES) == FAN_ABI_JUDGES)
        r = -EINVAL;
    if (r == 0 && (flags & FAN_ENABLE_AUDIT) && !cred_has_cap(cred, CAP_AUDIT_WRITE))
        r = -EPERM;
    if (r) {
        fan_group_unref(g);
        return r == -ENOSPC ? -EMFILE : r;
    }
    g->flags = flags;
    g->event_flags = event_flags;
    g->unprivileged = !cred_has_cap(cred, CAP_SYS_ADMIN);
    g->priority = flags & FAN_CLASS_PRE_CONTENT ? 2 : flags & FAN_CLASS_CONTENT ? 1 : 0;
    g->events_max = flags & FAN_UNLIMITED_QUEUE ? UINT32_MAX : (uint32_t)limit_tuned[LIMIT_TUNED_FANOTIFY_QUEUE];
    waitq_init(&g->wait);
    waitq_init(&g->answered);
    list_init(&g->events);
    list_init(&g->asked);
    list_init(&g->marks);
    list_init(&g->pass_link);
    for (int i = 0; i < FAN_BUCKETS; i++)
        list_init(&g->buckets[i]);
    list_init(&g->overflow.link);
    list_init(&g->overflow.hash_link);
    g->overflow.kind = FAN_KIND_OVERFLOW;
    g->overflow.mask = FAN_Q_OVERFLOW;
    list_add_tail(&fan_groups, &g->all_link);
    *ret_group = g;
    return 0;
}

int fan_group_new(struct task *t, uint32_t flags, uint32_t event_flags, struct file **ret_file)
{
    const struct cred *cred = t->ctx.cred;
    struct fan_group *g;
    int r = check_init(cred, flags, event_flags);
    if (r == 0)
        r = group_make(cred, flags, event_flags, &g);
    if (r)
        return r;
    struct file *f = file_new_anon("anon_inode:[fanotify]", 0600, O_RDWR | (flags & FAN_NONBLOCK ? O_NONBLOCK : 0U),
                                   &group_ops, g, cred);
    if (!f) {
        list_del(&g->all_link);
        fan_group_unref(g);
        return -ENOMEM;
    }
    f->no_notify = true;
    *ret_file = f;
    return 0;
}
