/* SPDX-License-Identifier: Apache-2.0 */
/* Filter programs from profiles, as config.json's linux.seccomp describes them: by names of calls. Nothing is installed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "platform/base/cbpf.h"
#include "platform/base/compiler.h"

enum profilefilter_cmp {
    PROFILEFILTER_NE,
    PROFILEFILTER_LT,
    PROFILEFILTER_LE,
    PROFILEFILTER_EQ,
    PROFILEFILTER_GE,
    PROFILEFILTER_GT,
    PROFILEFILTER_MASKED_EQ, /* (argument & value) == value_two */
};

struct profilefilter_arg {
    unsigned index; /* 0 to 5 */
    enum profilefilter_cmp cmp;
    uint64_t value, value_two;
};

struct profilefilter;

/* A profile that answers default_action (SECCOMP_RET_* with data) to everything. unknown_enosys: calls newer than all that the
 * profile names fail with ENOSYS instead, so that programs fall back to older ones. NULL on no memory. */
MUST_CHECK struct profilefilter *profilefilter_new(uint32_t default_action, bool unknown_enosys);
void profilefilter_free(struct profilefilter *p); /* NULL is fine */
/* Adds a rule for the call of that name: all of args hold. Names that there are not on x86-64 are passed over, as are rules that
 * say what the default says. Return: 0, −EINVAL, −ENOMEM. */
MUST_CHECK int profilefilter_add(struct profilefilter *p, const char *name, uint32_t action, const struct profilefilter_arg *args,
                                 size_t len);
/* Makes the program. Owns: *ret_prog is the caller's to mem_free. Return: its length, −E2BIG (longer than the kernel takes) or
 * −errno. Opens a temporary file: before lock-down. */
MUST_CHECK int profilefilter_program(const struct profilefilter *p, struct cbpf_insn **ret_prog);
