/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and their listeners, shared by guest_seccomp.c and guest_notif.c. */
#pragma once

#include <linux/seccomp.h>

#include "platform/base/cbpf.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/core/waitq.h"

struct task;

/* Who takes the calls that a filter leaves to user space. Lives as long as its filter. */
struct guest_listener {
    uint64_t next_id;    /* (k) */
    struct list calls;   /* (k) of guest_notif.link, oldest first */
    struct waitq wait;   /* (k) receivers and pollers */
    bool wait_killable;  /* (i) a call that has been received is interrupted by fatal signals alone */
    bool closed;         /* (k) its descriptor is gone */
};

/* A filter, and those that were there before it: a tree whose leaves tasks hold. */
struct seccomp_filter {
    struct ref ref;              /* tasks, younger filters, the listener's file */
    unsigned users;              /* (k) tasks and younger filters that have users */
    struct seccomp_filter *prev; /* (i) referenced */
    struct guest_listener *listener; /* (i) owned, or NULL */
    uint32_t len, total;         /* (i) instructions; cost with that of the older ones and 4 for each of these */
    unsigned count;              /* (i) filters up to here */
    bool log;                    /* (i) SECCOMP_FILTER_FLAG_LOG */
    uint64_t ask[8];             /* (i) calls that this one or an older one does not allow whatever their arguments are */
    struct cbpf_insn prog[];     /* (i) */
};

struct seccomp_filter *guest_filter_ref(struct seccomp_filter *f);
void guest_filter_unref(struct seccomp_filter *f); /* NULL is fine */

/* guest_notif.c */
MUST_CHECK struct guest_listener *guest_listener_new(bool wait_killable);
void guest_listener_free(struct guest_listener *l); /* NULL is fine */
/* A descriptor's file for f's listener (takes a reference of f). NULL on no memory. */
MUST_CHECK struct file *guest_listener_file(struct seccomp_filter *f, struct task *t);
/* Nobody is left under the filter. */
void guest_listener_hangup(struct guest_listener *l);
/* Leaves the call to f's listener and waits for the answer. Parks. Return: whether the call is to run; if not, its result. */
MUST_CHECK bool guest_notif_ask(struct task *t, struct seccomp_filter *f, const struct seccomp_data *data, int64_t *ret_result);
