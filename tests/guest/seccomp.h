/* SPDX-License-Identifier: Apache-2.0 */
/* Short filters for the tests of seccomp. */
#pragma once

#include "tests/guest/guest.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define LOAD(field) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARG(n) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define RETURN(v) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (v))
#define IF_EQ(v, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (v), (yes), (no))
#define IF_SET(v, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (v), (yes), (no))

static inline long install(unsigned flags, const struct sock_filter *code, unsigned len)
{
    struct sock_fprog prog = {.len = (unsigned short)len, .filter = (struct sock_filter *)code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}
#define INSTALL(flags, ...)                                                                        \
    ({                                                                                             \
        struct sock_filter install_[] = {__VA_ARGS__};                                             \
        install((flags), install_, sizeof(install_) / sizeof(install_[0]));                        \
    })
/* One call gets an action, all others pass. */
#define ON_CALL(flags, nr_, action) INSTALL(flags, LOAD(nr), IF_EQ((nr_), 0, 1), RETURN(action), RETURN(SECCOMP_RET_ALLOW))

static inline void no_new_privs(void)
{
    EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
}
