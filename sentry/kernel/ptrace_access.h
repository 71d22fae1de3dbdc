/* SPDX-License-Identifier: Apache-2.0 */
/* Who may look into whom: the one check behind ptrace, process_vm_*, pidfd_getfd, kcmp and /proc/PID. */
#pragma once

#include "platform/base/compiler.h"

struct task;

/* What is wanted, and which of the caller's ids and capabilities count: exactly one of each pair. */
enum {
    PTRACE_MODE_READ = 1,
    PTRACE_MODE_ATTACH = 2,
    PTRACE_MODE_FSCREDS = 8,
    PTRACE_MODE_REALCREDS = 16,
    PTRACE_READ_FS = PTRACE_MODE_READ | PTRACE_MODE_FSCREDS,
    PTRACE_READ_REAL = PTRACE_MODE_READ | PTRACE_MODE_REALCREDS,
    PTRACE_ATTACH_FS = PTRACE_MODE_ATTACH | PTRACE_MODE_FSCREDS,
    PTRACE_ATTACH_REAL = PTRACE_MODE_ATTACH | PTRACE_MODE_REALCREDS,
};

/* Whether caller may look into target. Threads of one process always may. Reading and attaching differ in nothing. Nobody
 * looks out of his Landlock domain. Return: 0 or −EPERM. Source: ptrace(2), "Ptrace access mode checking". */
MUST_CHECK int ptrace_may_access(const struct task *caller, const struct task *target, unsigned mode);
