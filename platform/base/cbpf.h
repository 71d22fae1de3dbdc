/* SPDX-License-Identifier: Apache-2.0 */
/* Classic BPF over a small block of 32-bit words: the programs that seccomp(2) takes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

enum { CBPF_MAX_LEN = 4096 };

struct cbpf_insn { /* struct sock_filter */
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};

/* Whether Linux would take the program as a seccomp filter over data_size bytes: known instructions, jumps forwards and inside,
 * loads of aligned words inside the data, no read of scratch memory that a path has not written, a return at the end. What
 * passes here ends within len steps. */
MUST_CHECK bool cbpf_check(const struct cbpf_insn *prog, uint32_t len, uint32_t data_size);
/* How many instructions of the newer BPF Linux makes of a checked program: what it counts against its limits. */
uint32_t cbpf_cost(const struct cbpf_insn *prog, uint32_t len);
/* Runs a checked program over words. Of them only the first known_len are known: a load of another one ends the run.
 * ret_unknown (NULL: all are known): whether that has happened, and the value says nothing. Return: the program's value. */
uint32_t cbpf_run(const struct cbpf_insn *prog, const uint32_t *words, uint32_t known_len, bool *ret_unknown);
