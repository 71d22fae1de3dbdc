/* SPDX-License-Identifier: Apache-2.0 */
/* Inherited descriptors: shared offsets, flags that stay as they are, waiting. */
#include "sentry/fs/hostfd.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "tests/unit/sentry/fs/fs_fixture.h"

static void set_up(void)
{
    s_up();
    cr_assert_eq(evloop_init(), 0);
}

static void stop_loop(void *arg)
{
    struct fx_io *io = arg;

    fx_io_run(io);
    evloop_stop();
}

/* Runs one operation on a fiber until it is done, with the event loop turning. */
static int64_t run_io(struct file *f, void *p, size_t size, bool write)
{
    struct fx_io io = {.ctx = {.thread = &fx_thread, .cred = fx_cred}, .f = f, .p = p, .size = size, .write = write};

    cr_assert_eq(fiber_spawn(stop_loop, &io), 0);
    evloop_run();
    return io.ret;
}

static struct file *wrap(int fd)
{
    struct file *f;

    cr_assert_eq(hostfd_new(fd, UINT32_MAX, w.root, &f), 0);
    return f;
}

Test(hostfd, the_offset_of_a_file_is_shared, .init = set_up)
{
    char path[] = "/tmp/hostfd-XXXXXX", text[32] = {0};
    int fd = mkstemp(path), other = dup(fd);
    struct file *f;

    cr_assert_eq(write(fd, "AAAA\n", 5), 5);
    f = wrap(fd);
    cr_assert_eq(run_io(f, (void *)(uintptr_t)"B\n", 2, true), 2);
    cr_assert_eq(write(other, "C\n", 2), 2);
    cr_assert_eq(file_llseek(&s_init->ctx, f, 0, SEEK_CUR), 9);
    cr_assert_eq(file_llseek(&s_init->ctx, f, 0, SEEK_SET), 0);
    cr_assert_eq(run_io(f, text, sizeof(text), false), 9);
    cr_assert_str_eq(text, "AAAA\nB\nC\n");
    cr_assert_eq(f->inode->mode & S_IFMT, (unsigned)S_IFREG);
    file_unref(f);
    close(other);
    unlink(path);
}

struct late {
    int fd;
    struct evloop_watch watch;
    struct ktimer timer;
};

static struct late late;

static void write_late(struct ktimer *t)
{
    cr_assert_eq(write(late.fd, "late", 4), 4);
}

Test(hostfd, a_pipe_is_waited_for_and_keeps_its_flags, .init = set_up)
{
    char text[32] = {0};
    int p[2];
    struct file *f;

    cr_assert_eq(pipe(p), 0);
    f = wrap(p[0]);
    cr_assert_eq(file_poll(f, NULL) & EPOLLIN, 0);
    f->flags |= O_NONBLOCK;
    cr_assert_eq(run_io(f, text, 4, false), -EAGAIN);
    cr_assert_eq(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
    f->flags &= ~(uint32_t)O_NONBLOCK;
    late.fd = p[1];
    cr_assert_eq(ktimer_set(&late.timer, host_monotonic_ns() + 20000000, write_late), 0);
    cr_assert_eq(run_io(f, text, sizeof(text), false), 4);
    cr_assert_str_eq(text, "late");
    close(p[1]);
    cr_assert_eq(run_io(f, text, sizeof(text), false), 0);
    file_unref(f);
}

Test(hostfd, a_broken_pipe_gives_epipe, .init = set_up)
{
    int p[2];
    struct file *f;

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(pipe(p), 0);
    f = wrap(p[1]);
    close(p[0]);
    cr_assert_eq(run_io(f, (void *)(uintptr_t)"x", 1, true), -EPIPE);
    cr_assert(file_poll(f, NULL) & EPOLLERR);
    file_unref(f);
}

static void drain_late(struct ktimer *t)
{
    static char sink[65536];

    if (read(late.fd, sink, sizeof(sink)) > 0)
        cr_assert_eq(ktimer_set(t, host_monotonic_ns() + 1000000, drain_late), 0);
}

Test(hostfd, a_full_pipe_takes_it_all_in_time, .init = set_up)
{
    static char big[300000];
    int p[2];
    struct file *f;

    cr_assert_eq(pipe(p), 0);
    f = wrap(p[1]);
    late.fd = p[0];
    fcntl(p[0], F_SETFL, O_NONBLOCK);
    cr_assert_eq(ktimer_set(&late.timer, host_monotonic_ns() + 1000000, drain_late), 0);
    cr_assert_eq(run_io(f, big, sizeof(big), true), (int64_t)sizeof(big));
    file_unref(f);
}

Test(hostfd, sockets, .init = set_up)
{
    char text[8] = {0};
    int s[2];
    struct file *f;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
    f = wrap(s[0]);
    cr_assert_eq(run_io(f, (void *)(uintptr_t)"ping", 4, true), 4);
    cr_assert_eq(read(s[1], text, 8), 4);
    cr_assert_eq(write(s[1], "pong", 4), 4);
    cr_assert_eq(run_io(f, text, 8, false), 4);
    cr_assert_str_eq(text, "pong");
    file_unref(f);
    close(s[1]);
}

Test(hostfd, dev_null_becomes_the_containers, .init = set_up)
{
    struct file *f, *own = s_open(s_init, "/dev/null", O_WRONLY);

    cr_assert_eq(hostfd_open_stdio(&s_init->ctx, &s_base, open("/dev/null", O_WRONLY), 0, &f), 0);
    cr_assert_eq(f->inode, own->inode);
    cr_assert_eq(s_write(s_init, f, "gone"), 4);
    file_unref(f);
    file_unref(own);
}
