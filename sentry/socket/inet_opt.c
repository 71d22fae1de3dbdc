/* SPDX-License-Identifier: Apache-2.0 */
/* Options and interface requests of internet sockets. On a loopback without packets most options have nothing to change:
 * those that only tune transmission are kept and told back; those whose effect a program could miss are refused. */
#include "sentry/socket/sock_inet.h"

#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/netns.h"

#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif
#define LO_MTU 65536

/* A stored integer: its default and the values that are taken. */
struct stored_opt {
    int level, name, initial, min, max;
    bool stream_only;
};

static const struct stored_opt stored[] = {
    {IPPROTO_TCP, TCP_NODELAY, 0, 0, 1, true},
    {IPPROTO_TCP, TCP_CORK, 0, 0, 1, true},
    {IPPROTO_TCP, TCP_QUICKACK, 1, 0, 1, true},
    {IPPROTO_TCP, TCP_KEEPIDLE, 7200, 1, 32767, true},
    {IPPROTO_TCP, TCP_KEEPINTVL, 75, 1, 32767, true},
    {IPPROTO_TCP, TCP_KEEPCNT, 9, 1, 127, true},
    {IPPROTO_TCP, TCP_SYNCNT, 6, 1, 127, true},
    {IPPROTO_TCP, TCP_LINGER2, 60, -1, 120, true},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, 0, 0, 32767, true},
    {IPPROTO_TCP, TCP_WINDOW_CLAMP, 0, 0, INT32_MAX, true},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 0, INT32_MAX, true},
    {IPPROTO_TCP, TCP_MAXSEG, 32741, 88, 32767, true},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0, 0, INT32_MAX, true},
    {IPPROTO_IP, IP_TOS, 0, 0, 255, false},
    {IPPROTO_IP, IP_TTL, 64, 1, 255, false},
    {IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT, 0, IP_PMTUDISC_OMIT, false},
    {IPPROTO_IP, IP_RECVERR, 0, 0, 1, false},
    {IPPROTO_IP, IP_FREEBIND, 0, 0, 1, false},
    {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 0, 0, 1, false},
    {IPPROTO_IP, IP_MULTICAST_TTL, 1, 0, 255, false},
    {IPPROTO_IP, IP_MULTICAST_LOOP, 1, 0, 1, false},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, 64, 0, 255, false},
    {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 1, 0, 255, false},
    {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1, 0, 1, false},
    {IPPROTO_IPV6, IPV6_TCLASS, 0, 0, 255, false},
    {IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_WANT, 0, IPV6_PMTUDISC_OMIT, false},
    {IPPROTO_IPV6, IPV6_RECVERR, 0, 0, 1, false},
    {IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 1, 0, 1, false},
};
_Static_assert(ARRAY_SIZE(stored) <= INET_OPTS_LEN, "room in inet_sock.opts");

void inet_opts_init(struct inet_sock *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(stored); i++)
        s->opts[i] = stored[i].initial;
}

/* Return: index into stored, or −1. */
static int find(const struct inet_sock *s, int level, int name)
{
    if (level == IPPROTO_IPV6 && s->u.base.family != AF_INET6)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(stored); i++) {
        if (stored[i].level == level && stored[i].name == name)
            return stored[i].stream_only && s->u.base.type != SOCK_STREAM ? -1 : (int)i;
    }
    return -1;
}

static bool is_congestion(const struct inet_sock *s, int level, int name)
{
    return level == IPPROTO_TCP && name == TCP_CONGESTION && s->u.base.type == SOCK_STREAM;
}

static bool is_cork(const struct inet_sock *s, int level, int name)
{
    return level == IPPROTO_UDP && name == UDP_CORK && s->u.base.type == SOCK_DGRAM;
}

int sock_inet_setsockopt(struct ctx *ctx, struct socket *base, int level, int name, const void *value,
                         uint32_t size)
{
    struct inet_sock *s = to_inet(base);
    int v = 0;
    if (is_congestion(s, level, name))
        return size >= 5 && !memcmp(value, "cubic", 5) && (size == 5 || !((const char *)value)[5]) ? 0 : -ENOENT;
    if (size >= sizeof(v))
        memcpy(&v, value, sizeof(v));
    else if (size >= 1 && level == IPPROTO_IP)
        v = *(const uint8_t *)value; /* byte-sized values are allowed at this level */
    else
        return -EINVAL;
    if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY && base->family == AF_INET6) {
        if (s->local.port)
            return -EINVAL;
        s->v6only = v != 0;
        return 0;
    }
    if (is_cork(s, level, name)) {
        inet_udp_set_cork(s, v != 0);
        return 0;
    }
    int i = find(s, level, name);
    if (i < 0)
        return -ENOPROTOOPT;
    const struct stored_opt *o = &stored[i];
    if (o->min == 0 && o->max == 1)
        v = v != 0;
    else if (v == -1 && o->level != IPPROTO_TCP)
        v = o->initial;
    if (v < o->min || v > o->max)
        return -EINVAL;
    s->opts[i] = v;
    return 0;
}

static int answer(void *value, uint32_t *inout_size, const void *p, uint32_t size)
{
    *inout_size = MIN(*inout_size, size);
    memcpy(value, p, *inout_size);
    return 0;
}

static int get_tcp_info(const struct inet_sock *s, void *value, uint32_t *inout_size)
{
    struct tcp_info info = {0};
    switch (s->u.state) {
    case UNIX_LISTENING:
        info.tcpi_state = TCP_LISTEN;
        break;
    case UNIX_CONNECTED:
        info.tcpi_state = TCP_ESTABLISHED;
        if (s->u.base.shut & SOCKET_SHUT_RD)
            info.tcpi_state = s->u.base.shut & SOCKET_SHUT_WR ? TCP_LAST_ACK : TCP_CLOSE_WAIT;
        else if (s->u.base.shut & SOCKET_SHUT_WR)
            info.tcpi_state = TCP_FIN_WAIT2;
        break;
    default:
        info.tcpi_state = TCP_CLOSE;
        break;
    }
    info.tcpi_snd_mss = info.tcpi_rcv_mss = 32741;
    info.tcpi_pmtu = LO_MTU;
    info.tcpi_unacked = s->u.state == UNIX_LISTENING ? s->u.pending_len : 0;
    info.tcpi_sacked = s->u.state == UNIX_LISTENING ? s->u.backlog : 0;
    return answer(value, inout_size, &info, sizeof(info));
}

int sock_inet_getsockopt(struct ctx *ctx, struct socket *base, int level, int name, void *value,
                         uint32_t *inout_size)
{
    struct inet_sock *s = to_inet(base);
    int v;
    if (is_congestion(s, level, name))
        return answer(value, inout_size, "cubic\0\0\0\0\0\0\0\0\0\0", 16);
    if (level == IPPROTO_TCP && name == TCP_INFO && base->type == SOCK_STREAM)
        return get_tcp_info(s, value, inout_size);
    if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY && base->family == AF_INET6) {
        v = s->v6only;
        return answer(value, inout_size, &v, sizeof(v));
    }
    if (is_cork(s, level, name)) {
        v = s->cork;
        return answer(value, inout_size, &v, sizeof(v));
    }
    if ((level == IPPROTO_IP && name == IP_MTU) ||
        (level == IPPROTO_IPV6 && name == IPV6_MTU && base->family == AF_INET6)) {
        v = LO_MTU;
        return s->u.state == UNIX_CONNECTED ? answer(value, inout_size, &v, sizeof(v)) : -ENOTCONN;
    }
    int i = find(s, level, name);
    if (i < 0) {
        bool known = level == IPPROTO_IP || level == (base->type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
        return known || base->family == AF_INET6 ? -ENOPROTOOPT : -EOPNOTSUPP;
    }
    return answer(value, inout_size, &s->opts[i], sizeof(int));
}

/* ---- interface requests ---- */

static int64_t get_ifconf(struct ctx *ctx, const struct netns *ns, uint64_t arg)
{
    struct {
        int32_t len, pad;
        uint64_t buf;
    } conf;
    if (COPY_IN(ctx, &conf, UADDR(arg)))
        return -EFAULT;
    struct ifreq r = {.ifr_name = "lo"};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(&r.ifr_addr, &in, sizeof(in));
    int32_t size = ns->lo_up ? (int32_t)sizeof(r) : 0;
    if (conf.buf) {
        if (conf.len < size)
            size = 0;
        if (size && copy_out(ctx, UADDR(conf.buf), &r, sizeof(r)))
            return -EFAULT;
    }
    conf.len = size;
    return COPY_OUT(ctx, UADDR(arg), &conf);
}

/* Answers a request about "lo". Return: 0, −ENODEV (not that interface), −EADDRNOTAVAIL, −ENOTTY, −EPERM. */
static int answer_ifreq(const struct netns *ns, uint32_t cmd, struct ifreq *r)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    r->ifr_name[IFNAMSIZ - 1] = 0;
    if (cmd == SIOCGIFNAME) {
        if (r->ifr_ifindex != 1)
            return -ENODEV;
        strcpy(r->ifr_name, "lo");
        return 0;
    }
    if (strcmp(r->ifr_name, "lo"))
        return -ENODEV;
    switch (cmd) {
    case SIOCGIFFLAGS:
        r->ifr_flags = IFF_LOOPBACK | (ns->lo_up ? IFF_UP | IFF_RUNNING : 0);
        return 0;
    case SIOCGIFINDEX:
        r->ifr_ifindex = 1;
        return 0;
    case SIOCGIFMTU:
        r->ifr_mtu = LO_MTU;
        return 0;
    case SIOCGIFMETRIC:
        r->ifr_metric = 0;
        return 0;
    case SIOCGIFTXQLEN:
        r->ifr_qlen = 1000;
        return 0;
    case SIOCGIFHWADDR:
        memset(&r->ifr_hwaddr, 0, sizeof(r->ifr_hwaddr));
        r->ifr_hwaddr.sa_family = ARPHRD_LOOPBACK;
        return 0;
    case SIOCGIFADDR:
    case SIOCGIFDSTADDR:
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        break;
    case SIOCGIFNETMASK:
        in.sin_addr.s_addr = htonl(0xff000000);
        break;
    case SIOCGIFBRDADDR:
        break;
    default:
        return -ENOTTY;
    }
    if (!ns->lo_up)
        return -EADDRNOTAVAIL;
    memcpy(&r->ifr_addr, &in, sizeof(in));
    return 0;
}

int64_t inet_ifioctl(struct ctx *ctx, const struct netns *ns, uint32_t cmd, uint64_t arg)
{
    struct ifreq r;
    if (cmd == SIOCGIFCONF)
        return get_ifconf(ctx, ns, arg);
    if (cmd < SIOCGIFNAME || cmd > SIOCGIFTXQLEN)
        return -ENOTTY;
    if (COPY_IN(ctx, &r, UADDR(arg)))
        return -EFAULT;
    int e = answer_ifreq(ns, cmd, &r);
    return e ? e : COPY_OUT(ctx, UADDR(arg), &r);
}
