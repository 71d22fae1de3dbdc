/* SPDX-License-Identifier: Apache-2.0 */
/* TCP over the loopback: connections are pairs of queues, as for unix streams; names and the ends of connections follow
 * tcp(7). */
#include "sentry/socket/sock_inet.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/sigpipe.h"
#include "sentry/socket/netns.h"

static uint32_t backlog_of(const struct inet_sock *l)
{
    return MAX(l->u.backlog, (uint32_t)INET_BACKLOG_MIN);
}

static bool full(const struct inet_sock *l)
{
    return l->u.pending_len > backlog_of(l);
}

/* A listener for to, with room; waits for it. Return: 0 with a reference; −ECONNREFUSED, −ETIMEDOUT, signals. */
static int find_listener(struct ctx *ctx, struct inet_sock *s, const struct inet_addr *to, bool nonblock,
                         struct inet_sock **ret_listener)
{
    uint64_t deadline = socket_deadline(s->u.base.sndtimeo_ns, nonblock);
    for (;;) {
        struct inet_sock *l = inet_find(s->u.base.netns, SOCK_STREAM, to, &s->local);
        if (!l || (l->u.base.shut & SOCKET_SHUT_RD))
            return -ECONNREFUSED;
        socket_ref(&l->u.base);
        if (!full(l)) {
            *ret_listener = l;
            return 0;
        }
        int r = -ETIMEDOUT;
        if (deadline) {
            r = WAIT_EVENT_UNTIL(ctx, &l->u.peer_wait, l->u.state != UNIX_LISTENING || !full(l), deadline);
            r = socket_wait_result(r, s->u.base.sndtimeo_ns);
        }
        socket_unref(&l->u.base);
        if (r)
            return r == -EAGAIN ? -ETIMEDOUT : r;
    }
}

/* Both ends of a connection to listener l. Cannot park. */
static int join(struct inet_sock *s, struct inet_sock *l, const struct inet_addr *to)
{
    struct socket *base;
    const struct socket_family *f = l->u.base.family == AF_INET ? &inet_family : &inet6_family;
    int r = f->create(NULL, l->u.base.netns, SOCK_STREAM, 0, &base);
    if (r)
        return r;
    struct inet_sock *e = to_inet(base);
    s->local.ip = inet_source(s, &to->ip);
    s->remote = *to;
    e->local = *to;
    e->remote = s->local;
    memcpy(e->opts, l->opts, sizeof(e->opts));
    e->v6only = l->v6only;
    base->sndbuf = l->u.base.sndbuf;
    base->rcvbuf = l->u.base.rcvbuf;
    base->reuseaddr = l->u.base.reuseaddr;
    base->reuseport = l->u.base.reuseport;
    base->keepalive = l->u.base.keepalive;
    unix_sock_set_peer(&s->u, &e->u);
    unix_sock_set_peer(&e->u, &s->u);
    s->u.state = e->u.state = UNIX_CONNECTED;
    s->u.base.shut = 0;
    list_add_tail(&l->u.pending, &e->u.pending_link);
    l->u.pending_len++;
    waitq_wake(&l->u.base.wait, SOCKET_KEY_IN);
    unix_sock_state_change(&s->u);
    return 0;
}

static int connect_now(struct ctx *ctx, struct inet_sock *s, struct inet_addr *to, bool nonblock)
{
    struct inet_sock *l = NULL;
    int r = inet_autobind(s);
    if (r)
        return r;
    r = find_listener(ctx, s, to, nonblock, &l);
    if (!r && s->u.state != UNIX_CLOSED)
        r = -EISCONN; /* another thread was faster */
    if (!r)
        r = join(s, l, to);
    if (l)
        socket_unref(&l->u.base);
    return r;
}

static int tcp_connect(struct ctx *ctx, struct socket *base, const struct socket_addr *addr, bool nonblock)
{
    struct inet_sock *s = to_inet(base);
    struct inet_addr to;
    if (addr->size < sizeof(sa_family_t))
        return -EINVAL;
    if (s->connect_report) { /* the end of a non-blocking connect */
        s->connect_report = false;
        int err = socket_take_error(base);
        return s->u.state == UNIX_CONNECTED ? 0 : err ? err : -ECONNABORTED;
    }
    if (s->u.state != UNIX_CLOSED)
        return s->u.state == UNIX_CONNECTED ? -EISCONN : -EINVAL;
    if (addr->sa.sa_family == AF_UNSPEC)
        return 0;
    int r = inet_addr_in(s, addr, &to);
    if (!r)
        r = inet_route(s, &to.ip);
    if (r)
        return r;
    if (inet_addr_is_any(&to.ip)) { /* "this host" */
        bool v4 = base->family == AF_INET || IN6_IS_ADDR_V4MAPPED(&s->local.ip);
        to.ip = in6addr_loopback;
        if (v4)
            to.ip = (struct in6_addr){{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};
    }
    r = to.port ? connect_now(ctx, s, &to, nonblock) : -ECONNREFUSED;
    if (!nonblock || (r && r != -ECONNREFUSED && r != -ETIMEDOUT))
        return r;
    /* Handshakes take a moment even here: programs expect to be told later. */
    s->connect_report = true;
    if (r) {
        base->error = -r;
        base->shut = SOCKET_SHUT_BOTH; /* until the next try */
        unix_sock_state_change(&s->u);
    }
    return -EINPROGRESS;
}

static int tcp_listen(struct ctx *ctx, struct socket *base, int backlog)
{
    struct inet_sock *s = to_inet(base);
    if (s->u.state == UNIX_CONNECTED)
        return -EINVAL;
    int r = inet_autobind(s);
    if (r)
        return r == -EAGAIN ? -EADDRINUSE : r;
    if (s->u.state != UNIX_LISTENING) {
        /* SO_REUSEADDR lets several bind, but only one listen. */
        struct inet_sock *o;
        list_for_each_entry(o, &base->netns->ports->buckets[s->local.port % INET_BUCKETS], port_link)
        {
            bool same = o->local.port == s->local.port && o->u.base.type == SOCK_STREAM &&
                        o->u.base.family == base->family &&
                        (inet_addr_is_any(&o->local.ip) || inet_addr_is_any(&s->local.ip) ||
                         IN6_ARE_ADDR_EQUAL(&o->local.ip, &s->local.ip));
            if (o != s && same && o->u.state == UNIX_LISTENING &&
                !(o->u.base.reuseport && base->reuseport && o->uid == s->uid))
                return -EADDRINUSE;
        }
    }
    s->u.backlog = (uint32_t)backlog;
    s->u.state = UNIX_LISTENING;
    base->listening = true;
    base->shut = 0;
    return 0;
}

/* Drops connections that nobody accepted. */
static void abort_pending(struct inet_sock *s)
{
    while (!list_empty(&s->u.pending)) {
        struct unix_sock *e = list_first(&s->u.pending, struct unix_sock, pending_link);
        list_del(&e->pending_link);
        s->u.pending_len--;
        if (e->peer) {
            e->peer->base.error = ECONNRESET;
            e->peer->base.shut = SOCKET_SHUT_BOTH;
        }
        e->base.ops->release(&e->base);
    }
    waitq_wake_all(&s->u.peer_wait);
}

static int tcp_shutdown(struct socket *base, int how)
{
    struct inet_sock *s = to_inet(base);
    struct unix_sock *peer = s->u.peer;
    if (s->u.state == UNIX_LISTENING) {
        if (how & SOCKET_SHUT_RD) { /* stops listening; listen() works again */
            s->u.state = UNIX_CLOSED;
            base->listening = false;
            abort_pending(s);
            if (!s->port_chosen)
                inet_unbind(s);
            base->shut |= SOCKET_SHUT_RD;
            unix_sock_state_change(&s->u);
        }
        return 0;
    }
    base->shut |= (uint8_t)how;
    if (s->u.state != UNIX_CONNECTED) { /* an error, yet pollers and readers see the end */
        unix_sock_state_change(&s->u);
        return -ENOTCONN;
    }
    if (peer && (how & SOCKET_SHUT_WR)) {
        peer->base.shut |= SOCKET_SHUT_RD;
        unix_sock_state_change(peer);
    }
    unix_sock_state_change(&s->u);
    return 0;
}

static void tcp_release(struct socket *base)
{
    struct inet_sock *s = to_inet(base);
    struct unix_sock *u = &s->u, *peer = u->peer;
    bool reset = u->queue_len > 0 || (base->linger && base->linger_s == 0);
    u->dead = true;
    base->shut = SOCKET_SHUT_BOTH;
    if (peer && !peer->dead) {
        if (reset) { /* unread data is lost: the peer is told by a reset */
            peer->base.error = peer->base.shut & SOCKET_SHUT_RD ? EPIPE : ECONNRESET;
            peer->base.shut = SOCKET_SHUT_BOTH;
        }
        peer->base.shut |= SOCKET_SHUT_RD;
        unix_sock_state_change(peer);
    }
    abort_pending(s);
    u->state = UNIX_CLOSED;
    base->listening = false;
    inet_unbind(s);
    unix_sock_drop_peer(u);
    while (!list_empty(&u->queue)) {
        struct unix_buf *b = list_first(&u->queue, struct unix_buf, link);
        unix_sock_dequeue(u, b);
        unix_buf_free(b);
    }
    unix_sock_state_change(u);
    socket_unref(base);
}

static ssize_t tcp_sendmsg(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    struct inet_sock *s = to_inet(base);
    if (s->u.state != UNIX_CONNECTED) {
        int err = socket_take_error(base);
        if (err)
            return err;
        if (!(m->flags & MSG_NOSIGNAL))
            sigpipe_raise(ctx);
        return -EPIPE;
    }
    m->name.size = 0; /* ignored on a connection */
    m->flags &= ~MSG_OOB;
    return unix_stream_sendmsg(ctx, base, m);
}

/* MSG_TRUNC throws data away instead of copying it. */
static ssize_t discard(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    char waste[1024];
    struct uio u;
    uint64_t want = m->uio->left;
    ssize_t done = 0;
    while (want > 0) {
        struct socket_msg part = {.uio = &u, .flags = m->flags & ~MSG_TRUNC};
        uio_init_kernel(&u, waste, MIN(want, sizeof(waste)));
        ssize_t n = unix_stream_recvmsg(ctx, base, &part);
        if (n < 0)
            return done ? done : n;
        done += n;
        want -= (uint64_t)n;
        if (n == 0 || !to_inet(base)->u.queue_len)
            break;
    }
    return done;
}

static ssize_t tcp_recvmsg(struct ctx *ctx, struct socket *base, struct socket_msg *m)
{
    struct inet_sock *s = to_inet(base);
    if (m->flags & MSG_ERRQUEUE)
        return -EAGAIN; /* nothing ever gets there */
    if (s->u.state != UNIX_CONNECTED) {
        int err = socket_take_error(base);
        return err ? err : base->shut & SOCKET_SHUT_RD ? 0 : -ENOTCONN;
    }
    if (m->flags & MSG_OOB)
        return -EINVAL; /* there never is any */
    m->want_name = false;
    m->name.size = 0;
    if ((m->flags & (MSG_TRUNC | MSG_PEEK)) == MSG_TRUNC)
        return discard(ctx, base, m);
    return unix_stream_recvmsg(ctx, base, m);
}

static uint32_t tcp_poll(struct socket *base, struct poll_table *pt)
{
    struct inet_sock *s = to_inet(base);
    if (s->u.state == UNIX_LISTENING) {
        poll_wait(pt, &base->wait);
        return s->u.pending_len ? EPOLLIN | EPOLLRDNORM : 0;
    }
    uint32_t mask = unix_stream_poll(base, pt) & ~(uint32_t)EPOLLWRBAND;
    /* A reader that gave up (SHUT_RD) is no end of the peer's stream, but reads like one; a failed send is writable. */
    if (base->shut & SOCKET_SHUT_WR)
        mask |= EPOLLOUT | EPOLLWRNORM;
    return mask;
}

static int tcp_accept(struct ctx *ctx, struct socket *base, bool nonblock, struct socket **ret_socket)
{
    return unix_stream_accept(ctx, base, nonblock, ret_socket);
}

const struct socket_ops inet_tcp_ops = {
    .bind = sock_inet_bind,
    .connect = tcp_connect,
    .listen = tcp_listen,
    .accept = tcp_accept,
    .getname = sock_inet_getname,
    .sendmsg = tcp_sendmsg,
    .recvmsg = tcp_recvmsg,
    .poll = tcp_poll,
    .shutdown = tcp_shutdown,
    .setsockopt = sock_inet_setsockopt,
    .getsockopt = sock_inet_getsockopt,
    .ioctl = unix_sock_ioctl,
    .release = tcp_release,
    .destroy = unix_sock_destroy,
};
