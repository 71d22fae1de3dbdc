/* SPDX-License-Identifier: Apache-2.0 */
/* The code that lives in guest processes: signal handler, doorbell loop, birth of processes and threads.
 *
 * Freestanding, position-independent, no writable data, general registers only. It runs with the guest's
 * rights and the guest may do to it what it likes: nothing here is a security boundary. */
#include "platform/seccomp/stub.h"

/* Kernel structures, by the x86-64 signal ABI. */
struct stub_siginfo {
    int32_t signo, err, code, pad;
    uint64_t addr; /* fault address, or the call address of SIGSYS */
    int32_t syscall;
    uint32_t arch;
};

enum { ARCH_SET_GS_ = 0x1001, ARCH_SET_FS_ = 0x1002, ARCH_GET_FS_ = 0x1003, ARCH_GET_GS_ = 0x1004 };
enum { PR_SET_TSC_ = 26, PR_TSC_SIGSEGV_ = 2 };
#define AUDIT_ARCH_X86_64_ 0xc000003eu

enum { SIGILL_ = 4, SIGTRAP_ = 5, SIGBUS_ = 7, SIGFPE_ = 8, SIGSEGV_ = 11, SIGSYS_ = 31, SI_KERNEL_ = 0x80 };

static long stub_doorbell(struct stub_slot *s, uint64_t op, uint64_t a, uint64_t b)
{
    return stub_syscall(STUB_NR_DOORBELL, s->seq, op, a, b, 0, 0);
}

static uint64_t stub_cycles(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Posts the ring and waits a while for the answer. Return: whether there is one, then *ret_reply; else the doorbell is to be
 * rung with the same number. */
static int stub_post(struct stub_slot *s, uint64_t op, long *ret_reply)
{
    struct stub_post *p = &stub_mailbox(s)->post;
    /* Without the counter there is no telling how long to wait. */
    if (!__atomic_load_n(&p->looked_at, __ATOMIC_RELAXED) || s->no_tsc)
        return 0;
    p->seq = s->seq;
    p->op = op;
    __atomic_exchange_n(&p->state, STUB_POST_POSTED, __ATOMIC_SEQ_CST);
    uint64_t start = stub_cycles();
    uint32_t state;
    do {
        state = __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
        /* Whoever stops looking says so, then takes what has been posted: what is left then is not taken. */
        if (state == STUB_POST_REPLIED || state == STUB_POST_RING ||
            (state == STUB_POST_POSTED && !__atomic_load_n(&p->looked_at, __ATOMIC_SEQ_CST)))
            break;
        __asm__ volatile("pause");
    } while (stub_cycles() - start < STUB_POST_CYCLES);
    state = __atomic_exchange_n(&p->state, STUB_POST_NONE, __ATOMIC_SEQ_CST);
    *ret_reply = p->reply;
    return state == STUB_POST_REPLIED;
}

static uint64_t stub_get_base(const struct stub_config *cfg, int gs)
{
    uint64_t v;
    if (cfg->fsgsbase) {
        if (gs)
            __asm__ volatile("rdgsbase %0" : "=r"(v));
        else
            __asm__ volatile("rdfsbase %0" : "=r"(v));
        return v;
    }
    if (stub_syscall(NR_ARCH_PRCTL, gs ? ARCH_GET_GS_ : ARCH_GET_FS_, (uint64_t)&v, 0, 0, 0, 0) < 0)
        return 0;
    return v;
}

static void stub_set_base(const struct stub_config *cfg, int gs, uint64_t v)
{
    if (cfg->fsgsbase && v < cfg->zone_top) {
        if (gs)
            __asm__ volatile("wrgsbase %0" ::"r"(v));
        else
            __asm__ volatile("wrfsbase %0" ::"r"(v));
        return;
    }
    stub_syscall(NR_ARCH_PRCTL, gs ? ARCH_SET_GS_ : ARCH_SET_FS_, v, 0, 0, 0, 0);
}

static void stub_export_regs(struct stub_slot *s, struct stub_mailbox *m, const struct stub_ucontext *uc)
{
    const struct stub_config *cfg = stub_config(s);
    for (int i = 0; i < STUB_GREGS; i++)
        m->gregs[i] = uc->gregs[i];
    m->fs_base = stub_get_base(cfg, 0);
    m->gs_base = stub_get_base(cfg, 1);
    m->fpstate = uc->fpstate;
    if (uc->fpstate)
        m->fpu_size = ((const struct stub_fpsw *)(uc->fpstate + FP_SW_OFF))->extended_size;
}

static void stub_init_altstack(struct stub_slot *s, struct stub_ucontext *uc)
{
    uc->ss_sp = stub_slot_base(s) + STUB_STACK_OFF;
    uc->ss_flags = 0;
    uc->ss_size = STUB_STACK_SIZE;
}

/* A ucontext to start guest code from, for threads that did not come here by a signal. */
static void stub_fresh_ucontext(struct stub_slot *s, struct stub_ucontext *uc)
{
    for (unsigned i = 0; i < sizeof(*uc) / 8; i++)
        ((volatile uint64_t *)uc)[i] = 0;
    uc->flags = 6; /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
    stub_init_altstack(s, uc);
    uc->gregs[G_EFL] = 0x202;
    uc->csgsfs = 0x33 | (0x2bULL << 48);
}

/* Stores the FPU state of the interrupted code at guest address addr. Return: 0, or −1 on a fault. */
static int stub_save_fpu(const struct stub_ucontext *uc, uint64_t addr)
{
    if (!uc->fpstate)
        return 0;
    const struct stub_fpsw *sw = (const struct stub_fpsw *)(uc->fpstate + FP_SW_OFF);
    return stub_copy((void *)addr, (const void *)uc->fpstate, sw->extended_size) ? -1 : 0;
}

/* Loads the FPU state from guest address addr into the frame that stub_resume restores, keeping the frame's own
 * description of what the CPU has: the host kernel refuses a frame whose description it did not write. */
static int stub_load_fpu(struct stub_ucontext *uc, uint64_t addr)
{
    if (!uc->fpstate) {
        uc->fpstate = addr; /* of a thread that has not run yet: the image itself will do */
        return 0;
    }
    struct stub_fpsw *sw = (struct stub_fpsw *)(uc->fpstate + FP_SW_OFF);
    if (addr == 0) {
        /* The initial state. The frame keeps its image: another signal may have it stored before it is loaded. */
        *(uint16_t *)uc->fpstate = 0x37f;
        *(uint32_t *)(uc->fpstate + 24) = 0x1f80;
        if (sw->magic1 == FP_MAGIC1_) {
            for (int i = 0; i < 8; i++)
                ((uint64_t *)(uc->fpstate + FP_LEGACY_SIZE))[i] = 0;
            return 0;
        }
        for (uint64_t at = 32; at < FP_SW_OFF; at += 8)
            *(uint64_t *)(uc->fpstate + at) = 0;
        return 0;
    }
    struct stub_fpsw keep = *sw;
    uint32_t magic = 0;
    int extended = keep.magic1 == FP_MAGIC1_ &&
                   !stub_copy(&magic, (const void *)(addr + FP_SW_OFF), sizeof(magic)) &&
                   magic == FP_MAGIC1_;
    uint64_t size = extended ? keep.xstate_size : FP_LEGACY_SIZE;
    if (stub_copy((void *)uc->fpstate, (const void *)addr, size))
        return -1;
    *sw = keep;
    *(uint32_t *)(uc->fpstate + 24) &= *(uint32_t *)(uc->fpstate + 28) ? *(uint32_t *)(uc->fpstate + 28)
                                                                     : 0xffbf; /* MXCSR */
    uint64_t *header = (uint64_t *)(uc->fpstate + FP_LEGACY_SIZE);
    if (keep.magic1 == FP_MAGIC1_) {
        header[0] = extended ? header[0] & keep.xfeatures : (header[0] | 3) & keep.xfeatures;
        for (int i = 1; i < 8; i++)
            header[i] = 0;
    }
    return 0;
}

static int stub_copy_outs(struct stub_mailbox *m)
{
    uint32_t len = m->out_len;
    m->out_len = 0;
    if (len > STUB_OUT_MAX)
        return -1;
    for (uint32_t i = 0; i < len; i++) {
        struct stub_range *r = &m->out[i];
        if (stub_copy((void *)r->addr, stub_mailbox_data(m) + r->off, r->size))
            return -1;
    }
    return 0;
}

static void stub_apply_resume(struct stub_slot *s, struct stub_mailbox *m, struct stub_ucontext *uc)
{
    const struct stub_config *cfg = stub_config(s);
    if (m->flags & STUB_RES_REGS)
        for (int i = 0; i < STUB_GREGS; i++)
            uc->gregs[i] = m->gregs[i];
    if (m->flags & STUB_RES_FS)
        stub_set_base(cfg, 0, m->new_fs);
    if (m->flags & STUB_RES_GS)
        stub_set_base(cfg, 1, m->new_gs);
}

static void stub_close_after(const struct stub_call *c, long reply)
{
    if (c->close_fd >= 0)
        stub_syscall(NR_CLOSE, (uint64_t)c->close_fd, 0, 0, 0, 0, 0);
    if (c->reply_fd == STUB_REPLY_FD_CLOSE && reply >= 0)
        stub_syscall(NR_CLOSE, (uint64_t)reply, 0, 0, 0, 0, 0);
}

/* Runs the calls of the mailbox until one fails. reply: what the doorbell brought. */
static void stub_run_calls(struct stub_mailbox *m, long reply)
{
    uint32_t len = m->calls_len <= STUB_CALLS_MAX ? m->calls_len : STUB_CALLS_MAX, i;
    for (i = 0; i < len; i++) {
        struct stub_call *c = &m->calls[i];
        if (c->reply_fd && reply < 0) {
            c->result = reply;
            break;
        }
        c->result = stub_syscall(c->nr, c->args[0], c->args[1], c->args[2], c->args[3],
                                 c->reply_fd ? (uint64_t)reply : c->args[4], c->args[5]);
        stub_close_after(c, reply);
        if (c->result < 0 && c->result >= -4095)
            break;
    }
    m->calls_done = i;
    for (uint32_t j = i + 1; j < len; j++)
        stub_close_after(&m->calls[j], reply);
}

static void stub_apply_settings(struct stub_slot *s, struct stub_mailbox *m)
{
    struct stub_proc *p = stub_proc(s);
    if (m->lock_set) {
        p->lock_flag = m->lock_set == 2 ? 0x2000 /* MAP_LOCKED */ : 0;
        m->lock_set = 0;
    }
    uint32_t tsc = m->tsc_set;
    if (tsc) {
        m->tsc_set = 0;
        if (!stub_syscall(NR_PRCTL, PR_SET_TSC_, tsc, 0, 0, 0, 0))
            s->no_tsc = tsc == PR_TSC_SIGSEGV_;
    }
    if (!m->brk_set)
        return;
    m->brk_set = 0;
    p->brk_start = p->brk_cur = m->brk_start;
    p->brk_limit = m->brk_limit;
}

/* The sentry has been asked about a call, and leaves it to us. Return: what to ring. */
static uint64_t stub_run_local(struct stub_slot *s, struct stub_mailbox *m, struct stub_ucontext *uc)
{
    uint64_t nr = m->sysno;
    uint32_t flags = m->flags;
    stub_apply_resume(s, m, uc);
    stub_export_regs(s, m, uc);
    long r;
    int how = stub_local_call(s, uc, nr, &r);
    if (how == STUB_LOCAL_NO) {
        stub_marshal(m, uc, nr);
        return STUB_OP_DECLINED;
    }
    if (how == STUB_LOCAL_DONE && !(flags & STUB_RES_TELL)) {
        uc->gregs[G_RAX] = (uint64_t)r;
        stub_resume(s, uc);
    }
    m->gregs[G_RAX] = (uint64_t)r;
    return STUB_OP_LOCAL;
}

static int stub_asks(const struct stub_shared *sh, uint64_t nr)
{
    return sh->ask_how && (sh->ask_how == STUB_ASK_ALL || (nr < 512 && (sh->ask[nr / 64] >> (nr % 64) & 1)));
}

/* Rings with op (STUB_OP_NONE: there is an answer already) and does what the answers say until one of them lets the guest
 * go on. */
static NORETURN void stub_serve(struct stub_slot *s, struct stub_ucontext *uc, uint64_t op)
{
    struct stub_mailbox *m = stub_mailbox(s);
    for (;;) {
        long reply = -1;
        if (op != STUB_OP_NONE) {
            s->seq++;
            s->kicked = 0;
            if (!stub_post(s, op, &reply))
                reply = stub_doorbell(s, op, 0, 0);
        }
        stub_apply_settings(s, m);
        switch (m->action) {
        case STUB_ACT_RETURN:
            uc->gregs[G_RAX] = (uint64_t)m->ret;
            if (stub_copy_outs(m))
                uc->gregs[G_RAX] = (uint64_t)-14; /* EFAULT */
            stub_resume(s, uc);
        case STUB_ACT_TAIL:
            stub_copy_outs(m);
            stub_run_calls(m, reply);
            uc->gregs[G_RAX] = (uint64_t)m->calls[0].result;
            stub_resume(s, uc);
        case STUB_ACT_RESUME:
            op = STUB_OP_FPU_FAULT;
            if ((m->flags & STUB_RES_SAVE_FPU) && stub_save_fpu(uc, m->fpu_addr))
                continue;
            if ((m->flags & STUB_RES_LOAD_FPU) && stub_load_fpu(uc, m->fpu_addr))
                continue;
            stub_apply_resume(s, m, uc);
            if (stub_copy_outs(m)) {
                op = STUB_OP_OUT_FAULT;
                continue;
            }
            stub_resume(s, uc);
        case STUB_ACT_CALLS:
            stub_copy_outs(m); /* what a child or the calls may look at; found writable before */
            stub_run_calls(m, reply);
            op = STUB_OP_CALLS_DONE;
            continue;
        case STUB_ACT_CLONE:
            stub_copy_outs(m);
            m->clone_result = stub_clone(s, m, uc);
            op = STUB_OP_CLONE_DONE;
            continue;
        case STUB_ACT_EXIT:
            if (m->clear_tid) {
                uint32_t zero = 0;
                if (!stub_copy((void *)m->clear_tid, &zero, sizeof(zero)))
                    stub_syscall(NR_FUTEX, m->clear_tid, 1, 1, 0, 0, 0);
            }
            stub_syscall(NR_EXIT, 0, 0, 0, 0, 0, 0);
            __builtin_trap();
        case STUB_ACT_LOCAL:
            op = stub_run_local(s, m, uc);
            continue;
        default:
            stub_syscall(NR_EXIT_GROUP, 1, 0, 0, 0, 0, 0);
            __builtin_trap();
        }
    }
}

/* Hides a slot's whole range again (or for the first time). */
static void stub_block(uint64_t addr, uint64_t size)
{
    if (size)
        stub_syscall(NR_MMAP, addr, size, 0, 0x4032 /* NORESERVE|PRIVATE|ANON|FIXED */, (uint64_t)-1, 0);
}

/* Maps the mailbox that the birth reply brought, and goes to the guest as it says. */
static NORETURN void stub_birth(struct stub_slot *s, struct stub_ucontext *uc)
{
    s->seq = 1;
    s->kicked = 0;
    long fd = stub_doorbell(s, STUB_OP_BIRTH, s->token, 0);
    if (fd == -1) /* this thread is not wanted after all */
        stub_syscall(NR_EXIT, 0, 0, 0, 0, 0, 0);
    if (fd < 0)
        stub_syscall(NR_EXIT_GROUP, 1, 0, 0, 0, 0, 0);
    struct stub_mailbox *m = stub_mailbox(s);
    stub_syscall(NR_MMAP, (uint64_t)m, STUB_MBOX_SIZE, 3, 0x11 /* SHARED|FIXED */, (uint64_t)fd, 0);
    stub_syscall(NR_MADVISE, (uint64_t)m, STUB_MBOX_SIZE, 10 /* DONTFORK */, 0, 0, 0);
    stub_syscall(NR_CLOSE, (uint64_t)fd, 0, 0, 0, 0, 0);
    if (m->aslr_gap) {
        uint64_t gap = m->aslr_gap;
        m->aslr_gap = 0;
        stub_block(stub_zone(s) - gap, gap);
    }
    stub_serve(s, uc, STUB_OP_NONE); /* the answer to the birth is the first action */
}

/* Copies the frame at uc into the stack of another slot, so that a thread there can leave through it. */
static struct stub_ucontext *stub_copy_frame(struct stub_slot *to, const struct stub_ucontext *uc)
{
    uint64_t fp_size = 0;
    if (uc->fpstate)
        fp_size = ((const struct stub_fpsw *)(uc->fpstate + FP_SW_OFF))->extended_size;
    uint64_t top = stub_slot_base(to) + STUB_STACK_OFF + STUB_STACK_SIZE;
    uint64_t fp = (top - fp_size) & ~63UL;
    struct stub_ucontext *copy = (struct stub_ucontext *)((fp - sizeof(*uc)) & ~63UL);
    stub_copy(copy, uc, sizeof(*uc));
    if (fp_size) {
        stub_copy((void *)fp, (const void *)uc->fpstate, fp_size);
        copy->fpstate = fp;
    }
    stub_init_altstack(to, copy);
    return copy;
}

static long stub_clone_process(struct stub_slot *s, struct stub_mailbox *m, struct stub_ucontext *uc)
{
    s->token = m->clone_token;
    s->host_tid = 0;
    long r = stub_syscall(NR_CLONE, STUB_CLONE_FORK, 0, 0, 0, 0, 0);
    if (r != 0)
        return r;
    /* Child: the mailboxes are gone (MADV_DONTFORK), and with them go the siblings' slots. What the sentry was handing to
     * a sibling is the parent's: a mailbox, a file. */
    stub_syscall(NR_CLOSE_RANGE, 0, ~0U, 0, 0, 0, 0);
    struct stub_proc *p = stub_proc(s);
    uint64_t slots = stub_zone(s) + STUB_SLOTS_OFF, mine = stub_slot_base(s);
    uint64_t end = slots + p->slots_used * STUB_SLOT_SIZE;
    p->brk_lock = 0;
    p->lock_flag = 0; /* locks are not inherited */
    stub_block(slots, mine - slots);
    stub_block(mine + STUB_SLOT_SIZE, end - mine - STUB_SLOT_SIZE);
    stub_birth(s, uc);
}

static long stub_clone_sibling(struct stub_slot *s, struct stub_mailbox *m, struct stub_ucontext *uc)
{
    uint64_t n = m->clone_slot;
    if (n >= STUB_SLOTS_MAX)
        return -11;
    uint64_t base = stub_zone(s) + STUB_SLOTS_OFF + n * STUB_SLOT_SIZE;
    struct stub_slot *to = (struct stub_slot *)(base + STUB_DATA_OFF);
    if (m->clone_slot_used) {
        /* The last thread here may still be on its way out on this stack. */
        while (__atomic_load_n(&to->host_tid, __ATOMIC_ACQUIRE))
            stub_syscall(NR_SCHED_YIELD, 0, 0, 0, 0, 0, 0);
    } else {
        long r = stub_syscall(NR_MMAP, base + STUB_STACK_OFF, STUB_MBOX_OFF - STUB_STACK_OFF, 3,
                              0x4032, (uint64_t)-1, 0);
        if (r < 0 && r >= -4095)
            return r;
        struct stub_proc *p = stub_proc(s);
        uint64_t used = __atomic_load_n(&p->slots_used, __ATOMIC_RELAXED);
        while (used < n + 1 && !__atomic_compare_exchange_n(&p->slots_used, &used, n + 1, 0,
                                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
    struct stub_ucontext *copy = stub_copy_frame(to, uc);
    to->token = m->clone_token;
    to->birth_uc = (uint64_t)copy;
    to->futex_restart = 0;
    to->no_tsc = s->no_tsc; /* as the host's thread inherits it */
    to->host_tid = 1;
    long r = stub_clone_thread(STUB_CLONE_THREAD, ((uint64_t)copy & ~63UL) - 64, &to->host_tid);
    if (r < 0)
        to->host_tid = 0;
    return r;
}

long stub_clone(struct stub_slot *s, struct stub_mailbox *m, struct stub_ucontext *uc)
{
    return m->clone_flags == STUB_CLONE_FORK ? stub_clone_process(s, m, uc) : stub_clone_sibling(s, m, uc);
}

/* First code of a new thread, on its own slot's stack, just below the copied frame. */
NORETURN void stub_thread_child(void)
{
    struct stub_slot *s = stub_current();
    uint64_t ss[3] = {stub_slot_base(s) + STUB_STACK_OFF, 0, STUB_STACK_SIZE};
    stub_syscall(NR_SIGALTSTACK, (uint64_t)ss, 0, 0, 0, 0, 0);
    stub_birth(s, (struct stub_ucontext *)s->birth_uc);
}

/* The zygote: everything but the zone goes; then it makes a child whenever it is told to. */
NORETURN void stub_zygote(uint64_t zone)
{
    struct stub_slot *s = stub_current();
    const struct stub_config *cfg = stub_config(s);
    stub_syscall(NR_MUNMAP, 0, zone, 0, 0, 0, 0);
    stub_block(zone + STUB_ZONE_SIZE, cfg->vdso_start - (zone + STUB_ZONE_SIZE));
    stub_block(cfg->vdso_end, cfg->zone_top - cfg->vdso_end);
    uint64_t ss[3] = {stub_slot_base(s) + STUB_STACK_OFF, 0, STUB_STACK_SIZE};
    stub_syscall(NR_SIGALTSTACK, (uint64_t)ss, 0, 0, 0, 0, 0);
    long token = 0, r = 0;
    for (;;) {
        s->seq++;
        /* Says which child was made for which token; the answer is the next child's. */
        token = stub_doorbell(s, STUB_OP_ZYGOTE, r > 0 ? (uint64_t)r : 0, (uint64_t)token);
        r = 0;
        if (token <= 0)
            continue;
        /* The listener and the start-up pipe: the sentry has taken what it needs by now. */
        stub_syscall(NR_CLOSE, 0, 0, 0, 0, 0, 0);
        stub_syscall(NR_CLOSE, 1, 0, 0, 0, 0, 0);
        s->token = (uint64_t)token;
        r = stub_syscall(NR_CLONE, STUB_CLONE_FORK, 0, 0, 0, 0, 0);
        if (r == 0) {
            struct stub_ucontext uc;
            stub_fresh_ucontext(s, &uc);
            stub_birth(s, &uc);
        }
        if (r < 0) {
            s->seq++;
            stub_doorbell(s, STUB_OP_CLONE_DONE, (uint64_t)r, (uint64_t)token);
        }
    }
}

NORETURN void stub_kicked(struct stub_slot *s, struct stub_ucontext *uc)
{
    struct stub_mailbox *m = stub_mailbox(s);
    stub_export_regs(s, m, uc);
    stub_serve(s, uc, STUB_OP_KICK);
}

/* Whether rip is one of the instructions that may fault on guest memory; moves it to the fix-up. */
static int stub_fixup(struct stub_ucontext *uc)
{
    uint64_t rip = uc->gregs[G_RIP];
    if (rip == (uint64_t)stub_copy_insn)
        uc->gregs[G_RIP] = (uint64_t)stub_copy_fixup;
    else if (rip == (uint64_t)stub_str_insn)
        uc->gregs[G_RIP] = (uint64_t)stub_str_fixup;
    else if (rip == (uint64_t)stub_probe_insn)
        uc->gregs[G_RIP] = (uint64_t)stub_probe_fixup;
    else
        return 0;
    return 1;
}

static int stub_in_text(const struct stub_slot *s, uint64_t rip)
{
    uint64_t zone = stub_zone(s);
    return rip >= zone && rip < zone + STUB_TEXT_SIZE;
}

/* A kick that hit the stub itself: leave a note, and break the two places that could miss it. */
static NORETURN void stub_kick_inside(struct stub_slot *s, struct stub_ucontext *uc)
{
    uint64_t rip = uc->gregs[G_RIP];
    s->kicked = 1;
    if (rip >= (uint64_t)stub_exit_window && rip < (uint64_t)stub_ip_sigreturn)
        uc->gregs[G_RIP] = (uint64_t)stub_exit_window;
    else if (rip >= (uint64_t)stub_futex_window && rip < (uint64_t)stub_ip_futex)
        uc->gregs[G_RIP] = (uint64_t)stub_futex_abort;
    stub_return_inside(uc);
}

NORETURN void stub_return_inside(struct stub_ucontext *uc)
{
    /* Not stub_resume: its check is for the way to the guest. */
    __asm__ volatile("mov %0, %%rsp\n\t"
                     "mov $15, %%eax\n\t"
                     "jmp stub_ip_sigreturn - 2" ::"r"(uc)
                     : "memory");
    __builtin_unreachable();
}

/* Hosts since 6.11 let call 335 (uretprobe) pass every filter, and answer it with SIGILL outside of a probe. The guest's kernel
 * has no such call. Return: whether uc is that, and goes on behind the call. */
static int stub_unfiltered(const struct stub_siginfo *info, struct stub_ucontext *uc)
{
    uint16_t insn = 0;
    if (info->signo != SIGILL_ || info->code != SI_KERNEL_ || uc->gregs[G_RCX] != uc->gregs[G_RIP] ||
        stub_copy(&insn, (const void *)(uc->gregs[G_RIP] - sizeof(insn)), sizeof(insn)) || insn != 0x050f /* syscall */)
        return 0;
    uc->gregs[G_RAX] = (uint64_t)-38; /* ENOSYS */
    return 1;
}

void stub_handler(int sig, const struct stub_siginfo *info, struct stub_ucontext *uc)
{
    struct stub_slot *s = stub_current();
    struct stub_mailbox *m = stub_mailbox(s);
    int inside = stub_in_text(s, uc->gregs[G_RIP]);
    if (inside && sig == STUB_KICK_SIGNAL)
        stub_kick_inside(s, uc);
    if (inside && (sig == SIGSEGV_ || sig == SIGBUS_)) {
        if (stub_fixup(uc))
            stub_return_inside(uc);
    }
    if (sig == SIGSYS_ && info->arch == AUDIT_ARCH_X86_64_) {
        uint64_t nr = (uint32_t)info->syscall;
        stub_export_regs(s, m, uc);
        m->sysno = nr;
        if (stub_asks(&m->shared, nr)) {
            if (nr != NR_RESTART_SYSCALL)
                s->futex_restart = 0;
            stub_marshal(m, uc, nr);
            stub_serve(s, uc, STUB_OP_SYSCALL);
        }
        long r;
        int how = stub_local_call(s, uc, nr, &r);
        if (how == STUB_LOCAL_DONE) {
            uc->gregs[G_RAX] = (uint64_t)r;
            stub_resume(s, uc);
        }
        if (how == STUB_LOCAL_INTERRUPTED) {
            m->gregs[G_RAX] = (uint64_t)r;
            stub_serve(s, uc, STUB_OP_LOCAL);
        }
        s->futex_restart = 0;
        stub_marshal(m, uc, nr);
        stub_serve(s, uc, STUB_OP_SYSCALL);
    }
    if (sig == SIGILL_ && !inside && stub_unfiltered(info, uc))
        stub_resume(s, uc);
    stub_export_regs(s, m, uc);
    if (sig == STUB_KICK_SIGNAL)
        stub_serve(s, uc, STUB_OP_KICK);
    m->fault_signo = sig;
    m->fault_code = info->code;
    m->fault_addr = info->addr;
    m->fault_trapno = (int32_t)uc->trapno;
    m->fault_error = uc->err;
    if (sig == SIGSYS_) {
        /* int 0x80: what a kernel without the i386 entry does is a general protection fault. */
        m->fault_signo = SIGSEGV_;
        m->fault_code = SI_KERNEL_;
        m->fault_addr = 0;
        m->fault_trapno = 13;
    }
    stub_serve(s, uc, STUB_OP_FAULT);
}
