/* SPDX-License-Identifier: Apache-2.0 */
/* What the sentry asks of a backend that runs guest threads (seccomp, later ptrace).
 *
 * Everything here is called on the kernel thread, under the kernel lock. A "thread" is a guest thread that
 * is either running guest code or stopped at an event. Its owner (a task) learns of events through
 * plat_client.on_event and answers each with exactly one plat_thread_resume (or by ending the thread). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/regs.h"

struct platform;    /* guest processes of one container */
struct plat_aspace; /* one host process: an address space and its threads; counted */
struct plat_thread; /* one guest thread; owned by its task */

enum plat_event_kind {
    PLAT_EVENT_SYSCALL, /* regs.orig_rax is the number; restart-safe: regs.rax = number, rip after the insn */
    PLAT_EVENT_FAULT,   /* synchronous fault: signo, code, addr, trapno, error_code */
    PLAT_EVENT_KICK,    /* the thread stopped because of plat_thread_kick */
    PLAT_EVENT_LOCAL,   /* a call that the backend ran itself was interrupted, or is over and was to be told
                           (plat_thread_run_local); result in regs.rax; orig_rax is the number */
};

struct plat_event {
    enum plat_event_kind kind;
    int signo, code, trapno;
    uint64_t addr, error_code;
    bool on_resume; /* a fault while storing or loading the FPU state: guest code has not run since the resume, and regs are
                       as they were given to it */
    bool declined;  /* a call that plat_thread_run_local left to the backend, which can't serve it */
};

/* What the backend calls. Never on a fiber; the sentry starts one when it needs to. */
struct plat_client {
    /* t stopped. owner is what plat_thread_set_owner gave. */
    void (*on_event)(struct plat_thread *t, void *owner, const struct plat_event *event);
    /* The host process of this thread is gone without the sentry having asked for it (host OOM killer,
     * stray SIGKILL, a guest that destroyed its stub): signo is the host signal it died of, or SIGKILL.
     * Called once for each thread that still has an owner; the thread can only be ended afterwards. */
    void (*on_death)(struct plat_thread *t, void *owner, int signo);
};

/* A host call run inside the guest process by the backend. Allowed: mmap, munmap, mprotect, mremap,
 * madvise, msync, mincore, and futex without PI operations in all its calls (see the stub's filter). A wake for waiters of a
 * futex word (thread exit, robust lists) is a futex call here: guests wait on host futexes. */
struct plat_hostcall {
    uint32_t nr;
    int fd; /* sentry's descriptor to inject in place of args[4], borrowed; −1 = none */
    uint64_t args[6];
    int64_t result; /* out */
};

/* Deferred work on resume, done by the backend in this order before guest code runs. */
enum {
    PLAT_SET_REGS = 1, /* write back all of regs, not just rax */
    PLAT_SET_FS = 2,   /* and regs.fs_base */
    PLAT_SET_GS = 4,   /* and regs.gs_base */
    PLAT_SAVE_FPU = 8, /* store the FPU state at guest address fpu_addr (signal frame), in XSAVE format with
                          the software-reserved bytes of a signal frame; then go on with the initial state, as a
                          handler starts with it */
    PLAT_LOAD_FPU = 16, /* load the FPU state from guest address fpu_addr (0: initial state) */
};

struct platform_ops {
    const char *name;
    void (*free)(struct platform *p);
    int (*aspace_new)(struct platform *p, struct plat_thread **ret_thread);
    int (*fork)(struct plat_thread *parent, struct plat_thread **ret_child);
    int (*clone_thread)(struct plat_thread *sibling, struct plat_thread **ret_thread);
    void (*thread_end)(struct plat_thread *t, uint64_t clear_tid);
    void (*aspace_kill)(struct plat_aspace *as);
    void (*resume)(struct plat_thread *t, unsigned flags, uint64_t fpu_addr);
    void (*run_local)(struct plat_thread *t, unsigned flags, bool tell);
    void (*kick)(struct plat_thread *t);
    int (*hostcalls)(struct plat_thread *t, struct plat_hostcall *calls, unsigned len);
    void (*tail_hostcall)(struct plat_thread *t, const struct plat_hostcall *call);
    bool (*waits)(const struct plat_thread *t);
    int (*copy_in)(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
    /* Optional (NULL: never). Copies as many of size bytes as the backend has at hand without a host call (say, a
     * string that came with the call). Return: bytes copied, 0 when none are, or −EFAULT. */
    int64_t (*copy_in_some)(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
    int (*copy_out)(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size);
    int (*sync)(struct plat_thread *t);
    int (*fpu)(struct plat_thread *t, void *p, uint64_t size, bool write);
    int (*set_brk)(struct plat_thread *t, uint64_t start, uint64_t limit_bytes);
    void (*set_lock_future)(struct plat_thread *t, bool on);
    void (*set_tsc)(struct plat_thread *t, bool on);
    void (*aspace_set_limit)(struct plat_aspace *as, uint64_t bytes);
    uint64_t (*thread_cpu_ns)(struct plat_thread *t);
};

/* Which of the calls that the backend serves by itself it is to bring to the sentry first. */
enum plat_ask { PLAT_ASK_NONE, PLAT_ASK_SOME /* those in plat_shared.ask */, PLAT_ASK_ALL };
enum { PLAT_ASK_CALLS = 512 };

/* Every backend object starts with this. */
struct platform {
    const struct platform_ops *ops; /* (i) */
    const struct plat_client *client; /* (i) set by platform_start */
    uint64_t task_size;             /* (i) first address that guests may not map */
    uint64_t vdso;                  /* (i) address of the vDSO in every guest process, 0 = none */
    uint64_t min_sigstack;          /* (i) AT_MINSIGSTKSZ for guests */
    uint64_t hwcap;                 /* (i) AT_HWCAP for guests */
    uint64_t fpu_size;              /* (i) bytes that PLAT_SAVE_FPU writes */
    uint64_t local_calls[PLAT_ASK_CALLS / 64]; /* (i) bit N: the backend serves (some forms of) call N by itself */
};

/* What a thread may be told and may change without asking, in memory that its process can write as well: the backend answers
 * identity and signal-mask calls from it while valid is set. A guest that writes here lies to itself alone: whoever
 * reads sig_blocked bounds it, and nothing else is ever read back. That holds for ask as well: a guest that clears it, or jumps
 * to the backend's code in its process, makes the calls listed there without being seen (docs/threat-model.md). */
struct plat_shared {
    uint64_t sig_blocked; /* the thread's own mask, exchanged by the backend's local rt_sigprocmask */
    uint64_t sig_pending; /* signals that wait for being unblocked: one of them makes the call go to the sentry */
    uint64_t sig_default; /* signals whose action is the default, plain, so that setting it again changes nothing */
    int32_t pid, tid, ppid;
    uint32_t uid, euid, gid, egid;
    uint32_t valid;
    uint32_t ask_how, pad; /* enum plat_ask */
    uint64_t ask[PLAT_ASK_CALLS / 64]; /* bit N: call N comes as PLAT_EVENT_SYSCALL although the backend could serve it */
    int64_t monotonic_ns; /* what CLOCK_MONOTONIC shows the thread more than the host: of absolute limits of futex waits */
};

struct plat_aspace {
    struct platform *platform; /* (i) */
    uint32_t refs;             /* (k) one per thread plus users */
    bool dead;                 /* (k) killed or found dead */
    int host_pid;              /* (i) in the sentry's pid namespace; for /proc/PID/maps of the host */
    uint64_t mmap_top;         /* (i) end of the free addresses of a fresh process, random: its stack goes below, and
                                  maps that the host places go below that */
};

struct plat_thread {
    struct plat_aspace *aspace; /* (i) */
    void *owner;                /* (k) the task; NULL: nobody */
    struct regs regs;           /* (k) valid while stopped; fs_base and gs_base as well */
    bool stopped;               /* (k) at an event, not resumed */
    bool no_tsc;                /* (k) as plat_set_tsc left it; inherited by clones and forks */
    volatile struct plat_shared *shared; /* (i) NULL when the backend answers nothing by itself */
    bool has_tail;              /* (k) tail is to run on the next resume */
    struct plat_hostcall tail;  /* (k) its fd is a duplicate of our own */
};

/* Starts delivering events to client. */
MUST_CHECK int platform_start(struct platform *p, const struct plat_client *client);
void platform_free(struct platform *p); /* kills everything that is left; NULL is fine */

/* A thread alone in an empty address space, stopped, with initial registers. Parks the fiber when the
 * pool is empty. Return: 0, −EAGAIN (host refuses more processes), −ENOMEM. */
MUST_CHECK int plat_aspace_new(struct platform *p, struct plat_thread **ret_thread);
/* Host copy-on-write copy of parent's process with one thread, a copy of parent (stopped at its event).
 * The new thread is stopped and has parent's registers. Parks. Return: 0, −EAGAIN, −ENOMEM, −ESRCH. */
MUST_CHECK int plat_fork(struct plat_thread *parent, struct plat_thread **ret_child);
/* A further thread in sibling's address space, stopped, with sibling's registers. Parks. */
MUST_CHECK int plat_clone_thread(struct plat_thread *sibling, struct plat_thread **ret_thread);
/* Ends a thread for good and frees it, running or stopped; the address space goes with its last thread. clear_tid: address of
 * the word to clear and wake (set_tid_address), 0 = none. */
void plat_thread_end(struct plat_thread *t, uint64_t clear_tid);
/* Kills the host process at once; threads remain objects until plat_thread_end. */
void plat_aspace_kill(struct plat_aspace *as);
struct plat_aspace *plat_aspace_ref(struct plat_aspace *as);
void plat_aspace_unref(struct plat_aspace *as);

void plat_thread_set_owner(struct plat_thread *t, void *owner);
/* Lets a stopped thread run. Without PLAT_SET_REGS only regs.rax is taken. A fault while storing or loading the
 * FPU state comes back as PLAT_EVENT_FAULT. Resuming a thread of a dead aspace does nothing. */
void plat_thread_resume(struct plat_thread *t, unsigned flags, uint64_t fpu_addr);
/* Lets a thread that is stopped at PLAT_EVENT_SYSCALL run, its call (regs.orig_rax and the argument registers, which PLAT_SET_REGS
 * in flags takes along when they were changed) being served by the backend. It ends in guest code, with tell in PLAT_EVENT_LOCAL; a
 * call that the backend can't serve comes again as PLAT_EVENT_SYSCALL with declined set. flags: PLAT_SET_* alone. */
void plat_thread_run_local(struct plat_thread *t, unsigned flags, bool tell);
/* Whether the backend serves some forms of call nr by itself. */
static inline bool plat_serves(const struct platform *p, uint64_t nr)
{
    return nr < PLAT_ASK_CALLS && (p->local_calls[nr / 64] >> (nr % 64) & 1);
}
/* Makes a running thread stop with PLAT_EVENT_KICK (or any other event that comes first) soon.
 * Does nothing for a stopped thread. A guest can delay it, so nobody waits for it without a limit. */
void plat_thread_kick(struct plat_thread *t);
/* Runs memory calls in the guest process of a stopped thread, in order, stopping at the first that fails;
 * results in calls[i].result (calls after a failed one have −ECANCELED). Parks. Return: 0 or −ESRCH. */
MUST_CHECK int plat_thread_hostcalls(struct plat_thread *t, struct plat_hostcall *calls, unsigned len);
/* Like the above for one call that runs on the next resume and whose result becomes regs.rax. */
void plat_thread_tail_hostcall(struct plat_thread *t, const struct plat_hostcall *call);
/* Runs a call left by plat_thread_tail_hostcall now (parks) and puts its result into regs.rax: needed before a
 * signal frame is built. Nothing to do when there is none. Return: 0 or −ESRCH. */
MUST_CHECK int plat_thread_flush_tail(struct plat_thread *t);
/* Copies between sentry and guest memory of t's process. copy_out may be deferred to the resume when
 * the backend has already found the range writable. Return: 0 or −EFAULT (nothing is said of how much was
 * copied). Sizes are the caller's to bound. */
MUST_CHECK int plat_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
MUST_CHECK int plat_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size);
/* Stores what copy_out has put off, and forgets copies of guest memory that came with the call: from here on the memory itself counts,
 * as for somebody who looks at it or changes it meanwhile. Return: 0 or −EFAULT (some of it could not be stored). */
MUST_CHECK int plat_thread_sync(struct plat_thread *t);
/* Reads or replaces the FPU state of a stopped thread, as PLAT_SAVE_FPU would write it (size: the platform's fpu_size).
 * Return: 0, −EFAULT, −ENODATA when the thread has none yet (it begins with the initial state). */
MUST_CHECK int plat_thread_fpu(struct plat_thread *t, void *p, uint64_t size, bool write);
/* Sets the heap's start and its limit (RLIMIT_DATA) for the brk calls that the backend serves itself. */
MUST_CHECK int plat_set_brk(struct plat_thread *t, uint64_t start, uint64_t limit_bytes);
/* mlockall(MCL_FUTURE): while it is on, the backend locks what brk adds to the heap, and answers no mmap by itself. Takes effect
 * when t is resumed; a forked child starts with it off. */
void plat_set_lock_future(struct plat_thread *t, bool on);
/* Whether the thread's code may read the time-stamp counter (it may at first; else RDTSC is a fault, also in the vDSO). Takes effect
 * when t is resumed. */
void plat_set_tsc(struct plat_thread *t, bool on);
/* Bounds the size of the address space as RLIMIT_AS does (UINT64_MAX: no bound); the backend's own mappings do not count.
 * Children made by plat_fork keep it. */
void plat_aspace_set_limit(struct plat_aspace *as, uint64_t bytes);
/* CPU time of the host thread in ns (guest code and stub, not the sentry's work for it). */
uint64_t plat_thread_cpu_ns(struct plat_thread *t);
/* Whether one of the calls above that park waits for guest code just now. A guest can let it wait for ever: only the end
 * of its process ends that for sure. */
bool plat_thread_waits(const struct plat_thread *t);
