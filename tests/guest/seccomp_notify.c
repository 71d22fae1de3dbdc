/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp's user notification: a supervisor answers other processes' calls. */
#include "tests/guest/seccomp.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>

static int listener(int nr_)
{
    no_new_privs();
    return (int)OK(ON_CALL(SECCOMP_FILTER_FLAG_NEW_LISTENER, nr_, SECCOMP_RET_USER_NOTIF));
}

static void send_fd(int sock, int fd)
{
    char c = 0, space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(h), &fd, sizeof(fd));
    EQ(sendmsg(sock, &m, 0), 1);
}

static int receive_fd(int sock)
{
    char c, space[CMSG_SPACE(sizeof(int))];
    struct iovec v = {&c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    int fd;
    EQ(recvmsg(sock, &m, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
    return fd;
}

/* A child under a filter that leaves nr to us, and its listener. */
static pid_t supervised(int nr_, unsigned flags, void (*fn)(void), int *ret_listener)
{
    int sv[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
    pid_t pid = OK(fork());
    if (!pid) {
        no_new_privs();
        int l = (int)OK(ON_CALL(SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, nr_, SECCOMP_RET_USER_NOTIF));
        send_fd(sv[1], l);
        close(l);
        close(sv[0]);
        close(sv[1]);
        fn();
        _exit(0);
    }
    close(sv[1]);
    *ret_listener = receive_fd(sv[0]);
    close(sv[0]);
    return pid;
}

static struct seccomp_notif next(int l)
{
    struct seccomp_notif n = {0};
    OK(ioctl(l, SECCOMP_IOCTL_NOTIF_RECV, &n));
    return n;
}

static long reply(int l, uint64_t id, int64_t val, int error, unsigned flags)
{
    struct seccomp_notif_resp r = {.id = id, .val = val, .error = error, .flags = flags};
    return ioctl(l, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

static void ended(pid_t pid, int code)
{
    int status;
    EQ(waitpid(pid, &status, 0), pid);
    EXITED(status, code);
}

static void three_calls(void)
{
    EQ(syscall(SYS_getpgid, 41, 2, 3), 1234);
    ERR(EUCLEAN, syscall(SYS_getpgid, 42));
    EQ(syscall(SYS_getpgid, 0), getpgrp()); /* goes on as it is */
    _exit(5);
}

TEST(values_errors_and_going_on)
{
    int l;
    pid_t pid = supervised(SYS_getpgid, 0, three_calls, &l);
    struct seccomp_notif n = next(l);

    EQ(n.pid, pid);
    EQ(n.flags, 0);
    EQ(n.data.nr, SYS_getpgid);
    EQ(n.data.arch, AUDIT_ARCH_X86_64);
    EQ(n.data.args[0], 41);
    EQ(n.data.args[2], 3);
    EQ(ioctl(l, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id), 0);
    EQ(reply(l, n.id, 1234, 0, 0), 0);
    ERR(ENOENT, ioctl(l, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id) ? -1 : ({ sleep_ms(50); ioctl(l, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id); }));
    n = next(l);
    EQ(reply(l, n.id, 0, -EUCLEAN, 0), 0);
    n = next(l);
    ERR(EINVAL, reply(l, n.id, 1, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE));
    ERR(EINVAL, reply(l, n.id, 0, 0, 4));
    EQ(reply(l, n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE), 0);
    ended(pid, 5);
    struct pollfd p = {.fd = l, .events = POLLIN};
    EQ(poll(&p, 1, 5000), 1);
    EQ(p.revents, POLLHUP);
    ERR(ENOENT, ioctl(l, SECCOMP_IOCTL_NOTIF_RECV, memset(&n, 0, sizeof(n))));
}

static void one_mprotect(void)
{
    char *p = OK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EQ(mprotect(p, 4096, PROT_READ | PROT_WRITE), 0);
    *p = 1;
    _exit(6);
}

TEST(a_memory_call_goes_on)
{
    int l;
    pid_t pid = supervised(SYS_mprotect, 0, one_mprotect, &l);
    struct seccomp_notif n = next(l);

    EQ(n.data.args[2], PROT_READ | PROT_WRITE);
    EQ(reply(l, n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE), 0);
    ended(pid, 6);
}

TEST(bad_requests)
{
    int l;
    pid_t pid = supervised(SYS_getpgid, 0, three_calls, &l);
    struct seccomp_notif n = {.pid = 1};
    uint64_t id;

    ERR(EINVAL, ioctl(l, SECCOMP_IOCTL_NOTIF_RECV, &n)); /* must be zero */
    ERR(EFAULT, ioctl(l, SECCOMP_IOCTL_NOTIF_RECV, NULL));
    struct pollfd p = {.fd = l, .events = POLLIN | POLLOUT};
    EQ(poll(&p, 1, 5000), 1);
    EQ(p.revents, POLLIN);
    n = next(l);
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLOUT);
    id = n.id + 1;
    ERR(ENOENT, ioctl(l, SECCOMP_IOCTL_NOTIF_ID_VALID, &id));
    ERR(ENOENT, reply(l, id, 0, 0, 0));
    ERR(EFAULT, ioctl(l, SECCOMP_IOCTL_NOTIF_SEND, NULL));
    ERR(EINVAL, ioctl(l, _IO('!', 9), 0));
    ERR(EINVAL, read(l, &n, sizeof(n)));
    ERR(EINVAL, ioctl(l, _IOW('!', 4, uint64_t), 2));
    EQ(ioctl(l, _IOW('!', 4, uint64_t), 1), 0);
    OK(kill(pid, SIGKILL));
    int status;
    EQ(waitpid(pid, &status, 0), pid);
    ERR(ENOENT, reply(l, n.id, 0, 0, 0));
}

static void asks_for_a_file(void)
{
    char c;
    int fd = OK((int)syscall(SYS_openat, 1, 2, 3, 4));
    EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    EQ(read(fd, &c, 1), 1);
    EQ(c, 'q');
    EQ(syscall(SYS_openat, 1), 77); /* comes with its answer */
    EQ(read(77, &c, 1), 1);
    EQ(c, 'r');
    EQ(fcntl(77, F_GETFD), 0);
    _exit(7);
}

TEST(descriptors_are_put_in)
{
    int l, fds[2];
    pid_t pid = supervised(SYS_openat, 0, asks_for_a_file, &l);
    struct seccomp_notif n = next(l);
    OK(pipe(fds));
    EQ(write(fds[1], "qr", 2), 2);
    struct seccomp_notif_addfd a = {.id = n.id, .srcfd = fds[0], .newfd_flags = O_CLOEXEC};

    a.newfd = 5;
    ERR(EINVAL, ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
    a.newfd = 0;
    a.newfd_flags = O_APPEND;
    ERR(EINVAL, ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
    a.newfd_flags = O_CLOEXEC;
    a.srcfd = 999;
    ERR(EBADF, ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
    a.srcfd = fds[0];
    a.id++;
    ERR(ENOENT, ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
    a.id--;
    ERR(EINVAL, ioctl(l, _IOW('!', 3, char[8]), &a));
    int there = OK(ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a));
    EQ(reply(l, n.id, there, 0, 0), 0);
    n = next(l);
    a = (struct seccomp_notif_addfd){.id = n.id, .srcfd = fds[0], .newfd = 77,
                                     .flags = SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND};
    EQ(ioctl(l, SECCOMP_IOCTL_NOTIF_ADDFD, &a), 77);
    ended(pid, 7);
}

static void gets_enosys(void)
{
    ERR(ENOSYS, syscall(SYS_getpgid, 0));
    ERR(ENOSYS, syscall(SYS_getpgid, 0));
    _exit(3);
}

TEST(closing_the_listener_answers_all)
{
    int l;
    pid_t pid = supervised(SYS_getpgid, 0, gets_enosys, &l);
    next(l);
    OK(close(l));
    ended(pid, 3);
}

TEST(one_listener_in_a_chain)
{
    int l = listener(SYS_getpgid);
    EQ(fcntl(l, F_GETFD), FD_CLOEXEC);
    ERR(EBUSY, ON_CALL(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getsid, SECCOMP_RET_USER_NOTIF));
    EQ(ON_CALL(0, SYS_getsid, SECCOMP_RET_USER_NOTIF), 0); /* nobody listens to this one */
    ERR(ENOSYS, syscall(SYS_getsid, 0));
    OK(close(l));
    ERR(ENOSYS, syscall(SYS_getpgid, 0));
    OK(close((int)OK(ON_CALL(SECCOMP_FILTER_FLAG_NEW_LISTENER, SYS_getuid, SECCOMP_RET_USER_NOTIF))));
}

static volatile int interrupted;
static void on_usr1(int sig)
{
    interrupted++;
}

static void is_interrupted(void)
{
    struct sigaction act = {.sa_handler = on_usr1};
    sigaction(SIGUSR1, &act, NULL);
    ERR(EINTR, syscall(SYS_getpgid, 1));
    EQ(interrupted, 1);
    act.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &act, NULL);
    EQ(syscall(SYS_getpgid, 2), 20);
    EQ(interrupted, 2);
    _exit(4);
}

TEST(signals_interrupt_the_waiting)
{
    int l;
    pid_t pid = supervised(SYS_getpgid, 0, is_interrupted, &l);
    struct seccomp_notif n = next(l);

    OK(kill(pid, SIGUSR1));
    n = next(l); /* the second call */
    EQ(n.data.args[0], 2);
    uint64_t old = n.id;
    OK(kill(pid, SIGUSR1));
    n = next(l); /* made again */
    EQ(n.data.args[0], 2);
    CHECK(n.id != old);
    ERR(ENOENT, reply(l, old, 1, 0, 0));
    EQ(reply(l, n.id, 20, 0, 0), 0);
    ended(pid, 4);
}

static void is_not_interrupted(void)
{
    struct sigaction act = {.sa_handler = on_usr1};
    sigaction(SIGUSR1, &act, NULL);
    EQ(syscall(SYS_getpgid, 1), 30);
    EQ(interrupted, 1);
    _exit(4);
}

TEST(wait_killable_recv)
{
    int l;
    pid_t pid = supervised(SYS_getpgid, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, is_not_interrupted, &l);
    struct seccomp_notif n = next(l);

    OK(kill(pid, SIGUSR1));
    sleep_ms(50);
    EQ(ioctl(l, SECCOMP_IOCTL_NOTIF_ID_VALID, &n.id), 0);
    EQ(reply(l, n.id, 30, 0, 0), 0);
    ended(pid, 4);
}

static int thread_listener;

static void *supervises(void *arg)
{
    for (int i = 0; i < 200; i++) {
        struct seccomp_notif n = next(thread_listener);
        EQ(reply(thread_listener, n.id, (int64_t)n.data.args[0] * 2, 0, 0), 0);
    }
    return NULL;
}

TEST(a_thread_supervises_another)
{
    pthread_t t;

    thread_listener = listener(SYS_getpgid);
    EQ(pthread_create(&t, NULL, supervises, NULL), 0);
    for (int i = 0; i < 200; i++)
        EQ(syscall(SYS_getpgid, i), i * 2);
    EQ(pthread_join(t, NULL), 0);
}
