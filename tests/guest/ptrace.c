/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: calls, memory, registers, steps, breakpoints and signals. */
#include "tests/guest/ptrace.h"

/* ---- calls ---- */

static struct ptrace_syscall_info call_info(pid_t pid, int op)
{
    struct ptrace_syscall_info info;

    memset(&info, 0xee, sizeof(info));
    CHECK(OK(pt(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), A(&info))) > 0);
    EQ(info.op, op);
    CHECK(info.arch == 0xc000003e && info.instruction_pointer && info.stack_pointer);
    return info;
}

/* To the beginning of call nr, over others. */
static struct ptrace_syscall_info to_call(pid_t pid, long nr)
{
    struct ptrace_syscall_info info;

    for (;;) {
        OK(pt(PTRACE_SYSCALL, pid, 0, 0));
        EQ(wait_for(pid), SYSTRAP);
        info = call_info(pid, PTRACE_SYSCALL_INFO_ENTRY);
        if ((long)info.entry.nr == nr)
            return info;
        OK(pt(PTRACE_SYSCALL, pid, 0, 0));
        EQ(wait_for(pid), SYSTRAP);
        call_info(pid, PTRACE_SYSCALL_INFO_EXIT);
    }
}

static struct ptrace_syscall_info to_end(pid_t pid)
{
    OK(pt(PTRACE_SYSCALL, pid, 0, 0));
    EQ(wait_for(pid), SYSTRAP);
    return call_info(pid, PTRACE_SYSCALL_INFO_EXIT);
}

static int pipe_fds[2];

static void some_calls(void)
{
    char c;

    syscall(SYS_read, pipe_fds[0], &c, 1);
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    syscall(SYS_getpid);
    syscall(SYS_close, 999);
    _exit(c);
}

TEST(calls)
{
    struct ptrace_syscall_info info;
    struct user_regs_struct regs;
    siginfo_t si;
    unsigned long message;
    pid_t pid;

    OK(pipe(pipe_fds));
    EQ(write(pipe_fds[1], "\7", 1), 1);
    pid = traced(some_calls, PTRACE_O_TRACESYSGOOD);
    info = to_call(pid, SYS_read);
    EQ(info.entry.args[0], pipe_fds[0]);
    EQ(info.entry.args[2], 1);
    OK(pt(GETREGS, pid, 0, A(&regs)));
    EQ(regs.orig_rax, SYS_read);
    EQ((long)regs.rax, -ENOSYS);
    EQ(regs.rdi, pipe_fds[0]);
    EQ(regs.cs, 0x33);
    EQ(regs.ss, 0x2b);
    EQ(regs.rip, info.instruction_pointer);
    OK(pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
    EQ(si.si_signo, SIGTRAP);
    EQ(si.si_code, SIGTRAP | 0x80);
    EQ(si.si_pid, pid);
    OK(pt(PTRACE_GETEVENTMSG, pid, 0, A(&message)));
    EQ(message, PTRACE_EVENTMSG_SYSCALL_ENTRY);
    info = to_end(pid);
    EQ(info.exit.rval, 1);
    EQ(info.exit.is_error, 0);
    OK(pt(PTRACE_GETEVENTMSG, pid, 0, A(&message)));
    EQ(message, PTRACE_EVENTMSG_SYSCALL_EXIT);
    info = to_call(pid, SYS_mmap);
    EQ(info.entry.args[1], 4096);
    info = to_end(pid);
    EQ(info.exit.rval & 0xfff, 0);
    to_call(pid, SYS_getpid);
    EQ(to_end(pid).exit.rval, pid);
    to_call(pid, SYS_close);
    info = to_end(pid);
    EQ(info.exit.rval, -EBADF);
    EQ(info.exit.is_error, 1);
    EQ(pt(PTRACE_GET_SYSCALL_INFO, pid, 4, A(&info)), 33);
    finish(pid, 7);
}

static void two_getppid(void)
{
    long a = syscall(SYS_getppid), b = syscall(SYS_getppid), c = syscall(SYS_getppid);

    _exit(a == getpid() && b == 77 && c == -1 && errno == ENOSYS ? 3 : 4);
}

TEST(calls_changed_and_skipped)
{
    struct user_regs_struct regs;
    pid_t pid = traced(two_getppid, PTRACE_O_TRACESYSGOOD);

    /* Another number. */
    to_call(pid, SYS_getppid);
    OK(pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.orig_rax), SYS_getpid));
    EQ(to_end(pid).exit.rval, pid);
    /* No call at all, and a result of ours. */
    to_call(pid, SYS_getppid);
    OK(pt(GETREGS, pid, 0, A(&regs)));
    regs.orig_rax = -1;
    regs.rax = 77;
    OK(pt(SETREGS, pid, 0, A(&regs)));
    EQ(to_end(pid).exit.rval, 77);
    /* Skipped without a result. */
    to_call(pid, SYS_getppid);
    OK(pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.orig_rax), -1));
    EQ(to_end(pid).exit.rval, -ENOSYS);
    finish(pid, 3);
}

static void emulated(void)
{
    _exit(syscall(SYS_getppid) == 42 && syscall(SYS_getpid) == getpid() ? 5 : 6);
}

TEST(calls_emulated)
{
    pid_t pid = traced(emulated, PTRACE_O_TRACESYSGOOD);

    for (;;) {
        struct user_regs_struct regs;

        OK(pt(SYSEMU, pid, 0, 0));
        EQ(wait_for(pid), SYSTRAP);
        OK(pt(GETREGS, pid, 0, A(&regs)));
        if (regs.orig_rax == SYS_getppid) {
            OK(pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.rax), 42));
            break;
        }
        /* Calls of the library before it: done again, by us or not at all. */
        OK(pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.rax), 0));
    }
    finish(pid, 5);
}

static char path_changed[] = "/nowhere";

static void open_it(void)
{
    _exit(open(path_changed, O_RDONLY) >= 0 ? 1 : 2);
}

/* Memory that a tracer changes between a call's beginning and its doing counts. */
TEST(arguments_in_memory_changed)
{
    pid_t pid = traced(open_it, PTRACE_O_TRACESYSGOOD);
    char word[8] = "/proc";

    to_call(pid, SYS_openat);
    memcpy(word + 5, "\0\0", 2);
    OK(pt(PTRACE_POKEDATA, pid, A(path_changed), *(long *)word));
    CHECK(to_end(pid).exit.rval >= 0);
    finish(pid, 1);
}

static void signal_during_calls(void)
{
    for (int i = 0; i < 20; i++) {
        kill(getppid(), 0);
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

/* Beginning and end come in turn whatever else comes in between. */
TEST(signals_between_calls)
{
    pid_t pid = traced(signal_during_calls, PTRACE_O_TRACESYSGOOD);
    int in_call = 0, signals = 0, stops = 0, status;

    for (;;) {
        OK(pt(PTRACE_SYSCALL, pid, 0, 0));
        status = wait_for(pid);
        if (WIFEXITED(status))
            break;
        if (status == SYSTRAP) {
            call_info(pid, in_call ? PTRACE_SYSCALL_INFO_EXIT : PTRACE_SYSCALL_INFO_ENTRY);
            in_call = !in_call;
            if (stops++ % 5 == 0)
                OK(kill(pid, SIGWINCH));
            continue;
        }
        EQ(status, STOPPED(SIGWINCH));
        CHECK(!in_call);
        call_info(pid, PTRACE_SYSCALL_INFO_NONE);
        signals++;
    }
    CHECK(signals >= 5);
}

/* ---- memory and registers ---- */

static long victim[2] = {0x1122334455667788, 0};
static const long constant = 5;

static void check_victim(void)
{
    _exit(victim[0] == 99 && *(volatile const long *)&constant == 6 ? 1 : 2);
}

TEST(memory)
{
    pid_t pid = traced(check_victim, 0);
    long word = 0;

    OK(pt(PTRACE_PEEKDATA, pid, A(&victim[0]), A(&word)));
    EQ(word, victim[0]);
    OK(pt(PTRACE_PEEKTEXT, pid, A(victim) + 1, A(&word)));
    EQ(word, 0x11223344556677);
    OK(pt(PTRACE_POKEDATA, pid, A(victim), 99));
    /* What it may not write itself; and only it sees that. */
    OK(pt(PTRACE_POKEDATA, pid, A(&constant), 6));
    EQ(*(volatile const long *)&constant, 5);
    ERR(EIO, pt(PTRACE_PEEKDATA, pid, 8, A(&word)));
    ERR(EIO, pt(PTRACE_POKEDATA, pid, 8, 1));
    ERR(EIO, pt(PTRACE_PEEKDATA, pid, -8, A(&word)));
    ERR(EFAULT, pt(PTRACE_PEEKDATA, pid, A(victim), 8));
    ERR(EIO, pt(PTRACE_PEEKUSR, pid, 3, A(&word)));
    ERR(EIO, pt(PTRACE_PEEKUSR, pid, 928, A(&word)));
    ERR(EIO, pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.cs), 0));
    ERR(EIO, pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.fs_base), -1));
    ERR(EFAULT, pt(GETREGS, pid, 0, 8));
    ERR(EIO, pt(12345, pid, 0, 0));
    ERR(EIO, pt(PTRACE_CONT, pid, 0, 65));
    finish(pid, 1);
}

static void sum_of_xmm(void)
{
    double x = 1.5, y;

    __asm__ volatile("movsd %1, %%xmm7\n\tmov %2, %%rax\n\tmov %3, %%rdi\n\tmov $62, %%eax\n\tmov $10, %%rsi\n\tsyscall\n\tmovsd %%xmm7, %0"
                     : "=m"(y)
                     : "m"(x), "r"(0L), "r"((long)getpid())
                     : "rax", "rdi", "rsi", "rcx", "r11", "xmm7", "memory");
    _exit(y == 2.5 ? 1 : 2);
}

TEST(regsets)
{
    static char big[65536];
    struct user_fpregs_struct fp, fp2;
    struct user_regs_struct regs, regs2;
    struct iovec iov = {&regs, sizeof(regs)};
    pid_t pid = traced(sum_of_xmm, 0);
    double x;

    /* It sends itself SIGUSR1 (10) with 1.5 in %xmm7. */
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGUSR1));
    OK(pt(PTRACE_GETREGSET, pid, 1, A(&iov)));
    EQ(iov.iov_len, sizeof(regs));
    OK(pt(GETREGS, pid, 0, A(&regs2)));
    EQ(memcmp(&regs, &regs2, sizeof(regs)), 0);
    iov.iov_len = 16;
    OK(pt(PTRACE_GETREGSET, pid, 1, A(&iov)));
    EQ(iov.iov_len, 16);
    iov.iov_len = 15;
    ERR(EINVAL, pt(PTRACE_GETREGSET, pid, 1, A(&iov)));
    ERR(EINVAL, pt(PTRACE_GETREGSET, pid, 0x999, A(&iov)));
    OK(pt(GETFPREGS, pid, 0, A(&fp)));
    memcpy(&x, (char *)fp.xmm_space + 7 * 16, sizeof(x));
    CHECK(x == 1.5);
    iov = (struct iovec){&fp2, sizeof(fp2)};
    OK(pt(PTRACE_GETREGSET, pid, 2, A(&iov)));
    EQ(iov.iov_len, sizeof(fp2));
    EQ(memcmp(&fp, &fp2, 464), 0);
    iov = (struct iovec){big, sizeof(big)};
    OK(pt(PTRACE_GETREGSET, pid, 0x202, A(&iov)));
    CHECK(iov.iov_len >= 576 && iov.iov_len < sizeof(big));
    EQ(memcmp(&fp, big, 464), 0);
    CHECK((*(unsigned long *)(big + 464) & 3) == 3); /* XCR0 */
    CHECK(*(unsigned long *)(big + 512) & 2);
    x = 2.0;
    memcpy(big + 160 + 7 * 16, &x, sizeof(x));
    OK(pt(PTRACE_SETREGSET, pid, 0x202, A(&iov)));
    OK(pt(GETFPREGS, pid, 0, A(&fp)));
    memcpy(&x, (char *)fp.xmm_space + 7 * 16, sizeof(x));
    CHECK(x == 2.0);
    x = 2.5;
    memcpy((char *)fp.xmm_space + 7 * 16, &x, sizeof(x));
    OK(pt(SETFPREGS, pid, 0, A(&fp)));
    fp.mxcsr = ~0U;
    ERR(EINVAL, pt(SETFPREGS, pid, 0, A(&fp)));
    finish(pid, 1);
}

/* ---- steps and breakpoints ---- */

extern char step_begin[], step_end[], trap_here[];
__asm__(".text\nstep_begin:\n\tnop\n\tnop\n\tmov $39, %eax\n\tsyscall\n\tnop\nstep_end:\n\tnop\n\tret\ntrap_here:\n\tnop\n\tret\n");

static void run_steps(void)
{
    ((void (*)(void))step_begin)();
}

static void put_int3(pid_t pid, const char *at, long *old)
{
    OK(pt(PTRACE_PEEKTEXT, pid, A(at), A(old)));
    OK(pt(PTRACE_POKETEXT, pid, A(at), (*old & ~0xffL) | 0xcc));
}

static void take_int3(pid_t pid, const char *at, long old)
{
    EQ(rip_of(pid), A(at) + 1);
    OK(pt(PTRACE_POKETEXT, pid, A(at), old));
    OK(pt(PTRACE_POKEUSR, pid, offsetof(struct user, regs.rip), A(at)));
}

TEST(breakpoint_and_steps)
{
    pid_t pid = traced(run_steps, 0);
    unsigned long flags;
    siginfo_t si;
    long old;
    int steps = 0;

    put_int3(pid, step_begin, &old);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGTRAP));
    OK(pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
    EQ(si.si_signo, SIGTRAP);
    EQ(si.si_code, SI_KERNEL);
    take_int3(pid, step_begin, old);
    while (rip_of(pid) != (unsigned long)step_end) {
        OK(pt(PTRACE_SINGLESTEP, pid, 0, 0));
        EQ(wait_for(pid), STOPPED(SIGTRAP));
        OK(pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
        EQ(si.si_code, steps == 3 ? TRAP_BRKPT : TRAP_TRACE);
        EQ(A(si.si_addr), rip_of(pid));
        OK(pt(PTRACE_PEEKUSR, pid, offsetof(struct user, regs.eflags), A(&flags)));
        EQ(flags & 0x100, 0);
        CHECK(++steps < 10);
    }
    EQ(steps, 5);
    finish(pid, 0);
}

static volatile int handled;

static void on_usr1(int sig)
{
    handled = 1;
}

static void handle_usr1(void)
{
    signal(SIGUSR1, on_usr1);
    raise(SIGUSR1);
    _exit(handled ? 1 : 2);
}

TEST(step_into_handler)
{
    pid_t pid = traced(handle_usr1, 0);

    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGUSR1));
    OK(pt(PTRACE_SINGLESTEP, pid, 0, SIGUSR1));
    EQ(wait_for(pid), STOPPED(SIGTRAP));
    EQ(rip_of(pid), A(on_usr1));
    finish(pid, 1);
}

/* ---- signals ---- */

TEST(signal_suppressed)
{
    pid_t pid = traced(handle_usr1, 0);

    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGUSR1));
    finish(pid, 2);
}

static volatile int got_value, got_signo;

static void on_info(int sig, siginfo_t *info, void *c)
{
    got_signo = sig;
    got_value = info->si_value.sival_int;
}

static void info_changed(void)
{
    struct sigaction sa = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO};

    sigaction(SIGUSR1, &sa, NULL);
    sigaction(SIGUSR2, &sa, NULL);
    raise(SIGUSR1);
    _exit(got_signo * 10 + got_value);
}

TEST(signal_info_changed)
{
    pid_t pid = traced(info_changed, 0);
    siginfo_t si;

    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGUSR1));
    OK(pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
    EQ(si.si_signo, SIGUSR1);
    EQ(si.si_code, SI_TKILL);
    EQ(si.si_pid, pid);
    si.si_code = SI_QUEUE;
    si.si_value.sival_int = 7;
    OK(pt(PTRACE_SETSIGINFO, pid, 0, A(&si)));
    OK(pt(PTRACE_CONT, pid, 0, SIGUSR1));
    EXITED(wait_for(pid), SIGUSR1 * 10 + 7);
    pid = traced(info_changed, 0);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGUSR1));
    OK(pt(PTRACE_CONT, pid, 0, SIGUSR2));
    EXITED(wait_for(pid), SIGUSR2 * 10);
}

static void ignore_chld(void)
{
    signal(SIGUSR2, SIG_IGN);
    raise(SIGUSR2);
}

TEST(signals_ignored_and_blocked)
{
    pid_t pid = traced(ignore_chld, 0);
    struct {
        unsigned long off;
        unsigned flags;
        int nr;
    } arg = {0, 0, 4};
    unsigned long mask, blocked = 1UL << (SIGTERM - 1);
    siginfo_t infos[4];

    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGUSR2)); /* ignored, and seen */
    ERR(EINVAL, pt(PTRACE_GETSIGMASK, pid, 4, A(&mask)));
    OK(pt(PTRACE_SETSIGMASK, pid, 8, A(&blocked)));
    OK(pt(PTRACE_GETSIGMASK, pid, 8, A(&mask)));
    EQ(mask, blocked);
    OK(syscall(SYS_tgkill, pid, pid, SIGTERM));
    EQ(OK(pt(PTRACE_PEEKSIGINFO, pid, A(&arg), A(infos))), 1);
    EQ(infos[0].si_signo, SIGTERM);
    EQ(infos[0].si_code, SI_TKILL);
    arg.flags = 2;
    ERR(EINVAL, pt(PTRACE_PEEKSIGINFO, pid, A(&arg), A(infos)));
    finish(pid, 0);
}

static void do_kill(void)
{
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}

TEST(kill_and_state)
{
    pid_t pid = traced(do_kill, 0);
    char path[64], want[64];
    siginfo_t info;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    snprintf(want, sizeof(want), "TracerPid:\t%d\n", getpid());
    CHECK(strstr(guest_read_file(path), "State:\tt (tracing stop)\n"));
    CHECK(strstr(guest_read_file(path), want));
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)), 0);
    EQ(info.si_code, CLD_TRAPPED);
    EQ(info.si_status, SIGTERM);
    OK(waitid(P_PID, (id_t)pid, &info, WSTOPPED));
    EQ(info.si_code, CLD_TRAPPED);
    OK(pt(PTRACE_CONT, pid, 0, SIGTERM));
    KILLED(wait_for(pid), SIGTERM);
    pid = traced(do_kill, 0);
    OK(pt(PTRACE_KILL, pid, 0, 0));
    KILLED(wait_for(pid), SIGKILL);
    ERR(ESRCH, pt(PTRACE_CONT, pid, 0, 0));
}

/* ---- debug registers ---- */

static volatile long watched[2];

static void write_watched(void)
{
    for (volatile int i = 0; i < 50; i++)
        watched[1]++;
    watched[0] = 1;
    ((void (*)(void))trap_here)();
    _exit(1);
}

#define DEBUG(n) (long)(offsetof(struct user, u_debugreg) + 8 * (n))

TEST(debug_registers)
{
    pid_t pid = traced(write_watched, 0);
    siginfo_t si;
    long word;
    int status;

    ERR(EIO, pt(PTRACE_POKEUSR, pid, DEBUG(4), 1));
    ERR(EINVAL, pt(PTRACE_POKEUSR, pid, DEBUG(0), -4096));
    OK(pt(PTRACE_POKEUSR, pid, DEBUG(0), A(&watched[0])));
    OK(pt(PTRACE_POKEUSR, pid, DEBUG(1), A(trap_here)));
    /* 0: writes of 8 bytes; 1: execution. */
    OK(pt(PTRACE_POKEUSR, pid, DEBUG(7), 0x90005));
    OK(pt(PTRACE_PEEKUSR, pid, DEBUG(0), A(&word)));
    EQ(word, A(&watched[0]));
    OK(pt(PTRACE_PEEKUSR, pid, DEBUG(7), A(&word)));
    EQ(word & 0xf00ff, 0x90005);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    status = wait_for(pid);
    /* Some virtual machines lose the debug registers. */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
        guest_skip("the CPU's debug registers do nothing");
    EQ(status, STOPPED(SIGTRAP));
    OK(pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
    EQ(si.si_code, TRAP_HWBKPT);
    OK(pt(PTRACE_PEEKUSR, pid, DEBUG(6), A(&word)));
    EQ(word & 15, 1);
    OK(pt(PTRACE_PEEKDATA, pid, A(&watched[0]), A(&word)));
    EQ(word, 1);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGTRAP));
    EQ(rip_of(pid), A(trap_here));
    OK(pt(PTRACE_PEEKUSR, pid, DEBUG(6), A(&word)));
    EQ(word & 15, 2);
    OK(pt(PTRACE_POKEUSR, pid, DEBUG(7), 0));
    finish(pid, 1);
}
