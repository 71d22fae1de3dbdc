/* SPDX-License-Identifier: Apache-2.0 */
/* sendto, recvfrom, sendmsg, recvmsg, sendmmsg, recvmmsg. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/socket/socket.h"
#include "sentry/syscalls/sock_args.h"
#include "sentry/vfs/file.h"

#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif
#define OVERFLOW_ID 65534U
#define NS_PER_S 1000000000ULL

enum {
    CONTROL_MAX = 20480,  /* net.core.optmem_max */
    MMSG_MAX = 1024,      /* messages of one sendmmsg or recvmmsg, as UIO_MAXIOV */
};

/* The guest's struct msghdr, with addresses as numbers. */
struct user_msg {
    uint64_t name;
    int32_t namelen, pad;
    uint64_t iov, iovlen;
    uint64_t control, controllen;
    int32_t flags, pad2;
};
_Static_assert(sizeof(struct user_msg) == sizeof(struct msghdr), "msghdr");

static int nonblock_flag(const struct file *f)
{
    return f->flags & O_NONBLOCK ? MSG_DONTWAIT : 0;
}

/* ---- sending ---- */

int64_t sys_sendto(struct task *t, int32_t fd, uaddr_t buf, uint64_t len, int32_t flags, uaddr_t addr,
                   int32_t addrlen)
{
    struct file *f;
    struct socket *s;
    struct uio u;
    struct socket_msg m = {.uio = &u};
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    if (!uaddr_is_null(addr))
        r = sock_arg_addr_in(t, addr, addrlen, &m.name);
    ssize_t n = r;
    if (!r) {
        uio_init_user(&u, &t->ctx, buf, len);
        m.flags = (flags & ~MSG_CMSG_CLOEXEC) | nonblock_flag(f);
        n = socket_sendmsg(&t->ctx, s, &m);
    }
    file_unref(f);
    return n;
}

/* Copies control messages in and parses them. */
static int control_in(struct task *t, struct socket *s, const struct user_msg *um, struct scm *scm)
{
    if (um->controllen == 0)
        return 0;
    if (um->controllen > CONTROL_MAX)
        return -ENOBUFS;
    CLEANUP_FREE void *data = mem_zalloc(um->controllen);
    if (!data)
        return -ENOBUFS;
    if (copy_in(&t->ctx, data, UADDR(um->control), um->controllen))
        return -EFAULT;
    return scm_parse(t, data, um->controllen, s->family == AF_UNIX, scm);
}

/* um is the guest's header, already read. */
static ssize_t send_one(struct task *t, struct file *f, struct socket *s, const struct user_msg *um, int flags)
{
    struct uio u;
    struct socket_msg m = {.uio = &u, .flags = (flags & ~MSG_CMSG_CLOEXEC) | nonblock_flag(f)};
    if (um->iovlen > UIO_IOV_MAX)
        return -EMSGSIZE;
    int r = 0;
    if (um->name && um->namelen)
        r = sock_arg_addr_in(t, UADDR(um->name), MIN(um->namelen, (int32_t)sizeof(m.name.storage)), &m.name);
    if (r)
        return r;
    r = uio_init_iovec(&u, &t->ctx, UADDR(um->iov), um->iovlen);
    if (r)
        return r;
    ssize_t n = control_in(t, s, um, &m.scm);
    if (!n)
        n = socket_sendmsg(&t->ctx, s, &m);
    scm_free(&m.scm);
    uio_free(&u);
    return n;
}

int64_t sys_sendmsg(struct task *t, int32_t fd, uaddr_t msg, int32_t flags)
{
    struct file *f;
    struct socket *s;
    struct user_msg um;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    ssize_t n = COPY_IN(&t->ctx, &um, msg) ? -EFAULT : send_one(t, f, s, &um, flags);
    file_unref(f);
    return n;
}

int64_t sys_sendmmsg(struct task *t, int32_t fd, uaddr_t msgs, uint32_t vlen, uint32_t flags)
{
    struct file *f;
    struct socket *s;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    uint32_t done = 0;
    ssize_t n = 0;
    vlen = MIN(vlen, (uint32_t)MMSG_MAX);
    while (done < vlen) {
        struct user_msg um;
        uaddr_t at = uaddr_add(msgs, done * sizeof(struct mmsghdr));
        n = COPY_IN(&t->ctx, &um, at) ? -EFAULT : send_one(t, f, s, &um, (int)flags);
        uint32_t sent = (uint32_t)n;
        if (n >= 0 && copy_out(&t->ctx, uaddr_add(at, sizeof(um)), &sent, sizeof(sent)))
            n = -EFAULT;
        if (n < 0)
            break;
        done++;
    }
    file_unref(f);
    return done ? (int64_t)done : n;
}

/* ---- receiving ---- */

int64_t sys_recvfrom(struct task *t, int32_t fd, uaddr_t buf, uint64_t len, int32_t flags, uaddr_t addr,
                     uaddr_t addrlen)
{
    struct file *f;
    struct socket *s;
    struct uio u;
    struct socket_msg m = {.uio = &u, .want_name = !uaddr_is_null(addr)};
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    uio_init_user(&u, &t->ctx, buf, len);
    m.flags = flags | nonblock_flag(f);
    ssize_t n = socket_recvmsg(&t->ctx, s, &m);
    scm_free(&m.scm);
    file_unref(f);
    if (n >= 0 && !uaddr_is_null(addr)) {
        r = sock_arg_addr_out(t, addr, addrlen, &m.name);
        if (r)
            return r;
    }
    return n;
}

/* Control messages on their way to the guest, with the descriptors to publish once they are there. */
struct control_out {
    char *data;          /* room bytes */
    uint64_t room, used; /* used: what controllen will say, padding included */
    int flags;           /* MSG_CTRUNC */
    int32_t fds[LIMIT_SCM_FDS + 1];
    struct file *files[LIMIT_SCM_FDS + 1]; /* referenced */
    uint32_t fds_len;
    uint32_t cloexec_from; /* fds from here on close on exec whatever the flags say (pidfds) */
};

/* Appends one message, cut off when there is no room for all of it. */
static void control_put(struct control_out *c, int level, int type, const void *p, uint64_t size)
{
    uint64_t whole = sizeof(struct cmsghdr) + size, left = c->room - c->used;
    if (left < sizeof(struct cmsghdr)) {
        c->flags |= MSG_CTRUNC;
        return;
    }
    if (left < whole) {
        c->flags |= MSG_CTRUNC;
        whole = left;
    }
    struct cmsghdr h = {.cmsg_len = whole, .cmsg_level = level, .cmsg_type = type};
    memcpy(c->data + c->used, &h, sizeof(h));
    memcpy(c->data + c->used + sizeof(h), p, whole - sizeof(h));
    c->used += MIN(ALIGN_UP(whole, sizeof(uint64_t)), left);
}

static void control_put_cred(struct task *t, struct control_out *c, const struct scm_cred *cred)
{
    struct ucred u = {
        .pid = cred->pid ? pid_number(cred->pid, t->pidns) : 0,
        .uid = userns_uid_shown(t->ctx.cred->userns, cred->uid),
        .gid = userns_gid_shown(t->ctx.cred->userns, cred->gid),
    };
    control_put(c, SOL_SOCKET, SCM_CREDENTIALS, &u, sizeof(u));
}

/* Reserves a number for file (consumed, also on failure). Return: whether it worked. */
static bool control_reserve(struct task *t, struct control_out *c, OWNS struct file *file)
{
    int fd = fdtable_reserve(t, 0);
    if (fd < 0) {
        file_unref(file);
        return false;
    }
    c->fds[c->fds_len] = fd;
    c->files[c->fds_len++] = file;
    return true;
}

/* As many descriptors as fit into the guest's buffer and table; the rest is dropped. */
static void control_put_rights(struct task *t, struct control_out *c, struct scm_rights *rights)
{
    uint64_t left = c->room - c->used;
    uint64_t fit = left > sizeof(struct cmsghdr) ? (left - sizeof(struct cmsghdr)) / sizeof(int32_t) : 0;
    uint32_t first = c->fds_len, n = 0;
    while (n < rights->len && n < fit && control_reserve(t, c, file_ref(rights->files[n])))
        n++;
    if (n)
        control_put(c, SOL_SOCKET, SCM_RIGHTS, &c->fds[first], n * sizeof(int32_t));
    c->cloexec_from = c->fds_len;
    if (n < rights->len)
        c->flags |= MSG_CTRUNC;
}

static void control_put_pidfd(struct task *t, struct control_out *c, const struct scm_cred *cred)
{
    struct task *leader = cred->pid ? cred->pid->task : NULL;
    int32_t fd = -1;
    if (c->room - c->used < sizeof(struct cmsghdr) + sizeof(fd)) {
        c->flags |= MSG_CTRUNC;
        return;
    }
    struct file *pf = leader ? anon_pidfd_new(leader->group, 0, t->ctx.cred) : NULL;
    if (pf && control_reserve(t, c, pf))
        fd = c->fds[c->fds_len - 1];
    control_put(c, SOL_SOCKET, SCM_PIDFD, &fd, sizeof(fd));
}

static void control_put_stamp(struct socket *s, struct control_out *c, uint64_t ns)
{
    int64_t v[2] = {(int64_t)(ns / NS_PER_S), (int64_t)(ns % NS_PER_S)};
    if (!s->timestamp_ns)
        v[1] /= 1000;
    control_put(c, SOL_SOCKET, s->timestamp_ns ? SCM_TIMESTAMPNS : SCM_TIMESTAMP, v, sizeof(v));
}

static void control_drop(struct task *t, struct control_out *c)
{
    for (uint32_t i = 0; i < c->fds_len; i++) {
        fdtable_unreserve(t, c->fds[i]);
        file_unref(c->files[i]);
    }
}

/* Builds what m carries. */
static int control_build(struct task *t, struct socket *s, struct socket_msg *m, uint64_t room,
                         struct control_out *c)
{
    c->room = MIN(room, (uint64_t)CONTROL_MAX);
    if (m->control_size || m->scm.stamp_ns || m->scm.have_cred || m->scm.rights) {
        c->data = mem_zalloc(c->room ? c->room : 1);
        if (!c->data)
            return -ENOBUFS;
    }
    if (m->control_size)
        control_put(c, m->control_level, m->control_type, m->control, m->control_size);
    if (m->scm.stamp_ns)
        control_put_stamp(s, c, m->scm.stamp_ns);
    if (m->scm.have_cred && s->passcred)
        control_put_cred(t, c, &m->scm.cred);
    if (m->scm.rights)
        control_put_rights(t, c, m->scm.rights);
    if (m->scm.have_cred && s->passpidfd)
        control_put_pidfd(t, c, &m->scm.cred);
    return 0;
}

/* Everything the guest has to see, in the order: control data, address, header; then the descriptors become real. */
static int publish(struct task *t, uaddr_t msg, const struct user_msg *um, struct socket *s,
                   struct socket_msg *m)
{
    CLEANUP_FREE struct control_out *c = NEW(struct control_out);
    if (!c)
        return -ENOMEM;
    int r = control_build(t, s, m, um->control ? um->controllen : 0, c);
    struct user_msg out = *um;
    out.controllen = c->used;
    out.namelen = (int32_t)m->name.size;
    out.flags = m->out_flags | c->flags | (m->flags & MSG_CMSG_CLOEXEC);
    if (!r && c->used)
        r = copy_out(&t->ctx, UADDR(um->control), c->data, c->used);
    if (!r && m->want_name) {
        size_t size = MIN((size_t)MAX(um->namelen, 0), (size_t)m->name.size);
        r = copy_out(&t->ctx, UADDR(um->name), &m->name.storage, size);
        if (!r)
            r = copy_out(&t->ctx, uaddr_add(msg, offsetof(struct user_msg, namelen)), &out.namelen, 4);
    }
    if (!r)
        r = copy_out(&t->ctx, uaddr_add(msg, offsetof(struct user_msg, controllen)), &out.controllen, 8);
    if (!r)
        r = copy_out(&t->ctx, uaddr_add(msg, offsetof(struct user_msg, flags)), &out.flags, 4);
    if (r) {
        control_drop(t, c);
    } else {
        for (uint32_t i = 0; i < c->fds_len; i++)
            fdtable_install(t, c->fds[i], c->files[i], m->flags & MSG_CMSG_CLOEXEC || i >= c->cloexec_from);
    }
    mem_free(c->data);
    return r;
}

static ssize_t recv_one(struct task *t, struct file *f, struct socket *s, uaddr_t msg, int flags)
{
    struct user_msg um;
    struct uio u;
    struct socket_msg m = {.uio = &u, .flags = flags | nonblock_flag(f)};
    if (COPY_IN(&t->ctx, &um, msg))
        return -EFAULT;
    if (um.iovlen > UIO_IOV_MAX)
        return -EMSGSIZE;
    if (um.name && um.namelen < 0)
        return -EINVAL;
    m.want_name = um.name != 0;
    int r = uio_init_iovec(&u, &t->ctx, UADDR(um.iov), um.iovlen);
    if (r)
        return r;
    ssize_t n = socket_recvmsg(&t->ctx, s, &m);
    if (n >= 0) {
        r = publish(t, msg, &um, s, &m);
        if (r)
            n = r;
    }
    scm_free(&m.scm);
    uio_free(&u);
    return n;
}

int64_t sys_recvmsg(struct task *t, int32_t fd, uaddr_t msg, int32_t flags)
{
    struct file *f;
    struct socket *s;
    int r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    ssize_t n = recv_one(t, f, s, msg, flags);
    file_unref(f);
    return n;
}

/* Reads the time limit of recvmmsg. It is only looked at between messages. */
static int limit_in(struct task *t, uaddr_t timeout, uint64_t *ret_deadline)
{
    struct timespec ts;
    *ret_deadline = WAIT_FOREVER;
    if (uaddr_is_null(timeout))
        return 0;
    if (COPY_IN(&t->ctx, &ts, timeout))
        return -EFAULT;
    if (ts.tv_sec < 0 || ts.tv_nsec < 0 || (uint64_t)ts.tv_nsec >= NS_PER_S)
        return -EINVAL;
    uint64_t now = host_monotonic_ns();
    if ((uint64_t)ts.tv_sec < (WAIT_FOREVER - now) / NS_PER_S - 1)
        *ret_deadline = now + (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    return 0;
}

static int limit_out(struct task *t, uaddr_t timeout, uint64_t deadline)
{
    if (uaddr_is_null(timeout) || deadline == WAIT_FOREVER)
        return 0;
    uint64_t now = host_monotonic_ns(), left = deadline > now ? deadline - now : 0;
    struct timespec ts = {.tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S)};
    return COPY_OUT(&t->ctx, timeout, &ts);
}

int64_t sys_recvmmsg(struct task *t, int32_t fd, uaddr_t msgs, uint32_t vlen, uint32_t flags,
                     uaddr_t timeout)
{
    struct file *f;
    struct socket *s;
    uint64_t deadline;
    int r = limit_in(t, timeout, &deadline);
    if (!r)
        r = sock_arg_get(t, fd, &f, &s);
    if (r)
        return r;
    uint32_t done = 0;
    ssize_t n = socket_take_error(s);
    int once = (int)flags & ~MSG_WAITFORONE;
    vlen = MIN(vlen, (uint32_t)MMSG_MAX);
    while (n >= 0 && done < vlen) {
        uaddr_t at = uaddr_add(msgs, done * sizeof(struct mmsghdr));
        n = recv_one(t, f, s, at, once);
        uint32_t got = (uint32_t)n;
        if (n >= 0 && copy_out(&t->ctx, uaddr_add(at, sizeof(struct user_msg)), &got, sizeof(got)))
            n = -EFAULT;
        if (n < 0)
            break;
        done++;
        if (flags & MSG_WAITFORONE)
            once |= MSG_DONTWAIT;
        if (deadline != WAIT_FOREVER && host_monotonic_ns() >= deadline)
            break;
    }
    /* An error after some messages is kept for the next call. */
    if (done && n < 0 && n != -EAGAIN && n > -ERESTARTSYS)
        s->error = (int)-n;
    file_unref(f);
    r = limit_out(t, timeout, deadline);
    if (r)
        return r;
    return done ? (int64_t)done : n;
}
