/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp of the guests' own programs: modes, filters and what they decide. Source: seccomp(2), kernel/seccomp.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/buf.h"
#include "platform/base/cbpf.h"
#include "platform/base/compiler.h"

struct file;
struct kernel;
struct plat_shared;
struct task;

/* What is to become of a call. */
enum guest_seccomp_verdict {
    GUEST_SECCOMP_RUN,
    GUEST_SECCOMP_RESULT, /* it has the given result instead */
    GUEST_SECCOMP_LEAVE,  /* registers stay as they were at the call: a signal or the end of the thread follows */
};

/* Judges the call in progress (t->sysno, t->sysargs). USER_NOTIF parks. traced: a tracer has been asked already (SECCOMP_RET_TRACE),
 * so that this action means to go on. */
enum guest_seccomp_verdict guest_seccomp_enter(struct task *t, bool traced, int64_t *ret_result);
/* Whether call nr can have an action other than ALLOW, whatever its arguments. */
bool guest_seccomp_asks(const struct task *t, uint64_t nr);
/* Fills in plat_shared.ask and ask_how from t's filters. */
void guest_seccomp_publish(const struct task *t, volatile struct plat_shared *s);

/* SECCOMP_SET_MODE_STRICT. Return: 0, −EINVAL when filters are in force. */
MUST_CHECK int guest_seccomp_set_strict(struct task *t);
/* SECCOMP_SET_MODE_FILTER with a program in sentry memory, for which t needs no right here. flags: SECCOMP_FILTER_FLAG_*, checked.
 * Return: 0; with NEW_LISTENER a descriptor; with TSYNC the number of a thread that can't follow (or −ESRCH); −EINVAL,
 * −ENOMEM (too many instructions), −EBUSY (there is a listener), −EMFILE. */
MUST_CHECK int64_t guest_seccomp_set_filter(struct task *t, uint64_t flags, const struct cbpf_insn *prog, uint32_t len);

/* c is t's child and about to become visible / t ends. */
void guest_seccomp_fork(const struct task *t, struct task *c);
void guest_seccomp_exit(struct task *t);
/* Filters in force. */
unsigned guest_seccomp_count(const struct task *t);

/* Names of actions, as in /proc/sys/kernel/seccomp, each with its bit. Return: 0 for a name that there is not. */
unsigned guest_seccomp_action_bit(const char *name, unsigned len);
void guest_seccomp_put_actions(struct buf *out, unsigned bits);
/* SECCOMP_GET_ACTION_AVAIL. */
bool guest_seccomp_action_known(uint32_t action);
enum { GUEST_SECCOMP_ACTIONS_ALL = 0xff, GUEST_SECCOMP_ACTION_ALLOW = 0x80 };
