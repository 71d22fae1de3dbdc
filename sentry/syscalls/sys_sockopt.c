/* SPDX-License-Identifier: Apache-2.0 */
/* setsockopt and getsockopt. */
#include "syscalls_gen.h"

#include <string.h>
#include <sys/socket.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/socket.h"
#include "sentry/syscalls/sock_args.h"
#include "sentry/vfs/file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Values up to INLINE_SIZE live on the stack; larger ones than VALUE_MAX are refused. */
enum { INLINE_SIZE = 128, VALUE_MAX = 16384 };

int64_t sys_setsockopt(struct task *t, int32_t fd, int32_t level, int32_t name, uaddr_t value, int32_t len)
{
    char small[INLINE_SIZE], *p = small;
    CLEANUP_FREE void *heap = NULL;
    struct file *f;
    struct socket *s;
    if (len < 0)
        return -EINVAL;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    if (len > VALUE_MAX) {
        r = -ENOBUFS;
    } else if (len > INLINE_SIZE) {
        p = heap = mem_zalloc((size_t)len);
        r = p ? 0 : -ENOMEM;
    }
    if (!r)
        r = copy_in(&t->ctx, p, value, (size_t)len);
    if (!r)
        r = sockopt_set(&t->ctx, s, level, name, p, (uint32_t)len);
    file_unref(f);
    return r;
}

/* A pidfd of the process on the other side. */
static int64_t get_peer_pidfd(struct task *t, struct socket *s, uaddr_t value, uaddr_t len_addr, int32_t len)
{
    int32_t fd, size = MIN(len, (int32_t)sizeof(fd));
    if (s->family != AF_UNIX || !s->peer.pid)
        return s->family == AF_UNIX ? -ENODATA : -EOPNOTSUPP;
    struct task *leader = s->peer.pid->task;
    if (!leader)
        return -ESRCH;
    struct file *pf = anon_pidfd_new(leader->group, 0, t->ctx.cred);
    if (!pf)
        return -ENOMEM;
    fd = fdtable_reserve(t, 0);
    int r = fd < 0 ? fd : copy_out(&t->ctx, value, &fd, (size_t)size);
    if (!r)
        r = COPY_OUT(&t->ctx, len_addr, &size);
    if (r) {
        if (fd >= 0)
            fdtable_unreserve(t, fd);
        file_unref(pf);
        return r;
    }
    fdtable_install(t, fd, pf, true);
    return 0;
}

/* Supplementary groups of the peer are not kept; the option is that of a kernel which predates it. */
int64_t sys_getsockopt(struct task *t, int32_t fd, int32_t level, int32_t name, uaddr_t value, uaddr_t len)
{
    char small[INLINE_SIZE], *p = small;
    CLEANUP_FREE void *heap = NULL;
    struct file *f;
    struct socket *s;
    int32_t room;
    int64_t r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    if (COPY_IN(&t->ctx, &room, len)) {
        r = -EFAULT;
    } else if (room < 0) {
        r = -EINVAL;
    } else if (level == SOL_SOCKET && name == SO_PEERPIDFD) {
        r = get_peer_pidfd(t, s, value, len, room);
        file_unref(f);
        return r;
    }
    uint32_t size = r ? 0 : (uint32_t)MIN(room, (int32_t)VALUE_MAX);
    if (!r && size > INLINE_SIZE) {
        p = heap = mem_zalloc(size);
        r = p ? 0 : -ENOMEM;
    }
    if (!r)
        r = sockopt_get(&t->ctx, s, level, name, p, &size);
    file_unref(f);
    if (!r)
        r = copy_out(&t->ctx, value, p, size);
    return r ? r : COPY_OUT(&t->ctx, len, &size);
}
