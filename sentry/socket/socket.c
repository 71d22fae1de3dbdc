/* SPDX-License-Identifier: Apache-2.0 */
/* Socket objects, the files in front of them, and the checks that every family shares. */
#include "sentry/socket/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/landlock.h"
#include "sentry/kernel/sigpipe.h"
#include "sentry/socket/landlock_net.h"
#include "sentry/socket/netns.h"
#include "sentry/socket/sock_inet.h"
#include "sentry/vfs/file.h"

static const struct socket_family *const families[] = {
    &unix_family,
    &inet_family,
    &inet6_family,
    &netlink_family,
};

/* ---- objects ---- */

struct socket *socket_alloc(size_t size, const struct socket_ops *ops, struct netns *ns, int family, int type,
                            int protocol)
{
    struct socket *s = mem_zalloc(size);
    if (!s)
        return NULL;
    ref_init(&s->ref);
    s->ops = ops;
    s->netns = netns_ref(ns);
    s->family = family;
    s->type = type;
    s->protocol = protocol;
    waitq_init(&s->wait);
    s->sndbuf = s->rcvbuf = SOCKET_BUF_DEFAULT;
    s->rcvlowat = 1;
    s->rcvtimeo_ns = s->sndtimeo_ns = WAIT_FOREVER;
    s->peer = scm_cred_nobody();
    list_init(&s->inflight_link);
    return s;
}

struct socket *socket_ref(struct socket *s)
{
    ref_get(&s->ref);
    return s;
}

void socket_unref(struct socket *s)
{
    if (!s || !ref_put(&s->ref))
        return;
    if (s->ops->destroy)
        s->ops->destroy(s);
    waitq_orphan(&s->wait);
    scm_cred_clear(&s->peer);
    netns_unref(s->netns);
    mem_free(s);
}

static const struct socket_family *family_find(int family)
{
    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        if (families[i]->family == family)
            return families[i];
    }
    return NULL;
}

static int family_check(int family, int type, const struct socket_family **ret_family)
{
    if (family < 0 || family >= AF_MAX)
        return -EAFNOSUPPORT;
    if (type < 0 || type > SOCK_PACKET)
        return -EINVAL;
    *ret_family = family_find(family);
    return *ret_family ? 0 : -EAFNOSUPPORT;
}

int socket_new(struct ctx *ctx, struct netns *ns, int family, int type, int protocol,
               struct socket **ret_socket)
{
    const struct socket_family *f;
    int r = family_check(family, type, &f);
    return r ? r : f->create(ctx, ns, type, protocol, ret_socket);
}

int socket_new_pair(struct ctx *ctx, struct netns *ns, int family, int type, int protocol,
                    struct socket **ret_pair)
{
    const struct socket_family *f;
    int r = family_check(family, type, &f);
    if (r)
        return r;
    if (f->pair)
        return f->pair(ctx, ns, type, protocol, ret_pair);
    /* The arguments are still judged as those of socket(2). */
    struct socket *s;
    r = f->create(ctx, ns, type, protocol, &s);
    if (r)
        return r;
    s->ops->release(s);
    return -EOPNOTSUPP;
}

/* ---- the file ---- */

static ssize_t sock_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct socket_msg m = {.uio = u, .flags = f->flags & O_NONBLOCK ? MSG_DONTWAIT : 0};
    if (u->left == 0)
        return 0;
    ssize_t n = socket_recvmsg(u->ctx, f->priv, &m);
    scm_free(&m.scm);
    return n;
}

static ssize_t sock_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct socket *s = f->priv;
    struct socket_msg m = {.uio = u, .flags = f->flags & O_NONBLOCK ? MSG_DONTWAIT : 0};
    if (s->type == SOCK_SEQPACKET)
        m.flags |= MSG_EOR;
    return socket_sendmsg(u->ctx, s, &m);
}

static uint32_t sock_poll(struct file *f, struct poll_table *pt)
{
    struct socket *s = f->priv;
    return s->ops->poll(s, pt);
}

static int64_t sock_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct socket *s = f->priv;
    int64_t r = s->ops->ioctl ? s->ops->ioctl(ctx, s, cmd, arg) : -ENOTTY;
    /* Any socket will do to ask about interfaces. */
    return r == -ENOTTY ? inet_ifioctl(ctx, s->netns, cmd, arg) : r;
}

static void sock_release(struct file *f)
{
    struct socket *s = f->priv;
    s->file = NULL;
    s->ops->release(s);
    scm_gc_request();
}

static const struct file_ops sock_file_ops = {
    .signals_io = true,
    .read = sock_read,
    .write = sock_write,
    .poll = sock_poll,
    .ioctl = sock_ioctl,
    .release = sock_release,
};

struct file *socket_file_new(OWNS struct socket *s, uint32_t flags, const struct cred *cred)
{
    struct file *f = file_new_anon("socket", S_IFSOCK | 0777, O_RDWR | (flags & O_NONBLOCK), &sock_file_ops, s,
                                   cred);
    if (!f) {
        s->ops->release(s);
        return NULL;
    }
    f->no_seek = true;
    s->file = f;
    return f;
}

struct socket *socket_of(const struct file *f)
{
    return f->ops == &sock_file_ops ? f->priv : NULL;
}

/* ---- wrappers ---- */

int socket_bind(struct ctx *ctx, struct socket *s, const struct socket_addr *addr)
{
    int r = landlock_net_check(ctx, s, addr, LANDLOCK_BIND_TCP);
    if (r)
        return r;
    return s->ops->bind ? s->ops->bind(ctx, s, addr) : -EOPNOTSUPP;
}

int socket_connect(struct ctx *ctx, struct socket *s, const struct socket_addr *addr, bool nonblock)
{
    int r = landlock_net_check(ctx, s, addr, LANDLOCK_CONNECT_TCP);
    if (r)
        return r;
    return s->ops->connect ? s->ops->connect(ctx, s, addr, nonblock) : -EOPNOTSUPP;
}

int socket_listen(struct ctx *ctx, struct socket *s, int backlog)
{
    if ((unsigned)backlog > SOCKET_BACKLOG_MAX)
        backlog = SOCKET_BACKLOG_MAX;
    return s->ops->listen ? s->ops->listen(ctx, s, backlog) : -EOPNOTSUPP;
}

int socket_accept(struct ctx *ctx, struct socket *s, bool nonblock, struct socket **ret_socket)
{
    return s->ops->accept ? s->ops->accept(ctx, s, nonblock, ret_socket) : -EOPNOTSUPP;
}

int socket_getname(struct socket *s, bool peer, struct socket_addr *ret_addr)
{
    return s->ops->getname ? s->ops->getname(s, peer, ret_addr) : -EOPNOTSUPP;
}

ssize_t socket_sendmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    return s->ops->sendmsg(ctx, s, m);
}

ssize_t socket_recvmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m)
{
    return s->ops->recvmsg(ctx, s, m);
}

int socket_shutdown(struct socket *s, int how)
{
    return s->ops->shutdown ? s->ops->shutdown(s, how) : -EOPNOTSUPP;
}

/* ---- help for families ---- */

int socket_take_error(struct socket *s)
{
    int e = s->error;
    s->error = 0;
    return -e;
}

uint64_t socket_deadline(uint64_t timeo_ns, bool nonblock)
{
    if (nonblock)
        return 0;
    if (timeo_ns == WAIT_FOREVER)
        return WAIT_FOREVER;
    uint64_t now = host_monotonic_ns();
    return timeo_ns >= WAIT_FOREVER - now ? WAIT_FOREVER - 1 : now + timeo_ns;
}

int socket_wait_result(int r, uint64_t timeo_ns)
{
    if (r == -ETIMEDOUT)
        return -EAGAIN;
    if (r == -ERESTARTSYS && timeo_ns != WAIT_FOREVER)
        return -EINTR;
    return r;
}

uint64_t socket_rcv_target(const struct socket *s, int flags, uint64_t size)
{
    uint64_t low = flags & MSG_WAITALL ? size : MIN((uint64_t)s->rcvlowat, size);
    return low ? low : 1;
}
