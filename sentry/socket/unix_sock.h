/* SPDX-License-Identifier: Apache-2.0 */
/* What unix stream, datagram and seqpacket sockets share: names, peers, message buffers. */
#pragma once

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/socket/cmsg.h"
#include "sentry/socket/socket.h"
#include "sentry/vfs/endpoint.h"

struct buf;

enum unix_state { UNIX_CLOSED, UNIX_LISTENING, UNIX_CONNECTED };

enum {
    UNIX_CHUNK_MAX = 65536,   /* data of one buffer of a stream */
    UNIX_DGRAM_QUEUE = 10,    /* net.unix.max_dgram_qlen */
    UNIX_BUF_OVERHEAD = 512,  /* what a buffer costs besides its data, for accounting */
};

/* An address, shared by a listener and the sockets accepted from it. */
struct unix_name {
    struct ref ref;
    uint32_t size; /* of the sockaddr, family included */
    uint8_t sockaddr[];
};

/* A message, or a piece of a stream, in a receive queue. */
struct unix_buf {
    struct list link;
    struct unix_sock *from;    /* referenced: pays for it, and its name is the source address */
    struct scm scm;
    uint32_t offset, size;     /* unread part of data */
    uint32_t charge;
    uint8_t data[];
};

struct unix_sock {
    struct socket base;
    enum unix_state state;     /* (k) */
    bool dead;                 /* (k) closed; still referenced by peers */
    struct unix_sock *peer;    /* (k) referenced; itself possible for a datagram socket */
    struct list queue;         /* (k) of unix_buf.link */
    uint32_t queue_len;        /* (k) */
    uint64_t queue_bytes;      /* (k) unread */
    uint32_t wmem;             /* (k) charge of our buffers in others' queues */
    uint32_t backlog;          /* (k) pending or queued messages beyond this make it full */
    struct list pending;       /* (k) a listener's connections, of pending_link */
    struct list pending_link;
    uint32_t pending_len;
    struct waitq peer_wait;    /* senders and connectors wait for room here */
    struct waiter peer_waiter; /* (k) our hook in peer's peer_wait: poll for writing */
    struct unix_name *name;    /* (k) NULL: not bound */
    struct list name_link;     /* (k) abstract names of the namespace */
    struct endpoint endpoint;  /* (k) path names */
    struct list all_link;      /* (k) netns.unix_all */
};

static inline struct unix_sock *to_unix(struct socket *s)
{
    return container_of(s, struct unix_sock, base);
}

/* sun_path and the family byte pair. */
enum { UNIX_ADDR_MIN = 2, UNIX_ADDR_MAX = 110 };

/* For what embeds one (inet streams); u is zeroed. */
void unix_sock_init(struct unix_sock *u);
MUST_CHECK struct unix_sock *unix_sock_new(struct netns *ns, int type, int protocol);
bool unix_sock_writable(const struct unix_sock *u);
/* More messages wait at u than its backlog: senders that u is not connected to wait. */
static inline bool unix_sock_full(const struct unix_sock *u)
{
    return (u->state == UNIX_LISTENING ? u->pending_len : u->queue_len) > u->backlog;
}
void unix_sock_set_peer(struct unix_sock *u, struct unix_sock *peer); /* takes a reference */
void unix_sock_drop_peer(struct unix_sock *u);
void unix_sock_state_change(struct unix_sock *u);
/* The address of u as recvmsg and getsockname give it. */
void unix_sock_fill_name(const struct unix_sock *u, struct socket_addr *ret_addr);

/* Address checks. Return: 0 or −EINVAL. */
MUST_CHECK int unix_addr_check(const struct socket_addr *addr);
/* Finds who is bound to addr. May park. Return: 0 with a reference; −ECONNREFUSED, −EPROTOTYPE (other type), path errors. */
MUST_CHECK int unix_sock_find(struct ctx *ctx, struct unix_sock *u, const struct socket_addr *addr,
                              struct unix_sock **ret_sock);
/* Gives u a name nobody uses. Return: 0, −ENOSPC, −ENOMEM. */
MUST_CHECK int unix_sock_autobind(struct unix_sock *u);

/* Takes a buffer of size bytes on u's account, waiting for room. Return: 0; −EAGAIN, −EPIPE, pending errors, −ENOBUFS,
 * −ERESTARTSYS, −EINTR. */
MUST_CHECK int unix_buf_new(struct ctx *ctx, struct unix_sock *u, uint32_t size, uint64_t deadline_ns,
                            struct unix_buf **ret_buf);
void unix_buf_free(struct unix_buf *b);
/* Moves control data of m into b: launches rights. Return: 0, −ETOOMANYREFS. */
MUST_CHECK int unix_buf_attach(struct ctx *ctx, struct unix_buf *b, struct scm *scm);
/* Adds the sender's credentials when either side asked for them. */
void unix_buf_add_cred(struct ctx *ctx, struct unix_buf *b, const struct unix_sock *to);
void unix_sock_enqueue(struct unix_sock *to, struct unix_buf *b);
void unix_sock_dequeue(struct unix_sock *u, struct unix_buf *b); /* unlinks only */
/* Hands b's descriptors and credentials to m: takes the rights, or copies them for a peek. Return: 0 or −ENOMEM. */
MUST_CHECK int unix_buf_deliver(struct unix_sock *u, struct unix_buf *b, struct socket_msg *m, bool peek);

/* Shared ops. */
int unix_sock_bind(struct ctx *ctx, struct socket *s, const struct socket_addr *addr);
int unix_sock_getname(struct socket *s, bool peer, struct socket_addr *ret_addr);
int unix_sock_shutdown(struct socket *s, int how);
int64_t unix_sock_ioctl(struct ctx *ctx, struct socket *s, uint32_t cmd, uint64_t arg);
void unix_sock_release(struct socket *s);
void unix_sock_destroy(struct socket *s);
void unix_sock_visit_files(struct socket *s, void (*fn)(struct file *f, void *arg), void *arg);
void unix_sock_purge_files(struct socket *s);
ssize_t unix_stream_sendmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m);
ssize_t unix_stream_recvmsg(struct ctx *ctx, struct socket *s, struct socket_msg *m);
uint32_t unix_stream_poll(struct socket *s, struct poll_table *pt);
uint32_t unix_dgram_poll(struct socket *s, struct poll_table *pt);

extern const struct socket_ops unix_stream_ops, unix_dgram_ops, unix_seqpacket_ops;

/* Connection set-up shared by stream and seqpacket. */
int unix_stream_connect(struct ctx *ctx, struct socket *s, const struct socket_addr *addr, bool nonblock);
int unix_stream_listen(struct ctx *ctx, struct socket *s, int backlog);
int unix_stream_accept(struct ctx *ctx, struct socket *s, bool nonblock, struct socket **ret_socket);

/* The text of /proc/net/unix. */
void unix_sock_print(struct netns *ns, struct buf *out);
