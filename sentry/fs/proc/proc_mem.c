/* SPDX-License-Identifier: Apache-2.0 */
/* What the process directories show of a process's memory: arguments, environment, maps, and the memory itself. */
#include "sentry/fs/proc/proc_pid.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/platform.h"
#include "sentry/core/evloop.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/hostproc.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"

enum {
    PROC_MEM_CHUNK = 64 * 1024,
    PROC_ARGS_MAX = 2 << 20, /* bytes of arguments or environment shown */
};

/* ---- reading and writing another process's memory ---- */

struct mem_io {
    int host_pid;
    bool write;
    void *local;
    uint64_t remote;
    size_t size;
};

/* On the I/O pool: the call waits for the target's memory lock, which that process can hold for long. */
static long mem_io_fn(void *arg)
{
    struct mem_io *io = arg;
    struct iovec l = {io->local, io->size}, r = {(void *)(uintptr_t)io->remote, io->size};

    return io->write ? host_ret(process_vm_writev(io->host_pid, &l, 1, &r, 1, 0))
                     : host_ret(process_vm_readv(io->host_pid, &l, 1, &r, 1, 0));
}

/* Return: bytes moved (fewer than size before an unmapped page), −EFAULT, −ESRCH. */
static ssize_t mem_transfer(struct mm *mm, uint64_t addr, void *p, size_t size, bool write)
{
    struct plat_aspace *as = mm->aspace;
    struct mem_io io = {.write = write, .local = p, .remote = addr};
    ssize_t n;

    if (as->dead || as->host_pid <= 0)
        return -ESRCH;
    if (addr >= as->platform->task_size)
        return -EFAULT;
    io.host_pid = as->host_pid;
    io.size = MIN(size, as->platform->task_size - addr);
    n = hostio_run(mem_io_fn, &io);
    if (n != -EFAULT)
        return n;
    /* A page at a time, for it is the first one that is protected. */
    io.size = MIN(io.size, PAGE_SIZE - (addr & ~PAGE_MASK));
    n = hostproc_mem(io.host_pid, p, io.size, addr, write);
    return n < 0 && n != -ESRCH ? -EFAULT : n;
}

/* Appends [start, end) of mm as far as it can be read. */
static int mem_append(struct mm *mm, uint64_t start, uint64_t end, struct buf *out)
{
    CLEANUP_FREE char *chunk = NULL;
    size_t size = MIN(end - start, (uint64_t)PROC_MEM_CHUNK);

    if (start >= end)
        return 0;
    chunk = mem_zalloc(size);
    if (!chunk)
        return -ENOMEM;
    while (start < end) {
        ssize_t n = mem_transfer(mm, start, chunk, MIN(end - start, (uint64_t)size), false);

        if (n <= 0)
            break;
        buf_append(out, chunk, (size_t)n);
        start += (uint64_t)n;
    }
    return buf_error(out);
}

/* ---- arguments and environment ---- */

/* Programs that change their title write over the arguments and run on into the environment: then the title ends at its
 * first NUL. Source: proc(5), cmdline. */
static int append_cmdline(struct mm *mm, struct buf *out)
{
    uint64_t start = mm->arg_start, end = MIN(mm->arg_end, start + PROC_ARGS_MAX);
    size_t len;
    int r = mem_append(mm, start, end, out);

    if (r || out->size < end - start || out->size == 0 || out->data[out->size - 1] == '\0')
        return r;
    r = mem_append(mm, mm->env_start, MIN(mm->env_end, mm->env_start + PROC_ARGS_MAX), out);
    if (r)
        return r;
    len = strnlen(out->data, out->size);
    if (len < out->size)
        out->size = len + 1;
    return 0;
}

int proc_show_cmdline(struct proc_call *c, struct buf *out)
{
    struct mm *mm = c->task->mm;
    int r;

    if (!mm)
        return 0;
    mm_ref(mm);
    r = append_cmdline(mm, out);
    mm_unref(mm);
    return r;
}

int proc_show_environ(struct proc_call *c, struct buf *out)
{
    struct mm *mm = c->task->mm;
    int r;

    if (!mm)
        return 0;
    mm_ref(mm);
    r = mem_append(mm, mm->env_start, MIN(mm->env_end, mm->env_start + PROC_ARGS_MAX), out);
    mm_unref(mm);
    return r;
}

int proc_show_auxv(struct proc_call *c, struct buf *out)
{
    struct mm *mm = c->task->mm;

    if (mm)
        buf_append(out, mm->auxv, mm->auxv_len * sizeof(mm->auxv[0]));
    return buf_error(out);
}

/* ---- maps ---- */

static int show_maps_kind(struct proc_call *c, enum mm_maps_kind kind, struct buf *out)
{
    struct mm *mm = c->task->mm;
    int r;

    if (!mm)
        return 0;
    mm_ref(mm);
    r = mm_print_maps(c->ctx, mm, kind, proc_viewer_root(c), out);
    mm_unref(mm);
    return r;
}

int proc_show_maps(struct proc_call *c, struct buf *out)
{
    return show_maps_kind(c, MM_MAPS, out);
}

int proc_show_smaps(struct proc_call *c, struct buf *out)
{
    return show_maps_kind(c, MM_SMAPS, out);
}

int proc_show_smaps_rollup(struct proc_call *c, struct buf *out)
{
    return show_maps_kind(c, MM_SMAPS_ROLLUP, out);
}

/* ---- mem ---- */

static ssize_t mem_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct mm *mm = f->priv;
    size_t size = MIN(u->left, (uint64_t)PROC_MEM_CHUNK);
    CLEANUP_FREE char *chunk = mem_zalloc(MAX(size, (size_t)1));
    ssize_t total = 0;

    if (!chunk)
        return -ENOMEM;
    while (u->left > 0) {
        ssize_t n = mem_transfer(mm, (uint64_t)*pos, chunk, MIN(u->left, (uint64_t)size), false);

        if (n == -ESRCH) /* the memory is gone with its process: nothing to read */
            n = 0;
        if (n > 0)
            n = uio_put(u, chunk, (size_t)n);
        if (n <= 0)
            return total ? total : n == -EFAULT ? -EIO : n;
        total += n;
        *pos += n;
    }
    return total;
}

static ssize_t mem_write(struct file *f, struct uio *u, int64_t *pos)
{
    struct mm *mm = f->priv;
    size_t size = MIN(u->left, (uint64_t)PROC_MEM_CHUNK);
    CLEANUP_FREE char *chunk = mem_zalloc(MAX(size, (size_t)1));
    ssize_t total = 0;

    if (!chunk)
        return -ENOMEM;
    while (u->left > 0) {
        ssize_t got = uio_get(u, chunk, MIN(u->left, (uint64_t)size)), n;

        if (got <= 0)
            return total ? total : got;
        n = mem_transfer(mm, (uint64_t)*pos, chunk, (size_t)got, true);
        uio_revert(u, (uint64_t)(got - MAX(n, (ssize_t)0)));
        if (n <= 0)
            return total ? total : n == -EFAULT ? -EIO : n == -ESRCH ? 0 : n;
        total += n;
        *pos += n;
    }
    return total;
}

/* Addresses are offsets, so any may be sought, also those that look negative. */
static int64_t mem_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    if (whence != SEEK_SET && whence != SEEK_CUR)
        return -EINVAL;
    f->pos = whence == SEEK_SET ? offset : f->pos + offset;
    return f->pos;
}

static void mem_release(struct file *f)
{
    mm_unref(f->priv);
}

static const struct file_ops mem_file_ops = {
    .read = mem_read, .write = mem_write, .llseek = mem_llseek, .release = mem_release};

int proc_open_mem(struct proc_call *c, struct file *f)
{
    if (!c->task->mm)
        return -ESRCH;
    f->priv = mm_ref(c->task->mm);
    f->ops = &mem_file_ops;
    return 0;
}

/* ---- pagemap ---- */

/* Entries of 8 bytes a page. Frame numbers are zero, as for everybody without CAP_SYS_ADMIN; the stub's pages look absent. */
static ssize_t pagemap_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct mm *mm = f->priv;
    uint64_t end = mm_task_size(mm) / PAGE_SIZE * 8;
    size_t size = MIN(u->left, (uint64_t)PROC_MEM_CHUNK);
    CLEANUP_FREE char *chunk = NULL;
    ssize_t n;

    if (*pos % 8 || u->left % 8)
        return -EINVAL;
    if (size == 0 || (uint64_t)*pos >= end || mm->aspace->dead)
        return 0;
    chunk = mem_zalloc(size);
    if (!chunk)
        return -ENOMEM;
    n = hostproc_pread(mm->aspace->host_pid, "pagemap", chunk, MIN(size, end - (uint64_t)*pos), (uint64_t)*pos);
    if (n == -ESRCH)
        return 0;
    for (ssize_t i = 0; i < n; i += 8) {
        if ((uint64_t)(*pos + i) / 8 * PAGE_SIZE >= mm->aspace->mmap_top)
            memset(chunk + i, 0, 8);
    }
    if (n > 0)
        n = uio_put(u, chunk, (size_t)n);
    if (n > 0)
        *pos += n;
    return n;
}

static const struct file_ops pagemap_file_ops = {
    .read = pagemap_read, .llseek = mem_llseek, .release = mem_release};

int proc_open_pagemap(struct proc_call *c, struct file *f)
{
    if (!c->task->mm)
        return -ESRCH;
    f->priv = mm_ref(c->task->mm);
    f->ops = &pagemap_file_ops;
    return 0;
}
