/* SPDX-License-Identifier: Apache-2.0 */
/* epoll: an item hooks a file's wait queues; a wake puts it on its set's ready list; waiters poll what is there. */
#include "sentry/vfs/eventpoll.h"

#include <fcntl.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/core/waitq.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

enum {
    NEST_MAX = 4,     /* links between eventpolls in a chain: five of them */
    BUCKETS_MIN = 8,
    HOOKS_LEN = 3,    /* queues that one file may name in its poll op */
    BATCH = 64,       /* events copied out at once */
};

#define BITS_PRIVATE (EPOLLWAKEUP | EPOLLONESHOT | EPOLLET | EPOLLEXCLUSIVE)
#define BITS_EXCLUSIVE_OK (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

/* Paths by which one file may wake eventpolls at each distance, the nearest ones not limited: keeps the work
 * of a wake bounded. */
static const uint16_t path_limits[NEST_MAX + 1] = {0, 500, 100, 50, 10};

struct eventpoll {
    struct file *file;       /* (i) not owned: it owns us */
    struct waitq waiters;    /* epoll_wait */
    struct waitq pollers;    /* poll of the eventpoll itself */
    struct list ready;       /* (k) of eventpoll_item.ready_link */
    struct list *buckets;    /* (k) of eventpoll_item.hash_link */
    uint32_t buckets_len;    /* (k) power of two */
    uint32_t len;            /* (k) items */
    uint64_t visited;        /* (k) number of the last graph walk that saw us */
    int height;              /* (k) what that walk found */
};

struct hook {
    struct waiter waiter;
    struct eventpoll_item *item;
};

struct eventpoll_item {
    struct eventpoll *ep;    /* (i) */
    struct file *file;       /* (i) not owned: file_unref tells us */
    int fd;                  /* (i) the number it was added under */
    struct epoll_event event; /* (k) */
    struct list hash_link, ready_link, file_link; /* (k) */
    struct hook hooks[HOOKS_LEN];
    unsigned hooks_len;      /* (k) */
};

struct hook_table {
    struct poll_table pt;
    struct eventpoll_item *item;
};

static uint64_t walk_number; /* (k) of the graph walk in progress */

static bool ep_drop_gone(struct eventpoll *ep, struct ctx *ctx);

static struct eventpoll *file_eventpoll(const struct file *f)
{
    return f->priv;
}

/* ---- hash of items ---- */

static uint32_t item_hash(const struct file *f, int fd)
{
    uint64_t h = ((uint64_t)(uintptr_t)f >> 4) + (uint64_t)(uint32_t)fd * 0x9e3779b97f4a7c15ULL;
    return (uint32_t)(h ^ (h >> 32));
}

static struct list *buckets_new(uint32_t len)
{
    struct list *b = NEW_ARRAY(struct list, len);
    for (uint32_t i = 0; b && i < len; i++)
        list_init(&b[i]);
    return b;
}

static struct eventpoll_item *item_find(struct eventpoll *ep, const struct file *f, int fd)
{
    struct list *bucket = &ep->buckets[item_hash(f, fd) & (ep->buckets_len - 1)];
    struct eventpoll_item *it;
    list_for_each_entry(it, bucket, hash_link)
    {
        if (it->file == f && it->fd == fd)
            return it;
    }
    return NULL;
}

/* Doubles the table when it is crowded; staying small is no error. */
static void buckets_grow(struct eventpoll *ep)
{
    uint32_t len = ep->buckets_len * 2;
    if (ep->len < len)
        return;
    struct list *b = buckets_new(len);
    if (!b)
        return;
    for (uint32_t i = 0; i < ep->buckets_len; i++) {
        while (!list_empty(&ep->buckets[i])) {
            struct eventpoll_item *it = list_first(&ep->buckets[i], struct eventpoll_item, hash_link);
            list_del(&it->hash_link);
            list_add_tail(&b[item_hash(it->file, it->fd) & (len - 1)], &it->hash_link);
        }
    }
    mem_free(ep->buckets);
    ep->buckets = b;
    ep->buckets_len = len;
}

/* ---- wakes ---- */

static void item_make_ready(struct eventpoll_item *it)
{
    if (list_empty(&it->ready_link))
        list_add_tail(&it->ep->ready, &it->ready_link);
    waitq_wake(&it->ep->waiters, EPOLLIN);
    waitq_wake(&it->ep->pollers, EPOLLIN);
}

static bool hook_wake(struct waiter *w, uint32_t key)
{
    struct eventpoll_item *it = container_of(w, struct hook, waiter)->item;
    uint32_t events = it->event.events;
    if (!(events & ~BITS_PRIVATE)) /* spent one-shot */
        return false;
    if (key != WAIT_KEY_ALL && !(key & events))
        return false;
    /* An exclusive wake counts as taken only when somebody is there to take it. */
    bool taken = waitq_active(&it->ep->waiters) || waitq_active(&it->ep->pollers);
    item_make_ready(it);
    if (!(events & EPOLLEXCLUSIVE))
        return true;
    if (key == WAIT_KEY_ALL)
        return taken;
    uint32_t in_out = key & (EPOLLIN | EPOLLOUT);
    return taken && (in_out == 0 || (events & in_out));
}

static void hook_queue(struct poll_table *pt, struct waitq *q)
{
    struct eventpoll_item *it = container_of(pt, struct hook_table, pt)->item;
    BUG_ON(it->hooks_len == HOOKS_LEN);
    struct hook *h = &it->hooks[it->hooks_len++];
    h->item = it;
    h->waiter = (struct waiter){.wake = hook_wake, .exclusive = it->event.events & EPOLLEXCLUSIVE};
    waitq_add(q, &h->waiter);
}

static uint32_t item_poll(struct eventpoll_item *it, struct poll_table *pt)
{
    return file_poll(it->file, pt) & it->event.events & ~BITS_PRIVATE;
}

static void item_free(struct eventpoll_item *it)
{
    for (unsigned i = 0; i < it->hooks_len; i++)
        waitq_remove(&it->hooks[i].waiter);
    list_del(&it->hash_link);
    list_del(&it->ready_link);
    list_del(&it->file_link);
    it->ep->len--;
    limit_uncharge(LIMIT_KIND_EPOLL_WATCHES, 1);
    mem_free(it);
}

/* ---- the file ---- */

static uint32_t ep_poll(struct file *f, struct poll_table *pt)
{
    struct eventpoll *ep = file_eventpoll(f);
    poll_wait(pt, &ep->pollers);
    return ep_drop_gone(ep, pt ? pt->ctx : NULL) ? EPOLLIN | EPOLLRDNORM : 0;
}

static void ep_release(struct file *f)
{
    struct eventpoll *ep = file_eventpoll(f);
    for (uint32_t i = 0; i < ep->buckets_len; i++) {
        while (!list_empty(&ep->buckets[i]))
            item_free(list_first(&ep->buckets[i], struct eventpoll_item, hash_link));
    }
    mem_free(ep->buckets);
    mem_free(ep);
}

static void ep_fdinfo(struct file *f, struct buf *out)
{
    struct eventpoll *ep = file_eventpoll(f);
    for (uint32_t i = 0; i < ep->buckets_len; i++) {
        struct eventpoll_item *it;
        list_for_each_entry(it, &ep->buckets[i], hash_link)
        {
            const struct inode *inode = it->file->inode;
            buf_printf(out, "tfd: %8d events: %8x data: %16llx  pos:%lli ino:%llx sdev:%llx\n", it->fd,
                       it->event.events, (unsigned long long)it->event.data.u64,
                       (long long)it->file->pos, (unsigned long long)inode->ino,
                       (unsigned long long)inode->sb->dev);
        }
    }
}

static const struct file_ops ep_ops = {
    .poll = ep_poll,
    .release = ep_release,
    .show_fdinfo = ep_fdinfo,
};

bool eventpoll_is(const struct file *f)
{
    return f->ops == &ep_ops;
}

struct file *eventpoll_new(const struct cred *cred)
{
    struct eventpoll *ep = NEW(struct eventpoll);
    if (!ep)
        return NULL;
    waitq_init(&ep->waiters);
    waitq_init(&ep->pollers);
    list_init(&ep->ready);
    ep->buckets_len = BUCKETS_MIN;
    ep->buckets = buckets_new(BUCKETS_MIN);
    if (ep->buckets)
        ep->file = file_new_anon("anon_inode:[eventpoll]", 0600, O_RDWR, &ep_ops, ep, cred);
    if (!ep->file) {
        mem_free(ep->buckets);
        mem_free(ep);
        return NULL;
    }
    ep->file->no_seek = true;
    return ep->file;
}

void eventpoll_file_gone(struct file *f)
{
    while (!list_empty(&f->epoll_items))
        item_free(list_first(&f->epoll_items, struct eventpoll_item, file_link));
}

/* ---- nesting ---- */

/* Longest chain of eventpolls below ep, itself not counted; more than NEST_MAX when it is deeper or needle is there. */
static int height_below(struct eventpoll *ep, const struct eventpoll *needle, int depth)
{
    if (ep == needle || depth > NEST_MAX)
        return NEST_MAX + 1;
    if (ep->visited == walk_number)
        return ep->height;
    int highest = 0;
    for (uint32_t i = 0; i < ep->buckets_len && highest <= NEST_MAX; i++) {
        struct eventpoll_item *it;
        list_for_each_entry(it, &ep->buckets[i], hash_link)
        {
            if (!eventpoll_is(it->file))
                continue;
            int h = 1 + height_below(file_eventpoll(it->file), needle, depth + 1);
            highest = MAX(highest, h);
        }
    }
    ep->visited = walk_number;
    ep->height = highest;
    return highest;
}

/* Longest chain of eventpolls that watch ep, itself not counted. Needs a walk of its own. */
static int height_above(struct eventpoll *ep)
{
    if (ep->visited == walk_number)
        return ep->height;
    int highest = 0;
    struct eventpoll_item *it;
    list_for_each_entry(it, &ep->file->epoll_items, file_link)
    {
        int h = 1 + height_above(it->ep);
        highest = MAX(highest, h);
    }
    ep->visited = walk_number;
    ep->height = highest;
    return highest;
}

/* Counts wake-up paths from f upwards. Return: false when a limit is passed. */
static bool count_paths(const struct file *f, uint16_t *counts, int depth)
{
    struct eventpoll_item *it;
    list_for_each_entry(it, &f->epoll_items, file_link)
    {
        if (depth > NEST_MAX || (depth > 0 && ++counts[depth] > path_limits[depth]))
            return false;
        if (!list_empty(&it->ep->file->epoll_items) && !count_paths(it->ep->file, counts, depth + 1))
            return false;
    }
    return true;
}

static bool paths_ok(struct file *f)
{
    uint16_t counts[NEST_MAX + 1] = {0};
    return count_paths(f, counts, 0);
}

/* Checks every file below ep. */
static bool paths_below_ok(struct eventpoll *ep)
{
    if (ep->visited == walk_number)
        return true;
    ep->visited = walk_number;
    if (!paths_ok(ep->file))
        return false;
    for (uint32_t i = 0; i < ep->buckets_len; i++) {
        struct eventpoll_item *it;
        list_for_each_entry(it, &ep->buckets[i], hash_link)
        {
            if (eventpoll_is(it->file) ? !paths_below_ok(file_eventpoll(it->file)) : !paths_ok(it->file))
                return false;
        }
    }
    return true;
}

/* ---- control ---- */

static int ep_insert(struct eventpoll *ep, struct ctx *ctx, int fd, struct file *target,
                     const struct epoll_event *ev)
{
    bool nested = eventpoll_is(target);
    if (nested) {
        walk_number++;
        int below = height_below(file_eventpoll(target), ep, 0);
        walk_number++;
        if (below + 1 + height_above(ep) > NEST_MAX)
            return -ELOOP;
    }
    if (limit_charge(LIMIT_KIND_EPOLL_WATCHES, 1))
        return -ENOSPC;
    struct eventpoll_item *it = NEW(struct eventpoll_item);
    if (!it) {
        limit_uncharge(LIMIT_KIND_EPOLL_WATCHES, 1);
        return -ENOMEM;
    }
    it->ep = ep;
    it->file = target;
    it->fd = fd;
    it->event = *ev;
    list_init(&it->ready_link);
    buckets_grow(ep);
    list_add_tail(&ep->buckets[item_hash(target, fd) & (ep->buckets_len - 1)], &it->hash_link);
    list_add_tail(&target->epoll_items, &it->file_link);
    ep->len++;
    walk_number++;
    bool ok = true;
    if (nested)
        ok = paths_below_ok(file_eventpoll(target));
    else if (!list_empty(&ep->file->epoll_items))
        ok = paths_ok(target);
    if (!ok) {
        item_free(it);
        return -EINVAL;
    }
    struct hook_table ht = {.pt = {.queue = hook_queue, .ctx = ctx}, .item = it};
    if (item_poll(it, &ht.pt))
        item_make_ready(it);
    return 0;
}

static void ep_modify(struct eventpoll_item *it, struct ctx *ctx, const struct epoll_event *ev)
{
    struct poll_table pt = {.ctx = ctx};
    it->event = *ev;
    if (item_poll(it, &pt))
        item_make_ready(it);
}

int eventpoll_ctl(struct ctx *ctx, struct file *epf, int op, int fd, struct file *target,
                  const struct epoll_event *ev)
{
    if (!target->ops || !target->ops->poll)
        return -EPERM;
    if (epf == target || !eventpoll_is(epf))
        return -EINVAL;
    struct eventpoll *ep = file_eventpoll(epf);
    struct epoll_event event = {0};
    if (op != EPOLL_CTL_DEL) {
        event = *ev;
        event.events &= ~(uint32_t)EPOLLWAKEUP; /* needs CAP_BLOCK_SUSPEND, and there is nothing to suspend */
        if (event.events & EPOLLEXCLUSIVE) {
            if (op == EPOLL_CTL_MOD || eventpoll_is(target) || (event.events & ~BITS_EXCLUSIVE_OK))
                return -EINVAL;
        }
        event.events |= EPOLLERR | EPOLLHUP;
    }
    struct eventpoll_item *it = item_find(ep, target, fd);
    switch (op) {
    case EPOLL_CTL_ADD:
        return it ? -EEXIST : ep_insert(ep, ctx, fd, target, &event);
    case EPOLL_CTL_DEL:
        if (!it)
            return -ENOENT;
        item_free(it);
        return 0;
    case EPOLL_CTL_MOD:
        if (!it)
            return -ENOENT;
        if (it->event.events & EPOLLEXCLUSIVE)
            return -EINVAL;
        ep_modify(it, ctx, &event);
        return 0;
    default:
        return -EINVAL;
    }
}

/* ---- waiting ---- */

/* Takes items off the ready list that are not ready any more. Return: whether one is. */
static bool ep_drop_gone(struct eventpoll *ep, struct ctx *ctx)
{
    struct poll_table pt = {.ctx = ctx};
    while (!list_empty(&ep->ready)) {
        struct eventpoll_item *it = list_first(&ep->ready, struct eventpoll_item, ready_link);
        if (item_poll(it, &pt))
            return true;
        list_del(&it->ready_link);
    }
    return false;
}

/* Hands out one batch of at most max ≤ BATCH events. Nothing changes for an item before its event is in guest memory.
 * Items of todo are visited at most once. Return: count or −EFAULT. */
static int ep_send_batch(struct eventpoll *ep, struct ctx *ctx, struct list *todo, uaddr_t out, int max)
{
    struct epoll_event events[BATCH];
    struct eventpoll_item *items[BATCH];
    struct poll_table pt = {.ctx = ctx};
    struct list taken = LIST_INIT(taken);
    int n = 0;
    while (n < max && !list_empty(todo)) {
        struct eventpoll_item *it = list_first(todo, struct eventpoll_item, ready_link);
        uint32_t revents = item_poll(it, &pt);
        list_del(&it->ready_link);
        if (!revents)
            continue;
        list_add_tail(&taken, &it->ready_link);
        events[n] = (struct epoll_event){.events = revents, .data = it->event.data};
        items[n++] = it;
    }
    if (n && copy_out(ctx, out, events, (size_t)n * sizeof(events[0]))) {
        list_splice_tail(&taken, todo);
        list_splice_tail(todo, &taken);
        return -EFAULT;
    }
    for (int i = 0; i < n; i++) {
        struct eventpoll_item *it = items[i];
        list_del(&it->ready_link);
        if (it->event.events & EPOLLONESHOT)
            it->event.events &= BITS_PRIVATE;
        else if (!(it->event.events & EPOLLET))
            list_add_tail(&ep->ready, &it->ready_link);
    }
    return n;
}

static int ep_send(struct eventpoll *ep, struct ctx *ctx, uaddr_t out, int max)
{
    struct list todo = LIST_INIT(todo);
    int done = 0;
    list_splice_tail(&todo, &ep->ready);
    while (done < max && !list_empty(&todo)) {
        int n = ep_send_batch(ep, ctx, &todo,
                              uaddr_add(out, (uint64_t)done * sizeof(struct epoll_event)),
                              MIN(max - done, (int)BATCH));
        if (n < 0) {
            done = done ? done : n;
            break;
        }
        done += n;
    }
    /* What was not visited keeps its turn before what was. */
    list_splice_tail(&todo, &ep->ready);
    list_splice_tail(&ep->ready, &todo);
    if (!list_empty(&ep->ready))
        waitq_wake(&ep->waiters, EPOLLIN);
    return done;
}

int eventpoll_wait(struct ctx *ctx, struct file *epf, uaddr_t events, int max, uint64_t deadline_ns)
{
    if (!eventpoll_is(epf))
        return -EINVAL;
    struct eventpoll *ep = file_eventpoll(epf);
    for (;;) {
        if (!list_empty(&ep->ready)) {
            int n = ep_send(ep, ctx, events, max);
            if (n)
                return n;
        }
        if (deadline_ns == 0)
            return 0;
        int r = WAIT_EVENT_UNTIL(ctx, &ep->waiters, !list_empty(&ep->ready), deadline_ns);
        if (r == -ETIMEDOUT)
            return 0;
        if (r)
            return r == -ERESTARTSYS ? -EINTR : r;
    }
}
