/* SPDX-License-Identifier: Apache-2.0 */
/* Time namespaces, by a caller who may make them and set their clocks. */
#include "tests/guest/guest.h"

#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { OFFSET = 100000, SLACK = 5 };

static long ns_ino(const char *name)
{
    char path[64], text[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
    n = OK(readlink(path, text, sizeof(text) - 1));
    text[n] = 0;
    return atol(strchr(text, '[') + 1);
}

static long put_offsets(const char *text)
{
    int fd = OK(open("/proc/self/timens_offsets", O_WRONLY));
    long n = write(fd, text, strlen(text));
    int e = errno;

    close(fd);
    errno = e;
    return n;
}

static void offsets_are(const char *text)
{
    char *now = guest_read_file("/proc/self/timens_offsets");

    if (strcmp(now, text))
        FAIL("offsets are %s", now);
}

static long seconds(int clockid, bool call)
{
    struct timespec ts;

    if (call)
        OK(syscall(SYS_clock_gettime, clockid, &ts));
    else
        OK(clock_gettime(clockid, &ts));
    return ts.tv_sec;
}

#define near(value, expected)                                                                      \
    do {                                                                                           \
        long near_a_ = (value), near_b_ = (expected);                                              \
        if (near_a_ < near_b_ || near_a_ > near_b_ + SLACK)                                        \
            FAIL("%s is %ld, not near %ld", #value, near_a_, near_b_);                             \
    } while (0)

static const int clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME};

/* All clocks, by the call and without, show what they did at now, shifted. */
static void check_clocks(const long now[5], long monotonic, long boottime)
{
    for (unsigned i = 0; i < 5; i++) {
        long shift = i < 3 ? monotonic : i == 3 ? boottime : 0;

        near(seconds(clocks[i], false), now[i] + shift);
        near(seconds(clocks[i], true), now[i] + shift);
    }
}

static void read_clocks(long now[5])
{
    for (unsigned i = 0; i < 5; i++)
        now[i] = seconds(clocks[i], true);
}

static void new_time(const char *offsets)
{
    OK(unshare(CLONE_NEWTIME));
    EQ(put_offsets(offsets), strlen(offsets));
}

TEST(clocks_of_children)
{
    long now[5];

    read_clocks(now);
    EQ(ns_ino("time"), ns_ino("time_for_children"));
    new_time("monotonic 100000 0\nboottime 200000 500000000\n");
    CHECK(ns_ino("time") != ns_ino("time_for_children"));
    check_clocks(now, 0, 0);
    EXITED(IN_CHILD({
               EQ(ns_ino("time"), ns_ino("time_for_children"));
               check_clocks(now, OFFSET, 2 * OFFSET);
               EXITED(IN_CHILD(check_clocks(now, OFFSET, 2 * OFFSET)), 0);
           }),
           0);
    check_clocks(now, 0, 0);
}

TEST(offsets_in_proc)
{
    OK(unshare(CLONE_NEWTIME));
    offsets_are("monotonic           0         0\nboottime            0         0\n");
    EQ(put_offsets("1 7 5\n"), 6);
    EQ(put_offsets("boottime -10 999999999"), 22);
    offsets_are("monotonic           7         5\nboottime          -10 999999999\n");
    ERR(EINVAL, put_offsets("garbage"));
    ERR(EINVAL, put_offsets("1 10"));
    ERR(EINVAL, put_offsets("1 10 -10"));
    ERR(EINVAL, put_offsets("1 10 1000000000"));
    ERR(EINVAL, put_offsets("0 10 0"));
    ERR(EINVAL, put_offsets("1 10 0\na"));
    ERR(ERANGE, put_offsets("1 9223372036 0"));
    ERR(ERANGE, put_offsets("1 -9223372036 0"));
    ERR(ERANGE, put_offsets("1 9223372037 0"));
    ERR(ERANGE, put_offsets("1 11 0\n7 -9223372036 0"));
    offsets_are("monotonic           7         5\nboottime          -10 999999999\n");
    /* A third line would be another write's. */
    EQ(put_offsets("1 1 0\n1 2 0\n1 3 0\n"), 12);
    /* The children's namespace begins with the offsets of the one before. */
    OK(unshare(CLONE_NEWTIME));
    offsets_are("monotonic           2         0\nboottime          -10 999999999\n");
}

TEST(offsets_stay_once_somebody_is_inside)
{
    ERR(EACCES, put_offsets("1 10 0"));
    new_time("1 10 0");
    EXITED(IN_CHILD({}), 0);
    ERR(EACCES, put_offsets("1 11 0"));
    ERR(ERANGE, put_offsets("1 9223372036 0"));
}

TEST(rights)
{
    EXITED(IN_CHILD({
               OK(setresuid(1000, 1000, 1000));
               ERR(EPERM, unshare(CLONE_NEWTIME));
           }),
           0);
    EXITED(IN_CHILD({
               OK(unshare(CLONE_NEWTIME));
               int fd = OK(open("/proc/self/timens_offsets", O_WRONLY));
               OK(setresuid(1000, 1000, 1000));
               OK(write(fd, "1 1 0", 5)); /* the opener's rights count */
           }),
           0);
}

MODE(check)
{
    long now[5];

    for (unsigned i = 0; i < 5; i++)
        now[i] = atol(argv[2 + i]);
    check_clocks(now, atol(argv[7]), atol(argv[8]));
    return 0;
}

static void exec_check(const long now[5], const char *monotonic, const char *boottime)
{
    char text[5][24];

    for (unsigned i = 0; i < 5; i++)
        snprintf(text[i], sizeof(text[i]), "%ld", now[i]);
    execl("/proc/self/exe", "self", "@check", text[0], text[1], text[2], text[3], text[4], monotonic, boottime, NULL);
    _exit(99);
}

TEST(exec_enters)
{
    long now[5];
    pid_t pid;

    read_clocks(now);
    new_time("1 100000 0\n7 200000 0");
    EXITED(IN_CHILD(exec_check(now, "100000", "200000")), 0);
    pid = vfork(); /* stays outside until it execs */
    if (pid == 0)
        exec_check(now, "100000", "200000");
    int status;
    EQ(waitpid(OK(pid), &status, 0), pid);
    EXITED(status, 0);
    check_clocks(now, 0, 0);
    exec_check(now, "100000", "200000"); /* this one, too */
}

TEST(setns_both_ways)
{
    int outside = OK(open("/proc/self/ns/time", O_RDONLY)), inside;
    long now[5];

    read_clocks(now);
    new_time("1 100000 0\n7 200000 0");
    inside = OK(open("/proc/self/ns/time_for_children", O_RDONLY));
    EXITED(IN_CHILD({
               check_clocks(now, OFFSET, 2 * OFFSET);
               OK(setns(outside, CLONE_NEWTIME));
               check_clocks(now, 0, 0);
               EXITED(IN_CHILD(check_clocks(now, 0, 0)), 0);
           }),
           0);
    ERR(EINVAL, setns(inside, CLONE_NEWUTS));
    OK(setns(inside, 0));
    check_clocks(now, OFFSET, 2 * OFFSET);
    EQ(ns_ino("time"), ns_ino("time_for_children"));
    ERR(EACCES, put_offsets("1 1 0"));
}

TEST(clone3_makes_one)
{
    struct clone_args args = {.flags = CLONE_NEWTIME, .exit_signal = SIGCHLD};
    long now[5], ino = ns_ino("time");
    int status;
    pid_t pid;

    read_clocks(now);
    new_time("1 100000 0\n7 200000 0");
    pid = (pid_t)OK(syscall(SYS_clone3, &args, sizeof(args)));
    if (pid == 0) {
        check_clocks(now, OFFSET, 2 * OFFSET); /* begins with what the children's had */
        CHECK(ns_ino("time") != ino);
        EQ(ns_ino("time"), ns_ino("time_for_children"));
        _exit(0);
    }
    EQ(waitpid(pid, &status, 0), pid);
    EXITED(status, 0);
}

static struct timespec soon(int clockid, long ms)
{
    struct timespec ts;

    OK(clock_gettime(clockid, &ts));
    ts.tv_nsec += ms * 1000000;
    ts.tv_sec += ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    return ts;
}

static long since_ms(const struct timespec *from)
{
    struct timespec now;

    OK(clock_gettime(CLOCK_REALTIME, &now));
    return (now.tv_sec - from->tv_sec) * 1000 + (now.tv_nsec - from->tv_nsec) / 1000000;
}

/* Waits of 100 ms until a time on a shifted clock take 100 ms. */
static void absolute_waits(int clockid)
{
    struct timespec begin, at;
    struct itimerspec it = {0};
    int fd, cond = 0;
    sigset_t set;
    timer_t timer;
    uint64_t ticks;
    siginfo_t info;

#define TAKES_100MS(...)                                                                          \
    do {                                                                                           \
        OK(clock_gettime(CLOCK_REALTIME, &begin));                                                 \
        at = soon(clockid, 100);                                                                   \
        __VA_ARGS__;                                                                                 \
        if (since_ms(&begin) < 95 || since_ms(&begin) > 3000)                                      \
            FAIL("clock %d: %s took %ld ms", clockid, #__VA_ARGS__, since_ms(&begin));                    \
    } while (0)
    TAKES_100MS(EQ(clock_nanosleep(clockid, TIMER_ABSTIME, &at, NULL), 0));
    fd = OK(timerfd_create(clockid, 0));
    TAKES_100MS({
        it.it_value = at;
        OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &it, NULL));
        OK(timerfd_gettime(fd, &it));
        CHECK(it.it_value.tv_sec == 0 && it.it_value.tv_nsec <= 100000000);
        EQ(read(fd, &ticks, sizeof(ticks)), 8);
        EQ(ticks, 1);
    });
    close(fd);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    OK(sigprocmask(SIG_BLOCK, &set, NULL));
    OK(timer_create(clockid, NULL, &timer));
    TAKES_100MS({
        it.it_value = at;
        OK(timer_settime(timer, TIMER_ABSTIME, &it, NULL));
        OK(timer_gettime(timer, &it));
        CHECK(it.it_value.tv_sec == 0 && it.it_value.tv_nsec <= 100000000);
        EQ(sigwaitinfo(&set, &info), SIGALRM);
    });
    if (clockid == CLOCK_MONOTONIC) {
        TAKES_100MS(ERR(ETIMEDOUT, syscall(SYS_futex, &cond, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, NULL, -1)));
        TAKES_100MS(ERR(ETIMEDOUT, syscall(SYS_futex, &cond, FUTEX_WAIT_BITSET, 0, &at, NULL, -1)));
        /* Relative ones know no offsets. */
        TAKES_100MS({
            struct timespec span = {0, 100000000};
            ERR(ETIMEDOUT, syscall(SYS_futex, &cond, FUTEX_WAIT_PRIVATE, 0, &span, NULL, 0));
        });
        struct {
            uint64_t val, uaddr;
            uint32_t flags, reserved;
        } w = {0, (uint64_t)&cond, 2 | 128, 0};
        TAKES_100MS(ERR(ETIMEDOUT, syscall(449, &w, 1, 0, &at, clockid)));
        at = (struct timespec){0, 1000000000};
        ERR(EINVAL, syscall(SYS_futex, &cond, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, NULL, -1));
    }
    at = (struct timespec){1, 0}; /* long past */
    EQ(clock_nanosleep(clockid, TIMER_ABSTIME, &at, NULL), 0);
}

TEST(absolute_waits_forward)
{
    new_time("1 100000 900000000\n7 200000 0");
    EXITED(IN_CHILD({
               absolute_waits(CLOCK_MONOTONIC);
               absolute_waits(CLOCK_BOOTTIME);
           }),
           0);
}

TEST(absolute_waits_backward)
{
    new_time("1 -20 900000000\n7 -20 1");
    EXITED(IN_CHILD({
               absolute_waits(CLOCK_MONOTONIC);
               absolute_waits(CLOCK_BOOTTIME);
           }),
           0);
}

static long proc_uptime(void)
{
    return atol(guest_read_file("/proc/uptime"));
}

static long start_ticks(void)
{
    const char *p = strrchr(guest_read_file("/proc/self/stat"), ')') + 1;

    for (int i = 0; i < 19; i++)
        p = strchr(p + 1, ' ');
    return atol(p) / 100;
}

static long boot_second(void)
{
    return atol(strstr(guest_read_file("/proc/stat"), "btime ") + 6);
}

TEST(uptime)
{
    struct sysinfo before, si;
    long up = proc_uptime(), start = start_ticks(), boot = boot_second();

    OK(sysinfo(&before));
    CHECK(before.uptime >= up && before.uptime <= up + 2);
    new_time("1 7 0\n7 200000 0");
    EXITED(IN_CHILD({
               OK(sysinfo(&si));
               near(si.uptime, before.uptime + 200000);
               near(proc_uptime(), up + 200000);
               near(start_ticks(), start + 200000);
               near(boot_second() + 1, boot - 200000);
           }),
           0);
}
