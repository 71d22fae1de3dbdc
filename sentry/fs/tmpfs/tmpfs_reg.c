/* SPDX-License-Identifier: Apache-2.0 */
/* Regular files of tmpfs: a block of sentry memory while small, then a host memory file.
 *
 * Pages count against the instance when they are touched, as on Linux. For host files the count follows from what is
 * known (the dense prefix, which covers files that are written from start to end) or from the host's block count. */
#include "sentry/fs/tmpfs/tmpfs_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/abi/abi_time.h"
#include "sentry/core/evloop.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif
#define TMPFS_SEALS                                                                                \
    (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE | F_SEAL_EXEC)

enum {
    TMPFS_BOUNCE_SIZE = 128 * 1024,
    TMPFS_SLOW_SIZE = 4 << 20, /* host calls on more bytes than this run on the I/O pool */
};

/* Between a host file and guest memory. Nothing parks while it is in use. */
static char tmpfs_bounce[TMPFS_BOUNCE_SIZE];

static uint64_t tmpfs_pages(uint64_t size)
{
    return (size + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

static void tmpfs_set_charge(struct inode *inode, uint64_t pages)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    struct tmpfs_sb *s = tmpfs_sb(inode);
    s->used_pages += pages - r->charged;
    r->charged = pages;
    inode->blocks = pages * (PAGE_SIZE / 512);
}

/* Takes the host's word for how many pages the file has. */
static void tmpfs_sync_charge(struct inode *inode)
{
    struct stat st;
    if (host_ret(fstat(to_tmpfs(inode)->reg.fd, &st)) == 0)
        tmpfs_set_charge(inode, (uint64_t)st.st_blocks / (PAGE_SIZE / 512));
}

/* Guests touch pages of mapped files behind our back: the host knows how many there are, and when one was last made dirty. Times
 * that were set to the past stay until it happens again. */
static void tmpfs_sync_mapped(struct inode *inode)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    struct stat st;
    if (!r->mapped || host_ret(fstat(r->fd, &st)) < 0)
        return;
    tmpfs_set_charge(inode, (uint64_t)st.st_blocks / (PAGE_SIZE / 512));
    uint64_t mtime_ns = timespec_to_ns(&st.st_mtim);
    if (mtime_ns == r->host_mtime_ns)
        return;
    r->host_mtime_ns = mtime_ns;
    /* Our own writes have set a later time already. */
    if (mtime_ns > timespec_to_ns(&inode->mtime))
        inode->mtime = st.st_mtim;
    if (mtime_ns > timespec_to_ns(&inode->ctime))
        inode->ctime = st.st_mtim;
}

/* ---- small files ---- */

static uint32_t tmpfs_bits(uint64_t first, uint64_t last)
{
    return (uint32_t)(((2ULL << last) - 1) & ~((1ULL << first) - 1));
}

/* Marks the pages of [pos, end) as there, as far as the instance has room. Return: the end of what may be written. */
static uint64_t tmpfs_small_charge(struct inode *inode, uint64_t pos, uint64_t end)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    uint32_t missing = tmpfs_bits(pos >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT) & ~r->page_bits;
    uint64_t room = tmpfs_room(tmpfs_sb(inode)), added = 0;
    while (missing) {
        unsigned page = (unsigned)__builtin_ctz(missing);
        if (added == room) {
            end = MIN(end, MAX(pos, (uint64_t)page << PAGE_SHIFT));
            break;
        }
        r->page_bits |= 1U << page;
        missing &= missing - 1;
        added++;
    }
    tmpfs_set_charge(inode, r->charged + added);
    return end;
}

static int tmpfs_small_reserve(struct tmpfs_reg *r, uint64_t end)
{
    if (end <= r->capacity)
        return 0;
    uint32_t capacity = MAX(r->capacity, 64U);
    while (capacity < end)
        capacity *= 2;
    char *data = mem_realloc(r->data, capacity, 1);
    if (!data)
        return -ENOMEM;
    memset(data + r->capacity, 0, capacity - r->capacity);
    r->data = data;
    r->capacity = capacity;
    return 0;
}

/* Forgets everything from size on: pages are given back and the rest of the last one is zero again. */
static void tmpfs_small_cut(struct inode *inode, uint64_t size)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    uint64_t first = tmpfs_pages(size);
    if (first < TMPFS_SMALL_PAGES)
        r->page_bits &= (1U << first) - 1;
    r->data_bits &= r->page_bits;
    tmpfs_set_charge(inode, (uint64_t)__builtin_popcount(r->page_bits));
    if (!r->page_bits) {
        mem_free(TAKE_PTR(r->data));
        r->capacity = 0;
    } else if (size < r->capacity) {
        memset(r->data + size, 0, r->capacity - size);
    }
}

/* Moves a small file's contents to a host file. */
static int tmpfs_to_host(struct inode *inode)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (r->fd >= 0)
        return 0;
    bool sealable = !(r->seals & F_SEAL_SEAL) || (r->seals & ~F_SEAL_SEAL);
    CLEANUP_CLOSE int fd =
        (int)host_ret(memfd_create("tmpfs", MFD_CLOEXEC | (sealable ? MFD_ALLOW_SEALING : 0)));
    if (fd < 0)
        return fd == -ENOMEM ? -ENOMEM : -ENOSPC; /* out of descriptors */
    int ret = (int)host_ret(ftruncate(fd, (off_t)inode->size));
    for (unsigned page = 0; ret == 0 && page < TMPFS_SMALL_PAGES; page++) {
        if (!(r->page_bits & (1U << page)))
            continue;
        uint64_t pos = (uint64_t)page << PAGE_SHIFT;
        uint64_t limit = MIN((uint64_t)r->capacity, inode->size);
        uint64_t end = MIN(pos + PAGE_SIZE, limit);
        /* A page that was preallocated stays so. */
        if (pos >= end || !(r->data_bits & (1U << page)))
            ret = (int)host_ret(fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)pos, PAGE_SIZE));
        else if (host_ret(pwrite(fd, r->data + pos, end - pos, (off_t)pos)) != (long)(end - pos))
            ret = -ENOMEM;
    }
    if (ret == 0 && sealable)
        ret = (int)host_ret(fcntl(fd, F_ADD_SEALS, r->seals & ~F_SEAL_EXEC));
    if (ret < 0)
        return ret;
    r->dense_pages = (uint64_t)__builtin_ctz(~r->page_bits);
    mem_free(TAKE_PTR(r->data));
    r->capacity = 0;
    r->page_bits = r->data_bits = 0;
    r->fd = TAKE_FD(fd);
    return 0;
}

void tmpfs_reg_free(struct tmpfs_inode *ti)
{
    struct tmpfs_reg *r = &ti->reg;
    tmpfs_set_charge(&ti->inode, 0);
    mem_free(r->data);
    host_close(r->fd);
    host_close(r->ro_fd);
}

/* ---- reading ---- */

static ssize_t tmpfs_read_some(struct inode *inode, struct uio *u, uint64_t pos, uint64_t size)
{
    static char zeros[64 * 1024]; /* not const: costs nothing in the image, and reading it no memory */
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (r->fd >= 0) {
        long n = host_ret(pread(r->fd, tmpfs_bounce, MIN(size, (uint64_t)TMPFS_BOUNCE_SIZE), (off_t)pos));
        return n <= 0 ? n : uio_put(u, tmpfs_bounce, (size_t)n);
    }
    if (pos < r->capacity)
        return uio_put(u, r->data + pos, MIN(size, r->capacity - pos));
    return uio_put(u, zeros, MIN(size, (uint64_t)sizeof(zeros)));
}

static ssize_t tmpfs_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct inode *inode = f->inode;
    if (*pos < 0)
        return -EINVAL;
    uint64_t at = (uint64_t)*pos;
    ssize_t done = 0;
    while (u->left && at < inode->size) {
        ssize_t n = tmpfs_read_some(inode, u, at, MIN(u->left, inode->size - at));
        if (n <= 0) {
            if (!done)
                return n;
            break;
        }
        at += (uint64_t)n;
        done += n;
    }
    *pos = (int64_t)at;
    return done;
}

/* ---- writing ---- */

static ssize_t tmpfs_small_write(struct inode *inode, struct uio *u, uint64_t pos, uint64_t end)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    int ret = tmpfs_small_reserve(r, end);
    if (ret < 0)
        return ret;
    end = tmpfs_small_charge(inode, pos, end);
    if (end == pos)
        return -ENOSPC;
    r->data_bits |= tmpfs_bits(pos >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT);
    ssize_t n = uio_get(u, r->data + pos, end - pos);
    /* A copy that faulted half-way may have left bytes where only zeros may be. */
    uint64_t from = pos + (n > 0 ? (uint64_t)n : 0);
    from = MAX(from, inode->size);
    if (from < end)
        memset(r->data + from, 0, end - from);
    return n;
}

/* Counts the holes of the host file from page first on, up to limit of them. Return: the page where the count ended
 * (last + 1 when all pages up to last can be there). */
static uint64_t tmpfs_host_missing(int fd, uint64_t first, uint64_t last, uint64_t limit)
{
    uint64_t page = first;
    while (page <= last) {
        long hole = host_ret(lseek(fd, (off_t)(page << PAGE_SHIFT), SEEK_HOLE));
        uint64_t hole_page = hole < 0 ? page : (uint64_t)hole >> PAGE_SHIFT;
        if (hole_page > page) {
            page = hole_page;
            continue;
        }
        if (!limit)
            return page;
        limit--;
        page++;
    }
    return last + 1;
}

/* How far a write to [pos, end) may go before the instance is full. */
static uint64_t tmpfs_host_room(struct inode *inode, uint64_t pos, uint64_t end)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    uint64_t first = pos >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT;
    if (last < r->dense_pages || tmpfs_room(tmpfs_sb(inode)) >= last + 1 - MAX(first, r->dense_pages))
        return end;
    tmpfs_sync_charge(inode);
    uint64_t stop = tmpfs_host_missing(r->fd, first, last, tmpfs_room(tmpfs_sb(inode)));
    return MIN(end, MAX(pos, stop << PAGE_SHIFT));
}

/* Keeps the page count right after [pos, end) was written; old_size is the size before. */
static void tmpfs_host_written(struct inode *inode, uint64_t pos, uint64_t end, uint64_t old_size)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    uint64_t first = pos >> PAGE_SHIFT, pages = tmpfs_pages(end);
    if (pages <= r->dense_pages)
        return;
    bool append = first <= r->dense_pages && tmpfs_pages(old_size) <= r->dense_pages;
    if (append)
        tmpfs_set_charge(inode, r->charged + pages - r->dense_pages);
    else
        tmpfs_sync_charge(inode);
    if (first <= r->dense_pages)
        r->dense_pages = pages;
}

static ssize_t tmpfs_host_write(struct inode *inode, struct uio *u, uint64_t pos, uint64_t end)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    end = MIN(end, pos + TMPFS_BOUNCE_SIZE);
    end = tmpfs_host_room(inode, pos, end);
    if (end == pos)
        return -ENOSPC;
    ssize_t got = uio_get(u, tmpfs_bounce, end - pos);
    if (got <= 0)
        return got;
    long n = host_ret(pwrite(r->fd, tmpfs_bounce, (size_t)got, (off_t)pos));
    if (n < got)
        uio_revert(u, (uint64_t)(got - MAX(n, 0L)));
    if (n > 0)
        tmpfs_host_written(inode, pos, pos + (uint64_t)n, inode->size);
    return n;
}

static ssize_t tmpfs_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct inode *inode = f->inode;
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (f->flags & O_APPEND)
        *pos = (int64_t)inode->size;
    if (*pos < 0)
        return -EINVAL;
    if (r->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
        return -EPERM;
    uint64_t at = (uint64_t)*pos, end;
    if (at >= INT64_MAX)
        return -EFBIG;
    end = at + MIN(u->left, (uint64_t)INT64_MAX - at);
    if ((r->seals & F_SEAL_GROW) && end > inode->size) {
        end = inode->size;
        if (at >= end)
            return -EPERM;
    }
    if (end > TMPFS_SMALL_SIZE) {
        int ret = tmpfs_to_host(inode);
        if (ret < 0)
            return ret;
    }
    ssize_t done = 0, n = 0;
    while (at < end) {
        n = r->fd >= 0 ? tmpfs_host_write(inode, u, at, end) : tmpfs_small_write(inode, u, at, end);
        if (n <= 0)
            break;
        at += (uint64_t)n;
        done += n;
        inode->size = MAX(inode->size, at);
    }
    if (!done)
        return n;
    inode_touch(inode, IATTR_MTIME | IATTR_CTIME);
    *pos = (int64_t)at;
    return done;
}

/* ---- size, holes ---- */

static int tmpfs_resize(struct inode *inode, uint64_t size)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (size > INT64_MAX)
        return -EFBIG;
    if ((size < inode->size && (r->seals & F_SEAL_SHRINK)) || (size > inode->size && (r->seals & F_SEAL_GROW)))
        return -EPERM;
    if (r->fd >= 0) {
        int ret = (int)host_ret(ftruncate(r->fd, (off_t)size));
        if (ret < 0)
            return ret;
        /* What was preallocated behind the end goes whenever the file does not grow. */
        if (size <= inode->size) {
            r->dense_pages = MIN(r->dense_pages, tmpfs_pages(size));
            if (size == 0 && !r->mapped)
                tmpfs_set_charge(inode, 0);
            else
                tmpfs_sync_charge(inode);
        }
    } else if (size <= inode->size) {
        tmpfs_small_cut(inode, size);
    }
    inode->size = size;
    return 0;
}

/* The size alone, after pages were preallocated up to there. */
static int tmpfs_grow(struct inode *inode, uint64_t size)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (r->fd >= 0 && size > inode->size) {
        int ret = (int)host_ret(ftruncate(r->fd, (off_t)size));
        if (ret < 0)
            return ret;
    }
    inode->size = MAX(inode->size, size);
    return 0;
}

static int tmpfs_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if ((attr->valid & IATTR_MODE) && (r->seals & F_SEAL_EXEC) && ((attr->mode ^ inode->mode) & 0111))
        return -EPERM;
    if (attr->valid & IATTR_SIZE) {
        int ret = tmpfs_resize(inode, attr->size);
        if (ret < 0)
            return ret;
    }
    tmpfs_sync_mapped(inode);
    inode_apply_attr(inode, attr);
    return 0;
}

static int tmpfs_refresh(struct ctx *ctx, struct inode *inode)
{
    tmpfs_sync_mapped(inode);
    return 0;
}

static int64_t tmpfs_small_seek(struct inode *inode, uint64_t offset, bool data)
{
    const struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    for (uint64_t at = offset; at < inode->size; at = (at & PAGE_MASK) + PAGE_SIZE) {
        bool written = at < TMPFS_SMALL_SIZE && (r->data_bits & (1U << (at >> PAGE_SHIFT)));
        if (written == data)
            return (int64_t)at;
        if (at >= TMPFS_SMALL_SIZE)
            break;
    }
    return data ? -ENXIO : (int64_t)inode->size;
}

static int64_t tmpfs_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    struct inode *inode = f->inode;
    if (whence != SEEK_DATA && whence != SEEK_HOLE)
        return file_llseek_generic(ctx, f, offset, whence);
    if (offset < 0 || (uint64_t)offset >= inode->size)
        return -ENXIO;
    const struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    int64_t to = r->fd >= 0 ? host_ret(lseek(r->fd, offset, whence))
                            : tmpfs_small_seek(inode, (uint64_t)offset, whence == SEEK_DATA);
    if (to >= 0)
        f->pos = to;
    return to;
}

struct tmpfs_fallocate {
    int fd, mode;
    off_t offset, len;
};

static long tmpfs_fallocate_host(void *arg)
{
    const struct tmpfs_fallocate *a = arg;
    return host_ret(fallocate(a->fd, a->mode, a->offset, a->len));
}

static int tmpfs_fallocate_run(struct inode *inode, int mode, uint64_t offset, uint64_t len)
{
    struct tmpfs_fallocate a = {to_tmpfs(inode)->reg.fd, mode, (off_t)offset, (off_t)len};
    return (int)(len > TMPFS_SLOW_SIZE ? hostio_run(tmpfs_fallocate_host, &a) : tmpfs_fallocate_host(&a));
}

static int tmpfs_punch(struct inode *inode, uint64_t offset, uint64_t len)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (r->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
        return -EPERM;
    uint64_t end = offset + len;
    if (r->fd >= 0) {
        r->dense_pages = MIN(r->dense_pages, offset >> PAGE_SHIFT);
        int ret = tmpfs_fallocate_run(inode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, len);
        tmpfs_sync_charge(inode);
        return ret;
    }
    if (offset < r->capacity)
        memset(r->data + offset, 0, MIN(end, (uint64_t)r->capacity) - offset);
    uint64_t first = tmpfs_pages(offset), last = end >> PAGE_SHIFT;
    for (uint64_t page = first; page < last && page < TMPFS_SMALL_PAGES; page++)
        r->page_bits &= ~(1U << page);
    r->data_bits &= r->page_bits;
    tmpfs_set_charge(inode, (uint64_t)__builtin_popcount(r->page_bits));
    return 0;
}

static int tmpfs_preallocate(struct inode *inode, uint64_t offset, uint64_t end)
{
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    if (end <= TMPFS_SMALL_SIZE && r->fd < 0) {
        uint32_t missing = tmpfs_bits(offset >> PAGE_SHIFT, (end - 1) >> PAGE_SHIFT) & ~r->page_bits;
        if ((uint64_t)__builtin_popcount(missing) > tmpfs_room(tmpfs_sb(inode)))
            return -ENOSPC;
        int ret = tmpfs_small_reserve(r, end);
        if (ret < 0)
            return ret;
        return tmpfs_small_charge(inode, offset, end) == end ? 0 : -ENOSPC;
    }
    int ret = tmpfs_to_host(inode);
    if (ret < 0)
        return ret;
    if (tmpfs_host_room(inode, offset, end) != end)
        return -ENOSPC;
    ret = tmpfs_fallocate_run(inode, FALLOC_FL_KEEP_SIZE, offset, end - offset);
    tmpfs_sync_charge(inode);
    /* The host shows these pages as a hole until they are written: only this tells that they are there. */
    if (ret == 0 && (offset >> PAGE_SHIFT) <= r->dense_pages)
        r->dense_pages = MAX(r->dense_pages, tmpfs_pages(end));
    return ret;
}

static int tmpfs_fallocate(struct ctx *ctx, struct file *f, int mode, int64_t offset, int64_t len)
{
    struct inode *inode = f->inode;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
        return -EOPNOTSUPP;
    int ret;
    if (mode & FALLOC_FL_PUNCH_HOLE) {
        ret = tmpfs_punch(inode, (uint64_t)offset, (uint64_t)len);
    } else {
        uint64_t end = (uint64_t)offset + (uint64_t)len;
        bool grows = !(mode & FALLOC_FL_KEEP_SIZE) && end > inode->size;
        if (grows && (to_tmpfs(inode)->reg.seals & F_SEAL_GROW))
            return -EPERM;
        ret = tmpfs_preallocate(inode, (uint64_t)offset, end);
        if (ret == 0 && grows)
            ret = tmpfs_grow(inode, end);
    }
    if (ret == 0)
        inode_touch(inode, IATTR_MTIME | IATTR_CTIME);
    return ret;
}

/* Pages in memory are all that there are. As on Linux none of them is called dirty: there is no place to write them to. */
static int tmpfs_cachestat(struct ctx *ctx, struct file *f, uint64_t offset, uint64_t size, struct host_cachestat *ret_stat)
{
    const struct tmpfs_reg *r = &to_tmpfs(f->inode)->reg;
    if (r->fd >= 0)
        return host_cachestat(r->fd, offset, size, ret_stat);
    uint64_t first = offset >> PAGE_SHIFT, last = size ? (offset + size - 1) >> PAGE_SHIFT : UINT64_MAX;
    for (uint64_t page = first; page < TMPFS_SMALL_PAGES && page <= last; page++)
        ret_stat->cached += r->page_bits >> page & 1;
    return 0;
}

/* ---- mapping, seals ---- */

static int tmpfs_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map)
{
    struct inode *inode = f->inode;
    struct tmpfs_reg *r = &to_tmpfs(inode)->reg;
    bool write_sealed = r->seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
    if (shared && (prot & PROT_WRITE) && write_sealed)
        return -EPERM;
    int ret = tmpfs_to_host(inode);
    if (ret < 0)
        return ret;
    *ret_map = (struct file_map){.host_fd = r->fd};
    /* A shared map of a writable file may be made writable later by mprotect. Everything else gets a descriptor that
     * cannot: whoever holds it has exactly its rights. */
    if (!shared || !file_writable(f) || write_sealed) {
        if (r->ro_fd < 0) {
            ret = host_reopen(r->fd, O_RDONLY);
            if (ret < 0)
                return ret == -EMFILE || ret == -ENFILE ? -ENFILE : ret;
            r->ro_fd = ret;
        }
        ret_map->host_fd = r->ro_fd;
    }
    if (!r->mapped) { /* what moved the file to the host is no change */
        struct stat st;
        ret = (int)host_ret(fstat(r->fd, &st));
        if (ret < 0)
            return ret;
        r->host_mtime_ns = timespec_to_ns(&st.st_mtim);
        r->mapped = true;
    }
    return 0;
}

static int64_t tmpfs_add_seals(struct file *f, uint32_t seals)
{
    struct tmpfs_reg *r = &to_tmpfs(f->inode)->reg;
    if (!file_writable(f))
        return -EPERM;
    if (seals & ~(uint32_t)TMPFS_SEALS)
        return -EINVAL;
    if (r->seals & F_SEAL_SEAL)
        return -EPERM;
    if (seals & F_SEAL_EXEC && (f->inode->mode & 0111))
        seals |= F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
    /* The host knows whether writable maps are left (EBUSY). Its own F_SEAL_SEAL would stop our later ones. */
    uint32_t host_seals = seals & ~(uint32_t)(F_SEAL_EXEC | F_SEAL_SEAL);
    if (r->fd >= 0 && host_seals) {
        int ret = (int)host_ret(fcntl(r->fd, F_ADD_SEALS, host_seals));
        if (ret < 0)
            return ret;
    }
    r->seals |= seals;
    return 0;
}

static int64_t tmpfs_fcntl(struct ctx *ctx, struct file *f, unsigned cmd, uint64_t arg)
{
    switch (cmd) {
    case F_ADD_SEALS:
        return arg > UINT32_MAX ? -EINVAL : tmpfs_add_seals(f, (uint32_t)arg);
    case F_GET_SEALS:
        return to_tmpfs(f->inode)->reg.seals;
    case F_SETPIPE_SZ:
    case F_GETPIPE_SZ:
        return -EBADF;
    }
    return -EINVAL;
}

static int tmpfs_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    return 0;
}

static const struct file_ops tmpfs_reg_fops = {
    .read = tmpfs_read,
    .write = tmpfs_write,
    .llseek = tmpfs_llseek,
    .mmap = tmpfs_mmap,
    .fsync = tmpfs_fsync,
    .fallocate = tmpfs_fallocate,
    .cachestat = tmpfs_cachestat,
    .fcntl = tmpfs_fcntl,
};

static int tmpfs_reg_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    file->ops = &tmpfs_reg_fops;
    return 0;
}

const struct inode_ops tmpfs_reg_iops = {
    .open = tmpfs_reg_open,
    .setattr = tmpfs_setattr,
    .refresh = tmpfs_refresh,
    .getxattr = tmpfs_getxattr,
    .setxattr = tmpfs_setxattr,
    .listxattr = tmpfs_listxattr,
    .removexattr = tmpfs_removexattr,
    .fileattr_get = tmpfs_fileattr_get,
    .fileattr_set = tmpfs_fileattr_set,
    .evict = tmpfs_evict,
};
