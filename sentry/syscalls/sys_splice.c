/* SPDX-License-Identifier: Apache-2.0 */
/* Moving bytes between files: sendfile, copy_file_range, splice, tee, vmsplice. Through a buffer of the sentry's: guests see
 * no difference but in speed. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/fs/pipe.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/rw_limit.h"
#include "sentry/vfs/file.h"

enum { SPLICE_CHUNK = 64 * 1024 };
#define SPLICE_FLAGS (SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)

/* Two descriptors and where in them. A position of NULL means the file's own. */
struct splice_pair {
    struct file *in, *out; /* referenced */
    int64_t in_at, out_at; /* storage for explicit positions */
    int64_t *in_pos, *out_pos;
    char *buf; /* SPLICE_CHUNK bytes, owned */
};

/* Whatever they may be used for. */
static int splice_pair_get_any(struct task *t, int fd_in, int fd_out, struct splice_pair *p)
{
    *p = (struct splice_pair){.in = fdtable_get(t, fd_in), .out = fdtable_get(t, fd_out)};
    return p->in && p->out ? 0 : -EBADF;
}

static int splice_buf(struct splice_pair *p)
{
    p->buf = mem_realloc(NULL, SPLICE_CHUNK, 1);
    return p->buf ? 0 : -ENOMEM;
}

static int splice_pair_get(struct task *t, int fd_in, int fd_out, struct splice_pair *p)
{
    int ret = splice_pair_get_any(t, fd_in, fd_out, p);
    if (ret < 0 || !file_readable(p->in) || !file_writable(p->out))
        return -EBADF;
    return splice_buf(p);
}

static void splice_pair_put(struct splice_pair *p)
{
    mem_free(p->buf);
    file_unref(p->in);
    file_unref(p->out);
}

/* Reads an explicit position when one was given. */
static int splice_pos_in(struct task *t, const struct file *f, uaddr_t addr, int64_t *at, int64_t **ret_pos)
{
    if (uaddr_is_null(addr))
        return 0;
    if (f->no_seek)
        return -ESPIPE;
    int ret = COPY_IN(&t->ctx, at, addr);
    if (ret < 0)
        return ret;
    if (*at < 0)
        return -EINVAL;
    *ret_pos = at;
    return 0;
}

static int splice_pos_out(struct task *t, uaddr_t addr, const int64_t *pos)
{
    return pos ? COPY_OUT(&t->ctx, addr, pos) : 0;
}

/* One read at pos (NULL: the file's own position, which the caller has locked). */
static ssize_t splice_read(struct task *t, struct file *f, char *buf, size_t size, int64_t *pos)
{
    struct uio u;
    int64_t none = 0;
    uio_init_kernel(&u, buf, size);
    u.ctx = &t->ctx;
    ssize_t n = file_read(f, &u, pos ? pos : f->no_seek ? &none : &f->pos);
    uio_free(&u);
    return n;
}

/* Writes all size bytes unless an error or a signal comes first. Return: bytes written, or −errno when none were. */
static ssize_t splice_write(struct task *t, struct file *f, const char *buf, size_t size, int64_t *pos)
{
    size_t done = 0;
    int64_t none = 0, *at = pos ? pos : f->no_seek ? &none : &f->pos;
    while (done < size) {
        struct uio u;
        uio_init_kernel(&u, (char *)(uintptr_t)buf + done, size - done);
        u.ctx = &t->ctx;
        ssize_t n = rw_limit(t, f, (uint64_t)*at, &u.left);
        if (n == 0)
            n = file_write(f, &u, at);
        uio_free(&u);
        if (n <= 0)
            return done ? (ssize_t)done : n;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* The files whose own positions a call moves, each once, in the order of their addresses: two calls that copy in opposite
 * directions must not wait for each other. */
static void splice_moving(const struct splice_pair *p, struct file *ret_files[2])
{
    struct file *a = p->in_pos ? NULL : p->in, *b = p->out_pos ? NULL : p->out;
    ret_files[0] = a < b ? a : b;
    ret_files[1] = a == b ? NULL : a < b ? b : a;
}

static void splice_lock(struct task *t, struct splice_pair *p)
{
    struct file *f[2];
    splice_moving(p, f);
    for (int i = 0; i < 2; i++) {
        if (f[i])
            file_pos_lock(&t->ctx, f[i]);
    }
}

static void splice_unlock(struct splice_pair *p)
{
    struct file *f[2];
    splice_moving(p, f);
    for (int i = 0; i < 2; i++) {
        if (f[i])
            file_pos_unlock(f[i]);
    }
}

/* Copies up to len bytes from in to out. What was read but could not be written is put back by position. */
static ssize_t splice_copy(struct task *t, struct splice_pair *p, uint64_t len)
{
    ssize_t done = 0, n = 0;
    len = MIN(len, UIO_MAX_BYTES);
    splice_lock(t, p);
    int64_t *in_pos = p->in_pos ? p->in_pos : &p->in->pos;
    while ((uint64_t)done < len) {
        size_t want = MIN(len - (uint64_t)done, (uint64_t)SPLICE_CHUNK);
        n = splice_read(t, p->in, p->buf, want, p->in_pos);
        if (n <= 0)
            break;
        ssize_t got = n;
        n = splice_write(t, p->out, p->buf, (size_t)got, p->out_pos);
        if (n < got)
            *in_pos -= got - MAX(n, (ssize_t)0);
        if (n <= 0)
            break;
        done += n;
        if (n < got || (!S_ISREG(p->in->inode->mode) && (size_t)got < want))
            break;
        if (t->ctx.signal_pending)
            break;
    }
    splice_unlock(p);
    return done ? done : n;
}

/* ---- sendfile, copy_file_range ---- */

int64_t sys_sendfile(struct task *t, int32_t out_fd, int32_t in_fd, uaddr_t offset, uint64_t count)
{
    struct splice_pair p;
    int64_t ret = splice_pair_get(t, in_fd, out_fd, &p);
    if (ret == 0)
        ret = splice_pos_in(t, p.in, offset, &p.in_at, &p.in_pos);
    if (ret == 0 && (int64_t)count < 0)
        ret = -EINVAL;
    /* Only what can be read again when the other side takes less. */
    if (ret == 0 && (p.in->no_seek || inode_is_dir(p.in->inode) || (p.out->flags & O_APPEND)))
        ret = -EINVAL;
    if (ret == 0)
        ret = splice_copy(t, &p, count);
    if (ret >= 0) {
        int err = splice_pos_out(t, offset, p.in_pos);
        ret = err < 0 ? err : ret;
    }
    splice_pair_put(&p);
    return ret;
}

/* In Linux's order: what they are, what they are open for, and then where. */
static int splice_check_copy(struct splice_pair *p, uint64_t *inout_len)
{
    uint64_t len = *inout_len;
    if (inode_is_dir(p->in->inode) || inode_is_dir(p->out->inode))
        return -EISDIR;
    if (!S_ISREG(p->in->inode->mode) || !S_ISREG(p->out->inode->mode))
        return -EINVAL;
    if (!file_readable(p->in) || !file_writable(p->out) || (p->out->flags & O_APPEND))
        return -EBADF;
    if (inode_immutable(p->out->inode))
        return -EPERM;
    int64_t in = p->in_pos ? *p->in_pos : p->in->pos, out = p->out_pos ? *p->out_pos : p->out->pos;
    if (in < 0 || out < 0)
        return -EINVAL;
    uint64_t in_end, out_end;
    if (__builtin_add_overflow((uint64_t)in, len, &in_end) || __builtin_add_overflow((uint64_t)out, len, &out_end))
        return -EOVERFLOW;
    if (out == INT64_MAX)
        return -EFBIG;
    if (p->in->inode != p->out->inode)
        return 0;
    /* The end is where it is now: what lies behind it is not in the way, and what the copy adds is not copied. */
    uint64_t size = p->in->inode->size;
    *inout_len = len = (uint64_t)in < size ? MIN(len, size - (uint64_t)in) : 0;
    return (uint64_t)in < (uint64_t)out + len && (uint64_t)out < (uint64_t)in + len ? -EINVAL : 0;
}

/* An explicit position of copy_file_range, of a file that may turn out to have none. */
static int splice_pos_any(struct task *t, uaddr_t addr, int64_t *at, int64_t **ret_pos)
{
    if (uaddr_is_null(addr))
        return 0;
    *ret_pos = at;
    return COPY_IN(&t->ctx, at, addr);
}

int64_t sys_copy_file_range(struct task *t, int32_t fd_in, uaddr_t off_in, int32_t fd_out, uaddr_t off_out,
                            uint64_t len, uint32_t flags)
{
    struct splice_pair p;
    int64_t ret = splice_pair_get_any(t, fd_in, fd_out, &p);
    if (ret == 0)
        ret = splice_pos_any(t, off_in, &p.in_at, &p.in_pos);
    if (ret == 0)
        ret = splice_pos_any(t, off_out, &p.out_at, &p.out_pos);
    if (ret == 0 && flags)
        ret = -EINVAL;
    if (ret == 0)
        ret = splice_check_copy(&p, &len);
    if (ret == 0)
        ret = splice_buf(&p);
    if (ret == 0)
        ret = splice_copy(t, &p, len);
    if (ret >= 0) {
        int err = splice_pos_out(t, off_in, p.in_pos);
        if (err == 0)
            err = splice_pos_out(t, off_out, p.out_pos);
        ret = err < 0 ? err : ret;
    }
    splice_pair_put(&p);
    return ret;
}

/* ---- splice ---- */

/* From a pipe to anything. Bytes leave the pipe once the other side has taken them. */
static ssize_t splice_from_pipe(struct task *t, struct splice_pair *p, uint64_t len, bool nonblock)
{
    ssize_t done = 0, n = 0;
    while ((uint64_t)done < len) {
        n = pipe_wait_data(&t->ctx, p->in, nonblock || done);
        if (n <= 0)
            break;
        n = pipe_lock_read(&t->ctx, p->in);
        if (n < 0)
            break;
        size_t got = pipe_peek(p->in, 0, p->buf, MIN(len - (uint64_t)done, (uint64_t)SPLICE_CHUNK));
        n = got ? splice_write(t, p->out, p->buf, got, p->out_pos) : 0;
        if (n > 0)
            pipe_consume(p->in, (size_t)n);
        pipe_unlock_read(p->in);
        if (n < 0)
            break;
        done += n;
        if ((size_t)n < got)
            break;
    }
    return done ? done : n;
}

/* From a file to a pipe: as much as there is room for, at once. */
static ssize_t splice_to_pipe(struct task *t, struct splice_pair *p, uint64_t len, bool nonblock)
{
    ssize_t done = 0, n = 0;
    while ((uint64_t)done < len) {
        ssize_t room = pipe_wait_room(&t->ctx, p->out, nonblock || done);
        if (room <= 0) {
            n = room;
            break;
        }
        uint64_t want = MIN(len - (uint64_t)done, (uint64_t)SPLICE_CHUNK);
        want = MIN(want, (uint64_t)room);
        n = splice_read(t, p->in, p->buf, want, p->in_pos);
        if (n <= 0)
            break;
        ssize_t put = splice_write(t, p->out, p->buf, (size_t)n, NULL);
        if (put <= 0) {
            n = put;
            break;
        }
        done += put;
        /* A stream hands out what it has; asking again could wait. */
        if ((uint64_t)n < want || p->in->no_seek)
            break;
    }
    return done ? done : n;
}

static int64_t splice_run(struct task *t, struct splice_pair *p, uint64_t len, uint32_t flags)
{
    bool in_pipe = pipe_is(p->in), out_pipe = pipe_is(p->out);
    bool nonblock = (flags & SPLICE_F_NONBLOCK) ||
                    ((in_pipe ? p->in : p->out)->flags & O_NONBLOCK);
    if (in_pipe && out_pipe && pipe_same(p->in, p->out))
        return -EINVAL;
    if (!in_pipe && !out_pipe)
        return -EINVAL;
    /* Files without a type (eventfd, inotify …) move records, not bytes. */
    if (!(p->in->inode->mode & S_IFMT) || !(p->out->inode->mode & S_IFMT))
        return -EINVAL;
    if (!out_pipe && (p->out->flags & O_APPEND))
        return -EINVAL;
    if (inode_is_dir(p->in->inode))
        return -EINVAL;
    len = MIN(len, UIO_MAX_BYTES);
    splice_lock(t, p);
    ssize_t n = in_pipe ? splice_from_pipe(t, p, len, nonblock) : splice_to_pipe(t, p, len, nonblock);
    splice_unlock(p);
    return n;
}

int64_t sys_splice(struct task *t, int32_t fd_in, uaddr_t off_in, int32_t fd_out, uaddr_t off_out,
                   uint64_t len, uint32_t flags)
{
    if (!len)
        return 0;
    if (flags & ~(uint32_t)SPLICE_FLAGS)
        return -EINVAL;
    struct splice_pair p;
    int64_t ret = splice_pair_get(t, fd_in, fd_out, &p);
    if (ret == 0)
        ret = splice_pos_in(t, p.in, off_in, &p.in_at, &p.in_pos);
    if (ret == 0)
        ret = splice_pos_in(t, p.out, off_out, &p.out_at, &p.out_pos);
    if (ret == 0)
        ret = splice_run(t, &p, len, flags);
    if (ret >= 0) {
        int err = splice_pos_out(t, off_in, p.in_pos);
        if (err == 0)
            err = splice_pos_out(t, off_out, p.out_pos);
        ret = err < 0 ? err : ret;
    }
    splice_pair_put(&p);
    return ret;
}

int64_t sys_tee(struct task *t, int32_t fd_in, int32_t fd_out, uint64_t len, uint32_t flags)
{
    if (flags & ~(uint32_t)SPLICE_FLAGS)
        return -EINVAL;
    if (!len)
        return 0;
    struct splice_pair p;
    int64_t ret = splice_pair_get(t, fd_in, fd_out, &p);
    if (ret == 0 && (!pipe_is(p.in) || !pipe_is(p.out) || pipe_same(p.in, p.out)))
        ret = -EINVAL;
    if (ret == 0) {
        bool nonblock = (flags & SPLICE_F_NONBLOCK) || (p.in->flags & O_NONBLOCK);
        ret = pipe_wait_data(&t->ctx, p.in, nonblock);
        ssize_t room = ret > 0 ? pipe_wait_room(&t->ctx, p.out, nonblock) : 0;
        if (ret > 0 && room > 0) {
            uint64_t size = MIN(len, (uint64_t)SPLICE_CHUNK);
            size_t got = pipe_peek(p.in, 0, p.buf, MIN(size, (uint64_t)room));
            ret = got ? splice_write(t, p.out, p.buf, got, NULL) : 0;
        } else if (ret > 0) {
            ret = room;
        }
    }
    splice_pair_put(&p);
    return ret;
}

int64_t sys_vmsplice(struct task *t, int32_t fd, uaddr_t iov, uint64_t nr_segs, uint32_t flags)
{
    if (flags & ~(uint32_t)SPLICE_FLAGS)
        return -EINVAL;
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    if (!pipe_is(f)) {
        file_unref(f);
        return -EBADF;
    }
    struct uio u;
    int64_t none = 0, ret = uio_init_iovec(&u, &t->ctx, iov, nr_segs);
    if (ret == 0) {
        /* What fits is taken; only a full pipe is waited for. */
        bool nowait = !(f->flags & O_NONBLOCK) && (file_writable(f) || (flags & SPLICE_F_NONBLOCK));
        if (u.left && file_writable(f))
            ret = pipe_wait_room(&t->ctx, f, flags & SPLICE_F_NONBLOCK);
        if (nowait)
            f->flags |= O_NONBLOCK;
        if (ret >= 0)
            ret = !u.left ? 0 : file_writable(f) ? file_write(f, &u, &none) : file_read(f, &u, &none);
        if (nowait)
            f->flags &= ~(uint32_t)O_NONBLOCK;
        uio_free(&u);
    }
    file_unref(f);
    return ret;
}
