/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes: order, capacity, atomic writes, packets, ends of file, readiness, size changes. */
#include "sentry/fs/pipe.h"

#include "tests/unit/sentry/ipc_fixture.h"

#include <poll.h>
#include <sys/epoll.h>

#include "sentry/core/limits.h"

static struct file *r, *w;
static char big[200000], back[200000];

static void up(void)
{
    fx_up();
    cr_assert_eq(pipe_new(fx_cred, O_NONBLOCK, &r, &w), 0);
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (char)(i * 7 + i / 251);
}

static void down(void)
{
    file_unref(r);
    file_unref(w);
    cr_assert_eq(limit_used(LIMIT_KIND_PIPE_PAGES), 0);
    fx_down();
}

TestSuite(pipe, .init = up, .fini = down);

static void blocking(void)
{
    r->flags &= ~(uint32_t)O_NONBLOCK;
    w->flags &= ~(uint32_t)O_NONBLOCK;
}

Test(pipe, bytes_in_order)
{
    cr_assert_eq(fx_write(w, "hello", 5), 5);
    cr_assert_eq(fx_write(w, " world", 6), 6);
    cr_assert_eq(fx_read(r, back, 3), 3);
    cr_assert_eq(fx_read(r, back + 3, 100), 8);
    cr_assert(!memcmp(back, "hello world", 11));
    cr_assert_eq(fx_read(r, back, 1), -EAGAIN);
    cr_assert_eq(fx_write(w, big, 0), 0);
    cr_assert_eq(fx_read(r, back, 0), 0);
}

Test(pipe, capacity_is_counted_in_pages)
{
    cr_assert_eq(fx_write(w, big, sizeof(big)), 65536);
    cr_assert_eq(fx_write(w, big, 1), -EAGAIN);
    cr_assert_eq(file_poll(w, NULL) & EPOLLOUT, 0);
    cr_assert_eq(fx_read(r, back, 4095), 4095);
    cr_assert_eq(fx_write(w, big, 1), -EAGAIN, "no whole page is free yet");
    cr_assert_eq(fx_read(r, back + 4095, 1), 1);
    cr_assert_eq(fx_write(w, big + 65536, 5000), 4096);
    cr_assert_eq(fx_read(r, back + 4096, sizeof(back)), 65536);
    cr_assert(!memcmp(back, big, 69632));
    /* One byte at a time fills pages, not slots. */
    for (int i = 0; i < 65536; i++)
        cr_assert_eq(fx_write(w, big, 1), 1);
    cr_assert_eq(fx_write(w, big, 1), -EAGAIN);
}

Test(pipe, small_writes_are_all_or_nothing)
{
    cr_assert_eq(fx_write(w, big, 65536 - 100), 65536 - 100);
    cr_assert_eq(fx_write(w, big, 4096), -EAGAIN);
    cr_assert_eq(fx_write(w, big, 101), -EAGAIN);
    cr_assert_eq(fx_write(w, big, 100), 100);
}

Test(pipe, packets)
{
    w->flags |= O_DIRECT;
    cr_assert_eq(fx_write(w, "abcdef", 6), 6);
    cr_assert_eq(fx_write(w, "gh", 2), 2);
    cr_assert_eq(fx_read(r, back, 3), 3);
    cr_assert_eq(fx_read(r, back, 100), 2, "the rest of a packet is dropped");
    cr_assert_eq(fx_write(w, big, 5000), 5000);
    cr_assert_eq(fx_read(r, back, 10000), 4096);
    cr_assert_eq(fx_read(r, back, 10000), 904);
}

Test(pipe, ends)
{
    cr_assert_eq(fx_write(w, "x", 1), 1);
    file_unref(w);
    w = NULL;
    cr_assert_eq(file_poll(r, NULL), EPOLLIN | EPOLLRDNORM | EPOLLHUP);
    cr_assert_eq(fx_read(r, back, 10), 1);
    cr_assert_eq(fx_read(r, back, 10), 0);
    cr_assert_eq(file_poll(r, NULL), EPOLLHUP);
    file_unref(r);
    r = NULL;
    cr_assert_eq(pipe_new(fx_cred, 0, &r, &w), 0);
    file_unref(r);
    r = NULL;
    cr_assert_eq(fx_write(w, "x", 1), -EPIPE);
    cr_assert(file_poll(w, NULL) & EPOLLERR);
}

Test(pipe, bad_memory)
{
    cr_assert_eq(fx_write(w, (void *)8, 10), -EFAULT);
    cr_assert_eq(file_poll(r, NULL) & EPOLLIN, 0);
    cr_assert_eq(fx_write(w, "data", 4), 4);
    cr_assert_eq(fx_write(w, (void *)8, 10), -EFAULT);
    cr_assert_eq(fx_read(r, (void *)8, 10), -EFAULT);
    cr_assert_eq(fx_read(r, back, 10), 4);
}

Test(pipe, reader_waits_for_writer)
{
    struct fx_io io;
    blocking();
    fx_start(&io, r, back, 100, false);
    cr_assert_eq(io.ret, INT64_MIN);
    cr_assert_eq(fx_write(w, "late", 4), 4);
    fiber_run_ready();
    cr_assert_eq(io.ret, 4);
    fx_start(&io, r, back, 100, false);
    file_unref(w);
    w = NULL;
    fiber_run_ready();
    cr_assert_eq(io.ret, 0);
}

Test(pipe, writer_waits_for_reader)
{
    struct fx_io io;
    size_t got = 0;
    blocking();
    fx_start(&io, w, big, sizeof(big), true);
    cr_assert_eq(io.ret, INT64_MIN);
    while (got < sizeof(big)) {
        ssize_t n = fx_read(r, back + got, 10000);
        cr_assert(n > 0);
        got += (size_t)n;
        fiber_run_ready();
    }
    cr_assert_eq(io.ret, (int64_t)sizeof(big));
    cr_assert(!memcmp(big, back, sizeof(big)));
}

Test(pipe, interrupted)
{
    struct fx_io io;
    blocking();
    fx_start(&io, r, back, 100, false);
    io.ctx.signal_pending = true;
    ctx_interrupt(&io.ctx);
    fiber_run_ready();
    cr_assert_eq(io.ret, -ERESTARTSYS);
    fx_start(&io, w, big, sizeof(big), true);
    io.ctx.signal_pending = true;
    ctx_interrupt(&io.ctx);
    fiber_run_ready();
    cr_assert_eq(io.ret, 65536, "what was written counts");
}

Test(pipe, size_changes)
{
    cr_assert_eq(r->ops->fcntl(&fx_ctx, r, F_GETPIPE_SZ, 0), 65536);
    cr_assert_eq(fx_write(w, big, 20000), 20000);
    cr_assert_eq(w->ops->fcntl(&fx_ctx, w, F_SETPIPE_SZ, 4096), -EBUSY);
    cr_assert_eq(w->ops->fcntl(&fx_ctx, w, F_SETPIPE_SZ, 100000), 131072);
    cr_assert_eq(fx_write(w, big + 20000, sizeof(big)), 131072 - 20480);
    cr_assert_eq(fx_read(r, back, sizeof(back)), 131072 - 480);
    cr_assert(!memcmp(big, back, 131072 - 480));
    cr_assert_eq(w->ops->fcntl(&fx_ctx, w, F_SETPIPE_SZ, 0), 4096);
    cr_assert_eq(w->ops->fcntl(&fx_ctx, w, F_SETPIPE_SZ, 2 << 20), -EPERM);
    cr_assert_eq(w->ops->fcntl(&fx_ctx, w, F_SETPIPE_SZ, 3U << 30), -EINVAL);
}

Test(pipe, peek_and_consume)
{
    cr_assert_eq(fx_write(w, big, 70000), 65536);
    cr_assert_eq(pipe_wait_data(&fx_ctx, r, true), 65536);
    cr_assert_eq(pipe_peek(r, 60000, back, 10000), 5536);
    cr_assert(!memcmp(back, big + 60000, 5536));
    pipe_consume(r, 50000);
    cr_assert_eq(pipe_wait_data(&fx_ctx, r, true), 15536);
    cr_assert(pipe_wait_room(&fx_ctx, w, true) >= 12 * 4096);
    cr_assert(pipe_same(r, w));
}

Test(pipe, many_spare_buffers)
{
    for (int i = 0; i < 200; i++) {
        size_t n = (size_t)(i * 977 % 65536) + 1;
        cr_assert_eq(fx_write(w, big, n), (ssize_t)n);
        cr_assert_eq(fx_read(r, back, sizeof(back)), (ssize_t)n);
        cr_assert(!memcmp(big, back, n));
    }
}
