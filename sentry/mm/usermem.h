/* SPDX-License-Identifier: Apache-2.0 */
/* Copying to and from guest memory, and the cursor that read/write paths use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"
#include "sentry/core/ctx.h"

/* Largest byte count of one read or write call, as Linux's MAX_RW_COUNT. */
#define UIO_MAX_BYTES 0x7ffff000UL
enum { UIO_IOV_MAX = 1024 };

/* Return: 0 or −EFAULT. size 0 is always fine. Addresses at or above the task size are −EFAULT.
 * May not park. Uses ctx->thread, which must be stopped (in its call). */
MUST_CHECK int copy_in(struct ctx *ctx, void *dst, uaddr_t src, size_t size);
MUST_CHECK int copy_out(struct ctx *ctx, uaddr_t dst, const void *src, size_t size);
MUST_CHECK int zero_out(struct ctx *ctx, uaddr_t dst, size_t size);
/* Copies a NUL-terminated string of at most size bytes with the NUL. Return: its length, −EFAULT, or
 * −ENAMETOOLONG when there is no NUL within size. */
MUST_CHECK ssize_t copy_in_str(struct ctx *ctx, char *dst, uaddr_t src, size_t size);
/* copy_in of a structure that may be longer or shorter than ours (openat2, clone3 …): missing bytes
 * are zero, a non-zero unknown tail is −E2BIG. */
MUST_CHECK int copy_in_struct(struct ctx *ctx, void *dst, size_t ksize, uaddr_t src, size_t usize);

#define COPY_IN(ctx, ptr, src) copy_in((ctx), (ptr), (src), sizeof(*(ptr)))
#define COPY_OUT(ctx, dst, ptr) copy_out((ctx), (dst), (ptr), sizeof(*(ptr)))

struct uio_seg {
    uint64_t base; /* guest address, or sentry pointer when uio.kernel */
    uint64_t size;
};

/* A cursor over the buffers of one read or write. */
struct uio {
    struct ctx *ctx;
    bool kernel;           /* segments are sentry memory, not guest memory */
    struct uio_seg *segs;  /* points at one, or at heap */
    unsigned len, index;   /* segments; the current one */
    uint64_t offset;       /* inside the current one */
    uint64_t left;         /* bytes to go */
    struct uio_seg one;    /* storage for the single-buffer case */
    struct uio_seg *heap;  /* owned array, or NULL */
};

void uio_init_user(struct uio *u, struct ctx *ctx, uaddr_t base, uint64_t size);
void uio_init_kernel(struct uio *u, void *p, size_t size);
/* Reads a guest iovec array. Return: 0, −EINVAL (bad count or length), −EFAULT, −ENOMEM. uio_free after. */
MUST_CHECK int uio_init_iovec(struct uio *u, struct ctx *ctx, uaddr_t iov, uint64_t iovcnt);
void uio_free(struct uio *u);
/* Moves up to size bytes from p into the buffers (a read call's data), advancing.
 * Return: bytes moved (short when the buffers are full), or −EFAULT when nothing could be stored. */
MUST_CHECK ssize_t uio_put(struct uio *u, const void *p, size_t size);
/* Moves up to size bytes out of the buffers (a write call's data) into p. Return: likewise. */
MUST_CHECK ssize_t uio_get(struct uio *u, void *p, size_t size);
/* Steps back over size bytes that were moved but not used / forward without copying. */
void uio_revert(struct uio *u, uint64_t size);
void uio_advance(struct uio *u, uint64_t size);
