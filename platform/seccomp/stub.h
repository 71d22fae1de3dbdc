/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations inside the stub. Freestanding; nothing outside platform/seccomp/stub*.c includes it. */
#pragma once

#include "platform/seccomp/stub_abi.h"

#pragma GCC visibility push(hidden)

#define NORETURN __attribute__((noreturn))

enum {
    NR_MMAP = 9, NR_MPROTECT = 10, NR_MUNMAP = 11, NR_BRK = 12, NR_RT_SIGACTION = 13, NR_RT_SIGPROCMASK = 14,
    NR_GETPID = 39, NR_GETUID = 102, NR_GETGID = 104, NR_GETEUID = 107, NR_GETEGID = 108, NR_GETPPID = 110,
    NR_GETTID = 186, NR_SCHED_YIELD = 24, NR_MREMAP = 25,
    NR_MSYNC = 26, NR_MINCORE = 27, NR_MADVISE = 28, NR_REMAP_FILE_PAGES = 216, NR_MEMBARRIER = 324, NR_MSEAL = 462, NR_CLOSE = 3, NR_CLONE = 56, NR_EXIT = 60,
    NR_SIGALTSTACK = 131, NR_PRCTL = 157, NR_ARCH_PRCTL = 158, NR_FUTEX = 202, NR_FUTEX_WAITV = 449, NR_FUTEX_WAKE = 454, NR_FUTEX2_WAIT = 455, NR_FUTEX_REQUEUE = 456, NR_RESTART_SYSCALL = 219,
    NR_EXIT_GROUP = 231, NR_CLOCK_GETTIME = 228, NR_CLOSE_RANGE = 436,
};

/* The kernel's struct ucontext of x86-64 up to the signal mask. */
struct stub_ucontext {
    uint64_t flags, link;
    uint64_t ss_sp;
    int32_t ss_flags, ss_pad;
    uint64_t ss_size;
    uint64_t gregs[STUB_GREGS];
    uint64_t csgsfs, err, trapno, oldmask, cr2;
    uint64_t fpstate;
    uint64_t reserved[8];
    uint64_t sigmask;
};

/* The software-reserved bytes of an FPU frame. */
enum { FP_SW_OFF = 464, FP_LEGACY_SIZE = 512 };
#define FP_MAGIC1_ 0x46505853u
struct stub_fpsw {
    uint32_t magic1, extended_size;
    uint64_t xfeatures;
    uint32_t xstate_size, pad[7];
};

static inline uint64_t stub_slot_base(const struct stub_slot *s)
{
    return (uint64_t)s - STUB_DATA_OFF;
}
static inline struct stub_slot *stub_current(void)
{
    uint64_t sp = (uint64_t)__builtin_frame_address(0);
    return (struct stub_slot *)((sp & ~(STUB_SLOT_SIZE - 1)) + STUB_DATA_OFF);
}
static inline struct stub_mailbox *stub_mailbox(const struct stub_slot *s)
{
    return (struct stub_mailbox *)(stub_slot_base(s) + STUB_MBOX_OFF);
}
static inline uint8_t *stub_mailbox_data(struct stub_mailbox *m)
{
    return (uint8_t *)m + 0x1000;
}
extern const char stub_head[];
/* The text is mapped at the zone base, so its own address tells the zone. */
static inline uint64_t stub_zone(const struct stub_slot *s)
{
    (void)s;
    return (uint64_t)stub_head;
}
static inline const struct stub_config *stub_config(const struct stub_slot *s)
{
    return (const struct stub_config *)(stub_zone(s) + STUB_CONFIG_OFF);
}
static inline struct stub_proc *stub_proc(const struct stub_slot *s)
{
    return (struct stub_proc *)(stub_zone(s) + STUB_PROC_OFF);
}

long stub_syscall(uint64_t nr, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
                  uint64_t a6);
long stub_clone_thread(uint64_t flags, uint64_t stack, uint32_t *ctid);
long stub_futex_wait(const uint64_t *args, uint64_t nr, struct stub_slot *s);
NORETURN void stub_resume(struct stub_slot *s, struct stub_ucontext *uc);
unsigned long stub_copy(void *dst, const void *src, uint64_t size);
long stub_copy_str(void *dst, const void *src, uint64_t max);
long stub_probe(uint64_t addr);
extern const char stub_copy_insn[], stub_copy_fixup[], stub_str_insn[], stub_str_fixup[],
    stub_probe_insn[], stub_probe_fixup[], stub_exit_window[], stub_ip_sigreturn[], stub_futex_window[],
    stub_futex_abort[], stub_ip_futex[];

struct stub_siginfo;
void stub_handler(int sig, const struct stub_siginfo *info, struct stub_ucontext *uc);
NORETURN void stub_thread_child(void);
NORETURN void stub_zygote(uint64_t zone);
NORETURN void stub_kicked(struct stub_slot *s, struct stub_ucontext *uc);
NORETURN void stub_return_inside(struct stub_ucontext *uc);
long stub_clone(struct stub_slot *s, struct stub_mailbox *m, struct stub_ucontext *uc);

/* stub_local.c: calls answered here. */
enum { STUB_LOCAL_NO, STUB_LOCAL_DONE, STUB_LOCAL_INTERRUPTED };
int stub_local_call(struct stub_slot *s, struct stub_ucontext *uc, uint64_t nr, long *ret_result);
/* stub_marshal.c: argument data into the mailbox, by the generated table. */
void stub_marshal(struct stub_mailbox *m, const struct stub_ucontext *uc, uint64_t nr);
