/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the seccomp backend, shared by plat_seccomp.c and doorbell.c. */
#pragma once

#include <linux/seccomp.h>

#include "platform/base/list.h"
#include "platform/platform.h"
#include "platform/seccomp/plat_seccomp.h"
#include "platform/seccomp/stub_abi.h"

enum { SCP_HASH = 1024 };

enum scp_state {
    SCP_UNBORN,  /* object made, host thread not heard of yet */
    SCP_HELD,    /* its BIRTH is unanswered: no mailbox in the process yet */
    SCP_STOPPED, /* its doorbell is unanswered */
    SCP_RUNNING,
    SCP_ENDED,   /* told to exit, or a leader parked until its process goes */
};

struct scp_aspace {
    struct plat_aspace base;
    struct list threads; /* (k) of scp_thread.sibling */
    unsigned live;       /* (k) threads not ended */
    int pidfd;           /* (k) −1 before birth and after death */
    void *watch;         /* (k) of pidfd */
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
    uint64_t clone_open;    /* (k) flags with which a clone call may pass; 0 none */
    bool zygote_wanted;     /* (k) the zygote has not been told yet */
    bool from_zygote;       /* (i) */
    bool in_pool;           /* (k) */
    bool death_told;        /* (k) */
    bool op_done;           /* (k) CALLS_DONE or CLONE_DONE came */
    /* What the stub has marshalled for the call in progress, copied and bounded; (k) */
    unsigned in_len, probe_len, out_len;
    uint32_t data_used;     /* bytes of the mailbox's data area in use */
    struct stub_range in[STUB_IN_MAX], probe[STUB_PROBE_MAX];
    void *fiber;            /* (k) waits in hostcalls, clone or for a birth */
};

struct scp {
    struct platform base;
    struct plat_seccomp_config config; /* (i) */
    int listener;
    void *watch;
    uint64_t zone;
    pid_t zygote_pid;
    uint64_t zygote_notif; /* (k) waiting for work, 0 = busy */
    uint64_t zygote_seq, zygote_reply;
    bool zygote_replied, zygote_clone_open;
    bool dead;             /* (k) the zygote or the listener is gone */
    struct list hash[SCP_HASH];
    struct list births;    /* (k) awaited, of token_link */
    struct list pool;      /* (k) born, unclaimed */
    unsigned pool_len, spawning; /* (k) */
    struct list spawn_waiters; /* (k) fibers that wait for the pool: of scp_wait.link */
};

struct scp_wait {
    struct list link;
    void *fiber;
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
/* Puts fd into the process that waits in the thread's notification; parks while the notification is being
 * restarted. Return: number there, or −errno. */
int scp_inject(struct scp *p, struct scp_thread *t, int fd);
void scp_zygote_spawn(struct scp *p);
/* guestmem.c */
void scp_guestmem_import(struct scp_thread *t);
void scp_guestmem_reset(struct scp_thread *t);
int scp_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
int64_t scp_copy_in_some(struct plat_thread *t, void *dst, uint64_t src, uint64_t size);
int scp_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size);
/* plat_seccomp.c */
void scp_thread_born(struct scp *p, struct scp_thread *t);
void scp_birth_failed(struct scp *p, uint64_t token, int err);
void scp_aspace_died(struct scp *p, struct scp_aspace *as);
void scp_thread_free(struct scp_thread *t);
struct scp_thread *scp_thread_alloc(struct scp *p, struct scp_aspace *as, unsigned slot);
struct scp_aspace *scp_aspace_alloc(struct scp *p);
void scp_refill(struct scp *p);
/* No guest process is left and none can come: fails whoever waits for one. */
void scp_zygote_died(struct scp *p);
/* Ends the host thread of a stopped object for good. */
void scp_thread_release(struct scp *p, struct scp_thread *t, uint64_t clear_tid);
