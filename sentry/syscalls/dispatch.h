/* SPDX-License-Identifier: Apache-2.0 */
/* From a call's number and arguments to its handler. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct task;

/* Runs call nr of t on t's fiber. Return: the call's value, −errno, or −ERESTART* for the run loop to settle; −ENOSYS
 * for numbers that are not there. With kernel.strace the call is logged. */
int64_t syscall_dispatch(struct task *t, uint64_t nr, const uint64_t args[6]);
/* The same for a call that the backend serves: before it does / when it tells the result / when nothing will be told after
 * all. enter's Return: whether exit is wanted. */
bool syscall_local_enter(struct task *t, uint64_t nr, const uint64_t args[6]);
void syscall_local_exit(struct task *t, int64_t result);
void syscall_local_drop(struct task *t);
/* Return: the call's name, or NULL. */
const char *syscall_name(uint64_t nr);
