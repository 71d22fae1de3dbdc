/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets, and what sockets of other families answer. */
#include "tests/guest/guest.h"

#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static socklen_t name_of(struct sockaddr_un *a, const char *name)
{
    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path, name, strlen(name + 1) + 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name + 1) + 1 + (name[0] ? 1 : 0));
}

static int bound(int type, const char *name)
{
    struct sockaddr_un a;
    socklen_t len = name_of(&a, name);
    int s = OK(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));

    OK(bind(s, (struct sockaddr *)&a, len));
    return s;
}

TEST(pairs)
{
    int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}, s[2];
    char buf[16];

    for (int i = 0; i < 3; i++) {
        OK(socketpair(AF_UNIX, types[i], 0, s));
        EQ(send(s[0], "abc", 3, 0), 3);
        EQ(send(s[0], "de", 2, 0), 2);
        EQ(recv(s[1], buf, 16, 0), types[i] == SOCK_STREAM ? 5 : 3);
        EQ(write(s[1], "back", 4), 4);
        EQ(read(s[0], buf, 16), 4);
        ERR(EAGAIN, recv(s[0], buf, 16, MSG_DONTWAIT));
        close(s[0]);
        close(s[1]);
    }
    ERR(EAFNOSUPPORT, socketpair(999, SOCK_STREAM, 0, s));
    ERR(EPROTONOSUPPORT, socketpair(AF_UNIX, SOCK_STREAM, 99, s));
    ERR(ESOCKTNOSUPPORT, socketpair(AF_UNIX, SOCK_RDM, 0, s));
    EQ(OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s)), 0);
    EQ(fcntl(s[0], F_GETFD), FD_CLOEXEC);
    EQ(fcntl(s[0], F_GETFL), O_RDWR | O_NONBLOCK);
}

TEST(stream_end_and_reset)
{
    char buf[8];
    int s[2];

    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    EQ(write(s[0], "x", 1), 1);
    OK(shutdown(s[0], SHUT_WR));
    EQ(read(s[1], buf, 8), 1);
    EQ(read(s[1], buf, 8), 0);
    signal(SIGPIPE, SIG_IGN);
    ERR(EPIPE, write(s[0], "x", 1));
    EQ(write(s[1], "y", 1), 1);
    EQ(read(s[0], buf, 8), 1);
    OK(close(s[1]));
    EQ(read(s[0], buf, 8), 0);
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    EQ(write(s[0], "x", 1), 1);
    OK(close(s[1])); /* with unread data */
    ERR(ECONNRESET, read(s[0], buf, 8));
    signal(SIGPIPE, SIG_DFL);
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    OK(close(s[1]));
    KILLED(IN_CHILD(write(s[0], "x", 1)), SIGPIPE);
    ERR(EPIPE, send(s[0], "x", 1, MSG_NOSIGNAL));
}

TEST(named_stream)
{
    struct sockaddr_un a;
    socklen_t len;
    char buf[8];
    int l, c, s;

    guest_tmpdir();
    l = bound(SOCK_STREAM, "sock");
    len = name_of(&a, "sock");
    c = OK(socket(AF_UNIX, SOCK_STREAM, 0));
    ERR(ECONNREFUSED, connect(c, (struct sockaddr *)&a, len));
    OK(listen(l, 2));
    OK(connect(c, (struct sockaddr *)&a, len));
    ERR(EISCONN, connect(c, (struct sockaddr *)&a, len));
    s = OK(accept4(l, NULL, NULL, SOCK_CLOEXEC));
    EQ(write(c, "hi", 2), 2);
    EQ(read(s, buf, 8), 2);
    len = sizeof(a);
    OK(getpeername(c, (struct sockaddr *)&a, &len));
    STR(a.sun_path, "sock");
    len = sizeof(a);
    OK(getsockname(s, (struct sockaddr *)&a, &len));
    STR(a.sun_path, "sock");
    len = sizeof(a);
    OK(getpeername(s, (struct sockaddr *)&a, &len));
    EQ(len, 2);
    ERR(EADDRINUSE, bind(OK(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&a, name_of(&a, "sock")));
    OK(unlink("sock"));
    ERR(ENOENT, connect(OK(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&a, name_of(&a, "sock")));
    guest_write_file("file", "");
    ERR(ECONNREFUSED, connect(OK(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&a, name_of(&a, "file")));
    ERR(ENXIO, open("sock2", O_RDWR) == -1 && errno == ENOENT ? (close(bound(SOCK_STREAM, "sock2")), open("sock2", O_RDWR)) : 0);
}

TEST(abstract_names)
{
    struct sockaddr_un a;
    socklen_t len = name_of(&a, "\0hidden");
    int l = bound(SOCK_STREAM, "\0hidden"), c = OK(socket(AF_UNIX, SOCK_STREAM, 0));

    (void)len;
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 7);
    memset(&a, 0, sizeof(a));
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path, "\0hiddex", 7);
    close(l);
    l = OK(socket(AF_UNIX, SOCK_STREAM, 0));
    OK(bind(l, (struct sockaddr *)&a, len));
    OK(listen(l, 1));
    OK(connect(c, (struct sockaddr *)&a, len));
    ERR(EADDRINUSE, bind(OK(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&a, len));
    /* Autobind gives a name of its own. */
    int s = OK(socket(AF_UNIX, SOCK_DGRAM, 0));
    OK(bind(s, (struct sockaddr *)&a, sizeof(sa_family_t)));
    len = sizeof(a);
    OK(getsockname(s, (struct sockaddr *)&a, &len));
    EQ(len, sizeof(sa_family_t) + 6);
    EQ(a.sun_path[0], 0);
}

TEST(nonblocking_and_backlog)
{
    struct sockaddr_un a;
    socklen_t len;
    int l, c, made = 0;

    guest_tmpdir();
    l = bound(SOCK_STREAM | SOCK_NONBLOCK, "sock");
    OK(listen(l, 1));
    ERR(EAGAIN, accept(l, NULL, NULL));
    for (int i = 0; i < 10; i++) {
        c = OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
        len = name_of(&a, "sock");
        if (connect(c, (struct sockaddr *)&a, len)) {
            EQ(errno, EAGAIN);
            break;
        }
        made++;
    }
    EQ(made, 2);
    struct pollfd p = {l, POLLIN, 0};
    EQ(poll(&p, 1, 0), 1);
    OK(accept(l, NULL, NULL));
    OK(accept(l, NULL, NULL));
    ERR(EAGAIN, accept(l, NULL, NULL));
    ERR(EINVAL, accept(c, NULL, NULL));
    ERR(ENOTSOCK, accept(0, NULL, NULL));
}

TEST(datagrams)
{
    struct sockaddr_un a, from;
    socklen_t len;
    char buf[16];
    int r, s;

    guest_tmpdir();
    r = bound(SOCK_DGRAM, "recv");
    s = bound(SOCK_DGRAM, "send");
    len = name_of(&a, "recv");
    EQ(sendto(s, "hello", 5, 0, (struct sockaddr *)&a, len), 5);
    EQ(sendto(s, "", 0, 0, (struct sockaddr *)&a, len), 0);
    len = sizeof(from);
    EQ(recvfrom(r, buf, 3, MSG_TRUNC, (struct sockaddr *)&from, &len), 5);
    STR(from.sun_path, "send");
    EQ(recv(r, buf, 16, 0), 0);
    ERR(ENOTCONN, send(OK(socket(AF_UNIX, SOCK_DGRAM, 0)), "x", 1, 0));
    OK(close(r));
    len = name_of(&a, "recv");
    ERR(ECONNREFUSED, sendto(s, "x", 1, 0, (struct sockaddr *)&a, len));
    ERR(EMSGSIZE, ({
            int p[2];
            OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
            static char big[8 << 20];
            send(p[0], big, sizeof(big), 0);
        }));
}

TEST(seqpacket_keeps_boundaries)
{
    struct iovec iov;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    char buf[4];
    int s[2];

    OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
    EQ(send(s[0], "abcdef", 6, MSG_EOR), 6);
    EQ(send(s[0], "gh", 2, 0), 2);
    iov = (struct iovec){buf, 4};
    EQ(recvmsg(s[1], &m, 0), 4);
    CHECK(m.msg_flags & MSG_TRUNC);
    EQ(recvmsg(s[1], &m, 0), 2);
    CHECK(!(m.msg_flags & MSG_TRUNC));
}

TEST(peek_and_waitall)
{
    char buf[16];
    int s[2], n;

    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    EQ(write(s[0], "abcdef", 6), 6);
    EQ(recv(s[1], buf, 3, MSG_PEEK), 3);
    OK(ioctl(s[1], FIONREAD, &n));
    EQ(n, 6);
    EQ(recv(s[1], buf, 16, 0), 6);
    if (!OK(fork())) {
        for (int i = 0; i < 5; i++) {
            sleep_ms(10);
            CHECK(write(s[0], "12", 2) == 2);
        }
        _exit(0);
    }
    EQ(recv(s[1], buf, 10, MSG_WAITALL), 10);
    wait(NULL);
}

static void send_fds(int s, const int *fds, int len)
{
    char data = 'd';
    struct iovec iov = {&data, 1};
    union {
        char buf[CMSG_SPACE(sizeof(int) * 300)];
        struct cmsghdr align;
    } u;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf,
                       .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)len)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)len);
    memcpy(CMSG_DATA(c), fds, sizeof(int) * (size_t)len);
    EQ(sendmsg(s, &m, 0), 1);
}

static int recv_fds(int s, int *fds, int room, int flags, int *ret_flags)
{
    char data;
    struct iovec iov = {&data, 1};
    union {
        char buf[CMSG_SPACE(sizeof(int) * 300)];
        struct cmsghdr align;
    } u;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf,
                       .msg_controllen = CMSG_LEN(sizeof(int) * (size_t)room)};
    struct cmsghdr *c;
    int n = 0;

    EQ(recvmsg(s, &m, flags), 1);
    *ret_flags = m.msg_flags;
    for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        EQ(c->cmsg_type, SCM_RIGHTS);
        n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(c), sizeof(int) * (size_t)n);
    }
    return n;
}

TEST(passing_descriptors)
{
    int s[2], p[2], got[300], flags;
    char c;

    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    OK(pipe(p));
    send_fds(s[0], p, 2);
    OK(close(p[0]));
    EQ(recv_fds(s[1], got, 4, MSG_CMSG_CLOEXEC, &flags), 2);
    EQ(fcntl(got[0], F_GETFD), FD_CLOEXEC);
    EQ(write(p[1], "z", 1), 1);
    EQ(read(got[0], &c, 1), 1);
    EQ(c, 'z');
    /* Too little room: the rest is dropped. */
    send_fds(s[0], got, 2);
    EQ(recv_fds(s[1], got + 2, 1, 0, &flags), 1);
    CHECK(flags & MSG_CTRUNC);
    /* A socket in itself, never received: must not leak nor crash. */
    send_fds(s[0], s, 2);
    close(s[0]);
    close(s[1]);
}

TEST(passing_descriptors_to_a_child)
{
    int s[2], status, flags, got[1], fd;
    pid_t child;
    char buf[8] = "";

    guest_tmpdir();
    guest_write_file("f", "content");
    OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
    child = OK(fork());
    if (!child) {
        EQ(recv_fds(s[1], got, 1, 0, &flags), 1);
        CHECK(read(got[0], buf, 7) == 7);
        _exit(strcmp(buf, "content") ? 1 : 0);
    }
    fd = OK(open("f", O_RDONLY));
    send_fds(s[0], &fd, 1);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    EQ(read(fd, buf, 7), 0); /* one offset */
}

TEST(credentials)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    int s[2], on = 1;
    char data;
    struct iovec iov = {&data, 1};
    union {
        char buf[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } u;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof(u.buf)};

    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    OK(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &cred, &len));
    EQ(cred.pid, getpid());
    EQ(cred.uid, 0);
    OK(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
    EQ(write(s[0], "x", 1), 1);
    EQ(recvmsg(s[1], &m, 0), 1);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    CHECK(c && c->cmsg_type == SCM_CREDENTIALS);
    memcpy(&cred, CMSG_DATA(c), sizeof(cred));
    EQ(cred.pid, getpid());
}

TEST(options)
{
    int s = OK(socket(AF_UNIX, SOCK_STREAM, 0)), v = 0;
    socklen_t len = sizeof(v);
    struct timeval tv = {0, 50000};
    uint64_t begin;
    char c;
    int p[2];

    OK(getsockopt(s, SOL_SOCKET, SO_TYPE, &v, &len));
    EQ(v, SOCK_STREAM);
    OK(getsockopt(s, SOL_SOCKET, SO_DOMAIN, &v, &len));
    EQ(v, AF_UNIX);
    OK(getsockopt(s, SOL_SOCKET, SO_ERROR, &v, &len));
    EQ(v, 0);
    OK(getsockopt(s, SOL_SOCKET, SO_ACCEPTCONN, &v, &len));
    EQ(v, 0);
    v = 10000;
    OK(setsockopt(s, SOL_SOCKET, SO_SNDBUF, &v, sizeof(v)));
    OK(getsockopt(s, SOL_SOCKET, SO_SNDBUF, &v, &len));
    EQ(v, 20000);
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
    OK(setsockopt(p[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
    begin = now_ms();
    ERR(EAGAIN, read(p[0], &c, 1));
    CHECK(now_ms() - begin >= 45);
    ERR(ENOPROTOOPT, getsockopt(s, SOL_SOCKET, 9999, &v, &len));
    ERR(EBADF, getsockopt(999, SOL_SOCKET, SO_TYPE, &v, &len));
    ERR(ENOTSOCK, getsockopt(0, SOL_SOCKET, SO_TYPE, &v, &len));
}

TEST(flow_control)
{
    static char block[4096];
    size_t sent = 0, got = 0;
    ssize_t n;
    int s[2];
    struct pollfd p;

    OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
    while ((n = write(s[0], block, sizeof(block))) > 0)
        sent += (size_t)n;
    EQ(errno, EAGAIN);
    CHECK(sent >= 65536 && sent < 4 << 20);
    p = (struct pollfd){s[0], POLLOUT, 0};
    EQ(poll(&p, 1, 0), 0);
    while ((n = read(s[1], block, sizeof(block))) > 0)
        got += (size_t)n;
    EQ(got, sent);
    EQ(poll(&p, 1, 0), 1);
}

TEST(many_messages)
{
    struct mmsghdr m[8] = {0};
    struct iovec iov[8];
    char data[8][4];
    int s[2];

    OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    for (int i = 0; i < 8; i++) {
        data[i][0] = (char)('a' + i);
        iov[i] = (struct iovec){data[i], 1};
        m[i].msg_hdr.msg_iov = &iov[i];
        m[i].msg_hdr.msg_iovlen = 1;
    }
    EQ(sendmmsg(s[0], m, 8, 0), 8);
    memset(data, 0, sizeof(data));
    EQ(recvmmsg(s[1], m, 8, MSG_DONTWAIT, NULL), 8);
    EQ(data[7][0], 'h');
    EQ(m[3].msg_len, 1);
}

TEST(echo_between_processes)
{
    char buf[1000];
    int s[2];

    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    if (!OK(fork())) {
        ssize_t n;
        close(s[0]);
        while ((n = read(s[1], buf, sizeof(buf))) > 0)
            CHECK(write(s[1], buf, (size_t)n) == n);
        _exit(0);
    }
    close(s[1]);
    for (int i = 0; i < 500; i++) {
        memset(buf, i, sizeof(buf));
        EQ(write(s[0], buf, sizeof(buf)), sizeof(buf));
        EQ(recv(s[0], buf, sizeof(buf), MSG_WAITALL), sizeof(buf));
        EQ(buf[999], (char)i);
    }
}

TEST(families_and_types)
{
    ERR(EAFNOSUPPORT, socket(99, SOCK_STREAM, 0));
    ERR(EINVAL, socket(AF_UNIX, SOCK_STREAM | 0x10000, 0));
    ERR(ESOCKTNOSUPPORT, socket(AF_UNIX, 9, 0));
    ERR(EPROTONOSUPPORT, socket(AF_UNIX, SOCK_STREAM, 7));
}
