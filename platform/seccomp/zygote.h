/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the zygote: a process that holds nothing but the stub, under the guest filter. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct zygote {
    pid_t pid;
    int listener; /* owned by the caller */
    uint64_t zone;
    uint64_t vdso;
};

/* proc_fd: a procfs, −1 = /proc. Return: 0 or −errno with a message. */
MUST_CHECK int zygote_spawn(int proc_fd, struct errmsg *e, struct zygote *ret_zygote);
