/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: objects, names, buffers, and the operations that all types share. */
#include "sentry/socket/unix_sock.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/un.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/netns.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

/* ---- objects ---- */

static struct unix_name *name_new(const void *sockaddr, uint32_t size)
{
    struct unix_name *n = mem_zalloc(sizeof(*n) + size + 1);
    if (!n)
        return NULL;
    ref_init(&n->ref);
    n->size = size;
    memcpy(n->sockaddr, sockaddr, size);
    return n;
}

static void name_unref(struct unix_name *n)
{
    if (n && ref_put(&n->ref))
        mem_free(n);
}

static bool peer_woke(struct waiter *w, uint32_t key)
{
    struct unix_sock *u = w->arg;
    waitq_remove(w);
    waitq_wake(&u->base.wait, SOCKET_KEY_OUT);
    return true;
}

void unix_sock_init(struct unix_sock *u)
{
    list_init(&u->queue);
    list_init(&u->pending);
    list_init(&u->pending_link);
    list_init(&u->name_link);
    list_init(&u->all_link);
    waitq_init(&u->peer_wait);
    u->peer_waiter = (struct waiter){.wake = peer_woke, .arg = u};
    u->backlog = UNIX_DGRAM_QUEUE;
}

struct unix_sock *unix_sock_new(struct netns *ns, int type, int protocol)
{
    const struct socket_ops *ops = type == SOCK_STREAM  ? &unix_stream_ops
                                   : type == SOCK_DGRAM ? &unix_dgram_ops
                                                        : &unix_seqpacket_ops;
    struct socket *s = socket_alloc(sizeof(struct unix_sock), ops, ns, AF_UNIX, type, protocol);
    if (!s)
        return NULL;
    struct unix_sock *u = to_unix(s);
    unix_sock_init(u);
    list_add_tail(&ns->unix_all, &u->all_link);
    return u;
}

void unix_sock_destroy(struct socket *s)
{
    struct unix_sock *u = to_unix(s);
    BUG_ON(u->queue_len || u->wmem);
    list_del(&u->all_link);
    waitq_orphan(&u->peer_wait);
    name_unref(u->name);
}

bool unix_sock_writable(const struct unix_sock *u)
{
    return u->state != UNIX_LISTENING && (uint64_t)u->wmem * 4 <= u->base.sndbuf;
}

void unix_sock_set_peer(struct unix_sock *u, struct unix_sock *peer)
{
    socket_ref(&peer->base);
    unix_sock_drop_peer(u);
    u->peer = peer;
}

void unix_sock_drop_peer(struct unix_sock *u)
{
    struct unix_sock *peer = u->peer;
    if (!peer)
        return;
    waitq_remove(&u->peer_waiter);
    u->peer = NULL;
    socket_unref(&peer->base);
}

void unix_sock_state_change(struct unix_sock *u)
{
    waitq_wake_all(&u->base.wait);
}

/* ---- names ---- */

void unix_sock_fill_name(const struct unix_sock *u, struct socket_addr *ret_addr)
{
    memset(ret_addr, 0, sizeof(*ret_addr));
    ret_addr->sa.sa_family = AF_UNIX;
    ret_addr->size = UNIX_ADDR_MIN;
    if (u->name) {
        ret_addr->size = u->name->size;
        memcpy(&ret_addr->storage, u->name->sockaddr, u->name->size);
    }
}

int unix_addr_check(const struct socket_addr *addr)
{
    if (addr->size <= UNIX_ADDR_MIN || addr->size > UNIX_ADDR_MAX || addr->sa.sa_family != AF_UNIX)
        return -EINVAL;
    return 0;
}

static const char *addr_path(const struct socket_addr *addr)
{
    return (const char *)&addr->storage + offsetof(struct sockaddr_un, sun_path);
}

static uint32_t abstract_hash(const void *sockaddr, uint32_t size, int type)
{
    const uint8_t *p = sockaddr;
    uint32_t h = 2166136261U ^ (uint32_t)type;
    for (uint32_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 16777619U;
    return (h ^ (h >> 16)) % NETNS_UNIX_BUCKETS;
}

static struct unix_sock *abstract_find(struct netns *ns, const void *sockaddr, uint32_t size, int type)
{
    struct unix_sock *u;
    list_for_each_entry(u, &ns->unix_names[abstract_hash(sockaddr, size, type)], name_link)
    {
        if (u->base.type == type && u->name->size == size && !memcmp(u->name->sockaddr, sockaddr, size))
            return u;
    }
    return NULL;
}

static int abstract_bind(struct unix_sock *u, const void *sockaddr, uint32_t size)
{
    if (abstract_find(u->base.netns, sockaddr, size, u->base.type))
        return -EADDRINUSE;
    struct unix_name *n = name_new(sockaddr, size);
    if (!n)
        return -ENOMEM;
    u->name = n;
    list_add(&u->base.netns->unix_names[abstract_hash(sockaddr, size, u->base.type)], &u->name_link);
    return 0;
}

int unix_sock_autobind(struct unix_sock *u)
{
    struct netns *ns = u->base.netns;
    if (u->name)
        return 0;
    for (uint32_t tries = 0; tries <= 0xfffff; tries++) {
        struct sockaddr_un sun = {.sun_family = AF_UNIX};
        char digits[8];
        snprintf(digits, sizeof(digits), "%05x", ns->unix_autobind++ & 0xfffff);
        memcpy(sun.sun_path + 1, digits, 5);
        int r = abstract_bind(u, &sun, (uint32_t)offsetof(struct sockaddr_un, sun_path) + 6);
        if (r != -EADDRINUSE)
            return r;
    }
    return -ENOSPC;
}

/* The walk base of the calling task. Sockets of the sentry itself have no paths. */
static int walk_start(struct ctx *ctx, const char *path, struct path *hold, struct walk_base *ret_base)
{
    struct task *t = ctx_task_or_null(ctx);
    return t ? fsctx_base(t, AT_FDCWD, path, hold, ret_base) : -EINVAL;
}

/* Copies the path out of an address, which need not be terminated. */
static void path_text(const struct socket_addr *addr, char *dst)
{
    size_t size = addr->size - offsetof(struct sockaddr_un, sun_path);
    memcpy(dst, addr_path(addr), size);
    dst[size] = 0;
}

static int path_bind(struct ctx *ctx, struct unix_sock *u, const struct socket_addr *addr)
{
    char text[UNIX_ADDR_MAX + 1];
    CLEANUP_PATH struct path hold = {0};
    struct walk_base base;
    struct path made;
    path_text(addr, text);
    uint32_t size = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1);
    int r = walk_start(ctx, text, &hold, &base);
    if (r)
        return r;
    struct unix_name *n = name_new(&addr->storage, size - 1); /* zeroed beyond: the NUL */
    if (!n)
        return -ENOMEM;
    n->size = size;
    r = vfs_mknod_path(ctx, &base, text, S_IFSOCK | 0777, &made);
    if (!r && u->name) { /* another thread was faster while we were parked */
        (void)!vfs_unlink(ctx, &base, text);
        path_unref(&made);
        r = -EINVAL;
    }
    if (r) {
        name_unref(n);
        return r == -EEXIST ? -EADDRINUSE : r;
    }
    u->name = n;
    endpoint_bind(&u->endpoint, made);
    return 0;
}

int unix_sock_bind(struct ctx *ctx, struct socket *s, const struct socket_addr *addr)
{
    struct unix_sock *u = to_unix(s);
    if (addr->size == UNIX_ADDR_MIN && addr->sa.sa_family == AF_UNIX)
        return unix_sock_autobind(u);
    int r = unix_addr_check(addr);
    if (r)
        return r;
    if (u->name)
        return -EINVAL;
    return addr_path(addr)[0] ? path_bind(ctx, u, addr) : abstract_bind(u, &addr->storage, addr->size);
}

int unix_sock_find(struct ctx *ctx, struct unix_sock *u, const struct socket_addr *addr,
                   struct unix_sock **ret_sock)
{
    if (!addr_path(addr)[0]) {
        struct unix_sock *other = abstract_find(u->base.netns, &addr->storage, addr->size, u->base.type);
        if (!other)
            return -ECONNREFUSED;
        socket_ref(&other->base);
        *ret_sock = other;
        return 0;
    }
    char text[UNIX_ADDR_MAX + 1];
    CLEANUP_PATH struct path hold = {0};
    CLEANUP_PATH struct path found = {0};
    struct walk_base base;
    path_text(addr, text);
    int r = walk_start(ctx, text, &hold, &base);
    if (!r)
        r = walk_path(ctx, &base, text, WALK_FOLLOW, &found);
    if (!r)
        r = inode_permission(ctx, found.dentry->inode, MAY_WRITE);
    if (r)
        return r;
    struct endpoint *ep = S_ISSOCK(found.dentry->inode->mode) ? found.dentry->inode->endpoint : NULL;
    if (!ep)
        return -ECONNREFUSED;
    struct unix_sock *other = container_of(ep, struct unix_sock, endpoint);
    if (other->base.type != u->base.type)
        return -EPROTOTYPE;
    socket_ref(&other->base);
    *ret_sock = other;
    return 0;
}

int unix_sock_getname(struct socket *s, bool peer, struct socket_addr *ret_addr)
{
    struct unix_sock *u = to_unix(s);
    if (peer && !u->peer)
        return -ENOTCONN;
    unix_sock_fill_name(peer ? u->peer : u, ret_addr);
    return 0;
}

/* ---- buffers ---- */

static bool send_settled(const struct unix_sock *u)
{
    return u->base.error || (u->base.shut & SOCKET_SHUT_WR) || u->wmem < u->base.sndbuf;
}

int unix_buf_new(struct ctx *ctx, struct unix_sock *u, uint32_t size, uint64_t deadline_ns,
                 struct unix_buf **ret_buf)
{
    while (!send_settled(u)) {
        if (deadline_ns == 0)
            return -EAGAIN;
        int r = WAIT_EVENT_UNTIL(ctx, &u->base.wait, send_settled(u), deadline_ns);
        if (r)
            return socket_wait_result(r, u->base.sndtimeo_ns);
    }
    int err = socket_take_error(&u->base);
    if (err)
        return err;
    if (u->base.shut & SOCKET_SHUT_WR)
        return -EPIPE;
    uint32_t charge = size + UNIX_BUF_OVERHEAD;
    if (limit_charge(LIMIT_KIND_UNIX_BYTES, charge))
        return -ENOBUFS;
    struct unix_buf *b = mem_realloc(NULL, 1, sizeof(*b) + size);
    if (!b) {
        limit_uncharge(LIMIT_KIND_UNIX_BYTES, charge);
        return -ENOBUFS;
    }
    memset(b, 0, sizeof(*b));
    list_init(&b->link);
    b->size = size;
    b->charge = charge;
    b->from = u;
    socket_ref(&u->base);
    u->wmem += charge;
    *ret_buf = b;
    return 0;
}

void unix_buf_free(struct unix_buf *b)
{
    struct unix_sock *from = b->from;
    scm_free(&b->scm);
    from->wmem -= b->charge;
    limit_uncharge(LIMIT_KIND_UNIX_BYTES, b->charge);
    mem_free(b);
    if (waitq_active(&from->base.wait) && unix_sock_writable(from))
        waitq_wake(&from->base.wait, SOCKET_KEY_OUT);
    socket_unref(&from->base);
}

int unix_buf_attach(struct ctx *ctx, struct unix_buf *b, struct scm *scm)
{
    if (scm->rights) {
        int r = scm_rights_launch(ctx, scm->rights);
        if (r)
            return r;
    }
    b->scm = *scm;
    *scm = (struct scm){0};
    return 0;
}

void unix_buf_add_cred(struct ctx *ctx, struct unix_buf *b, const struct unix_sock *to)
{
    if (b->scm.have_cred)
        return;
    if (b->from->base.passcred || b->from->base.passpidfd || to->base.passcred || to->base.passpidfd ||
        !to->base.file) {
        scm_cred_current(ctx, &b->scm.cred);
        b->scm.have_cred = true;
    }
}

void unix_sock_enqueue(struct unix_sock *to, struct unix_buf *b)
{
    list_add_tail(&to->queue, &b->link);
    to->queue_len++;
    to->queue_bytes += b->size;
    waitq_wake(&to->base.wait, SOCKET_KEY_IN);
}

void unix_sock_dequeue(struct unix_sock *u, struct unix_buf *b)
{
    list_del(&b->link);
    u->queue_len--;
    u->queue_bytes -= b->size;
}

int unix_buf_deliver(struct unix_sock *u, struct unix_buf *b, struct socket_msg *m, bool peek)
{
    if (b->scm.rights && !m->scm.rights) {
        struct scm_rights *r = b->scm.rights;
        if (peek) {
            r = scm_rights_dup(r);
            if (!r)
                return -ENOMEM;
        } else {
            scm_rights_land(r);
            b->scm.rights = NULL;
        }
        m->scm.rights = r;
    }
    if (!m->scm.have_cred && (u->base.passcred || u->base.passpidfd)) {
        m->scm.have_cred = true;
        m->scm.cred = scm_cred_nobody();
        if (b->scm.have_cred)
            scm_cred_copy(&m->scm.cred, &b->scm.cred);
    }
    m->scm.stamp_ns = b->scm.stamp_ns;
    return 0;
}

static void queue_flush(struct unix_sock *u)
{
    while (!list_empty(&u->queue)) {
        struct unix_buf *b = list_first(&u->queue, struct unix_buf, link);
        unix_sock_dequeue(u, b);
        unix_buf_free(b);
    }
}

/* ---- shared operations ---- */

int unix_sock_shutdown(struct socket *s, int how)
{
    struct unix_sock *u = to_unix(s), *peer = u->peer;
    s->shut |= (uint8_t)how;
    if (peer && s->type != SOCK_DGRAM) {
        if (how & SOCKET_SHUT_RD)
            peer->base.shut |= SOCKET_SHUT_WR;
        if (how & SOCKET_SHUT_WR)
            peer->base.shut |= SOCKET_SHUT_RD;
        unix_sock_state_change(peer);
    }
    unix_sock_state_change(u);
    waitq_wake_all(&u->peer_wait); /* senders to u see that nobody will read */
    return 0;
}

int64_t unix_sock_ioctl(struct ctx *ctx, struct socket *s, uint32_t cmd, uint64_t arg)
{
    struct unix_sock *u = to_unix(s);
    int32_t v;
    switch (cmd) {
    case SIOCINQ: /* FIONREAD */
        if (u->state == UNIX_LISTENING)
            return -EINVAL;
        v = (int32_t)u->queue_bytes;
        if (s->type == SOCK_DGRAM)
            v = u->queue_len ? (int32_t)list_first(&u->queue, struct unix_buf, link)->size : 0;
        return COPY_OUT(ctx, UADDR(arg), &v);
    case SIOCOUTQ:
        v = (int32_t)u->wmem;
        return COPY_OUT(ctx, UADDR(arg), &v);
    case SIOCATMARK:
        v = 0;
        return s->type == SOCK_STREAM ? COPY_OUT(ctx, UADDR(arg), &v) : -EINVAL;
    default:
        return -ENOTTY;
    }
}

/* A connection ends: tells the other side. */
static void hang_up_peer(struct unix_sock *u, bool lost_data)
{
    struct unix_sock *peer = u->peer;
    if (!peer)
        return;
    if (u->base.type != SOCK_DGRAM) {
        peer->base.shut = SOCKET_SHUT_BOTH;
        if (lost_data)
            peer->base.error = ECONNRESET;
        unix_sock_state_change(peer);
    }
    unix_sock_drop_peer(u);
}

static void sock_close(struct unix_sock *u)
{
    bool lost_data = u->queue_len > 0;
    u->dead = true;
    u->base.shut = SOCKET_SHUT_BOTH;
    u->state = UNIX_CLOSED;
    u->base.listening = false;
    endpoint_unbind(&u->endpoint);
    list_del(&u->name_link);
    waitq_wake_all(&u->peer_wait);
    unix_sock_state_change(u);
    hang_up_peer(u, lost_data);
    while (!list_empty(&u->pending)) {
        struct unix_sock *embryo = list_first(&u->pending, struct unix_sock, pending_link);
        list_del(&embryo->pending_link);
        u->pending_len--;
        if (embryo->peer)
            embryo->peer->base.error = ECONNRESET; /* never accepted */
        sock_close(embryo);
        socket_unref(&embryo->base);
    }
    queue_flush(u);
}

void unix_sock_release(struct socket *s)
{
    struct unix_sock *u = to_unix(s);
    sock_close(u);
    socket_unref(s);
}

void unix_sock_visit_files(struct socket *s, void (*fn)(struct file *f, void *arg), void *arg)
{
    struct unix_sock *u = to_unix(s), *embryo;
    struct unix_buf *b;
    list_for_each_entry(b, &u->queue, link)
    {
        for (uint32_t i = 0; b->scm.rights && i < b->scm.rights->len; i++)
            fn(b->scm.rights->files[i], arg);
    }
    list_for_each_entry(embryo, &u->pending, pending_link)
    {
        unix_sock_visit_files(&embryo->base, fn, arg);
    }
}

void unix_sock_purge_files(struct socket *s)
{
    struct unix_sock *u = to_unix(s), *embryo, *found;
    queue_flush(u);
    /* A flush may close sockets, u among them, and so change the list: look again from its start. */
    do {
        found = NULL;
        list_for_each_entry(embryo, &u->pending, pending_link)
        {
            if (embryo->queue_len) {
                found = embryo;
                break;
            }
        }
        if (found) {
            socket_ref(&found->base);
            queue_flush(found);
            socket_unref(&found->base);
        }
    } while (found);
}

/* ---- creation ---- */

static int unix_create(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_socket)
{
    if (protocol && protocol != PF_UNIX)
        return -EPROTONOSUPPORT;
    if (type == SOCK_RAW)
        type = SOCK_DGRAM;
    if (type != SOCK_STREAM && type != SOCK_DGRAM && type != SOCK_SEQPACKET)
        return -ESOCKTNOSUPPORT;
    struct unix_sock *u = unix_sock_new(ns, type, protocol);
    if (!u)
        return -ENOMEM;
    *ret_socket = &u->base;
    return 0;
}

static int unix_pair(struct ctx *ctx, struct netns *ns, int type, int protocol, struct socket **ret_pair)
{
    struct socket *a, *b;
    int r = unix_create(ctx, ns, type, protocol, &a);
    if (r)
        return r;
    r = unix_create(ctx, ns, type, protocol, &b);
    if (r) {
        unix_sock_release(a);
        return r;
    }
    unix_sock_set_peer(to_unix(a), to_unix(b));
    unix_sock_set_peer(to_unix(b), to_unix(a));
    to_unix(a)->state = to_unix(b)->state = UNIX_CONNECTED;
    scm_cred_current(ctx, &a->peer);
    scm_cred_copy(&b->peer, &a->peer);
    ret_pair[0] = a;
    ret_pair[1] = b;
    return 0;
}

const struct socket_family unix_family = {.family = AF_UNIX, .create = unix_create, .pair = unix_pair};

/* ---- /proc/net/unix ---- */

void unix_sock_print(struct netns *ns, struct buf *out)
{
    struct unix_sock *u;
    buf_puts(out, "Num       RefCount Protocol Flags    Type St Inode Path\n");
    list_for_each_entry(u, &ns->unix_all, all_link)
    {
        if (u->dead)
            continue;
        unsigned st = !u->base.file ? 2 : u->state == UNIX_CONNECTED ? 3 : 1; /* SS_CONNECTING, CONNECTED, UNCONNECTED */
        unsigned long long ino = u->base.file ? u->base.file->inode->ino : 0;
        buf_printf(out, "%016x: %08X %08X %08X %04X %02X %5llu", 0, u->base.ref.count, 0,
                   u->state == UNIX_LISTENING ? 0x10000 : 0, (unsigned)u->base.type, st, ino);
        if (u->name && u->name->size > UNIX_ADDR_MIN) {
            const uint8_t *p = u->name->sockaddr + UNIX_ADDR_MIN;
            uint32_t len = u->name->size - UNIX_ADDR_MIN;
            bool abstract = p[0] == 0;
            buf_putc(out, ' ');
            for (uint32_t i = 0; i < (abstract ? len : len - 1); i++)
                buf_putc(out, p[i] ? (char)p[i] : '@');
        }
        buf_putc(out, '\n');
    }
}
