/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks (threads) and thread groups (processes) of the guests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "platform/platform.h"
#include "sentry/abi/uaddr.h"
#include "sentry/core/ctx.h"
#include "sentry/core/cred.h"
#include "sentry/core/ktimer.h"
#include "sentry/core/waitq.h"
#include "sentry/kernel/nsproxy.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/schedpolicy.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/taskkeys.h"
#include "sentry/mm/mempolicy.h"

struct container;
struct fdtable;
struct file;
struct fsctx;
struct ipcns;
struct itimers; /* kernel/itimer.h: per-process interval and POSIX timers */
struct kernel;
struct mm;
struct mntns;
struct netns;
struct sem_undo_list;
struct session;
struct tty;
struct utsns;

enum { TASK_COMM_LEN = 16, TASK_RLIMITS = 16 };

struct task;

enum task_state {
    TASK_NEW,      /* not running yet */
    TASK_GUEST,    /* running guest code */
    TASK_KERNEL,   /* in a call or event, on its fiber */
    TASK_STOPPED,  /* group stop (job control) or ptrace stop, on its fiber */
    TASK_ZOMBIE,   /* exited, not yet waited for (or a leader whose other threads live on) */
    TASK_DEAD,
};
enum { TASK_LOCAL_NO, TASK_LOCAL_RUN, TASK_LOCAL_TELL };

/* For /proc/PID/stat: 'R' running, 'S' sleeping, 'D' not interruptible, 'T' stopped, 'Z', 'X'. */
char task_state_char(const struct task *t);

/* A process. */
struct tgroup {
    struct ref ref;
    struct task *leader;       /* (k) referenced until reaped; stays as a zombie while other threads live */
    struct list threads;       /* (k) of task.thread_link: live threads, and the leader */
    unsigned thread_count;     /* (k) live threads */
    struct container *container; /* (i) */
    struct list container_link; /* (k) in container.groups until reaped */
    struct tgroup *parent;     /* (k) not owned; the container's init or NULL at the top */
    struct task *parent_task;  /* (k) not owned: the thread that made it, for PR_SET_PDEATHSIG; NULL when gone */
    struct list children;      /* (k) of sibling */
    struct list sibling;       /* (k) */
    struct pgrp *pgrp;         /* (k) process group, referenced; NULL once reaped */
    struct list pgrp_link;     /* (k) */
    struct waitq child_wait;   /* (k) wait4 of this process's threads */
    struct sigpending pending; /* (k) process-directed signals */
    struct sighand *sighand;   /* (k) shared by CLONE_SIGHAND; referenced */
    struct rlimit rlimits[TASK_RLIMITS]; /* (k) */
    struct itimers *timers;    /* (k) owned, on demand */
    int exit_signal;           /* (k) sent to the parent at death; 0 none */
    int exit_status;           /* (k) wait status of the whole process */
    bool group_exiting;        /* (k) exit_group or fatal signal under way */
    bool group_exec;           /* (k) one thread execs, the others are dying */
    struct task *exec_task;    /* (k) that thread, not owned */
    struct waitq exec_wait;    /* (k) it waits here for the others */
    bool stopped;              /* (k) every thread is stopped (WUNTRACED) */
    bool stop_reported;        /* (k) a wait has taken that news */
    bool continued;            /* (k) news of a SIGCONT for WCONTINUED */
    int stop_signal;           /* (k) group stop in force, 0 none */
    unsigned stop_count;       /* (k) threads that still have to stop */
    struct waitq stop_wait;    /* (k) stopped threads wait here */
    bool zombie;               /* (k) all threads gone, waits to be reaped */
    unsigned dead_threads;     /* (k) threads that have exited and wait for their tracers */
    unsigned execs;            /* (k) execs under way whose rights are settled: nobody may attach */
    struct waitq exec_done;    /* (k) who wants to waits here */
    bool reaped;               /* (k) */
    unsigned forks_in_flight;  /* (k) clones whose child is not visible yet */
    sigset_k fork_missed;      /* (k) signals to whole groups that such a child did not get */
    bool unkillable;           /* (k) pid 1 of its namespace: default actions do not apply */
    struct ktimer kill_timer;  /* (k) for threads that resist the end of the process */
    unsigned kill_tries;       /* (k) how often it fired */
    void (*on_exit)(void *arg, int wait_status); /* (k) told when the process is gone: container init, exec */
    void *on_exit_arg;
    bool child_subreaper;      /* (k) */
    bool did_exec;             /* (k) setpgid of a child after exec: EACCES */
    bool tty_given_up;         /* (k) TIOCNOTTY of a process that does not lead its session; fork copies it */
    int oom_score_adj;         /* (k) */
    uint64_t start_ns;         /* (i) CLOCK_MONOTONIC at creation (boottime for /proc stat) */
    uint64_t utime_ns, stime_ns, cutime_ns, cstime_ns; /* (k) of dead threads; of waited-for children */
    uint64_t min_flt, maj_flt, cmin_flt, cmaj_flt, nvcsw, nivcsw;
    uint64_t max_rss_kb, cmax_rss_kb;
    struct sem_undo_list *sem_undos; /* (k) ipc/sysv_sem.c; owned, on demand */
    struct waitq pidfd_wait;   /* (k) poll on pidfds */
    struct coredump *coredump; /* (k) kernel/coredump.h: of the thread that writes one just now; not owned */
};

/* A thread. */
struct task {
    struct ctx ctx;              /* (k) must stay first: ctx_task() */
    struct ref ref;
    enum task_state state;       /* (k) */
    struct kernel *kernel;       /* (i) */
    struct tgroup *group;        /* (i) referenced */
    struct list thread_link;     /* (k) */
    struct plat_thread *thread;  /* (k) owned; NULL while lent to a vfork child, and after exit */
    struct plat_event event;     /* (k) the event being handled */
    unsigned resume_flags;       /* (k) PLAT_* for the next resume, see task_run.h */
    uint64_t fpu_addr;           /* (k) with PLAT_SAVE_FPU or PLAT_LOAD_FPU in resume_flags */
    struct frame_undo *undo;     /* (k) owned: the state before the last signal frame, see sigframe_x86_64.h */
    bool handling;               /* (k) a fiber is at work for this task */
    void (*first_fn)(struct task *t); /* (k) see task_run_first */
    void *first_arg;             /* (k) for first_fn */
    bool stop_pending;           /* (k) has to take part in the group stop */
    bool stop_counted;           /* (k) and is one of stop_count */
    struct task *vfork_child;    /* (k) not owned: who borrows our host thread */
    struct task *vfork_parent;   /* (k) the task whose host thread we borrow, until exec or exit; referenced */
    struct regs vfork_regs;      /* (k) our registers while our thread is lent */
    struct task *vfork_waiter;   /* (k) parent that waits in vfork until we exec or exit; referenced */
    struct mm *mm;               /* (k) referenced; NULL after exit */
    struct fdtable *files;       /* (k) referenced */
    struct fsctx *fs;            /* (k) referenced */
    struct nsproxy *ns;          /* (k) referenced */
    struct pidns *pidns;         /* (i) its own, referenced */
    struct pid *pid;             /* (k) referenced until released; changes hands in exec of a non-leader */
    char comm[TASK_COMM_LEN];    /* (k) */
    /* signals */
    struct sigpending pending;   /* (k) thread-directed */
    sigset_k blocked;            /* (k) */
    sigset_k saved_blocked;      /* (k) restored after the handler's frame is set (sigsuspend, ppoll …) */
    bool restore_blocked;        /* (k) */
    struct sigaltstack_k altstack; /* (k) */
    struct waitq signal_wait;    /* (k) signalfd, sigtimedwait */
    /* restart of interrupted calls with a time limit */
    int64_t (*restart_fn)(struct task *t); /* (k) for restart_syscall */
    uint64_t restart_deadline_ns;
    uint64_t restart_args[6];
    /* thread library */
    uaddr_t clear_child_tid;     /* (k) */
    uaddr_t robust_list;         /* (k) */
    uint64_t robust_list_len;
    uaddr_t rseq;                /* (k) */
    uint32_t rseq_len, rseq_sig;
    bool vfork_done;             /* (k) for the parent's wait */
    struct waitq vfork_wait;     /* (k) */
    /* prctl state */
    bool no_new_privs;           /* (k) PR_SET_KEEPCAPS is a bit of cred.securebits, dumpable is the mm's */
    int pdeath_signal;           /* (k) */
    uint64_t timer_slack_ns, timer_slack_default_ns;
    uint64_t personality;
    uint8_t mce_kill;            /* (k) PR_MCE_KILL_* */
    bool no_tsc;                 /* (k) PR_TSC_SIGSEGV */
    /* exit */
    int exit_code;               /* (k) wait status of this thread */
    bool exiting;                /* (k) */
    bool acct_passed;            /* (k) kernel/acct.c has seen its end */
    bool died_host;              /* (k) host process is gone */
    int fault_trapno;            /* (k) last fault, for signal frames */
    uint64_t fault_error, fault_addr;
    /* accounting (k) */
    uint64_t start_ns, utime_ns, stime_ns;
    uint64_t cpu_base_ns;        /* of the host thread's time, what is not ours or is in utime_ns already */
    uint64_t nvcsw, nivcsw, min_flt, maj_flt;
    bool nproc_uncounted;
    /* the call in progress, for strace, /proc and restart */
    int64_t sysno;               /* −1: none */
    uint64_t sysargs[6];
    bool in_syscall;
    unsigned local;              /* (k) TASK_LOCAL_*: the call in progress is the backend's to serve */
    void *local_trace;           /* (k) owned by syscalls/dispatch.c: strace's state of a call that the backend serves */
    bool restart_off;            /* (k) the call set all registers itself (rt_sigreturn, execve) */
    struct ptrace_state *ptrace; /* (k) owned, on demand: kernel/ptrace.h */
    struct list tracees;         /* (k) of ptrace_state.link: whom this task traces */
    struct seccomp_filter *seccomp; /* (k) guest filters, the youngest, referenced; see guest_seccomp.h */
    unsigned seccomp_mode;       /* (k) SECCOMP_MODE_* */
    int nice;                    /* (k) −20 … 19 */
    struct taskkeys keys;        /* (k) keyrings */
    struct schedpolicy sched;    /* (k) as asked for; no effect on the host */
    uint32_t ioprio;             /* (k) */
    struct mempolicy mempolicy;  /* (k) set_mempolicy */
    uint64_t affinity[16];       /* (k) CPU mask */
};

static inline struct task *ctx_task(struct ctx *ctx)
{
    return container_of(ctx, struct task, ctx);
}
/* Return: the task behind ctx, or NULL for the sentry's own contexts and for NULL. */
static inline struct task *ctx_task_or_null(struct ctx *ctx)
{
    return ctx && ctx->is_task ? ctx_task(ctx) : NULL;
}

/* Return: the task whose fiber runs, or NULL. */
struct task *task_current(void);
struct task *task_ref(struct task *t);
void task_unref(struct task *t);

/* Numbers as seen from a namespace: 0 when not visible there. */
int task_tid_in(const struct task *t, const struct pidns *ns);
int tgroup_pid_in(const struct tgroup *g, const struct pidns *ns);
/* As seen by viewer (getpid, siginfo, SCM_CREDENTIALS …). */
int task_tid_for(const struct task *t, const struct task *viewer);
int tgroup_pid_for(const struct tgroup *g, const struct task *viewer);
/* Return: referenced task or NULL. */
MUST_CHECK struct task *task_find(struct pidns *ns, int tid);
/* By the pid of its leader. Return: referenced or NULL. */
MUST_CHECK struct tgroup *tgroup_find(struct pidns *ns, int pid);
struct tgroup *tgroup_ref(struct tgroup *g);
void tgroup_unref(struct tgroup *g);
/* Visits live threads: for (t = tgroup_first(g); t; t = tgroup_next(g, t)). */
struct task *tgroup_first(const struct tgroup *g);
struct task *tgroup_next(const struct tgroup *g, const struct task *t);

/* A fresh task with its own (group NULL) or a given process, not visible to anybody yet. All other members are the
 * maker's to set. Return: 0, −ENOMEM, −EAGAIN. */
MUST_CHECK int task_new(struct kernel *kernel, struct tgroup *group, struct pidns *ns, const struct pid_wish *wish,
                        struct task **ret_task);
/* Makes it visible: pid table, thread list, and for a new process parent's children and its process group. */
void task_publish(struct task *t, struct tgroup *parent);
/* Undoes task_new for a task that was never published. */
void task_abandon(struct task *t);
/* Takes an exited thread out of the tables; its number is free again. */
void task_release(struct task *t);
/* A zombie process is gone for good: frees its numbers and its places. */
void tgroup_release(struct tgroup *g);
MUST_CHECK int tgroup_new(struct container *c, struct tgroup **ret_group);
/* Replaces t's credentials (consumes cred): counters of processes per user and dumpable follow. */
void task_set_cred(struct task *t, OWNS const struct cred *cred);
/* CPU time used so far in guest code, by a live or an ended thread / by all threads ever of a process. */
uint64_t task_cpu_ns(const struct task *t);
uint64_t tgroup_cpu_ns(const struct tgroup *g);
/* Adds what t's host thread has used by now to utime_ns; called before the thread changes hands or ends. */
void task_account_cpu(struct task *t);
/* Whether a process other than t's own uses its memory (vfork, CLONE_VM). */
bool task_mm_is_shared(const struct task *t);
/* Whether call nr comes here before the backend may serve it. */
bool task_asks(const struct task *t, uint64_t nr);
/* Sets the name that ps and prctl show; cut to TASK_COMM_LEN − 1 bytes. */
void task_set_comm(struct task *t, const char *name);

/* Process groups and sessions (kernel/session.c). */
struct pgrp {
    struct ref ref;
    struct pid *pid;         /* (i) referenced */
    struct session *session; /* (i) referenced */
    struct list members;     /* (k) of tgroup.pgrp_link */
};
struct session {
    struct ref ref;
    struct pid *pid;       /* (i) referenced */
    struct tgroup *leader; /* (k) not owned; NULL when it has exited */
    struct tty *tty;       /* (k) controlling terminal, referenced; set and cleared by the tty layer */
    struct pgrp *tty_old_pgrp; /* (k) foreground group of a terminal that hung up, until the leader exits; referenced */
};
/* The exit of a session's leader, called while it is still the leader and in its group: hangs up the controlling
 * terminal or takes it away from the session, and tells the foreground group (SIGHUP, SIGCONT). Does not park.
 * Harmless for any other process. Implemented by fs/tty_jobctl.c. Source: credentials(7), setsid(2). */
void tty_leader_exit(struct tgroup *leader);
int pgrp_id_in(const struct pgrp *g, const struct pidns *ns);
int session_id_in(const struct session *s, const struct pidns *ns);
struct pgrp *pgrp_ref(struct pgrp *g);
void pgrp_unref(struct pgrp *g);
struct session *session_ref(struct session *s);
void session_unref(struct session *s);
MUST_CHECK struct pgrp *pgrp_find(struct pidns *ns, int id); /* referenced or NULL */
bool pgrp_is_orphaned(const struct pgrp *g);
/* New session and group led by g (setsid without its checks, a container's init). Return: 0 or −ENOMEM. */
MUST_CHECK int session_start(struct tgroup *g);
MUST_CHECK int pgrp_new(struct pid *pid, struct session *session, struct pgrp **ret_pgrp);
/* g moves to a group. Consumes group. */
void pgrp_join(struct tgroup *g, OWNS struct pgrp *group);
/* g exits (exiting), or has just lost the given parent: when its group thereby becomes an orphan with stopped members,
 * they get SIGHUP and SIGCONT. Source: setpgid(2), POSIX XBD 3.264. */
void pgrp_check_orphaned(struct tgroup *g, struct tgroup *parent, bool exiting);
MUST_CHECK int session_setsid(struct task *t);                    /* session id, −EPERM, −ENOMEM */
MUST_CHECK int session_setpgid(struct task *t, int pid, int pgid);
MUST_CHECK int session_getpgid(struct task *t, int pid);
MUST_CHECK int session_getsid(struct task *t, int pid);

/* Kills: see kernel/signal.h. Fatal end of the whole process with this wait status; the first one counts. Threads leave
 * in their own time: from the calling fiber on, at their next event, or when interrupted. */
void tgroup_exit(struct tgroup *g, int wait_status);
/* The first half of it: the others are told to leave, but none of them is made to, and dumper goes on. */
void tgroup_begin_exit(struct tgroup *g, int wait_status, struct task *dumper);
void tgroup_force_exit(struct tgroup *g);
