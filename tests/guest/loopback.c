/* SPDX-License-Identifier: Apache-2.0 */
/* TCP and UDP over the loopback, and what rtnetlink tells of it. */
#include "tests/guest/guest.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static struct sockaddr_in addr4(const char *ip, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static int listener(struct sockaddr_in *a)
{
    socklen_t len = sizeof(*a);
    int s = OK(socket(AF_INET, SOCK_STREAM, 0));
    *a = addr4("127.0.0.1", 0);
    OK(bind(s, (struct sockaddr *)a, sizeof(*a)));
    OK(listen(s, 5));
    OK(getsockname(s, (struct sockaddr *)a, &len));
    EQ(len, sizeof(*a));
    CHECK(a->sin_port);
    return s;
}

TEST(tcp_connection)
{
    struct sockaddr_in a, peer;
    socklen_t len = sizeof(peer);
    char buf[65536];
    int s = listener(&a), c = OK(socket(AF_INET, SOCK_STREAM, 0));
    OK(connect(c, (struct sockaddr *)&a, sizeof(a)));
    ERR(EISCONN, connect(c, (struct sockaddr *)&a, sizeof(a)));
    int k = OK(accept(s, (struct sockaddr *)&peer, &len));
    EQ(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    EQ(write(c, "ping", 4), 4);
    EQ(read(k, buf, sizeof(buf)), 4);
    if (!OK(fork())) {
        memset(buf, 7, sizeof(buf));
        for (int i = 0; i < 64; i++)
            EQ(write(k, buf, sizeof(buf)), sizeof(buf));
        OK(shutdown(k, SHUT_WR));
        EQ(read(k, buf, sizeof(buf)), 3);
        _exit(0);
    }
    size_t total = 0;
    ssize_t n;
    while ((n = OK(read(c, buf, sizeof(buf)))) > 0)
        total += (size_t)n;
    EQ(total, 64 * 65536);
    struct pollfd p = {c, POLLIN | POLLOUT | POLLRDHUP, 0};
    EQ(poll(&p, 1, 0), 1);
    EQ(p.revents, POLLIN | POLLOUT | POLLRDHUP);
    EQ(write(c, "end", 3), 3);
    int status;
    wait(&status);
    EQ(status, 0);
}

TEST(tcp_refusals)
{
    struct sockaddr_in a = addr4("127.0.0.1", 1), far = addr4("192.0.2.1", 80);
    int c = OK(socket(AF_INET, SOCK_STREAM, 0)), err;
    socklen_t len = sizeof(err);
    ERR(ECONNREFUSED, connect(c, (struct sockaddr *)&a, sizeof(a)));
    ERR(EINVAL, connect(c, (struct sockaddr *)&a, 3));
    close(c);
    c = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    ERR(EINPROGRESS, connect(c, (struct sockaddr *)&a, sizeof(a)));
    struct pollfd p = {c, POLLOUT, 0};
    EQ(poll(&p, 1, 1000), 1);
    CHECK(p.revents & POLLERR);
    OK(getsockopt(c, SOL_SOCKET, SO_ERROR, &err, &len));
    EQ(err, ECONNREFUSED);
    close(c);
    c = OK(socket(AF_INET, SOCK_STREAM, 0));
    ERR(EADDRNOTAVAIL, bind(c, (struct sockaddr *)&far, sizeof(far)));
    ERR(EAFNOSUPPORT, bind(c, (struct sockaddr *)&(struct sockaddr_in){.sin_family = 77, .sin_addr.s_addr = 1}, sizeof(a)));
    ERR(ENOTCONN, read(c, &err, 1));
    ERR(ENOTCONN, shutdown(c, SHUT_RDWR)); /* but it counts */
    EQ(read(c, &err, 1), 0);
}

TEST(tcp_addresses_in_use)
{
    struct sockaddr_in a;
    int s = listener(&a), one = 1, t = OK(socket(AF_INET, SOCK_STREAM, 0));
    ERR(EADDRINUSE, bind(t, (struct sockaddr *)&a, sizeof(a)));
    OK(setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
    ERR(EADDRINUSE, bind(t, (struct sockaddr *)&a, sizeof(a)));
    close(s);
    OK(bind(t, (struct sockaddr *)&a, sizeof(a)));
    ERR(EINVAL, bind(t, (struct sockaddr *)&a, sizeof(a)));
    OK(listen(t, 1));
    OK(setsockopt(t, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
    ERR(ENOPROTOOPT, setsockopt(t, IPPROTO_TCP, 999, &one, sizeof(one)));
}

TEST(tcp_reset)
{
    struct sockaddr_in a;
    char b;
    int s = listener(&a), c = OK(socket(AF_INET, SOCK_STREAM, 0));
    OK(connect(c, (struct sockaddr *)&a, sizeof(a)));
    int k = OK(accept(s, NULL, NULL));
    OK(write(c, "unread", 6));
    sleep_ms(10);
    close(k);
    sleep_ms(10);
    ERR(ECONNRESET, read(c, &b, 1));
    EQ(read(c, &b, 1), 0);
    signal(SIGPIPE, SIG_IGN);
    ERR(EPIPE, write(c, &b, 1));
}

TEST(udp)
{
    struct sockaddr_in a = addr4("127.0.0.1", 0), from;
    socklen_t len = sizeof(a), flen = sizeof(from);
    char buf[16];
    int s = OK(socket(AF_INET, SOCK_DGRAM, 0)), c = OK(socket(AF_INET, SOCK_DGRAM, 0));
    OK(bind(s, (struct sockaddr *)&a, sizeof(a)));
    OK(getsockname(s, (struct sockaddr *)&a, &len));
    ERR(EDESTADDRREQ, send(c, "x", 1, 0));
    EQ(sendto(c, "hello", 5, 0, (struct sockaddr *)&a, sizeof(a)), 5);
    EQ(sendto(c, "", 0, 0, (struct sockaddr *)&a, sizeof(a)), 0);
    EQ(recvfrom(s, buf, 3, MSG_TRUNC, (struct sockaddr *)&from, &flen), 5);
    EQ(recv(s, buf, 16, 0), 0);
    OK(connect(s, (struct sockaddr *)&from, sizeof(from)));
    OK(send(s, "back", 4, 0));
    EQ(recv(c, buf, 16, 0), 4);
    close(s);
    OK(connect(c, (struct sockaddr *)&a, sizeof(a)));
    OK(send(c, "x", 1, 0));
    sleep_ms(10);
    ERR(ECONNREFUSED, recv(c, buf, 16, 0));
}

TEST(udp_more)
{
    struct sockaddr_in a = addr4("127.0.0.1", 0), b = a;
    socklen_t len = sizeof(a);
    static char big[60000];
    int s = OK(socket(AF_INET, SOCK_DGRAM, 0)), o = OK(socket(AF_INET, SOCK_DGRAM, 0)), c = OK(socket(AF_INET, SOCK_DGRAM, 0)), on;
    OK(bind(s, (struct sockaddr *)&a, sizeof(a)));
    OK(getsockname(s, (struct sockaddr *)&a, &len));
    OK(bind(o, (struct sockaddr *)&b, sizeof(b)));
    OK(getsockname(o, (struct sockaddr *)&b, &len));
    EQ(sendto(c, "one", 3, MSG_MORE, (struct sockaddr *)&a, sizeof(a)), 3);
    ERR(EAGAIN, recv(s, big, sizeof(big), MSG_DONTWAIT));
    /* The address of the first part is that of the whole. */
    EQ(sendto(c, "two", 3, MSG_MORE, (struct sockaddr *)&b, sizeof(b)), 3);
    EQ(send(c, "!", 1, 0), 1);
    EQ(recv(s, big, sizeof(big), 0), 7);
    CHECK(!memcmp(big, "onetwo!", 7));
    ERR(EAGAIN, recv(o, big, sizeof(big), MSG_DONTWAIT));
    /* Too much, and a bad address, lose it all. */
    EQ(sendto(c, big, sizeof(big), MSG_MORE, (struct sockaddr *)&a, sizeof(a)), sizeof(big));
    ERR(EMSGSIZE, send(c, big, sizeof(big), 0));
    ERR(EDESTADDRREQ, send(c, "x", 1, 0));
    EQ(sendto(c, "x", 1, MSG_MORE, (struct sockaddr *)&a, sizeof(a)), 1);
    ERR(EFAULT, send(c, guest_unmapped(), 10, 0));
    ERR(EAGAIN, recv(s, big, sizeof(big), MSG_DONTWAIT));
    /* The option. */
    OK(connect(c, (struct sockaddr *)&a, sizeof(a)));
    on = 1;
    OK(setsockopt(c, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)));
    on = 0, len = sizeof(on);
    OK(getsockopt(c, IPPROTO_UDP, UDP_CORK, &on, &len));
    EQ(on, 1);
    EQ(send(c, "ab", 2, 0), 2);
    EQ(send(c, "", 0, 0), 0);
    EQ(send(c, "cd", 2, 0), 2);
    ERR(EAGAIN, recv(s, big, sizeof(big), MSG_DONTWAIT));
    on = 0;
    OK(setsockopt(c, IPPROTO_UDP, UDP_CORK, &on, sizeof(on)));
    EQ(recv(s, big, sizeof(big), 0), 4);
    CHECK(!memcmp(big, "abcd", 4));
    EQ(send(c, "e", 1, MSG_MORE), 1); /* never sent */
    close(c);
    ERR(EAGAIN, recv(s, big, sizeof(big), MSG_DONTWAIT));
}

TEST(ipv6_and_dual_stack)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6}, from;
    socklen_t len = sizeof(a), flen = sizeof(from);
    int s = OK(socket(AF_INET6, SOCK_STREAM, 0)), c = OK(socket(AF_INET, SOCK_STREAM, 0));
    OK(bind(s, (struct sockaddr *)&a, sizeof(a)));
    OK(listen(s, 3));
    OK(getsockname(s, (struct sockaddr *)&a, &len));
    struct sockaddr_in v4 = addr4("127.0.0.1", ntohs(a.sin6_port));
    OK(connect(c, (struct sockaddr *)&v4, sizeof(v4)));
    OK(accept(s, (struct sockaddr *)&from, &flen));
    CHECK(IN6_IS_ADDR_V4MAPPED(&from.sin6_addr));
    int c6 = OK(socket(AF_INET6, SOCK_STREAM, 0));
    a.sin6_addr = in6addr_loopback;
    OK(connect(c6, (struct sockaddr *)&a, sizeof(a)));
    flen = sizeof(from);
    OK(accept(s, (struct sockaddr *)&from, &flen));
    CHECK(IN6_IS_ADDR_LOOPBACK(&from.sin6_addr));
}

TEST(interfaces)
{
    struct ifaddrs *list, *i;
    int v4 = 0, link = 0;
    OK(getifaddrs(&list));
    for (i = list; i; i = i->ifa_next) {
        if (strcmp(i->ifa_name, "lo"))
            continue;
        CHECK(i->ifa_flags & IFF_LOOPBACK);
        link += i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET;
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
            v4 += ((struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    }
    CHECK(link == 1 && v4 == 1);
    freeifaddrs(list);
    EQ(if_nametoindex("lo"), 1);
    struct ifreq r = {.ifr_name = "lo"};
    int s = OK(socket(AF_INET, SOCK_DGRAM, 0));
    OK(ioctl(s, SIOCGIFFLAGS, &r));
    CHECK((r.ifr_flags & (IFF_UP | IFF_LOOPBACK)) == (IFF_UP | IFF_LOOPBACK));
    strcpy(r.ifr_name, "none0");
    ERR(ENODEV, ioctl(s, SIOCGIFFLAGS, &r));
}
