/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with bad pointers: the answer is EFAULT (or another error), never a crash or a success. */
#include "tests/guest/guest.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static long bad[16];
static int bad_len;

/* NULL, small, unmapped, not allowed, not canonical, the kernel's, the end of the address space. */
static void make_bad(bool writable_too)
{
    bad_len = 0;
    bad[bad_len++] = 0;
    bad[bad_len++] = 8;
    bad[bad_len++] = (long)guest_unmapped();
    bad[bad_len++] = (long)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bad[bad_len++] = 0x7fffffffffffL;
    bad[bad_len++] = 0x7ffffffff000L - 1;
    bad[bad_len++] = 0x7ffffffff000L;
    bad[bad_len++] = (long)0x8000000000000000UL;
    bad[bad_len++] = (long)0xffff800000000000UL;
    bad[bad_len++] = -4096;
    bad[bad_len++] = -1;
    if (writable_too)
        bad[bad_len++] = (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The call with each bad pointer as argument number arg must fail with EFAULT. */
static void expect_fault(const char *name, long nr, int arg, bool out, long a0, long a1, long a2, long a3, long a4)
{
    long a[5] = {a0, a1, a2, a3, a4};

    make_bad(out);
    for (int i = 0; i < bad_len; i++) {
        long r;

        a[arg] = bad[i];
        errno = 0;
        r = syscall(nr, a[0], a[1], a[2], a[3], a[4], 0);
        if (r != -1 || errno != EFAULT)
            FAIL("%s with argument %d = %#lx gives %ld errno %d", name, arg, bad[i], r, errno);
    }
}

#define IN(name, arg, ...) expect_fault(#name, SYS_##name, arg, false, __VA_ARGS__)
#define OUT(name, arg, ...) expect_fault(#name, SYS_##name, arg, true, __VA_ARGS__)

TEST(paths)
{
    long buf = (long)malloc(4096), path = (long)"/tmp";

    IN(open, 0, 0, 0, 0, 0, 0);
    IN(openat, 1, AT_FDCWD, 0, 0, 0, 0);
    IN(creat, 0, 0, 0600, 0, 0, 0);
    IN(stat, 0, 0, buf, 0, 0, 0);
    OUT(stat, 1, path, 0, 0, 0, 0);
    IN(lstat, 0, 0, buf, 0, 0, 0);
    OUT(lstat, 1, path, 0, 0, 0, 0);
    OUT(fstat, 1, 0, 0, 0, 0, 0);
    IN(newfstatat, 1, AT_FDCWD, 0, buf, 0, 0);
    OUT(newfstatat, 2, AT_FDCWD, path, 0, 0, 0);
    IN(statx, 1, AT_FDCWD, 0, 0, 0xfff, buf);
    OUT(statx, 4, AT_FDCWD, path, 0, 0xfff, 0);
    IN(access, 0, 0, 0, 0, 0, 0);
    IN(mkdir, 0, 0, 0700, 0, 0, 0);
    IN(rmdir, 0, 0, 0, 0, 0, 0);
    IN(unlink, 0, 0, 0, 0, 0, 0);
    IN(rename, 0, 0, path, 0, 0, 0);
    IN(rename, 1, path, 0, 0, 0, 0);
    IN(link, 0, 0, path, 0, 0, 0);
    IN(link, 1, path, 0, 0, 0, 0);
    IN(symlink, 0, 0, path, 0, 0, 0);
    IN(symlink, 1, path, 0, 0, 0, 0);
    IN(readlink, 0, 0, buf, 100, 0, 0);
    OUT(readlink, 1, (long)"/proc/self/exe", 0, 100, 0, 0);
    IN(chmod, 0, 0, 0700, 0, 0, 0);
    IN(chown, 0, 0, 0, 0, 0, 0);
    IN(truncate, 0, 0, 0, 0, 0, 0);
    IN(chdir, 0, 0, 0, 0, 0, 0);
    IN(chroot, 0, 0, 0, 0, 0, 0);
    IN(statfs, 0, 0, buf, 0, 0, 0);
    OUT(statfs, 1, path, 0, 0, 0, 0);
    IN(mknod, 0, 0, S_IFIFO | 0600, 0, 0, 0);
}

static void skip_null(const char *name, long nr, int arg, bool out, long a0, long a1, long a2, long a3, long a4)
{
    long a[5] = {a0, a1, a2, a3, a4};

    make_bad(out);
    for (int i = 1; i < bad_len; i++) {
        a[arg] = bad[i];
        errno = 0;
        long r = syscall(nr, a[0], a[1], a[2], a[3], a[4], 0);
        if (r != -1 || errno != EFAULT)
            FAIL("%s with argument %d = %#lx gives %ld errno %d", name, arg, bad[i], r, errno);
    }
}

#define IN0(name, arg, ...) skip_null(#name, SYS_##name, arg, false, __VA_ARGS__)
#define OUT0(name, arg, ...) skip_null(#name, SYS_##name, arg, true, __VA_ARGS__)

TEST(optional_pointers)
{
    long set = (long)calloc(1, 128), ts[2] = {0, 1};

    IN0(rt_sigaction, 1, SIGUSR1, 0, 0, 8, 0);
    OUT0(rt_sigaction, 2, SIGUSR1, 0, 0, 8, 0);
    IN0(rt_sigprocmask, 1, SIG_BLOCK, 0, 0, 8, 0);
    OUT0(rt_sigprocmask, 2, SIG_BLOCK, 0, 0, 8, 0);
    IN0(sigaltstack, 0, 0, 0, 0, 0, 0);
    OUT0(sigaltstack, 1, 0, 0, 0, 0, 0);
    OUT0(time, 0, 0, 0, 0, 0, 0);
    OUT0(gettimeofday, 0, 0, 0, 0, 0, 0);
    OUT0(times, 0, 0, 0, 0, 0, 0);
    IN0(rt_sigtimedwait, 2, set, 0, 0, 8, 0);
    OUT0(prlimit64, 3, 0, 7, 0, 0, 0);
    IN0(prlimit64, 2, 0, 7, 0, 0, 0);
    OUT0(clock_getres, 1, 0, 0, 0, 0, 0);
    OUT0(getcpu, 0, 0, 0, 0, 0, 0);
    IN0(utimensat, 2, AT_FDCWD, (long)"/tmp", 0, 0, 0);
    (void)ts;
}

TEST(data)
{
    int fds[2], f, ep = OK(epoll_create1(0)), ev = OK(eventfd(1, 0)), tfd = OK(timerfd_create(CLOCK_MONOTONIC, 0));
    long buf = (long)calloc(1, 4096), iov[2];

    guest_tmpdir();
    guest_write_file("f", "0123456789");
    f = OK(open("f", O_RDWR));
    OK(pipe2(fds, O_NONBLOCK));
    IN(write, 1, f, 0, 5, 0, 0);
    IN(write, 1, fds[1], 0, 5, 0, 0);
    IN(pwrite64, 1, f, 0, 5, 0, 0);
    OUT(pread64, 1, f, 0, 5, 0, 0);
    OUT(read, 1, f, 0, 5, 0, 0);
    EQ(write(fds[1], "abcdef", 6), 6);
    OUT(read, 1, fds[0], 0, 3, 0, 0);
    OUT(read, 1, OK(open("/dev/zero", O_RDONLY)), 0, 5, 0, 0);
    OUT(read, 1, OK(open("/dev/urandom", O_RDONLY)), 0, 5, 0, 0);
    OUT(read, 1, OK(open("/proc/self/status", O_RDONLY)), 0, 5, 0, 0);
    IN(write, 1, ev, 0, 8, 0, 0);
    IN(readv, 1, f, 0, 1, 0, 0);
    IN(writev, 1, f, 0, 1, 0, 0);
    make_bad(true);
    for (int i = 0; i < bad_len; i++) {
        iov[0] = bad[i];
        iov[1] = 5;
        ERR(EFAULT, syscall(SYS_readv, f, iov, 1));
        if (bad[i] != bad[bad_len - 1])
            ERR(EFAULT, syscall(SYS_writev, f, iov, 1));
    }
    OUT(pipe, 0, 0, 0, 0, 0, 0);
    OUT(pipe2, 0, 0, 0, 0, 0, 0);
    OUT(getdents64, 1, OK(open("/", O_RDONLY)), 0, 4096, 0, 0);
    OUT(getcwd, 0, 0, 4096, 0, 0, 0);
    OUT(poll, 0, 0, 1, 0, 0, 0);
    IN(epoll_ctl, 3, ep, EPOLL_CTL_ADD, fds[0], 0, 0);
    struct epoll_event e = {EPOLLOUT, {0}};
    OK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], &e));
    OUT(epoll_wait, 1, ep, 0, 4, 0, 0);
    OUT(uname, 0, 0, 0, 0, 0, 0);
    OUT(sysinfo, 0, 0, 0, 0, 0, 0);
    OUT(getrandom, 0, 0, 16, 0, 0, 0);
    OUT(clock_gettime, 1, 0, 0, 0, 0, 0);
    IN(nanosleep, 0, 0, 0, 0, 0, 0);
    IN(clock_nanosleep, 2, 0, 0, 0, 0, 0);
    OUT(getrusage, 1, 0, 0, 0, 0, 0);
    OUT(getrlimit, 1, 7, 0, 0, 0, 0);
    IN(setrlimit, 1, 7, 0, 0, 0, 0);
    OUT(getitimer, 1, 0, 0, 0, 0, 0);
    IN(timerfd_settime, 2, tfd, 0, 0, 0, 0);
    OUT(timerfd_gettime, 1, tfd, 0, 0, 0, 0);
    OUT(rt_sigpending, 0, 0, 8, 0, 0, 0);
    IN(rt_sigsuspend, 0, 0, 8, 0, 0, 0);
    OUT(getresuid, 0, 0, buf, buf, 0, 0);
    OUT(getresuid, 2, buf, buf, 0, 0, 0);
    OUT(sched_getaffinity, 2, 0, 128, 0, 0, 0);
    IN(sched_setaffinity, 2, 0, 8, 0, 0, 0);
}

TEST(sockets)
{
    int s[2];
    long buf = (long)calloc(1, 4096), len = 16;

    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    OUT(socketpair, 3, AF_UNIX, SOCK_STREAM, 0, 0, 0);
    IN(bind, 1, OK(socket(AF_UNIX, SOCK_STREAM, 0)), 0, 20, 0, 0);
    IN(connect, 1, OK(socket(AF_UNIX, SOCK_STREAM, 0)), 0, 20, 0, 0);
    IN(sendto, 1, s[0], 0, 5, 0, 0);
    EQ(write(s[1], "abc", 3), 3);
    OUT(recvfrom, 1, s[0], 0, 2, 0, 0);
    IN(sendmsg, 1, s[0], 0, 0, 0, 0);
    OUT(recvmsg, 1, s[0], 0, MSG_DONTWAIT, 0, 0);
    OUT(getsockname, 1, s[0], 0, (long)&len, 0, 0);
    OUT(getsockname, 2, s[0], buf, 0, 0, 0);
    IN(setsockopt, 3, s[0], SOL_SOCKET, SO_SNDBUF, 0, 4);
    OUT(getsockopt, 3, s[0], SOL_SOCKET, SO_TYPE, 0, (long)&len);
    OUT(getsockopt, 4, s[0], SOL_SOCKET, SO_TYPE, buf, 0);
}

TEST(processes)
{
    char *argv[] = {"x", NULL};

    IN(execve, 0, 0, (long)argv, (long)argv, 0, 0);
    make_bad(false);
    for (int i = 1; i < bad_len; i++) {
        ERR(EFAULT, syscall(SYS_execve, "/test", bad[i], argv));
        ERR(EFAULT, syscall(SYS_execve, "/test", argv, bad[i]));
        argv[0] = (char *)bad[i];
        ERR(EFAULT, syscall(SYS_execve, "/test", argv, NULL));
        argv[0] = "x";
    }
    make_bad(true);
    for (int i = 1; i < bad_len; i++) {
        pid_t child = OK(fork());
        if (!child)
            _exit(7);
        ERR(EFAULT, syscall(SYS_wait4, child, bad[i], 0, NULL));
        /* It has been reaped all the same. */
        ERR(ECHILD, waitpid(child, NULL, 0));
    }
}

/* Bytes before the end of the last mapped page can be used; the next one is missing. */
TEST(page_end)
{
    char *end = guest_page_end(), *p;
    struct stat st;
    int fds[2], fd;

    p = end - 3;
    memcpy(p, "/tmp", 4);
    ERR(EFAULT, open(p, O_RDONLY)); /* no NUL before the hole */
    p = end - 4;
    memcpy(p, "/tmp", 5);
    OK(close(OK(open(p, O_RDONLY))));
    OK(stat(p, &st));
    ERR(EFAULT, stat("/tmp", (struct stat *)(end - 50)));
    OK(stat("/tmp", (struct stat *)(end + 1 - sizeof(st))));
    OK(pipe(fds));
    EQ(write(fds[1], "0123456789", 10), 10);
    /* What fits is moved, as on Linux; for a pipe the page that faults is not consumed. */
    long r = syscall(SYS_read, fds[0], end - 3, 10);
    CHECK(r == 4 || (r == -1 && errno == EFAULT));
    guest_tmpdir();
    guest_write_file("f", "0123456789");
    fd = OK(open("f", O_RDWR));
    EQ(syscall(SYS_read, fd, end - 3, 10), 4);
    CHECK(!memcmp(end - 3, "0123", 4));
    EQ(lseek(fd, 0, SEEK_CUR), 4);
    r = syscall(SYS_pwrite64, fd, end - 3, 10, 0);
    CHECK(r == 4 || (r == -1 && errno == EFAULT));
    EQ(syscall(SYS_getrandom, end - 15, 16, 0), 16);
}

static char *volatile window;
static volatile bool stop;

static void *unmaps(void *arg)
{
    while (!stop) {
        mmap(window, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        munmap(window, 4096);
    }
    return NULL;
}

TEST(page_unmapped_meanwhile)
{
    uint64_t end = now_ms() + 1000;
    int good = 0, fault = 0;
    pthread_t t;

    window = guest_unmapped();
    EQ(pthread_create(&t, NULL, unmaps, NULL), 0);
    while (now_ms() < end) {
        long r = syscall(SYS_uname, window);
        if (!r)
            good++;
        else if (errno == EFAULT)
            fault++;
        else
            FAIL("errno %d", errno);
        r = syscall(SYS_stat, window, window);
        CHECK(r == -1 && (errno == EFAULT || errno == ENOENT));
        r = syscall(SYS_clock_gettime, 0, window + 8);
        CHECK(!r || errno == EFAULT);
    }
    stop = true;
    EQ(pthread_join(t, NULL), 0);
    CHECK(fault > 0);
}

TEST(absent_calls)
{
    ERR(ENOSYS, syscall(999));
    ERR(ENOSYS, syscall(-1));
    ERR(ENOSYS, syscall(400));
    ERR(ENOSYS, syscall(183));
    ERR(ENOSYS, syscall(100000));
}

TEST(high_bits_of_the_number_do_not_count)
{
    long r;

    __asm__ volatile("syscall" : "=a"(r) : "a"(0x100000000L + SYS_getpid) : "rcx", "r11", "memory");
    EQ(r, getpid());
}
