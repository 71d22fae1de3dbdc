/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to and from guest memory on top of the platform's, and the read/write cursor. */
#include "sentry/mm/usermem.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"

enum { STRUCT_SIZE_MAX = 4096 }; /* as Linux: a page bounds every extensible structure */

/* The range is inside what guests may use. Nothing else is known about it yet. */
static bool range_ok(const struct ctx *ctx, uint64_t addr, uint64_t size)
{
    uint64_t end;

    if (!ctx->thread || __builtin_add_overflow(addr, size, &end))
        return false;
    return end <= ctx->thread->aspace->platform->task_size;
}

int copy_in(struct ctx *ctx, void *dst, uaddr_t src, size_t size)
{
    if (!size)
        return 0;
    return range_ok(ctx, src.v, size) ? plat_copy_in(ctx->thread, dst, src.v, size) : -EFAULT;
}

int copy_out(struct ctx *ctx, uaddr_t dst, const void *src, size_t size)
{
    if (!size)
        return 0;
    return range_ok(ctx, dst.v, size) ? plat_copy_out(ctx->thread, dst.v, src, size) : -EFAULT;
}

int zero_out(struct ctx *ctx, uaddr_t dst, size_t size)
{
    static const char zeros[PAGE_SIZE];

    while (size) {
        size_t n = MIN(size, sizeof(zeros));
        int r = copy_out(ctx, dst, zeros, n);

        if (r)
            return r;
        dst = uaddr_add(dst, n);
        size -= n;
    }
    return 0;
}

ssize_t copy_in_str(struct ctx *ctx, char *dst, uaddr_t src, size_t size)
{
    size_t done = 0;

    while (done < size) {
        uint64_t at = src.v + done;
        /* Never past the page that is known to be needed: the next one may not exist. */
        size_t n = MIN(size - done, PAGE_SIZE - (at & ~PAGE_MASK));
        const struct platform_ops *ops;
        const char *nul;
        int64_t r = 0;

        if (!range_ok(ctx, at, n))
            return -EFAULT;
        ops = ctx->thread->aspace->platform->ops;
        if (ops->copy_in_some)
            r = ops->copy_in_some(ctx->thread, dst + done, at, n);
        if (r < 0 || r > (int64_t)n)
            return -EFAULT;
        if (r)
            n = (size_t)r;
        else if (plat_copy_in(ctx->thread, dst + done, at, n))
            return -EFAULT;
        nul = memchr(dst + done, 0, n);
        if (nul)
            return nul - dst;
        done += n;
    }
    return -ENAMETOOLONG;
}

int copy_in_struct(struct ctx *ctx, void *dst, size_t ksize, uaddr_t src, size_t usize)
{
    char tail[64];
    int r;

    if (usize > STRUCT_SIZE_MAX)
        return -E2BIG;
    for (size_t at = ksize; at < usize; at += sizeof(tail)) {
        size_t n = MIN(usize - at, sizeof(tail));

        r = copy_in(ctx, tail, uaddr_add(src, at), n);
        if (r)
            return r;
        for (size_t i = 0; i < n; i++) {
            if (tail[i])
                return -E2BIG;
        }
    }
    r = copy_in(ctx, dst, src, MIN(ksize, usize));
    if (!r && usize < ksize)
        memset((char *)dst + usize, 0, ksize - usize);
    return r;
}

void uio_init_user(struct uio *u, struct ctx *ctx, uaddr_t base, uint64_t size)
{
    *u = (struct uio){.ctx = ctx, .len = 1, .one = {base.v, MIN(size, UIO_MAX_BYTES)}};
    u->segs = &u->one;
    u->left = u->one.size;
}

void uio_init_kernel(struct uio *u, void *p, size_t size)
{
    *u = (struct uio){.kernel = true, .len = 1, .one = {(uint64_t)(uintptr_t)p, size}, .left = size};
    u->segs = &u->one;
}

int uio_init_iovec(struct uio *u, struct ctx *ctx, uaddr_t iov, uint64_t iovcnt)
{
    int r;

    /* struct uio_seg has the layout of the guest's struct iovec. */
    _Static_assert(sizeof(struct uio_seg) == 16, "iovec");
    if (iovcnt > UIO_IOV_MAX)
        return -EINVAL;
    *u = (struct uio){.ctx = ctx, .len = (unsigned)iovcnt};
    u->segs = &u->one;
    if (iovcnt > 1) {
        u->heap = NEW_ARRAY(struct uio_seg, iovcnt);
        if (!u->heap)
            return -ENOMEM;
        u->segs = u->heap;
    }
    r = copy_in(ctx, u->segs, iov, iovcnt * sizeof(struct uio_seg));
    for (unsigned i = 0; i < iovcnt && !r; i++) {
        if ((int64_t)u->segs[i].size < 0)
            r = -EINVAL;
        else if (!range_ok(ctx, u->segs[i].base, u->segs[i].size))
            r = -EFAULT;
        else
            u->segs[i].size = MIN(u->segs[i].size, UIO_MAX_BYTES - u->left);
        u->left += r ? 0 : u->segs[i].size;
    }
    if (r)
        uio_free(u);
    return r;
}

void uio_free(struct uio *u)
{
    mem_free(u->heap);
    u->heap = NULL;
    u->segs = &u->one;
    u->len = 0;
    u->left = 0;
}

/* Copies between p and guest memory. Return: bytes that could be copied: all, or up to the first bad page. */
static size_t user_move(struct ctx *ctx, uint64_t addr, char *p, size_t size, bool put)
{
    size_t done = 0;

    if (!(put ? copy_out(ctx, UADDR(addr), p, size) : copy_in(ctx, p, UADDR(addr), size)))
        return size;
    while (done < size) {
        uint64_t at = addr + done;
        size_t n = MIN(size - done, PAGE_SIZE - (at & ~PAGE_MASK));

        if (n == size ||
            (put ? copy_out(ctx, UADDR(at), p + done, n) : copy_in(ctx, p + done, UADDR(at), n)))
            break;
        done += n;
    }
    return done;
}

static ssize_t uio_move(struct uio *u, char *p, size_t size, bool put)
{
    size_t done = 0;

    size = MIN(size, u->left);
    while (done < size) {
        const struct uio_seg *seg = &u->segs[u->index];
        size_t n = MIN(size - done, seg->size - u->offset), moved = n;
        void *host = (void *)(uintptr_t)(seg->base + u->offset);

        if (!n) {
            u->index++;
            u->offset = 0;
            continue;
        }
        if (!u->kernel)
            moved = user_move(u->ctx, seg->base + u->offset, p + done, n, put);
        else if (put)
            memcpy(host, p + done, n);
        else
            memcpy(p + done, host, n);
        done += moved;
        u->offset += moved;
        u->left -= moved;
        if (moved < n)
            return done ? (ssize_t)done : -EFAULT;
    }
    return (ssize_t)done;
}

ssize_t uio_put(struct uio *u, const void *p, size_t size)
{
    return uio_move(u, (char *)p, size, true);
}

ssize_t uio_get(struct uio *u, void *p, size_t size)
{
    return uio_move(u, p, size, false);
}

void uio_revert(struct uio *u, uint64_t size)
{
    u->left += size;
    while (size > u->offset) {
        BUG_ON(!u->index);
        size -= u->offset;
        u->offset = u->segs[--u->index].size;
    }
    u->offset -= size;
}

void uio_advance(struct uio *u, uint64_t size)
{
    size = MIN(size, u->left);
    u->left -= size;
    while (size) {
        uint64_t n = MIN(size, u->segs[u->index].size - u->offset);

        u->offset += n;
        size -= n;
        if (size) {
            u->index++;
            u->offset = 0;
        }
    }
}
