/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink sockets. The only peer is the kernel, which answers NETLINK_ROUTE and has no device events to tell; other
 * protocols are those of a kernel built without them. */
#include "sentry/socket/netlink.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/netns.h"

struct answer {
    struct list link;
    uint32_t size;
    uint8_t data[];
};

static struct list all_socks = LIST_INIT(all_socks); /* (k) */

static bool portid_taken(const struct netlink_sock *s, uint32_t portid)
{
    struct netlink_sock *o;
    list_for_each_entry(o, &all_socks, link)
    {
        if (o != s && o->portid == portid && o->base.protocol == s->base.protocol &&
            o->base.netns == s->base.netns)
            return true;
    }
    return false;
}

static int autobind(struct ctx *ctx, struct netlink_sock *s)
{
    struct task *t = ctx_task_or_null(ctx);
    uint32_t portid = t ? (uint32_t)tgroup_pid_for(t->group, t) : 1;
    if (s->portid)
        return 0;
    /* The process id, or else something that is none. */
    for (uint32_t next = UINT32_MAX - 4096; portid_taken(s, portid); next--)
        portid = next;
    s->portid = portid;
    return 0;
}

static int addr_in(const struct socket_addr *addr, struct sockaddr_nl *ret_nl)
{
    if (addr->size < sizeof(*ret_nl))
        return -EINVAL;
    memcpy(ret_nl, &addr->storage, sizeof(*ret_nl));
    return ret_nl->nl_family == AF_NETLINK ? 0 : -EINVAL;
}

static int nl_bind(struct ctx *ctx, struct socket *base, const struct socket_addr *addr)
{
    struct netlink_sock *s = to_netlink(base);
    struct sockaddr_nl nl;
    int r = addr_in(addr, &nl);
    if (r)
        return r;
    if (s->portid && nl.nl_pid && nl.nl_pid != s->portid)
        return -EINVAL;
    if (!s->portid && nl.nl_pid) {
        if (portid_taken(s, nl.nl_pid))
            return -EADDRINUSE;
        s->portid = nl.nl_pid;
    } else {
        r = autobind(ctx, s);
    }
    if (!r)
        s->groups = nl.nl_groups;
    return r;
}

static int nl_connect(struct ctx *ctx, struct socket *base, const struct socket_addr *addr, bool nonblock)
{
    struct sockaddr_nl nl;
    if (addr->size >= sizeof(sa_family_t) && addr->sa.sa_family == AF_UNSPEC)
        return 0;
    int r = addr_in(addr, &nl);
    if (r)
        return r;
    if (nl.nl_pid || nl.nl_groups)
        return -EPERM; /* only the kernel is there to talk to */
    return autobind(ctx, to_netlink(base));
}

static int nl_getname(struct socket *base, bool peer, struct socket_addr *ret_addr)
{
    struct netlink_sock *s = to_netlink(base);
    struct sockaddr_nl nl = {.nl_family = AF_NETLINK};
    if (!peer) {
        nl.nl_pid = s->portid;
        nl.nl_groups = s->groups;
    }
    memset(ret_addr, 0, sizeof(*ret_addr));
    memcpy(&ret_addr->storage, &nl, sizeof(nl));
    ret_addr->size = sizeof(nl);
    return 0;
}

/* ---- answers ---- */

int netlink_answer(struct netlink_sock *s, const void *p, uint32_t size)
{
    if (s->queue_len >= NETLINK_QUEUE_MAX || s->queue_bytes + size > s->base.rcvbuf) {
        if (!s->no_enobufs) {
            s->base.error = ENOBUFS;
            waitq_wake(&s->base.wait, SOCKET_KEY_IN | EPOLLERR);
        }
        return -ENOBUFS;
    }
    struct answer *a = mem_realloc(NULL, 1, sizeof(*a) + size);
    if (!a)
        return -ENOMEM;
    a->size = size;
    memcpy(a->data, p, size);
    list_add_tail(&s->queue, &a->link);
    s->queue_len++;
    s->queue_bytes += size;
    waitq_wake(&s->base.wait, SOCKET_KEY_IN);
    return 0;
}

static int acknowledge(struct netlink_sock *s, const struct nlmsghdr *h, int err)
{
    uint32_t echo = err && !s->cap_ack ? h->nlmsg_len : (uint32_t)sizeof(*h);
    uint32_t size = (uint32_t)(sizeof(struct nlmsghdr) + sizeof(int) + NLMSG_ALIGN(echo));
    CLEANUP_FREE uint8_t *buf = mem_zalloc(size);
    if (!buf)
        return -ENOMEM;
    struct nlmsghdr *out = (struct nlmsghdr *)buf;
    out->nlmsg_len = size;
    out->nlmsg_type = NLMSG_ERROR;
    out->nlmsg_flags = err && !s->cap_ack ? 0 : NLM_F_CAPPED;
    out->nlmsg_seq = h->nlmsg_seq;
    out->nlmsg_pid = s->portid;
    memcpy(buf + sizeof(*out), &err, sizeof(err));
    memcpy(buf + sizeof(*out) + sizeof(err), h, echo);
    return netlink_answer(s, buf, size);
}

static void handle_all(struct ctx *ctx, struct netlink_sock *s, const uint8_t *p, uint32_t size)
{
    while (size >= sizeof(struct nlmsghdr)) {
        const struct nlmsghdr *h = (const struct nlmsghdr *)p;
        if (h->nlmsg_len < sizeof(*h) || h->nlmsg_len > size)
            return;
        int err = 0;
        if ((h->nlmsg_flags & NLM_F_REQUEST) && h->nlmsg_type >= NLMSG_MIN_TYPE) {
            err = s->base.protocol == NETLINK_ROUTE ? nl_route_handle(ctx, s, h) : -EOPNOTSUPP;
            bool dump = (h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP && !err;
            if (err || ((h->nlmsg_flags & NLM_F_ACK) && !dump))
                (void)!acknowledge(s, h, err); /* no memory: the program will time out, as on Linux */
        }
        uint32_t step = (uint32_t)NLMSG_ALIGN(h->nlmsg_len);
        if (step >= size)
            return;
        p += step;
        size -= step;
    }
}

static ssize_t nl_sendmsg(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    struct netlink_sock *s = to_netlink(base);
    uint64_t size = m->uio->left;
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    if (m->name.size) {
        struct sockaddr_nl nl;
        int r = addr_in(&m->name, &nl);
        if (r)
            return r;
        if (nl.nl_pid || nl.nl_groups)
            return nl.nl_groups ? -EPERM : -ECONNREFUSED;
    }
    if (size > NETLINK_MSG_MAX || size > base->sndbuf)
        return -EMSGSIZE;
    int r = autobind(ctx, s);
    if (r)
        return r;
    CLEANUP_FREE uint8_t *p = mem_zalloc(size + 1);
    if (!p)
        return -ENOBUFS;
    if (size && uio_get(m->uio, p, size) < (ssize_t)size)
        return -EFAULT;
    handle_all(ctx, s, p, (uint32_t)size);
    return (ssize_t)size;
}

static ssize_t nl_recvmsg(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    struct netlink_sock *s = to_netlink(base);
    uint64_t deadline = socket_deadline(base->rcvtimeo_ns, m->flags & MSG_DONTWAIT);
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    while (list_empty(&s->queue) || base->error) {
        int err = socket_take_error(base);
        if (err)
            return err;
        if (!deadline)
            return -EAGAIN;
        int r = WAIT_EVENT_UNTIL(ctx, &base->wait, !list_empty(&s->queue) || base->error, deadline);
        if (r)
            return socket_wait_result(r, base->rcvtimeo_ns);
    }
    struct answer *a = list_first(&s->queue, struct answer, link);
    uint32_t want = (uint32_t)MIN((uint64_t)a->size, m->uio->left);
    if (want < a->size)
        m->out_flags |= MSG_TRUNC;
    ssize_t n = want ? uio_put(m->uio, a->data, want) : 0;
    ssize_t ret = n < (ssize_t)want ? -EFAULT : m->flags & MSG_TRUNC ? (ssize_t)a->size : (ssize_t)want;
    if (m->want_name)
        (void)nl_getname(base, true, &m->name);
    if (base->passcred) {
        m->scm.have_cred = true;
        m->scm.cred = (struct scm_cred){.pid = NULL, .uid = 0, .gid = 0};
    }
    if (s->pktinfo) {
        uint32_t group = 0;
        m->control_level = SOL_NETLINK;
        m->control_type = NETLINK_PKTINFO;
        m->control_size = sizeof(group);
        memcpy(m->control, &group, sizeof(group));
    }
    if (!(m->flags & MSG_PEEK)) {
        list_del(&a->link);
        s->queue_len--;
        s->queue_bytes -= a->size;
        mem_free(a);
    }
    return ret;
}

static uint32_t nl_poll(struct socket *base, struct poll_table *pt)
{
    struct netlink_sock *s = to_netlink(base);
    poll_wait(pt, &base->wait);
    return SOCKET_KEY_OUT | (base->error ? EPOLLERR : 0U) |
           (list_empty(&s->queue) ? 0U : EPOLLIN | EPOLLRDNORM);
}

static int nl_setsockopt(struct ctx *ctx, struct socket *base, int level, int name, const void *value,
                         uint32_t size)
{
    struct netlink_sock *s = to_netlink(base);
    int v;
    if (level != SOL_NETLINK)
        return -ENOPROTOOPT;
    if (size < sizeof(v))
        return -EINVAL;
    memcpy(&v, value, sizeof(v));
    switch (name) {
    case NETLINK_ADD_MEMBERSHIP:
    case NETLINK_DROP_MEMBERSHIP: {
        if (v < 1 || v > 32)
            return -EINVAL;
        uint32_t bit = 1U << (v - 1);
        s->groups = name == NETLINK_ADD_MEMBERSHIP ? s->groups | bit : s->groups & ~bit;
        return 0;
    }
    case NETLINK_PKTINFO:
        s->pktinfo = v != 0;
        return 0;
    case NETLINK_CAP_ACK:
        s->cap_ack = v != 0;
        return 0;
    case NETLINK_EXT_ACK:
        s->ext_ack = v != 0;
        return 0;
    case NETLINK_GET_STRICT_CHK:
        s->strict_check = v != 0;
        return 0;
    case NETLINK_NO_ENOBUFS:
        s->no_enobufs = v != 0;
        return 0;
    default:
        return -ENOPROTOOPT;
    }
}

static int nl_getsockopt(struct ctx *ctx, struct socket *base, int level, int name, void *value,
                         uint32_t *inout_size)
{
    struct netlink_sock *s = to_netlink(base);
    int v;
    if (level != SOL_NETLINK)
        return -ENOPROTOOPT;
    if (*inout_size < sizeof(v))
        return -EINVAL;
    switch (name) {
    case NETLINK_PKTINFO:
        v = s->pktinfo;
        break;
    case NETLINK_CAP_ACK:
        v = s->cap_ack;
        break;
    case NETLINK_EXT_ACK:
        v = s->ext_ack;
        break;
    case NETLINK_GET_STRICT_CHK:
        v = s->strict_check;
        break;
    default:
        return -ENOPROTOOPT;
    }
    memcpy(value, &v, sizeof(v));
    *inout_size = sizeof(v);
    return 0;
}

static int64_t nl_ioctl(struct ctx *ctx, struct socket *base, uint32_t cmd, uint64_t arg)
{
    struct netlink_sock *s = to_netlink(base);
    int32_t v = list_empty(&s->queue) ? 0 : (int32_t)list_first(&s->queue, struct answer, link)->size;
    return cmd == SIOCINQ ? COPY_OUT(ctx, UADDR(arg), &v) : -ENOTTY;
}

static void nl_release(struct socket *base)
{
    struct netlink_sock *s = to_netlink(base);
    while (!list_empty(&s->queue)) {
        struct answer *a = list_first(&s->queue, struct answer, link);
        list_del(&a->link);
        mem_free(a);
    }
    list_del(&s->link);
    waitq_wake_all(&base->wait);
    socket_unref(base);
}

static const struct socket_ops netlink_ops = {
    .bind = nl_bind,
    .connect = nl_connect,
    .getname = nl_getname,
    .sendmsg = nl_sendmsg,
    .recvmsg = nl_recvmsg,
    .poll = nl_poll,
    .setsockopt = nl_setsockopt,
    .getsockopt = nl_getsockopt,
    .ioctl = nl_ioctl,
    .release = nl_release,
};

static int netlink_create(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_socket)
{
    if (type != SOCK_RAW && type != SOCK_DGRAM)
        return -ESOCKTNOSUPPORT;
    if (protocol != NETLINK_ROUTE && protocol != NETLINK_KOBJECT_UEVENT)
        return -EPROTONOSUPPORT;
    struct socket *base = socket_alloc(sizeof(struct netlink_sock), &netlink_ops, ns, AF_NETLINK, type, protocol);
    if (!base)
        return -ENOMEM;
    struct netlink_sock *s = to_netlink(base);
    list_init(&s->queue);
    list_add_tail(&all_socks, &s->link);
    *ret_socket = base;
    return 0;
}

const struct socket_family netlink_family = {.family = AF_NETLINK, .create = netlink_create};
