/* SPDX-License-Identifier: Apache-2.0 */
/* AIO contexts: requests, polls that go on in the background, and the queue of events. */
#include "sentry/fs/aio.h"

#include <errno.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "sentry/core/fiber.h"
#include "sentry/core/limits.h"
#include "sentry/fs/anon_eventfd.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

enum {
    CAPACITY_MIN = 127,     /* a page full of events, which is what a small context gets on Linux */
    EVENTS_MAX = 0x800000,  /* that a context can be asked for */
    HOOKS_LEN = 3,          /* queues that one file may name in its poll op */
};

struct aio_ctx {
    struct ref ref;         /* its place in the address space, requests, calls */
    struct list link;       /* (k) mm.aio_contexts */
    uint64_t id;            /* (i) */
    uint32_t nr, capacity;  /* (i) asked for; requests at once, those whose event waits included */
    uint32_t used;          /* (k) of capacity */
    uint32_t active;        /* (k) requests that are not over */
    bool ended;             /* (k) */
    struct list events;     /* (k) of aio_req.link: over, to be fetched */
    struct list polls;      /* (k) of aio_req.link */
    struct waitq wait;      /* for events, and for the last request of an ended context */
};

struct hook {
    struct waiter waiter;
    struct aio_req *req;
};

struct aio_req {
    struct list link;
    struct aio_ctx *ctx;    /* (i) referenced */
    struct file *file;      /* (k) referenced until it is over */
    struct file *resfd;     /* (k) likewise, may be NULL */
    struct aio_event event; /* (k) */
    uint32_t poll_events;   /* (i) polls: EPOLL* */
    bool looking;           /* (k) polls: a fiber is on its way */
    bool cancelled;         /* (k) polls */
    unsigned hooks_len;     /* (k) */
    bool hooks_full;        /* (k) the file has more queues than that */
    struct hook hooks[HOOKS_LEN];
};

struct hook_table {
    struct poll_table pt;
    struct aio_req *req;
};

static uint64_t nr_total; /* (k) of all contexts that have not ended */

uint64_t aio_nr(void)
{
    return nr_total;
}

/* ---- contexts ---- */

int aio_check_nr(uint32_t nr)
{
    if (nr == 0 || nr > EVENTS_MAX / 2)
        return -EINVAL;
    return nr > AIO_MAX_NR - nr_total ? -EAGAIN : 0;
}

static struct aio_ctx *ctx_lookup(struct mm *mm, uint64_t id)
{
    struct aio_ctx *a;

    list_for_each_entry(a, &mm->aio_contexts, link) {
        if (a->id == id)
            return a;
    }
    return NULL;
}

int aio_ctx_new(struct mm *mm, uint64_t id, uint32_t nr)
{
    struct aio_ctx *a, *old = ctx_lookup(mm, id);
    int r;

    if (old)
        (void)aio_ctx_end(old);
    r = aio_check_nr(nr);
    if (r)
        return r;
    a = NEW(struct aio_ctx);
    if (!a)
        return -ENOMEM;
    ref_init(&a->ref);
    a->id = id;
    a->nr = nr;
    a->capacity = MAX(2 * nr, (uint32_t)CAPACITY_MIN);
    list_init(&a->events);
    list_init(&a->polls);
    waitq_init(&a->wait);
    list_add(&mm->aio_contexts, &a->link);
    nr_total += nr;
    return 0;
}

struct aio_ctx *aio_ctx_find(struct mm *mm, uint64_t id)
{
    struct aio_ctx *a = ctx_lookup(mm, id);

    if (a)
        ref_get(&a->ref);
    return a;
}

static void req_free(struct aio_req *r)
{
    struct aio_ctx *a = r->ctx;

    limit_uncharge(LIMIT_KIND_AIO, 1);
    a->used--;
    file_unref(r->file);
    file_unref(r->resfd);
    mem_free(r);
    aio_ctx_unref(a);
}

void aio_ctx_unref(struct aio_ctx *a)
{
    if (a && ref_put(&a->ref))
        mem_free(a);
}

uint32_t aio_ctx_capacity(const struct aio_ctx *a)
{
    return a->capacity;
}

static void poll_cancel(struct aio_req *r);

bool aio_ctx_end(struct aio_ctx *a)
{
    struct aio_req *r, *next;

    if (a->ended)
        return false;
    a->ended = true;
    list_del(&a->link);
    nr_total -= a->nr;
    ref_get(&a->ref);
    list_for_each_entry_safe(r, next, &a->polls, link)
        poll_cancel(r);
    while ((r = list_first_or_null(&a->events, struct aio_req, link))) {
        list_del(&r->link);
        req_free(r);
    }
    waitq_wake_all(&a->wait);
    aio_ctx_unref(a);
    aio_ctx_unref(a); /* its place in the address space */
    return true;
}

int aio_ctx_drain(struct ctx *ctx, struct aio_ctx *a)
{
    return WAIT_EVENT_STATE(ctx, &a->wait, a->active == 0, CTX_WAIT_KILLABLE, WAIT_FOREVER);
}

void mm_aio_drop(struct mm *mm)
{
    while (!list_empty(&mm->aio_contexts))
        (void)aio_ctx_end(list_first(&mm->aio_contexts, struct aio_ctx, link));
}

/* ---- requests ---- */

int aio_req_new(struct aio_ctx *a, struct file *f, struct file *resfd, uint64_t iocb, uint64_t data, struct aio_req **ret_req)
{
    struct aio_req *r = NULL;
    int err = a->ended ? -EINVAL : a->used >= a->capacity ? -EAGAIN : limit_charge(LIMIT_KIND_AIO, 1);

    if (!err) {
        r = NEW(struct aio_req);
        if (!r) {
            limit_uncharge(LIMIT_KIND_AIO, 1);
            err = -ENOMEM;
        }
    }
    if (err) {
        file_unref(f);
        file_unref(resfd);
        return err;
    }
    list_init(&r->link);
    ref_get(&a->ref);
    r->ctx = a;
    r->file = f;
    r->resfd = resfd;
    r->event.obj = iocb;
    r->event.data = data;
    a->used++;
    a->active++;
    *ret_req = r;
    return 0;
}

struct file *aio_req_file(const struct aio_req *r)
{
    return r->file;
}

static void req_inactive(struct aio_ctx *a)
{
    if (--a->active == 0 && a->ended)
        waitq_wake_all(&a->wait);
}

void aio_req_drop(struct aio_req *r)
{
    req_inactive(r->ctx);
    req_free(r);
}

void aio_req_complete(struct aio_req *r, int64_t res)
{
    struct aio_ctx *a = r->ctx;
    struct file *f = TAKE_PTR(r->file), *resfd = TAKE_PTR(r->resfd);

    ref_get(&a->ref);
    r->event.res = res;
    if (a->ended) {
        req_free(r);
    } else {
        list_add_tail(&a->events, &r->link);
        waitq_wake(&a->wait, EPOLLIN);
    }
    req_inactive(a);
    if (resfd)
        anon_eventfd_signal(resfd);
    file_unref(resfd);
    file_unref(f);
    aio_ctx_unref(a);
}

/* ---- polls ---- */

static void poll_unhook(struct aio_req *r)
{
    while (r->hooks_len > 0)
        waitq_remove(&r->hooks[--r->hooks_len].waiter);
}

static void poll_complete(struct aio_req *r, uint32_t mask)
{
    poll_unhook(r);
    list_del(&r->link);
    aio_req_complete(r, mask);
}

static bool poll_wake(struct waiter *w, uint32_t key);

static void poll_hook(struct poll_table *pt, struct waitq *q)
{
    struct aio_req *r = container_of(pt, struct hook_table, pt)->req;

    if (r->hooks_len == HOOKS_LEN) {
        r->hooks_full = true;
        return;
    }
    struct hook *h = &r->hooks[r->hooks_len++];
    h->waiter.wake = poll_wake;
    h->req = r;
    waitq_add(q, &h->waiter);
}

/* Return: what is there; hooks the file's queues when nothing is. */
static uint32_t poll_look(struct aio_req *r)
{
    struct hook_table table = {.pt = {.queue = poll_hook}, .req = r};
    uint32_t mask;

    poll_unhook(r);
    mask = file_poll(r->file, &table.pt) & r->poll_events;
    if (mask)
        poll_unhook(r);
    return mask;
}

static void poll_fiber(void *arg)
{
    struct aio_req *r = arg;
    uint32_t mask = 0;

    r->looking = false;
    if (!r->cancelled)
        mask = poll_look(r);
    if (mask || r->cancelled)
        poll_complete(r, mask);
}

/* The file may go with its poll, and with it the queue that is being gone through; an eventfd may wake further polls. So a
 * fiber looks. Without memory for one the next wake does. */
static bool poll_wake(struct waiter *w, uint32_t key)
{
    struct aio_req *r = container_of(w, struct hook, waiter)->req;

    if (r->looking || (key != WAIT_KEY_ALL && !(key & r->poll_events)))
        return false;
    r->looking = !fiber_spawn(poll_fiber, r);
    return true;
}

int aio_req_poll(struct aio_req *r, uint32_t events)
{
    uint32_t mask;

    if (!r->file->ops->poll)
        return -EINVAL;
    r->poll_events = events | EPOLLERR | EPOLLHUP;
    list_add_tail(&r->ctx->polls, &r->link);
    mask = poll_look(r);
    if (r->hooks_full && !mask) {
        poll_unhook(r);
        list_del(&r->link);
        list_init(&r->link);
        return -EINVAL;
    }
    if (mask)
        poll_complete(r, mask);
    return 0;
}

static void poll_cancel(struct aio_req *r)
{
    r->cancelled = true;
    if (!r->looking)
        poll_complete(r, 0);
}

int aio_cancel(struct aio_ctx *a, uint64_t iocb)
{
    struct aio_req *r;

    list_for_each_entry(r, &a->polls, link) {
        if (r->event.obj != iocb || r->cancelled)
            continue;
        poll_cancel(r);
        return -EINPROGRESS;
    }
    return -EINVAL;
}

/* ---- events ---- */

/* Stores what is there. Return: 0 or −EFAULT. */
static int fetch(struct ctx *ctx, struct aio_ctx *a, int64_t nr, uaddr_t addr, int64_t *inout_got)
{
    struct aio_req *r;

    while (*inout_got < nr && (r = list_first_or_null(&a->events, struct aio_req, link))) {
        if (COPY_OUT(ctx, UADDR(addr.v + (uint64_t)*inout_got * sizeof(r->event)), &r->event))
            return -EFAULT;
        list_del(&r->link);
        req_free(r);
        ++*inout_got;
    }
    return 0;
}

int64_t aio_get_events(struct ctx *ctx, struct aio_ctx *a, int64_t min_nr, int64_t nr, uaddr_t addr, uint64_t deadline_ns)
{
    int64_t got = 0;
    int r;

    for (;;) {
        r = a->ended ? -EINVAL : fetch(ctx, a, nr, addr, &got);
        if (r || got >= min_nr || !deadline_ns)
            break;
        r = WAIT_EVENT_UNTIL(ctx, &a->wait, a->ended || !list_empty(&a->events), deadline_ns);
        if (r)
            break;
    }
    if (got)
        return got;
    return r == -ETIMEDOUT ? 0 : r;
}
