/* SPDX-License-Identifier: Apache-2.0 */
/* Linux AIO: contexts, requests of every kind, events, cancelling, and what ends with the process. */
#include "tests/guest/guest.h"

#include <linux/aio_abi.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

static long io_setup(unsigned nr, aio_context_t *ctx)
{
    return syscall(SYS_io_setup, nr, ctx);
}

static long io_destroy(aio_context_t ctx)
{
    return syscall(SYS_io_destroy, ctx);
}

static long io_submit(aio_context_t ctx, long nr, struct iocb **cbs)
{
    return syscall(SYS_io_submit, ctx, nr, cbs);
}

static long io_getevents(aio_context_t ctx, long min, long nr, struct io_event *ev, struct timespec *ts)
{
    return syscall(SYS_io_getevents, ctx, min, nr, ev, ts);
}

static aio_context_t context(unsigned nr)
{
    aio_context_t ctx = 0;
    EQ(io_setup(nr, &ctx), 0);
    CHECK(ctx != 0);
    return ctx;
}

static struct iocb request(int op, int fd, void *buf, size_t size, long long offset)
{
    return (struct iocb){.aio_lio_opcode = (unsigned short)op, .aio_fildes = (unsigned)fd, .aio_buf = (uintptr_t)buf,
                         .aio_nbytes = size, .aio_offset = offset, .aio_data = 0x1234, .aio_key = 77};
}

/* Submits one request. Returns what io_submit does, or −errno. */
static long submit(aio_context_t ctx, struct iocb *cb)
{
    long n = io_submit(ctx, 1, &cb);
    return n < 0 ? -errno : n;
}

/* Submits one and returns its event's result. */
static long long result(aio_context_t ctx, struct iocb *cb)
{
    struct io_event ev;
    EQ(submit(ctx, cb), 1);
    EQ(io_getevents(ctx, 1, 1, &ev, NULL), 1);
    EQ(ev.obj, (uintptr_t)cb);
    EQ(ev.data, cb->aio_data);
    EQ(ev.res2, 0);
    return ev.res;
}

static int temporary(void)
{
    char name[] = "/tmp/aioXXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    unlink(name);
    return fd;
}

TEST(setup_errors)
{
    aio_context_t ctx = 0;
    ERR(EFAULT, io_setup(1, NULL));
    ERR(EINVAL, io_setup(0, &ctx));
    ERR(EINVAL, io_setup((unsigned)-1, &ctx));
    ERR(EAGAIN, io_setup(4000000, &ctx));
    ctx = 1;
    ERR(EINVAL, io_setup(1, &ctx));
    ERR(EINVAL, io_destroy(0));
    ERR(EINVAL, io_destroy(0xdead000));
    ERR(EINVAL, io_submit(0xdead000, 0, NULL));
    ERR(EINVAL, io_getevents(0xdead000, 0, 1, NULL, NULL));
    ctx = context(4);
    EQ(io_submit(ctx, 0, NULL), 0);
    ERR(EINVAL, io_submit(ctx, -1, NULL));
    ERR(EFAULT, io_submit(ctx, 1, NULL));
    ERR(EINVAL, io_getevents(ctx, 2, 1, NULL, NULL));
    ERR(EINVAL, io_getevents(ctx, -1, 1, NULL, NULL));
    EQ(io_getevents(ctx, 0, 1, NULL, NULL), 0);
    EQ(io_destroy(ctx), 0);
    ERR(EINVAL, io_destroy(ctx));
}

static long sysctl(const char *name)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof(path), "/proc/sys/fs/%s", name);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    CHECK(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    return atol(text);
}

TEST(sysctls)
{
    long before = sysctl("aio-nr");
    CHECK(sysctl("aio-max-nr") >= 65536);
    aio_context_t ctx = context(100);
    CHECK(sysctl("aio-nr") >= before + 100);
    EQ(io_destroy(ctx), 0);
}

TEST(file_io)
{
    aio_context_t ctx = context(8);
    int fd = temporary();
    char out[] = "0123456789", in[16] = "";
    struct iocb cb = request(IOCB_CMD_PWRITE, fd, out, 10, 5);
    EQ(result(ctx, &cb), 10);
    EQ(cb.aio_key, 0);
    cb = request(IOCB_CMD_PREAD, fd, in, sizeof(in), 7);
    EQ(result(ctx, &cb), 8);
    CHECK(!memcmp(in, "23456789", 8));
    EQ(lseek(fd, 0, SEEK_CUR), 0);
    struct iovec iov[2] = {{out, 3}, {out + 5, 2}}, iov_in[2] = {{in, 2}, {in + 8, 3}};
    cb = request(IOCB_CMD_PWRITEV, fd, iov, 2, 0);
    EQ(result(ctx, &cb), 5);
    cb = request(IOCB_CMD_PREADV, fd, iov_in, 2, 0);
    EQ(result(ctx, &cb), 5);
    CHECK(!memcmp(in, "01", 2) && !memcmp(in + 8, "256", 3));
    cb = request(IOCB_CMD_FSYNC, fd, NULL, 0, 0);
    EQ(result(ctx, &cb), 0);
    cb = request(IOCB_CMD_FDSYNC, fd, NULL, 0, 0);
    EQ(result(ctx, &cb), 0);
    cb = request(IOCB_CMD_PWRITE, fd, out, 2, 0);
    cb.aio_rw_flags = RWF_APPEND | RWF_DSYNC;
    EQ(result(ctx, &cb), 2);
    EQ(lseek(fd, 0, SEEK_END), 17);
    EQ(io_destroy(ctx), 0);
}

TEST(submit_errors)
{
    aio_context_t ctx = context(8);
    int fd = temporary(), null = open("/dev/null", O_RDONLY), dir = open("/tmp", O_RDONLY), p[2];
    char buf[8];
    EQ(pipe(p), 0);
    struct iocb cb = request(IOCB_CMD_NOOP, fd, NULL, 0, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(4 /* the old precursor of POLL */, fd, NULL, 0, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_PREAD, -1, buf, 1, 0);
    EQ(submit(ctx, &cb), -EBADF);
    cb = request(IOCB_CMD_PWRITE, null, buf, 1, 0);
    EQ(submit(ctx, &cb), -EBADF);
    cb = request(IOCB_CMD_PREAD, dir, buf, 1, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_PREAD, fd, buf, 1, -1);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_PREAD, fd, buf, (size_t)-1, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_PREAD, fd, (void *)(uintptr_t)-4096, 8, 0);
    EQ(submit(ctx, &cb), -EFAULT);
    cb = request(IOCB_CMD_PREAD, fd, buf, 1, 0);
    cb.aio_reserved2 = 1;
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_PREAD, fd, buf, 1, 0);
    cb.aio_rw_flags = 1 << 30;
    EQ(submit(ctx, &cb), -EOPNOTSUPP);
    cb = request(IOCB_CMD_PREAD, fd, buf, 1, 0);
    cb.aio_flags = IOCB_FLAG_IOPRIO;
    cb.aio_reqprio = (short)(7 << 13);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_PREAD, fd, buf, 1, 0);
    cb.aio_flags = IOCB_FLAG_RESFD;
    cb.aio_resfd = (unsigned)fd;
    EQ(submit(ctx, &cb), -EINVAL);
    cb.aio_resfd = (unsigned)-1;
    EQ(submit(ctx, &cb), -EBADF);
    cb = request(IOCB_CMD_FSYNC, fd, buf, 0, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_FSYNC, p[0], NULL, 0, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_POLL, p[0], (void *)(uintptr_t)0x10001, 0, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    cb = request(IOCB_CMD_POLL, p[0], (void *)POLLIN, 1, 0);
    EQ(submit(ctx, &cb), -EINVAL);
    /* Faults of the transfer are its result. */
    EQ(write(fd, "x", 1), 1);
    cb = request(IOCB_CMD_PREAD, fd, (void *)16, 1, 0);
    EQ(result(ctx, &cb), -EFAULT);
    /* What came before a bad request counts. */
    struct iocb good = request(IOCB_CMD_PREAD, fd, buf, 1, 0), *list[3] = {&good, (void *)16, &good};
    EQ(io_submit(ctx, 3, list), 1);
    ERR(EFAULT, io_submit(ctx, 2, list + 1));
}

TEST(pipe_nowait)
{
    aio_context_t ctx = context(1);
    int p[2];
    char buf[4];
    EQ(pipe(p), 0);
    struct iocb cb = request(IOCB_CMD_PREAD, p[0], buf, 4, 0);
    cb.aio_rw_flags = RWF_NOWAIT;
    EQ(result(ctx, &cb), -EAGAIN);
    EQ(write(p[1], "abc", 3), 3);
    EQ(result(ctx, &cb), 3);
}

TEST(polls)
{
    aio_context_t ctx = context(4);
    struct timespec zero = {0, 0}, soon = {0, 20000000};
    struct io_event ev[4];
    int p[2], e = eventfd(0, EFD_NONBLOCK);
    uint64_t count;
    EQ(pipe(p), 0);
    struct iocb in = request(IOCB_CMD_POLL, p[0], (void *)POLLIN, 0, 0);
    in.aio_flags = IOCB_FLAG_RESFD;
    in.aio_resfd = (unsigned)e;
    EQ(submit(ctx, &in), 1);
    EQ(io_getevents(ctx, 1, 4, ev, &zero), 0);
    EQ(io_getevents(ctx, 1, 4, ev, &soon), 0);
    EQ(read(e, &count, 8), -1);
    EQ(write(p[1], "a", 1), 1);
    EQ(io_getevents(ctx, 1, 4, ev, NULL), 1);
    CHECK(ev[0].res & POLLIN); /* Linux may tell what else was there */
    struct pollfd pfd = {.fd = e, .events = POLLIN};
    EQ(poll(&pfd, 1, 5000), 1);
    EQ(read(e, &count, 8), 8);
    EQ(count, 1);
    /* Ready at once; and an end that nobody asked about. */
    EQ(result(ctx, &in), POLLIN);
    struct iocb gone = request(IOCB_CMD_POLL, p[0], (void *)0, 0, 0);
    EQ(submit(ctx, &gone), 1);
    EQ(close(p[1]), 0);
    EQ(io_getevents(ctx, 1, 4, ev, NULL), 1);
    CHECK(ev[0].res & POLLHUP);
    close(p[0]);
    /* A request keeps the file, not the number. */
    EQ(pipe(p), 0);
    in = request(IOCB_CMD_POLL, p[0], (void *)POLLIN, 0, 0);
    EQ(submit(ctx, &in), 1);
    close(p[0]);
    EQ(write(p[1], "a", 1), 1);
    EQ(io_getevents(ctx, 1, 4, ev, NULL), 1);
    EQ(io_destroy(ctx), 0);
}

/* Each poll's end signals the eventfd that the next one polls. */
TEST(poll_chain)
{
    enum { LEN = 100 };
    static struct iocb cbs[LEN];
    struct io_event ev[LEN];
    aio_context_t ctx = context(LEN);
    int e[LEN + 1];
    for (int i = 0; i <= LEN; i++)
        CHECK((e[i] = eventfd(0, 0)) >= 0);
    for (int i = 0; i < LEN; i++) {
        cbs[i] = request(IOCB_CMD_POLL, e[i], (void *)POLLIN, 0, 0);
        cbs[i].aio_flags = IOCB_FLAG_RESFD;
        cbs[i].aio_resfd = (unsigned)e[i + 1];
        EQ(submit(ctx, &cbs[i]), 1);
    }
    uint64_t one = 1;
    EQ(write(e[0], &one, 8), 8);
    EQ(read(e[LEN], &one, 8), 8);
    EQ(io_getevents(ctx, LEN, LEN, ev, NULL), LEN);
}

TEST(cancel)
{
    aio_context_t ctx = context(4);
    struct io_event ev;
    int p[2];
    EQ(pipe(p), 0);
    struct iocb cb = request(IOCB_CMD_POLL, p[0], (void *)POLLIN, 0, 0);
    ERR(EFAULT, syscall(SYS_io_cancel, ctx, NULL, NULL));
    ERR(EINVAL, syscall(SYS_io_cancel, ctx, &cb, &ev));
    EQ(submit(ctx, &cb), 1);
    ERR(EINVAL, syscall(SYS_io_cancel, 0, &cb, &ev));
    ERR(EINPROGRESS, syscall(SYS_io_cancel, ctx, &cb, &ev));
    EQ(io_getevents(ctx, 1, 1, &ev, NULL), 1);
    EQ(ev.res, 0);
    EQ(ev.obj, (uintptr_t)&cb);
    ERR(EINVAL, syscall(SYS_io_cancel, ctx, &cb, &ev));
    /* What goes with its context leaves the pipe alone. */
    EQ(submit(ctx, &cb), 1);
    EQ(io_destroy(ctx), 0);
    EQ(write(p[1], "a", 1), 1);
    EQ(read(p[0], &ev, 1), 1);
}

TEST(capacity)
{
    aio_context_t ctx = context(1);
    static struct iocb cbs[4096];
    struct io_event ev[64];
    int fd = temporary();
    char buf;
    long n = 0, r = 0;
    while (n < 4096) {
        cbs[n] = request(IOCB_CMD_PREAD, fd, &buf, 1, 0);
        r = submit(ctx, &cbs[n]);
        if (r != 1)
            break;
        n++;
    }
    EQ(r, -EAGAIN);
    CHECK(n >= 1);
    EQ(io_getevents(ctx, 1, 1, ev, NULL), 1);
    ERR(EFAULT, io_getevents(ctx, 1, 1, (void *)16, NULL));
    for (long left = n - 1; left > 0;) {
        r = io_getevents(ctx, 1, 64, ev, NULL);
        CHECK(r >= 1);
        left -= r;
    }
    struct timespec zero = {0, 0};
    EQ(io_getevents(ctx, 1, 1, ev, &zero), 0);
}

static aio_context_t shared_ctx;

static void *waiter(void *arg)
{
    struct io_event ev;
    long n = io_getevents(shared_ctx, 1, 1, &ev, NULL);
    return (void *)(n < 0 ? (long)-errno : n);
}

TEST(destroy_ends_waiters)
{
    pthread_t th;
    void *ret;
    shared_ctx = context(1);
    EQ(pthread_create(&th, NULL, waiter, NULL), 0);
    usleep(50000);
    EQ(io_destroy(shared_ctx), 0);
    pthread_join(th, &ret);
    EQ((long)ret, -EINVAL);
}

static volatile int caught;

static void on_alarm(int sig)
{
    caught++;
}

TEST(signals)
{
    aio_context_t ctx = context(1);
    struct io_event ev;
    struct sigaction sa = {.sa_handler = on_alarm};
    struct timespec half = {0, 100000000};
    sigset_t set;
    struct {
        void *set;
        size_t size;
    } arg = {&set, 8};
    EQ(sigaction(SIGALRM, &sa, NULL), 0);
    alarm(1);
    ERR(EINTR, io_getevents(ctx, 1, 1, &ev, NULL));
    EQ(caught, 1);
    sigfillset(&set);
    raise(SIGALRM);
    EQ(caught, 2);
    EQ(syscall(SYS_io_pgetevents, ctx, 1, 1, &ev, &half, &arg), 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGALRM);
    EQ(caught, 2);
    sigemptyset(&set);
    ERR(EINTR, syscall(SYS_io_pgetevents, ctx, 1, 1, &ev, NULL, &arg));
    EQ(caught, 3);
    arg.size = 4;
    ERR(EINVAL, syscall(SYS_io_pgetevents, ctx, 1, 1, &ev, NULL, &arg));
    ERR(EFAULT, syscall(SYS_io_pgetevents, ctx, 1, 1, &ev, NULL, 16L));
}

/* A child has no contexts, and not the page either. */
TEST(fork_has_none)
{
    aio_context_t ctx = context(1);
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(io_destroy(ctx) == -1 && errno == EINVAL ? 0 : 1);
    EQ(waitpid(pid, &status, 0), pid);
    EQ(status, 0);
    EQ(io_destroy(ctx), 0);
}

/* Many contexts with polls under way go with their process. */
TEST(exit_ends_all)
{
    int p[2], status;
    char c;
    EQ(pipe(p), 0);
    for (int round = 0; round < 20; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (int i = 0; i < 20; i++) {
                struct iocb cb = request(IOCB_CMD_POLL, p[0], (void *)POLLIN, 0, 0);
                EQ(submit(context(10), &cb), 1);
            }
            _exit(0);
        }
        EQ(waitpid(pid, &status, 0), pid);
        EQ(status, 0);
    }
    EQ(write(p[1], "a", 1), 1);
    EQ(read(p[0], &c, 1), 1);
}
