/* SPDX-License-Identifier: Apache-2.0 */
/* Pid namespaces, and the numbers that tasks, process groups and sessions go by. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"
#include "sentry/core/waitq.h"

struct cred;
struct pgrp;
struct session;
struct task;
struct tgroup;

enum { PIDNS_DEPTH_MAX = 32, PIDNS_CHUNK = 1024 };

struct pid_chunk;

struct pidns {
    struct ref ref;
    struct pidns *parent;       /* (i) referenced; NULL at the top: a container's own */
    unsigned level;             /* (i) 0 at the top */
    struct userns *userns;      /* (i) referenced; NULL: the initial one */
    struct ucharge charge;      /* (i) */
    struct tgroup *init;        /* (k) pid 1, not owned; NULL before it is made and after it is gone */
    bool dying;                 /* (k) pid 1 exits: no new members */
    int32_t last;               /* (k) number given last */
    uint32_t live;              /* (k) numbers in use */
    uint64_t ino;               /* (i) of /proc/PID/ns/pid */
    struct waitq empty_wait;    /* (k) pid 1 waits here for all others to go */
    struct pid_chunk **chunks;  /* (k) tables of PIDNS_CHUNK numbers each, on demand */
};

/* A number in each namespace from the top down to its own. Whatever is named by it keeps a reference, so that the
 * number of a process group outlives the process that founded it. */
struct pid {
    struct ref ref;
    struct pidns *ns;    /* (i) its own, referenced */
    unsigned level;      /* (i) = ns->level */
    struct task *task;   /* (k) the thread of that number; not owned */
    struct pgrp *pgrp;   /* (k) not owned */
    struct session *session; /* (k) not owned */
    int32_t numbers[];   /* (i) [level + 1], top first */
};

/* parent NULL makes a top one. Return: 0, −ENOMEM, −ENOSPC (too deep). */
MUST_CHECK int pidns_new(struct pidns *parent, struct userns *userns, struct pidns **ret_ns);
struct pidns *pidns_ref(struct pidns *ns); /* NULL is fine */
void pidns_unref(struct pidns *ns);
/* Whether ns is outer or below it. */
bool pidns_contains(const struct pidns *outer, const struct pidns *ns);

/* Numbers that the maker of a thread asks for, its own namespace's first (clone3's set_tid). */
struct pid_wish {
    int32_t numbers[PIDNS_DEPTH_MAX];
    unsigned len;
    const struct cred *cred; /* whose right it has to be */
};

/* Takes fresh numbers; wish NULL: any. Return: 0, −EAGAIN (all in use), −ENOMEM (also for a namespace whose pid 1 is gone); for a wish
 * also −EINVAL, −EPERM, −EEXIST. */
MUST_CHECK int pid_new(struct pidns *ns, const struct pid_wish *wish, struct pid **ret_pid);
struct pid *pid_ref(struct pid *pid);
void pid_unref(struct pid *pid); /* NULL is fine; the numbers are free again with the last reference */
/* Return: pid's number as seen from ns, 0 when it is not visible there. */
int pid_number(const struct pid *pid, const struct pidns *ns);
/* Return: the pid of that number in ns or NULL. Not referenced. */
struct pid *pid_peek(const struct pidns *ns, int number);

/* For listings: the process with the lowest pid ≥ number in ns. Return: referenced group, or NULL at the end. */
MUST_CHECK struct tgroup *pidns_next_tgroup(struct pidns *ns, int number, int *ret_number);
