/* SPDX-License-Identifier: Apache-2.0 */
/* IPC namespaces: System V objects and POSIX message queues. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"
#include "sentry/ipc/sysv_ids.h"

struct mq_table;

struct ipcns {
    struct ref ref;
    struct userns *userns; /* (i) referenced; NULL: the initial one */
    struct ucharge charge; /* (i) */
    uint64_t ino;          /* (i) of /proc/PID/ns/ipc */
    struct sysv_ids shm, sem, msg; /* (k) */
    uint64_t shm_pages;    /* (k) of all segments */
    uint64_t sems;         /* (k) semaphores of all sets */
    struct mq_table *mq;   /* (k) owned, on demand: posix_mq.c */
    uint32_t mounts;       /* (k) references that mqueue file systems hold */
};

MUST_CHECK int ipcns_new(struct userns *userns, struct ipcns **ret_ns);
struct ipcns *ipcns_ref(struct ipcns *ns);
void ipcns_unref(struct ipcns *ns); /* NULL is fine */
/* No process can come to be in it again: only mounts of its queues are left. */
bool ipcns_deserted(const struct ipcns *ns);
