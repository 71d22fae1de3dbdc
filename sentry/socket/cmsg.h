/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages that carry descriptors and credentials, and the care for descriptors in flight. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct ctx;
struct file;
struct pid;
struct socket;
struct task;

/* Who sent something; pid NULL and ids −1 when nobody knows. */
struct scm_cred {
    struct pid *pid; /* referenced */
    uint32_t uid, gid;
};

/* Descriptors of one message. */
struct scm_rights {
    uint32_t len;
    bool in_flight;      /* counted */
    struct file *files[]; /* referenced */
};

struct scm {
    struct scm_rights *rights; /* owned; NULL: none */
    bool have_cred;
    struct scm_cred cred;      /* owned */
    uint64_t stamp_ns;         /* receive time, 0: not wanted */
};

void scm_free(struct scm *scm); /* leaves it empty */

/* Credentials of the calling task (or the sentry's context: no pid). */
void scm_cred_current(struct ctx *ctx, struct scm_cred *ret_cred);
void scm_cred_copy(struct scm_cred *dst, const struct scm_cred *src); /* dst must be empty */
void scm_cred_clear(struct scm_cred *cred);
static inline struct scm_cred scm_cred_nobody(void)
{
    return (struct scm_cred){.pid = 0, .uid = UINT32_MAX, .gid = UINT32_MAX};
}
bool scm_cred_equal(const struct scm_cred *a, const struct scm_cred *b);

/* Reads the control messages of a send (size bytes at data, sentry memory). rights_ok allows SCM_RIGHTS. Return: 0;
 * −EINVAL, −EBADF, −EPERM, −ESRCH, −ENOMEM. Fills *scm, which must be empty. */
MUST_CHECK int scm_parse(struct task *t, const void *data, size_t size, bool rights_ok, struct scm *scm);

/* Rights: a second set with references of its own (MSG_PEEK). NULL on no memory. */
MUST_CHECK struct scm_rights *scm_rights_dup(const struct scm_rights *r);
/* Drops the files. */
void scm_rights_free(struct scm_rights *r); /* NULL is fine */
/* The set enters or leaves a receive queue. Return: 0, −ETOOMANYREFS. */
MUST_CHECK int scm_rights_launch(struct ctx *ctx, struct scm_rights *r);
void scm_rights_land(struct scm_rights *r); /* fine when not in flight */
/* A socket was closed: sockets that are only held by messages which nobody can read shall be found soon. */
void scm_gc_request(void);
/* Finds them now. For tests and the timer. */
void scm_gc_run(void);
