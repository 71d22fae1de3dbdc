/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of pipes, sockets and epoll: a context whose "guest" addresses are the test's own, and reads and writes that
 * may park on a fiber. */
#pragma once

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "platform/platform.h"
#include "sentry/core/cred.h"
#include "sentry/core/fiber.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

static int fx_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size)
{
    if (src < PAGE_SIZE)
        return -EFAULT;
    memcpy(dst, (void *)(uintptr_t)src, size);
    return 0;
}

static int fx_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size)
{
    if (dst < PAGE_SIZE)
        return -EFAULT;
    memcpy((void *)(uintptr_t)dst, src, size);
    return 0;
}

static const struct platform_ops fx_ops = {.copy_in = fx_copy_in, .copy_out = fx_copy_out};
static struct platform fx_platform = {.ops = &fx_ops, .task_size = UINT64_MAX};
static struct plat_aspace fx_aspace = {.platform = &fx_platform};
static struct plat_thread fx_thread = {.aspace = &fx_aspace};
static struct cred *fx_cred;
static struct ctx fx_ctx = {.thread = &fx_thread};

static inline void fx_up(void)
{
    cr_assert_eq(cred_new_root(&fx_cred), 0);
    fx_ctx.cred = fx_cred;
}

static inline void fx_down(void)
{
    cred_unref(fx_cred);
}

/* One read or write, on the caller's stack: must not have to wait. */
static inline ssize_t fx_read(struct file *f, void *p, size_t size)
{
    struct uio u;
    uio_init_user(&u, &fx_ctx, UADDR((uintptr_t)p), size);
    return file_read(f, &u, &f->pos);
}

static inline ssize_t fx_write(struct file *f, const void *p, size_t size)
{
    struct uio u;
    uio_init_user(&u, &fx_ctx, UADDR((uintptr_t)p), size);
    return file_write(f, &u, &f->pos);
}

/* The same on a fiber of its own, with a context of its own: may park. ret is INT64_MIN until it is done. */
struct fx_io {
    struct ctx ctx;
    struct file *f;
    void *p;
    size_t size;
    bool write;
    int64_t ret;
};

static inline void fx_io_run(void *arg)
{
    struct fx_io *io = arg;
    struct uio u;
    uio_init_user(&u, &io->ctx, UADDR((uintptr_t)io->p), io->size);
    io->ret = io->write ? file_write(io->f, &u, &io->f->pos) : file_read(io->f, &u, &io->f->pos);
}

static inline void fx_start(struct fx_io *io, struct file *f, void *p, size_t size, bool write)
{
    *io = (struct fx_io){.ctx = {.thread = &fx_thread, .cred = fx_cred}, .f = f, .p = p, .size = size,
                         .write = write, .ret = INT64_MIN};
    cr_assert_eq(fiber_start(fx_io_run, io), 0);
    fiber_run_ready();
}
