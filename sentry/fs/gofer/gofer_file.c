/* SPDX-License-Identifier: Apache-2.0 */
/* Regular files: reading, writing and mapping through descriptors that the gofer has donated.
 *
 * The kernel thread must not sleep in the host. Reads ask for what is in the page cache
 * (RWF_NOWAIT) and go to the I/O pool for the rest. Buffered writes can't be asked for that on most
 * file systems; they seldom sleep, so they are made here and timed: after one that took long (a
 * disk that is behind), writes go to the pool for a while. */
#include "sentry/fs/gofer/gofer_fs_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "sentry/vfs/file.h"

enum {
    GOFER_FILE_CHUNK = 128 * 1024, /* bytes moved by one host call */
    GOFER_FILE_SLOW_NS =
        2 * 1000 * 1000, /* a write that took so long makes the next ones go to the pool */
    GOFER_FILE_SLOW_FOR_NS = 100 * 1000 * 1000,
    GOFER_FILE_TRUNCATE_INLINE = 1024 * 1024 /* freeing more blocks than this may take long */
};

/* Between the host's page cache and guest memory. Never in use across a park. */
static char gofer_file_bounce[GOFER_FILE_CHUNK] ALIGNED(4096);

/* ---- host calls, here or on the I/O pool ---- */

struct gofer_file_io {
    int fd;
    bool write;
    int flags; /* RWF_* */
    void *data;
    size_t size;
    int64_t pos;
};

static long gofer_file_do_io(void *arg)
{
    const struct gofer_file_io *io = arg;
    struct iovec iov = {.iov_base = io->data, .iov_len = io->size};
    if (io->write)
        return host_ret(pwritev2(io->fd, &iov, 1, io->pos, io->flags));
    return host_ret(preadv2(io->fd, &iov, 1, io->pos, io->flags));
}

/* Whether transfers go to the pool for now. */
static bool gofer_file_is_slow(uint64_t *slow_until_ns)
{
    if (likely(!*slow_until_ns))
        return false;
    if (host_monotonic_ns() < *slow_until_ns)
        return true;
    *slow_until_ns = 0;
    return false;
}

/* Makes the transfer on the kernel thread and notes when that took long. */
static long gofer_file_do_timed(struct gofer_file_io *io, uint64_t *slow_until_ns)
{
    uint64_t start = host_monotonic_ns();
    long n = gofer_file_do_io(io);
    uint64_t end = host_monotonic_ns();
    if (unlikely(end - start > GOFER_FILE_SLOW_NS))
        *slow_until_ns = end + GOFER_FILE_SLOW_FOR_NS;
    return n;
}

/* ---- read ---- */

/* Reads up to size bytes at pos through the pool and moves them to u. Return: bytes or −errno. */
static ssize_t gofer_file_read_slow(int fd, struct uio *u, size_t size, int64_t pos)
{
    CLEANUP_FREE char *data = mem_zalloc(size);
    if (!data)
        return -ENOMEM;
    struct gofer_file_io io = {.fd = fd, .data = data, .size = size, .pos = pos};
    long n = hostio_run(gofer_file_do_io, &io);
    if (n <= 0)
        return n;
    return uio_put(u, data, (size_t)n);
}

/* Reads where the host can't be asked not to wait (overlay and memory file systems): here as long
 * as that is quick. */
static ssize_t gofer_file_read_timed(struct gofer_sb *gs, int fd, struct uio *u, size_t size,
                                     int64_t pos)
{
    if (gofer_file_is_slow(&gs->slow_read_ns))
        return gofer_file_read_slow(fd, u, size, pos);
    struct gofer_file_io io = {.fd = fd, .data = gofer_file_bounce, .size = size, .pos = pos};
    long n = gofer_file_do_timed(&io, &gs->slow_read_ns);
    return n > 0 ? uio_put(u, gofer_file_bounce, (size_t)n) : n;
}

static ssize_t gofer_file_read_chunk(struct gofer_sb *gs, int fd, struct uio *u, size_t size,
                                     int64_t pos)
{
    if (unlikely(gs->no_nowait_read))
        return gofer_file_read_timed(gs, fd, u, size, pos);
    struct gofer_file_io io = {
        .fd = fd, .flags = RWF_NOWAIT, .data = gofer_file_bounce, .size = size, .pos = pos};
    long n = gofer_file_do_io(&io);
    if (n > 0)
        return uio_put(u, gofer_file_bounce, (size_t)n);
    if (n == -EOPNOTSUPP)
        gs->no_nowait_read = true;
    if (n == -EOPNOTSUPP)
        return gofer_file_read_timed(gs, fd, u, size, pos);
    return n == -EAGAIN ? gofer_file_read_slow(fd, u, size, pos) : n;
}

static ssize_t gofer_file_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    struct gofer_sb *gs = gofer_sb_of(f->inode);
    bool exclusive = gs->share == GOFER_EXCLUSIVE;
    ssize_t done = 0;
    if (*pos < 0)
        return -EINVAL;
    /* Nobody else makes the file longer: the end is known without asking. */
    if (!u->left || (exclusive && (uint64_t)*pos >= f->inode->size))
        return 0;
    int fd = gofer_cache_get(gi, false);
    if (fd < 0)
        return fd;
    while (u->left) {
        size_t size = MIN(u->left, (uint64_t)GOFER_FILE_CHUNK);
        ssize_t n = gofer_file_read_chunk(gs, fd, u, size, *pos);
        if (n <= 0) {
            done = done ? done : n;
            break;
        }
        *pos += n;
        done += n;
        /* Short of the end, the host gave what it had in memory: the rest comes with the next
         * round. */
        if ((size_t)n < size && (uint64_t)*pos >= f->inode->size)
            break;
    }
    gofer_cache_put(gi);
    /* The host has its own idea of when reads change the access time. */
    gi->io_dirty = gi->io_dirty || done > 0;
    return done;
}

/* The host drops set-id bits when the sentry, which has no privileges, changes a file. What the
 * guest's writer may keep (the VFS has dropped the rest) is put back. mode: what it was before. */
static void gofer_file_restore_mode(struct gofer_inode *gi, uint32_t mode)
{
    struct gofer_sb *gs = gofer_sb_of(&gi->inode);
    struct wire_setattr req = {.mask = WIRE_SET_MODE, .mode = mode & 07777};
    struct wire_attr attr;
    if (likely(!(mode & (S_ISUID | S_ISGID))))
        return;
    gofer_cache_fstat(gi);
    if (gi->inode.mode == mode)
        return;
    gs->changes++;
    /* Failing, the bits stay off, which is the safe side. */
    if (gofer_fs_node(gi, &req.node) >= 0 && gofer_client_setattr(gs->client, &req, &attr) >= 0)
        gofer_fs_set_attr(gi, &attr);
}

/* ---- write ---- */

/* Moves up to size bytes from u to the file. Return: bytes or −errno. */
static ssize_t gofer_file_write_chunk(struct gofer_sb *gs, int fd, struct uio *u, size_t size,
                                      int64_t pos, int flags)
{
    bool pool = (flags & (RWF_DSYNC | RWF_SYNC)) || gofer_file_is_slow(&gs->slow_write_ns);
    char *data = gofer_file_bounce;
    CLEANUP_FREE char *heap = NULL;
    /* The bounce buffer is everybody's: memory of its own for a write that parks. */
    if (pool) {
        data = heap = mem_zalloc(size);
        if (!heap)
            return -ENOMEM;
    }
    ssize_t got = uio_get(u, data, size);
    if (got <= 0)
        return got;
    struct gofer_file_io io = {
        .fd = fd, .write = true, .flags = flags, .data = data, .size = (size_t)got, .pos = pos};
    ssize_t n =
        pool ? hostio_run(gofer_file_do_io, &io) : gofer_file_do_timed(&io, &gs->slow_write_ns);
    if (n < got)
        uio_revert(u, (uint64_t)(got - MAX(n, (ssize_t)0)));
    return n;
}

static int gofer_file_write_flags(const struct file *f, bool append_on_host)
{
    int flags = append_on_host ? RWF_APPEND : 0;
    if ((f->flags & O_SYNC) == O_SYNC)
        flags |= RWF_SYNC;
    else if (f->flags & O_DSYNC)
        flags |= RWF_DSYNC;
    return flags;
}

static void gofer_file_wrote(struct gofer_inode *gi, int64_t end)
{
    struct inode *inode = &gi->inode;
    inode->size = MAX(inode->size, (uint64_t)end);
    inode_touch(inode, IATTR_MTIME | IATTR_CTIME);
    gi->io_dirty = true;
    gofer_sb_of(inode)->changes++;
}

static ssize_t gofer_file_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    struct gofer_sb *gs = gofer_sb_of(f->inode);
    bool append = f->flags & O_APPEND;
    /* Where others write too, only the host knows the end. */
    bool append_on_host = append && gs->share != GOFER_EXCLUSIVE;
    int flags = gofer_file_write_flags(f, append_on_host);
    ssize_t done = 0;
    uint32_t mode = f->inode->mode;
    int fd = gofer_cache_get(gi, true);
    if (fd < 0)
        return fd;
    if (append && !append_on_host)
        *pos = (int64_t)f->inode->size;
    while (u->left) {
        uint64_t size = MIN(u->left, (uint64_t)GOFER_FILE_CHUNK);
        int64_t reserved = *pos < 0 ? -EINVAL : gofer_quota_reserve(gi, *pos, &size);
        ssize_t n = reserved < 0 ? reserved : gofer_file_write_chunk(gs, fd, u, size, *pos, flags);
        if (reserved >= 0)
            gofer_quota_settle(gi, reserved);
        if (n <= 0) {
            done = done ? done : n;
            break;
        }
        if (append_on_host) {
            gofer_cache_fstat(gi);
            *pos = (int64_t)f->inode->size;
        } else {
            *pos += n;
        }
        gofer_file_wrote(gi, *pos);
        done += n;
    }
    gofer_file_restore_mode(gi, mode);
    gofer_cache_put(gi);
    return done;
}

/* ---- the rest ---- */

static int64_t gofer_file_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return file_llseek_generic(ctx, f, offset, whence);
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    int fd = gofer_cache_get(gi, false);
    if (fd < 0)
        return fd;
    int64_t to = host_ret(lseek(fd, offset, whence));
    gofer_cache_put(gi);
    if (to >= 0)
        f->pos = to;
    return to;
}

static int gofer_file_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared,
                           struct file_map *ret_map)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    /* The mapping may be made writable later without the sentry being asked: whoever may have that
     * gets the descriptor for it, and nobody else. */
    bool write = shared && (f->flags & O_ACCMODE) == O_RDWR;
    int fd = write ? gofer_cache_get(gi, true) : gofer_cache_get_read_only(gi);
    if (fd < 0)
        return fd;
    /* Nothing parks before the caller is done with the descriptor. */
    gofer_cache_put(gi);
    if (write && !gi->mapped) {
        int err = gofer_quota_map(gi, gi->inode.size);
        if (err < 0)
            return err;
        gi->mapped = true;
        gofer_quota_note(gi);
    }
    *ret_map = (struct file_map){.host_fd = fd};
    return 0;
}

struct gofer_file_sync {
    int fd;
    bool data_only;
};

static long gofer_file_do_sync(void *arg)
{
    const struct gofer_file_sync *s = arg;
    return host_ret(s->data_only ? fdatasync(s->fd) : fsync(s->fd));
}

/* Whether the file lies in the host's memory: then there is nothing to wait for, and a way to the I/O pool and back would
 * be all that a sync costs. */
static bool gofer_file_in_memory(int fd)
{
    struct statfs st;
    return fstatfs(fd, &st) == 0 && (st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC);
}

static int gofer_file_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    int fd = gofer_cache_get(gi, false);
    if (fd < 0)
        return fd;
    struct gofer_file_sync s = {.fd = fd, .data_only = data_only};
    int err = (int)(gofer_file_in_memory(fd) ? gofer_file_do_sync(&s) : hostio_run(gofer_file_do_sync, &s));
    gofer_cache_put(gi);
    int late = gofer_fs_settle(gofer_sb_of(f->inode));
    return err < 0 ? err : late;
}

struct gofer_file_space {
    int fd, mode;
    int64_t offset, len;
};

static long gofer_file_do_fallocate(void *arg)
{
    const struct gofer_file_space *s = arg;
    return host_ret(fallocate(s->fd, s->mode, s->offset, s->len));
}

static long gofer_file_do_truncate(void *arg)
{
    const struct gofer_file_space *s = arg;
    return host_ret(ftruncate(s->fd, s->len));
}

static bool gofer_file_takes_space(int mode)
{
    return !(mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE));
}

static int gofer_file_fallocate(struct ctx *ctx, struct file *f, int mode, int64_t offset,
                                int64_t len)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    int fd = gofer_cache_get(gi, true);
    if (fd < 0)
        return fd;
    struct gofer_file_space s = {.fd = fd, .mode = mode, .offset = offset, .len = len};
    uint32_t old_mode = f->inode->mode;
    uint64_t size = (uint64_t)len;
    int64_t reserved = gofer_file_takes_space(mode) ? gofer_quota_reserve(gi, offset, &size) : 0;
    int err = reserved < 0 ? (int)reserved : 0;
    if (!err && size < (uint64_t)len) {
        gofer_quota_settle(gi, reserved);
        err = -ENOSPC;
    }
    if (err) {
        gofer_cache_put(gi);
        return err;
    }
    err = (int)hostio_run(gofer_file_do_fallocate, &s);
    gofer_quota_settle(gi, reserved);
    gofer_sb_of(f->inode)->changes++;
    gofer_cache_fstat(gi);
    gofer_file_restore_mode(gi, old_mode);
    gofer_cache_put(gi);
    return err;
}

int gofer_file_truncate(struct gofer_inode *gi, uint64_t size)
{
    if (size > INT64_MAX)
        return -EINVAL;
    if (gi->mapped && size > gi->inode.size) {
        int err = gofer_quota_map(gi, size);
        if (err < 0)
            return err;
    }
    int fd = gofer_cache_get(gi, true);
    if (fd < 0)
        return fd;
    struct gofer_file_space s = {.fd = fd, .len = (int64_t)size};
    uint64_t old = gi->inode.size;
    uint32_t mode = gi->inode.mode;
    long err = old > size && old - size > GOFER_FILE_TRUNCATE_INLINE
                   ? hostio_run(gofer_file_do_truncate, &s)
                   : gofer_file_do_truncate(&s);
    gofer_sb_of(&gi->inode)->changes++;
    gofer_cache_fstat(gi);
    gofer_file_restore_mode(gi, mode);
    gofer_cache_put(gi);
    return (int)err;
}

struct gofer_file_cached {
    int fd;
    uint64_t offset, size;
    struct host_cachestat *st;
};

static long gofer_file_do_cachestat(void *arg)
{
    const struct gofer_file_cached *s = arg;
    return host_cachestat(s->fd, s->offset, s->size, s->st);
}

/* The host tells only who may write the file, and a descriptor for reading shows nothing of the sort: then the gofer, which
 * may, is asked. */
static int gofer_file_cachestat(struct ctx *ctx, struct file *f, uint64_t offset, uint64_t size, struct host_cachestat *ret_stat)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    struct gofer_file_cached s = {.fd = gofer_cache_get(gi, false), .offset = offset, .size = size, .st = ret_stat};
    struct wire_cached c;
    uint64_t node;
    if (s.fd < 0)
        return s.fd;
    int err = (int)hostio_run(gofer_file_do_cachestat, &s);
    gofer_cache_put(gi);
    if (err != -EPERM)
        return err;
    err = gofer_fs_node(gi, &node);
    if (!err)
        err = gofer_client_cachestat(gofer_sb_of(f->inode)->client, node, offset, size, &c);
    if (!err)
        *ret_stat = (struct host_cachestat){c.cached, c.dirty, c.writeback, c.evicted, c.recently_evicted};
    return err;
}

static void gofer_file_release(struct file *f)
{
    gofer_cache_closed(to_gofer_inode(f->inode));
}

static const struct file_ops gofer_file_ops = {
    .read = gofer_file_read,
    .write = gofer_file_write,
    .llseek = gofer_file_llseek,
    .mmap = gofer_file_mmap,
    .fsync = gofer_file_fsync,
    .fallocate = gofer_file_fallocate,
    .cachestat = gofer_file_cachestat,
    .release = gofer_file_release,
};

int gofer_file_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    bool write = file_writable(file) || (file->flags & O_TRUNC);
    /* Opened on the host now, so that an error is open's and not the first read's. */
    int fd = gofer_cache_get(gi, write);
    if (fd < 0)
        return fd;
    gofer_cache_put(gi);
    gofer_cache_opened(gi);
    gofer_ahead_used(gi);
    file->ops = &gofer_file_ops;
    return 0;
}
