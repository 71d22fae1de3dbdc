/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the calls on processes, signals, credentials and limits, right and wrong ones. */
#include "tests/guest/probe.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define S(...) syscall(__VA_ARGS__)
#define BAD ((void *)16)

static void nothing(int sig)
{
}

static void ids(void)
{
    P(getpgid(0) == getpgrp());
    P(getpgid(-1));
    P(getpgid(99999));
    P(getsid(-1));
    P(getsid(99999));
    P(setpgid(0, -1));
    P(setpgid(-1, 0));
    P(setpgid(99999, 0));
    P(setpgid(0, 99999));
    P(setpgid(getpid(), 99999));
    P(setsid());
    CHILD(P(setpgid(0, 0)); P(setpgid(0, getppid())); P(setpgid(getppid(), 0)); P(setsid() == getpid()));
    CHILD(P(setsid() == getpid()); P(setpgid(0, 0)); P(setsid()); P(getsid(0) == getpid()));
    P(S(SYS_set_tid_address, 0) == getpid());
    P(S(SYS_getpgrp) == getpgrp());
    P(S(SYS_personality, 0xffffffff));
    P(S(SYS_personality, ADDR_NO_RANDOMIZE));
    P(S(SYS_personality, 0));
}

static void waits(void)
{
    siginfo_t si;
    int st;
    struct rusage ru;

    P(wait4(-1, &st, 0, NULL));
    P(wait4(99999, &st, 0, NULL));
    P(wait4(-99999, &st, 0, NULL));
    P(wait4(INT_MIN, &st, 0, NULL));
    P(wait4(-1, &st, 0x100, NULL));
    P(wait4(-1, &st, WNOWAIT, NULL));
    P(wait4(-1, &st, WEXITED, NULL));
    P(waitid(P_ALL, 0, &si, 0));
    P(waitid(P_ALL, 0, &si, WNOHANG));
    P(waitid(P_ALL, 0, &si, WEXITED));
    P(waitid(P_ALL, 0, &si, WEXITED | 0x100));
    P(waitid(P_PID, 0, &si, WEXITED));
    P(waitid(P_PID, -1, &si, WEXITED));
    P(waitid(P_PGID, -1, &si, WEXITED));
    P(waitid(P_PGID, 0, &si, WEXITED));
    P(waitid(9, 0, &si, WEXITED));
    P(waitid(P_PIDFD, -1, &si, WEXITED));
    P(waitid(P_PIDFD, 0, &si, WEXITED));
    pid_t p = fork();
    if (!p)
        _exit(5);
    P(S(SYS_wait4, p, BAD, 0, NULL));
    P(wait4(p, &st, 0, NULL));
    p = fork();
    if (!p)
        _exit(6);
    memset(&si, 0xaa, sizeof(si));
    P(S(SYS_waitid, P_PID, p, &si, WEXITED | WNOWAIT, &ru));
    printf("%d %d %d %d %d %x\n", si.si_signo, si.si_errno, si.si_code, si.si_pid == p, si.si_status, ((int *)&si)[3]);
    P(S(SYS_waitid, P_PID, p, NULL, WEXITED, NULL));
    P(waitid(P_PID, p, &si, WEXITED));
    p = fork();
    if (!p) {
        pause();
        _exit(0);
    }
    memset(&si, 0xaa, sizeof(si));
    P(waitid(P_PID, p, &si, WEXITED | WNOHANG));
    printf("%x %x %x\n", si.si_signo, si.si_code, si.si_pid);
    P(wait4(p, &st, WNOHANG | __WCLONE, NULL));
    P(wait4(p, &st, WNOHANG | __WALL, NULL));
    P(wait4(p, &st, WNOHANG | __WNOTHREAD, NULL));
    P(kill(p, SIGKILL));
    P(wait4(p, &st, 0, NULL) == p);
    printf("%x\n", st);
}

static void clones(void)
{
    struct clone_args a = {0};
    static int word;

    P(S(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0));
    P(S(SYS_clone, CLONE_THREAD, 0, 0, 0, 0));
    P(S(SYS_clone, CLONE_THREAD | CLONE_SIGHAND, 0, 0, 0, 0));
    P(S(SYS_clone, CLONE_FS | CLONE_NEWNS, 0, 0, 0, 0));
    P(S(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &word, 0, 0));
    P(S(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, BAD, 0, 0));
    P(S(SYS_clone3, &a, 0));
    P(S(SYS_clone3, &a, 63));
    P(S(SYS_clone3, BAD, sizeof(a)));
    P(S(SYS_clone3, &a, 100000));
    a.exit_signal = 65;
    P(S(SYS_clone3, &a, sizeof(a)));
    a.exit_signal = 0;
    a.flags = CLONE_DETACHED;
    P(S(SYS_clone3, &a, sizeof(a)));
    a.flags = 1;
    P(S(SYS_clone3, &a, sizeof(a)));
    a.flags = 1ULL << 40;
    P(S(SYS_clone3, &a, sizeof(a)));
    a.flags = CLONE_SIGHAND | CLONE_CLEAR_SIGHAND | CLONE_VM;
    P(S(SYS_clone3, &a, sizeof(a)));
    a.flags = 0;
    a.stack = 4096;
    P(S(SYS_clone3, &a, sizeof(a)));
    a.stack = 0;
    a.stack_size = 4096;
    P(S(SYS_clone3, &a, sizeof(a)));
    P(S(SYS_unshare, 1 << 30));
    P(S(SYS_unshare, 1));
    P(S(SYS_unshare, 0));
    P(S(SYS_unshare, CLONE_FILES | CLONE_FS));
    P(S(SYS_setns, -1, 0));
    P(S(SYS_setns, 0, 0));
}

static void actions(void)
{
    struct sigaction sa = {.sa_handler = nothing};
    unsigned char raw[32] = {0};

    P(S(SYS_rt_sigaction, 0, NULL, raw, 8));
    P(S(SYS_rt_sigaction, 65, NULL, raw, 8));
    P(S(SYS_rt_sigaction, SIGKILL, NULL, raw, 8));
    P(S(SYS_rt_sigaction, SIGKILL, raw, NULL, 8));
    P(S(SYS_rt_sigaction, SIGSTOP, raw, NULL, 8));
    P(S(SYS_rt_sigaction, SIGUSR1, raw, NULL, 4));
    P(S(SYS_rt_sigaction, SIGUSR1, BAD, NULL, 8));
    P(S(SYS_rt_sigaction, SIGUSR1, NULL, BAD, 8));
    P(S(SYS_rt_sigaction, 64, raw, raw, 8));
    sa.sa_flags = SA_RESTART | SA_ONSTACK | SA_NODEFER | 0x00400000 /* unsupported, and a made-up one */ | 0x00000800;
    sigfillset(&sa.sa_mask);
    P(sigaction(SIGUSR1, &sa, NULL));
    P(S(SYS_rt_sigaction, SIGUSR1, NULL, raw, 8));
    uint64_t w[4];
    memcpy(w, raw, sizeof(w));
    printf("flags %lx mask %lx\n", w[1], w[3]);
    signal(SIGUSR1, SIG_DFL);
    P(S(SYS_rt_sigprocmask, 9, NULL, NULL, 8));
    P(S(SYS_rt_sigprocmask, 9, raw, NULL, 8));
    P(S(SYS_rt_sigprocmask, SIG_BLOCK, BAD, NULL, 8));
    P(S(SYS_rt_sigprocmask, SIG_BLOCK, NULL, BAD, 8));
    P(S(SYS_rt_sigprocmask, SIG_BLOCK, NULL, NULL, 16));
    P(S(SYS_rt_sigpending, raw, 9));
    P(S(SYS_rt_sigpending, raw, 4));
    P(S(SYS_rt_sigpending, BAD, 8));
    P(S(SYS_rt_sigsuspend, BAD, 8));
    P(S(SYS_rt_sigsuspend, raw, 4));
    P(S(SYS_rt_sigtimedwait, BAD, NULL, NULL, 8));
    P(S(SYS_rt_sigtimedwait, raw, NULL, NULL, 4));
    struct timespec ts = {0, 2000000000};
    P(S(SYS_rt_sigtimedwait, raw, NULL, &ts, 8));
    ts.tv_nsec = 1000;
    P(S(SYS_rt_sigtimedwait, raw, NULL, &ts, 8));
    P(S(SYS_restart_syscall));
}

static void altstacks(void)
{
    static char stack[65536];
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)}, old;

    P(sigaltstack(NULL, NULL));
    P(sigaltstack(NULL, &old));
    printf("%d %zu\n", old.ss_flags, old.ss_size);
    P(S(SYS_sigaltstack, BAD, NULL));
    P(S(SYS_sigaltstack, NULL, BAD));
    ss.ss_size = 2047;
    P(sigaltstack(&ss, NULL));
    ss.ss_size = 2048;
    P(sigaltstack(&ss, NULL));
    ss.ss_flags = 8;
    ss.ss_size = sizeof(stack);
    P(sigaltstack(&ss, NULL));
    ss.ss_flags = SS_ONSTACK;
    P(sigaltstack(&ss, &old));
    P(sigaltstack(NULL, &old));
    printf("%x %zu\n", old.ss_flags, old.ss_size);
    ss.ss_flags = 1 << 31;
    P(sigaltstack(&ss, NULL));
    P(sigaltstack(NULL, &old));
    printf("%x\n", old.ss_flags);
    ss.ss_flags = SS_DISABLE | 1 << 31;
    P(sigaltstack(&ss, NULL));
    P(sigaltstack(NULL, &old));
    printf("%x %zu %d\n", old.ss_flags, old.ss_size, old.ss_sp == stack);
    ss.ss_flags = SS_DISABLE;
    P(sigaltstack(&ss, NULL));
}

static void kills(void)
{
    siginfo_t si = {0};
    pid_t p;
    int st;

    P(kill(getpid(), 0));
    P(kill(getpid(), 65));
    P(kill(getpid(), -1));
    P(kill(99999, 0));
    P(kill(-99999, 0));
    P(kill(INT_MIN, 0));
    P(S(SYS_tkill, 0, 0));
    P(S(SYS_tkill, -1, 0));
    P(S(SYS_tkill, 99999, 0));
    P(S(SYS_tgkill, getpid(), getpid(), 0));
    P(S(SYS_tgkill, 1, 99999, 0));
    P(S(SYS_tgkill, 99999, getpid(), 0));
    P(S(SYS_tgkill, 0, getpid(), 0));
    P(S(SYS_tgkill, getpid(), getpid(), 65));
    P(S(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, BAD));
    P(S(SYS_rt_sigqueueinfo, getpid(), 0, &si));
    P(S(SYS_rt_sigqueueinfo, getpid(), 65, &si));
    p = fork();
    if (!p) {
        pause();
        _exit(0);
    }
    si.si_code = SI_USER;
    P(S(SYS_rt_sigqueueinfo, p, SIGUSR1, &si));
    si.si_code = SI_TKILL;
    P(S(SYS_rt_sigqueueinfo, p, SIGUSR1, &si));
    si.si_code = SI_KERNEL;
    P(S(SYS_rt_tgsigqueueinfo, p, p, SIGUSR1, &si));
    si.si_code = SI_QUEUE;
    P(S(SYS_rt_tgsigqueueinfo, p, 0, SIGUSR1, &si));
    P(S(SYS_rt_tgsigqueueinfo, p, p, 0, &si));
    P(S(SYS_pidfd_open, p, 1));
    P(S(SYS_pidfd_open, -1, 0));
    P(S(SYS_pidfd_open, 99999, 0));
    int fd = S(SYS_pidfd_open, p, 0);
    P(fcntl(fd, F_GETFD));
    P(S(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    P(S(SYS_pidfd_send_signal, fd, 65, NULL, 0));
    P(S(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 1 << 10));
    P(S(SYS_pidfd_send_signal, fd, SIGUSR1, BAD, 0));
    P(S(SYS_pidfd_send_signal, 0, SIGUSR1, NULL, 0));
    P(S(SYS_pidfd_send_signal, -1, SIGUSR1, NULL, 0));
    P(S(SYS_pidfd_getfd, fd, 99, 0));
    PF(S(SYS_pidfd_getfd, fd, 0, 0));
    P(S(SYS_pidfd_getfd, fd, 0, 1));
    P(S(SYS_kcmp, p, getpid(), 0, 1, 1));
    P(S(SYS_kcmp, p, getpid(), 0, 1, 99));
    P(S(SYS_kcmp, p, p, 1, 0, 0));
    P(S(SYS_kcmp, p, 99999, 1, 0, 0));
    P(S(SYS_kcmp, p, p, 99, 0, 0));
    P(kill(p, SIGSEGV));
    P(waitpid(p, &st, 0) == p);
    printf("%x\n", st & 0x7f);
    P(S(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    P(S(SYS_pidfd_getfd, fd, 0, 0));
    P(S(SYS_waitid, P_PIDFD, fd, NULL, WEXITED, NULL));
    close(fd);
}

static void creds(void)
{
    gid_t groups[4] = {7, 3, 5, 3};

    P(S(SYS_setuid, -1));
    P(S(SYS_setgid, -1));
    P(S(SYS_setfsuid, -1));
    P(S(SYS_getgroups, -1, NULL));
    P(S(SYS_getgroups, 0, BAD));
    P(S(SYS_setgroups, 65537, NULL));
    P(S(SYS_setgroups, 2, BAD));
    P(S(SYS_getresuid, BAD, BAD, BAD));
    CHILD(P(S(SYS_setgroups, 4, groups)); P(S(SYS_getgroups, 3, groups)); P(S(SYS_getgroups, 4, groups));
          printf("%d %d %d %d\n", groups[0], groups[1], groups[2], groups[3]));
    CHILD(uid_t a; uid_t b; uid_t c; P(S(SYS_setresuid, 1, 2, 3)); P(S(SYS_setuid, 9)); P(S(SYS_setuid, 3)); P(S(SYS_setuid, 2));
          P(S(SYS_setreuid, 3, -1)); P(S(SYS_setreuid, -1, 2)); P(S(SYS_setresuid, 3, 1, -1)); P(S(SYS_setfsuid, 3));
          P(S(SYS_setfsuid, 9)); P(S(SYS_setfsuid, -1)); getresuid(&a, &b, &c); printf("%d %d %d\n", a, b, c));
    CHILD(gid_t a; gid_t b; gid_t c; P(S(SYS_setresgid, 1, 2, 3)); P(S(SYS_setuid, 1000)); P(S(SYS_setgid, 9));
          P(S(SYS_setgid, 3)); P(S(SYS_setregid, 3, 1)); P(S(SYS_setregid, 2, 1)); P(S(SYS_setresgid, 1, 1, 1));
          P(S(SYS_setgroups, 0, NULL)); getresgid(&a, &b, &c); printf("%d %d %d\n", a, b, c));
    CHILD(P(S(SYS_setreuid, 1, 0)); P(S(SYS_setreuid, -1, 1)); P(S(SYS_setreuid, 0, -1)); P(S(SYS_setreuid, -1, 0)));
    CHILD(P(S(SYS_setfsuid, 5)); P(S(SYS_setfsuid, 6)); P(S(SYS_setfsuid, 0)); P(S(SYS_setfsgid, 5)); P(S(SYS_setfsgid, 0)));
}

static void caps(void)
{
    struct __user_cap_header_struct h = {0, 0};
    struct __user_cap_data_struct d[2] = {0};

    P(S(SYS_capget, &h, NULL));
    printf("%x\n", h.version);
    h.version = 5;
    P(S(SYS_capget, &h, d));
    printf("%x\n", h.version);
    P(S(SYS_capget, BAD, d));
    P(S(SYS_capget, &h, BAD));
    h.pid = 99999;
    P(S(SYS_capget, &h, d));
    h.pid = -1;
    P(S(SYS_capget, &h, d));
    h.pid = 0;
    P(S(SYS_capget, &h, d));
    printf("%x %x %x %x\n", d[0].effective, d[0].permitted, d[0].inheritable, d[1].permitted);
    h.version = _LINUX_CAPABILITY_VERSION_1;
    P(S(SYS_capget, &h, d));
    h.version = _LINUX_CAPABILITY_VERSION_3;
    h.pid = 99999;
    P(S(SYS_capset, &h, d));
    h.pid = 0;
    P(S(SYS_capset, &h, BAD));
    CHILD(d[0].effective |= 1 << CAP_SYS_ADMIN; P(S(SYS_capset, &h, d)));
    CHILD(d[0].permitted |= 1 << CAP_SYS_ADMIN; P(S(SYS_capset, &h, d)));
    CHILD(d[0].inheritable |= 1 << CAP_SYS_ADMIN; P(S(SYS_capset, &h, d)));
    CHILD(d[0].inheritable |= 1 << CAP_KILL; P(S(SYS_capset, &h, d)));
    CHILD(d[0].effective = d[0].permitted = 1; P(S(SYS_capset, &h, d)); d[0].permitted = 3; P(S(SYS_capset, &h, d));
          P(setuid(5)); P(prctl(PR_CAPBSET_DROP, 1)); P(prctl(PR_SET_SECUREBITS, 1)));
}

static void prctls(void)
{
    char name[16];
    int word = -1;

    P(prctl(9999, 0, 0, 0, 0));
    P(prctl(PR_SET_PDEATHSIG, 65));
    P(prctl(PR_SET_PDEATHSIG, 64));
    P(prctl(PR_GET_PDEATHSIG, &word));
    printf("%d\n", word);
    P(prctl(PR_GET_PDEATHSIG, BAD));
    P(prctl(PR_SET_PDEATHSIG, 0));
    P(prctl(PR_SET_DUMPABLE, 2));
    P(prctl(PR_SET_DUMPABLE, 0));
    P(prctl(PR_GET_DUMPABLE));
    P(prctl(PR_SET_DUMPABLE, 1));
    P(prctl(PR_SET_NAME, BAD));
    P(prctl(PR_GET_NAME, BAD));
    P(prctl(PR_SET_NAME, "0123456789abcdefgh"));
    P(prctl(PR_GET_NAME, name));
    puts(name);
    P(prctl(PR_GET_KEEPCAPS));
    P(prctl(PR_SET_KEEPCAPS, 2));
    P(prctl(PR_SET_KEEPCAPS, 1));
    P(prctl(PR_GET_SECUREBITS));
    P(prctl(PR_SET_KEEPCAPS, 0));
    P(prctl(PR_CAPBSET_READ, 0));
    P(prctl(PR_CAPBSET_READ, 40));
    P(prctl(PR_CAPBSET_READ, 41));
    P(prctl(PR_CAPBSET_READ, 64));
    P(prctl(PR_CAPBSET_DROP, 41));
    P(prctl(PR_SET_SECUREBITS, 1 << 12));
    CHILD(P(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED)); P(prctl(PR_SET_KEEPCAPS, 0));
          P(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS)); P(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS_LOCKED));
          P(prctl(PR_GET_SECUREBITS)));
    P(prctl(PR_GET_TIMERSLACK));
    P(prctl(PR_SET_TIMERSLACK, 1234));
    P(prctl(PR_GET_TIMERSLACK));
    P(prctl(PR_SET_TIMERSLACK, 0));
    P(prctl(PR_GET_TIMERSLACK));
    P(prctl(PR_GET_TIMING));
    P(prctl(PR_SET_TIMING, 1));
    P(prctl(PR_SET_TIMING, 0));
    P(prctl(PR_GET_TSC, &word));
    printf("%d\n", word);
    P(prctl(PR_SET_TSC, 3));
    P(prctl(PR_GET_UNALIGN, &word));
    P(prctl(PR_GET_FPEMU, &word));
    P(prctl(PR_GET_FPEXC, &word));
    P(prctl(PR_GET_ENDIAN, &word));
    P(prctl(PR_GET_CHILD_SUBREAPER, &word));
    printf("%d\n", word);
    P(prctl(PR_SET_CHILD_SUBREAPER, 7));
    P(prctl(PR_GET_CHILD_SUBREAPER, &word));
    printf("%d\n", word);
    P(prctl(PR_SET_CHILD_SUBREAPER, 0));
    P(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    P(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0));
    P(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    P(prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0));
    P(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0));
    P(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
    P(prctl(PR_MCE_KILL, 0, 0, 0, 0));
    P(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    P(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0));
    P(S(SYS_arch_prctl, 0x1003, BAD));
    P(S(SYS_arch_prctl, 0x1002, 0xffff800000000000));
    P(S(SYS_arch_prctl, 0x9999, 0));
    unsigned long base = 1;
    P(S(SYS_arch_prctl, 0x1004, &base));
    printf("%lx\n", base);
    P(S(SYS_arch_prctl, 0x1001, 0x12345000));
    P(S(SYS_arch_prctl, 0x1004, &base));
    printf("%lx\n", base);
    P(S(SYS_arch_prctl, 0x1001, 0));
}

static void limits(void)
{
    struct rlimit r;

    for (int i = 0; i < 17; i++) {
        static const char *const names[] = {"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock",
                                            "as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime", "?"};
        errno = 0;
        int ret = getrlimit(i, &r);
        /* Numbers that follow the machine are left out. */
        if (i == RLIMIT_NPROC || i == RLIMIT_SIGPENDING || i == RLIMIT_MEMLOCK || i == RLIMIT_NOFILE || ret)
            printf("%s: %d\n", names[i], ret);
        else
            printf("%s: %ld %ld\n", names[i], (long)r.rlim_cur, (long)r.rlim_max);
    }
    r = (struct rlimit){10, 5};
    P(setrlimit(RLIMIT_CPU, &r));
    P(S(SYS_setrlimit, RLIMIT_CPU, BAD));
    P(S(SYS_getrlimit, RLIMIT_CPU, BAD));
    P(S(SYS_prlimit64, 99999, RLIMIT_CPU, NULL, NULL));
    P(S(SYS_prlimit64, 0, 99, NULL, NULL));
    P(S(SYS_prlimit64, 0, RLIMIT_CPU, NULL, NULL));
    r = (struct rlimit){1 << 30, 1 << 30};
    P(setrlimit(RLIMIT_NOFILE, &r));
    CHILD(r = (struct rlimit){100, 200}; P(setrlimit(RLIMIT_NOFILE, &r)); P(setuid(1000)); r.rlim_cur = 200;
          P(setrlimit(RLIMIT_NOFILE, &r)); r.rlim_max = 201; P(setrlimit(RLIMIT_NOFILE, &r)); P(dup2(0, 250));
          P(prlimit(1, RLIMIT_NOFILE, NULL, &r)));
    P(S(SYS_getrusage, 5, &r));
    P(S(SYS_getrusage, RUSAGE_SELF, BAD));
    P(S(SYS_getrusage, RUSAGE_CHILDREN, BAD));
}

static void absent(void)
{
    P(S(999));
    P(S(-1));
    P(S(1ULL << 32 | SYS_getpid) == getpid());
    P(S(SYS_rseq, 0, 0, 0, 0));
    P(S(SYS_set_robust_list, 0, 23));
    P(S(SYS_get_robust_list, 99999, &errno, &errno));
    P(S(SYS_tuxcall));
    P(S(SYS_vserver));
    P(S(SYS_create_module));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    PROBE(ids);
    PROBE(waits);
    PROBE(clones);
    PROBE(actions);
    PROBE(altstacks);
    PROBE(kills);
    PROBE(creds);
    PROBE(caps);
    PROBE(prctls);
    PROBE(limits);
    PROBE(absent);
    return 0;
}
