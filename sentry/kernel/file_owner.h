/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told by signals of what happens to an open file: F_SETOWN, F_SETSIG, O_ASYNC. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct file;
struct task;

/* Makes the thread, process or group (type: F_OWNER_*) of that number as t sees it the owner of f, in t's name; 0 takes the owner
 * away. Return: 0, −ESRCH, −ENOMEM. Source: fcntl(2). */
MUST_CHECK int file_owner_set(struct task *t, struct file *f, int type, int number);
/* As F_SETOWN and FIOSETOWN have it: negative numbers are groups. Return: 0, −EINVAL, −ESRCH, −ENOMEM. */
MUST_CHECK int file_owner_set_signed(struct task *t, struct file *f, int32_t who);
/* Makes t's process the owner when there is none. Return: 0 or −ENOMEM. */
MUST_CHECK int file_owner_default(struct task *t, struct file *f);
/* Return: the owner's number as t sees it, 0 when there is none or it is gone; *ret_type is F_OWNER_*. */
int file_owner_get(struct task *t, const struct file *f, int *ret_type);
/* The signal to send: 0 is SIGIO without siginfo. Return: 0, −EINVAL, −ENOMEM. */
MUST_CHECK int file_owner_set_signal(struct file *f, uint64_t signo);
int file_owner_signal(const struct file *f);
/* Who named the owner: real and effective user. */
void file_owner_uids(const struct file *f, uint32_t ret_uids[2]);
/* O_ASYNC of f, which must be file_ops.signals_io, by way of descriptor fd. Return: 0 or −ENOMEM. */
MUST_CHECK int file_owner_async(struct task *t, struct file *f, int fd, bool on);
