/* SPDX-License-Identifier: Apache-2.0 */
/* Signals from files: owners, O_ASYNC on pipes, sockets and terminals, what their siginfo says. */
#include "tests/guest/guest.h"

#include <linux/sockios.h>
#include <poll.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY 1028
#endif

static sigset_t sigs;
static int rt;

static void block(void)
{
    rt = SIGRTMIN + 1;
    sigemptyset(&sigs);
    sigaddset(&sigs, SIGIO);
    sigaddset(&sigs, SIGUSR1);
    sigaddset(&sigs, rt);
    OK(sigprocmask(SIG_BLOCK, &sigs, NULL));
}

/* The next signal; 0 when none comes within ms. */
static int next(siginfo_t *info, long ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    int sig = sigtimedwait(&sigs, info, &ts);
    return sig == -1 ? 0 : sig;
}

TEST(owners)
{
    struct f_owner_ex o = {-1, -1};
    int p[2];
    OK(pipe(p));
    EQ(fcntl(p[0], F_GETOWN), 0);
    OK(fcntl(p[0], F_GETOWN_EX, &o));
    EQ(o.type, F_OWNER_TID);
    EQ(o.pid, 0);
    OK(fcntl(p[0], F_SETOWN, getpid()));
    EQ(fcntl(p[0], F_GETOWN), getpid());
    OK(fcntl(p[0], F_GETOWN_EX, &o));
    EQ(o.type, F_OWNER_PID);
    OK(setpgid(0, 0));
    OK(fcntl(p[0], F_SETOWN, -getpid()));
    OK(fcntl(p[0], F_GETOWN_EX, &o));
    EQ(o.type, F_OWNER_PGRP);
    EQ(o.pid, getpid());
    o.type = F_OWNER_TID;
    OK(fcntl(p[0], F_SETOWN_EX, &o));
    EQ(fcntl(p[0], F_GETOWN), getpid());
    o.pid = 4000000;
    ERR(ESRCH, fcntl(p[0], F_SETOWN_EX, &o));
    o.type = 7;
    ERR(EINVAL, fcntl(p[0], F_SETOWN_EX, &o));
    ERR(ESRCH, fcntl(p[0], F_SETOWN, 4000000));
    ERR(EINVAL, fcntl(p[0], F_SETOWN, INT32_MIN));
    ERR(EINVAL, fcntl(p[0], F_SETSIG, 65));
    ERR(EINVAL, fcntl(p[0], F_SETSIG, -1));
    OK(fcntl(p[0], F_SETSIG, SIGUSR1));
    EQ(fcntl(p[0], F_GETSIG), SIGUSR1);
    /* One that is gone, whose number is not given out again while it is remembered. */
    pid_t child = OK(fork());
    if (!child) {
        pause();
        _exit(0);
    }
    OK(fcntl(p[0], F_SETOWN, child));
    EQ(fcntl(p[0], F_GETOWN), child);
    OK(kill(child, SIGKILL));
    EQ(waitpid(child, NULL, 0), child);
    EQ(fcntl(p[0], F_GETOWN), 0);
    OK(fcntl(p[0], F_SETOWN, 0));
    EQ(fcntl(p[0], F_GETOWN), 0);
}

TEST(pipes)
{
    siginfo_t info;
    int p[2];
    char c = 'x';
    block();
    OK(pipe(p));
    OK(fcntl(p[0], F_SETFL, O_ASYNC));
    EQ(fcntl(p[0], F_GETFL) & O_ASYNC, O_ASYNC);
    EQ(write(p[1], &c, 1), 1);
    EQ(next(&info, 50), 0); /* nobody owns it */
    OK(fcntl(p[0], F_SETOWN, getpid()));
    EQ(write(p[1], &c, 1), 1);
    EQ(next(&info, 5000), SIGIO);
    EQ(info.si_code, SI_KERNEL);
    OK(fcntl(p[0], F_SETSIG, rt));
    EQ(write(p[1], &c, 1), 1);
    EQ(next(&info, 5000), rt);
    EQ(info.si_code, POLL_IN);
    EQ(info.si_fd, p[0]);
    EQ(info.si_band, POLLIN | POLLRDNORM);
    OK(fcntl(p[0], F_SETSIG, SIGIO));
    EQ(write(p[1], &c, 1), 1);
    EQ(next(&info, 5000), SIGIO);
    EQ(info.si_code, POLL_IN);
    OK(fcntl(p[0], F_SETFL, 0));
    EQ(write(p[1], &c, 1), 1);
    EQ(next(&info, 50), 0);
    /* The writing end. */
    OK(fcntl(p[1], F_SETFL, O_ASYNC | O_NONBLOCK));
    OK(fcntl(p[1], F_SETOWN, getpid()));
    OK(fcntl(p[1], F_SETSIG, rt));
    char page[4096];
    memset(page, 0, sizeof(page));
    while (write(p[1], page, sizeof(page)) > 0)
        ;
    for (int i = 0; i < 15; i++)
        OK((int)read(p[0], page, sizeof(page)));
    EQ(next(&info, 5000), rt);
    EQ(info.si_code, POLL_OUT);
    EQ(info.si_fd, p[1]);
    while (next(&info, 0))
        ;
    /* Its end is news for the reader. */
    OK(fcntl(p[0], F_SETFL, O_ASYNC));
    close(p[1]);
    EQ(next(&info, 5000), SIGIO);
    while (next(&info, 0))
        ;
    close(p[0]);
}

TEST(sockets)
{
    siginfo_t info;
    int s[2], on = 1, who = getpid();
    char c = 'x';
    block();
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    OK(ioctl(s[0], FIOASYNC, &on));
    EQ(fcntl(s[0], F_GETFL) & O_ASYNC, O_ASYNC);
    OK(ioctl(s[0], FIOSETOWN, &who));
    who = 0;
    OK(ioctl(s[0], SIOCGPGRP, &who));
    EQ(who, getpid());
    OK(fcntl(s[0], F_SETSIG, rt));
    EQ(write(s[1], &c, 1), 1);
    EQ(next(&info, 5000), rt);
    EQ(info.si_code, POLL_IN);
    EQ(info.si_fd, s[0]);
    who = 4000000;
    ERR(ESRCH, ioctl(s[0], SIOCSPGRP, &who));
    on = 0;
    OK(ioctl(s[0], FIOASYNC, &on));
    EQ(write(s[1], &c, 1), 1);
    EQ(next(&info, 50), 0);
    /* Files that know no such thing ignore the flag, or refuse it. */
    int e = OK(eventfd(0, 0));
    on = 1;
    ERR(ENOTTY, ioctl(e, FIOASYNC, &on));
    OK(fcntl(e, F_SETFL, O_ASYNC));
    EQ(fcntl(e, F_GETFL) & O_ASYNC, 0);
    ERR(ENOTTY, ioctl(e, FIOSETOWN, &who));
}

TEST(terminals)
{
    siginfo_t info;
    int m, s;
    block();
    OK(openpty(&m, &s, NULL, NULL, NULL));
    OK(fcntl(s, F_SETFL, O_ASYNC));
    OK(fcntl(s, F_SETOWN, getpid()));
    OK(fcntl(s, F_SETSIG, rt));
    EQ(write(m, "line\n", 5), 5);
    do {
        EQ(next(&info, 5000), rt);
    } while (info.si_code != POLL_IN);
    EQ(info.si_fd, s);
}

/* A group's members all hear it, another user's process does not. */
TEST(groups_and_rights)
{
    int p[2], ready[2], status;
    pid_t pids[3];
    char c = 'x';
    if (geteuid() != 0)
        return;
    block();
    OK(pipe(p));
    OK(pipe(ready));
    for (int i = 0; i < 3; i++) {
        pids[i] = OK(fork());
        if (!pids[i]) {
            siginfo_t info;
            OK(setpgid(0, i ? pids[0] : 0));
            if (i == 2)
                OK(setuid(12345));
            OK((int)write(ready[1], &c, 1));
            _exit(next(&info, i == 2 ? 300 : 10000) == SIGIO);
        }
        OK((int)read(ready[0], &c, 1));
    }
    /* Named by a user who may not signal everybody. */
    pid_t namer = OK(fork());
    if (!namer) {
        OK(setresuid(0, 4242, 0));
        _exit(0);
    }
    EQ(waitpid(namer, &status, 0), namer);
    OK(fcntl(p[0], F_SETFL, O_ASYNC));
    OK(fcntl(p[0], F_SETOWN, -pids[0]));
    EQ(write(p[1], &c, 1), 1);
    for (int i = 0; i < 3; i++) {
        EQ(waitpid(pids[i], &status, 0), pids[i]);
        EXITED(status, 1); /* root may tell all of them */
    }
    pid_t other = OK(fork());
    if (!other) {
        siginfo_t info;
        OK((int)write(ready[1], &c, 1));
        _exit(next(&info, 300) == SIGIO);
    }
    OK((int)read(ready[0], &c, 1));
    pid_t user = OK(fork());
    if (!user) {
        OK(setuid(12345));
        _exit(fcntl(p[0], F_SETOWN, other) ? 1 : 0);
    }
    EQ(waitpid(user, &status, 0), user);
    EXITED(status, 0);
    EQ(write(p[1], &c, 1), 1);
    EQ(waitpid(other, &status, 0), other);
    EXITED(status, 0);
}

TEST(created_query)
{
    guest_tmpdir();
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600)), r = fcntl(fd, F_CREATED_QUERY, 0);
    if (r == -1 && errno == EINVAL)
        return; /* before 6.12 */
    EQ(r, 1);
    fd = OK(open("f", O_RDWR | O_CREAT, 0600));
    EQ(fcntl(fd, F_CREATED_QUERY, 0), 0);
}

TEST(directories)
{
    siginfo_t info;
    block();
    guest_tmpdir();
    OK(mkdir("d", 0700));
    int dir = OK(open(".", O_RDONLY)), sub = OK(open("d", O_RDONLY)), file = OK(open("f", O_RDWR | O_CREAT, 0600));
    ERR(ENOTDIR, fcntl(file, F_NOTIFY, DN_CREATE));
    OK(fcntl(file, F_NOTIFY, 0));
    /* Once, and by SIGIO unless asked otherwise. */
    OK(fcntl(dir, F_NOTIFY, DN_CREATE));
    EQ(fcntl(dir, F_GETOWN), getpid());
    OK(mkdir("e", 0700));
    EQ(next(&info, 5000), SIGIO);
    EQ(info.si_code, SI_KERNEL);
    OK(rmdir("e"));
    OK(mkdir("e", 0700));
    EQ(next(&info, 50), 0);
    OK(fcntl(dir, F_SETSIG, rt));
    OK(fcntl(dir, F_NOTIFY, DN_RENAME | DN_ATTRIB | DN_MULTISHOT));
    OK(fcntl(sub, F_SETSIG, rt));
    OK(fcntl(sub, F_NOTIFY, DN_RENAME | DN_ATTRIB | DN_MULTISHOT));
    OK(rename("f", "d/f"));
    EQ(next(&info, 50), 0);
    OK(rename("d", "d2"));
    EQ(next(&info, 5000), rt);
    EQ(info.si_fd, dir);
    EQ(info.si_code, POLL_MSG);
    EQ(next(&info, 50), 0);
    OK(chmod("d2", 0755));
    EQ(next(&info, 5000), rt);
    EQ(next(&info, 5000), rt);
    EQ(next(&info, 50), 0);
    /* The bits add up; none takes them back; so does a close of any copy. */
    OK(fcntl(sub, F_NOTIFY, DN_DELETE | DN_MODIFY | DN_MULTISHOT));
    EQ(write(file, "x", 1), 1);
    EQ(next(&info, 5000), rt);
    EQ(info.si_fd, sub);
    OK(unlink("d2/f"));
    EQ(next(&info, 5000), rt);
    OK(fcntl(sub, F_NOTIFY, 0));
    OK(chmod("d2", 0700));
    EQ(next(&info, 5000), rt);
    EQ(info.si_fd, dir);
    EQ(next(&info, 50), 0);
    close(dup(dir));
    OK(chmod("d2", 0755));
    EQ(next(&info, 50), 0);
}
