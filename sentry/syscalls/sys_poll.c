/* SPDX-License-Identifier: Apache-2.0 */
/* poll, ppoll, select, pselect6. */
#include "syscalls_gen.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/sigmask_arg.h"
#include "sentry/vfs/file.h"

enum {
    HOOKS_INLINE = 8,
    HOOKS_BLOCK = 64,
    FDS_INLINE = 32,     /* pollfds on the stack */
    SET_WORDS_INLINE = 4, /* words of each fd_set on the stack: 256 descriptors */
};

#define NS_PER_S 1000000000ULL
#define STICKY_TIMEOUTS 0x4000000 /* personality bit: the time left is not written back */

#define BITS_IN (EPOLLRDNORM | EPOLLRDBAND | EPOLLIN | EPOLLHUP | EPOLLERR | POLLNVAL)
#define BITS_OUT (EPOLLWRBAND | EPOLLWRNORM | EPOLLOUT | EPOLLERR | POLLNVAL)
#define BITS_EX (EPOLLPRI | POLLNVAL)

/* ---- hooking the queues of many files ---- */

struct hook {
    struct waiter waiter;
    struct file *file; /* referenced: the queue is in it */
    uint32_t events;
    struct poll_set *set;
};

struct hook_block {
    struct hook_block *next;
    unsigned len;
    struct hook hooks[HOOKS_BLOCK];
};

struct poll_set {
    struct poll_table pt;
    struct waitq wait;       /* the caller sleeps here */
    bool triggered;
    int error;               /* −ENOMEM while hooking */
    struct file *file;       /* being hooked, for these events */
    uint32_t events;
    unsigned inline_len;
    struct hook_block *blocks;
    struct hook inline_hooks[HOOKS_INLINE];
};

static bool poll_set_wake(struct waiter *w, uint32_t key)
{
    struct hook *h = container_of(w, struct hook, waiter);
    if (key != WAIT_KEY_ALL && !(key & h->events))
        return false;
    h->set->triggered = true;
    waitq_wake_all(&h->set->wait);
    return true;
}

static struct hook *hook_alloc(struct poll_set *ps)
{
    if (ps->inline_len < HOOKS_INLINE)
        return &ps->inline_hooks[ps->inline_len++];
    if (!ps->blocks || ps->blocks->len == HOOKS_BLOCK) {
        struct hook_block *b = mem_realloc(NULL, 1, sizeof(*b));
        if (!b)
            return NULL;
        b->next = ps->blocks;
        b->len = 0;
        ps->blocks = b;
    }
    return &ps->blocks->hooks[ps->blocks->len++];
}

static void poll_set_queue(struct poll_table *pt, struct waitq *q)
{
    struct poll_set *ps = container_of(pt, struct poll_set, pt);
    struct hook *h = hook_alloc(ps);
    if (!h) {
        ps->error = -ENOMEM;
        return;
    }
    h->waiter = (struct waiter){.wake = poll_set_wake};
    h->file = file_ref(ps->file);
    h->events = ps->events | EPOLLERR | EPOLLHUP;
    h->set = ps;
    waitq_add(q, &h->waiter);
}

static void poll_set_init(struct poll_set *ps, struct task *t, bool may_wait)
{
    ps->pt = (struct poll_table){.queue = may_wait ? poll_set_queue : NULL, .ctx = &t->ctx};
    waitq_init(&ps->wait);
    ps->triggered = false;
    ps->error = 0;
    ps->inline_len = 0;
    ps->blocks = NULL;
}

static void hooks_drop(struct hook *hooks, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        waitq_remove(&hooks[i].waiter);
        file_unref(hooks[i].file);
    }
}

static void poll_set_free(struct poll_set *ps)
{
    hooks_drop(ps->inline_hooks, ps->inline_len);
    while (ps->blocks) {
        struct hook_block *b = ps->blocks;
        ps->blocks = b->next;
        hooks_drop(b->hooks, b->len);
        mem_free(b);
    }
}

/* Asks file; in the first round also hooks its queues. */
static uint32_t poll_set_ask(struct poll_set *ps, struct file *file, uint32_t events)
{
    ps->file = file;
    ps->events = events;
    return file_poll(file, &ps->pt);
}

/* One round's end: decides whether to look again. count: what the scan found.
 * Return: true to go on scanning, false with *inout_ret final. */
static bool poll_set_again(struct poll_set *ps, struct task *t, uint64_t deadline_ns, bool *timed_out,
                           int *inout_ret)
{
    ps->pt.queue = NULL;
    if (*inout_ret)
        return false;
    if (ps->error) {
        *inout_ret = ps->error;
        return false;
    }
    if (t->ctx.signal_pending) {
        *inout_ret = -ERESTARTNOHAND;
        return false;
    }
    if (*timed_out || deadline_ns == 0)
        return false;
    int r = WAIT_EVENT_UNTIL(&t->ctx, &ps->wait, ps->triggered, deadline_ns);
    ps->triggered = false;
    if (r == -ETIMEDOUT) {
        *timed_out = true; /* one last look */
    } else if (r == -ERESTARTSYS) {
        *inout_ret = 0; /* one last look; the signal is seen after it */
    } else if (r) {
        *inout_ret = r;
        return false;
    }
    return true;
}

/* ---- poll ---- */

static int poll_scan(struct poll_set *ps, struct task *t, struct pollfd *fds, unsigned len)
{
    int count = 0;
    for (unsigned i = 0; i < len; i++) {
        struct pollfd *p = &fds[i];
        p->revents = 0;
        if (p->fd < 0)
            continue;
        struct file *f = fdtable_get(t, p->fd);
        uint32_t events = (uint32_t)(uint16_t)p->events | EPOLLERR | EPOLLHUP;
        uint32_t mask = f ? poll_set_ask(ps, f, events) & events : POLLNVAL;
        file_unref(f);
        p->revents = (short)mask;
        if (mask) {
            count++;
            ps->pt.queue = NULL; /* no wait will follow */
        }
    }
    return count;
}

/* Return: count, 0 at the deadline, −ERESTARTNOHAND, −EINVAL, −EFAULT, −ENOMEM. */
static int64_t poll_common(struct task *t, uaddr_t ufds, uint32_t len, uint64_t deadline_ns)
{
    struct pollfd inline_fds[FDS_INLINE], *fds = inline_fds;
    CLEANUP_FREE void *heap = NULL;
    if (len > t->group->rlimits[RLIMIT_NOFILE].rlim_cur)
        return -EINVAL;
    if (len > FDS_INLINE) {
        heap = mem_realloc(NULL, len, sizeof(*fds));
        if (!heap)
            return -ENOMEM;
        fds = heap;
    }
    if (copy_in(&t->ctx, fds, ufds, len * sizeof(*fds)))
        return -EFAULT;
    struct poll_set ps;
    poll_set_init(&ps, t, deadline_ns != 0);
    bool timed_out = false;
    int ret;
    do {
        ret = poll_scan(&ps, t, fds, len);
    } while (poll_set_again(&ps, t, deadline_ns, &timed_out, &ret));
    poll_set_free(&ps);
    if (copy_out(&t->ctx, ufds, fds, len * sizeof(*fds)))
        return -EFAULT;
    return ret;
}

static uint64_t deadline_after(uint64_t ns)
{
    uint64_t now = host_monotonic_ns();
    return ns >= WAIT_FOREVER - now ? WAIT_FOREVER : now + ns;
}

static int64_t poll_restart(struct task *t)
{
    int64_t r = poll_common(t, UADDR(t->restart_args[0]), (uint32_t)t->restart_args[1],
                            t->restart_deadline_ns);
    return r == -ERESTARTNOHAND ? -ERESTART_RESTARTBLOCK : r;
}

int64_t sys_poll(struct task *t, uaddr_t fds, uint32_t nfds, int32_t timeout)
{
    uint64_t deadline = WAIT_FOREVER;
    if (timeout >= 0)
        deadline = timeout ? deadline_after((uint64_t)timeout * 1000000) : 0;
    int64_t r = poll_common(t, fds, nfds, deadline);
    if (r != -ERESTARTNOHAND)
        return r;
    t->restart_fn = poll_restart;
    t->restart_args[0] = fds.v;
    t->restart_args[1] = nfds;
    t->restart_deadline_ns = deadline;
    return -ERESTART_RESTARTBLOCK;
}

/* ---- time limits of the p-variants and select ---- */

enum timeout_kind { TIMEOUT_TIMESPEC, TIMEOUT_TIMEVAL };

/* Both structures are two 64-bit words. Return: 0 with WAIT_FOREVER for a NULL addr; −EFAULT, −EINVAL. */
static int timeout_read(struct task *t, uaddr_t addr, enum timeout_kind kind, uint64_t *ret_deadline)
{
    int64_t v[2];
    *ret_deadline = WAIT_FOREVER;
    if (uaddr_is_null(addr))
        return 0;
    if (COPY_IN(&t->ctx, &v, addr))
        return -EFAULT;
    if (kind == TIMEOUT_TIMEVAL) {
        /* Linux lets the sum wrap, and refuses what comes out negative. */
        v[0] = (int64_t)((uint64_t)v[0] + (uint64_t)(v[1] / 1000000));
        v[1] = v[1] % 1000000 * 1000;
    }
    if (v[0] < 0 || v[1] < 0 || (uint64_t)v[1] >= NS_PER_S)
        return -EINVAL;
    if (v[0] == 0 && v[1] == 0)
        *ret_deadline = 0;
    else if ((uint64_t)v[0] < WAIT_FOREVER / NS_PER_S - 1)
        *ret_deadline = deadline_after((uint64_t)v[0] * NS_PER_S + (uint64_t)v[1]);
    return 0;
}

/* Writes the time left. A restart would begin with it, so without it there is none. */
static int64_t timeout_finish(struct task *t, uaddr_t addr, enum timeout_kind kind, uint64_t deadline,
                              int64_t ret)
{
    sigmask_arg_end(t, ret == -ERESTARTNOHAND);
    if (uaddr_is_null(addr) || deadline == 0)
        return ret;
    if (!(t->personality & STICKY_TIMEOUTS)) {
        if (deadline == WAIT_FOREVER) /* longer than the clock can tell: as good as untouched */
            return ret;
        uint64_t now = host_monotonic_ns(), left = deadline > now ? deadline - now : 0;
        int64_t v[2] = {(int64_t)(left / NS_PER_S), (int64_t)(left % NS_PER_S)};
        if (kind == TIMEOUT_TIMEVAL)
            v[1] /= 1000;
        if (!COPY_OUT(&t->ctx, addr, &v))
            return ret;
    }
    return ret == -ERESTARTNOHAND ? -EINTR : ret;
}

int64_t sys_ppoll(struct task *t, uaddr_t fds, uint32_t nfds, uaddr_t timeout, uaddr_t sigmask,
                  uint64_t sigsetsize)
{
    uint64_t deadline;
    int r = timeout_read(t, timeout, TIMEOUT_TIMESPEC, &deadline);
    if (r)
        return r;
    r = sigmask_arg_begin(t, sigmask, sigsetsize);
    if (r)
        return r;
    int64_t ret = poll_common(t, fds, nfds, deadline);
    return timeout_finish(t, timeout, TIMEOUT_TIMESPEC, deadline, ret);
}

/* ---- select ---- */

/* Three sets asked for and three answered, each of words words. */
struct select_sets {
    unsigned len, words;
    uint64_t *in, *out, *ex, *res_in, *res_out, *res_ex;
};

/* Every descriptor asked about must be open. */
static int select_check(struct task *t, const struct select_sets *s)
{
    for (unsigned w = 0; w < s->words; w++) {
        uint64_t bits = s->in[w] | s->out[w] | s->ex[w];
        if (s->len - w * 64 < 64)
            bits &= (1ULL << (s->len - w * 64)) - 1;
        while (bits) {
            int fd = (int)(w * 64 + (unsigned)__builtin_ctzll(bits));
            struct file *f = fdtable_get(t, fd);
            if (!f)
                return -EBADF;
            file_unref(f);
            bits &= bits - 1;
        }
    }
    return 0;
}

static int select_scan(struct poll_set *ps, struct task *t, struct select_sets *s)
{
    int count = 0;
    for (unsigned w = 0; w < s->words; w++) {
        uint64_t bits = s->in[w] | s->out[w] | s->ex[w], in = 0, out = 0, ex = 0;
        if (s->len - w * 64 < 64)
            bits &= (1ULL << (s->len - w * 64)) - 1;
        for (; bits; bits &= bits - 1) {
            unsigned shift = (unsigned)__builtin_ctzll(bits);
            uint64_t bit = 1ULL << shift;
            uint32_t events = (s->in[w] & bit ? (uint32_t)BITS_IN : 0) |
                              (s->out[w] & bit ? (uint32_t)BITS_OUT : 0) |
                              (s->ex[w] & bit ? (uint32_t)BITS_EX : 0);
            struct file *f = fdtable_get(t, (int)(w * 64 + shift));
            uint32_t mask = f ? poll_set_ask(ps, f, events) : POLLNVAL;
            file_unref(f);
            in |= mask & BITS_IN ? s->in[w] & bit : 0;
            out |= mask & BITS_OUT ? s->out[w] & bit : 0;
            ex |= mask & BITS_EX ? s->ex[w] & bit : 0;
            if ((in | out | ex) & bit)
                ps->pt.queue = NULL;
        }
        s->res_in[w] = in;
        s->res_out[w] = out;
        s->res_ex[w] = ex;
        count += __builtin_popcountll(in) + __builtin_popcountll(out) + __builtin_popcountll(ex);
    }
    return count;
}

/* Sets are arrays of long; only whole words of len bits are touched. */
static int set_in(struct task *t, uint64_t *dst, uaddr_t src, unsigned words)
{
    if (uaddr_is_null(src)) {
        memset(dst, 0, words * 8UL);
        return 0;
    }
    return copy_in(&t->ctx, dst, src, words * 8UL);
}

static int set_out(struct task *t, uaddr_t dst, const uint64_t *src, unsigned words)
{
    return uaddr_is_null(dst) ? 0 : copy_out(&t->ctx, dst, src, words * 8UL);
}

static int64_t select_common(struct task *t, int32_t nfds, uaddr_t in, uaddr_t out, uaddr_t ex,
                             uint64_t deadline_ns)
{
    uint64_t inline_words[6 * SET_WORDS_INLINE], *words = inline_words;
    CLEANUP_FREE void *heap = NULL;
    if (nfds < 0)
        return -EINVAL;
    struct select_sets s = {.len = MIN((uint32_t)nfds, t->files->capacity)};
    s.words = (s.len + 63) / 64;
    if (s.words > SET_WORDS_INLINE) {
        heap = mem_realloc(NULL, s.words, 6 * sizeof(*words));
        if (!heap)
            return -ENOMEM;
        words = heap;
    }
    s.in = words;
    s.out = words + s.words;
    s.ex = words + 2UL * s.words;
    s.res_in = words + 3UL * s.words;
    s.res_out = words + 4UL * s.words;
    s.res_ex = words + 5UL * s.words;
    if (set_in(t, s.in, in, s.words) || set_in(t, s.out, out, s.words) || set_in(t, s.ex, ex, s.words))
        return -EFAULT;
    int ret = select_check(t, &s);
    if (ret)
        return ret;
    struct poll_set ps;
    poll_set_init(&ps, t, deadline_ns != 0);
    bool timed_out = false;
    do {
        ret = select_scan(&ps, t, &s);
    } while (poll_set_again(&ps, t, deadline_ns, &timed_out, &ret));
    poll_set_free(&ps);
    if (ret < 0)
        return ret;
    if (set_out(t, in, s.res_in, s.words) || set_out(t, out, s.res_out, s.words) ||
        set_out(t, ex, s.res_ex, s.words))
        return -EFAULT;
    return ret;
}

int64_t sys_select(struct task *t, int32_t nfds, uaddr_t readfds, uaddr_t writefds, uaddr_t exceptfds,
                   uaddr_t timeout)
{
    uint64_t deadline;
    int r = timeout_read(t, timeout, TIMEOUT_TIMEVAL, &deadline);
    if (r)
        return r;
    int64_t ret = select_common(t, nfds, readfds, writefds, exceptfds, deadline);
    return timeout_finish(t, timeout, TIMEOUT_TIMEVAL, deadline, ret);
}

int64_t sys_pselect6(struct task *t, int32_t nfds, uaddr_t readfds, uaddr_t writefds, uaddr_t exceptfds,
                     uaddr_t timeout, uaddr_t sigmask)
{
    struct {
        uint64_t set, size;
    } arg = {0, 0};
    uint64_t deadline;
    if (!uaddr_is_null(sigmask) && COPY_IN(&t->ctx, &arg, sigmask))
        return -EFAULT;
    int r = timeout_read(t, timeout, TIMEOUT_TIMESPEC, &deadline);
    if (r)
        return r;
    r = sigmask_arg_begin(t, UADDR(arg.set), arg.size);
    if (r)
        return r;
    int64_t ret = select_common(t, nfds, readfds, writefds, exceptfds, deadline);
    return timeout_finish(t, timeout, TIMEOUT_TIMESPEC, deadline, ret);
}
