/* SPDX-License-Identifier: Apache-2.0 */
/* inotify, signalfd, timerfd and memfd. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#define F_SEAL_WRITE 8
#endif

static char dir[] = "/tmp/watchXXXXXX";
static char events[65536];
static ssize_t events_len, events_at;
static uint32_t cookie; /* of the event that was expected last */

static void expect(int fd, uint32_t mask, const char *name)
{
    if (events_at == events_len) {
        events_len = OK(read(fd, events, sizeof(events)));
        events_at = 0;
    }
    struct inotify_event *e = (struct inotify_event *)(events + events_at);
    events_at += (ssize_t)sizeof(*e) + e->len;
    cookie = e->cookie;
    if (e->mask != mask || strcmp(e->len ? e->name : "", name))
        FAIL("event %x %s instead of %x %s", e->mask, e->len ? e->name : "", mask, name);
}

static void expect_none(int fd)
{
    EQ(events_at, events_len);
    ERR(EAGAIN, read(fd, events, sizeof(events)));
}

static const char *in_dir(const char *name)
{
    static char paths[4][64];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", dir, name);
    return p;
}

TEST(inotify_directory)
{
    int fd = OK(inotify_init1(IN_NONBLOCK));
    CHECK(mkdtemp(dir));
    int wd = OK(inotify_add_watch(fd, dir, IN_ALL_EVENTS));
    EQ(inotify_add_watch(fd, dir, IN_ALL_EVENTS), wd);
    ERR(EEXIST, inotify_add_watch(fd, dir, IN_ALL_EVENTS | IN_MASK_CREATE));
    ERR(ENOTDIR, inotify_add_watch(fd, "/proc/self/exe", IN_OPEN | IN_ONLYDIR));
    int f = OK(open(in_dir("a"), O_CREAT | O_RDWR, 0600));
    OK(write(f, "x", 1));
    OK(pread(f, events, 1, 0));
    OK(fchmod(f, 0640));
    OK(close(f));
    OK(rename(in_dir("a"), in_dir("b")));
    OK(mkdir(in_dir("d"), 0700));
    OK(rmdir(in_dir("d")));
    OK(unlink(in_dir("b")));
    expect(fd, IN_CREATE, "a");
    expect(fd, IN_OPEN, "a");
    expect(fd, IN_MODIFY, "a");
    expect(fd, IN_ACCESS, "a");
    expect(fd, IN_ATTRIB, "a");
    expect(fd, IN_CLOSE_WRITE, "a");
    expect(fd, IN_MOVED_FROM, "a");
    expect(fd, IN_MOVED_TO, "b");
    expect(fd, IN_CREATE | IN_ISDIR, "d");
    expect(fd, IN_DELETE | IN_ISDIR, "d");
    expect(fd, IN_DELETE, "b");
    expect_none(fd);
    OK(inotify_rm_watch(fd, wd));
    expect(fd, IN_IGNORED, "");
    ERR(EINVAL, inotify_rm_watch(fd, wd));
    OK(rmdir(dir));
}

TEST(inotify_end_of_a_file)
{
    int fd = OK(inotify_init1(IN_NONBLOCK));
    CHECK(mkdtemp(dir));
    int f = OK(open(in_dir("f"), O_CREAT | O_RDWR, 0600));
    OK(inotify_add_watch(fd, in_dir("f"), IN_ALL_EVENTS));
    OK(link(in_dir("f"), in_dir("g")));
    expect(fd, IN_ATTRIB, "");
    OK(unlink(in_dir("g")));
    expect(fd, IN_ATTRIB, "");
    OK(unlink(in_dir("f")));
    expect(fd, IN_ATTRIB, "");
    expect_none(fd);
    OK(close(f)); /* its last user */
    expect(fd, IN_CLOSE_WRITE, "");
    expect(fd, IN_DELETE_SELF, "");
    expect(fd, IN_IGNORED, "");
    OK(rmdir(dir));
}

TEST(inotify_renames)
{
    int fd = OK(inotify_init1(IN_NONBLOCK));
    CHECK(mkdtemp(dir));
    close(OK(open(in_dir("a"), O_CREAT | O_RDWR, 0600)));
    close(OK(open(in_dir("b"), O_CREAT | O_RDWR, 0600)));
    OK(mkdir(in_dir("d"), 0700));
    OK(inotify_add_watch(fd, in_dir("a"), IN_ALL_EVENTS));
    OK(inotify_add_watch(fd, in_dir("b"), IN_ALL_EVENTS));
    OK(inotify_add_watch(fd, dir, IN_ALL_EVENTS & ~(IN_OPEN | IN_CLOSE)));
    /* Both ways of an exchange are told. */
    OK(syscall(SYS_renameat2, AT_FDCWD, in_dir("a"), AT_FDCWD, in_dir("d"), 2));
    expect(fd, IN_MOVED_FROM, "a");
    uint32_t first = cookie;
    expect(fd, IN_MOVED_TO, "d");
    EQ(cookie, first);
    expect(fd, IN_MOVE_SELF, "");
    EQ(cookie, 0);
    expect(fd, IN_MOVED_FROM | IN_ISDIR, "d");
    CHECK(cookie != first);
    expect(fd, IN_MOVED_TO | IN_ISDIR, "a");
    /* What is replaced loses a link, and its last one. */
    OK(rename(in_dir("d"), in_dir("b")));
    expect(fd, IN_MOVED_FROM, "d");
    expect(fd, IN_MOVED_TO, "b");
    expect(fd, IN_ATTRIB, "");
    expect(fd, IN_MOVE_SELF, "");
    expect(fd, IN_DELETE_SELF, "");
    expect(fd, IN_IGNORED, "");
    OK(unlink(in_dir("b")));
    expect(fd, IN_ATTRIB, "");
    expect(fd, IN_DELETE_SELF, "");
    expect(fd, IN_IGNORED, "");
    expect(fd, IN_DELETE, "b");
    expect_none(fd);
    OK(rmdir(in_dir("a")));
    expect(fd, IN_DELETE | IN_ISDIR, "a");
    OK(rmdir(dir));
    expect(fd, IN_DELETE_SELF, "");
    expect(fd, IN_IGNORED, "");
}

TEST(inotify_queue)
{
    int fd = OK(inotify_init1(IN_NONBLOCK)), n;
    CHECK(mkdtemp(dir));
    OK(inotify_add_watch(fd, dir, IN_CREATE | IN_DELETE));
    for (int i = 0; i < 3; i++) { /* equal neighbours are one event, others are not */
        OK(close(OK(open(in_dir("q"), O_CREAT | O_RDWR, 0600))));
        OK(unlink(in_dir("q")));
    }
    struct pollfd p = {fd, POLLIN, 0};
    EQ(poll(&p, 1, 0), 1);
    ERR(EINVAL, read(fd, events, 20)); /* too small for one */
    n = 0;
    for (int i = 0; i < 3; i++) {
        expect(fd, IN_CREATE, "q");
        expect(fd, IN_DELETE, "q");
    }
    expect_none(fd);
    EQ(poll(&p, 1, n), 0);
    OK(rmdir(dir));
}

TEST(signalfd_takes_signals)
{
    struct signalfd_siginfo s;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN);
    OK(sigprocmask(SIG_BLOCK, &set, NULL));
    int fd = OK(signalfd(-1, &set, SFD_NONBLOCK)), ep = OK(epoll_create1(0));
    struct epoll_event ev = {.events = EPOLLIN};
    OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
    EQ(epoll_wait(ep, &ev, 1, 0), 0);
    ERR(EAGAIN, read(fd, &s, sizeof(s)));
    ERR(EINVAL, read(fd, &s, sizeof(s) - 1));
    OK(kill(getpid(), SIGUSR1));
    EQ(epoll_wait(ep, &ev, 1, 0), 1);
    OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 42}));
    EQ(read(fd, &s, sizeof(s)), sizeof(s));
    EQ(s.ssi_signo, SIGUSR1);
    EQ(s.ssi_pid, getpid());
    EQ(read(fd, &s, sizeof(s)), sizeof(s));
    EQ(s.ssi_signo, SIGRTMIN);
    EQ(s.ssi_int, 42);
    EQ(s.ssi_code, SI_QUEUE);
    EQ(epoll_wait(ep, &ev, 1, 0), 0);
    if (!OK(fork())) {
        sleep_ms(30);
        OK(kill(getppid(), SIGUSR1));
        _exit(0);
    }
    EQ(epoll_wait(ep, &ev, 1, 5000), 1);
    EQ(read(fd, &s, sizeof(s)), sizeof(s));
    wait(NULL);
}

TEST(timerfd_counts)
{
    struct itimerspec it = {{0, 20000000}, {0, 10000000}}, got;
    uint64_t n, begin = now_ms();
    int fd = OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    ERR(EAGAIN, read(fd, &n, 8));
    OK(timerfd_settime(fd, 0, &it, NULL));
    struct pollfd p = {fd, POLLIN, 0};
    EQ(poll(&p, 1, 5000), 1);
    CHECK(now_ms() - begin >= 9);
    sleep_ms(100);
    EQ(read(fd, &n, 8), 8);
    CHECK(n >= 5 && n <= 1000);
    OK(timerfd_gettime(fd, &got));
    EQ(got.it_interval.tv_nsec, 20000000);
    memset(&it, 0, sizeof(it));
    OK(timerfd_settime(fd, 0, &it, &got));
    ERR(EAGAIN, read(fd, &n, 8));
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    it.it_value = (struct timespec){now.tv_sec - 5, 0};
    int rt = OK(timerfd_create(CLOCK_REALTIME, 0));
    OK(timerfd_settime(rt, TFD_TIMER_ABSTIME, &it, NULL)); /* past: fires at once */
    EQ(read(rt, &n, 8), 8);
    EQ(n, 1);
    ERR(EINVAL, timerfd_create(99, 0));
    ERR(EINVAL, timerfd_settime(0, 0, &it, NULL));
}

TEST(memfd_seals)
{
    char link[64], path[64];
    int fd = OK((int)syscall(SYS_memfd_create, "guest", 2 /* MFD_ALLOW_SEALING */));
    OK(ftruncate(fd, 8192));
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    strcpy(p + 5000, "mapped");
    EQ(pread(fd, link, 7, 5000), 7);
    CHECK(!strcmp(link, "mapped"));
    ERR(EBUSY, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    ERR(EPERM, ftruncate(fd, 100));
    OK(munmap(p, 8192));
    OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    EQ(fcntl(fd, F_GET_SEALS), F_SEAL_WRITE | F_SEAL_SHRINK);
    ERR(EPERM, write(fd, "x", 1));
    EQ((long)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), -1);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = OK(readlink(path, link, sizeof(link)));
    CHECK(n == 22 && !memcmp(link, "/memfd:guest (deleted)", 22));
    ERR(EINVAL, (int)syscall(SYS_memfd_create, "guest", 0x1000));
}
