/* SPDX-License-Identifier: Apache-2.0 */
/* Unix datagram and seqpacket sockets: messages keep their borders. */
#include "sentry/socket/unix_sock.h"

#include <string.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/socket/landlock_net.h"

/* ---- connect ---- */

/* A connected socket only takes messages from its peer. */
static bool may_send(const struct unix_sock *u, const struct unix_sock *to)
{
    return !to->peer || to->peer == u;
}

/* What was queued from the old peer is not for the new connection. */
static void disconnected(struct unix_sock *u, struct unix_sock *old)
{
    if (!u->queue_len)
        return;
    while (!list_empty(&u->queue)) {
        struct unix_buf *b = list_first(&u->queue, struct unix_buf, link);
        unix_sock_dequeue(u, b);
        unix_buf_free(b);
    }
    waitq_wake_all(&u->peer_wait);
    /* The other side, if it was connected to us, learns of the loss with its next call. */
    if (!old->dead && old->peer == u) {
        old->base.error = ECONNRESET;
        unix_sock_state_change(old);
    }
}

static int dgram_connect(struct ctx *ctx, struct socket *s, const struct socket_addr *addr, bool nonblock)
{
    struct unix_sock *u = to_unix(s), *other = NULL;
    if (addr->size < sizeof(sa_family_t))
        return -EINVAL;
    if (addr->sa.sa_family != AF_UNSPEC) {
        int r = unix_addr_check(addr);
        if (!r && (s->passcred || s->passpidfd))
            r = unix_sock_autobind(u);
        if (!r)
            r = unix_sock_find(ctx, u, addr, &other);
        if (r)
            return r;
        if (!may_send(u, other) || landlock_net_reach(ctx, u, other)) {
            socket_unref(&other->base);
            return -EPERM;
        }
    }
    struct unix_sock *old = u->peer;
    if (old)
        socket_ref(&old->base);
    if (other) {
        unix_sock_set_peer(u, other);
        u->state = UNIX_CONNECTED;
    } else {
        unix_sock_drop_peer(u);
        u->state = UNIX_CLOSED;
    }
    if (old && old != other)
        disconnected(u, old);
    if (old)
        socket_unref(&old->base);
    if (other)
        socket_unref(&other->base);
    return 0;
}

/* ---- send ---- */

/* Whether u has to wait before it sends to to. */
static bool must_wait(const struct unix_sock *u, const struct unix_sock *to)
{
    return to != u && to->peer != u && unix_sock_full(to);
}

static bool room_settled(const struct unix_sock *to)
{
    return to->dead || (to->base.shut & SOCKET_SHUT_RD) || !unix_sock_full(to);
}

/* Finds the receiver: by name, or the peer. Return: 0 with a reference. */
static int find_receiver(struct ctx *ctx, struct unix_sock *u, const struct socket_addr *name,
                         struct unix_sock **ret_sock)
{
    if (name->size)
        return unix_sock_find(ctx, u, name, ret_sock);
    if (!u->peer)
        return -ENOTCONN;
    socket_ref(&u->peer->base);
    *ret_sock = u->peer;
    return 0;
}

/* The receiver has been closed. Return: 0 = look its name up again, else the error. */
static int receiver_dead(struct unix_sock *u, struct unix_sock *to, const struct socket_addr *name)
{
    if (u->base.type == SOCK_SEQPACKET)
        return -EPIPE;
    if (u->peer == to) {
        unix_sock_drop_peer(u);
        u->state = UNIX_CLOSED;
        disconnected(u, to);
        return -ECONNREFUSED;
    }
    return name->size ? 0 : -ECONNRESET;
}

/* Puts b into the receiver's queue. Return: 0 (b consumed), or −errno. */
static int deliver(struct ctx *ctx, struct unix_sock *u, struct unix_buf *b, struct socket_msg *m,
                   uint64_t deadline)
{
    struct unix_sock *to = NULL;
    for (;;) {
        int r = find_receiver(ctx, u, &m->name, &to);
        if (r)
            return r;
        bool again = false;
        if (!may_send(u, to) || landlock_net_reach(ctx, u, to)) {
            r = -EPERM;
        } else if (to->dead) {
            r = receiver_dead(u, to, &m->name);
            again = !r;
        } else if (to->base.shut & SOCKET_SHUT_RD) {
            r = -EPIPE;
        } else if (must_wait(u, to)) {
            r = -EAGAIN;
            if (deadline) {
                r = WAIT_EVENT_UNTIL(ctx, &to->peer_wait, room_settled(to), deadline);
                r = socket_wait_result(r, u->base.sndtimeo_ns);
                again = !r;
            }
        }
        if (!r && !again) {
            r = unix_buf_attach(ctx, b, &m->scm);
            if (!r) {
                unix_buf_add_cred(ctx, b, to);
                if (to->base.timestamp)
                    b->scm.stamp_ns = host_realtime_ns();
                unix_sock_enqueue(to, b);
            }
        }
        socket_unref(&to->base);
        if (!again)
            return r;
    }
}

static ssize_t dgram_sendmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    struct unix_sock *u = to_unix(s);
    struct unix_buf *b;
    uint64_t size = m->uio->left;
    int r = 0;
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    if (m->name.size)
        r = unix_addr_check(&m->name);
    else if (!u->peer)
        r = -ENOTCONN;
    if (!r && (s->passcred || s->passpidfd))
        r = unix_sock_autobind(u);
    if (r)
        return r;
    if (size > s->sndbuf - 32)
        return -EMSGSIZE;
    uint64_t deadline = socket_deadline(s->sndtimeo_ns, m->flags & MSG_DONTWAIT);
    r = unix_buf_new(ctx, u, (uint32_t)size, deadline, &b);
    if (r)
        return r;
    if (size && uio_get(m->uio, b->data, size) < (ssize_t)size)
        r = -EFAULT;
    if (!r)
        r = deliver(ctx, u, b, m, deadline);
    if (r) {
        unix_buf_free(b);
        return r;
    }
    return (ssize_t)size;
}

static ssize_t seqpacket_sendmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    int err = socket_take_error(s);
    if (err)
        return err;
    if (to_unix(s)->state != UNIX_CONNECTED)
        return -ENOTCONN;
    m->name.size = 0;
    return dgram_sendmsg(ctx, s, m);
}

/* ---- receive ---- */

static bool recv_settled(const struct unix_sock *u)
{
    return u->queue_len || u->base.error || (u->base.shut & SOCKET_SHUT_RD);
}

/* Waits for a message. Return: 0 with one in the queue or none at the end of file; −errno. */
static int wait_message(struct ctx *ctx, struct unix_sock *u, int flags)
{
    struct socket *s = &u->base;
    uint64_t deadline = socket_deadline(s->rcvtimeo_ns, flags & MSG_DONTWAIT);
    for (;;) {
        int err = socket_take_error(s);
        if (err)
            return err;
        if (u->queue_len)
            return 0;
        if (s->shut & SOCKET_SHUT_RD) {
            /* A datagram socket that polls keeps on hearing that there is nothing. */
            return deadline == 0 && s->type == SOCK_DGRAM ? -EAGAIN : 0;
        }
        if (deadline == 0)
            return -EAGAIN;
        int r = WAIT_EVENT_UNTIL(ctx, &s->wait, recv_settled(u), deadline);
        if (r)
            return socket_wait_result(r, s->rcvtimeo_ns);
    }
}

static ssize_t dgram_recvmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    struct unix_sock *u = to_unix(s);
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    m->name.size = 0;
    int r = wait_message(ctx, u, m->flags);
    if (r)
        return r;
    if (!u->queue_len)
        return 0;
    struct unix_buf *b = list_first(&u->queue, struct unix_buf, link);
    bool peek = m->flags & MSG_PEEK;
    if (m->want_name && b->from->name)
        unix_sock_fill_name(b->from, &m->name);
    uint32_t want = (uint32_t)MIN((uint64_t)b->size, m->uio->left);
    if (want < b->size)
        m->out_flags |= MSG_TRUNC;
    ssize_t n = want ? uio_put(m->uio, b->data, want) : 0;
    ssize_t ret = m->flags & MSG_TRUNC ? (ssize_t)b->size : (ssize_t)want;
    if (n < (ssize_t)want)
        ret = -EFAULT; /* the message is lost, as on any kernel */
    r = ret < 0 ? 0 : unix_buf_deliver(u, b, m, peek);
    if (!peek) {
        unix_sock_dequeue(u, b);
        unix_buf_free(b);
        waitq_wake(&u->peer_wait, SOCKET_KEY_OUT);
    }
    return r ? r : ret;
}

static ssize_t seqpacket_recvmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    return to_unix(s)->state == UNIX_CONNECTED ? dgram_recvmsg(ctx, s, m) : -ENOTCONN;
}

/* ---- poll ---- */

/* Hooks u into its peer's queue so that room there wakes u's pollers. Return: whether the peer is full. */
static bool peer_full(struct unix_sock *u)
{
    struct unix_sock *peer = u->peer;
    if (!peer || peer == u || peer->peer == u || peer->dead || !unix_sock_full(peer))
        return false;
    if (!u->peer_waiter.link.next || list_empty(&u->peer_waiter.link))
        waitq_add(&peer->peer_wait, &u->peer_waiter);
    return true;
}

uint32_t unix_dgram_poll(struct socket *s, struct poll_table *pt)
{
    struct unix_sock *u = to_unix(s);
    uint32_t mask = 0;
    poll_wait(pt, &s->wait);
    if (s->error)
        mask |= EPOLLERR;
    if (s->shut & SOCKET_SHUT_RD)
        mask |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
    if (s->shut == SOCKET_SHUT_BOTH)
        mask |= EPOLLHUP;
    if (u->queue_len || u->pending_len)
        mask |= EPOLLIN | EPOLLRDNORM;
    if (s->type == SOCK_SEQPACKET && u->state == UNIX_CLOSED)
        mask |= EPOLLHUP;
    if (unix_sock_writable(u) && !peer_full(u))
        mask |= SOCKET_KEY_OUT;
    return mask;
}

const struct socket_ops unix_dgram_ops = {
    .bind = unix_sock_bind,
    .connect = dgram_connect,
    .getname = unix_sock_getname,
    .sendmsg = dgram_sendmsg,
    .recvmsg = dgram_recvmsg,
    .poll = unix_dgram_poll,
    .shutdown = unix_sock_shutdown,
    .ioctl = unix_sock_ioctl,
    .visit_files = unix_sock_visit_files,
    .purge_files = unix_sock_purge_files,
    .release = unix_sock_release,
    .destroy = unix_sock_destroy,
};

const struct socket_ops unix_seqpacket_ops = {
    .bind = unix_sock_bind,
    .connect = unix_stream_connect,
    .listen = unix_stream_listen,
    .accept = unix_stream_accept,
    .getname = unix_sock_getname,
    .sendmsg = seqpacket_sendmsg,
    .recvmsg = seqpacket_recvmsg,
    .poll = unix_dgram_poll,
    .shutdown = unix_sock_shutdown,
    .ioctl = unix_sock_ioctl,
    .visit_files = unix_sock_visit_files,
    .purge_files = unix_sock_purge_files,
    .release = unix_sock_release,
    .destroy = unix_sock_destroy,
};
