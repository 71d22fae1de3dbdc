/* SPDX-License-Identifier: Apache-2.0 */
/* NUMA calls on a machine of one node: policies are kept and told, pages are where they are. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/mempolicy.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/hostproc.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mempolicy.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

enum {
    NODES_MAX = 1024, /* as distributions build it: how far a mask is looked at for nodes */
    MASK_BITS_MAX = PAGE_SIZE * 8,
    MOVE_CHUNK = 256,
};

/* Reads a mask of maxnode − 1 bits. Bits beyond what a kernel can have must be zero, bits of nodes that are not there need not be.
 * Return: 0 with the first 64 and whether there are others, −EINVAL, −EFAULT. */
static int nodes_read(struct task *t, uaddr_t mask, uint64_t maxnode, uint64_t *ret_nodes, bool *ret_more)
{
    uint64_t bits = maxnode - 1;

    *ret_nodes = 0;
    *ret_more = false;
    if (bits == 0 || uaddr_is_null(mask))
        return 0;
    if (bits > MASK_BITS_MAX)
        return -EINVAL;
    for (uint64_t at = 0; at < bits; at += 64) {
        uint64_t word;
        if (COPY_IN(&t->ctx, &word, UADDR(mask.v + at / 8)))
            return -EFAULT;
        if (bits - at < 64)
            word &= (1ULL << (bits - at)) - 1;
        if (word && at >= NODES_MAX)
            return -EINVAL;
        if (at)
            *ret_more |= word != 0;
        else
            *ret_nodes = word;
    }
    return 0;
}

/* The kernel knows one node, and so writes one word; what the guest has room for beyond is cleared. */
static int nodes_write(struct task *t, uaddr_t mask, uint64_t maxnode, uint64_t nodes)
{
    uint64_t bytes = ALIGN_UP(maxnode - 1, 64UL) / 8, zero = 0;

    if (bytes > PAGE_SIZE)
        return -EINVAL;
    for (uint64_t at = sizeof(nodes); at < bytes; at += sizeof(zero)) {
        if (COPY_OUT(&t->ctx, UADDR(mask.v + at), &zero))
            return -EFAULT;
    }
    return bytes && COPY_OUT(&t->ctx, mask, &nodes) ? -EFAULT : 0;
}

static int policy_read(struct task *t, uint32_t mode, uaddr_t mask, uint64_t maxnode, struct mempolicy *ret)
{
    uint64_t nodes;
    bool more;
    int r = nodes_read(t, mask, maxnode, &nodes, &more);

    return r ? r : mempolicy_make(mode, nodes, more, ret);
}

int64_t sys_set_mempolicy(struct task *t, int32_t mode, uaddr_t nodemask, uint64_t maxnode)
{
    struct mempolicy p;
    int r = policy_read(t, (uint32_t)mode, nodemask, maxnode, &p);

    if (!r)
        t->mempolicy = p;
    return r;
}

/* Parks. Return: 0 when [start, end) is mapped without holes, or has anything in it where they may be; −EFAULT, −ESRCH, −ENOMEM. */
static int range_mapped(struct mm *mm, uint64_t start, uint64_t end, bool holes_allowed)
{
    CLEANUP_FREE struct mm_range *maps = NULL;
    unsigned len = 0;
    int r = mm_list_maps(mm, &maps, &len);

    for (unsigned i = 0; !r && i < len && start < end; i++) {
        if (holes_allowed && maps[i].start < end && maps[i].end > start)
            return 0;
        if (maps[i].start <= start && start < maps[i].end)
            start = maps[i].end;
    }
    return r ? r : start >= end ? 0 : -EFAULT;
}

int64_t sys_get_mempolicy(struct task *t, uaddr_t mode, uaddr_t nodemask, uint64_t maxnode, uaddr_t addr, uint64_t flags)
{
    struct mempolicy p = t->mempolicy;
    int32_t shown;
    uint8_t byte;
    int r;

    if (!uaddr_is_null(nodemask) && maxnode < 1)
        return -EINVAL;
    if (flags & ~(uint64_t)(MPOL_F_NODE | MPOL_F_ADDR | MPOL_F_MEMS_ALLOWED))
        return -EINVAL;
    if (flags & MPOL_F_MEMS_ALLOWED) {
        if (flags & (MPOL_F_NODE | MPOL_F_ADDR))
            return -EINVAL;
        p = (struct mempolicy){.nodes = 1};
        shown = 0;
    } else if (flags & MPOL_F_ADDR) {
        r = range_mapped(t->mm, addr.v & PAGE_MASK, (addr.v & PAGE_MASK) + PAGE_SIZE, false);
        if (r)
            return r;
        const struct mempolicy *of = mempolicy_find(&t->mm->policies, addr.v);
        /* The policy of the place alone: where it has none, the task's own is not shown. */
        p = of ? *of : (struct mempolicy){0};
        if ((flags & MPOL_F_NODE) && copy_in(&t->ctx, &byte, addr, 1))
            return -EFAULT;
        shown = flags & MPOL_F_NODE ? 0 : (int32_t)mempolicy_mode_shown(&p);
    } else {
        if (addr.v)
            return -EINVAL;
        if ((flags & MPOL_F_NODE) && p.mode != MPOL_INTERLEAVE && p.mode != MEMPOLICY_WEIGHTED_INTERLEAVE)
            return -EINVAL;
        shown = flags & MPOL_F_NODE ? 0 : (int32_t)mempolicy_mode_shown(&p);
    }
    if (!uaddr_is_null(mode) && COPY_OUT(&t->ctx, mode, &shown))
        return -EFAULT;
    return uaddr_is_null(nodemask) ? 0 : nodes_write(t, nodemask, maxnode, p.nodes);
}

int64_t sys_mbind(struct task *t, uaddr_t addr, uint64_t len, uint64_t mode, uaddr_t nodemask, uint64_t maxnode, uint32_t flags)
{
    struct mempolicy p;
    uint64_t size = ALIGN_UP(len, PAGE_SIZE), end;
    int r = policy_read(t, (uint32_t)mode, nodemask, maxnode, &p);

    if (r)
        return r;
    if (flags & ~(uint32_t)MPOL_MF_VALID)
        return -EINVAL;
    if ((flags & MPOL_MF_MOVE_ALL) && !cred_has_cap(t->ctx.cred, CAP_SYS_NICE))
        return -EPERM;
    if ((addr.v & ~PAGE_MASK) || size < len || __builtin_add_overflow(addr.v, size, &end))
        return -EINVAL;
    if (!size)
        return 0;
    r = range_mapped(t->mm, addr.v, end, p.mode == MPOL_DEFAULT);
    if (r)
        return r;
    return mempolicy_set_range(&t->mm->policies, addr.v, end, &p);
}

int64_t sys_set_mempolicy_home_node(struct task *t, uint64_t start, uint64_t len, uint64_t home_node, uint64_t flags)
{
    uint64_t size = ALIGN_UP(len, PAGE_SIZE), end;

    if ((start & ~PAGE_MASK) || flags || home_node != 0)
        return -EINVAL;
    if (size < len || __builtin_add_overflow(start, size, &end))
        return -EINVAL;
    if (!size)
        return 0;
    /* It is for policies of ranges that know a preference, which there must be one of; the one node is home anyway. */
    int r = -ENOENT;
    for (unsigned i = 0; i < t->mm->policies.len; i++) {
        const struct mempolicy_range *range = &t->mm->policies.at[i];
        if (range->start >= end || range->end <= start)
            continue;
        if (range->policy.mode != MPOL_BIND && range->policy.mode != MPOL_PREFERRED_MANY)
            return -EOPNOTSUPP;
        r = 0;
    }
    return r;
}

/* The address space of process pid, if t may look into it. Owns: the caller's reference. Return: 0, −ESRCH, −EPERM, −EINVAL (it has none). */
static int64_t mm_of(struct task *t, int32_t pid, struct mm **ret_mm)
{
    struct task *target = pid ? task_find(t->pidns, pid) : task_ref(t);
    int64_t r = 0;

    if (!target)
        return -ESRCH;
    if (ptrace_may_access(t, target, PTRACE_READ_REAL))
        r = -EPERM;
    else if (!target->mm)
        r = -EINVAL;
    else
        *ret_mm = mm_ref(target->mm);
    task_unref(target);
    return r;
}

int64_t sys_migrate_pages(struct task *t, int32_t pid, uint64_t maxnode, uaddr_t old, uaddr_t new)
{
    uint64_t from, to;
    bool more_from, more_to;
    struct mm *mm;
    int64_t r = nodes_read(t, old, maxnode, &from, &more_from);

    if (!r)
        r = nodes_read(t, new, maxnode, &to, &more_to);
    if (!r)
        r = mm_of(t, pid, &mm);
    if (r)
        return r;
    /* There is no other node to move to. */
    if ((more_to || (to & ~1ULL)) && !cred_has_cap(t->ctx.cred, CAP_SYS_NICE))
        r = -EPERM;
    else if (!(to & 1))
        r = -EINVAL;
    mm_unref(mm);
    return r;
}

static bool in_maps(const struct mm_range *maps, unsigned len, uint64_t addr)
{
    unsigned low = 0, high = len;

    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (addr >= maps[mid].end)
            low = mid + 1;
        else
            high = mid;
    }
    return low < len && addr >= maps[low].start;
}

/* The node of each page of a chunk, or why there is none. Parks. */
static int64_t pages_look(struct mm *mm, const struct mm_range *maps, unsigned maps_len, const uint64_t *pages, int32_t *ret_status,
                          unsigned len)
{
    CLEANUP_FREE uint64_t *entry = mem_zalloc(sizeof(*entry));

    if (!entry)
        return -ENOMEM;
    for (unsigned i = 0; i < len; i++) {
        if (!in_maps(maps, maps_len, pages[i])) {
            ret_status[i] = -EFAULT;
            continue;
        }
        *entry = 0;
        ssize_t n = hostproc_pread(mm->aspace->host_pid, "pagemap", entry, sizeof(*entry), pages[i] / PAGE_SIZE * 8);
        ret_status[i] = n == sizeof(*entry) && (*entry >> 63) ? 0 : -ENOENT;
    }
    return 0;
}

struct move_call {
    struct mm *mm;
    uaddr_t pages, nodes, status;
    const struct mm_range *maps;
    unsigned maps_len;
};

static int64_t move_chunk(struct task *t, const struct move_call *m, uint64_t done, unsigned len, uint64_t *pages, int32_t *nodes)
{
    int64_t r;

    if (copy_in(&t->ctx, pages, UADDR(m->pages.v + done * sizeof(*pages)), len * sizeof(*pages)))
        return -EFAULT;
    if (!uaddr_is_null(m->nodes)) {
        if (copy_in(&t->ctx, nodes, UADDR(m->nodes.v + done * sizeof(*nodes)), len * sizeof(*nodes)))
            return -EFAULT;
        for (unsigned i = 0; i < len; i++) {
            if (nodes[i] != 0)
                return -ENODEV;
        }
    }
    r = pages_look(m->mm, m->maps, m->maps_len, pages, nodes, len);
    if (!r && copy_out(&t->ctx, UADDR(m->status.v + done * sizeof(*nodes)), nodes, len * sizeof(*nodes)))
        r = -EFAULT;
    return r;
}

int64_t sys_move_pages(struct task *t, int32_t pid, uint64_t count, uaddr_t pages, uaddr_t nodes, uaddr_t status, int32_t flags)
{
    CLEANUP_FREE uint64_t *page = NULL;
    CLEANUP_FREE int32_t *node = NULL;
    CLEANUP_FREE struct mm_range *maps = NULL;
    struct move_call m = {.pages = pages, .nodes = nodes, .status = status};
    int64_t r;

    if (flags & ~(MPOL_MF_MOVE | MPOL_MF_MOVE_ALL))
        return -EINVAL;
    if ((flags & MPOL_MF_MOVE_ALL) && !cred_has_cap(t->ctx.cred, CAP_SYS_NICE))
        return -EPERM;
    r = mm_of(t, pid, &m.mm);
    if (r)
        return r;
    page = NEW_ARRAY(uint64_t, MOVE_CHUNK);
    node = NEW_ARRAY(int32_t, MOVE_CHUNK);
    r = page && node ? mm_list_maps(m.mm, &maps, &m.maps_len) : -ENOMEM;
    m.maps = maps;
    for (uint64_t done = 0; !r && done < count;) {
        unsigned len = (unsigned)MIN(count - done, (uint64_t)MOVE_CHUNK);
        r = t->ctx.fatal_pending ? -EINTR : move_chunk(t, &m, done, len, page, node);
        done += len;
    }
    mm_unref(m.mm);
    return r;
}
