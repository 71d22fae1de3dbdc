/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: sets, queues, dispositions, sending. Delivery is in signal_deliver.h. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/abi/uaddr.h"

struct cred;
struct pgrp;
struct task;
struct tgroup;

enum { NSIG_K = 64, SIGRT_FIRST = 32 };

/* Kernel signal set: bit n−1 is signal n. */
typedef uint64_t sigset_k;
#define SIGBIT(n) (1ULL << ((n)-1))

/* A set pointer to siginfo uses the host's siginfo_t: same 128-byte ABI. */
struct sigqueue {
    struct list link;
    siginfo_t info;
    bool charged;            /* counts on RLIMIT_SIGPENDING of quota_uid */
    uint32_t quota_uid;
    bool preallocated;       /* belongs to a POSIX timer: not freed, may be requeued with an overrun */
};

struct sigpending {
    sigset_k set;      /* (k) */
    struct list queue; /* (k) of sigqueue.link */
};

struct sigaction_k { /* the kernel's layout of struct sigaction on x86-64 */
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    sigset_k mask;
};

struct sighand {
    struct ref ref;
    struct sigaction_k actions[NSIG_K]; /* (k) */
    sigset_k plain_default; /* (k) see sighand_publish */
};

struct sigaltstack_k {
    uint64_t sp;
    int32_t flags;
    uint32_t pad;
    uint64_t size;
};

/* Signals by what they do by default. */
#define SIGSET_STOP (SIGBIT(SIGSTOP) | SIGBIT(SIGTSTP) | SIGBIT(SIGTTIN) | SIGBIT(SIGTTOU))
#define SIGSET_IGNORE (SIGBIT(SIGCONT) | SIGBIT(SIGCHLD) | SIGBIT(SIGWINCH) | SIGBIT(SIGURG))
#define SIGSET_CORE                                                                                \
    (SIGBIT(SIGQUIT) | SIGBIT(SIGILL) | SIGBIT(SIGTRAP) | SIGBIT(SIGABRT) | SIGBIT(SIGFPE) |       \
     SIGBIT(SIGSEGV) | SIGBIT(SIGBUS) | SIGBIT(SIGSYS) | SIGBIT(SIGXCPU) | SIGBIT(SIGXFSZ))
/* Never blocked, caught or ignored. */
#define SIGSET_UNBLOCKABLE (SIGBIT(SIGKILL) | SIGBIT(SIGSTOP))

MUST_CHECK int sighand_new(struct sighand **ret_sighand);
MUST_CHECK int sighand_dup(const struct sighand *s, struct sighand **ret_sighand);
struct sighand *sighand_ref(struct sighand *s);
void sighand_unref(struct sighand *s); /* NULL is fine */
/* exec, CLONE_CLEAR_SIGHAND: handlers become defaults; ignored signals stay ignored unless all is set. */
void sighand_reset(struct sighand *s, bool all);

void sigpending_init(struct sigpending *p);
void sigpending_flush(struct sigpending *p); /* frees everything queued */
void sigpending_flush_sigs(struct sigpending *p, sigset_k set);

/* Info for kernel-made and kill(2)-made signals. */
void siginfo_kernel(siginfo_t *info, int signo, int code);
void siginfo_user(siginfo_t *info, int signo, int code, int pid, uint32_t uid);
/* The number of from's user where to is. */
uint32_t siginfo_uid(const struct task *from, const struct task *to);

/* Queues info for one thread / for a process / for each process of a group. No permission check. Wakes or kicks
 * a thread that can take it; SIGKILL, stop and continue signals act at once as on Linux. info->si_signo is the signal.
 * Return: 0, or −EAGAIN when a realtime signal does not fit RLIMIT_SIGPENDING. */
int signal_send_task(struct task *t, const siginfo_t *info);
int signal_send_group(struct tgroup *g, const siginfo_t *info);
int signal_send_pgrp(struct pgrp *p, const siginfo_t *info);
/* Queues a caller-owned entry (POSIX timers). Return: 1 when it was already queued (an overrun), else 0. */
int signal_send_prealloc(struct tgroup *g, struct task *t, struct sigqueue *q);
/* For a fault: unblocks and resets a blocked or ignored signal first, so that it can't be missed. */
void signal_force(struct task *t, const siginfo_t *info);
/* Whether sender (with its credentials) may signal target: kill(2). Return: 0 or −EPERM. */
MUST_CHECK int signal_may_send(const struct task *sender, const struct task *target, int signo);

/* Makes t look at what is new: kicks it out of guest code, or ends its sleep if a signal may. */
void task_kick(struct task *t);
/* SIGCONT's effect on stopped threads, without the signal. */
void signal_continue(struct tgroup *g);
/* Recomputes ctx.signal_pending / fatal_pending after a change of masks, queues or dispositions. */
void signal_recalc(struct task *t);
/* The blocked mask of t, which a thread in guest code may change by itself. t->blocked is right on t's own fiber. */
sigset_k signal_blocked(struct task *t);
/* t has just stopped: takes over what it made of its mask while it ran. */
void signal_import_blocked(struct task *t);
/* What t was told about itself and may answer without asking (plat_shared) is not true any more, or it has a new host
 * thread. task_publish_group: for all threads of the process. */
void task_publish_self(struct task *t);
void task_publish_group(struct tgroup *g);
/* Changes the blocked mask of t (SIGKILL and SIGSTOP never get blocked) and recalculates. */
void signal_set_blocked(struct task *t, sigset_k set);
/* Takes the next signal of set ⊆ pending (thread first, then process). Return: number, 0 none. */
int signal_dequeue(struct task *t, sigset_k set, siginfo_t *ret_info);
/* Set of pending signals of t incl. its process's. */
sigset_k signal_pending_set(const struct task *t);
/* sigaction(2) for one signal: stores act when not NULL, gives back the old one when ret_old is not NULL.
 * Return: 0 or −EINVAL. */
MUST_CHECK int signal_set_action(struct task *t, int signo, const struct sigaction_k *act,
                                 struct sigaction_k *ret_old);
/* Whether the disposition ignores signo (explicitly or by default). */
bool signal_ignored(const struct task *t, int signo);

