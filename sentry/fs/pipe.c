/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes and fifos: a ring of chunks that counts its room in pages, as guests can observe it. */
#include "sentry/fs/pipe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/sigpipe.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

/* One copy from or to guest memory moves at most this much: a process_vm call costs as much as 16 KiB of copying. */
enum { CHUNK_MAX = 65536, SPARE_PAGES = 32, SPARE_CHUNKS = 4 };

#define KEY_IN (EPOLLIN | EPOLLRDNORM)
#define KEY_OUT (EPOLLOUT | EPOLLWRNORM)

struct pipe_chunk {
    uint8_t *data;
    uint32_t capacity; /* multiple of a page */
    uint32_t offset, size; /* size > 0 */
    bool packet;       /* written in O_DIRECT mode: read ends with it */
};

struct pipe {
    struct ref ref;           /* one per file */
    struct waitq read_wait, write_wait;
    struct waitq open_wait;   /* fifo opens that wait for the other side */
    uint32_t readers, writers; /* (k) open descriptions */
    uint32_t reads_opened, writes_opened; /* (k) ever, so that an opener sees a side that came and went */
    uint32_t slots;           /* (k) pages of room */
    uint32_t used;            /* (k) pages in use */
    uint32_t head, len;       /* (k) ring of chunks: first, count ≤ used */
    uint64_t bytes;           /* (k) readable */
    bool read_locked;         /* (k) splice is between peek and consume */
    struct inode *inode;      /* (k) a fifo's inode, not owned; NULL for an unnamed pipe */
    struct pipe_chunk *ring;  /* (k) of slots elements */
};

/* Spare buffers of all pipes (k). */
static struct {
    void *pages[SPARE_PAGES];
    void *chunks[SPARE_CHUNKS];
    uint32_t pages_len, chunks_len;
} pool;

static void *chunk_alloc(uint32_t size)
{
    if (size == PAGE_SIZE && pool.pages_len)
        return pool.pages[--pool.pages_len];
    if (size == CHUNK_MAX && pool.chunks_len)
        return pool.chunks[--pool.chunks_len];
    return mem_realloc(NULL, 1, size); /* not zeroed: only written bytes are ever read */
}

static void chunk_free(void *data, uint32_t size)
{
    if (size == PAGE_SIZE && pool.pages_len < SPARE_PAGES)
        pool.pages[pool.pages_len++] = data;
    else if (size == CHUNK_MAX && pool.chunks_len < SPARE_CHUNKS)
        pool.chunks[pool.chunks_len++] = data;
    else
        mem_free(data);
}

/* Pages that a chunk's unread bytes lie on: what a page-wise pipe would still hold. */
static uint32_t chunk_slots(const struct pipe_chunk *c)
{
    if (c->size == 0)
        return 0;
    return (uint32_t)((c->offset + c->size + PAGE_SIZE - 1) / PAGE_SIZE - c->offset / PAGE_SIZE);
}

static struct pipe_chunk *chunk_at(struct pipe *p, uint32_t i)
{
    return &p->ring[(p->head + i) & (p->slots - 1)];
}

static struct pipe *file_pipe(const struct file *f)
{
    return f->priv;
}

static int pipe_alloc(struct pipe **ret_pipe)
{
    uint32_t slots = PIPE_SLOTS_DEFAULT;
    if (limit_used(LIMIT_KIND_PIPE_PAGES) + slots > PIPE_PAGES_SOFT)
        slots = PIPE_SLOTS_POOR;
    if (limit_charge(LIMIT_KIND_PIPE_PAGES, slots))
        return -ENFILE;
    struct pipe *p = NEW(struct pipe);
    if (p)
        p->ring = NEW_ARRAY(struct pipe_chunk, slots);
    if (!p || !p->ring) {
        mem_free(p);
        limit_uncharge(LIMIT_KIND_PIPE_PAGES, slots);
        return -ENOMEM;
    }
    p->slots = slots;
    ref_init(&p->ref);
    waitq_init(&p->read_wait);
    waitq_init(&p->write_wait);
    waitq_init(&p->open_wait);
    *ret_pipe = p;
    return 0;
}

static void pipe_put(struct pipe *p)
{
    if (!ref_put(&p->ref))
        return;
    if (p->inode)
        p->inode->pipe = NULL;
    for (uint32_t i = 0; i < p->len; i++)
        chunk_free(chunk_at(p, i)->data, chunk_at(p, i)->capacity);
    limit_uncharge(LIMIT_KIND_PIPE_PAGES, p->slots);
    mem_free(p->ring);
    mem_free(p);
}

static void drop_front(struct pipe *p)
{
    struct pipe_chunk *c = chunk_at(p, 0);
    p->used -= chunk_slots(c);
    p->bytes -= c->size;
    chunk_free(c->data, c->capacity);
    p->head = (p->head + 1) & (p->slots - 1);
    p->len--;
}

/* Takes n ≤ size bytes off the first chunk. */
static void eat_front(struct pipe *p, uint32_t n)
{
    struct pipe_chunk *c = chunk_at(p, 0);
    if (n == c->size) {
        drop_front(p);
        return;
    }
    p->used -= chunk_slots(c);
    c->offset += n;
    c->size -= n;
    p->used += chunk_slots(c);
    p->bytes -= n;
}

static bool pipe_full(const struct pipe *p)
{
    return p->used >= p->slots;
}

static bool pipe_has_data(const struct pipe *p)
{
    return p->len > 0 && !p->read_locked;
}

/* ---- read ---- */

static ssize_t read_some(struct pipe *p, struct uio *u)
{
    ssize_t done = 0;
    while (p->len > 0 && u->left > 0) {
        struct pipe_chunk *c = chunk_at(p, 0);
        uint32_t want = (uint32_t)MIN((uint64_t)c->size, u->left);
        ssize_t n = uio_put(u, c->data + c->offset, want);
        if (n < 0)
            return done ? done : n;
        done += n;
        bool packet = c->packet;
        if (packet)
            drop_front(p); /* what did not fit is lost */
        else
            eat_front(p, (uint32_t)n);
        if (packet || n < want)
            break;
    }
    return done;
}

static ssize_t pipe_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct pipe *p = file_pipe(f);
    if (u->left == 0)
        return 0;
    while (!pipe_has_data(p)) {
        if (p->len == 0 && p->writers == 0)
            return 0;
        if (f->flags & O_NONBLOCK)
            return -EAGAIN;
        int r = WAIT_EVENT(u->ctx, &p->read_wait,
                           pipe_has_data(p) || (p->len == 0 && p->writers == 0));
        if (r)
            return r;
    }
    bool was_full = pipe_full(p);
    ssize_t n = read_some(p, u);
    if (was_full && !pipe_full(p))
        waitq_wake(&p->write_wait, KEY_OUT);
    return n;
}

/* ---- write ---- */

static void ring_push(struct pipe *p, struct pipe_chunk c)
{
    BUG_ON(p->len >= p->slots);
    *chunk_at(p, p->len) = c;
    p->len++;
    p->used += chunk_slots(&c);
    p->bytes += c.size;
}

/* Puts the odd bytes of a write into the last page when they fit there. Return: bytes, 0, −EFAULT. */
static ssize_t write_merge(struct pipe *p, struct uio *u)
{
    uint32_t odd = (uint32_t)(u->left & (PAGE_SIZE - 1));
    if (!odd || p->len == 0)
        return 0;
    struct pipe_chunk *c = chunk_at(p, p->len - 1);
    uint32_t end = c->offset + c->size, in_page = end & (PAGE_SIZE - 1);
    if (c->packet || in_page == 0 || odd > PAGE_SIZE - in_page)
        return 0;
    ssize_t n = uio_get(u, c->data + end, odd);
    if (n < 0 || (uint32_t)n < odd)
        return -EFAULT;
    c->size += odd;
    p->bytes += odd;
    return n;
}

/* Adds one chunk of at most the free pages. Return: bytes, −EFAULT, −ENOMEM. */
static ssize_t write_chunk(struct pipe *p, struct uio *u, bool packet)
{
    uint64_t room = (uint64_t)(p->slots - p->used) * PAGE_SIZE;
    uint32_t want = (uint32_t)MIN(MIN(u->left, room), (uint64_t)(packet ? PAGE_SIZE : CHUNK_MAX));
    struct pipe_chunk c = {.capacity = (uint32_t)ALIGN_UP(want, PAGE_SIZE), .packet = packet};
    c.data = chunk_alloc(c.capacity);
    if (!c.data)
        return -ENOMEM;
    ssize_t n = uio_get(u, c.data, want);
    /* A page that could not be filled does not count: writes up to PIPE_BUF are all or nothing. */
    if (n >= 0 && (uint32_t)n < want)
        n &= (ssize_t)PAGE_MASK;
    if (n <= 0) {
        chunk_free(c.data, c.capacity);
        return n < 0 ? n : -EFAULT;
    }
    c.size = (uint32_t)n;
    ring_push(p, c);
    return n;
}

static ssize_t pipe_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct pipe *p = file_pipe(f);
    ssize_t done = 0, err = 0;
    bool fresh = false; /* something was added since the last wake */
    if (u->left == 0)
        return 0;
    bool packet = f->flags & O_DIRECT;
    if (p->readers && !packet) {
        done = write_merge(p, u);
        if (done < 0)
            return done;
        fresh = done > 0;
    }
    while (u->left > 0 || done == 0) {
        if (p->readers == 0) {
            sigpipe_raise(u->ctx);
            err = -EPIPE;
            break;
        }
        if (!pipe_full(p)) {
            ssize_t n = write_chunk(p, u, packet);
            if (n < 0) {
                err = n;
                break;
            }
            done += n;
            fresh = true;
            continue;
        }
        if (f->flags & O_NONBLOCK) {
            err = -EAGAIN;
            break;
        }
        if (fresh)
            waitq_wake(&p->read_wait, KEY_IN);
        fresh = false;
        err = WAIT_EVENT(u->ctx, &p->write_wait, !pipe_full(p) || p->readers == 0);
        if (err)
            break;
    }
    if (fresh)
        waitq_wake(&p->read_wait, KEY_IN);
    return done ? done : err;
}

/* ---- the rest of the file ---- */

static uint32_t pipe_poll(struct file *f, struct poll_table *pt)
{
    struct pipe *p = file_pipe(f);
    uint32_t mask = 0;
    if (file_readable(f)) {
        poll_wait(pt, &p->read_wait);
        if (p->len > 0)
            mask |= KEY_IN;
        /* A fifo opened without waiting is no end of file before a first writer came: pos keeps their number. */
        if (p->writers == 0 && (uint64_t)f->pos != (uint64_t)p->writes_opened + 1)
            mask |= EPOLLHUP;
    }
    if (file_writable(f)) {
        poll_wait(pt, &p->write_wait);
        if (!pipe_full(p))
            mask |= KEY_OUT;
        if (p->readers == 0)
            mask |= EPOLLERR;
    }
    return mask;
}

static int64_t pipe_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    if (cmd != FIONREAD)
        return -ENOTTY;
    int32_t n = (int32_t)file_pipe(f)->bytes;
    return COPY_OUT(ctx, UADDR(arg), &n);
}

static int64_t pipe_set_size(struct pipe *p, uint32_t size)
{
    if (size > 1U << 31)
        return -EINVAL;
    uint32_t slots = 1;
    while (slots * PAGE_SIZE < size)
        slots <<= 1;
    if (slots > p->slots) {
        if (slots * PAGE_SIZE > LIMIT_PIPE_SIZE ||
            limit_used(LIMIT_KIND_PIPE_PAGES) + slots - p->slots > PIPE_PAGES_SOFT ||
            limit_charge(LIMIT_KIND_PIPE_PAGES, slots - p->slots))
            return -EPERM;
    } else if (slots < p->used) {
        return -EBUSY;
    }
    struct pipe_chunk *ring = NEW_ARRAY(struct pipe_chunk, slots);
    if (!ring) {
        if (slots > p->slots)
            limit_uncharge(LIMIT_KIND_PIPE_PAGES, slots - p->slots);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < p->len; i++)
        ring[i] = *chunk_at(p, i);
    if (slots < p->slots)
        limit_uncharge(LIMIT_KIND_PIPE_PAGES, p->slots - slots);
    mem_free(p->ring);
    p->ring = ring;
    p->head = 0;
    p->slots = slots;
    if (!pipe_full(p))
        waitq_wake(&p->write_wait, KEY_OUT);
    return (int64_t)slots * (int64_t)PAGE_SIZE;
}

static int64_t pipe_fcntl(struct ctx *ctx, struct file *f, unsigned cmd, uint64_t arg)
{
    struct pipe *p = file_pipe(f);
    switch (cmd) {
    case F_GETPIPE_SZ:
        return (int64_t)p->slots * (int64_t)PAGE_SIZE;
    case F_SETPIPE_SZ:
        return pipe_set_size(p, (uint32_t)arg);
    default:
        return -EINVAL;
    }
}

static void pipe_release(struct file *f)
{
    struct pipe *p = file_pipe(f);
    if (file_readable(f))
        p->readers--;
    if (file_writable(f))
        p->writers--;
    if (!p->readers != !p->writers) {
        waitq_wake_all(&p->read_wait);
        waitq_wake_all(&p->write_wait);
    }
    pipe_put(p);
}

static const struct file_ops pipe_ops = {
    .signals_io = true,
    .read = pipe_read,
    .write = pipe_write,
    .poll = pipe_poll,
    .ioctl = pipe_ioctl,
    .fcntl = pipe_fcntl,
    .release = pipe_release,
};

bool pipe_is(const struct file *f)
{
    return f->ops == &pipe_ops;
}

bool pipe_same(const struct file *a, const struct file *b)
{
    return pipe_is(a) && pipe_is(b) && file_pipe(a) == file_pipe(b);
}

int pipe_new(const struct cred *cred, uint32_t flags, struct file **ret_read, struct file **ret_write)
{
    struct pipe *p;
    int err = pipe_alloc(&p);
    if (err)
        return err;
    struct file *r = file_new_anon("pipe", S_IFIFO | 0600, O_RDONLY | (flags & O_NONBLOCK), &pipe_ops, p,
                                   cred);
    if (!r) {
        pipe_put(p);
        return -ENOMEM;
    }
    p->readers = 1;
    r->no_seek = true;
    /* /proc/PID/fd/N opens it again through the inode. */
    p->inode = r->inode;
    r->inode->pipe = p;
    struct file *w = file_new(&r->path, O_WRONLY | (flags & (O_NONBLOCK | O_DIRECT)), &pipe_ops, cred);
    if (!w) {
        file_unref(r);
        return -ENOMEM;
    }
    ref_get(&p->ref);
    p->writers = 1;
    w->priv = p;
    w->no_seek = true;
    *ret_read = r;
    *ret_write = w;
    return 0;
}

/* ---- fifos ---- */

/* Waits until a partner has opened the other side, even if it has gone again. */
static int wait_partner(struct ctx *ctx, struct pipe *p, const uint32_t *opened)
{
    uint32_t before = *opened;
    return WAIT_EVENT(ctx, &p->open_wait, *opened != before);
}

static int fifo_meet(struct ctx *ctx, struct pipe *p, struct file *file)
{
    /* A pipe without a name waits for nobody: who could still come? */
    bool nameless = file->path.dentry->detached;
    bool nonblock = file->flags & O_NONBLOCK;
    switch (file->flags & O_ACCMODE) {
    case O_RDONLY:
        p->reads_opened++;
        p->readers++;
        waitq_wake_all(&p->open_wait);
        if (p->writers || nameless)
            return 0;
        if (nonblock) {
            file->pos = (int64_t)p->writes_opened + 1;
            return 0;
        }
        return wait_partner(ctx, p, &p->writes_opened);
    case O_WRONLY:
        if (nonblock && p->readers == 0 && !nameless)
            return -ENXIO;
        p->writes_opened++;
        p->writers++;
        waitq_wake_all(&p->open_wait);
        return p->readers || nameless ? 0 : wait_partner(ctx, p, &p->reads_opened);
    default:
        p->reads_opened++;
        p->writes_opened++;
        p->readers++;
        p->writers++;
        waitq_wake_all(&p->open_wait);
        return 0;
    }
}

int pipe_fifo_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    if ((file->flags & O_ACCMODE) == O_ACCMODE)
        return -EINVAL;
    struct pipe *p = inode->pipe;
    if (p) {
        ref_get(&p->ref);
    } else {
        int err = pipe_alloc(&p);
        if (err)
            return err;
        p->inode = inode;
        inode->pipe = p;
    }
    int64_t old_pos = file->pos;
    file->pos = 0;
    int r = fifo_meet(ctx, p, file);
    if (r == -ENXIO) {
        file->pos = old_pos;
        pipe_put(p);
        return r;
    }
    if (r) { /* interrupted: leave as a close would */
        file->pos = old_pos;
        file->priv = p;
        pipe_release(file);
        file->priv = NULL;
        return r;
    }
    file->priv = p;
    file->ops = &pipe_ops;
    file->no_seek = true;
    return 0;
}

/* ---- splice ---- */

ssize_t pipe_wait_room(struct ctx *ctx, struct file *f, bool nonblock)
{
    struct pipe *p = file_pipe(f);
    for (;;) {
        if (p->readers == 0) {
            sigpipe_raise(ctx);
            return -EPIPE;
        }
        if (!pipe_full(p))
            return (ssize_t)(p->slots - p->used) * (ssize_t)PAGE_SIZE;
        if (nonblock || (f->flags & O_NONBLOCK))
            return -EAGAIN;
        int r = WAIT_EVENT(ctx, &p->write_wait, !pipe_full(p) || p->readers == 0);
        if (r)
            return r;
    }
}

ssize_t pipe_wait_data(struct ctx *ctx, struct file *f, bool nonblock)
{
    struct pipe *p = file_pipe(f);
    while (!pipe_has_data(p)) {
        if (p->len == 0 && p->writers == 0)
            return 0;
        if (nonblock || (f->flags & O_NONBLOCK))
            return -EAGAIN;
        int r = WAIT_EVENT(ctx, &p->read_wait,
                           pipe_has_data(p) || (p->len == 0 && p->writers == 0));
        if (r)
            return r;
    }
    return (ssize_t)p->bytes;
}

size_t pipe_peek(struct file *f, size_t offset, void *dst, size_t size)
{
    struct pipe *p = file_pipe(f);
    size_t done = 0;
    for (uint32_t i = 0; i < p->len && done < size; i++) {
        struct pipe_chunk *c = chunk_at(p, i);
        if (offset >= c->size) {
            offset -= c->size;
            continue;
        }
        size_t n = MIN(c->size - offset, size - done);
        memcpy((char *)dst + done, c->data + c->offset + offset, n);
        done += n;
        offset = 0;
    }
    return done;
}

void pipe_consume(struct file *f, size_t size)
{
    struct pipe *p = file_pipe(f);
    bool was_full = pipe_full(p);
    while (size > 0 && p->len > 0) {
        uint32_t n = (uint32_t)MIN(size, (size_t)chunk_at(p, 0)->size);
        eat_front(p, n);
        size -= n;
    }
    if (was_full && !pipe_full(p))
        waitq_wake(&p->write_wait, KEY_OUT);
}

int pipe_lock_read(struct ctx *ctx, struct file *f)
{
    struct pipe *p = file_pipe(f);
    int r = WAIT_EVENT(ctx, &p->read_wait, !p->read_locked);
    if (r == 0)
        p->read_locked = true;
    return r;
}

void pipe_unlock_read(struct file *f)
{
    struct pipe *p = file_pipe(f);
    p->read_locked = false;
    waitq_wake(&p->read_wait, p->len ? KEY_IN : WAIT_KEY_ALL);
}
