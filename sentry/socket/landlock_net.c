/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock's checks of sockets: TCP ports, and abstract names outside the domain. Source: Linux's userspace-api/landlock.rst. */
#include "sentry/socket/landlock_net.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/un.h>

#include "sentry/core/landlock.h"
#include "sentry/socket/unix_sock.h"
#include "sentry/vfs/file.h"

/* Up to the address, as the first IPv6 kernels had it. */
#define SIN6_SIZE_MIN 24

/* Finds the port of addr. Return: 0, 1 (none to check), −EINVAL, −EAFNOSUPPORT. */
static int port_of(const struct socket *s, const struct socket_addr *addr, uint32_t access, uint16_t *ret_port)
{
    if (addr->size < sizeof(sa_family_t))
        return -EINVAL;
    int family = addr->sa.sa_family;
    if ((family != AF_INET && family != AF_INET6 && family != AF_UNSPEC) ||
        (family == AF_UNSPEC && access == LANDLOCK_CONNECT_TCP))
        return 1; /* no address, or the end of an association */
    if (addr->size < (family == AF_INET6 ? SIN6_SIZE_MIN : sizeof(struct sockaddr_in)))
        return -EINVAL;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&addr->storage;
    if (family == AF_UNSPEC) {
        if (s->family == AF_INET && in->sin_addr.s_addr != INADDR_ANY)
            return -EAFNOSUPPORT;
    } else if (family != s->family) {
        return -EINVAL;
    }
    /* Both families have it in the same place. */
    *ret_port = ntohs(in->sin_port);
    return 0;
}

int landlock_net_check_slow(struct ctx *ctx, const struct socket *s, const struct socket_addr *addr, uint32_t access)
{
    const struct landlock_set *d = ctx->cred->landlock;
    if (!d->net_any || (s->family != AF_INET && s->family != AF_INET6) || s->type != SOCK_STREAM)
        return 0;
    uint16_t port;
    int ret = port_of(s, addr, access, &port);
    if (ret != 0)
        return ret < 0 ? ret : 0;
    return landlock_check_port(d, port, access);
}

int landlock_net_reach_slow(struct ctx *ctx, const struct unix_sock *from, const struct unix_sock *to)
{
    const size_t path_at = offsetof(struct sockaddr_un, sun_path);
    if (!to->name || to->name->size <= path_at || to->name->sockaddr[path_at] || from->peer == to)
        return 0;
    const struct landlock_set *there = to->base.file ? to->base.file->cred->landlock : NULL;
    return landlock_scope_denies(ctx->cred->landlock, there, LANDLOCK_SCOPE_ABSTRACT) ? -EPERM : 0;
}
