/* SPDX-License-Identifier: Apache-2.0 */
/* The seccomp filter of guest processes. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

#include "platform/base/compiler.h"

enum { TRAPBPF_MAX = 192 };

/* Builds the filter for a stub whose three system-call sites return to these addresses.
 * Return: number of instructions in ret_prog (TRAPBPF_MAX of room). */
unsigned trapbpf_build(uint64_t ip_general, uint64_t ip_sigreturn, uint64_t ip_futex,
                       struct sock_filter *ret_prog);
