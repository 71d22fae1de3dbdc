/* SPDX-License-Identifier: Apache-2.0 */
/* FPU state of a stopped tracee: it lies in the backend's frame in the tracee's memory, or is about to be loaded from or stored to a
 * signal frame. */
#include "sentry/kernel/ptrace_fpu.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/sigframe_x86_64.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

enum { XSAVE_HEADER = 512, XSAVE_HEADER_SIZE = 64, SW_OFFSET = 464, MXCSR = 24, MXCSR_MASK = 28, MAGIC2_SIZE = 4 };
enum { RED_ZONE = 128 };

static uint64_t image_size(const struct task *t)
{
    return t->group->container->platform->fpu_size;
}

uint64_t ptrace_xstate_size(const struct task *t)
{
    uint64_t size = image_size(t);

    return size > PTRACE_FXSAVE_SIZE + XSAVE_HEADER_SIZE ? size - MAGIC2_SIZE : 0;
}

/* The image that t goes on with, in the form of a signal frame's. */
static int load(struct task *t, uint8_t *image)
{
    uint64_t size = image_size(t);
    int r;

    sigframe_fpu_initial(image, size);
    if (t->resume_flags & PLAT_LOAD_FPU)
        return t->fpu_addr ? sigframe_fpu_read(t, image, t->fpu_addr, size) : 0;
    if (t->resume_flags & PLAT_SAVE_FPU)
        return 0;
    r = plat_thread_fpu(t->thread, image, size, false);
    return r == -ENODATA ? 0 : r;
}

static int store(struct task *t, uint8_t *image)
{
    CLEANUP_FREE uint8_t *live = NULL;
    uint64_t size = image_size(t);
    int r;

    if ((t->resume_flags & PLAT_LOAD_FPU) && t->fpu_addr)
        return copy_out(&t->ctx, UADDR(t->fpu_addr), image, size);
    if (t->resume_flags & PLAT_SAVE_FPU) {
        /* What a handler's frame is to keep goes there now. */
        live = mem_zalloc(size);
        r = live ? plat_thread_fpu(t->thread, live, size, false) : -ENOMEM;
        if (!r)
            r = copy_out(&t->ctx, UADDR(t->fpu_addr), live, size);
        if (r)
            return r;
        t->resume_flags &= ~(unsigned)PLAT_SAVE_FPU;
        t->fpu_addr = 0;
    }
    r = t->resume_flags & PLAT_LOAD_FPU ? -ENODATA : plat_thread_fpu(t->thread, image, size, true);
    if (r != -ENODATA)
        return r;
    /* A thread that has not had any: by way of its stack, below what it may use. */
    t->fpu_addr = ALIGN_DOWN(t->thread->regs.rsp - RED_ZONE - size, 64UL);
    t->resume_flags |= PLAT_LOAD_FPU;
    return copy_out(&t->ctx, UADDR(t->fpu_addr), image, size);
}

/* The bytes that FXSAVE leaves to software: the features instead of the frame's description. */
static void put_features(uint8_t *image)
{
    uint64_t features;

    memcpy(&features, image + SW_OFFSET + 8, sizeof(features));
    memset(image + SW_OFFSET, 0, PTRACE_FXSAVE_SIZE - SW_OFFSET);
    memcpy(image + SW_OFFSET, &features, sizeof(features));
}

int ptrace_fpu_get(struct task *t, void *p, uint64_t size)
{
    CLEANUP_FREE uint8_t *image = mem_zalloc(image_size(t));
    int r = image ? load(t, image) : -ENOMEM;

    if (r)
        return r == -ENOMEM ? r : -EIO;
    if (size > PTRACE_FXSAVE_SIZE)
        put_features(image);
    else
        memset(image + SW_OFFSET, 0, PTRACE_FXSAVE_SIZE - SW_OFFSET);
    memcpy(p, image, size);
    return 0;
}

int ptrace_fpu_set(struct task *t, const void *p, uint64_t size)
{
    CLEANUP_FREE uint8_t *image = mem_zalloc(image_size(t));
    int r = image ? load(t, image) : -ENOMEM;
    uint64_t features, wanted;
    uint32_t mxcsr, mask;

    if (r)
        return r == -ENOMEM ? r : -EIO;
    memcpy(&mxcsr, (const uint8_t *)p + MXCSR, sizeof(mxcsr));
    memcpy(&mask, image + MXCSR_MASK, sizeof(mask));
    memcpy(&features, image + SW_OFFSET + 8, sizeof(features));
    if (mxcsr & ~(mask ? mask : 0xffbf))
        return -EINVAL;
    if (size > PTRACE_FXSAVE_SIZE) {
        memcpy(&wanted, (const uint8_t *)p + XSAVE_HEADER, sizeof(wanted));
        if (wanted & ~features)
            return -EINVAL;
        memcpy(image + XSAVE_HEADER, (const uint8_t *)p + XSAVE_HEADER, size - XSAVE_HEADER);
        memset(image + XSAVE_HEADER + 8, 0, XSAVE_HEADER_SIZE - 8);
    } else if (ptrace_xstate_size(t)) {
        memcpy(&wanted, image + XSAVE_HEADER, sizeof(wanted));
        wanted |= 3; /* x87 and SSE are what it brings */
        memcpy(image + XSAVE_HEADER, &wanted, sizeof(wanted));
    }
    memcpy(image, p, SW_OFFSET);
    memcpy(image + MXCSR_MASK, &mask, sizeof(mask));
    r = store(t, image);
    return r && r != -ENOMEM ? -EIO : r;
}
