/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing of tasks by tasks: who traces whom, stops, and what a tracer wants to be told. Source: ptrace(2). */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/regs.h"
#include "sentry/core/waitq.h"

struct cred;
struct task;
struct tgroup;

/* The numbers of ptrace's interface. */
enum {
    PT_EVENT_FORK = 1,
    PT_EVENT_VFORK = 2,
    PT_EVENT_CLONE = 3,
    PT_EVENT_EXEC = 4,
    PT_EVENT_VFORK_DONE = 5,
    PT_EVENT_EXIT = 6,
    PT_EVENT_SECCOMP = 7,
    PT_EVENT_STOP = 128,
};
enum {
    PT_O_TRACESYSGOOD = 1,
    PT_O_EXITKILL = 1 << 20,
    PT_O_SUSPEND_SECCOMP = 1 << 21,
    PT_O_MASK = 0xff | PT_O_EXITKILL | PT_O_SUSPEND_SECCOMP,
};
enum { PT_MSG_SYSCALL_ENTRY = 1, PT_MSG_SYSCALL_EXIT = 2 };
enum { PT_DEBUG_ADDRS = 4, PT_DEBUG_REGS = 8 };

/* How a tracer lets its tracee go on. */
enum ptrace_how { PTRACE_HOW_CONT, PTRACE_HOW_SYSCALL, PTRACE_HOW_STEP, PTRACE_HOW_SYSEMU, PTRACE_HOW_SYSEMU_STEP };

/* Made when a task is first traced, freed with the task. */
struct ptrace_state {
    struct task *owner;    /* (i) the task whose state this is */
    struct task *tracer;   /* (k) not owned: it lets go when it exits; NULL: not traced */
    struct list link;      /* (k) in tracer->tracees */
    const struct cred *cred; /* (k) referenced: the tracer's when it attached, for exec */
    uint32_t options;      /* (k) PT_O_* */
    bool seized;           /* (k) by PTRACE_SEIZE */
    bool trap_stop;        /* (k) is to stop: PTRACE_INTERRUPT, or a group stop */
    bool trap_notify;      /* (k) is to say that a group stop has begun or ended */
    bool listening;        /* (k) PTRACE_LISTEN: in its stop, but of no interest to the tracer until there is news */
    bool stopped;          /* (k) in a stop of ptrace's, parked on wait */
    bool resumed;          /* (k) may leave it */
    bool has_info;         /* (k) info is the signal of this stop */
    bool delivers;         /* (k) in the stop before a signal's delivery */
    enum ptrace_how how;   /* (k) what it is to stop for */
    bool forced_tf;        /* (k) the trap flag in its registers is ours, not its own */
    int code;              /* (k) of the stop, for wait: signal and event << 8; 0 once taken */
    int signo;             /* (k) the signal that the tracer lets it go on with, 0 none */
    int stop_signo;        /* (k) signal of the group stop that it last took part in */
    uint64_t message;      /* (k) PTRACE_GETEVENTMSG */
    siginfo_t info;        /* (k) */
    struct waitq wait;     /* (k) */
    uint64_t debug[PT_DEBUG_REGS];       /* (k) as the tracer set them; see ptrace_debug.c */
    uint64_t debug_seen[PT_DEBUG_ADDRS]; /* (k) what was at the watched addresses */
};

/* Return: the state of a task that is traced now, else NULL. */
struct ptrace_state *ptrace_of(const struct task *t);
static inline bool ptrace_traced(const struct task *t)
{
    return ptrace_of(t) != NULL;
}
/* Whether t waits in a stop of ptrace's. */
bool ptrace_is_stopped(const struct task *t);
/* Whether the tracer is in another process than the parent. */
bool ptrace_is_foreign(const struct task *t);
/* Whether t has to come out of guest code or an interruptible wait for its tracer. */
bool ptrace_wants_stop(const struct task *t);
/* Whether t's calls, also those that the backend serves, are to come to the sentry. */
bool ptrace_sees_calls(const struct task *t);
/* PTRACE_O_SUSPEND_SECCOMP is in force: t's own filters do not count. */
bool ptrace_seccomp_suspended(const struct task *t);
/* Whether a program of t's may gain rights although t is traced. */
bool ptrace_tracer_is_able(const struct task *t);

/* Makes room for the state of t. Return: 0 or −ENOMEM. */
MUST_CHECK int ptrace_prepare(struct task *t);
void ptrace_free(struct task *t);

/* PTRACE_TRACEME; PTRACE_ATTACH and PTRACE_SEIZE (data: options). Attach parks. Return: 0, −EPERM, −ESRCH, −EIO, −EINVAL, −ENOMEM,
 * −ERESTARTNOINTR. */
MUST_CHECK int ptrace_traceme(struct task *t);
MUST_CHECK int ptrace_attach(struct task *t, struct task *target, bool seize, uint64_t addr, uint64_t data);
/* Whether the options are ones that t may ask for. Return: 0, −EINVAL, −EPERM. */
MUST_CHECK int ptrace_check_options(const struct task *t, uint64_t options);
/* PTRACE_DETACH of a stopped tracee with a signal. */
void ptrace_detach(struct task *t, int signo);
/* Lets a stopped tracee go on. */
void ptrace_resume(struct task *t, enum ptrace_how how, int signo);
MUST_CHECK int ptrace_interrupt(struct task *t);
MUST_CHECK int ptrace_listen(struct task *t);

/* ---- what the kernel tells: all of it on t's own fiber, and all of it may park ---- */

/* A group stop begins or ends, or the tracer wants t to stop: t stops. */
void ptrace_stop_for_job(struct task *t);
/* t is about to be delivered signo. Return: the signal to deliver, perhaps another one; 0: none. */
int ptrace_stop_for_signal(struct task *t, int signo, siginfo_t *info);
/* Return: whether the call is to be made; else the result is in t's registers. Number and arguments may be others afterwards. */
bool ptrace_syscall_enter(struct task *t);
void ptrace_syscall_exit(struct task *t);
/* Whether event is wanted; stops for it. Return: whether it was. */
bool ptrace_event_wanted(const struct task *t, int event);
bool ptrace_event(struct task *t, int event, uint64_t message);
/* A seccomp filter said SECCOMP_RET_TRACE with data. Return: whether there is a tracer that has been asked: number, arguments and
 * result are those in the registers now, and a number of −1 means no call. */
bool ptrace_event_seccomp(struct task *t, uint16_t data);
/* A new program: old_tid is what t's number was for its tracer before. */
void ptrace_event_exec(struct task *t, int old_tid);
void ptrace_event_exit(struct task *t);
/* A signal's frame was just built while t is stepped. */
void ptrace_stepped_into_handler(struct task *t);

/* ---- from the lives of tasks ---- */

/* Which event, if any, a clone with these flags is (0: none). */
int ptrace_clone_event(const struct task *t, uint64_t flags, int exit_signal);
/* The child (prepared) is traced by its maker's tracer from the start. */
void ptrace_follow(const struct task *t, struct task *child);
/* t will trace nobody any more. */
void ptrace_exit_tracer(struct task *t);
/* t is dead: tells its tracer. Return: true when the tracer does not care. */
bool ptrace_notify_exit(struct task *t);
/* A dead tracee was waited for, or goes silently. */
void ptrace_unlink(struct task *t);
/* A stop or continuation of t's process is under way: says so to a tracer that listens. */
void ptrace_trap_notify(struct task *t);

/* ---- registers: of a stopped t ---- */

enum { PTRACE_USER_REGS = 27 };
/* struct user_regs_struct as words. Return: 0 or −EIO for a value that it can't have. */
void ptrace_get_regs(const struct task *t, uint64_t ret_words[PTRACE_USER_REGS]);
MUST_CHECK int ptrace_set_reg(struct task *t, unsigned index, uint64_t value);
/* The single-step trap on or off for the next resumption, by what the tracer and its watchpoints want. */
void ptrace_arm_step(struct task *t);
void ptrace_disarm_step(struct task *t);
