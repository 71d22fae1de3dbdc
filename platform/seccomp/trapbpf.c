/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filter of guest processes, each rule with its reason.
 *
 * A guest can jump to the stub's system-call instructions with any registers, so what is allowed there must be
 * harmless with every argument. All else is SECCOMP_RET_TRAP: the stub's handler turns it into a guest call. */
#include "platform/seccomp/trapbpf.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "platform/seccomp/stub_abi.h"

#define LD(field) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LD_ARG_LO(n)                                                                               \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define LD_ARG_HI(n)                                                                               \
    (struct sock_filter)                                                                           \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n) + 4)
#define RET(v) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (v))
#define JEQ(k, t, f) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (t), (f))
#define JGE(k, t, f) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (k), (t), (f))
#define JSET(k, t, f) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (k), (t), (f))
#define AND(k) (struct sock_filter) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (k))

struct trapbpf {
    struct sock_filter *prog;
    unsigned len;
};

static void emit(struct trapbpf *b, struct sock_filter insn)
{
    BUG_ON(b->len >= TRAPBPF_MAX);
    b->prog[b->len++] = insn;
}

/* if (A == nr) return action */
static void emit_ret_if(struct trapbpf *b, uint32_t nr, uint32_t action)
{
    emit(b, JEQ(nr, 0, 1));
    emit(b, RET(action));
}

/* if (nr == want) { A = low word of arg; allow when A is one of values; trap }. mask is applied first. */
static void emit_allow_values(struct trapbpf *b, uint32_t want, unsigned arg, uint32_t mask,
                              const uint32_t *values, unsigned len)
{
    emit(b, JEQ(want, 0, (uint8_t)(3 + len + 1)));
    emit(b, LD_ARG_LO(arg));
    emit(b, AND(mask));
    for (unsigned i = 0; i < len; i++)
        emit(b, JEQ(values[i], (uint8_t)(len - i), 0));
    emit(b, RET(SECCOMP_RET_TRAP));
    emit(b, RET(SECCOMP_RET_ALLOW));
}

/* Wait, wake, requeue and their bitset and wake-op forms. No priority inheritance: it would write guest-chosen
 * numbers as host tids and boost host tasks. */
static const uint32_t futex_ops[] = {0, 1, 3, 4, 5, 9, 10};
/* Advice about the process's own pages. Not MERGEABLE (side channel across sandboxes), PAGEOUT and COLD (evict page
 * cache that others share), REMOVE (punches holes in files), HWPOISON, COLLAPSE. */
static const uint32_t madvise_ok[] = {0, 1, 2, 3, 4, 8, 10, 11, 13, 14, 15, 16, 17, 18, 19, 22, 23};
/* ARCH_SET_GS, SET_FS, GET_FS, GET_GS: registers of the calling thread. */
static const uint32_t arch_prctl_ok[] = {0x1001, 0x1002, 0x1003, 0x1004};
/* Whether the calling thread may read the time-stamp counter. */
static const uint32_t prctl_ok[] = {PR_SET_TSC};

/* A forked child drops what was injected for its parent's other threads. Without flags: UNSHARE would give every thread
 * a table, and so a limit, of its own. */
static const uint32_t close_range_ok[] = {0};

/* Calls that are harmless with any argument at the stub's general site. */
static const uint32_t general_ok[] = {
    SYS_munmap,      /* own address space */
    SYS_mprotect,    /* own address space; what a descriptor's access mode forbids stays forbidden */
    SYS_mremap,      /* own address space; reaches only memory files that the process maps already */
    SYS_mincore,     /* own mappings; the host restricts file pages to those it may write */
    SYS_msync,       /* writes back own mappings */
    SYS_mlock,       /* own pages, as many as RLIMIT_MEMLOCK of whoever made the container allows each process */
    SYS_mlock2,      /* the same, as they come in */
    SYS_munlock,     /* own pages */
    SYS_remap_file_pages, /* own address space: another part of a file that is mapped already, with the same access */
    462 /* mseal */, /* own address space: a process that seals its stub harms itself alone */
    449 /* futex_waitv */, 454 /* futex_wake */, 455 /* futex_wait */, 456 /* futex_requeue */, /* like futex_ops: words of its own
        memory; these calls know no priority inheritance at all */
    SYS_membarrier,  /* own threads; the global forms reach processes that have asked for it */
    SYS_close,       /* the table holds nothing but what the sentry injected */
    SYS_sched_yield, /* while waiting for a sibling's slot or lock */
    SYS_exit,        /* end of a thread */
    SYS_exit_group,  /* end of the process: the sentry sees it by the pidfd */
    SYS_sigaltstack, /* a new thread sets its slot's stack */
    SYS_clock_gettime, /* makes relative futex limits absolute; the vDSO gives the same values */
};

static void emit_general(struct trapbpf *b)
{
    emit_ret_if(b, STUB_NR_DOORBELL, SECCOMP_RET_USER_NOTIF);
    /* mmap without huge pages: they come from a pool of the whole host. Descriptors are capabilities. */
    emit(b, JEQ(SYS_mmap, 0, 4));
    emit(b, LD_ARG_LO(3));
    emit(b, JSET(MAP_HUGETLB, 0, 1));
    emit(b, RET(SECCOMP_RET_TRAP));
    emit(b, RET(SECCOMP_RET_ALLOW));
    for (unsigned i = 0; i < ARRAY_SIZE(general_ok); i++)
        emit_ret_if(b, general_ok[i], SECCOMP_RET_ALLOW);
    emit_allow_values(b, SYS_futex, 1, ~(uint32_t)(128 | 256), futex_ops, ARRAY_SIZE(futex_ops));
    emit_allow_values(b, SYS_madvise, 2, ~0u, madvise_ok, ARRAY_SIZE(madvise_ok));
    emit_allow_values(b, SYS_close_range, 2, ~0u, close_range_ok, ARRAY_SIZE(close_range_ok));
    emit_allow_values(b, SYS_arch_prctl, 0, ~0u, arch_prctl_ok, ARRAY_SIZE(arch_prctl_ok));
    emit_allow_values(b, SYS_prctl, 0, ~0u, prctl_ok, ARRAY_SIZE(prctl_ok));
    /* clone with exactly the flags of a process or of a thread asks the sentry, which says yes only while it waits for
     * that child. The flags are a register: nothing can change between the check and the call. */
    emit(b, JEQ(SYS_clone, 0, 6));
    emit(b, LD_ARG_HI(0));
    emit(b, JEQ(0, 0, 4));
    emit(b, LD_ARG_LO(0));
    emit(b, JEQ(STUB_CLONE_FORK, 1, 0));
    emit(b, JEQ(STUB_CLONE_THREAD, 0, 1));
    emit(b, RET(SECCOMP_RET_USER_NOTIF));
    emit(b, RET(SECCOMP_RET_TRAP));
}

unsigned trapbpf_build(uint64_t ip_general, uint64_t ip_sigreturn, uint64_t ip_futex,
                       struct sock_filter *ret_prog)
{
    struct trapbpf b = {.prog = ret_prog};
    /* First of all the architecture: an i386 or x32 call number means something else. */
    emit(&b, LD(arch));
    emit(&b, JEQ(AUDIT_ARCH_X86_64, 1, 0));
    emit(&b, RET(SECCOMP_RET_TRAP));
    emit(&b, LD(nr));
    emit(&b, JGE(0x40000000, 0, 1));
    emit(&b, RET(SECCOMP_RET_TRAP));
    /* Only the stub's own instructions count. The zone is 1 MiB-aligned: one high word. */
    emit(&b, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                          offsetof(struct seccomp_data, instruction_pointer) + 4));
    emit(&b, JEQ((uint32_t)(ip_general >> 32), 1, 0));
    emit(&b, RET(SECCOMP_RET_TRAP));
    emit(&b, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                          offsetof(struct seccomp_data, instruction_pointer)));
    /* rt_sigreturn: loads registers of the calling thread from its own memory. */
    emit(&b, JEQ((uint32_t)ip_sigreturn, 0, 4));
    emit(&b, LD(nr));
    emit(&b, JEQ(SYS_rt_sigreturn, 0, 1));
    emit(&b, RET(SECCOMP_RET_ALLOW));
    emit(&b, RET(SECCOMP_RET_TRAP));
    /* The interruptible futex wait; restart_syscall goes on with one that a stop or a freeze has interrupted (no other
     * call with a limit is allowed anywhere, so there is nothing else to restart). */
    emit(&b, JEQ((uint32_t)ip_futex, 0, 12));
    emit(&b, LD(nr));
    emit(&b, JEQ(SYS_restart_syscall, 2, 0));
    emit(&b, JEQ(449 /* futex_waitv */, 1, 0));
    emit(&b, JEQ(455 /* futex_wait */, 0, 1));
    emit(&b, RET(SECCOMP_RET_ALLOW));
    emit(&b, JEQ(SYS_futex, 0, 4));
    emit(&b, LD_ARG_LO(1));
    emit(&b, AND(~(uint32_t)(128 | 256)));
    emit(&b, JEQ(0, 2, 0));
    emit(&b, JEQ(9, 1, 0));
    emit(&b, RET(SECCOMP_RET_TRAP));
    emit(&b, RET(SECCOMP_RET_ALLOW));
    emit(&b, JEQ((uint32_t)ip_general, 1, 0));
    emit(&b, RET(SECCOMP_RET_TRAP));
    emit(&b, LD(nr));
    emit_general(&b);
    emit(&b, RET(SECCOMP_RET_TRAP));
    return b.len;
}
