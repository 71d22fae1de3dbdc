/* SPDX-License-Identifier: Apache-2.0 */
/* Unix stream sockets, and the connection set-up that they share with seqpacket ones. */
#include "sentry/socket/unix_sock.h"

#include <string.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/sigpipe.h"
#include "sentry/socket/landlock_net.h"

/* ---- connections ---- */

static void peercred_set(struct ctx *ctx, struct unix_sock *u)
{
    scm_cred_clear(&u->base.peer);
    scm_cred_current(ctx, &u->base.peer);
}

/* Waits for room in other's queue of connections. Return: 0 (look again), −EAGAIN, −ERESTARTSYS, −EINTR. */
static int wait_for_backlog(struct ctx *ctx, struct unix_sock *u, struct unix_sock *other, uint64_t deadline)
{
    if (deadline == 0)
        return -EAGAIN;
    int r = WAIT_EVENT_UNTIL(ctx, &other->peer_wait,
                             other->dead || other->state != UNIX_LISTENING || !unix_sock_full(other), deadline);
    return socket_wait_result(r, u->base.sndtimeo_ns);
}

/* The part of connect that cannot park. other is a live listener with room. Consumes embryo. */
static int join(struct ctx *ctx, struct unix_sock *u, struct unix_sock *other, struct unix_sock *embryo)
{
    embryo->state = UNIX_CONNECTED;
    unix_sock_set_peer(embryo, u);
    peercred_set(ctx, embryo);
    if (other->name) {
        ref_get(&other->name->ref);
        embryo->name = other->name;
    }
    scm_cred_clear(&u->base.peer);
    scm_cred_copy(&u->base.peer, &other->base.peer); /* as of its listen() */
    u->state = UNIX_CONNECTED;
    unix_sock_set_peer(u, embryo);
    list_add_tail(&other->pending, &embryo->pending_link);
    other->pending_len++;
    waitq_wake(&other->base.wait, SOCKET_KEY_IN);
    return 0;
}

/* Whether u may connect now. */
static int connect_state(const struct unix_sock *u)
{
    if (u->state == UNIX_CONNECTED)
        return -EISCONN;
    return u->state == UNIX_CLOSED ? 0 : -EINVAL;
}

int unix_stream_connect(struct ctx *ctx, struct socket *s, const struct socket_addr *addr, bool nonblock)
{
    struct unix_sock *u = to_unix(s), *other = NULL;
    int r = unix_addr_check(addr);
    if (!r && (s->passcred || s->passpidfd))
        r = unix_sock_autobind(u);
    if (r)
        return r;
    uint64_t deadline = socket_deadline(s->sndtimeo_ns, nonblock);
    struct unix_sock *embryo = unix_sock_new(s->netns, s->type, s->protocol);
    if (!embryo)
        return -ENOMEM;
    for (;;) {
        r = unix_sock_find(ctx, u, addr, &other);
        if (r)
            break;
        if (other->state != UNIX_LISTENING || (other->base.shut & SOCKET_SHUT_RD))
            r = -ECONNREFUSED;
        else if (unix_sock_full(other))
            r = wait_for_backlog(ctx, u, other, deadline);
        else if (!(r = connect_state(u)) && !(r = landlock_net_reach(ctx, u, other)))
            break;
        socket_unref(&other->base);
        other = NULL;
        if (r)
            break;
    }
    if (r) {
        unix_sock_release(&embryo->base);
        return r;
    }
    r = join(ctx, u, other, embryo);
    socket_unref(&other->base);
    return r;
}

int unix_stream_listen(struct ctx *ctx, struct socket *s, int backlog)
{
    struct unix_sock *u = to_unix(s);
    if (!u->name)
        return -EINVAL;
    if (u->state == UNIX_CONNECTED)
        return -EINVAL;
    bool more = (uint32_t)backlog > u->backlog;
    u->backlog = (uint32_t)backlog;
    u->state = UNIX_LISTENING;
    s->listening = true;
    peercred_set(ctx, u);
    if (more)
        waitq_wake_all(&u->peer_wait);
    return 0;
}

static bool accept_settled(const struct unix_sock *u)
{
    return u->pending_len || u->state != UNIX_LISTENING || (u->base.shut & SOCKET_SHUT_RD);
}

int unix_stream_accept(struct ctx *ctx, struct socket *s, bool nonblock, struct socket **ret_socket)
{
    struct unix_sock *u = to_unix(s);
    if (u->state != UNIX_LISTENING)
        return -EINVAL;
    if (!accept_settled(u)) {
        uint64_t deadline = socket_deadline(s->rcvtimeo_ns, nonblock);
        if (deadline == 0)
            return -EAGAIN;
        int r = WAIT_EVENT_UNTIL(ctx, &s->wait, accept_settled(u), deadline);
        if (r)
            return socket_wait_result(r, s->rcvtimeo_ns);
    }
    if (!u->pending_len)
        return -EINVAL; /* shut down */
    struct unix_sock *embryo = list_first(&u->pending, struct unix_sock, pending_link);
    list_del(&embryo->pending_link);
    u->pending_len--;
    waitq_wake(&u->peer_wait, SOCKET_KEY_OUT);
    *ret_socket = &embryo->base;
    return 0;
}

/* ---- sending ---- */

static uint32_t chunk_size(const struct unix_sock *u, uint64_t left)
{
    uint64_t half = u->base.sndbuf / 2 - 64;
    return (uint32_t)MIN(MIN(left, half), (uint64_t)UNIX_CHUNK_MAX);
}

/* One buffer's worth. Return: bytes or −errno. */
static ssize_t send_chunk(struct ctx *ctx, struct unix_sock *u, struct socket_msg *m, uint64_t deadline)
{
    struct unix_buf *b;
    uint32_t size = chunk_size(u, m->uio->left);
    int r = unix_buf_new(ctx, u, size, deadline, &b);
    if (r)
        return r;
    ssize_t n = uio_get(m->uio, b->data, size);
    if (n <= 0) {
        unix_buf_free(b);
        return n < 0 ? n : -EFAULT;
    }
    b->size = (uint32_t)n;
    struct unix_sock *peer = u->peer;
    /* TCP goes on sending to a reader that gave up. */
    if (!peer || peer->dead || (u->base.family == AF_UNIX && (peer->base.shut & SOCKET_SHUT_RD))) {
        unix_buf_free(b);
        return -EPIPE;
    }
    r = unix_buf_attach(ctx, b, &m->scm); /* with the first buffer only: then m->scm is empty */
    if (r) {
        unix_buf_free(b);
        return r;
    }
    unix_buf_add_cred(ctx, b, peer);
    unix_sock_enqueue(peer, b);
    return n;
}

ssize_t unix_stream_sendmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    struct unix_sock *u = to_unix(s);
    ssize_t done = 0, err = 0;
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    if (m->name.size)
        return u->state == UNIX_CONNECTED ? -EISCONN : -EOPNOTSUPP;
    if (!u->peer)
        return -ENOTCONN;
    if (s->shut & SOCKET_SHUT_WR)
        err = -EPIPE;
    uint64_t deadline = socket_deadline(s->sndtimeo_ns, m->flags & MSG_DONTWAIT);
    /* Credentials given explicitly go with every buffer of this send. */
    struct scm_cred cred = scm_cred_nobody();
    bool have_cred = m->scm.have_cred;
    if (have_cred)
        scm_cred_copy(&cred, &m->scm.cred);
    while (!err && m->uio->left > 0) {
        if (have_cred && !m->scm.have_cred) {
            m->scm.have_cred = true;
            scm_cred_copy(&m->scm.cred, &cred);
        }
        ssize_t n = send_chunk(ctx, u, m, deadline);
        if (n < 0)
            err = n;
        else
            done += n;
    }
    scm_cred_clear(&cred);
    if (err == -EPIPE && done == 0 && !(m->flags & MSG_NOSIGNAL))
        sigpipe_raise(ctx);
    return done ? done : err;
}

/* ---- receiving ---- */

static bool recv_settled(const struct unix_sock *u)
{
    return u->queue_len || u->base.error || (u->base.shut & SOCKET_SHUT_RD);
}

struct stream_read {
    ssize_t done;
    bool named, stop;
};

/* Takes from b, which is first in the queue, or further on in a peek. */
static int read_buf(struct unix_sock *u, struct unix_buf *b, struct socket_msg *m, struct stream_read *st)
{
    bool peek = m->flags & MSG_PEEK;
    if (m->want_name && !st->named) {
        unix_sock_fill_name(b->from, &m->name);
        if (!b->from->name)
            m->name.size = 0;
        st->named = true;
    }
    uint32_t want = (uint32_t)MIN((uint64_t)b->size, m->uio->left);
    ssize_t n = uio_put(m->uio, b->data + b->offset, want);
    if (n < 0)
        return (int)n;
    st->done += n;
    bool had_rights = b->scm.rights;
    int r = unix_buf_deliver(u, b, m, peek);
    if (r)
        return r;
    st->stop = had_rights || n < want;
    if (peek)
        return 0;
    b->offset += (uint32_t)n;
    b->size -= (uint32_t)n;
    u->queue_bytes -= (uint64_t)n;
    if (b->size) {
        st->stop = true;
        return 0;
    }
    unix_sock_dequeue(u, b);
    unix_buf_free(b);
    return 0;
}

/* Takes what is queued, as far as one call may glue pieces together. */
static int read_queue(struct unix_sock *u, struct socket_msg *m, struct stream_read *st)
{
    bool creds = u->base.passcred || u->base.passpidfd;
    struct scm_cred first = scm_cred_nobody();
    bool have_first = m->scm.have_cred;
    if (have_first)
        scm_cred_copy(&first, &m->scm.cred);
    struct unix_buf *b = list_first_or_null(&u->queue, struct unix_buf, link);
    int r = 0;
    while (b && m->uio->left > 0 && !st->stop) {
        const struct scm_cred *c = &b->scm.cred;
        struct scm_cred nobody = scm_cred_nobody();
        if (!b->scm.have_cred)
            c = &nobody;
        if (creds && have_first && !scm_cred_equal(&first, c)) {
            st->stop = true;
            break;
        }
        if (!have_first) {
            scm_cred_copy(&first, c);
            have_first = true;
        }
        struct unix_buf *next = b->link.next == &u->queue ? NULL : list_entry(b->link.next, struct unix_buf, link);
        r = read_buf(u, b, m, st);
        if (r)
            break;
        b = next;
    }
    scm_cred_clear(&first);
    return r;
}

ssize_t unix_stream_recvmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    struct unix_sock *u = to_unix(s);
    struct stream_read st = {0};
    if (u->state != UNIX_CONNECTED)
        return -EINVAL;
    if (m->flags & MSG_OOB)
        return -EOPNOTSUPP;
    m->name.size = 0;
    ssize_t target = (ssize_t)socket_rcv_target(s, m->flags, m->uio->left);
    uint64_t deadline = socket_deadline(s->rcvtimeo_ns, m->flags & MSG_DONTWAIT);
    int err = 0;
    do { /* even a read of nothing waits for something to be there */
        if (u->queue_len) {
            err = read_queue(u, m, &st);
            if (err || (m->flags & MSG_PEEK))
                break;
            continue;
        }
        if (st.done >= target)
            break;
        err = socket_take_error(s);
        if (err || (s->shut & SOCKET_SHUT_RD))
            break;
        if (deadline == 0) {
            err = -EAGAIN;
            break;
        }
        err = WAIT_EVENT_UNTIL(ctx, &s->wait, recv_settled(u), deadline);
        if (err) {
            err = socket_wait_result(err, s->rcvtimeo_ns);
            break;
        }
        if (m->uio->left == 0)
            break;
    } while (m->uio->left > 0 && !st.stop);
    return st.done ? st.done : err;
}

/* ---- poll ---- */

uint32_t unix_stream_poll(struct socket *s, struct poll_table *pt)
{
    struct unix_sock *u = to_unix(s);
    uint32_t mask = 0;
    poll_wait(pt, &s->wait);
    if (s->error)
        mask |= EPOLLERR;
    if (s->shut == SOCKET_SHUT_BOTH)
        mask |= EPOLLHUP;
    if (s->shut & SOCKET_SHUT_RD)
        mask |= EPOLLRDHUP | EPOLLIN | EPOLLRDNORM;
    if (u->queue_len || u->pending_len)
        mask |= EPOLLIN | EPOLLRDNORM;
    if (u->state == UNIX_CLOSED)
        mask |= EPOLLHUP;
    if (unix_sock_writable(u))
        mask |= SOCKET_KEY_OUT;
    return mask;
}

const struct socket_ops unix_stream_ops = {
    .bind = unix_sock_bind,
    .connect = unix_stream_connect,
    .listen = unix_stream_listen,
    .accept = unix_stream_accept,
    .getname = unix_sock_getname,
    .sendmsg = unix_stream_sendmsg,
    .recvmsg = unix_stream_recvmsg,
    .poll = unix_stream_poll,
    .shutdown = unix_sock_shutdown,
    .ioctl = unix_sock_ioctl,
    .visit_files = unix_sock_visit_files,
    .purge_files = unix_sock_purge_files,
    .release = unix_sock_release,
    .destroy = unix_sock_destroy,
};
