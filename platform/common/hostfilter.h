/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp allowlists of the sentry and the gofer: a table of rules, each with its reason, is
 * turned into a filter that ends the process on anything else. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

enum {
    HOSTFILTER_ARGS_MAX = 4,   /* comparisons in one rule */
    HOSTFILTER_RULES_MAX = 256 /* rules in one table */
};

/* How an argument is compared. The 32 forms look at the low half only and fit C int parameters,
 * whose upper half the caller's compiler leaves undefined. */
enum hostfilter_cmp {
    HOSTFILTER_EQ = 1, /* all 64 bits equal value */
    HOSTFILTER_EQ32,   /* low 32 bits equal value */
    HOSTFILTER_MASK,   /* (argument & mask) == value, 64 bits */
    HOSTFILTER_LE,     /* argument <= value, unsigned 64 bits */
    HOSTFILTER_GE,     /* argument >= value, unsigned 64 bits */
    HOSTFILTER_NE      /* argument != value, 64 bits */
};

struct hostfilter_arg {
    unsigned index; /* 0 to 5 */
    enum hostfilter_cmp cmp;
    uint64_t value;
    uint64_t mask; /* HOSTFILTER_MASK only */
};

/* One allowed form of one call. All comparisons must hold; several rules may name the same call,
 * and the call is allowed when any of them matches. */
struct hostfilter_rule {
    int nr;             /* __NR_* of x86-64 */
    const char *reason; /* why the process needs it; a rule without one is refused */
    struct hostfilter_arg args[HOSTFILTER_ARGS_MAX]; /* used up to the first with cmp 0 */
    int refuse_errno; /* not 0: the call is not allowed but answered with this error, for callers that
                       * then go another way (glibc: clone3, then clone) */
};

/* Shorthands for tables: {__NR_futex, "locks", {HF_EQ32(1, FUTEX_WAKE)}}. */
#define HF_EQ(i, v)                                                \
    {                                                              \
        .index = (i), .cmp = HOSTFILTER_EQ, .value = (uint64_t)(v) \
    }
#define HF_EQ32(i, v)                                                \
    {                                                                \
        .index = (i), .cmp = HOSTFILTER_EQ32, .value = (uint32_t)(v) \
    }
#define HF_MASK(i, m, v)                                                                    \
    {                                                                                       \
        .index = (i), .cmp = HOSTFILTER_MASK, .value = (uint64_t)(v), .mask = (uint64_t)(m) \
    }
#define HF_LE(i, v)                                                \
    {                                                              \
        .index = (i), .cmp = HOSTFILTER_LE, .value = (uint64_t)(v) \
    }
#define HF_GE(i, v)                                                \
    {                                                              \
        .index = (i), .cmp = HOSTFILTER_GE, .value = (uint64_t)(v) \
    }
#define HF_NE(i, v)                                                \
    {                                                              \
        .index = (i), .cmp = HOSTFILTER_NE, .value = (uint64_t)(v) \
    }

/* What happens to a call that no rule allows. Both end the process with SIGSYS. */
enum hostfilter_default {
    HOSTFILTER_KILL,  /* at once, by the host kernel (which leaves an audit record) */
    HOSTFILTER_REPORT /* for debugging: a SIGSYS handler first logs the call's number, arguments
                       * and address through log_error; needs a rule that allows write */
};

/* Installs the filter for all threads of the process and sets no_new_privs; there is no way back.
 * Calls of another architecture (i386, x32) always end the process. The rules may lie on the
 * stack: nothing keeps them.
 * Return: 0, −EINVAL (a rule without reason, unknown number or bad comparison), −ENOMEM, or what
 * the host kernel said; message in e. On failure the process may be partly confined: end it. */
MUST_CHECK int hostfilter_install(const struct hostfilter_rule *rules, size_t len,
                                  enum hostfilter_default action, struct errmsg *e);
