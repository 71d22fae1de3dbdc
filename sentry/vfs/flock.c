/* SPDX-License-Identifier: Apache-2.0 */
/* Advisory locks. Each inode has one list; ranges of one owner never overlap and never touch with the same type. */
#include "sentry/vfs/flock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/list.h"
#include "sentry/core/limits.h"
#include "sentry/core/waitq.h"
#include "sentry/vfs/file.h"

enum { FLOCK_DEADLOCK_STEPS = 32 };

struct flock_held {
    struct list link;     /* in state->held */
    struct list all_link; /* in flock_all */
    struct inode *inode;  /* not referenced: the state dies with it */
    struct flock_req r;
};

struct flock_state {
    struct list held;
    struct waitq freed;
};

/* A caller that waits for a POSIX lock, for deadlock detection. Lives on its stack. */
struct flock_blocked {
    struct list link;
    const void *owner, *by;
};

static struct list flock_all = LIST_INIT(flock_all);
static struct list flock_blocked_list = LIST_INIT(flock_blocked_list);

static struct flock_state *flock_state_get(struct inode *inode)
{
    if (!inode->locks) {
        inode->locks = NEW(struct flock_state);
        if (inode->locks) {
            list_init(&inode->locks->held);
            waitq_init(&inode->locks->freed);
        }
    }
    return inode->locks;
}

static struct flock_held *flock_alloc(void)
{
    if (limit_charge(LIMIT_KIND_FLOCKS, 1) < 0)
        return NULL;
    struct flock_held *l = NEW(struct flock_held);
    if (!l) {
        limit_uncharge(LIMIT_KIND_FLOCKS, 1);
        return NULL;
    }
    list_init(&l->link);
    list_init(&l->all_link);
    return l;
}

static void flock_free(struct flock_held *l)
{
    if (!l)
        return;
    list_del(&l->link);
    list_del(&l->all_link);
    mem_free(l);
    limit_uncharge(LIMIT_KIND_FLOCKS, 1);
}

static void flock_insert(struct inode *inode, struct flock_held *l)
{
    l->inode = inode;
    list_add_tail(&inode->locks->held, &l->link);
    list_add_tail(&flock_all, &l->all_link);
}

static bool flock_same_owner(const struct flock_req *a, const struct flock_req *b)
{
    return a->owner == b->owner && a->kind == b->kind;
}

static bool flock_conflicts(const struct flock_req *held, const struct flock_req *want)
{
    if ((held->kind == FLOCK_BSD) != (want->kind == FLOCK_BSD) || flock_same_owner(held, want))
        return false;
    if (held->start > want->end || want->start > held->end)
        return false;
    return held->type == F_WRLCK || want->type == F_WRLCK;
}

static struct flock_held *flock_find_conflict(const struct flock_state *s, const struct flock_req *req)
{
    struct flock_held *l;
    list_for_each_entry(l, &s->held, link) {
        if (flock_conflicts(&l->r, req))
            return l;
    }
    return NULL;
}

bool flock_test(struct inode *inode, const struct flock_req *req, struct flock_req *ret_req)
{
    struct flock_held *l, *first = NULL;
    if (!inode->locks)
        return false;
    list_for_each_entry(l, &inode->locks->held, link) {
        if (flock_conflicts(&l->r, req) && (!first || l->r.start < first->r.start))
            first = l;
    }
    if (first)
        *ret_req = first->r;
    return first != NULL;
}

/* Whether waiting for by would close a circle of owners that wait for each other. */
static bool flock_would_deadlock(const void *owner, const void *by)
{
    for (unsigned i = 0; i < FLOCK_DEADLOCK_STEPS; i++) {
        if (by == owner)
            return true;
        const void *next = NULL;
        struct flock_blocked *b;
        list_for_each_entry(b, &flock_blocked_list, link) {
            if (b->owner == by) {
                next = b->by;
                break;
            }
        }
        if (!next)
            return false;
        by = next;
    }
    return false;
}

static int flock_wait(struct ctx *ctx, struct flock_state *s, const struct flock_req *req,
                      const struct flock_held *conflict)
{
    struct flock_blocked b = {.owner = req->owner, .by = conflict->r.owner};
    list_init(&b.link);
    if (req->kind == FLOCK_POSIX && conflict->r.kind == FLOCK_POSIX) {
        if (flock_would_deadlock(req->owner, conflict->r.owner))
            return -EDEADLK;
        list_add(&flock_blocked_list, &b.link);
    }
    int ret = waitq_wait(ctx, &s->freed, CTX_WAIT_INTERRUPTIBLE, WAIT_FOREVER);
    list_del(&b.link);
    return ret;
}

/* Makes [start, end] of req's owner be of req's type, or free. fresh is the new lock (NULL for an unlock), spare serves
 * for the right half when an old range is cut in two; what is not used is left in the pointers. */
static void flock_apply(struct inode *inode, const struct flock_req *req, struct flock_held **fresh,
                        struct flock_held **spare)
{
    uint64_t start = req->start, end = req->end;
    uint64_t merge_start = start, merge_end = end;
    struct flock_held *l, *tmp;
    list_for_each_entry_safe(l, tmp, &inode->locks->held, link) {
        if (!flock_same_owner(&l->r, req))
            continue;
        if (l->r.type == req->type) {
            bool touches = l->r.start <= (end == INT64_MAX ? end : end + 1) &&
                           (l->r.end == INT64_MAX || l->r.end + 1 >= start);
            if (!touches)
                continue;
            merge_start = MIN(merge_start, l->r.start);
            merge_end = MAX(merge_end, l->r.end);
            flock_free(l);
            continue;
        }
        if (l->r.start > end || l->r.end < start)
            continue;
        if (l->r.start < start && l->r.end > end) {
            struct flock_held *right = TAKE_PTR(*spare);
            right->r = l->r;
            right->r.start = end + 1;
            l->r.end = start - 1;
            flock_insert(inode, right);
        } else if (l->r.start < start) {
            l->r.end = start - 1;
        } else if (l->r.end > end) {
            l->r.start = end + 1;
        } else {
            flock_free(l);
        }
    }
    if (req->type != F_UNLCK) {
        struct flock_held *n = TAKE_PTR(*fresh);
        n->r = *req;
        n->r.start = merge_start;
        n->r.end = merge_end;
        flock_insert(inode, n);
    }
    waitq_wake_all(&inode->locks->freed);
}

int flock_set(struct ctx *ctx, struct inode *inode, const struct flock_req *req, bool wait)
{
    if (req->type == F_UNLCK && !inode->locks)
        return 0;
    struct flock_state *s = flock_state_get(inode);
    if (!s)
        return -ENOMEM;
    struct flock_held *fresh = NULL, *spare = NULL;
    int ret = 0;
    if (req->type != F_UNLCK) {
        fresh = flock_alloc();
        if (!fresh)
            return -ENOLCK;
    }
    if (req->kind != FLOCK_BSD) {
        spare = flock_alloc();
        if (!spare)
            ret = -ENOLCK;
    } else if (req->type != F_UNLCK) {
        /* flock(2) converts by giving up first: others may come in between. */
        struct flock_held *l;
        list_for_each_entry(l, &s->held, link) {
            if (flock_same_owner(&l->r, req) && l->r.type != req->type) {
                flock_free(l);
                waitq_wake_all(&s->freed);
                break;
            }
        }
    }
    while (ret == 0 && req->type != F_UNLCK) {
        struct flock_held *conflict = flock_find_conflict(s, req);
        if (!conflict)
            break;
        ret = wait ? flock_wait(ctx, s, req, conflict) : -EAGAIN;
    }
    if (ret == 0)
        flock_apply(inode, req, &fresh, &spare);
    flock_free(fresh);
    flock_free(spare);
    return ret;
}

static void flock_release(struct inode *inode, const void *owner, bool posix)
{
    struct flock_state *s = inode->locks;
    if (!s)
        return;
    bool any = false;
    struct flock_held *l, *tmp;
    list_for_each_entry_safe(l, tmp, &s->held, link) {
        if (l->r.owner == owner && (l->r.kind == FLOCK_POSIX) == posix) {
            flock_free(l);
            any = true;
        }
    }
    if (any)
        waitq_wake_all(&s->freed);
}

void flock_release_posix(struct inode *inode, const void *owner)
{
    flock_release(inode, owner, true);
}

void flock_release_file(struct file *f)
{
    flock_release(f->inode, f, false);
}

void flock_inode_free(struct inode *inode)
{
    struct flock_state *s = TAKE_PTR(inode->locks);
    if (!s)
        return;
    BUG_ON(waitq_active(&s->freed));
    while (!list_empty(&s->held))
        flock_free(list_first(&s->held, struct flock_held, link));
    mem_free(s);
}

static void flock_print(const struct flock_held *l, unsigned number, struct buf *out)
{
    static const char *const kinds[] = {"POSIX ", "OFDLCK", "FLOCK "};
    uint64_t dev = l->inode->sb->dev;
    buf_printf(out, "%u: %s ADVISORY  %s %d %02x:%02x:%llu %llu ", number, kinds[l->r.kind],
               l->r.type == F_WRLCK ? "WRITE" : "READ ", l->r.pid, major(dev), minor(dev),
               (unsigned long long)l->inode->ino, (unsigned long long)l->r.start);
    if (l->r.end == INT64_MAX)
        buf_puts(out, "EOF\n");
    else
        buf_printf(out, "%llu\n", (unsigned long long)l->r.end);
}

void flock_print_all(struct buf *out)
{
    unsigned number = 0;
    struct flock_held *l;
    list_for_each_entry(l, &flock_all, all_link)
        flock_print(l, ++number, out);
}

void flock_print_file(struct file *f, const void *owner, struct buf *out)
{
    if (!f->inode->locks)
        return;
    unsigned number = 0;
    struct flock_held *l;
    list_for_each_entry(l, &f->inode->locks->held, link) {
        if (l->r.owner != f && l->r.owner != owner)
            continue;
        buf_puts(out, "lock:\t");
        flock_print(l, ++number, out);
    }
}
