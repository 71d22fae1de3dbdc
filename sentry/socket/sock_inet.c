/* SPDX-License-Identifier: Apache-2.0 */
/* Internet sockets over the loopback only: addresses, ports, creation. Everything but 127.0.0.0/8 and ::1 is unreachable,
 * as on a machine without any network. */
#include "sentry/socket/sock_inet.h"

#include <linux/capability.h>
#include <linux/sockios.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/netns.h"

/* ---- addresses ---- */

static const struct in6_addr ip_any;

bool inet_addr_is_any(const struct in6_addr *ip)
{
    return !memcmp(ip, &ip_any, sizeof(*ip)) ||
           (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr32[3] == 0);
}

static struct in6_addr map_v4(uint32_t be)
{
    struct in6_addr ip = {0};
    ip.s6_addr32[2] = htonl(0xffff);
    ip.s6_addr32[3] = be;
    return ip;
}

static bool is_loopback(const struct in6_addr *ip)
{
    if (IN6_IS_ADDR_V4MAPPED(ip))
        return ntohl(ip->s6_addr32[3]) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(ip);
}

int inet_addr_in(const struct inet_sock *s, const struct socket_addr *addr, struct inet_addr *ret_addr)
{
    if (s->u.base.family == AF_INET) {
        struct sockaddr_in in;
        if (addr->size < sizeof(in))
            return -EINVAL;
        memcpy(&in, &addr->storage, sizeof(in));
        if (in.sin_family != AF_INET && (in.sin_family != AF_UNSPEC || in.sin_addr.s_addr != INADDR_ANY))
            return -EAFNOSUPPORT;
        ret_addr->ip = in.sin_addr.s_addr ? map_v4(in.sin_addr.s_addr) : ip_any;
        ret_addr->port = ntohs(in.sin_port);
        return 0;
    }
    struct sockaddr_in6 in6;
    if (addr->size < 24) /* without the scope, as old programs pass it */
        return -EINVAL;
    memset(&in6, 0, sizeof(in6));
    memcpy(&in6, &addr->storage, MIN((size_t)addr->size, sizeof(in6)));
    if (in6.sin6_family != AF_INET6)
        return -EAFNOSUPPORT;
    ret_addr->ip = inet_addr_is_any(&in6.sin6_addr) ? ip_any : in6.sin6_addr;
    ret_addr->port = ntohs(in6.sin6_port);
    return 0;
}

void inet_addr_out(const struct inet_sock *s, const struct inet_addr *a, struct socket_addr *ret_addr)
{
    memset(ret_addr, 0, sizeof(*ret_addr));
    if (s->u.base.family == AF_INET) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(a->port)};
        in.sin_addr.s_addr = a->ip.s6_addr32[3];
        memcpy(&ret_addr->storage, &in, sizeof(in));
        ret_addr->size = sizeof(in);
        return;
    }
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(a->port), .sin6_addr = a->ip};
    memcpy(&ret_addr->storage, &in6, sizeof(in6));
    ret_addr->size = sizeof(in6);
}

int inet_route(const struct inet_sock *s, const struct in6_addr *ip)
{
    if (!s->u.base.netns->lo_up || !(is_loopback(ip) || inet_addr_is_any(ip)))
        return -ENETUNREACH;
    if (s->v6only && IN6_IS_ADDR_V4MAPPED(ip))
        return -ENETUNREACH;
    return 0;
}

struct in6_addr inet_source(const struct inet_sock *s, const struct in6_addr *ip)
{
    if (!inet_addr_is_any(&s->local.ip))
        return s->local.ip;
    return IN6_IS_ADDR_V4MAPPED(ip) ? map_v4(htonl(INADDR_LOOPBACK)) : in6addr_loopback;
}

/* ---- ports ---- */

static struct inet_ports *ports_of(struct netns *ns)
{
    if (ns->ports)
        return ns->ports;
    struct inet_ports *p = NEW(struct inet_ports);
    if (!p)
        return NULL;
    for (unsigned i = 0; i < INET_BUCKETS; i++)
        list_init(&p->buckets[i]);
    uint16_t start;
    host_random(&start, sizeof(start));
    p->next = INET_PORT_FIRST + start % (INET_PORT_LAST - INET_PORT_FIRST + 1);
    ns->ports = p;
    return p;
}

void sock_inet_ports_free(struct inet_ports *p)
{
    mem_free(p);
}

/* Whether sockets bound to a and b could receive the same traffic. */
static bool overlap(const struct inet_sock *a, const struct in6_addr *a_ip, const struct inet_sock *b)
{
    bool a_v4 = a->u.base.family == AF_INET || IN6_IS_ADDR_V4MAPPED(a_ip);
    bool b_v4 = b->u.base.family == AF_INET || IN6_IS_ADDR_V4MAPPED(&b->local.ip);
    bool a_any = inet_addr_is_any(a_ip), b_any = inet_addr_is_any(&b->local.ip);
    /* A dual-stack wildcard meets everything; others only their own family. */
    if (a_v4 != b_v4) {
        const struct inet_sock *six = a_v4 ? b : a;
        return (a_v4 ? b_any : a_any) && !six->v6only;
    }
    return a_any || b_any || IN6_ARE_ADDR_EQUAL(a_ip, &b->local.ip);
}

static bool may_share(const struct inet_sock *a, const struct inet_sock *b)
{
    const struct socket *x = &a->u.base, *y = &b->u.base;
    if (x->reuseport && y->reuseport && a->uid == b->uid)
        return true;
    return x->reuseaddr && y->reuseaddr && !(x->type == SOCK_STREAM && (x->listening || y->listening));
}

static bool port_free(struct inet_ports *p, const struct inet_sock *s, const struct in6_addr *ip, uint16_t port)
{
    struct inet_sock *o;
    list_for_each_entry(o, &p->buckets[port % INET_BUCKETS], port_link)
    {
        /* Connections keep their listener's port without being in the way of a new listener with SO_REUSEADDR. */
        if (o != s && o->local.port == port && o->u.base.type == s->u.base.type && overlap(s, ip, o) &&
            !may_share(s, o))
            return false;
    }
    return true;
}

static void take_port(struct inet_ports *p, struct inet_sock *s, uint16_t port)
{
    s->local.port = port;
    list_add(&p->buckets[port % INET_BUCKETS], &s->port_link);
}

static int choose_port(struct inet_ports *p, struct inet_sock *s, const struct in6_addr *ip)
{
    for (uint32_t i = INET_PORT_FIRST; i <= INET_PORT_LAST; i++) {
        uint16_t port = (uint16_t)p->next;
        p->next = p->next == INET_PORT_LAST ? INET_PORT_FIRST : p->next + 1;
        if (port_free(p, s, ip, port)) {
            take_port(p, s, port);
            return 0;
        }
    }
    return -EADDRINUSE;
}

int inet_autobind(struct inet_sock *s)
{
    if (s->local.port)
        return 0;
    struct inet_ports *p = ports_of(s->u.base.netns);
    if (!p)
        return -ENOMEM;
    return choose_port(p, s, &s->local.ip) ? -EAGAIN : 0;
}

void inet_unbind(struct inet_sock *s)
{
    list_del(&s->port_link);
    s->local.port = 0;
}

/* How well s fits: 0 not at all. */
static int match(const struct inet_sock *s, const struct inet_addr *to, const struct inet_addr *from)
{
    bool to_v4 = IN6_IS_ADDR_V4MAPPED(&to->ip);
    int score = 1;
    if (s->u.base.family == AF_INET ? !to_v4 : to_v4 && s->v6only)
        return 0;
    if (!inet_addr_is_any(&s->local.ip)) {
        if (!IN6_ARE_ADDR_EQUAL(&s->local.ip, &to->ip))
            return 0;
        score += 2;
    }
    if (s->u.base.family == AF_INET || !to_v4)
        score++;
    if (s->u.base.type == SOCK_STREAM)
        return s->u.state == UNIX_LISTENING ? score : 0;
    if (s->remote.port) {
        if (s->remote.port != from->port || !IN6_ARE_ADDR_EQUAL(&s->remote.ip, &from->ip))
            return 0;
        score += 4;
    }
    return score;
}

struct inet_sock *inet_find(struct netns *ns, int type, const struct inet_addr *to, const struct inet_addr *from)
{
    struct inet_sock *s, *best = NULL;
    int best_score = 0;
    if (!ns->ports)
        return NULL;
    list_for_each_entry(s, &ns->ports->buckets[to->port % INET_BUCKETS], port_link)
    {
        if (s->local.port != to->port || s->u.base.type != type)
            continue;
        int score = match(s, to, from);
        /* Of equals that share a port the one with the shorter queue. */
        if (score > best_score || (score && score == best_score && best->u.pending_len > s->u.pending_len)) {
            best = s;
            best_score = score;
        }
    }
    return best;
}

int sock_inet_bind(struct ctx *ctx, struct socket *base, const struct socket_addr *addr)
{
    struct inet_sock *s = to_inet(base);
    struct inet_addr a;
    int r = inet_addr_in(s, addr, &a);
    if (r)
        return r;
    if (!inet_addr_is_any(&a.ip) && inet_route(s, &a.ip))
        return -EADDRNOTAVAIL;
    if (s->v6only && IN6_IS_ADDR_V4MAPPED(&a.ip))
        return -EINVAL;
    if (a.port && a.port < INET_PORT_PRIVILEGED && !cred_ns_cap(ctx->cred, base->netns->userns, CAP_NET_BIND_SERVICE))
        return -EACCES;
    if (s->local.port || s->u.state != UNIX_CLOSED)
        return -EINVAL;
    struct inet_ports *p = ports_of(base->netns);
    if (!p)
        return -ENOMEM;
    s->uid = ctx->cred->euid;
    if (!a.port) {
        r = choose_port(p, s, &a.ip);
    } else if (!port_free(p, s, &a.ip, a.port)) {
        r = -EADDRINUSE;
    } else {
        take_port(p, s, a.port);
        s->port_chosen = true;
    }
    if (!r)
        s->local.ip = a.ip;
    return r;
}

int sock_inet_getname(struct socket *base, bool peer, struct socket_addr *ret_addr)
{
    struct inet_sock *s = to_inet(base);
    if (peer && (!s->remote.port || s->u.state != UNIX_CONNECTED))
        return -ENOTCONN;
    inet_addr_out(s, peer ? &s->remote : &s->local, ret_addr);
    return 0;
}

/* ---- creation ---- */

static int inet_create(int family, struct netns *ns, int type, int protocol, struct socket **ret_socket)
{
    const struct socket_ops *ops;
    if (protocol < 0 || protocol >= IPPROTO_MAX)
        return -EINVAL;
    if (type == SOCK_STREAM) {
        if (protocol && protocol != IPPROTO_TCP)
            return -EPROTONOSUPPORT;
        protocol = IPPROTO_TCP;
        ops = &inet_tcp_ops;
    } else if (type == SOCK_DGRAM) {
        if (protocol && protocol != IPPROTO_UDP)
            return -EPROTONOSUPPORT;
        protocol = IPPROTO_UDP;
        ops = &inet_udp_ops;
    } else if (type == SOCK_RAW && !protocol) {
        return -EPROTONOSUPPORT;
    } else {
        return -ESOCKTNOSUPPORT;
    }
    struct socket *base = socket_alloc(sizeof(struct inet_sock), ops, ns, family, type, protocol);
    if (!base)
        return -ENOMEM;
    struct inet_sock *s = to_inet(base);
    unix_sock_init(&s->u);
    list_init(&s->port_link);
    list_init(&s->dgrams);
    inet_opts_init(s);
    *ret_socket = base;
    return 0;
}

static int create4(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_socket)
{
    return inet_create(AF_INET, ns, type, protocol, ret_socket);
}

static int create6(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_socket)
{
    return inet_create(AF_INET6, ns, type, protocol, ret_socket);
}

const struct socket_family inet_family = {.family = AF_INET, .create = create4};
const struct socket_family inet6_family = {.family = AF_INET6, .create = create6};
