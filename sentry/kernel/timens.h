/* SPDX-License-Identifier: Apache-2.0 */
/* Time namespaces: offsets of CLOCK_MONOTONIC and CLOCK_BOOTTIME, the host's being those of the initial one, which has no object (NULL).
 * Guests read clocks in the host's vDSO; in a process whose namespace has offsets its clock_gettime makes the call instead.
 * Source: time_namespaces(7). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"

struct plat_thread;

enum timens_clock { TIMENS_MONOTONIC, TIMENS_BOOTTIME, TIMENS_CLOCKS };

struct timens {
    struct ref ref;
    struct userns *userns; /* (i) referenced */
    struct ucharge charge; /* (i) */
    uint64_t ino;          /* (i) of /proc/PID/ns/time */
    int64_t offset_ns[TIMENS_CLOCKS]; /* (k) what a clock shows more than the host's; a sum with what it shows fits */
    bool frozen;           /* (k) somebody was in it: the offsets stay */
};

/* A namespace with the offsets of like, which userns owns and uid is counted for there. Return: 0, −ENOSPC, −ENOMEM. */
MUST_CHECK int timens_new(const struct timens *like, struct userns *userns, uint32_t uid, struct timens **ret_ns);
struct timens *timens_ref(struct timens *ns); /* NULL is fine */
void timens_unref(struct timens *ns);         /* NULL is fine */

/* Sets an offset of sec and nsec (0 … 999999999). ns NULL: the initial one, which is frozen. Return: 0, −EACCES (frozen), −ERANGE. */
MUST_CHECK int timens_check_offset(enum timens_clock clock, int64_t sec, uint32_t nsec);
MUST_CHECK int timens_set_offset(struct timens *ns, enum timens_clock clock, int64_t sec, uint32_t nsec);

/* What clockid shows in ns more than the host's clock; 0 for clocks without offsets and for the initial namespace. */
int64_t timens_offset(const struct timens *ns, int32_t clockid);
/* A clock's value of the namespace that has the offset as the host's value, and the other way round; both stay within the clock's range. */
uint64_t timens_to_host(int64_t offset_ns, uint64_t at_ns);
uint64_t timens_from_host(int64_t offset_ns, uint64_t host_ns);

/* Makes the vDSO of a stopped thread's process, whose only one it is, tell the time of a namespace: from is the one that it tells now.
 * ns is frozen from now on. Parks. Return: 0, −errno. */
MUST_CHECK int timens_enter(struct plat_thread *thread, const struct timens *from, struct timens *ns);
