/* SPDX-License-Identifier: Apache-2.0 */
/* poll, select, epoll, eventfd. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>

static volatile int hits;

static void on_signal(int sig)
{
    hits++;
}

TEST(poll_basics)
{
    struct pollfd p[3];
    int fds[2];
    uint64_t begin;

    OK(pipe(fds));
    p[0] = (struct pollfd){fds[0], POLLIN, 0x77};
    p[1] = (struct pollfd){fds[1], POLLOUT, 0};
    p[2] = (struct pollfd){-5, POLLIN, 0x77};
    EQ(poll(p, 3, 1000), 1);
    EQ(p[0].revents, 0);
    EQ(p[1].revents, POLLOUT);
    EQ(p[2].revents, 0);
    p[1].fd = 999;
    EQ(poll(p, 2, -1), 1);
    EQ(p[1].revents, POLLNVAL);
    begin = now_ms();
    EQ(poll(p, 1, 60), 0);
    CHECK(now_ms() - begin >= 59);
    EQ(poll(NULL, 0, 10), 0);
    ERR(EFAULT, poll((struct pollfd *)8, 1, 0));
    ERR(EINVAL, poll(p, 1u << 30, 0));
    if (!OK(fork())) {
        sleep_ms(30);
        _exit(write(fds[1], "x", 1) == 1 ? 0 : 1);
    }
    EQ(poll(p, 1, -1), 1);
    EQ(p[0].revents, POLLIN);
    wait(NULL);
}

TEST(poll_and_signals)
{
    struct timespec ts = {1, 0};
    sigset_t block, none;
    int fds[2];
    struct pollfd p;

    OK(pipe(fds));
    p = (struct pollfd){fds[0], POLLIN, 0};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    OK(sigaction(SIGUSR1, &sa, NULL));
    sigemptyset(&block);
    sigemptyset(&none);
    sigaddset(&block, SIGUSR1);
    OK(sigprocmask(SIG_BLOCK, &block, NULL));
    raise(SIGUSR1);
    EQ(poll(&p, 1, 20), 0);
    EQ(hits, 0);
    ERR(EINTR, ppoll(&p, 1, &ts, &none));
    EQ(hits, 1);
    sigprocmask(SIG_SETMASK, NULL, &none);
    CHECK(sigismember(&none, SIGUSR1));
    ERR(EINVAL, syscall(SYS_ppoll, &p, 1, &ts, &none, 5));
}

TEST(select_basics)
{
    fd_set r, w, e;
    struct timeval tv = {0, 50000};
    int fds[2], high;

    OK(pipe(fds));
    high = OK(dup2(fds[1], 600));
    FD_ZERO(&r);
    FD_ZERO(&w);
    FD_ZERO(&e);
    FD_SET(fds[0], &r);
    FD_SET(high, &w);
    FD_SET(fds[0], &e);
    EQ(select(high + 1, &r, &w, &e, &tv), 1);
    CHECK(!FD_ISSET(fds[0], &r) && FD_ISSET(high, &w) && !FD_ISSET(fds[0], &e));
    FD_SET(fds[0], &r);
    EQ(select(fds[0] + 1, &r, NULL, NULL, &tv), 0);
    EQ(tv.tv_sec, 0);
    EQ(tv.tv_usec, 0);
    CHECK(!FD_ISSET(fds[0], &r));
    FD_ZERO(&r);
    FD_SET(100, &r);
    ERR(EBADF, select(101, &r, NULL, NULL, &tv));
    ERR(EINVAL, select(-1, NULL, NULL, NULL, &tv));
    tv.tv_sec = -1;
    ERR(EINVAL, select(0, NULL, NULL, NULL, &tv));
    EQ(write(fds[1], "x", 1), 1);
    FD_SET(fds[0], &r);
    FD_CLR(100, &r);
    EQ(pselect(fds[0] + 1, &r, NULL, NULL, NULL, NULL), 1);
}

static struct epoll_event event(uint32_t events, uint64_t data)
{
    return (struct epoll_event){.events = events, .data.u64 = data};
}

TEST(epoll_level_edge_oneshot)
{
    struct epoll_event e, out[4];
    int ep = OK(epoll_create1(EPOLL_CLOEXEC)), fds[2];
    char c;

    OK(pipe(fds));
    e = event(EPOLLIN, 0x1122334455667788);
    OK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e));
    ERR(EEXIST, epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e));
    EQ(epoll_wait(ep, out, 4, 0), 0);
    EQ(write(fds[1], "ab", 2), 2);
    EQ(epoll_wait(ep, out, 4, 1000), 1);
    EQ(out[0].events, EPOLLIN);
    EQ(out[0].data.u64, 0x1122334455667788);
    EQ(epoll_wait(ep, out, 4, 0), 1);
    e = event(EPOLLIN | EPOLLET, 2);
    OK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e));
    EQ(epoll_wait(ep, out, 4, 0), 1);
    EQ(epoll_wait(ep, out, 4, 0), 0);
    EQ(write(fds[1], "c", 1), 1);
    EQ(epoll_wait(ep, out, 4, 0), 1);
    e = event(EPOLLIN | EPOLLONESHOT, 3);
    OK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e));
    EQ(epoll_wait(ep, out, 4, 0), 1);
    EQ(epoll_wait(ep, out, 4, 0), 0);
    OK(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e));
    EQ(epoll_wait(ep, out, 4, 0), 1);
    OK(epoll_ctl(ep, EPOLL_CTL_DEL, fds[0], NULL));
    ERR(ENOENT, epoll_ctl(ep, EPOLL_CTL_DEL, fds[0], NULL));
    ERR(ENOENT, epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e));
    EQ(read(fds[0], &c, 1), 1);
}

TEST(epoll_errors)
{
    struct epoll_event e = event(EPOLLIN, 0), out[1];
    int ep = OK(epoll_create(1)), file;

    ERR(EINVAL, epoll_create(0));
    ERR(EINVAL, epoll_create1(7));
    ERR(EINVAL, epoll_ctl(ep, EPOLL_CTL_ADD, ep, &e));
    ERR(EBADF, epoll_ctl(ep, EPOLL_CTL_ADD, 999, &e));
    ERR(EBADF, epoll_ctl(999, EPOLL_CTL_ADD, 0, &e));
    ERR(EINVAL, epoll_ctl(0, EPOLL_CTL_ADD, ep, &e));
    ERR(EINVAL, epoll_wait(ep, out, 0, 0));
    ERR(EINVAL, epoll_wait(0, out, 1, 0));
    ERR(EFAULT, syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, 0, 8));
    guest_tmpdir();
    file = OK(open("f", O_RDWR | O_CREAT, 0600));
    ERR(EPERM, epoll_ctl(ep, EPOLL_CTL_ADD, file, &e));
}

TEST(epoll_nested_and_loops)
{
    struct epoll_event e = event(EPOLLIN, 1), out[2];
    int a = OK(epoll_create1(0)), b = OK(epoll_create1(0)), fds[2];
    struct pollfd p = {a, POLLIN, 0};

    OK(pipe(fds));
    OK(epoll_ctl(a, EPOLL_CTL_ADD, b, &e));
    ERR(ELOOP, epoll_ctl(b, EPOLL_CTL_ADD, a, &e));
    OK(epoll_ctl(b, EPOLL_CTL_ADD, fds[0], &e));
    EQ(poll(&p, 1, 0), 0);
    EQ(write(fds[1], "x", 1), 1);
    EQ(poll(&p, 1, 1000), 1);
    EQ(epoll_wait(a, out, 2, 0), 1);
    EQ(epoll_wait(b, out, 2, 0), 1);
}

TEST(epoll_forgets_closed_files)
{
    struct epoll_event e = event(EPOLLIN, 1), out[2];
    int ep = OK(epoll_create1(0)), fds[2], copy;

    OK(pipe(fds));
    OK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e));
    copy = OK(dup(fds[0]));
    OK(close(fds[0]));
    EQ(write(fds[1], "x", 1), 1);
    EQ(epoll_wait(ep, out, 2, 0), 1); /* the copy keeps it open */
    OK(close(copy));
    EQ(epoll_wait(ep, out, 2, 0), 0);
}

TEST(epoll_wakes_across_processes)
{
    struct epoll_event e = event(EPOLLIN | EPOLLET, 1), out[2];
    int ep = OK(epoll_create1(0)), fd = OK(eventfd(0, 0));
    uint64_t one = 1;

    OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    if (!OK(fork())) {
        for (int i = 0; i < 5; i++) {
            sleep_ms(10);
            CHECK(write(fd, &one, 8) == 8);
        }
        _exit(0);
    }
    EQ(epoll_wait(ep, out, 2, 5000), 1);
    struct timespec ts = {5, 0};
    EQ(syscall(441, ep, out, 2, &ts, NULL, 8), 1);
    wait(NULL);
}

TEST(epoll_many)
{
    struct rlimit lim = {4096, 0};
    struct epoll_event e, out[64];
    int ep = OK(epoll_create1(0)), *fds = calloc(2000, sizeof(int)), total = 0, n;
    uint64_t one = 1;

    getrlimit(RLIMIT_NOFILE, &lim);
    lim.rlim_cur = 4096 < lim.rlim_max ? 4096 : lim.rlim_max;
    OK(setrlimit(RLIMIT_NOFILE, &lim));
    for (int i = 0; i < 2000; i++) {
        fds[i] = OK(eventfd(0, EFD_NONBLOCK));
        e = event(EPOLLIN | EPOLLET, (uint64_t)i);
        OK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e));
    }
    for (int i = 0; i < 2000; i += 2)
        EQ(write(fds[i], &one, 8), 8);
    while ((n = OK(epoll_wait(ep, out, 64, 0))) > 0) {
        for (int i = 0; i < n; i++)
            EQ(out[i].data.u64 % 2, 0);
        total += n;
    }
    EQ(total, 1000);
}

TEST(eventfd_counts)
{
    int fd = OK(eventfd(3, EFD_NONBLOCK)), sem = OK(eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK));
    uint64_t v = 4;
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};

    EQ(write(fd, &v, 8), 8);
    EQ(read(fd, &v, 8), 8);
    EQ(v, 7);
    ERR(EAGAIN, read(fd, &v, 8));
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLOUT);
    v = UINT64_MAX;
    ERR(EINVAL, write(fd, &v, 8));
    v = UINT64_MAX - 1;
    EQ(write(fd, &v, 8), 8);
    v = 1;
    ERR(EAGAIN, write(fd, &v, 8));
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLIN);
    ERR(EINVAL, read(fd, &v, 4));
    EQ(read(sem, &v, 8), 8);
    EQ(v, 1);
    EQ(read(sem, &v, 8), 8);
    ERR(EAGAIN, read(sem, &v, 8));
    ERR(EINVAL, eventfd(0, 0x1234));
}

TEST(exclusive_wakes_one)
{
    struct epoll_event e = event(EPOLLIN | EPOLLEXCLUSIVE, 1), out[1];
    int fd = OK(eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE)), status, woken = 0;
    uint64_t one = 1;

    for (int i = 0; i < 4; i++) {
        if (!OK(fork())) {
            int ep = OK(epoll_create1(0));
            OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
            ERR(EINVAL, epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e));
            _exit(epoll_wait(ep, out, 1, 300) == 1 && read(fd, &one, 8) == 8 ? 1 : 0);
        }
    }
    sleep_ms(100);
    EQ(write(fd, &one, 8), 8);
    while (wait(&status) > 0)
        woken += WEXITSTATUS(status);
    EQ(woken, 1);
}
