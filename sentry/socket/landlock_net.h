/* SPDX-License-Identifier: Apache-2.0 */
/* What a Landlock domain lets its members do with sockets. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/core/cred.h"
#include "sentry/core/ctx.h"

struct socket;
struct socket_addr;
struct unix_sock;

int landlock_net_check_slow(struct ctx *ctx, const struct socket *s, const struct socket_addr *addr, uint32_t access);
int landlock_net_reach_slow(struct ctx *ctx, const struct unix_sock *from, const struct unix_sock *to);

/* A bind or connect (LANDLOCK_BIND_TCP, LANDLOCK_CONNECT_TCP) of s. Return: 0, −EACCES; −EINVAL, −EAFNOSUPPORT (addresses that the
 * socket would refuse in the same way). */
MUST_CHECK static inline int landlock_net_check(struct ctx *ctx, const struct socket *s,
                                                const struct socket_addr *addr, uint32_t access)
{
    return likely(!ctx->cred->landlock) ? 0 : landlock_net_check_slow(ctx, s, addr, access);
}

/* A connection or message to a unix socket that may have an abstract name. Return: 0 or −EPERM. */
MUST_CHECK static inline int landlock_net_reach(struct ctx *ctx, const struct unix_sock *from,
                                                const struct unix_sock *to)
{
    return likely(!ctx->cred->landlock) ? 0 : landlock_net_reach_slow(ctx, from, to);
}
