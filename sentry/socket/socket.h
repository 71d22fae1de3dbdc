/* SPDX-License-Identifier: Apache-2.0 */
/* The socket layer: what all address families have in common, and the file that a socket is behind. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/waitq.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/cmsg.h"

struct cred;
struct file;
struct netns;
struct socket;

enum {
    SOCKET_BUF_DEFAULT = 212992, /* net.core.wmem_default, rmem_default */
    SOCKET_BUF_MAX = 212992,     /* net.core.wmem_max: setsockopt doubles what it is given, up to twice this */
    SOCKET_SNDBUF_MIN = 4608,
    SOCKET_RCVBUF_MIN = 2304,
    SOCKET_BACKLOG_MAX = 4096,   /* net.core.somaxconn */
};

enum { SOCKET_SHUT_RD = 1, SOCKET_SHUT_WR = 2, SOCKET_SHUT_BOTH = 3 };

/* Wake keys. */
#define SOCKET_KEY_IN (EPOLLIN | EPOLLRDNORM | EPOLLRDBAND | EPOLLPRI)
#define SOCKET_KEY_OUT (EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)

struct socket_addr {
    uint32_t size; /* 0: none */
    union {
        struct sockaddr sa;
        struct sockaddr_storage storage;
    };
};

/* One send or receive. */
struct socket_msg {
    struct uio *uio;
    int flags;               /* MSG_*, MSG_DONTWAIT included for non-blocking files */
    int out_flags;           /* receive: MSG_TRUNC, MSG_EOR, MSG_CTRUNC … */
    struct socket_addr name; /* send: size 0 = none; receive: filled when want_name */
    bool want_name;
    struct scm scm;          /* send: parsed; receive: what came, the caller disposes of it */
    /* receive: one control message of the family's own (IP_PKTINFO, NETLINK_PKTINFO …); control_size 0: none */
    int control_level, control_type;
    uint32_t control_size;
    uint8_t control[64];
};

/* NULL gives the errno in brackets. All but poll and release may park; then the caller holds the file. */
struct socket_ops {
    int (*bind)(struct ctx *ctx, struct socket *s, const struct socket_addr *addr);       /* [EOPNOTSUPP] */
    int (*connect)(struct ctx *ctx, struct socket *s, const struct socket_addr *addr, bool nonblock); /* [EOPNOTSUPP] */
    int (*listen)(struct ctx *ctx, struct socket *s, int backlog);                        /* [EOPNOTSUPP] */
    int (*accept)(struct ctx *ctx, struct socket *s, bool nonblock, struct socket **ret_socket); /* [EOPNOTSUPP] */
    int (*getname)(struct socket *s, bool peer, struct socket_addr *ret_addr);            /* [EOPNOTSUPP] */
    ssize_t (*sendmsg)(struct ctx *ctx, struct socket *s, struct socket_msg *m);
    ssize_t (*recvmsg)(struct ctx *ctx, struct socket *s, struct socket_msg *m);
    uint32_t (*poll)(struct socket *s, struct poll_table *pt);
    int (*shutdown)(struct socket *s, int how); /* SOCKET_SHUT_*  [EOPNOTSUPP] */
    /* Levels other than SOL_SOCKET. value is size bytes of sentry memory. [EOPNOTSUPP] */
    int (*setsockopt)(struct ctx *ctx, struct socket *s, int level, int name, const void *value, uint32_t size);
    /* Fills at most *inout_size bytes and says how many. [EOPNOTSUPP] */
    int (*getsockopt)(struct ctx *ctx, struct socket *s, int level, int name, void *value, uint32_t *inout_size);
    int64_t (*ioctl)(struct ctx *ctx, struct socket *s, uint32_t cmd, uint64_t arg); /* [ENOTTY] */
    /* Visits every file that lies in s's receive queues (SCM_RIGHTS). NULL: there are none. */
    void (*visit_files)(struct socket *s, void (*fn)(struct file *f, void *arg), void *arg);
    /* Throws those away: nothing can read them any more. */
    void (*purge_files)(struct socket *s);
    /* The file is gone; drops the file's reference of the socket. Must not park. */
    void (*release)(struct socket *s);
    /* Last reference gone: frees what the family added; the caller frees the memory. */
    void (*destroy)(struct socket *s);
};

/* First member of every family's socket. */
struct socket {
    struct ref ref;
    const struct socket_ops *ops;
    struct netns *netns;      /* (i) referenced */
    struct file *file;        /* (k) not owned; NULL before accept and after close */
    int family, type, protocol; /* (i) */
    struct waitq wait;        /* readers, writers, pollers */
    int error;                /* (k) SO_ERROR: positive errno, taken by the next call */
    uint8_t shut;             /* (k) SOCKET_SHUT_* */
    bool listening;           /* (k) SO_ACCEPTCONN */
    /* options (k) */
    uint32_t sndbuf, rcvbuf, rcvlowat;
    uint64_t rcvtimeo_ns, sndtimeo_ns; /* WAIT_FOREVER: none */
    int priority, linger_s;
    uint32_t mark;
    uint64_t cookie; /* SO_COOKIE, 0: not yet given */
    bool linger, passcred, passpidfd, passsec, reuseaddr, reuseport, broadcast, keepalive, oobinline, dontroute, debug,
        no_check, timestamp, timestamp_ns, rxq_ovfl;
    /* credentials (k): of the other side, for SO_PEERCRED */
    struct scm_cred peer;
    /* files of this socket in flight in unix sockets (k); see cmsg.c */
    uint32_t inflight;
    struct list inflight_link;
    uint32_t gc_count;
    bool gc_reached;
};

/* Zeroed object of size bytes, first member a struct socket, defaults set, count 1. NULL on no memory. */
MUST_CHECK struct socket *socket_alloc(size_t size, const struct socket_ops *ops, struct netns *ns, int family,
                                       int type, int protocol);
struct socket *socket_ref(struct socket *s);
void socket_unref(struct socket *s); /* NULL is fine */

/* A socket of family in ns. Return: 0; −EAFNOSUPPORT, −ESOCKTNOSUPPORT, −EPROTONOSUPPORT, −EINVAL, −ENOMEM. */
MUST_CHECK int socket_new(struct ctx *ctx, struct netns *ns, int family, int type, int protocol,
                          struct socket **ret_socket);
/* Two connected ones. −EOPNOTSUPP for families without pairs. */
MUST_CHECK int socket_new_pair(struct ctx *ctx, struct netns *ns, int family, int type, int protocol,
                               struct socket **ret_pair);
/* The file of s; flags: O_NONBLOCK. Takes over the caller's reference, also on failure. NULL on no memory. */
MUST_CHECK struct file *socket_file_new(OWNS struct socket *s, uint32_t flags, const struct cred *cred);
/* Return: the socket behind f, borrowed; NULL when f is none. */
struct socket *socket_of(const struct file *f);

int socket_bind(struct ctx *ctx, struct socket *s, const struct socket_addr *addr);
int socket_connect(struct ctx *ctx, struct socket *s, const struct socket_addr *addr, bool nonblock);
int socket_listen(struct ctx *ctx, struct socket *s, int backlog);
int socket_accept(struct ctx *ctx, struct socket *s, bool nonblock, struct socket **ret_socket);
int socket_getname(struct socket *s, bool peer, struct socket_addr *ret_addr);
ssize_t socket_sendmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m);
ssize_t socket_recvmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m);
int socket_shutdown(struct socket *s, int how);

/* SOL_SOCKET here, other levels by the family. */
int sockopt_set(struct ctx *ctx, struct socket *s, int level, int name, const void *value, uint32_t size);
int sockopt_get(struct ctx *ctx, struct socket *s, int level, int name, void *value, uint32_t *inout_size);

/* ---- for address families ---- */

/* Takes the pending error. Return: −errno or 0. */
int socket_take_error(struct socket *s);
/* Deadline of a call that may wait timeo_ns: 0 for nonblock (then do not wait). */
uint64_t socket_deadline(uint64_t timeo_ns, bool nonblock);
/* What an interrupted or timed-out wait answers: r from WAIT_EVENT. A call with a time limit is never restarted. */
int socket_wait_result(int r, uint64_t timeo_ns);
/* Bytes a call has to collect before it returns. */
uint64_t socket_rcv_target(const struct socket *s, int flags, uint64_t size);

/* Families. */
struct socket_family {
    int family;
    int (*create)(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_socket);
    int (*pair)(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_pair); /* may be NULL */
};
extern const struct socket_family unix_family, inet_family, inet6_family, netlink_family;
