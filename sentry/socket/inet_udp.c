/* SPDX-License-Identifier: Apache-2.0 */
/* UDP over the loopback. */
#include "sentry/socket/sock_inet.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/socket/netns.h"

enum { UDP_PAYLOAD_MAX = 65507, DGRAM_OVERHEAD = 512 };

struct udp_dgram {
    struct list link;
    struct inet_addr from, to;
    uint64_t stamp_ns;
    uint32_t size, charge;
    uint8_t data[];
};

static void dgram_free(struct udp_dgram *d)
{
    limit_uncharge(LIMIT_KIND_UNIX_BYTES, d->charge);
    mem_free(d);
}

static int udp_connect(struct ctx *ctx, struct socket *base, const struct socket_addr *addr, bool nonblock)
{
    struct inet_sock *s = to_inet(base);
    struct inet_addr to;
    if (addr->size < sizeof(sa_family_t))
        return -EINVAL;
    if (addr->sa.sa_family == AF_UNSPEC) {
        memset(&s->remote, 0, sizeof(s->remote));
        s->u.state = UNIX_CLOSED;
        if (!s->port_chosen) {
            inet_unbind(s);
            memset(&s->local, 0, sizeof(s->local));
        }
        return 0;
    }
    int r = inet_addr_in(s, addr, &to);
    if (!r)
        r = inet_route(s, &to.ip);
    if (!r)
        r = inet_autobind(s);
    if (r)
        return r;
    if (inet_addr_is_any(&to.ip)) {
        struct in6_addr v4 = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};
        to.ip = base->family == AF_INET ? v4 : in6addr_loopback;
    }
    s->local.ip = inet_source(s, &to.ip);
    s->remote = to;
    s->u.state = UNIX_CONNECTED;
    return 0;
}

/* Where m is to go. Binds the sender. */
static int resolve(struct inet_sock *s, const struct socket_msg *m, struct inet_addr *ret_to)
{
    struct socket *base = &s->u.base;
    struct inet_addr to = s->remote;
    int r = 0;
    if (m->name.size)
        r = inet_addr_in(s, &m->name, &to);
    else if (!s->remote.port)
        r = -EDESTADDRREQ;
    if (!r && !to.port)
        r = -EINVAL;
    if (!r)
        r = socket_take_error(base);
    if (!r && (base->shut & SOCKET_SHUT_WR))
        r = -EPIPE;
    if (!r)
        r = inet_route(s, &to.ip);
    if (!r)
        r = inet_autobind(s);
    if (r)
        return r;
    if (inet_addr_is_any(&to.ip)) {
        struct in6_addr v4 = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};
        to.ip = base->family == AF_INET ? v4 : in6addr_loopback;
    }
    *ret_to = to;
    return 0;
}

/* Reads a datagram's data. Parks. Return: 0, −ENOBUFS, −EFAULT. */
static int dgram_new(struct uio *u, uint64_t size, struct udp_dgram **ret_dgram)
{
    uint32_t charge = (uint32_t)size + DGRAM_OVERHEAD;
    if (limit_charge(LIMIT_KIND_UNIX_BYTES, charge))
        return -ENOBUFS;
    struct udp_dgram *d = mem_realloc(NULL, 1, sizeof(*d) + size);
    if (!d) {
        limit_uncharge(LIMIT_KIND_UNIX_BYTES, charge);
        return -ENOBUFS;
    }
    *d = (struct udp_dgram){.size = (uint32_t)size, .charge = charge};
    if (size && uio_get(u, d->data, size) < (ssize_t)size) {
        dgram_free(d);
        return -EFAULT;
    }
    *ret_dgram = d;
    return 0;
}

static void deliver(struct inet_sock *s, OWNS struct udp_dgram *d)
{
    struct socket *base = &s->u.base;
    struct inet_sock *dst = inet_find(base->netns, SOCK_DGRAM, &d->to, &d->from);
    if (!dst) {
        dgram_free(d);
        if (s->remote.port) { /* port unreachable comes back to connected sockets */
            base->error = ECONNREFUSED;
            waitq_wake(&base->wait, EPOLLERR | SOCKET_KEY_IN);
        }
        return;
    }
    if (dst->dgram_bytes + d->charge > dst->u.base.rcvbuf || (dst->u.base.shut & SOCKET_SHUT_RD)) {
        dgram_free(d); /* lost, as datagrams are */
        return;
    }
    if (dst->u.base.timestamp)
        d->stamp_ns = host_realtime_ns();
    list_add_tail(&dst->dgrams, &d->link);
    dst->dgram_bytes += d->charge;
    waitq_wake(&dst->u.base.wait, SOCKET_KEY_IN);
}

static void drop_held(struct inet_sock *s)
{
    if (s->held)
        dgram_free(s->held);
    s->held = NULL;
}

/* Appends d to the datagram that is held; what does not work loses that one, too. */
static int append(struct inet_sock *s, OWNS struct udp_dgram *d)
{
    struct udp_dgram *h = s->held;
    uint64_t size = (uint64_t)h->size + d->size;
    int r = size > UDP_PAYLOAD_MAX ? -EMSGSIZE : 0;
    if (!r) {
        h = mem_realloc(h, 1, sizeof(*h) + size);
        if (h)
            s->held = h;
        else
            r = -ENOBUFS;
    }
    if (r) {
        dgram_free(d);
        drop_held(s);
        return r;
    }
    memcpy(h->data + h->size, d->data, d->size);
    h->size = (uint32_t)size;
    h->charge += d->charge;
    mem_free(d); /* its charge is h's */
    return 0;
}

void inet_udp_set_cork(struct inet_sock *s, bool on)
{
    struct udp_dgram *d = s->held;
    s->cork = on;
    if (!on && d) {
        s->held = NULL;
        deliver(s, d);
    }
}

/* While a datagram is held, all that is sent belongs to it, whatever address comes with it. Source: udp(7), UDP_CORK. */
static ssize_t udp_sendmsg(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    struct inet_sock *s = to_inet(base);
    struct inet_addr to;
    struct udp_dgram *d;
    uint64_t size = m->uio->left;
    bool resolved = !s->held;
    if (size > 0xffff)
        return -EMSGSIZE;
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    int r = resolved ? resolve(s, m, &to) : 0;
    if (!r && size > UDP_PAYLOAD_MAX)
        r = -EMSGSIZE;
    if (r)
        return r;
    r = dgram_new(m->uio, size, &d);
    if (r) {
        drop_held(s);
        return r;
    }
    /* What was held before the data was read may have been sent meanwhile, and the other way round. */
    if (s->held) {
        r = append(s, d);
    } else {
        if (!resolved)
            r = resolve(s, m, &to);
        if (r) {
            dgram_free(d);
            return r;
        }
        d->to = to;
        d->from = s->local;
        d->from.ip = inet_source(s, &to.ip);
        s->held = d;
    }
    if (!r && !(m->flags & MSG_MORE) && !s->cork) {
        d = s->held;
        s->held = NULL;
        deliver(s, d);
    }
    return r ? r : (ssize_t)size;
}

static bool recv_settled(const struct inet_sock *s)
{
    return !list_empty(&s->dgrams) || s->u.base.error || (s->u.base.shut & SOCKET_SHUT_RD);
}

static ssize_t udp_recvmsg(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    struct inet_sock *s = to_inet(base);
    uint64_t deadline = socket_deadline(base->rcvtimeo_ns, m->flags & MSG_DONTWAIT);
    m->name.size = 0;
    if (m->flags & (MSG_OOB | MSG_ERRQUEUE))
        return m->flags & MSG_ERRQUEUE ? -EAGAIN : -EOPNOTSUPP;
    while (list_empty(&s->dgrams)) {
        int err = socket_take_error(base);
        if (err)
            return err;
        if (base->shut & SOCKET_SHUT_RD)
            return deadline ? 0 : -EAGAIN;
        if (!deadline)
            return -EAGAIN;
        int r = WAIT_EVENT_UNTIL(ctx, &base->wait, recv_settled(s), deadline);
        if (r)
            return socket_wait_result(r, base->rcvtimeo_ns);
    }
    struct udp_dgram *d = list_first(&s->dgrams, struct udp_dgram, link);
    uint32_t want = (uint32_t)MIN((uint64_t)d->size, m->uio->left);
    if (want < d->size)
        m->out_flags |= MSG_TRUNC;
    if (m->want_name)
        inet_addr_out(s, &d->from, &m->name);
    m->scm.stamp_ns = d->stamp_ns;
    ssize_t n = want ? uio_put(m->uio, d->data, want) : 0;
    ssize_t ret = m->flags & MSG_TRUNC ? (ssize_t)d->size : (ssize_t)want;
    if (n < (ssize_t)want)
        ret = -EFAULT;
    if (!(m->flags & MSG_PEEK)) {
        list_del(&d->link);
        s->dgram_bytes -= d->charge;
        dgram_free(d);
    }
    return ret;
}

static uint32_t udp_poll(struct socket *base, struct poll_table *pt)
{
    struct inet_sock *s = to_inet(base);
    uint32_t mask = SOCKET_KEY_OUT;
    poll_wait(pt, &base->wait);
    if (base->error)
        mask |= EPOLLERR;
    if (base->shut & SOCKET_SHUT_RD)
        mask |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
    if (base->shut == SOCKET_SHUT_BOTH)
        mask |= EPOLLHUP;
    if (!list_empty(&s->dgrams))
        mask |= EPOLLIN | EPOLLRDNORM;
    return mask;
}

static int udp_shutdown(struct socket *base, int how)
{
    if (to_inet(base)->u.state != UNIX_CONNECTED)
        return -ENOTCONN;
    base->shut |= (uint8_t)how;
    unix_sock_state_change(to_unix(base));
    return 0;
}

static void udp_release(struct socket *base)
{
    struct inet_sock *s = to_inet(base);
    inet_unbind(s);
    while (!list_empty(&s->dgrams)) {
        struct udp_dgram *d = list_first(&s->dgrams, struct udp_dgram, link);
        list_del(&d->link);
        dgram_free(d);
    }
    s->dgram_bytes = 0;
    drop_held(s);
    base->shut = SOCKET_SHUT_BOTH;
    unix_sock_state_change(&s->u);
    socket_unref(base);
}

static int64_t udp_ioctl(struct ctx *ctx, struct socket *base, uint32_t cmd, uint64_t arg)
{
    struct inet_sock *s = to_inet(base);
    int32_t v = 0;
    if (cmd == SIOCINQ && !list_empty(&s->dgrams))
        v = (int32_t)list_first(&s->dgrams, struct udp_dgram, link)->size;
    if (cmd == SIOCINQ || cmd == SIOCOUTQ) /* what is sent is received at once */
        return COPY_OUT(ctx, UADDR(arg), &v);
    return -ENOTTY;
}

const struct socket_ops inet_udp_ops = {
    .bind = sock_inet_bind,
    .connect = udp_connect,
    .getname = sock_inet_getname,
    .sendmsg = udp_sendmsg,
    .recvmsg = udp_recvmsg,
    .poll = udp_poll,
    .shutdown = udp_shutdown,
    .setsockopt = sock_inet_setsockopt,
    .getsockopt = sock_inet_getsockopt,
    .ioctl = udp_ioctl,
    .release = udp_release,
    .destroy = unix_sock_destroy,
};
