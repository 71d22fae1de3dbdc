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
#include "sentry/kernel/signal.h"

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
struct pidns;
struct session;
struct tgroup;
struct tty;
struct utsns;

enum { TASK_COMM_LEN = 16, TASK_RLIMITS = 16 };

enum task_state {
    TASK_NEW,      /* not running yet */
    TASK_GUEST,    /* running guest code */
    TASK_KERNEL,   /* in a call or event, on its fiber */
    TASK_STOPPED,  /* group stop (job control) or ptrace stop, on its fiber */
    TASK_ZOMBIE,   /* exited, not yet waited for */
    TASK_DEAD,
};

/* Namespaces of a task; each member referenced. */
struct nsproxy {
    struct ref ref;
    struct mntns *mnt;
    struct utsns *uts;
    struct ipcns *ipc;
    struct netns *net;
    struct pidns *pid_for_children;
};

/* Numbers of one task, in every pid namespace from its own (index 0) outwards. */
enum { PIDNS_DEPTH_MAX = 32 };

/* A process. */
struct tgroup {
    struct ref ref;
    struct task *leader;       /* (k) */
    struct list threads;       /* (k) of task.thread_link */
    unsigned thread_count;     /* (k) live threads */
    struct container *container; /* (i) */
    struct tgroup *parent;     /* (k) not owned; the container's init or NULL at the top */
    struct list children;      /* (k) of sibling */
    struct list sibling;       /* (k) */
    struct pgrp *pgrp;         /* (k) process group, referenced */
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
    bool stopped, continued;   /* (k) job-control news for wait */
    bool stop_reported;
    int stop_signal;           /* (k) group stop in force, 0 none */
    bool zombie;               /* (k) all threads gone, waits to be reaped */
    bool child_subreaper;      /* (k) */
    bool did_exec;             /* (k) setpgid of a child after exec: EACCES */
    bool tty_given_up;         /* (k) TIOCNOTTY of a process that does not lead its session; fork copies it */
    int pdeath_signal;         /* of the leader thread (k) */
    int oom_score_adj;         /* (k) */
    uint64_t start_ns;         /* (i) CLOCK_MONOTONIC at creation (boottime for /proc stat) */
    uint64_t utime_ns, stime_ns, cutime_ns, cstime_ns; /* (k) of dead threads; of waited-for children */
    uint64_t min_flt, maj_flt, cmin_flt, cmaj_flt, nvcsw, nivcsw;
    struct waitq pidfd_wait;   /* (k) poll on pidfds */
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
    struct task *vfork_parent;   /* (k) the task whose host thread we borrow, until exec or exit */
    struct regs vfork_regs;      /* (k) parent's registers while lent */
    struct mm *mm;               /* (k) referenced; NULL after exit */
    struct fdtable *files;       /* (k) referenced */
    struct fsctx *fs;            /* (k) referenced */
    struct nsproxy *ns;          /* (k) referenced */
    struct pidns *pidns;         /* (i) its own, referenced */
    int32_t pids[PIDNS_DEPTH_MAX]; /* (i) number at each level: pids[0] = root namespace */
    unsigned pid_level;          /* (i) level of pidns */
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
    bool no_new_privs, keep_caps; /* (k) keep_caps lives in securebits as well: one truth there */
    int dumpable;                /* (k) moved with mm */
    int pdeath_signal;           /* (k) */
    uint64_t timer_slack_ns;
    uint64_t personality;
    /* exit */
    int exit_code;               /* (k) wait status of this thread */
    bool exiting;                /* (k) */
    bool died_host;              /* (k) host process is gone */
    /* accounting (k) */
    uint64_t start_ns, utime_ns, stime_ns;
    /* the call in progress, for strace, /proc and restart */
    int64_t sysno;               /* −1: none */
    uint64_t sysargs[6];
    bool in_syscall;
    struct ptrace_state *ptrace; /* (k) owned, on demand */
    struct seccomp_filter *seccomp; /* (k) guest filters, referenced */
    int nice;
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

/* Process groups and sessions (kernel/session.c). */
struct pgrp {
    struct ref ref;
    int32_t ids[PIDNS_DEPTH_MAX];
    unsigned level;
    struct session *session; /* (i) referenced */
    struct list members;     /* (k) of tgroup.pgrp_link */
};
struct session {
    struct ref ref;
    int32_t ids[PIDNS_DEPTH_MAX];
    unsigned level;
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

/* Kills: see kernel/signal.h. Fatal end of the whole process with this wait status. */
void tgroup_exit(struct tgroup *g, int wait_status);
