/* SPDX-License-Identifier: Apache-2.0 */
/* Signal frames for x86-64. The FPU image is stored and loaded by the platform when the thread resumes; what
 * happens to it in between (two frames at once, a frame right after rt_sigreturn) is done here. */
#include "sentry/kernel/sigframe_x86_64.h"

#include <cpuid.h>
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"

struct sigcontext_k {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
    uint16_t cs, gs, fs, ss;
    uint64_t err, trapno, oldmask, cr2, fpstate;
    uint64_t reserved[8];
};

struct ucontext_k {
    uint64_t flags, link;
    struct sigaltstack_k stack;
    struct sigcontext_k mcontext;
    sigset_k sigmask;
};

struct sigframe_k {
    uint64_t pretcode;
    struct ucontext_k uc;
    siginfo_t info;
};

_Static_assert(sizeof(struct sigcontext_k) == 256, "layout of struct sigcontext");
_Static_assert(sizeof(struct ucontext_k) == 304, "layout of struct ucontext");
_Static_assert(sizeof(struct sigframe_k) == 440, "layout of struct rt_sigframe");

enum {
    UC_FP_XSTATE_K = 1,
    UC_SIGCONTEXT_SS_K = 2,
    UC_STRICT_RESTORE_SS_K = 4,
    REDZONE = 128,
    USER_CS = 0x33,
    USER_DS = 0x2b,
    FPU_LEGACY = 512,
    FPU_SW_OFFSET = 464, /* software-reserved bytes of the legacy area */
    FPU_MAX = 64 * 1024,
};

#define SS_AUTODISARM_K (1U << 31)
#define FP_XSTATE_MAGIC1_K 0x46505853U
#define FP_XSTATE_MAGIC2_K 0x46505845U

/* Flags that a guest may set: carry, parity, adjust, zero, sign, trap, direction, overflow, resume, alignment check. */
#define RFLAGS_USER 0x50dd5ULL
#define RFLAGS_FIXED 0x202ULL /* interrupts on, the bit that is always one */
#define RFLAGS_TF 0x100ULL
#define RFLAGS_DF 0x400ULL
#define RFLAGS_RF 0x10000ULL

struct fpu_sw {
    uint32_t magic1, extended_size;
    uint64_t xfeatures;
    uint32_t xstate_size, pad[7];
};
_Static_assert(FPU_SW_OFFSET + sizeof(struct fpu_sw) == FPU_LEGACY, "software-reserved bytes");

static bool on_altstack(const struct sigaltstack_k *s, uint64_t sp)
{
    if ((uint32_t)s->flags & SS_AUTODISARM_K)
        return false;
    return s->size && sp > s->sp && sp - s->sp <= s->size;
}

struct sigaltstack_k sigaltstack_get(const struct task *t, uint64_t sp)
{
    struct sigaltstack_k s = t->altstack;
    uint32_t flags = (uint32_t)s.flags & SS_AUTODISARM_K;

    if (!s.size)
        flags |= SS_DISABLE;
    else if (on_altstack(&t->altstack, sp))
        flags |= SS_ONSTACK;
    s.flags = (int32_t)flags;
    s.pad = 0;
    return s;
}

void sigaltstack_reset(struct task *t)
{
    memset(&t->altstack, 0, sizeof(t->altstack));
    t->altstack.flags = SS_DISABLE;
}

int sigaltstack_set(struct task *t, const struct sigaltstack_k *act, uint64_t sp, uint64_t min_size)
{
    uint32_t mode = (uint32_t)act->flags & ~SS_AUTODISARM_K;

    if (on_altstack(&t->altstack, sp))
        return -EPERM;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
        return -EINVAL;
    if (mode == SS_DISABLE) {
        sigaltstack_reset(t);
        t->altstack.flags = act->flags;
        return 0;
    }
    if (act->size < min_size)
        return -ENOMEM;
    t->altstack = *act;
    t->altstack.pad = 0;
    return 0;
}

static uint64_t xfeatures(void)
{
    unsigned a, b, c, d;
    uint32_t low, high;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return 3;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

void sigframe_fpu_initial(uint8_t *p, uint64_t size)
{
    struct fpu_sw sw = {0};
    uint32_t magic2 = FP_XSTATE_MAGIC2_K, mxcsr = 0x1f80, mask = 0xffff;
    uint16_t fcw = 0x37f;

    memset(p, 0, size);
    memcpy(p, &fcw, sizeof(fcw));
    memcpy(p + 24, &mxcsr, sizeof(mxcsr));
    memcpy(p + 28, &mask, sizeof(mask));
    if (size > FPU_LEGACY + 64 + sizeof(magic2)) {
        sw.magic1 = FP_XSTATE_MAGIC1_K;
        sw.extended_size = (uint32_t)size;
        sw.xfeatures = xfeatures();
        sw.xstate_size = (uint32_t)(size - sizeof(magic2));
        memcpy(p + FPU_SW_OFFSET, &sw, sizeof(sw));
        memcpy(p + size - sizeof(magic2), &magic2, sizeof(magic2));
    }
}

/* Stores the image of a freshly started program's FPU. */
static int fpu_write_initial(struct task *t, uint64_t to, uint64_t size)
{
    CLEANUP_FREE uint8_t *p = NULL;

    if (size < FPU_LEGACY || size > FPU_MAX)
        return -EFAULT;
    p = mem_zalloc(size);
    if (!p)
        return -EFAULT;
    sigframe_fpu_initial(p, size);
    return copy_out(&t->ctx, UADDR(to), p, size);
}

int sigframe_fpu_read(struct task *t, uint8_t *p, uint64_t from, uint64_t size)
{
    struct fpu_sw sw;

    if (copy_in(&t->ctx, p, UADDR(from), FPU_LEGACY))
        return -EFAULT;
    memcpy(&sw, p + FPU_SW_OFFSET, sizeof(sw));
    if (sw.magic1 == FP_XSTATE_MAGIC1_K && sw.extended_size > FPU_LEGACY && sw.extended_size <= size)
        return copy_in(&t->ctx, p + FPU_LEGACY, UADDR(from + FPU_LEGACY), sw.extended_size - FPU_LEGACY);
    memset(p + FPU_SW_OFFSET, 0, sizeof(sw));
    return 0;
}

/* Moves the image that was to be loaded from one frame into the next one. */
static int fpu_copy(struct task *t, uint64_t to, uint64_t from, uint64_t size)
{
    CLEANUP_FREE uint8_t *p = NULL;
    struct fpu_sw sw;

    if (size < FPU_LEGACY || size > FPU_MAX)
        return -EFAULT;
    p = mem_zalloc(size);
    if (!p || sigframe_fpu_read(t, p, from, size))
        return -EFAULT;
    memcpy(&sw, p + FPU_SW_OFFSET, sizeof(sw));
    return copy_out(&t->ctx, UADDR(to), p, sw.magic1 ? sw.extended_size : FPU_LEGACY);
}

/* Decides how the state that the interrupted code has (or would have had on resume) gets to address to. */
static int fpu_save(struct task *t, uint64_t to)
{
    uint64_t size = t->group->container->platform->fpu_size;
    int r;

    if (t->resume_flags & PLAT_LOAD_FPU) {
        r = t->fpu_addr ? fpu_copy(t, to, t->fpu_addr, size) : fpu_write_initial(t, to, size);
        t->fpu_addr = 0;
        return r;
    }
    if (t->resume_flags & PLAT_SAVE_FPU) /* an earlier frame takes the live state */
        return fpu_write_initial(t, to, size);
    t->resume_flags |= PLAT_SAVE_FPU;
    t->fpu_addr = to;
    return 0;
}

static void context_from_regs(struct sigcontext_k *c, const struct regs *r, const struct task *t)
{
    c->r8 = r->r8;
    c->r9 = r->r9;
    c->r10 = r->r10;
    c->r11 = r->r11;
    c->r12 = r->r12;
    c->r13 = r->r13;
    c->r14 = r->r14;
    c->r15 = r->r15;
    c->rdi = r->rdi;
    c->rsi = r->rsi;
    c->rbp = r->rbp;
    c->rbx = r->rbx;
    c->rdx = r->rdx;
    c->rax = r->rax;
    c->rcx = r->rcx;
    c->rsp = r->rsp;
    c->rip = r->rip;
    c->rflags = r->rflags;
    c->cs = USER_CS;
    c->ss = USER_DS;
    c->err = t->fault_error;
    c->trapno = (uint64_t)t->fault_trapno;
    c->cr2 = t->fault_addr;
}

static void regs_from_context(struct regs *r, const struct sigcontext_k *c)
{
    r->r8 = c->r8;
    r->r9 = c->r9;
    r->r10 = c->r10;
    r->r11 = c->r11;
    r->r12 = c->r12;
    r->r13 = c->r13;
    r->r14 = c->r14;
    r->r15 = c->r15;
    r->rdi = c->rdi;
    r->rsi = c->rsi;
    r->rbp = c->rbp;
    r->rbx = c->rbx;
    r->rdx = c->rdx;
    r->rax = c->rax;
    r->rcx = c->rcx;
    r->rsp = c->rsp;
    r->rip = c->rip;
    r->rflags = (c->rflags & RFLAGS_USER) | RFLAGS_FIXED;
    r->orig_rax = UINT64_MAX;
    r->cs = USER_CS;
    r->ss = USER_DS;
}

/* Where the frame and its FPU image go. Return: 0 or −EFAULT (the alternate stack is too small). */
static int frame_place(const struct task *t, const struct sigaction_k *action, uint64_t *ret_frame,
                       uint64_t *ret_fpu)
{
    const struct sigaltstack_k *alt = &t->altstack;
    uint64_t sp = t->thread->regs.rsp - REDZONE, size = t->group->container->platform->fpu_size;
    bool nested = on_altstack(alt, t->thread->regs.rsp), entering = false;

    if ((action->flags & SA_ONSTACK) && alt->size && !nested) {
        sp = alt->sp + alt->size;
        entering = true;
    }
    sp = ALIGN_DOWN(sp - size, 64UL);
    *ret_fpu = sp;
    sp = ALIGN_DOWN(sp - sizeof(struct sigframe_k), 16UL) - 8;
    *ret_frame = sp;
    if ((nested || entering) && !(sp > alt->sp && sp - alt->sp <= alt->size))
        return -EFAULT;
    return 0;
}

static void undo_note(struct task *t, int sig)
{
    struct frame_undo *u = t->undo;

    /* Of several frames at once the first one takes the live FPU state. */
    if (u && u->valid)
        return;
    if (!u)
        u = t->undo = NEW(struct frame_undo);
    if (!u)
        return;
    u->valid = true;
    u->sig = sig;
    u->regs = t->thread->regs;
    u->blocked = t->restore_blocked ? t->saved_blocked : t->blocked;
    u->altstack = t->altstack;
}

int sigframe_undo(struct task *t)
{
    struct frame_undo *u = t->undo;

    if (!u || !u->valid)
        return 0;
    u->valid = false;
    t->thread->regs = u->regs;
    t->altstack = u->altstack;
    t->resume_flags |= PLAT_SET_REGS;
    signal_set_blocked(t, u->blocked);
    return u->sig;
}

int sigframe_push(struct task *t, int sig, const siginfo_t *info, const struct sigaction_k *action,
                  sigset_k old_mask)
{
    struct regs *regs = &t->thread->regs;
    struct sigframe_k frame = {0};
    uint64_t at, fpu;
    int r = frame_place(t, action, &at, &fpu);

    /* Programs for x86-64 bring their own way back; there is no kernel-made one. */
    if (r || !(action->flags & 0x04000000 /* SA_RESTORER */))
        return -EFAULT;
    frame.pretcode = action->restorer;
    frame.uc.flags = UC_SIGCONTEXT_SS_K | UC_STRICT_RESTORE_SS_K;
    if (t->group->container->platform->fpu_size > FPU_LEGACY)
        frame.uc.flags |= UC_FP_XSTATE_K;
    frame.uc.stack = t->altstack;
    context_from_regs(&frame.uc.mcontext, regs, t);
    frame.uc.mcontext.oldmask = old_mask;
    frame.uc.mcontext.fpstate = fpu;
    frame.uc.sigmask = old_mask;
    frame.info = *info;
    r = copy_out(&t->ctx, UADDR(at), &frame, sizeof(frame));
    if (r)
        return r;
    undo_note(t, sig);
    r = fpu_save(t, fpu);
    if (r)
        return r;
    if ((uint32_t)t->altstack.flags & SS_AUTODISARM_K)
        sigaltstack_reset(t);
    regs->rdi = (uint64_t)sig;
    regs->rsi = at + offsetof(struct sigframe_k, info);
    regs->rdx = at + offsetof(struct sigframe_k, uc);
    regs->rax = 0;
    regs->rip = action->handler;
    regs->rsp = at;
    regs->rflags &= ~(RFLAGS_TF | RFLAGS_DF | RFLAGS_RF);
    regs->cs = USER_CS;
    regs->ss = USER_DS;
    regs->orig_rax = UINT64_MAX;
    t->resume_flags |= PLAT_SET_REGS;
    return 0;
}

int sigframe_pop(struct task *t)
{
    struct regs *regs = &t->thread->regs;
    struct ucontext_k uc;
    /* The handler's return took the first word off. */
    uint64_t at = regs->rsp - sizeof(uint64_t);

    if (copy_in(&t->ctx, &uc, UADDR(at + offsetof(struct sigframe_k, uc)), sizeof(uc)))
        return -EFAULT;
    signal_set_blocked(t, uc.sigmask);
    regs_from_context(regs, &uc.mcontext);
    t->resume_flags |= PLAT_SET_REGS | PLAT_LOAD_FPU;
    t->fpu_addr = uc.mcontext.fpstate;
    /* A stack that is in use or nonsense stays as it is, as in Linux. */
    (void)!sigaltstack_set(t, &uc.stack, regs->rsp, 0);
    return 0;
}
