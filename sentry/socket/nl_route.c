/* SPDX-License-Identifier: Apache-2.0 */
/* rtnetlink: what can be asked of a namespace that has only a loopback link. */
#include "sentry/socket/netlink.h"

#include <linux/capability.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/socket/netns.h"

enum { LO_INDEX = 1, LO_MTU = 65536 };

/* Starts a message; the length is filled in by msg_end. Return: its offset. */
static size_t msg_begin(struct buf *b, const struct netlink_sock *s, const struct nlmsghdr *req, uint16_t type,
                        uint16_t flags)
{
    size_t at = b->size;
    struct nlmsghdr h = {.nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = req->nlmsg_seq,
                         .nlmsg_pid = s->portid};
    buf_append(b, &h, sizeof(h));
    return at;
}

static void msg_end(struct buf *b, size_t at)
{
    uint32_t len = (uint32_t)(b->size - at);
    static const char pad[NLMSG_ALIGNTO];
    buf_append(b, pad, NLMSG_ALIGN(len) - len);
    if (!b->failed)
        memcpy(b->data + at, &len, sizeof(len));
}

static void put_attr(struct buf *b, uint16_t type, const void *p, size_t size)
{
    static const char pad[RTA_ALIGNTO];
    struct rtattr a = {.rta_len = (unsigned short)RTA_LENGTH(size), .rta_type = type};
    buf_append(b, &a, sizeof(a));
    buf_append(b, p, size);
    buf_append(b, pad, RTA_ALIGN(size) - size);
}

static void put_u32(struct buf *b, uint16_t type, uint32_t v)
{
    put_attr(b, type, &v, sizeof(v));
}

static void put_u8(struct buf *b, uint16_t type, uint8_t v)
{
    put_attr(b, type, &v, sizeof(v));
}

static void put_link(struct buf *b, struct netlink_sock *s, const struct nlmsghdr *req, uint16_t flags)
{
    static const uint8_t no_mac[6];
    bool up = s->base.netns->lo_up;
    struct rtnl_link_stats stats = {0};
    struct rtnl_link_stats64 stats64 = {0};
    struct ifinfomsg i = {.ifi_family = AF_UNSPEC, .ifi_type = ARPHRD_LOOPBACK, .ifi_index = LO_INDEX};
    i.ifi_flags = IFF_LOOPBACK | (up ? IFF_UP | IFF_RUNNING | 1U << 16 /* IFF_LOWER_UP */ : 0U);
    size_t at = msg_begin(b, s, req, RTM_NEWLINK, flags);
    buf_append(b, &i, sizeof(i));
    put_attr(b, IFLA_IFNAME, "lo", 3);
    put_u32(b, IFLA_TXQLEN, 1000);
    put_u8(b, IFLA_OPERSTATE, up ? 0 : 2); /* IF_OPER_UNKNOWN, IF_OPER_DOWN */
    put_u8(b, IFLA_LINKMODE, 0);
    put_u32(b, IFLA_MTU, LO_MTU);
    put_u32(b, IFLA_GROUP, 0);
    put_u32(b, IFLA_PROMISCUITY, 0);
    put_u32(b, IFLA_NUM_TX_QUEUES, 1);
    put_u32(b, IFLA_NUM_RX_QUEUES, 1);
    put_u8(b, IFLA_CARRIER, 1);
    put_attr(b, IFLA_QDISC, up ? "noqueue" : "noop", up ? 8 : 5);
    put_attr(b, IFLA_ADDRESS, no_mac, sizeof(no_mac));
    put_attr(b, IFLA_BROADCAST, no_mac, sizeof(no_mac));
    put_attr(b, IFLA_STATS64, &stats64, sizeof(stats64));
    put_attr(b, IFLA_STATS, &stats, sizeof(stats));
    msg_end(b, at);
}

static void put_addr4(struct buf *b, struct netlink_sock *s, const struct nlmsghdr *req)
{
    uint32_t ip = htonl(INADDR_LOOPBACK);
    struct ifa_cacheinfo ci = {.ifa_prefered = UINT32_MAX, .ifa_valid = UINT32_MAX};
    struct ifaddrmsg i = {.ifa_family = AF_INET, .ifa_prefixlen = 8, .ifa_flags = IFA_F_PERMANENT,
                          .ifa_scope = RT_SCOPE_HOST, .ifa_index = LO_INDEX};
    size_t at = msg_begin(b, s, req, RTM_NEWADDR, NLM_F_MULTI);
    buf_append(b, &i, sizeof(i));
    put_attr(b, IFA_ADDRESS, &ip, sizeof(ip));
    put_attr(b, IFA_LOCAL, &ip, sizeof(ip));
    put_attr(b, IFA_LABEL, "lo", 3);
    put_u32(b, IFA_FLAGS, IFA_F_PERMANENT);
    put_attr(b, IFA_CACHEINFO, &ci, sizeof(ci));
    msg_end(b, at);
}

static void put_addr6(struct buf *b, struct netlink_sock *s, const struct nlmsghdr *req)
{
    struct ifa_cacheinfo ci = {.ifa_prefered = UINT32_MAX, .ifa_valid = UINT32_MAX};
    struct ifaddrmsg i = {.ifa_family = AF_INET6, .ifa_prefixlen = 128, .ifa_flags = IFA_F_PERMANENT,
                          .ifa_scope = RT_SCOPE_HOST, .ifa_index = LO_INDEX};
    size_t at = msg_begin(b, s, req, RTM_NEWADDR, NLM_F_MULTI);
    buf_append(b, &i, sizeof(i));
    put_attr(b, IFA_ADDRESS, &in6addr_loopback, sizeof(in6addr_loopback));
    put_attr(b, IFA_CACHEINFO, &ci, sizeof(ci));
    put_u32(b, IFA_FLAGS, IFA_F_PERMANENT);
    msg_end(b, at);
}

/* Sends what a dump has collected (nothing is fine), then the end mark in a datagram of its own. */
static int finish_dump(struct netlink_sock *s, const struct nlmsghdr *req, struct buf *b)
{
    int r = buf_error(b);
    if (!r && b->size)
        r = netlink_answer(s, b->data, (uint32_t)b->size);
    if (r)
        return r == -ENOBUFS ? 0 : r; /* overflow is reported by the socket's error */
    buf_reset(b);
    int32_t status = 0;
    size_t at = msg_begin(b, s, req, NLMSG_DONE, NLM_F_MULTI);
    buf_append(b, &status, sizeof(status));
    msg_end(b, at);
    r = buf_error(b);
    if (!r)
        r = netlink_answer(s, b->data, (uint32_t)b->size);
    return r == -ENOBUFS ? 0 : r;
}

static uint8_t family_of(const struct nlmsghdr *h)
{
    return h->nlmsg_len > NLMSG_HDRLEN ? *(const uint8_t *)NLMSG_DATA(h) : AF_UNSPEC;
}

/* Whether the attributes of a link request name something else than lo. */
static bool names_other_link(const struct nlmsghdr *h)
{
    struct ifinfomsg i;
    if (h->nlmsg_len < NLMSG_LENGTH(sizeof(i)))
        return true;
    memcpy(&i, NLMSG_DATA(h), sizeof(i));
    if (i.ifi_index)
        return i.ifi_index != LO_INDEX;
    const uint8_t *p = (const uint8_t *)h + NLMSG_LENGTH(sizeof(i));
    size_t left = h->nlmsg_len - NLMSG_LENGTH(sizeof(i));
    while (left >= sizeof(struct rtattr)) {
        struct rtattr a;
        memcpy(&a, p, sizeof(a));
        if (a.rta_len < sizeof(a) || a.rta_len > left)
            return true;
        if (a.rta_type == IFLA_IFNAME)
            return strncmp((const char *)p + sizeof(a), "lo", MIN((size_t)a.rta_len - sizeof(a), (size_t)3)) != 0;
        size_t step = RTA_ALIGN(a.rta_len);
        if (step >= left)
            break;
        p += step;
        left -= step;
    }
    return true;
}

static int get_link(struct netlink_sock *s, const struct nlmsghdr *h)
{
    CLEANUP_BUF struct buf b = {0};
    if ((h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) {
        put_link(&b, s, h, NLM_F_MULTI);
        return finish_dump(s, h, &b);
    }
    if (names_other_link(h))
        return -ENODEV;
    put_link(&b, s, h, 0);
    int r = buf_error(&b);
    if (!r)
        r = netlink_answer(s, b.data, (uint32_t)b.size);
    return r == -ENOBUFS ? 0 : r;
}

static int get_addr(struct netlink_sock *s, const struct nlmsghdr *h)
{
    CLEANUP_BUF struct buf b = {0};
    uint8_t family = family_of(h);
    if ((h->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
        return -EOPNOTSUPP;
    const struct netns *ns = s->base.netns;
    if ((ns->lo_up || ns->lo_has_addr4) && (family == AF_UNSPEC || family == AF_INET))
        put_addr4(&b, s, h);
    if (ns->lo_up && (family == AF_UNSPEC || family == AF_INET6))
        put_addr6(&b, s, h);
    return finish_dump(s, h, &b);
}

/* The attribute of that type behind a header of header_size bytes, of exactly size bytes. Return: it, or NULL. */
static const void *find_attr(const struct nlmsghdr *h, size_t header_size, uint16_t type, size_t size)
{
    size_t at = NLMSG_ALIGN(NLMSG_HDRLEN + header_size);
    while (at + sizeof(struct rtattr) <= h->nlmsg_len) {
        const uint8_t *p = (const uint8_t *)h + at;
        struct rtattr a;
        memcpy(&a, p, sizeof(a));
        if (a.rta_len < sizeof(a) || a.rta_len > h->nlmsg_len - at)
            return NULL;
        if (a.rta_type == type)
            return a.rta_len == RTA_LENGTH(size) ? p + RTA_LENGTH(0) : NULL;
        at += RTA_ALIGN(a.rta_len);
    }
    return NULL;
}

/* The loopback link can be given the address that it has when it is up, and no other. */
static int new_addr(struct netlink_sock *s, const struct nlmsghdr *h)
{
    struct netns *ns = s->base.netns;
    struct ifaddrmsg i;
    uint32_t ip;
    if (h->nlmsg_len < NLMSG_LENGTH(sizeof(i)))
        return -EINVAL;
    memcpy(&i, NLMSG_DATA(h), sizeof(i));
    if (i.ifa_index != LO_INDEX)
        return -ENODEV;
    const void *local = find_attr(h, sizeof(i), IFA_LOCAL, sizeof(ip));
    if (i.ifa_family != AF_INET || i.ifa_prefixlen != 8 || !local)
        return -EOPNOTSUPP;
    memcpy(&ip, local, sizeof(ip));
    if (ip != htonl(INADDR_LOOPBACK))
        return -EOPNOTSUPP;
    if ((ns->lo_up || ns->lo_has_addr4) && ((h->nlmsg_flags & NLM_F_EXCL) || !(h->nlmsg_flags & NLM_F_REPLACE)))
        return -EEXIST;
    ns->lo_has_addr4 = true;
    return 0;
}

/* Up and down is all that can be changed of the loopback link. */
static int new_link(struct netlink_sock *s, const struct nlmsghdr *h)
{
    struct ifinfomsg i;
    if (names_other_link(h))
        return h->nlmsg_flags & NLM_F_CREATE ? -EOPNOTSUPP : -ENODEV;
    if (h->nlmsg_flags & NLM_F_EXCL)
        return -EEXIST;
    memcpy(&i, NLMSG_DATA(h), sizeof(i));
    if (i.ifi_change & ~(unsigned)IFF_UP)
        return -EOPNOTSUPP;
    if (i.ifi_change & IFF_UP) {
        s->base.netns->lo_up = i.ifi_flags & IFF_UP;
        s->base.netns->lo_has_addr4 = true;
    }
    return 0;
}

int nl_route_handle(struct ctx *ctx, struct netlink_sock *s, const struct nlmsghdr *h)
{
    CLEANUP_BUF struct buf b = {0};
    switch (h->nlmsg_type) {
    case RTM_NEWADDR:
    case RTM_NEWLINK:
        if (!cred_ns_cap(ctx->cred, s->base.netns->userns, CAP_NET_ADMIN))
            return -EPERM;
        return h->nlmsg_type == RTM_NEWADDR ? new_addr(s, h) : new_link(s, h);
    case RTM_GETLINK:
        return get_link(s, h);
    case RTM_GETADDR:
        return get_addr(s, h);
    case RTM_GETROUTE:
    case RTM_GETNEIGH:
    case RTM_GETRULE:
        /* The main tables are empty; single look-ups find no way. */
        if ((h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP)
            return finish_dump(s, h, &b);
        return h->nlmsg_type == RTM_GETROUTE ? -ENETUNREACH : -ENOENT;
    default:
        return -EOPNOTSUPP;
    }
}
