/* SPDX-License-Identifier: Apache-2.0 */
/* What the stub (inside guest processes) and the sentry share: layout of the zone, mailbox, doorbell.
 *
 * The stub is guest code: the sentry believes nothing that stands in a mailbox; it copies each field once
 * and bounds it. Freestanding: no include but stdint. */
#pragma once

#include <stdint.h>

/* Zone: everything from the zone base X to the top of the address space. Offsets from X. */
#define STUB_TEXT_SIZE 0x10000UL   /* blob, read-execute */
#define STUB_CONFIG_OFF 0x10000UL  /* struct stub_config, read-only */
#define STUB_PROC_OFF 0x20000UL    /* struct stub_proc, private to the process */
#define STUB_SLOTS_OFF 0x100000UL  /* thread slots */
#define STUB_SLOT_SIZE 0x20000UL   /* aligned to its size: a stack pointer tells its slot */
#define STUB_SLOTS_MAX 4096UL
#define STUB_ZONE_SIZE (STUB_SLOTS_OFF + STUB_SLOT_SIZE * STUB_SLOTS_MAX)

/* End of the addresses that a process has. */
#define STUB_ADDRESS_TOP 0x7ffffffff000UL

/* Inside a slot: guard page, alternate signal stack, private slot data, mailbox. */
#define STUB_STACK_OFF 0x1000UL
#define STUB_STACK_SIZE 0xb000UL
#define STUB_DATA_OFF 0xc000UL
#define STUB_MBOX_OFF 0xd000UL
#define STUB_MBOX_DATA_SIZE 0x10000UL
#define STUB_MBOX_SIZE (0x1000UL + STUB_MBOX_DATA_SIZE)

/* The doorbell: a call number that no kernel knows. Arguments: sequence number, operation, two operands. */
#define STUB_NR_DOORBELL 1023
/* Host signal that makes a running guest thread ring. */
#define STUB_KICK_SIGNAL 10 /* SIGUSR1 */
/* CPU cycles that a thread waits for the answer to a post before it rings after all: about what a sleep and a wake-up
 * on another CPU cost. */
#define STUB_POST_CYCLES 60000U

/* The only clone flags that the filter lets through (to the sentry, for a yes). */
#define STUB_CLONE_FORK 17UL /* SIGCHLD */
/* VM|FS|FILES|SIGHAND|THREAD|SYSVSEM|CHILD_CLEARTID|CHILD_SETTID */
#define STUB_CLONE_THREAD 0x1250f00UL

enum stub_op {
    STUB_OP_NONE,        /* never rung: the stub's own mark of an answer that came by itself */
    STUB_OP_SYSCALL = 1, /* a call; registers and marshalled data in the mailbox */
    STUB_OP_FAULT,       /* fault_* in the mailbox */
    STUB_OP_KICK,
    STUB_OP_LOCAL,       /* a call that the stub ran was interrupted; result in regs rax */
    STUB_OP_BIRTH,       /* operand 0: token. No mailbox yet */
    STUB_OP_CALLS_DONE,  /* results in calls[] */
    STUB_OP_CLONE_DONE,  /* clone_result */
    STUB_OP_FPU_FAULT,   /* storing or loading the FPU state hit bad guest memory */
    STUB_OP_BROKEN,      /* the stub faulted where it can't: the process is done for */
    STUB_OP_ZYGOTE,      /* the zygote waits for work */
    STUB_OP_OUT_FAULT,   /* a deferred copy-out failed */
    STUB_OP_DECLINED,    /* as SYSCALL, for a call that was to run here (STUB_ACT_LOCAL) and can't */
};

enum stub_action {
    STUB_ACT_RETURN = 1, /* ret → rax, back to the guest */
    STUB_ACT_RESUME,     /* flags tell what to set first */
    STUB_ACT_CALLS,      /* run calls[], ring CALLS_DONE */
    STUB_ACT_TAIL,       /* run calls[0], its result → rax, back to the guest */
    STUB_ACT_CLONE,      /* clone (process or thread by clone_flags), ring CLONE_DONE */
    STUB_ACT_EXIT,       /* end this host thread */
    STUB_ACT_LOCAL,      /* run the call in uc and sysno here; flags REGS: set them first, TELL: ring LOCAL with the result */
};

enum { STUB_RES_REGS = 1, STUB_RES_FS = 2, STUB_RES_GS = 4, STUB_RES_SAVE_FPU = 8, STUB_RES_LOAD_FPU = 16, STUB_RES_TELL = 32 };

enum { STUB_GREGS = 18, STUB_CALLS_MAX = 24, STUB_IN_MAX = 6, STUB_PROBE_MAX = 4, STUB_OUT_MAX = 16 };

/* Index into gregs: the order of the host's ucontext. */
enum {
    G_R8, G_R9, G_R10, G_R11, G_R12, G_R13, G_R14, G_R15, G_RDI, G_RSI, G_RBP, G_RBX, G_RDX, G_RAX,
    G_RCX, G_RSP, G_RIP, G_EFL,
};

enum { STUB_REPLY_FD = 1, STUB_REPLY_FD_CLOSE = 2 };

struct stub_call {
    uint64_t nr;
    uint64_t args[6];
    int64_t result;
    int32_t close_fd; /* descriptor to close afterwards, −1 none */
    uint32_t reply_fd; /* args[4] is the doorbell's answer, a descriptor or −errno; 2: and it is closed afterwards */
};

struct stub_range {
    uint64_t addr;
    uint32_t size, off;
};

enum { STUB_ASK_ALL = 2 }; /* PLAT_ASK_ALL */

/* Must be struct plat_shared of platform.h. */
struct stub_shared {
    uint64_t sig_blocked, sig_pending, sig_default;
    int32_t pid, tid, ppid;
    uint32_t uid, euid, gid, egid;
    uint32_t valid;
    uint32_t ask_how, pad; /* enum plat_ask */
    uint64_t ask[8];
    int64_t monotonic_ns;
};

/* A ring without a notification, while the sentry looks: the thread posts, the sentry takes. */
enum {
    STUB_POST_NONE,
    STUB_POST_POSTED,  /* by the stub: seq and op stand */
    STUB_POST_TAKEN,   /* by the sentry, from POSTED only */
    STUB_POST_REPLIED, /* by the sentry, from TAKEN only: reply stands */
    STUB_POST_RING,    /* by the sentry, from TAKEN only: the answer comes to the doorbell */
};

struct stub_post {
    uint32_t looked_at; /* sentry → stub: somebody looks at state */
    uint32_t state;
    uint64_t seq, op;
    int64_t reply;
} __attribute__((aligned(64)));

struct stub_mailbox {
    struct stub_shared shared;
    struct stub_post post;
    /* stub → sentry */
    uint64_t gregs[STUB_GREGS];
    uint64_t sysno;
    uint32_t in_len, probe_len;
    struct stub_range in[STUB_IN_MAX];      /* guest bytes copied to data + off */
    struct stub_range probe[STUB_PROBE_MAX]; /* found writable */
    uint32_t data_used;                     /* data beyond this is free for the sentry's answer */
    int32_t fault_signo, fault_code, fault_trapno;
    uint64_t fault_addr, fault_error;
    uint64_t fs_base, gs_base; /* as they are when the event happened */
    int64_t clone_result;
    uint32_t fpu_size;         /* bytes of a stored FPU state */
    uint64_t fpstate;          /* where that of the interrupted code is, 0 none */
    /* sentry → stub */
    uint32_t action, flags;
    int64_t ret;
    uint64_t new_fs, new_gs, fpu_addr;
    uint64_t clear_tid; /* with EXIT: word to clear and wake, 0 none */
    uint64_t clone_flags, clone_token;
    uint32_t clone_slot, clone_slot_used;
    uint64_t aslr_gap;                /* at birth: bytes to block below the zone */
    uint64_t brk_start, brk_limit;    /* applied when brk_set */
    uint32_t brk_set;
    uint32_t lock_set;                /* 1: maps made from now on are not locked; 2: they are; 0: no change */
    uint32_t tsc_set;                 /* PR_TSC_ENABLE or PR_TSC_SIGSEGV for this thread; 0: no change */
    uint32_t calls_len, calls_done;
    uint32_t out_len;
    struct stub_range out[STUB_OUT_MAX]; /* data + off → guest, before going back */
    struct stub_call calls[STUB_CALLS_MAX];
};

/* Constants of the container, in the page after the text. */
struct stub_config {
    uint64_t zone, zone_top; /* [zone, zone_top): the guest's mm calls may not touch it */
    uint64_t vdso_start, vdso_end;
    uint64_t fsgsbase; /* RDFSBASE may be used */
};

/* Private to the process, shared by its threads. */
struct stub_proc {
    uint32_t brk_lock, pad;
    uint64_t brk_start, brk_cur, brk_limit;
    uint64_t lock_flag;  /* MAP_LOCKED after mlockall(MCL_FUTURE), else 0 */
    uint64_t slots_used; /* slots ever mapped: [0, slots_used) */
};

/* Private to the thread. */
struct stub_slot {
    uint64_t seq;
    uint64_t kicked;
    uint32_t host_tid; /* cleared by the host at thread exit */
    uint32_t futex_restart; /* a local futex wait may be continued by restart_syscall */
    uint32_t no_tsc;        /* reading the time-stamp counter is a fault for this thread */
    uint32_t pad;
    uint64_t futex_args[4]; /* address, operation, value, bits */
    int64_t futex_deadline[2];
    uint64_t token;    /* of the birth under way */
    uint64_t birth_uc; /* frame that a new thread leaves through */
};

/* First bytes of the blob: offsets of what the sentry and the zygote need. */
struct stub_header {
    uint64_t magic;
    uint64_t handler;      /* signal handler entry */
    uint64_t restorer;
    uint64_t zygote;       /* zygote entry: rdi = zone */
    uint64_t ip_general, ip_sigreturn, ip_futex; /* addresses after the syscall instructions */
};
#define STUB_MAGIC 0x31425554535443ULL
