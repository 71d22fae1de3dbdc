/* SPDX-License-Identifier: Apache-2.0 */
/* fork, exec, wait, exit, process groups, sessions, adoption. */
#include "tests/guest/guest.h"

#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

extern char **environ;

TEST(exit_status)
{
    EXITED(IN_CHILD(_exit(42)), 42);
    EXITED(IN_CHILD(_exit(0x1ff)), 255);
    KILLED(IN_CHILD(kill(getpid(), SIGKILL)), SIGKILL);
    KILLED(IN_CHILD(raise(SIGTERM)), SIGTERM);
    KILLED(IN_CHILD(abort()), SIGABRT);
}

TEST(fork_copies_memory)
{
    static int value = 1;
    int *heap = malloc(1 << 20), fds[2], got;

    heap[1000] = 7;
    OK(pipe(fds));
    EXITED(IN_CHILD({
               value++;
               heap[1000]++;
               CHECK(write(fds[1], &heap[1000], 4) == 4);
               CHECK(write(fds[1], &value, 4) == 4);
           }), 0);
    EQ(read(fds[0], &got, 4), 4);
    EQ(got, 8);
    EQ(read(fds[0], &got, 4), 4);
    EQ(got, 2);
    EQ(value, 1);
    EQ(heap[1000], 7);
}

TEST(ids_of_a_child)
{
    pid_t me = getpid();
    int fds[2];
    pid_t ids[4], child, got[4];

    OK(pipe(fds));
    child = OK(fork());
    if (!child) {
        ids[0] = getpid();
        ids[1] = getppid();
        ids[2] = getpgrp();
        ids[3] = (pid_t)syscall(SYS_gettid);
        CHECK(write(fds[1], ids, sizeof(ids)) == sizeof(ids));
        _exit(0);
    }
    EQ(read(fds[0], got, sizeof(got)), sizeof(got));
    EQ(got[0], child);
    EQ(got[1], me);
    EQ(got[2], getpgrp());
    EQ(got[3], child);
    EQ(waitpid(child, NULL, 0), child);
}

TEST(wait_errors)
{
    int status;

    ERR(ECHILD, waitpid(-1, &status, 0));
    ERR(ECHILD, waitpid(getppid(), &status, 0));
    ERR(EINVAL, waitpid(-1, &status, 0x7777));
    ERR(ESRCH, syscall(SYS_wait4, (int)0x80000000, &status, 0, NULL));
    ERR(EINVAL, waitid(P_ALL, 0, NULL, 0));
    ERR(EINVAL, waitid((idtype_t)17, 0, NULL, WEXITED));
}

TEST(wait_nohang_and_usage)
{
    struct rusage usage;
    int status, fds[2];
    pid_t child;

    OK(pipe(fds));
    child = OK(fork());
    if (!child) {
        char c;
        close(fds[1]);
        CHECK(read(fds[0], &c, 1) == 0);
        _exit(3);
    }
    EQ(waitpid(child, &status, WNOHANG), 0);
    close(fds[1]);
    EQ(wait4(child, &status, 0, &usage), child);
    EXITED(status, 3);
    ERR(ECHILD, waitpid(child, &status, WNOHANG));
}

TEST(waitid_reports)
{
    siginfo_t info;
    pid_t child = OK(fork());

    if (!child)
        _exit(5);
    memset(&info, 0xff, sizeof(info));
    OK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
    EQ(info.si_signo, SIGCHLD);
    EQ(info.si_code, CLD_EXITED);
    EQ(info.si_status, 5);
    EQ(info.si_pid, child);
    OK(waitid(P_PID, (id_t)child, &info, WEXITED));
    EQ(info.si_status, 5);
    ERR(ECHILD, waitid(P_PID, (id_t)child, &info, WEXITED));

    child = OK(fork());
    if (!child) {
        raise(SIGSTOP);
        raise(SIGKILL);
    }
    OK(waitid(P_PID, (id_t)child, &info, WSTOPPED));
    EQ(info.si_code, CLD_STOPPED);
    EQ(info.si_status, SIGSTOP);
    memset(&info, 0, sizeof(info));
    OK(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG));
    EQ(info.si_pid, 0);
    OK(kill(child, SIGCONT));
    OK(waitid(P_PID, (id_t)child, &info, WEXITED));
    EQ(info.si_code, CLD_KILLED);
    EQ(info.si_status, SIGKILL);
}

TEST(wait_stopped_and_continued)
{
    pid_t child = OK(fork());
    int status;

    if (!child)
        for (;;)
            pause();
    OK(kill(child, SIGSTOP));
    EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    EQ(WSTOPSIG(status), SIGSTOP);
    EQ(waitpid(child, &status, WUNTRACED | WNOHANG), 0);
    OK(kill(child, SIGCONT));
    EQ(waitpid(child, &status, WCONTINUED), child);
    CHECK(WIFCONTINUED(status));
    OK(kill(child, SIGTERM));
    EQ(waitpid(child, &status, 0), child);
    KILLED(status, SIGTERM);
}

TEST(wait_by_group)
{
    pid_t a = OK(fork()), b;
    int status;

    if (!a) {
        OK(setpgid(0, 0));
        _exit(1);
    }
    setpgid(a, a);
    b = OK(fork());
    if (!b)
        _exit(2);
    EQ(waitpid(-a, &status, 0), a);
    EXITED(status, 1);
    ERR(ECHILD, waitpid(-a, &status, 0));
    EQ(waitpid(0, &status, 0), b);
    EXITED(status, 2);
}

static volatile int chld_code, chld_status, chld_pid;

static void on_chld(int sig, siginfo_t *info, void *uc)
{
    chld_code = info->si_code;
    chld_status = info->si_status;
    chld_pid = info->si_pid;
}

TEST(sigchld)
{
    struct sigaction sa = {.sa_sigaction = on_chld, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t block, old;
    pid_t child;

    OK(sigaction(SIGCHLD, &sa, NULL));
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    OK(sigprocmask(SIG_BLOCK, &block, &old));
    child = OK(fork());
    if (!child)
        _exit(9);
    EQ(chld_pid, 0);
    sigsuspend(&old);
    EQ(chld_pid, child);
    EQ(chld_code, CLD_EXITED);
    EQ(chld_status, 9);
    EQ(waitpid(child, NULL, 0), child);
}

TEST(sigchld_ignored_reaps)
{
    pid_t child;

    signal(SIGCHLD, SIG_IGN);
    child = OK(fork());
    if (!child)
        _exit(0);
    ERR(ECHILD, waitpid(child, NULL, 0));
    ERR(ESRCH, kill(child, 0));
}

TEST(nocldwait_reaps)
{
    struct sigaction sa = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    pid_t child;

    OK(sigaction(SIGCHLD, &sa, NULL));
    child = OK(fork());
    if (!child)
        _exit(0);
    ERR(ECHILD, waitpid(-1, NULL, 0));
}

TEST(vfork_shares_until_exit)
{
    static volatile int value;
    pid_t child = vfork();

    if (!child) {
        value = 77;
        _exit(6);
    }
    EQ(value, 77);
    int status;
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 6);
}

MODE(echo_args)
{
    for (int i = 2; i < argc; i++)
        printf("%s|", argv[i]);
    for (char **e = environ; *e; e++)
        printf("%s;", *e);
    fflush(stdout);
    return argc;
}

static char *run_echo(char **argv, char **envp, bool use_vfork)
{
    static char out[4096];
    ssize_t n, size = 0;
    int fds[2], status;
    pid_t child;

    OK(pipe2(fds, O_CLOEXEC));
    child = use_vfork ? vfork() : fork();
    if (!child) {
        dup2(fds[1], 1);
        execve("/proc/self/exe", argv, envp);
        _exit(120);
    }
    close(fds[1]);
    while ((n = read(fds[0], out + size, sizeof(out) - 1 - (size_t)size)) > 0)
        size += n;
    close(fds[0]);
    out[size] = 0;
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 4);
    return out;
}

TEST(exec_passes_arguments)
{
    char *argv[] = {"prog", "@echo_args", "one", "", NULL}, *envp[] = {"A=1", "B=", NULL};

    STR(run_echo(argv, envp, false), "one||A=1;B=;");
    STR(run_echo(argv, envp, true), "one||A=1;B=;");
}

TEST(posix_spawn_works)
{
    char *argv[] = {"prog", "@echo_args", NULL}, *envp[] = {NULL};
    posix_spawn_file_actions_t fa;
    pid_t child;
    int status;

    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
    EQ(posix_spawn(&child, "/proc/self/exe", &fa, NULL, argv, envp), 0);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 2);
    EQ(posix_spawn(&child, "/does/not/exist", &fa, NULL, argv, envp), ENOENT);
    for (int i = 0; i < 50; i++) {
        EQ(posix_spawn(&child, "/proc/self/exe", &fa, NULL, argv, envp), 0);
        EQ(waitpid(child, &status, 0), child);
    }
}

TEST(exec_errors)
{
    char *argv[] = {"x", NULL}, *big[2] = {NULL, NULL};

    guest_tmpdir();
    ERR(ENOENT, execv("missing", argv));
    ERR(ENOENT, execv("", argv));
    ERR(EACCES, execv("/tmp", argv));
    guest_write_file("plain", "hello");
    ERR(EACCES, execv("plain", argv));
    OK(chmod("plain", 0755));
    ERR(ENOEXEC, execv("plain", argv));
    guest_write_file("empty", "");
    OK(chmod("empty", 0755));
    ERR(ENOEXEC, execv("empty", argv));
    ERR(ENOTDIR, execv("plain/x", argv));
    OK(symlink("loop", "loop"));
    ERR(ELOOP, execv("loop", argv));
    guest_write_file("script", "#!/does/not/exist\n");
    OK(chmod("script", 0755));
    ERR(ENOENT, execv("script", argv));
    guest_write_file("elf", "\177ELF\2\1\1");
    OK(chmod("elf", 0755));
    ERR(ENOEXEC, execv("elf", argv));
    big[0] = malloc(200 * 1024);
    memset(big[0], 'x', 200 * 1024 - 1);
    big[0][200 * 1024 - 1] = 0;
    ERR(E2BIG, execv("/proc/self/exe", big));
}

TEST(exec_script)
{
    char *argv[] = {"script", "arg1", NULL}, *envp[] = {NULL}, out[256];
    int fds[2], status;
    ssize_t n;
    pid_t child;

    guest_tmpdir();
    guest_write_file("script", "#!/test @echo_args extra\nignored\n");
    OK(chmod("script", 0755));
    OK(pipe(fds));
    child = OK(fork());
    if (!child) {
        dup2(fds[1], 1);
        execve("./script", argv, envp);
        _exit(120);
    }
    close(fds[1]);
    EQ(waitpid(child, &status, 0), child);
    n = OK(read(fds[0], out, sizeof(out) - 1));
    out[n] = 0;
    /* The interpreter gets one argument, "@echo_args extra", which is no mode. */
    EXITED(status, 98);
    guest_write_file("script", "#! /test  @echo_args \n");
    child = OK(fork());
    if (!child) {
        dup2(fds[0], 0);
        execve("./script", argv, envp);
        _exit(120);
    }
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 4);
}

MODE(check_fds)
{
    int keep = atoi(argv[2]), gone = atoi(argv[3]);

    return fcntl(keep, F_GETFD) == 0 && fcntl(gone, F_GETFD) == -1 && errno == EBADF ? 0 : 1;
}

TEST(exec_closes_and_resets)
{
    int keep = OK(open("/dev/null", O_RDONLY)), gone = OK(open("/dev/null", O_RDONLY | O_CLOEXEC));
    char a[16], b[16], *argv[] = {"x", "@check_fds", a, b, NULL};

    snprintf(a, sizeof(a), "%d", keep);
    snprintf(b, sizeof(b), "%d", gone);
    EXITED(IN_CHILD(execv("/proc/self/exe", argv)), 0);
}

static void nothing(int sig)
{
}

MODE(check_signals)
{
    struct sigaction sa;
    sigset_t set;

    sigaction(SIGUSR1, NULL, &sa);
    if (sa.sa_handler != SIG_DFL)
        return 1;
    sigaction(SIGUSR2, NULL, &sa);
    if (sa.sa_handler != SIG_IGN)
        return 2;
    sigprocmask(SIG_BLOCK, NULL, &set);
    if (!sigismember(&set, SIGHUP) || sigismember(&set, SIGTERM))
        return 3;
    sigpending(&set);
    return sigismember(&set, SIGHUP) ? 0 : 4;
}

TEST(exec_keeps_mask_and_pending)
{
    char *argv[] = {"x", "@check_signals", NULL};
    sigset_t set;

    EXITED(IN_CHILD({
               signal(SIGUSR1, nothing);
               signal(SIGUSR2, SIG_IGN);
               sigemptyset(&set);
               sigaddset(&set, SIGHUP);
               sigprocmask(SIG_SETMASK, &set, NULL);
               raise(SIGHUP);
               execv("/proc/self/exe", argv);
           }), 0);
}

TEST(process_groups)
{
    int fds[2], status;
    pid_t child;
    char c;

    OK(pipe(fds));
    child = OK(fork());
    if (!child) {
        close(fds[1]);
        CHECK(read(fds[0], &c, 1) == 0);
        EQ(getpgrp(), getpid());
        ERR(EPERM, setsid());
        _exit(0);
    }
    OK(setpgid(child, child));
    EQ(getpgid(child), child);
    EQ(getsid(child), getsid(0));
    ERR(EINVAL, setpgid(0, -1));
    ERR(ESRCH, setpgid(99999, 0));
    ERR(EPERM, setpgid(0, 99999));
    ERR(ESRCH, getpgid(99999));
    ERR(ESRCH, getsid(99999));
    close(fds[1]);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

TEST(sessions)
{
    EXITED(IN_CHILD({
               EQ(setsid(), getpid());
               EQ(getsid(0), getpid());
               EQ(getpgrp(), getpid());
               ERR(EPERM, setsid());
               ERR(EPERM, setpgid(0, 0));
           }), 0);
}

MODE(sleep)
{
    sleep(5);
    return 0;
}

TEST(setpgid_after_exec)
{
    char *argv[] = {"x", "@sleep", NULL};
    int fds[2];
    pid_t child;
    char c;

    OK(pipe2(fds, O_CLOEXEC));
    child = OK(fork());
    if (!child) {
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    close(fds[1]);
    EQ(read(fds[0], &c, 1), 0);
    ERR(EACCES, setpgid(child, child));
    kill(child, SIGKILL);
    EQ(waitpid(child, NULL, 0), child);
}

TEST(orphans_go_to_the_subreaper)
{
    pid_t child, grandchild, got;
    int fds[2], status;

    OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    OK(pipe(fds));
    child = OK(fork());
    if (!child) {
        grandchild = OK(fork());
        if (!grandchild) {
            sleep_ms(100);
            _exit(7);
        }
        CHECK(write(fds[1], &grandchild, sizeof(grandchild)) == sizeof(grandchild));
        _exit(0);
    }
    EQ(read(fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    EQ(waitpid(child, &status, 0), child);
    got = waitpid(-1, &status, 0);
    EQ(got, grandchild);
    EXITED(status, 7);
}

TEST(parent_death_signal)
{
    pid_t child;
    int fds[2];
    char c;

    OK(pipe(fds));
    child = OK(fork());
    if (!child) {
        if (!OK(fork())) {
            close(fds[0]);
            OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
            CHECK(write(fds[1], "r", 1) == 1);
            for (;;)
                pause();
        }
        for (;;)
            pause();
    }
    close(fds[1]);
    EQ(read(fds[0], &c, 1), 1);
    OK(kill(child, SIGKILL));
    EQ(waitpid(child, NULL, 0), child);
    EQ(read(fds[0], &c, 1), 0);
}

TEST(kill_permissions_and_targets)
{
    pid_t child;
    int status;

    ERR(ESRCH, kill(99999, 0));
    ERR(EINVAL, kill(getpid(), 65));
    ERR(EINVAL, kill(getpid(), -1));
    OK(kill(getpid(), 0));
    child = OK(fork());
    if (!child) {
        OK(setpgid(0, 0));
        if (!OK(fork()))
            for (;;)
                pause();
        kill(0, SIGTERM);
        for (;;)
            pause();
    }
    EQ(waitpid(child, &status, 0), child);
    KILLED(status, SIGTERM);
    EXITED(IN_CHILD({
               pid_t parent = getppid();
               OK(setuid(65534));
               ERR(EPERM, kill(parent, SIGTERM));
           }), 0);
}

TEST(fault_statuses)
{
    volatile int zero = 0, seven = 7;

    prctl(PR_SET_DUMPABLE, 0);
    KILLED(IN_CHILD(*(volatile int *)0 = 1), SIGSEGV);
    KILLED(IN_CHILD(zero = seven / zero), SIGFPE);
    KILLED(IN_CHILD(__asm__ volatile("ud2")), SIGILL);
    KILLED(IN_CHILD(__asm__ volatile("int3")), SIGTRAP);
    KILLED(IN_CHILD(__asm__ volatile("hlt")), SIGSEGV);
}

TEST(times_of_children)
{
    struct rusage before, after;
    struct timeval t;

    OK(getrusage(RUSAGE_CHILDREN, &before));
    IN_CHILD({
        uint64_t end = now_ms() + 200;
        while (now_ms() < end)
            ;
    });
    OK(getrusage(RUSAGE_CHILDREN, &after));
    timersub(&after.ru_utime, &before.ru_utime, &t);
    struct timeval s;
    timersub(&after.ru_stime, &before.ru_stime, &s);
    timeradd(&t, &s, &t);
    CHECK(t.tv_sec * 1000000 + t.tv_usec > 50000);
    ERR(EINVAL, getrusage(17, &after));
}

TEST(clone_without_libc)
{
    int status;
    pid_t tid = 0, child;

    child = (pid_t)OK(syscall(SYS_clone, SIGCHLD | 0x00100000 /* PARENT_SETTID */, 0, &tid, 0, 0));
    if (!child)
        _exit(11);
    EQ(tid, child);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 11);
    ERR(EINVAL, syscall(SYS_clone, 0x00010000 /* THREAD without SIGHAND */, 0, 0, 0, 0));
    ERR(EINVAL, syscall(SYS_clone, 0x00000800 /* SIGHAND without VM */, 0, 0, 0, 0));
    /* Another exit signal: seen only with __WCLONE or __WALL. */
    child = (pid_t)OK(syscall(SYS_clone, SIGUSR2 & 0, 0, 0, 0, 0));
    if (!child)
        _exit(12);
    ERR(ECHILD, waitpid(child, &status, 0));
    EQ(waitpid(child, &status, __WCLONE), child);
    EXITED(status, 12);
}

struct clone_args_t {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

TEST(clone3)
{
    struct clone_args_t args = {.exit_signal = SIGCHLD};
    int status;
    pid_t child = (pid_t)OK(syscall(435, &args, sizeof(args)));

    if (!child)
        _exit(13);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 13);
    ERR(EINVAL, syscall(435, &args, 16));
    args.exit_signal = 300;
    ERR(EINVAL, syscall(435, &args, sizeof(args)));
}

TEST(vfork_parent_waits_for_exec)
{
    char *argv[] = {"x", "@sleep", NULL};
    uint64_t begin = now_ms();
    pid_t child = vfork();

    if (!child) {
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    CHECK(now_ms() - begin < 4000);
    kill(child, SIGKILL);
    EQ(waitpid(child, NULL, 0), child);
}

TEST(signals_during_vfork)
{
    /* The suspended parent takes its signal after the child is done. */
    struct sigaction sa = {.sa_sigaction = on_chld, .sa_flags = SA_SIGINFO};
    pid_t me = getpid(), child;

    OK(sigaction(SIGUSR1, &sa, NULL));
    chld_pid = 0;
    child = vfork();
    if (!child) {
        kill(me, SIGUSR1);
        _exit(0);
    }
    EQ(chld_pid, child);
    EQ(waitpid(child, NULL, 0), child);
}
