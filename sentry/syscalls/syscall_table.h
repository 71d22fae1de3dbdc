/* SPDX-License-Identifier: Apache-2.0 */
/* The table that gen.py makes: what to call for a number, and how its arguments look. */
#pragma once

#include <stdint.h>

#include "syscalls_gen.h"

struct task;

typedef int64_t (*syscall_fn)(struct task *t, const uint64_t *args);

enum syscall_arg_kind {
    SYSCALL_VALUE,
    SYSCALL_STR,         /* string */
    SYSCALL_IN,          /* n bytes that the call reads */
    SYSCALL_OUT,         /* n bytes that it writes */
    SYSCALL_INOUT,
    SYSCALL_IN_BYTES,    /* args[len_arg] * n bytes that it reads */
    SYSCALL_OUT_BYTES,
    SYSCALL_INOUT_BYTES,
    SYSCALL_IN_IOVEC,    /* args[len_arg] iovecs of bytes that it reads */
    SYSCALL_OUT_IOVEC,
};

struct syscall_arg {
    uint8_t kind;    /* enum syscall_arg_kind */
    uint8_t fmt;     /* enum syscall_fmt */
    uint8_t len_arg;
    uint16_t n;
};

struct syscall_desc {
    uint16_t name_offset;  /* into syscall_names; 0: no such call */
    uint16_t absent_errno; /* what an absent call answers; 0 when it is there */
    uint8_t args_len;
    struct syscall_arg args[6];
};

extern const syscall_fn syscall_fns[SYSCALLS_LEN]; /* NULL: absent */
extern const char syscall_names[];
extern const struct syscall_desc syscall_descs[SYSCALLS_LEN];
