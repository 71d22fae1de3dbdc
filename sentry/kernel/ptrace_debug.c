/* SPDX-License-Identifier: Apache-2.0 */
/* Debug registers of tracees. Nobody else's breakpoints can be had from the host, so a tracee that has any on is stepped, and after each
 * instruction the watched memory is compared. That sees changes and execution; what would take the CPU, reads, is refused. */
#include "sentry/kernel/ptrace_debug.h"

#include <errno.h>
#include <string.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace_priv.h"

enum { DR_RW_EXEC, DR_RW_WRITE };
#define DR6_FIXED 0xffff0ff0ULL
#define DR6_STEP 0x4000ULL
#define DR7_FIXED 0x400ULL
#define DR7_ENABLED 0xffULL

bool ptrace_is_watching(const struct ptrace_state *p)
{
    return p->debug[7] & DR7_ENABLED;
}

static bool is_on(uint64_t dr7, unsigned i)
{
    return dr7 >> (2 * i) & 3;
}

static unsigned kind_of(uint64_t dr7, unsigned i)
{
    return dr7 >> (16 + 4 * i) & 3;
}

static unsigned size_of(uint64_t dr7, unsigned i)
{
    static const unsigned sizes[] = {1, 2, 8, 4};

    return sizes[dr7 >> (18 + 4 * i) & 3];
}

/* Return: 0, or −EINVAL for a register that can't be watched so. */
static int check(const struct task *t, uint64_t dr7, unsigned i, uint64_t addr)
{
    unsigned kind = kind_of(dr7, i), size = size_of(dr7, i);

    if (addr >= t->group->container->platform->task_size)
        return -EINVAL;
    if (!is_on(dr7, i))
        return 0;
    if (kind > DR_RW_WRITE || (kind == DR_RW_EXEC && size != 1) || (addr & (size - 1)))
        return -EINVAL;
    return 0;
}

uint64_t ptrace_get_debug(const struct task *t, unsigned n)
{
    const struct ptrace_state *p = t->ptrace;

    if (n == 4 || n == 5)
        return 0;
    return n == 6 ? p->debug[6] ^ DR6_FIXED : p->debug[n];
}

int ptrace_set_debug(struct task *t, unsigned n, uint64_t value)
{
    struct ptrace_state *p = t->ptrace;

    if (n == 4 || n == 5)
        return -EIO;
    if (n == 6)
        value ^= DR6_FIXED;
    for (unsigned i = 0; n == 7 && i < PT_DEBUG_ADDRS; i++) {
        if (check(t, value, i, p->debug[i]))
            return -EINVAL;
    }
    if (n < PT_DEBUG_ADDRS && check(t, p->debug[7], n, value))
        return -EINVAL;
    p->debug[n] = value;
    return 0;
}

static uint64_t look(struct task *t, unsigned i)
{
    uint64_t value = 0;

    (void)!plat_copy_in(t->thread, &value, t->ptrace->debug[i], size_of(t->ptrace->debug[7], i));
    return value;
}

void ptrace_debug_refresh(struct task *t)
{
    struct ptrace_state *p = t->ptrace;

    for (unsigned i = 0; i < PT_DEBUG_ADDRS; i++) {
        if (is_on(p->debug[7], i) && kind_of(p->debug[7], i) == DR_RW_WRITE)
            p->debug_seen[i] = look(t, i);
    }
}

/* Return: mask of the registers that have been hit. */
static unsigned hits(struct task *t)
{
    struct ptrace_state *p = t->ptrace;
    unsigned mask = 0;

    for (unsigned i = 0; i < PT_DEBUG_ADDRS; i++) {
        uint64_t now;

        if (!is_on(p->debug[7], i))
            continue;
        if (kind_of(p->debug[7], i) == DR_RW_EXEC) {
            mask |= t->thread->regs.rip == p->debug[i] ? 1U << i : 0;
            continue;
        }
        now = look(t, i);
        mask |= now != p->debug_seen[i] ? 1U << i : 0;
        p->debug_seen[i] = now;
    }
    return mask;
}

bool ptrace_debug_trap(struct task *t, int *code)
{
    struct ptrace_state *p = ptrace_of(t);
    bool stepped;
    unsigned mask;

    if (!p || !p->forced_tf)
        return true;
    stepped = p->how == PTRACE_HOW_STEP || p->how == PTRACE_HOW_SYSEMU_STEP;
    mask = ptrace_is_watching(p) ? hits(t) : 0;
    p->debug[6] = mask | (stepped ? DR6_STEP : 0);
    if (mask)
        *code = TRAP_HWBKPT;
    return mask || stepped;
}
