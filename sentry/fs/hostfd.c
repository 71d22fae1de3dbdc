/* SPDX-License-Identifier: Apache-2.0 */
/* Files over inherited host descriptors. The open file description belongs to other host processes as well, so its
 * flags are left alone: reads and writes are made non-blocking call by call, or run on the I/O pool. */
#include "sentry/fs/hostfd.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/gofer/gofer_fs.h"
#include "sentry/fs/hostfd_tty.h"
#include "sentry/fs/internal_fs.h"
#include "sentry/kernel/sigpipe.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

enum {
    HOSTFD_CHUNK = 64 * 1024,   /* bytes moved in one host call */
    HOSTFD_TTY_CHUNK = 2048,    /* the same to a terminal, where a call may wait for the reader */
    HOSTFD_STACK_CHUNK = 1024,  /* smaller transfers use the fiber's stack */
    HOSTFD_SLOW_NS = 2000000,   /* a write that took so long makes the next ones go to the pool … */
    HOSTFD_SLOW_FOR_NS = 100000000, /* … for so long */
};

enum hostfd_kind {
    HOSTFD_REG,    /* regular files and block devices: always ready */
    HOSTFD_STREAM, /* pipes, terminals, devices, anonymous objects */
    HOSTFD_SOCKET,
};

struct hostfd {
    struct inode inode;
    int fd;                /* (i) owned */
    enum hostfd_kind kind; /* (i) */
    bool tty;              /* (i) */
    bool pollable;         /* (k) epoll takes it */
    bool nowait_read, nowait_write; /* (k) RWF_NOWAIT has not been refused yet */
    bool reading, writing; /* (k) a pool thread is in a call that may wait */
    bool attr_override;    /* (k) owner or mode were changed inside the sandbox only */
    int host_access;       /* (i) O_ACCMODE of the description */
    bool host_append;      /* (i) */
    bool watching;         /* (k) watch is armed */
    uint64_t slow_until_ns; /* (k) writes of a regular file go to the pool until then */
    struct evloop_watch watch;
    struct waitq wait;
};

static struct hostfd *to_hostfd(struct inode *inode)
{
    return container_of(inode, struct hostfd, inode);
}

/* ---- readiness ---- */

static void hostfd_on_event(void *arg, uint32_t events)
{
    struct hostfd *h = arg;

    /* Nobody waits: stop listening, or a busy peer would wake the sandbox for nothing. */
    if (!waitq_active(&h->wait)) {
        evloop_unwatch(&h->watch);
        h->watching = false;
        return;
    }
    waitq_wake(&h->wait, events);
}

/* Arms the edge-triggered watch. Adding it reports what is ready already, so no edge is lost. */
static void hostfd_arm(struct hostfd *h)
{
    if (h->watching || !h->pollable)
        return;
    if (evloop_watch(&h->watch, h->fd, EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET,
                     hostfd_on_event, h)) {
        h->pollable = false;
        return;
    }
    h->watching = true;
}

static uint32_t hostfd_now(struct hostfd *h)
{
    struct pollfd p = {.fd = h->fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM};

    if (host_ret(poll(&p, 1, 0)) < 0)
        return EPOLLERR;
    return (uint32_t)(unsigned short)p.revents;
}

static uint32_t hostfd_events(struct hostfd *h)
{
    uint32_t events;

    if (h->kind == HOSTFD_REG)
        return EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM;
    events = hostfd_now(h);
    if (h->reading)
        events &= ~(uint32_t)(EPOLLIN | EPOLLRDNORM);
    if (h->writing)
        events &= ~(uint32_t)(EPOLLOUT | EPOLLWRNORM);
    return events;
}

/* Arms first, then looks: the order that cannot miss. */
static bool hostfd_ready(struct hostfd *h, uint32_t events)
{
    hostfd_arm(h);
    return hostfd_events(h) & (events | EPOLLERR | EPOLLHUP);
}

static int hostfd_wait(struct ctx *ctx, struct hostfd *h, uint32_t events)
{
    if (!ctx)
        return -EAGAIN;
    /* What epoll refuses is always ready; should its call still say EAGAIN, trying again is all there is. */
    hostfd_arm(h);
    if (!h->pollable && !h->reading && !h->writing) {
        fiber_yield();
        return ctx->signal_pending ? -ERESTARTSYS : 0;
    }
    return WAIT_EVENT(ctx, &h->wait, hostfd_ready(h, events));
}

static uint32_t hostfd_poll(struct file *f, struct poll_table *pt)
{
    struct hostfd *h = to_hostfd(f->inode);

    poll_wait(pt, &h->wait);
    if (pt)
        hostfd_arm(h);
    return hostfd_events(h);
}

/* ---- reading and writing ---- */

struct hostfd_io {
    int fd;
    bool write;
    int flags;      /* RWF_* */
    int64_t offset; /* −1: the description's */
    struct iovec iov;
};

static long hostfd_io_fn(void *arg)
{
    struct hostfd_io *io = arg;
    long n;

    do {
        if (io->flags || io->offset >= 0) {
            n = io->write ? host_ret(pwritev2(io->fd, &io->iov, 1, io->offset, io->flags))
                          : host_ret(preadv2(io->fd, &io->iov, 1, io->offset, io->flags));
        } else {
            n = io->write ? host_ret(write(io->fd, io->iov.iov_base, io->iov.iov_len))
                          : host_ret(read(io->fd, io->iov.iov_base, io->iov.iov_len));
        }
    } while (n == -EINTR);
    return n;
}

/* Buffered writes can't be told not to wait on most file systems, but hardly ever do: they are made here and timed. */
static ssize_t hostfd_write_regular(struct hostfd *h, struct hostfd_io *io)
{
    uint64_t start = host_monotonic_ns(), end;
    ssize_t n;

    if (start < h->slow_until_ns || !S_ISREG(h->inode.mode))
        return hostio_run(hostfd_io_fn, io);
    n = hostfd_io_fn(io);
    end = host_monotonic_ns();
    if (end - start > HOSTFD_SLOW_NS)
        h->slow_until_ns = end + HOSTFD_SLOW_FOR_NS;
    return n;
}

/* One transfer that does not block the kernel thread; parks while a regular file's data comes from the disk.
 * Return: bytes, −EAGAIN (a stream has to be waited for), other −errno. */
static ssize_t hostfd_transfer(struct hostfd *h, struct hostfd_io *io)
{
    bool *nowait = io->write ? &h->nowait_write : &h->nowait_read;
    bool *busy = io->write ? &h->writing : &h->reading;
    struct inode *hold;
    ssize_t n;

    if (h->kind == HOSTFD_SOCKET)
        return io->write ? host_ret(send(io->fd, io->iov.iov_base, io->iov.iov_len,
                                         MSG_DONTWAIT | MSG_NOSIGNAL))
                         : host_ret(recv(io->fd, io->iov.iov_base, io->iov.iov_len, MSG_DONTWAIT));
    if (*nowait) {
        struct hostfd_io fast = *io;

        fast.flags |= RWF_NOWAIT;
        n = hostfd_io_fn(&fast);
        if (n == -EOPNOTSUPP || n == -ENOSYS || n == -EPERM)
            *nowait = false;
        else if (n != -EAGAIN || h->kind == HOSTFD_STREAM)
            return n;
    }
    if (h->kind == HOSTFD_REG)
        return io->write ? hostfd_write_regular(h, io) : hostio_run(hostfd_io_fn, io);
    /* Only one pool thread at a time may be caught by another host process taking the data first. */
    if (*busy || !(hostfd_now(h) & ((io->write ? POLLOUT : POLLIN) | POLLERR | POLLHUP | POLLNVAL)))
        return -EAGAIN;
    *busy = true;
    hold = inode_ref(&h->inode);
    n = hostio_run(hostfd_io_fn, io);
    *busy = false;
    waitq_wake_all(&h->wait);
    inode_unref(hold);
    return n;
}

static int64_t hostfd_offset(const struct file *f, const struct hostfd *h, const int64_t *pos)
{
    return h->kind == HOSTFD_REG && pos != &f->pos ? *pos : -1;
}

static ssize_t hostfd_read_chunk(struct file *f, struct hostfd *h, struct uio *u, void *buf, size_t size,
                                 int64_t *pos)
{
    struct hostfd_io io = {.fd = h->fd, .offset = hostfd_offset(f, h, pos), .iov = {buf, size}};
    ssize_t n, moved;
    int r;

    while ((n = hostfd_transfer(h, &io)) == -EAGAIN) {
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        r = hostfd_wait(u->ctx, h, EPOLLIN | EPOLLRDHUP);
        if (r)
            return r;
    }
    if (n <= 0)
        return n;
    moved = uio_put(u, buf, (size_t)n);
    if (moved > 0 && io.offset >= 0)
        *pos += moved;
    return moved;
}

static ssize_t hostfd_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct hostfd *h = to_hostfd(f->inode);
    char small[HOSTFD_STACK_CHUNK];
    CLEANUP_FREE char *heap = NULL;
    size_t size = MIN(u->left, (uint64_t)HOSTFD_CHUNK);
    ssize_t total = 0, n;

    if (size > sizeof(small)) {
        heap = mem_zalloc(size);
        if (!heap)
            return -ENOMEM;
    }
    do {
        size_t want = MIN(u->left, (uint64_t)size);

        n = hostfd_read_chunk(f, h, u, heap ? heap : small, want, pos);
        if (n <= 0)
            return total ? total : n;
        total += n;
        /* A stream gives what it has; a regular file goes on until it ends. */
    } while (h->kind == HOSTFD_REG && u->left > 0);
    return total;
}

static ssize_t hostfd_write_chunk(struct file *f, struct hostfd *h, struct uio *u, void *buf, size_t size,
                                  int64_t *pos)
{
    struct hostfd_io io = {.fd = h->fd, .write = true, .offset = hostfd_offset(f, h, pos)};
    ssize_t got = uio_get(u, buf, size), n;
    int r;

    if (got <= 0)
        return got;
    io.iov = (struct iovec){buf, (size_t)got};
    if ((f->flags & O_APPEND) && !h->host_append && h->kind == HOSTFD_REG)
        io.flags |= RWF_APPEND;
    while ((n = hostfd_transfer(h, &io)) == -EAGAIN) {
        r = f->flags & O_NONBLOCK ? -EAGAIN : hostfd_wait(u->ctx, h, EPOLLOUT);
        if (r) {
            uio_revert(u, (uint64_t)got);
            return r;
        }
    }
    if (n < got)
        uio_revert(u, (uint64_t)(got - MAX(n, (ssize_t)0)));
    if (n > 0 && io.offset >= 0)
        *pos += n;
    if (n == -EPIPE)
        sigpipe_raise(u->ctx);
    return n;
}

static ssize_t hostfd_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct hostfd *h = to_hostfd(f->inode);
    char small[HOSTFD_STACK_CHUNK];
    CLEANUP_FREE char *heap = NULL;
    size_t size = MIN(u->left, (uint64_t)(h->tty ? HOSTFD_TTY_CHUNK : HOSTFD_CHUNK));
    ssize_t total = 0, n;

    if (size > sizeof(small)) {
        heap = mem_zalloc(size);
        if (!heap)
            return -ENOMEM;
    }
    if (u->left == 0)
        return 0;
    /* Whoever reads it may look for files that the guest has made before. */
    gofer_fs_settle_all();
    do {
        n = hostfd_write_chunk(f, h, u, heap ? heap : small, MIN(u->left, (uint64_t)size), pos);
        if (n <= 0)
            return total ? total : n;
        total += n;
    } while (u->left > 0);
    return total;
}

/* ---- the rest ---- */

static int64_t hostfd_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    struct hostfd *h = to_hostfd(f->inode);

    return h->kind == HOSTFD_REG ? host_ret(lseek(h->fd, offset, whence)) : -ESPIPE;
}

static long hostfd_fsync_fn(void *arg)
{
    return host_ret(fsync(*(int *)arg));
}

static long hostfd_fdatasync_fn(void *arg)
{
    return host_ret(fdatasync(*(int *)arg));
}

static int hostfd_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    struct hostfd *h = to_hostfd(f->inode);

    if (h->kind != HOSTFD_REG)
        return -EINVAL;
    return (int)hostio_run(data_only ? hostfd_fdatasync_fn : hostfd_fsync_fn, &h->fd);
}

static int hostfd_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map)
{
    struct hostfd *h = to_hostfd(f->inode);

    /* The descriptor's access is exactly what the container was given. */
    if (!S_ISREG(h->inode.mode))
        return -ENODEV;
    *ret_map = (struct file_map){.host_fd = h->fd};
    return 0;
}

static int64_t hostfd_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    struct hostfd *h = to_hostfd(f->inode);
    int count;
    int64_t r;

    if (h->tty)
        return hostfd_tty_ioctl(ctx, h->fd, cmd, arg);
    if (cmd != FIONREAD || h->kind == HOSTFD_REG)
        return -ENOTTY;
    r = host_ret(ioctl(h->fd, FIONREAD, &count));
    return r < 0 ? r : COPY_OUT(ctx, UADDR(arg), &count);
}

static const struct file_ops hostfd_file_ops = {
    .signals_io = true,
    .read = hostfd_read,
    .write = hostfd_write,
    .llseek = hostfd_llseek,
    .poll = hostfd_poll,
    .ioctl = hostfd_ioctl,
    .mmap = hostfd_mmap,
    .fsync = hostfd_fsync,
};

static int hostfd_refresh(struct ctx *ctx, struct inode *inode)
{
    struct hostfd *h = to_hostfd(inode);
    struct stat st;
    long r = host_ret(fstat(h->fd, &st));

    if (r < 0)
        return (int)r;
    inode->nlink = st.st_nlink;
    inode->size = (uint64_t)st.st_size;
    inode->blocks = (uint64_t)st.st_blocks;
    inode->blksize = (uint32_t)st.st_blksize;
    inode->rdev = st.st_rdev;
    inode->atime = st.st_atim;
    inode->mtime = st.st_mtim;
    inode->ctime = st.st_ctim;
    if (!h->attr_override) {
        inode->uid = st.st_uid;
        inode->gid = st.st_gid;
        inode->mode = (inode->mode & S_IFMT) | (st.st_mode & 07777);
    }
    return 0;
}

static int hostfd_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    struct hostfd *h = to_hostfd(inode);

    if (attr->valid & IATTR_SIZE) {
        long r = h->kind == HOSTFD_REG ? host_ret(ftruncate(h->fd, (off_t)attr->size)) : -EINVAL;

        if (r < 0)
            return (int)r;
    }
    /* Entrypoints chown their stdio so that a server under another uid may reopen it. The host's file keeps its owner. */
    if (attr->valid & (IATTR_MODE | IATTR_UID | IATTR_GID)) {
        int r = hostfd_refresh(ctx, inode);

        if (r)
            return r;
        h->attr_override = true;
        if (attr->valid & IATTR_MODE)
            inode->mode = (inode->mode & S_IFMT) | (attr->mode & 07777);
        if (attr->valid & IATTR_UID)
            inode->uid = attr->uid;
        if (attr->valid & IATTR_GID)
            inode->gid = attr->gid;
    }
    return 0;
}

/* /dev/stdout and /proc/self/fd/N: another file on the same description, with no more access than it has. */
static int hostfd_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    struct hostfd *h = to_hostfd(inode);

    if (h->kind == HOSTFD_SOCKET)
        return -ENXIO;
    if ((file_readable(file) && h->host_access == O_WRONLY) ||
        (file_writable(file) && h->host_access == O_RDONLY))
        return -EACCES;
    file->ops = &hostfd_file_ops;
    file->no_seek = h->kind != HOSTFD_REG;
    return 0;
}

static void hostfd_evict(struct inode *inode)
{
    struct hostfd *h = to_hostfd(inode);

    if (h->watching)
        evloop_unwatch(&h->watch);
    host_close(h->fd);
}

static const struct inode_ops hostfd_inode_ops = {
    .refresh = hostfd_refresh,
    .setattr = hostfd_setattr,
    .open = hostfd_open,
    .evict = hostfd_evict,
};

/* One file system for all of them: identity is (its device, the host's inode number). */
static struct mount *hostfd_mount(void)
{
    static struct mount *m;

    return internal_fs_mount(&m, "hostfd", 0x50495045);
}

static enum hostfd_kind hostfd_kind_of(mode_t mode)
{
    if (S_ISREG(mode) || S_ISBLK(mode) || S_ISDIR(mode))
        return HOSTFD_REG;
    return S_ISSOCK(mode) ? HOSTFD_SOCKET : HOSTFD_STREAM;
}

/* What readlink of /proc/self/fd/N shows. */
static void hostfd_name(const struct hostfd *h, const struct stat *st, char *dst, size_t size)
{
    if (S_ISFIFO(st->st_mode))
        snprintf(dst, size, "pipe:[%llu]", (unsigned long long)st->st_ino);
    else if (S_ISSOCK(st->st_mode))
        snprintf(dst, size, "socket:[%llu]", (unsigned long long)st->st_ino);
    else if (h->tty && major(st->st_rdev) >= 136 && major(st->st_rdev) <= 143)
        snprintf(dst, size, "/dev/pts/%u", minor(st->st_rdev) + 256 * (major(st->st_rdev) - 136));
    else
        snprintf(dst, size, "/inherited:[%llu]", (unsigned long long)st->st_ino);
}

static int hostfd_inode_new(int fd, uint32_t owner_uid, struct hostfd **ret_hostfd, char *name, size_t size)
{
    struct mount *m = hostfd_mount();
    struct hostfd *h;
    struct stat st;
    long flags = host_ret(fcntl(fd, F_GETFL));

    if (flags < 0 || fstat(fd, &st) < 0)
        return -EBADF;
    if (!m)
        return -ENOMEM;
    h = (struct hostfd *)inode_alloc(m->sb, &hostfd_inode_ops, sizeof(*h), st.st_mode);
    if (!h)
        return -ENOMEM;
    h->inode.ino = st.st_ino;
    h->fd = fd;
    h->kind = hostfd_kind_of(st.st_mode);
    h->tty = S_ISCHR(st.st_mode) && hostfd_tty_is(fd);
    h->pollable = h->kind != HOSTFD_REG;
    h->nowait_read = h->kind != HOSTFD_SOCKET && !h->tty;
    h->nowait_write = h->nowait_read && h->kind != HOSTFD_REG;
    h->host_access = (int)(flags & O_ACCMODE);
    h->host_append = flags & O_APPEND;
    waitq_init(&h->wait);
    hostfd_name(h, &st, name, size);
    if (hostfd_refresh(NULL, &h->inode) == 0 && owner_uid != UINT32_MAX && owner_uid != h->inode.uid) {
        h->attr_override = true;
        h->inode.uid = owner_uid;
    }
    *ret_hostfd = h;
    return 0;
}

int hostfd_new(OWNS int fd, uint32_t owner_uid, const struct cred *cred, struct file **ret_file)
{
    struct hostfd *h;
    struct file *f;
    char name[64];
    uint32_t flags = (uint32_t)(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    int r = hostfd_inode_new(fd, owner_uid, &h, name, sizeof(name));

    if (r) {
        host_close(fd);
        return r;
    }
    /* From here the inode owns fd. */
    f = internal_fs_file(hostfd_mount(), &h->inode, name, flags, &hostfd_file_ops, cred);
    if (!f)
        return -ENOMEM;
    f->no_seek = h->kind != HOSTFD_REG;
    *ret_file = f;
    return 0;
}

int hostfd_open_stdio(struct ctx *ctx, const struct walk_base *base, OWNS int fd, uint32_t owner_uid,
                      struct file **ret_file)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
        uint32_t access = (uint32_t)(fcntl(fd, F_GETFL) & O_ACCMODE);

        if (vfs_open(ctx, base, "/dev/null", access, 0, ret_file) == 0) {
            host_close(fd);
            return 0;
        }
    }
    return hostfd_new(fd, owner_uid, ctx->cred, ret_file);
}
