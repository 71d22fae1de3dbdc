/* SPDX-License-Identifier: Apache-2.0 */
/* Seccomp: filters, their actions, and what inherits them. */
#include "tests/guest/seccomp.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/uio.h>
#include <ucontext.h>

extern char **environ;

static int status_field(const char *name)
{
    char *text = guest_read_file("/proc/self/status"), *at = strstr(text, name);
    CHECK(at);
    return atoi(at + strlen(name));
}

TEST(strict_mode_kills)
{
    KILLED(IN_CHILD(OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)); syscall(SYS_getpid)), SIGKILL);
    KILLED(IN_CHILD(OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL)); mmap(NULL, 4096, 1, 0x22, -1, 0)), SIGKILL);
    EXITED(IN_CHILD(int p[2]; char c; OK(pipe(p)); OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)); write(p[1], "x", 1);
                    read(p[0], &c, 1); syscall(SYS_exit, c == 'x' ? 4 : 5)), 4);
}

TEST(bad_arguments)
{
    uint32_t action = SECCOMP_RET_USER_NOTIF, unknown = 0x12340000;
    struct seccomp_notif_sizes sizes;

    ERR(EINVAL, syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL));
    ERR(EINVAL, syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, &action));
    ERR(EINVAL, syscall(SYS_seccomp, 77, 0, NULL));
    ERR(EINVAL, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0x8000, NULL));
    ERR(EFAULT, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
    ERR(EINVAL, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_NEW_LISTENER, NULL));
    ERR(EINVAL, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, NULL));
    ERR(EACCES, ON_CALL(0, SYS_getppid, SECCOMP_RET_ALLOW));
    ERR(EINVAL, prctl(PR_SET_SECCOMP, 7, 0));
    ERR(EFAULT, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0));
    EQ(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), 0);
    ERR(EOPNOTSUPP, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &unknown));
    ERR(EINVAL, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, &action));
    ERR(EFAULT, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, NULL));
    EQ(syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes), 0);
    EQ(sizes.seccomp_notif, 80);
    EQ(sizes.seccomp_notif_resp, 24);
    EQ(sizes.seccomp_data, 64);
    EQ(prctl(PR_GET_SECCOMP), 0);
}

TEST(programs_that_are_refused)
{
    struct sock_filter *many = calloc(5000, sizeof(*many));

    no_new_privs();
    ERR(EINVAL, install(0, many, 0));
    for (int i = 0; i < 5000; i++)
        many[i] = RETURN(SECCOMP_RET_ALLOW);
    ERR(EINVAL, install(0, many, 4097));
    ERR(EINVAL, INSTALL(0, LOAD(nr))); /* no return */
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), RETURN(0)));
    ERR(EINVAL, INSTALL(0, IF_EQ(0, 1, 0), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32), RETURN(0)));
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_LD | BPF_MEM, 3), RETURN(0))); /* never written */
    ERR(EINVAL, INSTALL(0, BPF_STMT(BPF_ST, 16), RETURN(0)));
    ERR(EINVAL, INSTALL(0, IF_EQ(0, 0, 1), BPF_STMT(BPF_ST, 2), BPF_STMT(BPF_LD | BPF_MEM, 2), RETURN(0)));
    ERR(EFAULT, install(0, (void *)16, 3));
    EQ(prctl(PR_GET_SECCOMP), 0);
    EQ(INSTALL(0, BPF_STMT(BPF_ST, 2), BPF_STMT(BPF_LD | BPF_MEM, 2), RETURN(SECCOMP_RET_ALLOW)), 0);
}

TEST(chains_have_a_limit)
{
    struct sock_filter *many = calloc(4096, sizeof(*many));
    int n = 0;

    no_new_privs();
    for (int i = 0; i < 4096; i++)
        many[i] = RETURN(SECCOMP_RET_ALLOW);
    while (n < 100 && !install(0, many, 4096))
        n++;
    EQ(errno, ENOMEM);
    EQ(n, 3); /* a return counts twice */
    EQ(status_field("Seccomp_filters:"), n);
}

TEST(errno_and_its_cap)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_ERRNO | 77), 0);
    ERR(77, syscall(SYS_getppid));
    EQ(ON_CALL(0, SYS_getuid, SECCOMP_RET_ERRNO | 5000), 0);
    ERR(4095, syscall(SYS_getuid));
    EQ(ON_CALL(0, SYS_getgid, SECCOMP_RET_ERRNO), 0);
    EQ(syscall(SYS_getgid), 0);
    EQ(ON_CALL(0, 399, SECCOMP_RET_ERRNO | 5), 0);
    ERR(5, syscall(399));
    EQ(ON_CALL(0, 5000, SECCOMP_RET_ERRNO | 6), 0);
    ERR(6, syscall(5000));
    EQ(prctl(PR_GET_SECCOMP), 2);
    EQ(status_field("Seccomp:"), 2);
    EQ(status_field("Seccomp_filters:"), 5);
    EQ(status_field("NoNewPrivs:"), 1);
}

/* As sandboxes do it that want no new code: calls about plain memory, which need not be seen by a kernel in user space. */
TEST(no_executable_memory)
{
    char *p = OK(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), *q;

    no_new_privs();
    EQ(INSTALL(0, LOAD(nr), IF_EQ(SYS_mprotect, 1, 0), IF_EQ(SYS_mmap, 0, 3), LOAD_ARG(2), IF_SET(PROT_EXEC, 0, 1),
               RETURN(SECCOMP_RET_ERRNO | EPERM), RETURN(SECCOMP_RET_ALLOW)), 0);
    ERR(EPERM, mprotect(p, 4096, PROT_READ | PROT_EXEC));
    ERR(EPERM, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EQ(mprotect(p, 4096, PROT_READ), 0);
    EQ(mprotect(p, 4096, PROT_READ | PROT_WRITE), 0);
    *p = 1;
    q = OK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    *q = 2;
    int fd = OK(open("/proc/self/exe", O_RDONLY));
    q = OK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
    EQ(q[1], 'E');
    ERR(EBADF, mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 99, 0));
    ERR(EPERM, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
    EXITED(IN_CHILD(ERR(EPERM, mprotect(p, 4096, PROT_EXEC)); EQ(mprotect(p, 4096, PROT_READ), 0); _exit(3)), 3);
}

static volatile int handled, handled_errno, handled_nr, handled_code;
static void *volatile handled_addr;
static volatile unsigned handled_arch;

static void on_sys(int sig, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    handled++;
    handled_errno = info->si_errno;
    handled_nr = info->si_syscall;
    handled_code = info->si_code;
    handled_addr = info->si_call_addr;
    handled_arch = info->si_arch;
    CHECK(uc->uc_mcontext.gregs[REG_RAX] == info->si_syscall);
    CHECK(uc->uc_mcontext.gregs[REG_RIP] == (long)info->si_call_addr);
    uc->uc_mcontext.gregs[REG_RAX] = 1000 + uc->uc_mcontext.gregs[REG_RDI];
}

static void handle_sys(void)
{
    struct sigaction act = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    EQ(sigaction(SIGSYS, &act, NULL), 0);
    no_new_privs();
}

TEST(trap_is_emulated_by_a_handler)
{
    handle_sys();
    EQ(ON_CALL(0, SYS_getpgid, SECCOMP_RET_TRAP | 123), 0);
    EQ(syscall(SYS_getpgid, 7), 1007);
    EQ(handled, 1);
    EQ(handled_errno, 123);
    EQ(handled_nr, SYS_getpgid);
    EQ(handled_code, 1);
    EQ(handled_arch, AUDIT_ARCH_X86_64);
    EQ(ON_CALL(0, SYS_munmap, SECCOMP_RET_TRAP), 0);
    for (int i = 0; i < 50; i++)
        EQ(syscall(SYS_munmap, i, 4096), 1000 + i);
    EQ(handled, 51);
    EQ(handled_nr, SYS_munmap);
}

TEST(trap_without_a_handler_kills)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_getpgid, SECCOMP_RET_TRAP), 0);
    KILLED(IN_CHILD(syscall(SYS_getpgid, 0)), SIGSYS);
    KILLED(IN_CHILD(signal(SIGSYS, SIG_IGN); syscall(SYS_getpgid, 0)), SIGSYS);
    KILLED(IN_CHILD(handle_sys(); sigset_t s; sigemptyset(&s); sigaddset(&s, SIGSYS); sigprocmask(SIG_BLOCK, &s, NULL);
                    syscall(SYS_getpgid, 0)), SIGSYS);
}

static void *calls_getpgid(void *arg)
{
    syscall(SYS_getpgid, 0);
    return arg;
}

TEST(kill_thread_and_kill_process)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_getpgid, SECCOMP_RET_KILL_THREAD), 0);
    KILLED(IN_CHILD(syscall(SYS_getpgid, 0)), SIGSYS);
    KILLED(IN_CHILD(handle_sys(); syscall(SYS_getpgid, 0)), SIGSYS);
    EXITED(IN_CHILD(pthread_t t; void *r = (void *)&handled; EQ(pthread_create(&t, NULL, calls_getpgid, (void *)&handled), 0);
                    EQ(pthread_join(t, &r), 0); EQ(r == &handled, 0); _exit(6)), 6);
    EQ(ON_CALL(0, SYS_getpgid, SECCOMP_RET_KILL_PROCESS), 0);
    KILLED(IN_CHILD(pthread_t t; EQ(pthread_create(&t, NULL, calls_getpgid, NULL), 0); pthread_join(t, NULL)), SIGSYS);
    KILLED(IN_CHILD(syscall(SYS_getpgid, 0)), SIGSYS);
}

TEST(unknown_actions_kill)
{
    no_new_privs();
    KILLED(IN_CHILD(ON_CALL(0, SYS_getpgid, 0x12340000); syscall(SYS_getpgid, 0)), SIGSYS);
}

TEST(trace_without_a_tracer)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_TRACE | 5), 0);
    ERR(ENOSYS, syscall(SYS_getppid));
}

TEST(log_lets_pass)
{
    no_new_privs();
    EQ(ON_CALL(SECCOMP_FILTER_FLAG_LOG, SYS_getppid, SECCOMP_RET_LOG), 0);
    EQ(syscall(SYS_getppid), getppid());
    EQ(ON_CALL(SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW, SYS_brk, SECCOMP_RET_LOG), 0);
    CHECK(syscall(SYS_brk, 0) > 0);
}

TEST(the_strongest_action_counts)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_ERRNO | 10), 0);
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_ERRNO | 11), 0); /* of equals the youngest */
    ERR(11, syscall(SYS_getppid));
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_ALLOW), 0);
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_TRACE), 0);
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_LOG), 0);
    ERR(11, syscall(SYS_getppid));
    EXITED(IN_CHILD(handle_sys(); EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_TRAP), 0); EQ(syscall(SYS_getppid, 1), 1001); _exit(2)), 2);
    KILLED(IN_CHILD(EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_KILL_THREAD), 0); syscall(SYS_getppid)), SIGSYS);
}

TEST(arguments_and_arithmetic)
{
    no_new_privs();
    /* (arg0 × 3 + 4) ^ 1 is 11 | 1 for 2; also through scratch memory and the index register. */
    EQ(INSTALL(0, LOAD(nr), IF_EQ(SYS_getpgid, 0, 10), LOAD_ARG(0), BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3), BPF_STMT(BPF_ST, 1),
               BPF_STMT(BPF_LDX | BPF_IMM, 4), BPF_STMT(BPF_LD | BPF_MEM, 1), BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
               BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 1), IF_EQ(11, 0, 2), LOAD(arch), IF_EQ(AUDIT_ARCH_X86_64, 1, 0),
               RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_ERRNO | 33)), 0);
    ERR(33, syscall(SYS_getpgid, 2));
    ERR(ESRCH, syscall(SYS_getpgid, 0x7ffffff0));
    EQ(INSTALL(0, LOAD(nr), IF_EQ(SYS_getsid, 0, 5), BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_STMT(BPF_LDX | BPF_IMM, 0),
               IF_EQ(64, 0, 2), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_ALLOW)), 0);
    KILLED(IN_CHILD(syscall(SYS_getsid, 0)), SIGSYS); /* a division by zero gives 0, which is KILL_THREAD */
}

TEST(an_own_user_namespace_gives_the_right)
{
    ERR(EACCES, ON_CALL(0, SYS_getppid, SECCOMP_RET_ERRNO | 7));
    OK(unshare(CLONE_NEWUSER));
    EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_ERRNO | 7), 0);
    ERR(7, syscall(SYS_getppid));
}

static volatile int go, stop;

static void *waits_then_calls(void *arg)
{
    while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
        sched_yield();
    errno = 0;
    return (void *)(long)(syscall(SYS_getppid) == -1 ? errno : 0);
}

TEST(tsync_takes_all_threads)
{
    pthread_t t[4];
    void *r;

    for (int i = 0; i < 4; i++)
        EQ(pthread_create(&t[i], NULL, waits_then_calls, NULL), 0);
    no_new_privs();
    EQ(ON_CALL(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, SECCOMP_RET_ERRNO | 55), 0);
    __atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 4; i++) {
        EQ(pthread_join(t[i], &r), 0);
        EQ((long)r, 55);
    }
}

static volatile int strays_tid;

static void *strays(void *arg)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_getsid, SECCOMP_RET_ERRNO | 1), 0);
    strays_tid = (int)syscall(SYS_gettid);
    __atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
        sched_yield();
    return NULL;
}

TEST(tsync_names_the_thread_that_cannot_follow)
{
    pthread_t t;

    EQ(pthread_create(&t, NULL, strays, NULL), 0);
    while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
        sched_yield();
    no_new_privs();
    EQ(ON_CALL(SECCOMP_FILTER_FLAG_TSYNC, SYS_getppid, SECCOMP_RET_ERRNO | 55), strays_tid);
    ERR(ESRCH, ON_CALL(SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH, SYS_getppid, SECCOMP_RET_ERRNO | 55));
    CHECK(syscall(SYS_getppid) >= 0);
    EQ(prctl(PR_GET_SECCOMP), 0);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    EQ(pthread_join(t, NULL), 0);
}

static void *own_filter(void *arg)
{
    no_new_privs();
    EQ(ON_CALL(0, SYS_mprotect, SECCOMP_RET_ERRNO | 44), 0);
    ERR(44, mprotect(arg, 4096, PROT_READ));
    return NULL;
}

TEST(a_filter_is_its_threads_own)
{
    pthread_t t;
    void *p = OK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

    EQ(pthread_create(&t, NULL, own_filter, p), 0);
    EQ(pthread_join(t, NULL), 0);
    EQ(mprotect(p, 4096, PROT_READ), 0);
}

MODE(after_exec)
{
    ERR(66, syscall(SYS_getppid));
    ERR(67, mprotect((void *)4096, 4096, PROT_READ));
    EQ(prctl(PR_GET_SECCOMP), 2);
    return 9;
}

TEST(exec_and_spawn_keep_filters)
{
    char *args[] = {"test", "@after_exec", NULL};
    pid_t pid;
    int status;

    no_new_privs();
    EQ(ON_CALL(0, SYS_getppid, SECCOMP_RET_ERRNO | 66), 0);
    /* Protections above the first pages are the loader's to set. */
    EQ(INSTALL(0, LOAD(nr), IF_EQ(SYS_mprotect, 0, 3), LOAD_ARG(0), IF_EQ(4096, 0, 1), RETURN(SECCOMP_RET_ERRNO | 67),
               RETURN(SECCOMP_RET_ALLOW)), 0);
    EXITED(IN_CHILD(execv("/proc/self/exe", args)), 9);
    EQ(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ), 0);
    EQ(waitpid(pid, &status, 0), pid);
    EXITED(status, 9);
}

/* The child borrows its parent's memory, maybe more; a filter stays the child's. */
TEST(vfork_child_filters_itself_alone)
{
    void *p = OK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    int status;

    no_new_privs();
    pid_t pid = vfork();
    if (!pid) {
        if (ON_CALL(0, SYS_mprotect, SECCOMP_RET_ERRNO | 21) || mprotect(p, 4096, PROT_READ) != -1 || errno != 21)
            _exit(1);
        _exit(8);
    }
    EQ(waitpid(pid, &status, 0), pid);
    EXITED(status, 8);
    EQ(mprotect(p, 4096, PROT_READ), 0);
    EQ(prctl(PR_GET_SECCOMP), 0);
}

static void *locks(void *arg)
{
    pthread_mutex_t *m = arg;
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(m);
        sched_yield();
        pthread_mutex_unlock(m);
    }
    return NULL;
}

static void on_alarm(int sig)
{
    handled++;
}

/* Calls that wait, under a filter that looks at each of them: signals still come, threads still meet. */
TEST(waiting_calls_under_a_filter)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_t t[3];
    struct sigaction act = {.sa_handler = on_alarm};
    struct timespec ts = {5, 0};
    int word = 1;

    no_new_privs();
    EQ(INSTALL(0, LOAD(nr), IF_EQ(SYS_futex, 1, 0), IF_EQ(SYS_rt_sigprocmask, 0, 3), LOAD_ARG(5), IF_EQ(0x1234, 0, 1),
               RETURN(SECCOMP_RET_ERRNO | 99), RETURN(SECCOMP_RET_ALLOW)), 0);
    for (int i = 0; i < 3; i++)
        EQ(pthread_create(&t[i], NULL, locks, &m), 0);
    for (int i = 0; i < 3; i++)
        EQ(pthread_join(t[i], NULL), 0);
    sigaction(SIGALRM, &act, NULL);
    ualarm(50000, 0);
    ERR(EINTR, syscall(SYS_futex, &word, 0, 1, &ts, NULL, 0));
    EQ(handled, 1);
    ts.tv_sec = 0;
    ts.tv_nsec = 20000000;
    ERR(ETIMEDOUT, syscall(SYS_futex, &word, 0, 1, &ts, NULL, 0));
    ERR(99, syscall(SYS_futex, &word, 0, 1, &ts, NULL, 0x1234));
}

TEST(actions_in_proc)
{
    char *avail = guest_read_file("/proc/sys/kernel/seccomp/actions_avail");
    STR(avail, "kill_process kill_thread trap errno user_notif trace log allow\n");
}
