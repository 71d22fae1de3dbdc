/* SPDX-License-Identifier: Apache-2.0 */
/* ptrace: requests. Whom they are about and what stops are is in kernel/ptrace.c. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/ptrace.h>
#include <stddef.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/ptrace.h"
#include "sentry/kernel/ptrace_debug.h"
#include "sentry/kernel/ptrace_fpu.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/hostproc.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

/* x86-64's own and those that headers of a library leave out. */
enum {
    PT_GETREGS = 12, PT_SETREGS = 13, PT_GETFPREGS = 14, PT_SETFPREGS = 15, PT_OLDSETOPTIONS = 21, PT_ARCH_PRCTL = 30,
    PT_SYSEMU = 31, PT_SYSEMU_SINGLESTEP = 32, PT_SET_DISPATCH = 0x4210, PT_GET_DISPATCH = 0x4211,
};
enum { ARCH_SET_GS_K = 0x1001, ARCH_SET_FS_K, ARCH_GET_FS_K, ARCH_GET_GS_K };
enum { NT_PRSTATUS_K = 1, NT_PRFPREG_K = 2, NT_X86_XSTATE_K = 0x202 };
/* Bytes of the kernel's struct user, which has two words more than the library's, and in it of the debug
 * registers. */
enum { PEEKSIGINFO_SHARED_K = 1, REGSET_UNIT = 8, USER_SIZE = 928, USER_DEBUG = 848 };

/* ---- memory ---- */

/* One word. As a debugger, t is not bound by the protections of the maps. Return: 0 or −EIO. */
static int move_word(struct task *child, uint64_t addr, uint64_t *word, bool write)
{
    struct mm *mm = child->mm;
    uint64_t end = mm ? mm_task_size(mm) : 0, copy = *word;
    size_t done = 0;
    ssize_t n = 0;

    if (!mm || !child->thread || addr > end || end - addr < sizeof(*word) ||
        (mm->dumpable != 1 && !ptrace_tracer_is_able(child)))
        return -EIO;
    if (!(write ? plat_copy_out(child->thread, addr, word, sizeof(*word))
                : plat_copy_in(child->thread, word, addr, sizeof(*word))))
        return 0;
    mm_ref(mm);
    while (done < sizeof(copy) && !mm->aspace->dead) {
        n = hostproc_mem(mm->aspace->host_pid, (char *)&copy + done, sizeof(copy) - done, addr + done, write);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    mm_unref(mm);
    *word = copy;
    return done == sizeof(copy) ? 0 : -EIO;
}

static int64_t peek(struct task *t, struct task *child, uint64_t addr, uint64_t data)
{
    uint64_t word = 0;
    int r = move_word(child, addr, &word, false);

    return r ? r : COPY_OUT(&t->ctx, UADDR(data), &word);
}

/* ---- registers ---- */

static int64_t peek_user(struct task *t, const struct task *child, uint64_t addr, uint64_t data)
{
    uint64_t words[PTRACE_USER_REGS], word = 0, debug = USER_DEBUG;

    if (addr % sizeof(word) || addr >= USER_SIZE)
        return -EIO;
    if (addr < sizeof(words)) {
        ptrace_get_regs(child, words);
        word = words[addr / 8];
    } else if (addr >= debug && addr < debug + 8 * PT_DEBUG_REGS) {
        word = ptrace_get_debug(child, (unsigned)((addr - debug) / 8));
    }
    return COPY_OUT(&t->ctx, UADDR(data), &word);
}

static int64_t poke_user(struct task *child, uint64_t addr, uint64_t data)
{
    uint64_t debug = USER_DEBUG;

    if (addr % sizeof(data) || addr >= USER_SIZE)
        return -EIO;
    if (addr < 8 * PTRACE_USER_REGS)
        return ptrace_set_reg(child, (unsigned)(addr / 8), data);
    if (addr >= debug && addr < debug + 8 * PT_DEBUG_REGS)
        return ptrace_set_debug(child, (unsigned)((addr - debug) / 8), data);
    return -EIO;
}

static int64_t get_regs(struct task *t, const struct task *child, uint64_t to, uint64_t size)
{
    uint64_t words[PTRACE_USER_REGS];

    ptrace_get_regs(child, words);
    return copy_out(&t->ctx, UADDR(to), words, size);
}

static int64_t set_regs(struct task *t, struct task *child, uint64_t from, uint64_t size)
{
    uint64_t words[PTRACE_USER_REGS];
    int r;

    if (copy_in(&t->ctx, words, UADDR(from), size))
        return -EFAULT;
    for (unsigned i = 0; i < size / 8; i++) {
        r = ptrace_set_reg(child, i, words[i]);
        if (r)
            return r;
    }
    return 0;
}

/* Return: 0 or −errno. */
static int64_t move_fpu(struct task *t, struct task *child, uint64_t addr, uint64_t size, bool set)
{
    CLEANUP_FREE uint8_t *p = mem_zalloc(MAX(size, (uint64_t)PTRACE_FXSAVE_SIZE));
    int r;

    if (!p)
        return -ENOMEM;
    if (set)
        return copy_in(&t->ctx, p, UADDR(addr), size) ? -EFAULT : ptrace_fpu_set(child, p, size);
    r = ptrace_fpu_get(child, p, size);
    return r ? r : copy_out(&t->ctx, UADDR(addr), p, size);
}

static int64_t move_regset(struct task *t, struct task *child, uint64_t type, uint64_t iov_addr, bool set)
{
    struct {
        uint64_t base, size;
    } iov;
    uint64_t full;
    int64_t r;

    full = type == NT_PRSTATUS_K     ? PTRACE_USER_REGS * 8
           : type == NT_PRFPREG_K    ? PTRACE_FXSAVE_SIZE
           : type == NT_X86_XSTATE_K ? ptrace_xstate_size(child)
                                     : 0;
    if (COPY_IN(&t->ctx, &iov, UADDR(iov_addr)))
        return -EFAULT;
    if (!full || iov.size % REGSET_UNIT)
        return -EINVAL;
    iov.size = MIN(iov.size, full);
    if (type == NT_PRSTATUS_K)
        r = set ? set_regs(t, child, iov.base, iov.size) : get_regs(t, child, iov.base, iov.size);
    else if (set && iov.size != full)
        r = type == NT_PRFPREG_K ? -EINVAL : -EFAULT;
    else
        r = move_fpu(t, child, iov.base, iov.size, set);
    return r ? r : copy_out(&t->ctx, UADDR(iov_addr + 8), &iov.size, sizeof(iov.size));
}

static int64_t arch_prctl(struct task *t, struct task *child, uint64_t addr, uint64_t option)
{
    enum { FS = offsetof(struct regs, fs_base) / 8, GS = offsetof(struct regs, gs_base) / 8 };
    const struct regs *regs = &child->thread->regs;

    switch (option) {
    case ARCH_SET_FS_K:
    case ARCH_SET_GS_K:
        return ptrace_set_reg(child, option == ARCH_SET_FS_K ? FS : GS, addr) ? -EPERM : 0;
    case ARCH_GET_FS_K:
        return COPY_OUT(&t->ctx, UADDR(addr), &regs->fs_base);
    case ARCH_GET_GS_K:
        return COPY_OUT(&t->ctx, UADDR(addr), &regs->gs_base);
    default:
        return -EINVAL;
    }
}

/* ---- signals ---- */

static int64_t peek_siginfo(struct task *t, struct task *child, uint64_t addr, uint64_t data)
{
    struct {
        uint64_t off;
        uint32_t flags;
        int32_t nr;
    } arg;
    const struct sigpending *from;
    struct sigqueue *q;
    uint64_t at = 0;
    int64_t done = 0;

    if (COPY_IN(&t->ctx, &arg, UADDR(addr)))
        return -EFAULT;
    if ((arg.flags & ~(uint32_t)PEEKSIGINFO_SHARED_K) || arg.nr < 0)
        return -EINVAL;
    from = arg.flags & PEEKSIGINFO_SHARED_K ? &child->group->pending : &child->pending;
    list_for_each_entry(q, &from->queue, link) {
        if (at++ < arg.off)
            continue;
        if (done == arg.nr)
            break;
        if (COPY_OUT(&t->ctx, UADDR(data + (uint64_t)done * sizeof(q->info)), &q->info))
            return done ? done : -EFAULT;
        done++;
    }
    return done;
}

static int64_t move_mask(struct task *t, struct task *child, uint64_t size, uint64_t data, bool set)
{
    sigset_k mask = child->restore_blocked ? child->saved_blocked : child->blocked;

    if (size != sizeof(mask))
        return -EINVAL;
    if (!set)
        return COPY_OUT(&t->ctx, UADDR(data), &mask);
    if (COPY_IN(&t->ctx, &mask, UADDR(data)))
        return -EFAULT;
    child->restore_blocked = false;
    signal_set_blocked(child, mask);
    return 0;
}

static int64_t siginfo(struct task *t, struct task *child, uint64_t data, bool set)
{
    struct ptrace_state *p = child->ptrace;
    siginfo_t info;

    if (set && COPY_IN(&t->ctx, &info, UADDR(data)))
        return -EFAULT;
    if (!p->has_info)
        return -EINVAL;
    if (!set)
        return COPY_OUT(&t->ctx, UADDR(data), &p->info);
    p->info = info;
    return 0;
}

static int64_t get_syscall_info(struct task *t, const struct task *child, uint64_t size, uint64_t data)
{
    const struct ptrace_state *p = child->ptrace;
    const struct regs *regs = &child->thread->regs;
    int code = p->has_info ? p->info.si_code : 0;
    struct ptrace_syscall_info info = {
        .arch = AUDIT_ARCH_X86_64, .instruction_pointer = regs->rip, .stack_pointer = regs->rsp};
    uint64_t args[6] = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9};
    uint64_t full = offsetof(struct ptrace_syscall_info, entry);
    int r;

    if (code == (SIGTRAP | 0x80) && p->message == PT_MSG_SYSCALL_ENTRY) {
        info.op = PTRACE_SYSCALL_INFO_ENTRY;
        info.entry.nr = (uint64_t)(int64_t)(int32_t)regs->orig_rax;
        memcpy(info.entry.args, args, sizeof(args));
        full += sizeof(info.entry);
    } else if (code == (SIGTRAP | 0x80) && p->message == PT_MSG_SYSCALL_EXIT) {
        info.op = PTRACE_SYSCALL_INFO_EXIT;
        info.exit.rval = (int64_t)regs->rax;
        info.exit.is_error = (int64_t)regs->rax < 0 && (int64_t)regs->rax >= -4095;
        full = offsetof(struct ptrace_syscall_info, exit.is_error) + 1;
    } else if (code == (SIGTRAP | PT_EVENT_SECCOMP << 8)) {
        info.op = PTRACE_SYSCALL_INFO_SECCOMP;
        info.seccomp.nr = (uint64_t)(int64_t)(int32_t)regs->orig_rax;
        memcpy(info.seccomp.args, args, sizeof(args));
        info.seccomp.ret_data = (uint32_t)p->message;
        full = offsetof(struct ptrace_syscall_info, seccomp.ret_data) + 4;
    }
    r = copy_out(&t->ctx, UADDR(data), &info, MIN(size, full));
    return r ? r : (int64_t)full;
}

static int64_t set_options(struct task *t, struct task *child, uint64_t options)
{
    int r = ptrace_check_options(t, options);

    if (!r)
        child->ptrace->options = (uint32_t)options;
    return r;
}

/* ---- requests ---- */

static int64_t resume(struct task *child, int64_t request, uint64_t signo)
{
    enum ptrace_how how;

    switch (request) {
    case PTRACE_SYSCALL:
        how = PTRACE_HOW_SYSCALL;
        break;
    case PTRACE_SINGLESTEP:
        how = PTRACE_HOW_STEP;
        break;
    case PT_SYSEMU:
        how = PTRACE_HOW_SYSEMU;
        break;
    case PT_SYSEMU_SINGLESTEP:
        how = PTRACE_HOW_SYSEMU_STEP;
        break;
    default:
        how = PTRACE_HOW_CONT;
    }
    if (signo > NSIG_K)
        return -EIO;
    if (request == PTRACE_DETACH)
        ptrace_detach(child, (int)signo);
    else
        ptrace_resume(child, how, (int)signo);
    return 0;
}

static int64_t of_registers(struct task *t, struct task *child, int64_t request, uint64_t addr, uint64_t data)
{
    switch (request) {
    case PTRACE_PEEKUSR:
        return peek_user(t, child, addr, data);
    case PTRACE_POKEUSR:
        return poke_user(child, addr, data);
    case PT_GETREGS:
        return get_regs(t, child, data, PTRACE_USER_REGS * 8);
    case PT_SETREGS:
        return set_regs(t, child, data, PTRACE_USER_REGS * 8);
    case PT_GETFPREGS:
    case PT_SETFPREGS:
        return move_fpu(t, child, data, PTRACE_FXSAVE_SIZE, request == PT_SETFPREGS);
    case PTRACE_GETREGSET:
    case PTRACE_SETREGSET:
        return move_regset(t, child, addr, data, request == PTRACE_SETREGSET);
    case PT_ARCH_PRCTL:
        return arch_prctl(t, child, addr, data);
    default:
        return -EIO;
    }
}

static int64_t of_stopped(struct task *t, struct task *child, int64_t request, uint64_t addr, uint64_t data)
{
    switch (request) {
    case PTRACE_PEEKTEXT:
    case PTRACE_PEEKDATA:
        return peek(t, child, addr, data);
    case PTRACE_POKETEXT:
    case PTRACE_POKEDATA:
        return move_word(child, addr, &data, true);
    case PTRACE_CONT:
    case PTRACE_SYSCALL:
    case PTRACE_SINGLESTEP:
    case PT_SYSEMU:
    case PT_SYSEMU_SINGLESTEP:
    case PTRACE_DETACH:
        return resume(child, request, data);
    case PT_OLDSETOPTIONS:
    case PTRACE_SETOPTIONS:
        return set_options(t, child, data);
    case PTRACE_GETEVENTMSG:
        return COPY_OUT(&t->ctx, UADDR(data), &child->ptrace->message);
    case PTRACE_PEEKSIGINFO:
        return peek_siginfo(t, child, addr, data);
    case PTRACE_GETSIGINFO:
    case PTRACE_SETSIGINFO:
        return siginfo(t, child, data, request == PTRACE_SETSIGINFO);
    case PTRACE_GETSIGMASK:
    case PTRACE_SETSIGMASK:
        return move_mask(t, child, addr, data, request == PTRACE_SETSIGMASK);
    case PTRACE_LISTEN:
        return ptrace_listen(child);
    case PTRACE_GET_SYSCALL_INFO:
        return get_syscall_info(t, child, addr, data);
    case PTRACE_SECCOMP_GET_FILTER:
    case PTRACE_SECCOMP_GET_METADATA:
    case PT_SET_DISPATCH:
    case PT_GET_DISPATCH:
        return -EINVAL; /* as without checkpoint/restore, and without dispatch of calls to user space */
    default:
        return of_registers(t, child, request, addr, data);
    }
}

static int64_t of_child(struct task *t, struct task *child, int64_t request, uint64_t addr, uint64_t data)
{
    siginfo_t info;

    if (request == PTRACE_ATTACH || request == PTRACE_SEIZE)
        return ptrace_attach(t, child, request == PTRACE_SEIZE, addr, data);
    if (!ptrace_traced(child) || child->ptrace->tracer != t)
        return -ESRCH;
    if (request == PTRACE_KILL) {
        siginfo_user(&info, SIGKILL, SI_USER, tgroup_pid_for(t->group, child), t->ctx.cred->uid);
        (void)signal_send_task(child, &info);
        return 0;
    }
    if (request == PTRACE_INTERRUPT)
        return child->state >= TASK_ZOMBIE ? -ESRCH : ptrace_interrupt(child);
    /* A thread that has let its program go has nothing left to look at. */
    if (!child->ptrace->stopped || child->ptrace->resumed || child->ptrace->listening || !child->thread)
        return -ESRCH;
    return of_stopped(t, child, request, addr, data);
}

int64_t sys_ptrace(struct task *t, int64_t request, int32_t pid, uint64_t addr, uint64_t data)
{
    struct task *child;
    int64_t r;

    if (request == PTRACE_TRACEME)
        return ptrace_traceme(t);
    child = task_find(t->pidns, pid);
    r = child ? of_child(t, child, request, addr, data) : -ESRCH;
    task_unref(child);
    return r;
}
