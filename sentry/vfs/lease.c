/* SPDX-License-Identifier: Apache-2.0 */
/* Leases on files. */
#include "sentry/vfs/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/waitq.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

struct lease {
    struct lease *next;  /* (k) inode.leases */
    struct file *file;   /* (i) not owned: its end is told by lease_close */
    int fd;              /* (i) shown in the signal */
    int type;            /* (k) F_RDLCK or F_WRLCK */
    bool unlocking;      /* (k) to be given up … */
    bool downgrading;    /* (k) … or to become one for reading … */
    uint64_t unlock_ns, downgrade_ns; /* (k) … by then; WAIT_FOREVER: no limit */
};

/* (k) Some lease somewhere has changed. They are few, and who waits looks again. */
static struct waitq lease_changed = {LIST_INIT(lease_changed.waiters)};

static void drop(struct lease **at)
{
    struct lease *l = *at;

    *at = l->next;
    mem_free(l);
    waitq_wake_all(&lease_changed);
}

/* Makes the lease at *at one of that type; F_UNLCK ends it. */
static void modify(struct lease **at, int type)
{
    struct lease *l = *at;

    if (type == F_UNLCK) {
        drop(at);
        return;
    }
    l->type = type;
    if (type == F_RDLCK)
        l->downgrading = false;
    waitq_wake_all(&lease_changed);
}

/* What was to be done by its holder and was not. */
static void time_out(struct inode *inode)
{
    uint64_t now = host_monotonic_ns();
    struct lease **at = &inode->leases;

    while (*at) {
        struct lease *l = *at;
        if (l->downgrading && now >= l->downgrade_ns)
            modify(at, F_RDLCK);
        if (l->unlocking && now >= l->unlock_ns)
            modify(at, F_UNLCK);
        else
            at = &l->next;
    }
}

int lease_get(struct file *f)
{
    time_out(f->inode);
    for (const struct lease *l = f->inode->leases; l; l = l->next) {
        if (l->file == f)
            return l->unlocking ? F_UNLCK : l->downgrading ? F_RDLCK : l->type;
    }
    return F_UNLCK;
}

/* Others' opens that the lease does not go with. */
static int check_opens(const struct file *f, int type)
{
    int writers = file_writable(f), readers = !writers && file_readable(f);

    if (type == F_RDLCK)
        return f->inode->writers > 0 ? -EAGAIN : 0;
    return f->inode->writers != writers || f->inode->readers != readers ? -EAGAIN : 0;
}

int lease_set(struct ctx *ctx, struct file *f, int fd, int type)
{
    struct inode *inode = f->inode;
    struct lease **mine = NULL, *l;

    if (type != F_RDLCK && type != F_WRLCK && type != F_UNLCK)
        return -EINVAL;
    if (ctx->cred->fsuid != inode->uid && !cred_has_cap(ctx->cred, CAP_LEASE))
        return -EACCES;
    if (!S_ISREG(inode->mode))
        return -EINVAL;
    time_out(inode);
    for (struct lease **at = &inode->leases; *at; at = &(*at)->next) {
        if ((*at)->file == f)
            mine = at;
    }
    if (type == F_UNLCK) {
        if (!mine)
            return -EAGAIN;
        modify(mine, F_UNLCK);
        return 0;
    }
    int r = check_opens(f, type);
    if (r)
        return r;
    for (l = inode->leases; l; l = l->next) {
        if (l->file != f && (type == F_WRLCK || l->unlocking))
            return -EAGAIN;
    }
    if (mine) {
        modify(mine, type);
        return 0;
    }
    l = NEW(struct lease);
    if (!l)
        return -ENOMEM;
    *l = (struct lease){.next = inode->leases, .file = f, .fd = fd, .type = type};
    inode->leases = l;
    return 0;
}

static bool in_the_way(const struct lease *l, bool for_writing)
{
    return for_writing || l->type == F_WRLCK;
}

/* Whether anything is in the way; *ret_until: when the first of it times out. */
static bool blocked(struct inode *inode, bool for_writing, uint64_t *ret_until)
{
    bool any = false;

    time_out(inode);
    *ret_until = WAIT_FOREVER;
    for (const struct lease *l = inode->leases; l; l = l->next) {
        if (!in_the_way(l, for_writing))
            continue;
        any = true;
        if (l->unlocking)
            *ret_until = MIN(*ret_until, l->unlock_ns);
        if (l->downgrading)
            *ret_until = MIN(*ret_until, l->downgrade_ns);
    }
    return any;
}

int lease_break(struct ctx *ctx, struct inode *inode, uint32_t flags)
{
    bool for_writing = (flags & O_ACCMODE) != O_RDONLY;
    uint64_t seconds = (uint64_t)limit_tuned[LIMIT_TUNED_LEASE_BREAK_TIME], until;

    if (!inode->leases || !blocked(inode, for_writing, &until))
        return 0;
    until = seconds ? host_monotonic_ns() + seconds * 1000000000 : WAIT_FOREVER;
    for (struct lease *l = inode->leases; l; l = l->next) {
        if (!in_the_way(l, for_writing) || l->unlocking || (!for_writing && l->downgrading))
            continue;
        if (for_writing) {
            l->unlocking = true;
            l->unlock_ns = until;
        } else {
            l->downgrading = true;
            l->downgrade_ns = until;
        }
        file_tell_owner(l->file, l->fd, POLL_MSG);
    }
    if (flags & O_NONBLOCK)
        return -EWOULDBLOCK;
    while (blocked(inode, for_writing, &until)) {
        int r = waitq_wait(ctx, &lease_changed, CTX_WAIT_INTERRUPTIBLE, until);
        if (r && r != -ETIMEDOUT)
            return r;
    }
    return 0;
}

void lease_close(struct file *f)
{
    struct lease **at = &f->inode->leases;

    while (*at) {
        if ((*at)->file == f)
            drop(at);
        else
            at = &(*at)->next;
    }
}
