/* SPDX-License-Identifier: Apache-2.0 */
/* Internet sockets without a network: TCP and UDP over the loopback addresses inside the sandbox. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "sentry/socket/socket.h"
#include "sentry/socket/unix_sock.h"

enum {
    INET_BUCKETS = 256,
    INET_PORT_FIRST = 32768, /* net.ipv4.ip_local_port_range */
    INET_PORT_LAST = 60999,
    INET_PORT_PRIVILEGED = 1024,
    INET_OPTS_LEN = 40,      /* stored options, see inet_opt.c */
    INET_BACKLOG_MIN = 128,
};

/* An address of either family: IPv4 ones are mapped (::ffff:a.b.c.d), any is ::. */
struct inet_addr {
    struct in6_addr ip;
    uint16_t port; /* host order; 0: none */
};

struct udp_dgram; /* inet_udp.c */

struct inet_ports {
    struct list buckets[INET_BUCKETS]; /* of inet_sock.port_link, by port */
    uint32_t next;                     /* ephemeral port tried next */
};

/* Streams use the unix socket's queues; datagrams have their own. */
struct inet_sock {
    struct unix_sock u;       /* base is u.base */
    struct inet_addr local, remote; /* (k) remote.port 0: not connected */
    struct list port_link;    /* (k) empty: no port */
    uint32_t uid;             /* (k) who bound it, for SO_REUSEPORT */
    bool port_chosen;         /* (k) by bind, not by the stack */
    bool connect_report;      /* (k) a non-blocking connect is done: the next call says so */
    bool v6only;              /* (k) */
    struct list dgrams;       /* (k) UDP receive queue */
    uint64_t dgram_bytes;     /* (k) */
    struct udp_dgram *held;   /* (k) owned: a datagram that MSG_MORE or UDP_CORK keeps from being sent */
    bool cork;                /* (k) UDP_CORK */
    int opts[INET_OPTS_LEN];  /* (k) */
};

static inline struct inet_sock *to_inet(struct socket *s)
{
    return container_of(to_unix(s), struct inet_sock, u);
}

/* Memory of a namespace's port table; NULL is fine. */
void sock_inet_ports_free(struct inet_ports *p);

/* ---- between the files of this family ---- */

bool inet_addr_is_any(const struct in6_addr *ip);
/* Reads a sockaddr for s. Return: 0, −EINVAL (short), −EAFNOSUPPORT. */
MUST_CHECK int inet_addr_in(const struct inet_sock *s, const struct socket_addr *addr, struct inet_addr *ret_addr);
/* As s's family shows it. */
void inet_addr_out(const struct inet_sock *s, const struct inet_addr *a, struct socket_addr *ret_addr);
/* Whether the namespace can reach ip: loopback while that is up. Return: 0 or −ENETUNREACH. */
MUST_CHECK int inet_route(const struct inet_sock *s, const struct in6_addr *ip);
/* The address that s uses towards ip. */
struct in6_addr inet_source(const struct inet_sock *s, const struct in6_addr *ip);
/* Gives s an ephemeral port if it has none. Return: 0, −EAGAIN (none left), −ENOMEM. */
MUST_CHECK int inet_autobind(struct inet_sock *s);
void inet_unbind(struct inet_sock *s);
/* The socket that takes traffic for to (from from: connected ones only hear their peer). NULL: nobody. Borrowed. */
struct inet_sock *inet_find(struct netns *ns, int type, const struct inet_addr *to, const struct inet_addr *from);

int sock_inet_bind(struct ctx *ctx, struct socket *s, const struct socket_addr *addr);
int sock_inet_getname(struct socket *s, bool peer, struct socket_addr *ret_addr);
int sock_inet_setsockopt(struct ctx *ctx, struct socket *s, int level, int name, const void *value, uint32_t size);
int sock_inet_getsockopt(struct ctx *ctx, struct socket *s, int level, int name, void *value,
                         uint32_t *inout_size);
void inet_opts_init(struct inet_sock *s);
/* UDP_CORK. Switching it off sends what was held. */
void inet_udp_set_cork(struct inet_sock *s, bool on);
/* Requests about interfaces, for sockets of every family. −ENOTTY: none of those. */
int64_t inet_ifioctl(struct ctx *ctx, const struct netns *ns, uint32_t cmd, uint64_t arg);

extern const struct socket_ops inet_tcp_ops, inet_udp_ops;
