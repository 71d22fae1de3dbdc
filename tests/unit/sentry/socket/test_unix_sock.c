/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets: streams, messages, abstract names, ends of connections, descriptors in flight and their collector. */
#include "sentry/socket/unix_sock.h"

#include "tests/unit/sentry/ipc_fixture.h"

#include <sys/epoll.h>
#include <sys/un.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/fs/pipe.h"
#include "sentry/socket/netns.h"

static struct netns *ns;
static struct file *a, *b;
static char junk[300000];

static void make_pair(int type)
{
    struct socket *pair[2];
    cr_assert_eq(socket_new_pair(&fx_ctx, ns, AF_UNIX, type, 0, pair), 0);
    a = socket_file_new(pair[0], O_NONBLOCK, fx_cred);
    b = socket_file_new(pair[1], O_NONBLOCK, fx_cred);
    cr_assert(a && b);
}

static void up(void)
{
    fx_up();
    cr_assert_eq(netns_new(NULL, true, &ns), 0);
    a = b = NULL;
}

static void down(void)
{
    file_unref(a);
    file_unref(b);
    scm_gc_run();
    cr_assert_eq(limit_used(LIMIT_KIND_UNIX_BYTES), 0);
    netns_unref(ns);
    fx_down();
}

TestSuite(unix_sock, .init = up, .fini = down);

static struct file *make(int type)
{
    struct socket *s;
    cr_assert_eq(socket_new(&fx_ctx, ns, AF_UNIX, type, 0, &s), 0);
    return socket_file_new(s, O_NONBLOCK, fx_cred);
}

static struct socket_addr abstract(const char *name)
{
    struct socket_addr addr = {.size = (uint32_t)(3 + strlen(name))};
    addr.sa.sa_family = AF_UNIX;
    memcpy((char *)&addr.storage + 3, name, strlen(name));
    return addr;
}

static ssize_t send_msg(struct file *f, const void *p, size_t size, struct file *pass, const struct socket_addr *to)
{
    struct uio u;
    struct socket_msg m = {.uio = &u, .flags = MSG_DONTWAIT | MSG_NOSIGNAL};
    uio_init_user(&u, &fx_ctx, UADDR((uintptr_t)p), size);
    if (to)
        m.name = *to;
    if (pass) {
        m.scm.rights = mem_zalloc(sizeof(struct scm_rights) + sizeof(struct file *));
        m.scm.rights->len = 1;
        m.scm.rights->files[0] = file_ref(pass);
    }
    ssize_t n = socket_sendmsg(&fx_ctx, socket_of(f), &m);
    scm_free(&m.scm);
    return n;
}

static ssize_t recv_msg(struct file *f, size_t size, int flags, struct file **ret_file, int *ret_flags)
{
    struct uio u;
    struct socket_msg m = {.uio = &u, .flags = MSG_DONTWAIT | flags, .want_name = true};
    uio_init_user(&u, &fx_ctx, UADDR((uintptr_t)junk), size);
    ssize_t n = socket_recvmsg(&fx_ctx, socket_of(f), &m);
    if (ret_file)
        *ret_file = m.scm.rights ? file_ref(m.scm.rights->files[0]) : NULL;
    if (ret_flags)
        *ret_flags = m.out_flags;
    scm_free(&m.scm);
    return n;
}

Test(unix_sock, stream_has_no_borders)
{
    make_pair(SOCK_STREAM);
    cr_assert_eq(fx_write(a, "hello", 5), 5);
    cr_assert_eq(fx_write(a, "world", 5), 5);
    cr_assert_eq(recv_msg(b, 3, MSG_PEEK, NULL, NULL), 3);
    cr_assert_eq(recv_msg(b, 100, MSG_PEEK, NULL, NULL), 10);
    cr_assert_eq(fx_read(b, junk, 7), 7);
    cr_assert(!memcmp(junk, "hellowo", 7));
    cr_assert_eq(fx_read(b, junk, 7), 3);
    cr_assert_eq(fx_read(b, junk, 7), -EAGAIN);
}

Test(unix_sock, stream_buffers_are_bounded)
{
    ssize_t n, sum = 0;
    make_pair(SOCK_STREAM);
    while ((n = fx_write(a, junk, sizeof(junk))) > 0)
        sum += n;
    cr_assert_eq(n, -EAGAIN);
    cr_assert(sum > 100000 && sum < 400000);
    cr_assert_eq(file_poll(a, NULL) & EPOLLOUT, 0);
    while ((n = fx_read(b, junk, 10000)) > 0)
        sum -= n;
    cr_assert_eq(sum, 0);
    cr_assert(file_poll(a, NULL) & EPOLLOUT);
}

Test(unix_sock, stream_ends)
{
    make_pair(SOCK_STREAM);
    fx_write(a, "last", 4);
    cr_assert_eq(socket_shutdown(socket_of(a), SOCKET_SHUT_WR), 0);
    cr_assert_eq(file_poll(b, NULL), EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | SOCKET_KEY_OUT);
    cr_assert_eq(fx_read(b, junk, 10), 4);
    cr_assert_eq(fx_read(b, junk, 10), 0);
    cr_assert_eq(fx_write(a, "x", 1), -EPIPE);
    cr_assert_eq(fx_write(b, "y", 1), 1);
    file_unref(a); /* with data unread: a reset */
    a = NULL;
    cr_assert_eq(file_poll(b, NULL),
                 EPOLLIN | EPOLLRDNORM | EPOLLRDHUP | EPOLLHUP | EPOLLERR | SOCKET_KEY_OUT);
    cr_assert_eq(fx_read(b, junk, 10), -ECONNRESET);
    cr_assert_eq(fx_read(b, junk, 10), 0);
    cr_assert_eq(fx_write(b, "y", 1), -EPIPE);
}

Test(unix_sock, listen_connect_accept)
{
    struct socket_addr addr = abstract("srv"), got;
    struct socket *conn;
    a = make(SOCK_STREAM);
    b = make(SOCK_STREAM);
    cr_assert_eq(file_poll(b, NULL), EPOLLHUP | SOCKET_KEY_OUT);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(b), &addr, true), -ECONNREFUSED);
    cr_assert_eq(socket_listen(&fx_ctx, socket_of(a), 1), -EINVAL, "not bound");
    cr_assert_eq(socket_bind(&fx_ctx, socket_of(a), &addr), 0);
    cr_assert_eq(socket_bind(&fx_ctx, socket_of(b), &addr), -EADDRINUSE);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(b), &addr, true), -ECONNREFUSED);
    cr_assert_eq(socket_listen(&fx_ctx, socket_of(a), 0), 0);
    cr_assert_eq(socket_accept(&fx_ctx, socket_of(a), true, &conn), -EAGAIN);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(b), &addr, true), 0);
    struct file *c = make(SOCK_STREAM);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(c), &addr, true), -EAGAIN, "backlog");
    cr_assert_eq(fx_write(b, "early", 5), 5);
    cr_assert_eq(socket_accept(&fx_ctx, socket_of(a), true, &conn), 0);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(b), &addr, true), -EISCONN);
    struct file *s = socket_file_new(conn, O_NONBLOCK, fx_cred);
    cr_assert_eq(fx_read(s, junk, 10), 5);
    cr_assert_eq(socket_getname(socket_of(s), false, &got), 0);
    cr_assert_eq(got.size, addr.size);
    cr_assert_eq(socket_getname(socket_of(s), true, &got), 0);
    cr_assert_eq(got.size, 2);
    /* A connection that is never accepted is reset with its listener. */
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(c), &addr, true), 0);
    file_unref(a);
    a = NULL;
    cr_assert_eq(fx_read(c, junk, 10), -ECONNRESET);
    file_unref(c);
    file_unref(s);
    cr_assert_eq(fx_read(b, junk, 10), 0);
}

Test(unix_sock, messages_keep_borders)
{
    int flags;
    make_pair(SOCK_SEQPACKET);
    fx_write(a, "12345", 5);
    fx_write(a, "678", 3);
    cr_assert_eq(recv_msg(b, 2, 0, NULL, &flags), 2);
    cr_assert(flags & MSG_TRUNC);
    cr_assert_eq(recv_msg(b, 1, MSG_TRUNC, NULL, &flags), 3);
    cr_assert_eq(recv_msg(b, 10, 0, NULL, &flags), -EAGAIN);
    cr_assert_eq(send_msg(a, junk, 0, NULL, NULL), 0);
    cr_assert_eq(recv_msg(b, 10, 0, NULL, &flags), 0);
    cr_assert_eq(send_msg(a, junk, sizeof(junk), NULL, NULL), -EMSGSIZE);
    file_unref(a);
    a = NULL;
    cr_assert_eq(recv_msg(b, 10, 0, NULL, &flags), 0);
    cr_assert_eq(send_msg(b, "x", 1, NULL, NULL), -EPIPE);
}

Test(unix_sock, datagrams)
{
    struct socket_addr addr = abstract("dg"), other = abstract("me");
    a = make(SOCK_DGRAM);
    b = make(SOCK_DGRAM);
    cr_assert_eq(send_msg(b, "x", 1, NULL, NULL), -ENOTCONN);
    cr_assert_eq(send_msg(b, "x", 1, NULL, &addr), -ECONNREFUSED);
    cr_assert_eq(socket_bind(&fx_ctx, socket_of(a), &addr), 0);
    cr_assert_eq(socket_bind(&fx_ctx, socket_of(b), &other), 0);
    int sent = 0;
    while (send_msg(b, "x", 1, NULL, &addr) == 1)
        sent++;
    cr_assert_eq(sent, UNIX_DGRAM_QUEUE + 1);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(b), &addr, true), 0);
    cr_assert_eq(file_poll(b, NULL) & EPOLLOUT, 0, "the receiver is full");
    cr_assert_eq(recv_msg(a, 10, 0, NULL, NULL), 1);
    cr_assert(file_poll(b, NULL) & EPOLLOUT);
    /* A connected receiver hears nobody else. */
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(a), &addr, true), 0);
    cr_assert_eq(send_msg(b, "x", 1, NULL, NULL), -EPERM);
    file_unref(a);
    a = NULL;
    cr_assert_eq(send_msg(b, "x", 1, NULL, NULL), -ECONNREFUSED);
    cr_assert_eq(send_msg(b, "x", 1, NULL, NULL), -ENOTCONN);
}

Test(unix_sock, autobind)
{
    struct socket_addr none = {.size = 2}, got;
    none.sa.sa_family = AF_UNIX;
    a = make(SOCK_DGRAM);
    cr_assert_eq(socket_bind(&fx_ctx, socket_of(a), &none), 0);
    cr_assert_eq(socket_getname(socket_of(a), false, &got), 0);
    cr_assert_eq(got.size, 8);
}

Test(unix_sock, rights)
{
    struct file *r, *w, *got;
    make_pair(SOCK_STREAM);
    cr_assert_eq(pipe_new(fx_cred, O_NONBLOCK, &r, &w), 0);
    fx_write(a, "before", 6);
    cr_assert_eq(send_msg(a, "with", 4, w, NULL), 4);
    fx_write(a, "after", 5);
    file_unref(w);
    cr_assert_eq(fx_read(r, junk, 1), -EAGAIN, "in flight: the writer is alive");
    cr_assert_eq(recv_msg(b, 100, MSG_PEEK, &got, NULL), 10);
    cr_assert_eq(fx_write(got, "p", 1), 1);
    file_unref(got);
    cr_assert_eq(recv_msg(b, 100, 0, &got, NULL), 10, "a read stops after descriptors");
    cr_assert_eq(fx_write(got, "q", 1), 1);
    file_unref(got);
    cr_assert_eq(fx_read(r, junk, 10), 2);
    cr_assert_eq(fx_read(r, junk, 10), 0);
    cr_assert_eq(fx_read(b, junk, 10), 5);
    file_unref(r);
}

Test(unix_sock, collects_cycles)
{
    struct file *r, *w;
    cr_assert_eq(pipe_new(fx_cred, O_NONBLOCK, &r, &w), 0);
    make_pair(SOCK_STREAM);
    /* Each end lies in the other's queue, with a pipe to tell when they are gone. */
    cr_assert_eq(send_msg(a, "x", 1, a, NULL), 1);
    cr_assert_eq(send_msg(b, "x", 1, b, NULL), 1);
    cr_assert_eq(send_msg(a, "x", 1, w, NULL), 1);
    file_unref(w);
    scm_gc_run();
    cr_assert_eq(fx_read(r, junk, 1), -EAGAIN, "still reachable");
    file_unref(a);
    scm_gc_run();
    cr_assert_eq(fx_read(r, junk, 1), -EAGAIN, "reachable through b");
    file_unref(b);
    a = b = NULL;
    scm_gc_run();
    cr_assert_eq(fx_read(r, junk, 1), 0, "garbage");
    file_unref(r);
}

Test(unix_sock, collector_spares_what_a_reachable_queue_holds)
{
    struct file *outer_a, *outer_b, *got;
    make_pair(SOCK_STREAM);
    outer_a = a;
    outer_b = b;
    make_pair(SOCK_STREAM);
    cr_assert_eq(send_msg(a, "self", 4, a, NULL), 4);
    cr_assert_eq(send_msg(outer_a, "y", 1, b, NULL), 1);
    file_unref(a);
    file_unref(b);
    a = b = NULL;
    scm_gc_run();
    cr_assert_eq(recv_msg(outer_b, 10, 0, &got, NULL), 1);
    cr_assert_eq(recv_msg(got, 10, 0, &a, NULL), 4);
    cr_assert_not_null(a);
    file_unref(got);
    file_unref(outer_a);
    file_unref(outer_b);
}

Test(unix_sock, collector_looks_into_connections_not_accepted)
{
    struct socket_addr addr = abstract("lst");
    struct file *l = make(SOCK_STREAM), *c = make(SOCK_STREAM);
    cr_assert_eq(socket_bind(&fx_ctx, socket_of(l), &addr), 0);
    cr_assert_eq(socket_listen(&fx_ctx, socket_of(l), 5), 0);
    cr_assert_eq(socket_connect(&fx_ctx, socket_of(c), &addr, true), 0);
    cr_assert_eq(send_msg(c, "x", 1, l, NULL), 1); /* the listener lies in its own backlog */
    file_unref(l);
    scm_gc_run();
    file_unref(c);
    scm_gc_run();
    cr_assert_eq(limit_used(LIMIT_KIND_UNIX_BYTES), 0);
}
