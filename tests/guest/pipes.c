/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes and fifos. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

TEST(moves_bytes)
{
    char buf[16];
    int fds[2];

    OK(pipe(fds));
    EQ(write(fds[1], "hello", 5), 5);
    EQ(read(fds[0], buf, 3), 3);
    EQ(read(fds[0], buf + 3, 10), 2);
    CHECK(!memcmp(buf, "hello", 5));
    EQ(read(fds[0], buf, 0), 0);
    OK(close(fds[1]));
    EQ(read(fds[0], buf, 10), 0);
}

TEST(flags)
{
    int fds[2];
    char c;

    OK(pipe2(fds, O_CLOEXEC | O_NONBLOCK));
    EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    EQ(fcntl(fds[0], F_GETFL), O_RDONLY | O_NONBLOCK);
    EQ(fcntl(fds[1], F_GETFL), O_WRONLY | O_NONBLOCK);
    ERR(EAGAIN, read(fds[0], &c, 1));
    ERR(EBADF, write(fds[0], &c, 1));
    ERR(EBADF, read(fds[1], &c, 1));
    ERR(EINVAL, pipe2(fds, O_APPEND | 0x40000000));
    ERR(ESPIPE, lseek(fds[0], 0, SEEK_SET));
    ERR(ESPIPE, pread(fds[0], &c, 1, 0));
    ERR(EFAULT, pipe((int *)8));
}

TEST(capacity)
{
    static char big[1 << 20];
    int fds[2], n;

    OK(pipe2(fds, O_NONBLOCK));
    EQ(fcntl(fds[1], F_GETPIPE_SZ), 65536);
    EQ(write(fds[1], big, sizeof(big)), 65536);
    ERR(EAGAIN, write(fds[1], big, 1));
    OK(ioctl(fds[0], FIONREAD, &n));
    EQ(n, 65536);
    EQ(read(fds[0], big, 4096), 4096);
    EQ(write(fds[1], big, 8192), 4096);
    ERR(EBUSY, fcntl(fds[1], F_SETPIPE_SZ, 4096));
    EQ(fcntl(fds[1], F_SETPIPE_SZ, 100000), 131072);
    EQ(write(fds[1], big, sizeof(big)), 65536);
}

TEST(epipe)
{
    int fds[2];

    OK(pipe(fds));
    OK(close(fds[0]));
    KILLED(IN_CHILD(write(fds[1], "x", 1)), SIGPIPE);
    signal(SIGPIPE, SIG_IGN);
    ERR(EPIPE, write(fds[1], "x", 1));
}

TEST(atomic_writes)
{
    char buf[4096];
    int fds[2], status;
    size_t have = 0;
    ssize_t n;

    OK(pipe(fds));
    for (int w = 0; w < 4; w++) {
        if (!OK(fork())) {
            char block[512];
            memset(block, 'a' + w, sizeof(block));
            for (int i = 0; i < 200; i++)
                CHECK(write(fds[1], block, sizeof(block)) == sizeof(block));
            _exit(0);
        }
    }
    OK(close(fds[1]));
    while ((n = OK(read(fds[0], buf + have, sizeof(buf) - have))) > 0) {
        have += (size_t)n;
        size_t whole = have / 512 * 512;
        for (size_t i = 0; i < whole; i++)
            EQ(buf[i], buf[i / 512 * 512]);
        memmove(buf, buf + whole, have - whole);
        have -= whole;
    }
    EQ(have, 0);
    while (wait(&status) > 0)
        EXITED(status, 0);
}

TEST(big_blocking_write)
{
    static char big[300000];
    size_t total = 0;
    int fds[2];
    ssize_t n;

    OK(pipe(fds));
    if (!OK(fork())) {
        CHECK(write(fds[1], big, sizeof(big)) == sizeof(big));
        _exit(0);
    }
    OK(close(fds[1]));
    while ((n = OK(read(fds[0], big, 7000))) > 0)
        total += (size_t)n;
    EQ(total, sizeof(big));
}

TEST(vectors)
{
    char a[3], b[10];
    struct iovec iov[3] = {{(void *)"one", 3}, {NULL, 0}, {(void *)"two2", 4}}, in[2] = {{a, 3}, {b, 10}};
    int fds[2];

    OK(pipe(fds));
    EQ(writev(fds[1], iov, 3), 7);
    EQ(readv(fds[0], in, 2), 7);
    CHECK(!memcmp(a, "one", 3) && !memcmp(b, "two2", 4));
    ERR(EINVAL, writev(fds[1], iov, 1025));
    iov[0].iov_len = (size_t)-1;
    ERR(EINVAL, writev(fds[1], iov, 3));
}

TEST(hangup_is_seen)
{
    struct pollfd p = {.events = POLLIN | POLLOUT};
    int fds[2];

    OK(pipe(fds));
    p.fd = fds[1];
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLOUT);
    OK(close(fds[0]));
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLOUT | POLLERR);
    OK(pipe(fds));
    p.fd = fds[0];
    EQ(poll(&p, 1, 0), 0);
    OK(close(fds[1]));
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLHUP);
}

TEST(fifos)
{
    int r, w, status;
    char c;

    guest_tmpdir();
    OK(mkfifo("f", 0600));
    ERR(EEXIST, mkfifo("f", 0600));
    ERR(ENXIO, open("f", O_WRONLY | O_NONBLOCK));
    r = OK(open("f", O_RDONLY | O_NONBLOCK));
    EQ(read(r, &c, 1), 0);
    w = OK(open("f", O_WRONLY));
    ERR(EAGAIN, read(r, &c, 1));
    EQ(write(w, "x", 1), 1);
    EQ(read(r, &c, 1), 1);
    OK(close(r));
    OK(close(w));
    pid_t child = OK(fork());
    if (!child) {
        sleep_ms(50);
        w = open("f", O_WRONLY);
        _exit(write(w, "yz", 2) == 2 ? 0 : 1);
    }
    r = OK(open("f", O_RDONLY));
    char two[2];
    EQ(read(r, two, 2), 2);
    EQ(read(r, two, 2), 0);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    r = OK(open("f", O_RDWR));
    EQ(write(r, "q", 1), 1);
    EQ(read(r, &c, 1), 1);
    OK(unlink("f"));
}

TEST(splice_and_tee)
{
    char buf[64];
    int a[2], b[2], fd;
    loff_t off = 2;

    guest_tmpdir();
    guest_write_file("f", "0123456789");
    fd = OK(open("f", O_RDWR));
    OK(pipe(a));
    OK(pipe(b));
    EQ(splice(fd, &off, a[1], NULL, 5, 0), 5);
    EQ(off, 7);
    EQ(tee(a[0], b[1], 3, 0), 3);
    EQ(read(b[0], buf, 10), 3);
    CHECK(!memcmp(buf, "234", 3));
    EQ(splice(a[0], NULL, b[1], NULL, 10, 0), 5);
    off = 8;
    EQ(splice(b[0], NULL, fd, &off, 10, 0), 5);
    EQ(pread(fd, buf, 20, 0), 13);
    CHECK(!memcmp(buf, "0123456723456", 13));
    ERR(EINVAL, splice(fd, NULL, fd, NULL, 1, 0));
    ERR(ESPIPE, splice(a[0], &off, fd, NULL, 1, 0));
    struct iovec iov = {buf, 4};
    EQ(vmsplice(a[1], &iov, 1, 0), 4);
    EQ(read(a[0], buf + 10, 10), 4);
}

TEST(interrupted_by_close_of_last_writer)
{
    int fds[2];
    char c;

    OK(pipe(fds));
    if (!OK(fork())) {
        close(fds[0]);
        sleep_ms(50);
        _exit(0);
    }
    close(fds[1]);
    EQ(read(fds[0], &c, 1), 0);
}

TEST(chain)
{
    /* A hundred processes in a row, each adding one. */
    int first[2], in, fds[2];
    int v = 0;

    OK(pipe(first));
    in = first[0];
    for (int i = 0; i < 100; i++) {
        OK(pipe(fds));
        if (!OK(fork())) {
            CHECK(read(in, &v, sizeof(v)) == sizeof(v));
            v++;
            CHECK(write(fds[1], &v, sizeof(v)) == sizeof(v));
            _exit(0);
        }
        close(in);
        close(fds[1]);
        in = fds[0];
    }
    EQ(write(first[1], &v, sizeof(v)), sizeof(v));
    EQ(read(in, &v, sizeof(v)), sizeof(v));
    EQ(v, 100);
    while (wait(NULL) > 0)
        ;
}
