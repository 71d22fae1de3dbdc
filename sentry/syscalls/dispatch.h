/* SPDX-License-Identifier: Apache-2.0 */
/* From a call's number and arguments to its handler. */
#pragma once

#include <stdint.h>

struct task;

/* Runs call nr of t on t's fiber. Return: the call's value, −errno, or −ERESTART* for the run loop to settle; −ENOSYS
 * for numbers that are not there. With kernel.strace the call is logged. */
int64_t syscall_dispatch(struct task *t, uint64_t nr, const uint64_t args[6]);
/* Return: the call's name, or NULL. */
const char *syscall_name(uint64_t nr);
