/* SPDX-License-Identifier: Apache-2.0 */
/* Caller context that lower layers get explicitly: who asks, where it may sleep, whose memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cred;
struct fiber;
struct plat_thread;

enum ctx_wait_state {
    CTX_RUNNING,
    CTX_WAIT_INTERRUPTIBLE,   /* any pending unblocked signal ends the wait */
    CTX_WAIT_KILLABLE,        /* only a fatal signal does */
    CTX_WAIT_UNINTERRUPTIBLE,
};

/* Embedded in struct task; also made alone for the sentry's own work (mounts, container creation). */
struct ctx {
    bool is_task;                  /* (i) embedded in a struct task: ctx_task() may be used */
    const struct cred *cred;       /* (k) whose rights count; owned by the task */
    struct plat_thread *thread;    /* (k) guest memory for copy_in/copy_out; NULL: none */
    struct fiber *parked;          /* (k) the fiber that waits in this context, else NULL */
    enum ctx_wait_state wait_state; /* (k) */
    bool signal_pending;           /* (k) an unblocked signal (or other work at return to the guest) waits */
    /* (k) while open(2) looks for its file: 1 + the access mode. A hint for file systems that can open in the same go */
    uint32_t lookup_open;
    bool fatal_pending;            /* (k) a fatal one waits */
};

/* Wakes whatever waits in ctx if its wait state lets signals through. For signal delivery. */
void ctx_interrupt(struct ctx *ctx);
