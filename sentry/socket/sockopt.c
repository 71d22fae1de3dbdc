/* SPDX-License-Identifier: Apache-2.0 */
/* Options of the level SOL_SOCKET. What is stored here is obeyed by the families that it concerns; an option that no
 * family obeys is refused rather than swallowed. */
#include "sentry/socket/socket.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "platform/base/compiler.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/socket/netns.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#define SO_TIMEO_NEW_RCV 66
#define SO_TIMEO_NEW_SND 67

#define NS_PER_S 1000000000ULL

/* Options that are a flag of struct socket. */
static bool *flag_of(struct socket *s, int name)
{
    switch (name) {
    case SO_REUSEADDR:
        return &s->reuseaddr;
    case SO_REUSEPORT:
        return &s->reuseport;
    case SO_BROADCAST:
        return &s->broadcast;
    case SO_KEEPALIVE:
        return &s->keepalive;
    case SO_OOBINLINE:
        return &s->oobinline;
    case SO_DONTROUTE:
        return &s->dontroute;
    case SO_NO_CHECK:
        return &s->no_check;
    case SO_RXQ_OVFL:
        return &s->rxq_ovfl;
    default:
        return NULL;
    }
}

static int set_timeo(uint64_t *timeo_ns, const void *value, uint32_t size)
{
    int64_t tv[2];
    if (size < sizeof(tv))
        return -EINVAL;
    memcpy(tv, value, sizeof(tv));
    if (tv[1] < 0 || tv[1] >= 1000000)
        return -EDOM;
    if (tv[0] < 0)
        *timeo_ns = 0; /* an expired limit: never wait */
    else if ((tv[0] == 0 && tv[1] == 0) || (uint64_t)tv[0] >= WAIT_FOREVER / NS_PER_S - 1)
        *timeo_ns = WAIT_FOREVER;
    else
        *timeo_ns = (uint64_t)tv[0] * NS_PER_S + (uint64_t)tv[1] * 1000;
    return 0;
}

static void set_buf(uint32_t *buf, int value, bool force, uint32_t min)
{
    uint32_t v = MIN((uint32_t)value, force ? (uint32_t)LIMIT_SOCK_BUF / 2 : (uint32_t)SOCKET_BUF_MAX);
    *buf = MAX(v * 2, min);
}

static int set_passing(struct socket *s, int name, bool on)
{
    switch (name) {
    case SO_PASSCRED: /* no effect where messages have no credentials */
        s->passcred = on && (s->family == AF_UNIX || s->family == AF_NETLINK);
        return 0;
    case SO_PASSPIDFD:
        if (s->family != AF_UNIX)
            return -EOPNOTSUPP;
        s->passpidfd = on;
        return 0;
    default: /* SO_PASSSEC: no labels without a security module */
        if (s->family != AF_UNIX && s->family != AF_NETLINK)
            return -EOPNOTSUPP;
        s->passsec = on;
        return 0;
    }
}

static int set_socket(struct ctx *ctx, struct socket *s, int name, const void *value, uint32_t size)
{
    int v;
    if (name == SO_RCVTIMEO || name == SO_TIMEO_NEW_RCV)
        return set_timeo(&s->rcvtimeo_ns, value, size);
    if (name == SO_SNDTIMEO || name == SO_TIMEO_NEW_SND)
        return set_timeo(&s->sndtimeo_ns, value, size);
    if (size < sizeof(v))
        return -EINVAL;
    memcpy(&v, value, sizeof(v));
    bool *flag = flag_of(s, name);
    if (flag) {
        *flag = v != 0;
        return 0;
    }
    switch (name) {
    case SO_DEBUG:
        if (v && !cred_has_cap(ctx->cred, CAP_NET_ADMIN))
            return -EACCES;
        s->debug = v != 0;
        return 0;
    case SO_SNDBUF:
    case SO_SNDBUFFORCE:
        if (name == SO_SNDBUFFORCE && !cred_has_cap(ctx->cred, CAP_NET_ADMIN))
            return -EPERM;
        set_buf(&s->sndbuf, v, name == SO_SNDBUFFORCE, SOCKET_SNDBUF_MIN);
        waitq_wake(&s->wait, SOCKET_KEY_OUT);
        return 0;
    case SO_RCVBUF:
    case SO_RCVBUFFORCE:
        if (name == SO_RCVBUFFORCE && !cred_has_cap(ctx->cred, CAP_NET_ADMIN))
            return -EPERM;
        set_buf(&s->rcvbuf, v, name == SO_RCVBUFFORCE, SOCKET_RCVBUF_MIN);
        return 0;
    case SO_PRIORITY:
        if ((v < 0 || v > 6) && !cred_ns_cap(ctx->cred, s->netns->userns, CAP_NET_RAW) &&
            !cred_ns_cap(ctx->cred, s->netns->userns, CAP_NET_ADMIN))
            return -EPERM;
        s->priority = v;
        return 0;
    case SO_LINGER: {
        struct linger l;
        if (size < sizeof(l))
            return -EINVAL;
        memcpy(&l, value, sizeof(l));
        s->linger = l.l_onoff != 0;
        if (s->linger)
            s->linger_s = l.l_linger;
        return 0;
    }
    case SO_RCVLOWAT:
        s->rcvlowat = v < 0 ? INT32_MAX : v ? (uint32_t)v : 1;
        return 0;
    case SO_PASSCRED:
    case SO_PASSPIDFD:
    case SO_PASSSEC:
        return set_passing(s, name, v != 0);
    case SO_TIMESTAMP:
    case SO_TIMESTAMPNS:
        s->timestamp = v != 0;
        s->timestamp_ns = v != 0 && name == SO_TIMESTAMPNS;
        return 0;
    case SO_MARK:
        if (!cred_ns_cap(ctx->cred, s->netns->userns, CAP_NET_RAW) &&
            !cred_ns_cap(ctx->cred, s->netns->userns, CAP_NET_ADMIN))
            return -EPERM;
        s->mark = (uint32_t)v;
        return 0;
    case SO_DETACH_FILTER:
        return -ENOENT; /* none is ever attached */
    case SO_BSDCOMPAT:
        return 0; /* obsolete: ignored by every kernel */
    default:
        return -ENOPROTOOPT;
    }
}

int sockopt_set(struct ctx *ctx, struct socket *s, int level, int name, const void *value, uint32_t size)
{
    if (level == SOL_SOCKET)
        return set_socket(ctx, s, name, value, size);
    return s->ops->setsockopt ? s->ops->setsockopt(ctx, s, level, name, value, size) : -EOPNOTSUPP;
}

static int answer(void *value, uint32_t *inout_size, const void *p, uint32_t size)
{
    *inout_size = MIN(*inout_size, size);
    memcpy(value, p, *inout_size);
    return 0;
}

static int get_timeo(uint64_t timeo_ns, void *value, uint32_t *inout_size)
{
    int64_t tv[2] = {0, 0};
    if (timeo_ns != WAIT_FOREVER) {
        tv[0] = (int64_t)(timeo_ns / NS_PER_S);
        tv[1] = (int64_t)(timeo_ns % NS_PER_S / 1000);
    }
    return answer(value, inout_size, tv, sizeof(tv));
}

static int get_peercred(struct ctx *ctx, struct socket *s, void *value, uint32_t *inout_size)
{
    struct task *t = ctx_task_or_null(ctx);
    const struct userns *ns = ctx->cred ? ctx->cred->userns : NULL;
    struct ucred u = {.uid = s->peer.uid, .gid = s->peer.gid};
    /* Of a socket without a peer they are −1, which is no id. */
    if (s->peer.pid) {
        u.uid = userns_uid_shown(ns, u.uid);
        u.gid = userns_gid_shown(ns, u.gid);
    }
    if (s->peer.pid && t)
        u.pid = pid_number(s->peer.pid, t->pidns);
    return answer(value, inout_size, &u, sizeof(u));
}

static int get_socket(struct ctx *ctx, struct socket *s, int name, void *value, uint32_t *inout_size)
{
    int v;
    const bool *flag = flag_of(s, name);
    if (flag) {
        v = *flag;
        return answer(value, inout_size, &v, sizeof(v));
    }
    switch (name) {
    case SO_RCVTIMEO:
    case SO_TIMEO_NEW_RCV:
        return get_timeo(s->rcvtimeo_ns, value, inout_size);
    case SO_SNDTIMEO:
    case SO_TIMEO_NEW_SND:
        return get_timeo(s->sndtimeo_ns, value, inout_size);
    case SO_LINGER: {
        struct linger l = {.l_onoff = s->linger, .l_linger = s->linger_s};
        return answer(value, inout_size, &l, sizeof(l));
    }
    case SO_PEERCRED:
        return get_peercred(ctx, s, value, inout_size);
    case SO_DEBUG:
        v = s->debug;
        break;
    case SO_TYPE:
        v = s->type;
        break;
    case SO_DOMAIN:
        v = s->family;
        break;
    case SO_PROTOCOL:
        v = s->protocol;
        break;
    case SO_ERROR:
        v = -socket_take_error(s);
        break;
    case SO_SNDBUF:
        v = (int)s->sndbuf;
        break;
    case SO_RCVBUF:
        v = (int)s->rcvbuf;
        break;
    case SO_PRIORITY:
        v = s->priority;
        break;
    case SO_RCVLOWAT:
        v = (int)s->rcvlowat;
        break;
    case SO_SNDLOWAT:
        v = 1;
        break;
    case SO_PASSCRED:
        v = s->passcred;
        break;
    case SO_PASSPIDFD:
        v = s->passpidfd;
        break;
    case SO_PASSSEC:
        v = s->passsec;
        break;
    case SO_TIMESTAMP:
        v = s->timestamp && !s->timestamp_ns;
        break;
    case SO_TIMESTAMPNS:
        v = s->timestamp_ns;
        break;
    case SO_ACCEPTCONN:
        v = s->listening;
        break;
    case SO_MARK:
        v = (int)s->mark;
        break;
    case SO_BSDCOMPAT:
        v = 0;
        break;
    case SO_COOKIE: {
        static uint64_t last; /* (k) */
        if (!s->cookie)
            s->cookie = ++last;
        uint64_t cookie = s->cookie;
        if (*inout_size < sizeof(cookie))
            return -EINVAL;
        return answer(value, inout_size, &cookie, sizeof(cookie));
    }
    default:
        return -ENOPROTOOPT;
    }
    return answer(value, inout_size, &v, sizeof(v));
}

int sockopt_get(struct ctx *ctx, struct socket *s, int level, int name, void *value, uint32_t *inout_size)
{
    if (level == SOL_SOCKET)
        return get_socket(ctx, s, name, value, inout_size);
    return s->ops->getsockopt ? s->ops->getsockopt(ctx, s, level, name, value, inout_size) : -EOPNOTSUPP;
}
