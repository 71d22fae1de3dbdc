/* SPDX-License-Identifier: Apache-2.0 */
/* socket, socketpair, bind, listen, accept, connect, getsockname, getpeername, shutdown. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/socket.h"
#include "sentry/syscalls/sock_args.h"
#include "sentry/vfs/file.h"

#define TYPE_MASK 0xf

int sock_arg_get(struct task *t, int fd, struct file **ret_file, struct socket **ret_socket)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    *ret_socket = socket_of(f);
    if (!*ret_socket) {
        file_unref(f);
        return -ENOTSOCK;
    }
    *ret_file = f;
    return 0;
}

int sock_arg_addr_in(struct task *t, uaddr_t addr, int32_t size, struct socket_addr *ret_addr)
{
    ret_addr->size = 0;
    if (size < 0 || size > (int32_t)sizeof(ret_addr->storage))
        return -EINVAL;
    if (copy_in(&t->ctx, &ret_addr->storage, addr, (size_t)size))
        return -EFAULT;
    ret_addr->size = (uint32_t)size;
    return 0;
}

int sock_arg_addr_out(struct task *t, uaddr_t addr, uaddr_t size_addr, const struct socket_addr *a)
{
    int32_t room, size = (int32_t)a->size;
    if (COPY_IN(&t->ctx, &room, size_addr))
        return -EFAULT;
    if (room < 0)
        return -EINVAL;
    if (copy_out(&t->ctx, addr, &a->storage, (size_t)MIN(room, size)))
        return -EFAULT;
    return COPY_OUT(&t->ctx, size_addr, &size);
}

/* Splits the flags off a type argument. */
static int split_type(int32_t *type, int *ret_flags)
{
    *ret_flags = *type & ~TYPE_MASK;
    *type &= TYPE_MASK;
    return *ret_flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK) ? -EINVAL : 0;
}

int64_t sys_socket(struct task *t, int32_t domain, int32_t type, int32_t protocol)
{
    struct socket *s;
    int flags;
    int r = split_type(&type, &flags);
    if (!r)
        r = socket_new(&t->ctx, t->ns->net, domain, type, protocol, &s);
    if (r)
        return r;
    struct file *f = socket_file_new(s, (uint32_t)flags, t->ctx.cred);
    return f ? fdtable_add(t, f, 0, flags & SOCK_CLOEXEC) : -ENOMEM;
}

/* Reserves two numbers and shows them to the guest. Return: 0, −EMFILE, −ENOMEM, −EFAULT (nothing is held then). */
static int reserve_pair(struct task *t, uaddr_t fds, int32_t pair[2])
{
    pair[0] = fdtable_reserve(t, 0);
    if (pair[0] < 0)
        return pair[0];
    pair[1] = fdtable_reserve(t, 0);
    int r = pair[1] < 0 ? pair[1] : copy_out(&t->ctx, fds, pair, 2 * sizeof(pair[0]));
    if (!r)
        return 0;
    if (pair[1] >= 0)
        fdtable_unreserve(t, pair[1]);
    fdtable_unreserve(t, pair[0]);
    return r;
}

int64_t sys_socketpair(struct task *t, int32_t domain, int32_t type, int32_t protocol, uaddr_t fds)
{
    struct socket *pair[2];
    int flags;
    int32_t numbers[2];
    int r = split_type(&type, &flags);
    if (!r)
        r = socket_new_pair(&t->ctx, t->ns->net, domain, type, protocol, pair);
    if (r)
        return r;
    struct file *a = socket_file_new(pair[0], (uint32_t)flags, t->ctx.cred);
    struct file *b = socket_file_new(pair[1], (uint32_t)flags, t->ctx.cred);
    r = a && b ? reserve_pair(t, fds, numbers) : -ENOMEM;
    if (r) {
        file_unref(a);
        file_unref(b);
        return r;
    }
    fdtable_install(t, numbers[0], a, flags & SOCK_CLOEXEC);
    fdtable_install(t, numbers[1], b, flags & SOCK_CLOEXEC);
    return 0;
}

int64_t sys_bind(struct task *t, int32_t fd, uaddr_t addr, int32_t addrlen)
{
    struct file *f;
    struct socket *s;
    struct socket_addr a;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    r = sock_arg_addr_in(t, addr, addrlen, &a);
    if (!r)
        r = socket_bind(&t->ctx, s, &a);
    file_unref(f);
    return r;
}

int64_t sys_connect(struct task *t, int32_t fd, uaddr_t addr, int32_t addrlen)
{
    struct file *f;
    struct socket *s;
    struct socket_addr a;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    r = sock_arg_addr_in(t, addr, addrlen, &a);
    if (!r)
        r = socket_connect(&t->ctx, s, &a, f->flags & O_NONBLOCK);
    file_unref(f);
    return r;
}

int64_t sys_listen(struct task *t, int32_t fd, int32_t backlog)
{
    struct file *f;
    struct socket *s;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    r = socket_listen(&t->ctx, s, backlog);
    file_unref(f);
    return r;
}

/* Accepts, tells the address, publishes. A connection whose address can't be told is dropped. */
static int64_t accept_on(struct task *t, struct file *f, struct socket *s, uaddr_t addr, uaddr_t addrlen,
                         int32_t flags)
{
    struct socket *conn;
    struct socket_addr a;
    int fd = fdtable_reserve(t, 0);
    if (fd < 0)
        return fd;
    int r = socket_accept(&t->ctx, s, f->flags & O_NONBLOCK, &conn);
    if (r) {
        fdtable_unreserve(t, fd);
        return r;
    }
    struct file *cf = socket_file_new(conn, (uint32_t)flags, t->ctx.cred);
    r = cf ? 0 : -ENOMEM;
    if (!r && !uaddr_is_null(addr)) {
        r = socket_getname(conn, true, &a) ? -ECONNABORTED : 0;
        if (!r)
            r = sock_arg_addr_out(t, addr, addrlen, &a);
    }
    if (r) {
        file_unref(cf);
        fdtable_unreserve(t, fd);
        return r;
    }
    fdtable_install(t, fd, cf, flags & SOCK_CLOEXEC);
    return fd;
}

int64_t sys_accept4(struct task *t, int32_t fd, uaddr_t addr, uaddr_t addrlen, int32_t flags)
{
    struct file *f;
    struct socket *s;
    if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
        return -EINVAL;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    int64_t n = accept_on(t, f, s, addr, addrlen, flags);
    file_unref(f);
    return n;
}

int64_t sys_accept(struct task *t, int32_t fd, uaddr_t addr, uaddr_t addrlen)
{
    return sys_accept4(t, fd, addr, addrlen, 0);
}

static int64_t name_of(struct task *t, int32_t fd, uaddr_t addr, uaddr_t addrlen, bool peer)
{
    struct file *f;
    struct socket *s;
    struct socket_addr a;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    r = socket_getname(s, peer, &a);
    file_unref(f);
    return r ? r : sock_arg_addr_out(t, addr, addrlen, &a);
}

int64_t sys_getsockname(struct task *t, int32_t fd, uaddr_t addr, uaddr_t addrlen)
{
    return name_of(t, fd, addr, addrlen, false);
}

int64_t sys_getpeername(struct task *t, int32_t fd, uaddr_t addr, uaddr_t addrlen)
{
    return name_of(t, fd, addr, addrlen, true);
}

int64_t sys_shutdown(struct task *t, int32_t fd, int32_t how)
{
    struct file *f;
    struct socket *s;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    r = how < 0 || how > SHUT_RDWR ? -EINVAL : socket_shutdown(s, how + 1); /* SHUT_RD, WR, RDWR → bits */
    file_unref(f);
    return r;
}
