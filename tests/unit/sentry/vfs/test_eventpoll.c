/* SPDX-License-Identifier: Apache-2.0 */
/* epoll: level and edge triggering, one-shot, nesting and its limits, files that go away. */
#include "sentry/vfs/eventpoll.h"

#include "tests/unit/sentry/ipc_fixture.h"

#include "sentry/core/limits.h"
#include "sentry/fs/anon_eventfd.h"
#include "sentry/fs/pipe.h"

static struct file *ep, *r, *w;
static struct epoll_event out[256];

static void up(void)
{
    fx_up();
    cr_assert_eq(pipe_new(fx_cred, O_NONBLOCK, &r, &w), 0);
    ep = eventpoll_new(fx_cred);
    cr_assert_not_null(ep);
}

static void down(void)
{
    file_unref(r);
    file_unref(w);
    file_unref(ep);
    cr_assert_eq(limit_used(LIMIT_KIND_EPOLL_WATCHES), 0);
    fx_down();
}

TestSuite(eventpoll, .init = up, .fini = down);

static int ctl(struct file *e, int op, int fd, struct file *f, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.fd = fd};
    return eventpoll_ctl(&fx_ctx, e, op, fd, f, &ev);
}

static int take(struct file *e)
{
    memset(out, 0, sizeof(out));
    return eventpoll_wait(&fx_ctx, e, UADDR((uintptr_t)out), 256, 0);
}

static char junk[100000];

Test(eventpoll, level)
{
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN), -EEXIST);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 4, r, EPOLLIN), 0, "another number is another watch");
    cr_assert_eq(ctl(ep, EPOLL_CTL_DEL, 4, r, 0), 0);
    cr_assert_eq(take(ep), 0);
    fx_write(w, "ab", 2);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(take(ep), 1);
        cr_assert_eq(out[0].events, EPOLLIN);
        cr_assert_eq(out[0].data.fd, 3);
    }
    fx_read(r, junk, 10);
    cr_assert_eq(take(ep), 0);
    cr_assert_eq(ctl(ep, EPOLL_CTL_DEL, 3, r, 0), 0);
    cr_assert_eq(ctl(ep, EPOLL_CTL_DEL, 3, r, 0), -ENOENT);
    cr_assert_eq(ctl(ep, EPOLL_CTL_MOD, 3, r, EPOLLIN), -ENOENT);
    fx_write(w, "ab", 2);
    cr_assert_eq(take(ep), 0);
}

Test(eventpoll, edge)
{
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLET), 0);
    fx_write(w, "ab", 2);
    cr_assert_eq(take(ep), 1);
    cr_assert_eq(take(ep), 0, "nothing new");
    fx_write(w, "c", 1);
    cr_assert_eq(take(ep), 1, "more data is news, though the pipe was not empty");
    cr_assert_eq(take(ep), 0);
    file_unref(w);
    w = NULL;
    cr_assert_eq(take(ep), 1);
    cr_assert_eq(out[0].events, EPOLLIN | EPOLLHUP);
}

Test(eventpoll, one_shot)
{
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLONESHOT), 0);
    fx_write(w, "ab", 2);
    cr_assert_eq(take(ep), 1);
    fx_write(w, "ab", 2);
    cr_assert_eq(take(ep), 0);
    cr_assert_eq(ctl(ep, EPOLL_CTL_MOD, 3, r, EPOLLIN | EPOLLONESHOT), 0);
    cr_assert_eq(take(ep), 1);
    cr_assert_eq(take(ep), 0);
}

Test(eventpoll, what_it_refuses)
{
    cr_assert_eq(ctl(r, EPOLL_CTL_ADD, 3, w, EPOLLIN), -EINVAL);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, ep, EPOLLIN), -EINVAL);
    cr_assert_eq(ctl(ep, 77, 3, r, EPOLLIN), -EINVAL);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT), -EINVAL);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLEXCLUSIVE), 0);
    cr_assert_eq(ctl(ep, EPOLL_CTL_MOD, 3, r, EPOLLIN), -EINVAL);
}

Test(eventpoll, faults_lose_nothing)
{
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN | EPOLLET), 0);
    fx_write(w, "ab", 2);
    cr_assert_eq(eventpoll_wait(&fx_ctx, ep, UADDR(8), 256, 0), -EFAULT);
    cr_assert_eq(take(ep), 1);
}

Test(eventpoll, many_take_turns)
{
    struct file *e[200];
    for (int i = 0; i < 200; i++) {
        e[i] = anon_eventfd_new(1, false, O_NONBLOCK, fx_cred);
        cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, i, e[i], EPOLLIN), 0);
    }
    bool seen[200] = {0};
    for (int round = 0; round < 4; round++) {
        cr_assert_eq(eventpoll_wait(&fx_ctx, ep, UADDR((uintptr_t)out), 50, 0), 50);
        for (int i = 0; i < 50; i++) {
            cr_assert_not(seen[out[i].data.fd], "each has its turn before any has a second");
            seen[out[i].data.fd] = true;
        }
    }
    cr_assert_eq(take(ep), 200);
    for (int i = 0; i < 200; i += 2)
        file_unref(e[i]); /* leaves the set by itself */
    cr_assert_eq(take(ep), 100);
    for (int i = 1; i < 200; i += 2)
        file_unref(e[i]);
    cr_assert_eq(take(ep), 0);
}

Test(eventpoll, nested)
{
    struct file *outer = eventpoll_new(fx_cred);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
    cr_assert_eq(ctl(outer, EPOLL_CTL_ADD, 5, ep, EPOLLIN), 0);
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 6, outer, EPOLLIN), -ELOOP);
    cr_assert_eq(take(outer), 0);
    fx_write(w, "x", 1);
    cr_assert_eq(take(outer), 1);
    cr_assert_eq(out[0].data.fd, 5);
    fx_read(r, junk, 1);
    cr_assert_eq(take(outer), 0);
    file_unref(outer);
}

Test(eventpoll, nesting_depth)
{
    struct file *chain[7];
    for (int i = 0; i < 7; i++)
        chain[i] = eventpoll_new(fx_cred);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(ctl(chain[i], EPOLL_CTL_ADD, 3, chain[i + 1], EPOLLIN), 0);
    cr_assert_eq(ctl(chain[4], EPOLL_CTL_ADD, 3, chain[5], EPOLLIN), -ELOOP);
    cr_assert_eq(ctl(chain[6], EPOLL_CTL_ADD, 3, chain[0], EPOLLIN), -ELOOP);
    cr_assert_eq(ctl(chain[4], EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
    fx_write(w, "x", 1);
    cr_assert_eq(take(chain[0]), 1);
    for (int i = 0; i < 7; i++)
        file_unref(chain[i]);
}

static int waited;
static struct ctx wait_ctx;

static void wait_fiber(void *arg)
{
    waited = eventpoll_wait(&wait_ctx, ep, UADDR((uintptr_t)out), 10, WAIT_FOREVER);
}

Test(eventpoll, waits)
{
    wait_ctx = fx_ctx;
    waited = -1;
    cr_assert_eq(ctl(ep, EPOLL_CTL_ADD, 3, r, EPOLLIN), 0);
    cr_assert_eq(fiber_start(wait_fiber, NULL), 0);
    cr_assert_eq(waited, -1);
    fx_write(w, "x", 1);
    fiber_run_ready();
    cr_assert_eq(waited, 1);
    fx_read(r, junk, 1);
    waited = -1;
    cr_assert_eq(fiber_start(wait_fiber, NULL), 0);
    wait_ctx.signal_pending = true;
    ctx_interrupt(&wait_ctx);
    fiber_run_ready();
    cr_assert_eq(waited, -EINTR);
}
