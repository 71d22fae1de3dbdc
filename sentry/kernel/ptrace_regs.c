/* SPDX-License-Identifier: Apache-2.0 */
/* General registers of a stopped tracee, and the trap flag that single steps are made of. */
#include "sentry/kernel/ptrace.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sentry/kernel/ptrace_debug.h"
#include "sentry/kernel/ptrace_priv.h"

#define RFLAGS_TF 0x100ULL
/* Carry, parity, adjust, zero, sign, trap, direction, overflow, nested task, resume, alignment check. */
#define RFLAGS_TRACER 0x54dd5ULL

enum { REG_WORDS = sizeof(struct regs) / 8 };
#define REG(field) (offsetof(struct regs, field) / 8)

/* struct regs is the beginning of struct user_regs_struct; ds, es, fs and gs follow. */
_Static_assert(REG_WORDS + 4 == PTRACE_USER_REGS, "words of struct user_regs_struct");

void ptrace_get_regs(const struct task *t, uint64_t ret_words[PTRACE_USER_REGS])
{
    const struct ptrace_state *p = t->ptrace;

    memset(ret_words, 0, PTRACE_USER_REGS * 8);
    memcpy(ret_words, &t->thread->regs, sizeof(struct regs));
    if (p && p->forced_tf)
        ret_words[REG(rflags)] &= ~RFLAGS_TF;
}

int ptrace_set_reg(struct task *t, unsigned index, uint64_t value)
{
    struct regs *regs = &t->thread->regs;
    uint64_t *word = (uint64_t *)regs + index, task_size = t->thread->aspace->platform->task_size;
    struct ptrace_state *p = t->ptrace;

    if (index >= REG_WORDS || index == REG(cs) || index == REG(ss)) {
        /* Selectors: of the user's level, and null only where the CPU allows it. They are fixed here. */
        value &= 0xffff;
        if (value ? (value & 3) != 3 : index < REG_WORDS)
            return -EIO;
        return 0;
    }
    if (index == REG(fs_base) || index == REG(gs_base)) {
        if (value >= task_size)
            return -EIO;
        t->resume_flags |= index == REG(fs_base) ? PLAT_SET_FS : PLAT_SET_GS;
    }
    if (index == REG(rflags)) {
        value = (value & RFLAGS_TRACER) | (*word & ~RFLAGS_TRACER);
        p->forced_tf = false;
    }
    if (*word != value || index == REG(rflags))
        t->resume_flags |= PLAT_SET_REGS;
    *word = value;
    return 0;
}

void ptrace_arm_step(struct task *t)
{
    struct ptrace_state *p = ptrace_of(t);
    struct regs *regs = &t->thread->regs;

    if (!p || (p->how != PTRACE_HOW_STEP && p->how != PTRACE_HOW_SYSEMU_STEP && !ptrace_is_watching(p)))
        return;
    if (ptrace_is_watching(p))
        ptrace_debug_refresh(t);
    if (regs->rflags & RFLAGS_TF)
        return;
    p->forced_tf = true;
    regs->rflags |= RFLAGS_TF;
    t->resume_flags |= PLAT_SET_REGS;
}

void ptrace_disarm_step(struct task *t)
{
    struct ptrace_state *p = t->ptrace;

    if (!p || !p->forced_tf || !t->thread)
        return;
    p->forced_tf = false;
    t->thread->regs.rflags &= ~RFLAGS_TF;
    t->resume_flags |= PLAT_SET_REGS;
}
