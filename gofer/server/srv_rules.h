/* SPDX-License-Identifier: Apache-2.0 */
/* What the gofer itself may do: its seccomp list and its policy on special files. */
#pragma once

#include <sys/types.h>

#include "platform/common/hostfilter.h"

/* Confines the process (all its threads) for good. lane: −1 when there is none. Return: 0 or −errno with a message. */
MUST_CHECK int srv_rules_install(int sock, int lane, int proc_self_fd, pid_t self,
                                 enum hostfilter_default action, struct errmsg *e);

/* Whether an inode of that type and device number may be made. Return: 0, −EPERM, −EINVAL. */
MUST_CHECK int srv_rules_mknod(mode_t type, uint32_t rdev_major, uint32_t rdev_minor);
