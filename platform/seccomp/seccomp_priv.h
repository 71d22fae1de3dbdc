/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the seccomp backend, shared by plat_seccomp.c and doorbell.c. */
#pragma once

#include <linux/seccomp.h>
#include <sys/types.h>

#include "platform/base/list.h"
#include "platform/platform.h"
#include "platform/seccomp/plat_seccomp.h"
#include "platform/seccomp/stub_abi.h"

enum {
    SCP_HASH = 1024,
    SCP_CLONE_TRIES = 64, /* of one clone call that signals interrupt */
    SCP_SPAWN_TRIES = 64, /* of getting a process from the pool while others take them, or they die */
};

enum scp_state {
    SCP_UNBORN,  /* object made, host thread not heard of yet */
    SCP_HELD,    /* its BIRTH is unanswered: no mailbox in the process yet */
    SCP_STOPPED, /* its doorbell is unanswered */
    SCP_RUNNING,
    SCP_ENDED,   /* told to exit, or a leader parked until its process goes */
};

struct scp_aspace {
    struct plat_aspace base;
    struct list link;    /* (k) of scp.aspaces */
    struct list threads; /* (k) of scp_thread.sibling */
    unsigned live;       /* (k) threads not ended */
    int pidfd;           /* (k) −1 before birth and after death */
    void *watch;         /* (k) of pidfd */
    bool provisional;    /* (k) host_pid and pidfd come from the guest: good for learning of a death, no more */
    bool threaded;       /* (k) has or had more than one thread */
    bool killed;         /* (k) by the sentry's wish: nobody need be told */
    bool stray_risk;     /* (k) it may have made processes that nobody knows of */
    uint64_t slots_busy[STUB_SLOTS_MAX / 64], slots_mapped[STUB_SLOTS_MAX / 64]; /* (k) */
};

struct scp_thread {
    struct plat_thread base;
    struct list hash_link;  /* (k) by tid */
    struct list sibling;    /* (k) */
    struct list token_link; /* (k) births awaited, or the pool */
    enum scp_state state;   /* (k) */
    pid_t tid;              /* (k) host thread, 0 = unborn */
    unsigned slot;
    struct stub_mailbox *mbox; /* (i) our mapping */
    int mbox_fd;            /* (k) until it has been injected */
    uint64_t token;         /* (k) of the birth awaited */
    uint64_t seq;           /* (k) last doorbell seen */
    uint64_t notif_id;      /* (k) unanswered notification, 0 = none */
    bool replied;           /* (k) seq was answered with reply; an echo of it gets it again */
    int64_t reply;          /* (k) */
    bool birth;             /* (k) seq is that of its BIRTH */
    bool answer_due;        /* (k) the answer waits for the echo: the notification was restarted meanwhile */
    bool tail_due;          /* (k) due_tail is part of it */
    struct plat_hostcall due_tail; /* (k) its fd is owned */
    int send_fd;            /* (k) goes along with the answer, which is its number there; borrowed, −1 none */
    struct scp_send *send;  /* (k) the answer is under way on another thread */
    bool released;          /* (k) told to end its host thread, or a leader parked for good */
    uint64_t end_clear_tid; /* (k) for the release */
    uint64_t await_op;      /* (k) the only operation that it may ring next; 0 = any event of guest code */
    uint64_t clone_open;    /* (k) flags with which a clone call may pass; 0 none */
    unsigned clone_passed;  /* (k) clone calls let through since clone_open was set */
    struct scp_thread *clone_child; /* (k) what clone_open is for */
    bool zygote_wanted;     /* (k) the zygote has not been told yet */
    bool from_zygote;       /* (i) */
    bool in_pool;           /* (k) */
    bool warming;           /* (k) on its way into the pool */
    bool death_told;        /* (k) */
    bool op_done;           /* (k) CALLS_DONE or CLONE_DONE came */
    /* What the stub has marshalled for the call in progress, copied and bounded; (k) */
    unsigned in_len, probe_len, out_len;
    uint32_t data_used;     /* bytes of the mailbox's data area in use */
    struct stub_range in[STUB_IN_MAX], probe[STUB_PROBE_MAX], out[STUB_OUT_MAX];
    void *fiber;            /* (k) waits in hostcalls, clone or for a birth */
    uint64_t fpu_at;        /* (k) where its FPU state is while it is stopped, in its slot; 0: none */
    struct list look_link;  /* (k) of scp.looked_at */
    bool local;             /* (k) it was told to serve the call in base.regs itself, and has not come back yet */
    bool posted;            /* (k) seq came as a post, which is not answered */
    unsigned quick;         /* (k) so many times in a row it came back soon after an answer */
    uint64_t answered_ns;   /* (k) when it was last answered */
};

struct scp {
    struct platform base;
    struct plat_seccomp_config config; /* (i) */
    int listener;
    void *watch;
    uint64_t zone;
    pid_t zygote_pid;
    int zygote_pidfd;
    void *zygote_watch;
    uint64_t zygote_notif; /* (k) waiting for work, 0 = busy */
    uint64_t zygote_seq, zygote_reply;
    bool zygote_replied, zygote_clone_open;
    bool dead;             /* (k) the zygote or the listener is gone */
    unsigned slow_sends;   /* (k) so many descriptors more are handed over from another thread */
    bool refill_off;       /* (k) the host refused a process: no more for the pool until one ends */
    bool fails_told;       /* (k) the refusal is in the log */
    struct list aspaces;   /* (k) all that are not freed, of scp_aspace.link */
    struct list hash[SCP_HASH];
    struct list births;    /* (k) awaited, of token_link */
    struct list pool;      /* (k) born, unclaimed */
    unsigned pool_len, spawning; /* (k) */
    struct list looked_at; /* (k) threads whose posts are looked for, of scp_thread.look_link */
    unsigned looked_len;   /* (k) */
    uint64_t look_until_ns; /* (k) */
    unsigned look_pause, look_paused; /* (k) so many answers pass before the next look, after looks in vain */
    bool look_off;         /* (i) one CPU: whoever looks keeps what it looks for from coming */
    bool sync_wake;        /* (k) the listener wakes on its own CPU */
    struct list spawn_waiters; /* (k) fibers that wait for the pool: of scp_wait.link */
};

struct scp_wait {
    struct list link;
    void *fiber;
    bool failed;
};

static inline struct scp *scp_of(struct platform *p)
{
    return container_of(p, struct scp, base);
}
static inline struct scp_aspace *scp_aspace_of(struct plat_aspace *as)
{
    return container_of(as, struct scp_aspace, base);
}
static inline struct scp_thread *scp_thread_of(struct plat_thread *t)
{
    return container_of(t, struct scp_thread, base);
}

/* doorbell.c */
void scp_listener_ready(void *arg);
/* Answers the thread's notification with value; kept for echoes. */
void scp_reply(struct scp *p, struct scp_thread *t, int64_t value);
void scp_zygote_spawn(struct scp *p);
/* Ends t's process for something that the stub never does. Its threads learn of it as of any death from outside. */
void scp_violation(struct scp_thread *t, const char *what);
/* Ends the process of a host thread that no object stands for. */
void scp_kill_tid(pid_t tid);
/* A doorbell, or a post (id 0), of t. */
void scp_take(struct scp *p, struct scp_thread *t, uint64_t id, uint64_t seq, uint64_t op);
/* look.c */
/* Notes which CPUs there are and how the listener wakes. */
void scp_look_init(struct scp *p);
bool scp_look(void *arg);
/* t has come back: learns how soon. */
void scp_look_came(struct scp *p, struct scp_thread *t);
/* t is about to be answered: looks for its next post if that is likely to come soon. */
void scp_look_for(struct scp *p, struct scp_thread *t);
/* The answer to a post. */
void scp_look_reply(struct scp_thread *t, int64_t value);
/* The answer to t's post, if it came so, needs a notification. */
void scp_look_ring(struct scp_thread *t);
void scp_look_forget(struct scp *p, struct scp_thread *t);
/* guestmem.c */
void scp_guestmem_import(struct scp_thread *t);
void scp_guestmem_reset(struct scp_thread *t);
int scp_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
int64_t scp_copy_in_some(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
int scp_sync(struct plat_thread *t);
int scp_fpu(struct plat_thread *t, void *p, uint64_t size, bool write);
int scp_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size);
void scp_aspace_set_limit(struct plat_aspace *as, uint64_t bytes);
/* strays.c: what the host's procfs says of processes that the sentry was not told of. */
/* Whether the host knows of a child (flags STUB_CLONE_FORK) or a sibling (STUB_CLONE_THREAD) of t that has no object.
 * Without a procfs the answer is no. */
bool scp_has_stray(struct scp *p, const struct scp_thread *t, uint64_t flags);
/* Ends orphaned processes that have no object. */
void scp_kill_strays(struct scp *p);
/* Return: object of the host thread, or NULL. */
struct scp_thread *scp_find(struct scp *p, pid_t tid);
/* plat_seccomp.c */
/* Notes the host process of as and watches for its end. Return: 0, or −errno when it is gone or can't be watched. */
int scp_aspace_attach(struct scp *p, struct scp_aspace *as, pid_t pid);
void scp_aspace_detach(struct scp *p, struct scp_aspace *as);
/* Sends SIGKILL to the process of as, if it is known for sure. */
void scp_aspace_signal(const struct scp_aspace *as);
void scp_aspace_kill(struct plat_aspace *as);
void scp_aspace_died(struct scp *p, struct scp_aspace *as);
void scp_thread_free(struct scp_thread *t);
void scp_drop_tail(struct scp_thread *t);
struct scp_thread *scp_thread_alloc(struct scp *p, struct scp_aspace *as, unsigned slot);
struct scp_aspace *scp_aspace_alloc(struct scp *p);
/* Ends the host thread of an object that waits in its doorbell for good. */
void scp_thread_release(struct scp *p, struct scp_thread *t);
/* send.c */
/* Answers a stopped thread, now or at the echo of its notification; a held one gets its mailbox with the answer. */
void scp_answer(struct scp *p, struct scp_thread *t);
/* Puts fd into the process that waits in the thread's notification; parks while that is being restarted. Return: number
 * there, or −errno. */
int scp_inject_wait(struct scp *p, struct scp_thread *t, int fd);
/* t has gone on, or goes: what was on its way to it is there, or not wanted any more. */
void scp_send_done(struct scp_thread *t);
/* births.c */
int scp_aspace_new(struct platform *p, struct plat_thread **ret_thread);
int scp_fork(struct plat_thread *parent, struct plat_thread **ret_child);
int scp_clone_thread(struct plat_thread *sibling, struct plat_thread **ret_thread);
void scp_thread_born(struct scp *p, struct scp_thread *t);
/* t waits in its doorbell for whoever wants a process. */
void scp_pool_add(struct scp *p, struct scp_thread *t);
void scp_birth_failed(struct scp *p, uint64_t token, int err);
/* The zygote's child for t has died before it rang. Consumes t. */
void scp_birth_lost(struct scp *p, struct scp_thread *t);
void scp_refill(struct scp *p);
/* Makes every fiber that waits for the pool look again; failed: the host has refused a process. */
void scp_wake_waiters(struct scp *p, bool failed);
/* No guest process is left and none can come: fails whoever waits for one. */
void scp_zygote_died(struct scp *p);
/* The zygote's pidfd is readable. */
void scp_zygote_gone(void *arg);
