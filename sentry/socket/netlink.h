/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink sockets: messages between programs and the kernel's tables. */
#pragma once

#include <linux/netlink.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "sentry/socket/socket.h"

enum { NETLINK_QUEUE_MAX = 256 /* answers that wait to be read */, NETLINK_MSG_MAX = 32768 };

struct netlink_sock {
    struct socket base;
    uint32_t portid, groups;   /* (k) 0: not bound */
    struct list queue;         /* (k) of answers */
    uint32_t queue_len;
    uint64_t queue_bytes;      /* (k) at most base.rcvbuf */
    struct list link;          /* (k) of all netlink sockets: unique portids */
    bool cap_ack, ext_ack, strict_check, pktinfo, no_enobufs; /* (k) */
};

static inline struct netlink_sock *to_netlink(struct socket *s)
{
    return container_of(s, struct netlink_sock, base);
}

/* Queues one datagram of messages for s. Beyond the buffer's limits it is lost and s hears ENOBUFS. Return: 0, −ENOMEM, −ENOBUFS. */
MUST_CHECK int netlink_answer(struct netlink_sock *s, const void *p, uint32_t size);

/* Handles one message of a NETLINK_ROUTE socket; acknowledges by itself. Return: 0, or −errno for an error message. */
MUST_CHECK int nl_route_handle(struct ctx *ctx, struct netlink_sock *s, const struct nlmsghdr *h);
