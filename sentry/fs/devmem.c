/* SPDX-License-Identifier: Apache-2.0 */
/* The memory devices: null, zero, full, random, urandom. */
#include "sentry/fs/devmem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <sys/epoll.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/devfs.h"
#include "sentry/vfs/file.h"

enum {
    DEVMEM_TURN = 1 << 20, /* bytes after which others get their turn */
    DEVMEM_RANDOM_CHUNK = 2048,
};

static const char zero_block[16 * 1024];

/* Lets others run and looks for signals. Return: whether the loop has to end. */
static bool devmem_turn(struct ctx *ctx, uint64_t *turn)
{
    if (*turn < DEVMEM_TURN)
        return false;
    *turn = 0;
    if (!ctx || !fiber_current())
        return false;
    fiber_yield();
    return ctx->signal_pending;
}

static ssize_t null_read(struct file *f, struct uio *u, int64_t *pos)
{
    return 0;
}

static ssize_t null_write(struct file *f, struct uio *u, int64_t *pos)
{
    uint64_t size = u->left;

    uio_advance(u, size);
    return (ssize_t)size;
}

static int64_t null_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    return f->pos = 0;
}

static ssize_t zero_read(struct file *f, struct uio *u, int64_t *pos)
{
    uint64_t turn = 0;
    ssize_t total = 0;

    while (u->left > 0) {
        ssize_t n = uio_put(u, zero_block, MIN(u->left, (uint64_t)sizeof(zero_block)));

        if (n <= 0)
            return total ? total : n;
        total += n;
        turn += (uint64_t)n;
        if (devmem_turn(u->ctx, &turn))
            break;
    }
    return total;
}

/* Shared maps of /dev/zero are fresh shared memory each time, as large as an address space can ask for: only what is
 * touched takes memory. The last one's descriptor stays with the file, since the caller borrows it. */
#define ZERO_SHARED_SIZE (1ULL << 46)

struct zero_file {
    int fd;
};

static int zero_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map)
{
    struct zero_file *z = f->priv;
    int fd;

    if (!shared) {
        *ret_map = (struct file_map){.host_fd = -1, .anonymous = true};
        return 0;
    }
    if (!z) {
        z = NEW(struct zero_file);
        if (!z)
            return -ENOMEM;
        z->fd = -1;
        f->priv = z;
    }
    fd = host_memfd("zero", ZERO_SHARED_SIZE);
    if (fd < 0)
        return fd;
    if ((f->flags & O_ACCMODE) != O_RDWR) { /* mprotect may not make it writable */
        int ro = host_reopen(fd, O_RDONLY);
        host_close(fd);
        if (ro < 0)
            return ro;
        fd = ro;
    }
    host_close(z->fd);
    z->fd = fd;
    *ret_map = (struct file_map){.host_fd = fd};
    return 0;
}

static void zero_release(struct file *f)
{
    struct zero_file *z = f->priv;

    if (z)
        host_close(z->fd);
    mem_free(z);
}

static ssize_t full_write(struct file *f, struct uio *u, int64_t *pos)
{
    return -ENOSPC;
}

static ssize_t random_read(struct file *f, struct uio *u, int64_t *pos)
{
    char chunk[DEVMEM_RANDOM_CHUNK];
    uint64_t turn = 0;
    ssize_t total = 0;

    while (u->left > 0) {
        size_t size = MIN(u->left, (uint64_t)sizeof(chunk));
        ssize_t n;

        host_random(chunk, size);
        n = uio_put(u, chunk, size);
        if (n <= 0)
            return total ? total : n;
        total += n;
        turn += (uint64_t)n * 4;
        if (devmem_turn(u->ctx, &turn))
            break;
    }
    return total;
}

/* The host's generator needs nothing from guests: what they add is accepted and dropped, as mixing may do. */
static int64_t random_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    int bits = 256;

    switch (cmd) {
    case RNDGETENTCNT:
        return COPY_OUT(ctx, UADDR(arg), &bits);
    case RNDADDTOENTCNT:
    case RNDADDENTROPY:
    case RNDZAPENTCNT:
    case RNDCLEARPOOL:
    case RNDRESEEDCRNG:
        return -EPERM;
    default:
        return -ENOTTY;
    }
}

static const struct file_ops null_ops = {.read = null_read, .write = null_write, .llseek = null_llseek};
static const struct file_ops zero_ops = {
    .read = zero_read, .write = null_write, .llseek = null_llseek, .mmap = zero_mmap,
    .release = zero_release};
static const struct file_ops full_ops = {.read = zero_read, .write = full_write, .llseek = null_llseek};
static const struct file_ops random_ops = {
    .read = random_read, .write = null_write, .llseek = null_llseek, .ioctl = random_ioctl};

static int devmem_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    switch (minor(inode->rdev)) {
    case DEV_NULL:
        file->ops = &null_ops;
        return 0;
    case DEV_ZERO:
        file->ops = &zero_ops;
        return 0;
    case DEV_FULL:
        file->ops = &full_ops;
        return 0;
    case DEV_RANDOM:
    case DEV_URANDOM:
        file->ops = &random_ops;
        return 0;
    default:
        return -ENXIO;
    }
}

bool devmem_is_null(const struct file *f)
{
    return f->ops == &null_ops;
}

void devfs_register(void)
{
    chrdev_register(DEV_MEM_MAJOR, 0, 12, "mem", devmem_open);
}
