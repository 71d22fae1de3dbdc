/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: who gets one, who breaks it, and what its holder is told. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <sys/fsuid.h>

static int opened(int flags)
{
    return OK(open("f", flags | O_CREAT, 0666));
}

static int lease(int fd, int type)
{
    return fcntl(fd, F_SETLEASE, type);
}

TEST(who_gets_one)
{
    int fd, other, p[2];

    guest_tmpdir();
    fd = opened(O_RDWR);
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    ERR(EAGAIN, lease(fd, F_UNLCK));
    ERR(EAGAIN, lease(fd, F_RDLCK)); /* it is open for writing */
    OK(lease(fd, F_WRLCK));
    EQ(fcntl(fd, F_GETLEASE), F_WRLCK);
    OK(lease(fd, F_UNLCK));
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    ERR(EINVAL, lease(fd, 7));
    other = opened(O_RDONLY);
    ERR(EAGAIN, lease(fd, F_WRLCK));
    ERR(EAGAIN, lease(other, F_RDLCK));
    OK(close(fd));
    OK(lease(other, F_RDLCK));
    EQ(fcntl(other, F_GETLEASE), F_RDLCK);
    fd = opened(O_RDONLY);
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    OK(lease(fd, F_RDLCK)); /* two for reading go together */
    ERR(EAGAIN, lease(fd, F_WRLCK));
    OK(close(other));
    OK(lease(fd, F_WRLCK)); /* another type of one's own */
    EQ(fcntl(fd, F_GETLEASE), F_WRLCK);
    OK(close(fd));
    fd = opened(O_RDONLY);
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    OK(close(fd));
    fd = OK(open(".", O_RDONLY));
    ERR(EINVAL, lease(fd, F_RDLCK));
    OK(pipe(p));
    ERR(EINVAL, lease(p[0], F_RDLCK));
}

TEST(not_the_owner)
{
    int fd;

    guest_tmpdir();
    OK(chmod(".", 0755));
    fd = opened(O_RDONLY);
    OK(setresuid(1000, 1000, 1000));
    ERR(EACCES, lease(fd, F_RDLCK));
    ERR(EACCES, lease(fd, F_UNLCK));
}

static volatile sig_atomic_t signals, code;
static volatile int told_fd;

static void on_break(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)context;
    signals++;
    code = info->si_code;
    told_fd = info->si_fd;
}

static void listen_for(int sig, int fd)
{
    struct sigaction a = {.sa_sigaction = on_break, .sa_flags = SA_SIGINFO | SA_RESTART};

    OK(sigaction(sig, &a, NULL));
    if (sig != SIGIO)
        OK(fcntl(fd, F_SETSIG, sig));
}

TEST(without_waiting)
{
    int fd;

    guest_tmpdir();
    OK(close(opened(O_RDWR)));
    fd = opened(O_RDONLY);
    listen_for(SIGRTMIN + 1, fd);
    OK(lease(fd, F_RDLCK));
    OK(close(OK(open("f", O_RDONLY)))); /* which it goes with */
    EQ(signals, 0);
    ERR(EWOULDBLOCK, open("f", O_WRONLY | O_NONBLOCK));
    EQ(signals, 1);
    EQ(code, POLL_MSG);
    EQ(told_fd, fd);
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK); /* what is to be left */
    ERR(EWOULDBLOCK, open("f", O_RDWR | O_NONBLOCK | O_TRUNC));
    EQ(signals, 1); /* it was said once */
    ERR(EAGAIN, lease(opened(O_RDONLY), F_RDLCK));
    OK(lease(fd, F_UNLCK));
    OK(close(OK(open("f", O_WRONLY | O_NONBLOCK))));
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
}

TEST(downgraded_for_readers)
{
    int fd, other;

    guest_tmpdir();
    fd = opened(O_RDWR);
    listen_for(SIGIO, fd);
    OK(lease(fd, F_WRLCK));
    ERR(EWOULDBLOCK, open("f", O_RDONLY | O_NONBLOCK));
    EQ(signals, 1);
    EQ(fcntl(fd, F_GETLEASE), F_RDLCK);
    ERR(EWOULDBLOCK, open("f", O_RDONLY | O_NONBLOCK));
    EQ(signals, 1);
    ERR(EWOULDBLOCK, open("f", O_WRONLY | O_NONBLOCK));
    EQ(signals, 2);
    EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    OK(lease(fd, F_UNLCK));
    other = OK(open("f", O_RDONLY | O_NONBLOCK));
    OK(close(other));
}

/* Who opens waits until the holder gives up. */
TEST(with_waiting)
{
    for (int how = 0; how < 4; how++) {
        int fd, status;
        pid_t pid;
        uint64_t begin;

        guest_tmpdir();
        OK(close(opened(O_RDWR)));
        fd = opened(O_RDONLY);
        signals = 0;
        listen_for(SIGUSR1, fd);
        OK(lease(fd, F_RDLCK));
        begin = now_ms();
        pid = OK(fork());
        if (!pid) {
            close(fd);
            if (how == 3)
                OK(truncate("f", 5));
            else
                OK(open("f", O_WRONLY));
            _exit(now_ms() - begin >= 100 ? 0 : 1);
        }
        while (!signals)
            usleep(1000);
        EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
        usleep(150000);
        EQ(waitpid(pid, &status, WNOHANG), 0);
        if (how == 0 || how == 3)
            OK(lease(fd, F_UNLCK));
        else if (how == 1)
            OK(close(fd));
        else
            OK(kill(pid, SIGKILL));
        OK(waitpid(pid, &status, 0));
        if (how == 2)
            KILLED(status, SIGKILL);
        else
            EXITED(status, 0);
    }
}

TEST(a_signal_ends_the_wait)
{
    int fd, status;
    pid_t pid;
    struct sigaction a = {.sa_sigaction = on_break, .sa_flags = SA_SIGINFO};

    guest_tmpdir();
    OK(close(opened(O_RDWR)));
    fd = opened(O_RDONLY);
    listen_for(SIGUSR1, fd);
    OK(lease(fd, F_RDLCK));
    pid = OK(fork());
    if (!pid) {
        close(fd);
        OK(sigaction(SIGUSR2, &a, NULL));
        ERR(EINTR, open("f", O_WRONLY));
        _exit(0);
    }
    while (!signals)
        usleep(1000);
    usleep(50000);
    OK(kill(pid, SIGUSR2));
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
}
