/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory: through the mailbox where the stub has marshalled the range, else by process_vm_readv and _writev.
 *
 * The mailbox's descriptors are copied and bounded once a call; its data is copied once, when it is asked for. What is
 * copied out to a range that the stub found writable waits in the mailbox until the thread is answered. */
#include "platform/base/log.h"
#include "platform/seccomp/seccomp_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static uint8_t *guestmem_data(const struct scp_thread *t)
{
    return (uint8_t *)t->mbox + (STUB_MBOX_SIZE - STUB_MBOX_DATA_SIZE);
}

void scp_guestmem_reset(struct scp_thread *t)
{
    t->in_len = t->probe_len = t->out_len = 0;
}

void scp_guestmem_import(struct scp_thread *t)
{
    const volatile struct stub_mailbox *m = t->mbox;
    scp_guestmem_reset(t);
    unsigned in_len = m->in_len, probe_len = m->probe_len;
    uint32_t used = m->data_used;
    t->data_used = used <= STUB_MBOX_DATA_SIZE ? used : STUB_MBOX_DATA_SIZE;
    for (unsigned i = 0; i < in_len && i < STUB_IN_MAX; i++) {
        struct stub_range r = {m->in[i].addr, m->in[i].size, m->in[i].off};
        if (r.addr + r.size >= r.addr && r.off <= STUB_MBOX_DATA_SIZE && r.size <= STUB_MBOX_DATA_SIZE - r.off)
            t->in[t->in_len++] = r;
    }
    for (unsigned i = 0; i < probe_len && i < STUB_PROBE_MAX; i++) {
        struct stub_range r = {m->probe[i].addr, m->probe[i].size, 0};
        if (r.addr + r.size >= r.addr)
            t->probe[t->probe_len++] = r;
    }
}

static int guestmem_host(struct plat_thread *base, void *local, uint64_t remote, uint64_t size, bool out)
{
    if (base->aspace->dead)
        return -EFAULT;
    uint64_t top = base->aspace->platform->task_size;
    if (remote > top || size > top - remote)
        return -EFAULT;
    struct iovec l = {local, size}, r = {(void *)remote, size};
    long n = out ? syscall(SYS_process_vm_writev, base->aspace->host_pid, &l, 1, &r, 1, 0)
                 : syscall(SYS_process_vm_readv, base->aspace->host_pid, &l, 1, &r, 1, 0);
    if (n < 0 && errno == ESRCH) {
        /* It is dying, and its end will be told; or it has let its leader go, which the stub never does. */
        base->aspace->dead = true;
        scp_aspace_signal(scp_aspace_of(base->aspace));
    }
    return n == (long)size ? 0 : -EFAULT;
}

/* Where [addr, addr+size) meets what waits in the mailbox as out[i]. Return: bytes in common. */
static uint64_t guestmem_meet(const struct scp_thread *t, unsigned i, uint64_t addr, uint64_t size,
                              uint8_t **ret_waiting, uint64_t *ret_offset)
{
    const struct stub_range *o = &t->out[i];
    uint64_t start = MAX(o->addr, addr), end = MIN(o->addr + o->size, addr + size);
    if (start >= end)
        return 0;
    *ret_waiting = guestmem_data(t) + o->off + (start - o->addr);
    *ret_offset = start - addr;
    return end - start;
}

/* Puts what waits in the mailbox for [src, src+size) over what the host has read there. */
static void guestmem_overlay(const struct scp_thread *t, uint8_t *dst, uint64_t src, uint64_t size)
{
    uint8_t *waiting;
    uint64_t offset, n;
    for (unsigned i = 0; i < t->out_len; i++)
        if ((n = guestmem_meet(t, i, src, size, &waiting, &offset)))
            memcpy(dst + offset, waiting, n);
}

static const struct stub_range *guestmem_find(const struct stub_range *ranges, unsigned len, uint64_t addr,
                                              uint64_t size)
{
    for (unsigned i = 0; i < len; i++)
        if (addr >= ranges[i].addr && addr - ranges[i].addr < ranges[i].size &&
            size <= ranges[i].size - (addr - ranges[i].addr))
            return &ranges[i];
    return NULL;
}

int scp_copy_in(struct plat_thread *base, void *dst, uint64_t src, uint64_t size)
{
    struct scp_thread *t = scp_thread_of(base);
    if (!size)
        return 0;
    const struct stub_range *r = guestmem_find(t->in, t->in_len, src, size);
    if (r) {
        memcpy(dst, guestmem_data(t) + r->off + (src - r->addr), size);
    } else {
        int err = guestmem_host(base, dst, src, size, false);
        if (err)
            return err;
    }
    if (t->out_len)
        guestmem_overlay(t, dst, src, size);
    return 0;
}

int64_t scp_copy_in_some(struct plat_thread *base, void *dst, uint64_t src, uint64_t size)
{
    struct scp_thread *t = scp_thread_of(base);
    const struct stub_range *r = guestmem_find(t->in, t->in_len, src, 1);
    if (!r || t->out_len)
        return 0;
    uint64_t n = MIN(size, r->size - (src - r->addr));
    memcpy(dst, guestmem_data(t) + r->off + (src - r->addr), n);
    return (int64_t)n;
}

int scp_copy_out(struct plat_thread *base, uint64_t dst, const void *src, uint64_t size)
{
    struct scp_thread *t = scp_thread_of(base);
    if (!size)
        return 0;
    if (t->out_len < STUB_OUT_MAX && size <= STUB_MBOX_DATA_SIZE - t->data_used &&
        guestmem_find(t->probe, t->probe_len, dst, size)) {
        volatile struct stub_mailbox *m = t->mbox;
        struct stub_range *o = &t->out[t->out_len];
        m->out[t->out_len].addr = o->addr = dst;
        m->out[t->out_len].size = o->size = (uint32_t)size;
        m->out[t->out_len].off = o->off = t->data_used;
        memcpy(guestmem_data(t) + t->data_used, src, size);
        t->data_used += (uint32_t)ALIGN_UP(size, 8UL);
        if (t->data_used > STUB_MBOX_DATA_SIZE)
            t->data_used = STUB_MBOX_DATA_SIZE;
        m->out_len = ++t->out_len;
        return 0;
    }
    /* Out of order with what waits, should they overlap: then the newer one must win. */
    int err = guestmem_host(base, (void *)src, dst, size, true);
    uint8_t *waiting;
    uint64_t offset, n;
    for (unsigned i = 0; !err && i < t->out_len; i++)
        if ((n = guestmem_meet(t, i, dst, size, &waiting, &offset)))
            memcpy(waiting, (const uint8_t *)src + offset, n);
    return err;
}

int scp_sync(struct plat_thread *base)
{
    struct scp_thread *t = scp_thread_of(base);
    int err = 0;
    for (unsigned i = 0; i < t->out_len; i++)
        if (guestmem_host(base, guestmem_data(t) + t->out[i].off, t->out[i].addr, t->out[i].size, true))
            err = -EFAULT;
    t->mbox->out_len = 0;
    scp_guestmem_reset(t);
    return err;
}

int scp_fpu(struct plat_thread *base, void *p, uint64_t size, bool write)
{
    const struct scp_thread *t = scp_thread_of(base);
    uint64_t stack = scp_of(base->aspace->platform)->zone + STUB_SLOTS_OFF + t->slot * STUB_SLOT_SIZE + STUB_STACK_OFF;
    if (!t->fpu_at)
        return -ENODATA;
    /* The address is the guest's word: nothing but its own slot. */
    if (t->fpu_at < stack || t->fpu_at - stack > STUB_STACK_SIZE || size > STUB_STACK_SIZE - (t->fpu_at - stack) ||
        base->aspace->dead)
        return -EFAULT;
    struct iovec l = {p, size}, r = {(void *)t->fpu_at, size};
    long n = write ? syscall(SYS_process_vm_writev, base->aspace->host_pid, &l, 1, &r, 1, 0)
                   : syscall(SYS_process_vm_readv, base->aspace->host_pid, &l, 1, &r, 1, 0);
    return n == (long)size ? 0 : -EFAULT;
}

void scp_aspace_set_limit(struct plat_aspace *as, uint64_t bytes)
{
    /* The host counts what hides the top of the address space, and the stub's own mappings below it, as well. */
    uint64_t own = STUB_ADDRESS_TOP - as->mmap_top;
    struct rlimit now, limit;
    if (as->dead || prlimit(as->host_pid, RLIMIT_AS, NULL, &now) < 0)
        return;
    limit.rlim_max = now.rlim_max;
    limit.rlim_cur = bytes > RLIM_INFINITY - own ? RLIM_INFINITY : bytes + own;
    limit.rlim_cur = MIN(limit.rlim_cur, limit.rlim_max);
    if (limit.rlim_cur != now.rlim_cur && prlimit(as->host_pid, RLIMIT_AS, &limit, NULL) < 0)
        log_debug("seccomp: the host refuses the size limit of an address space");
}
