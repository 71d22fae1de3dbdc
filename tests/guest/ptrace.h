/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of tracing share: the call itself, and children that ask to be traced. */
#pragma once

#include "tests/guest/guest.h"

#include <linux/ptrace.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/uio.h>
#include <sys/user.h>

/* Not by <sys/ptrace.h>, which does not go together with <linux/ptrace.h>; and without its different PEEK. */
static inline long pt(long request, pid_t pid, long addr, long data)
{
    return syscall(SYS_ptrace, request, pid, addr, data);
}
#define A(p) ((long)(uintptr_t)(p))
#define GETREGS 12
#define SETREGS 13
#define GETFPREGS 14
#define SETFPREGS 15
#define SYSEMU 31
#define O_EXITKILL PTRACE_O_EXITKILL
#define EVENT(e) (SIGTRAP << 8 | 0x7f | (e) << 16)
#define STOPPED(sig) ((sig) << 8 | 0x7f)
#define SYSTRAP STOPPED(SIGTRAP | 0x80)

static inline int wait_for(pid_t pid)
{
    int status = 0;

    EQ(OK(waitpid(pid, &status, __WALL)), pid);
    return status;
}

/* A child that asks to be traced, stops, and then runs fn. */
static inline pid_t traced(void (*fn)(void), long options)
{
    pid_t pid = OK(fork());

    if (!pid) {
        OK(pt(PTRACE_TRACEME, 0, 0, 0));
        raise(SIGSTOP);
        fn();
        _exit(0);
    }
    EQ(wait_for(pid), STOPPED(SIGSTOP));
    OK(pt(PTRACE_SETOPTIONS, pid, 0, options | O_EXITKILL));
    return pid;
}

static inline void finish(pid_t pid, int code)
{
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EXITED(wait_for(pid), code);
}

static inline unsigned long rip_of(pid_t pid)
{
    unsigned long rip;

    OK(pt(PTRACE_PEEKUSR, pid, offsetof(struct user, regs.rip), A(&rip)));
    return rip;
}
