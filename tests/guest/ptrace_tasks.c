/* SPDX-License-Identifier: Apache-2.0 */
/* Tracing: new tasks and programs, attaching, stopped groups, and the ends of tracers and tracees. */
#include "tests/guest/ptrace.h"

/* ---- events ---- */

static void forks(void)
{
    pid_t pid = fork();

    if (!pid)
        _exit(4);
    int status;
    waitpid(pid, &status, 0);
    pid = vfork();
    if (!pid)
        _exit(5);
    waitpid(pid, &status, 0);
    _exit(WEXITSTATUS(status));
}

static pid_t follow(pid_t pid, int event)
{
    unsigned long child;

    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), EVENT(event));
    OK(pt(PTRACE_GETEVENTMSG, pid, 0, A(&child)));
    EQ(wait_for((pid_t)child), STOPPED(SIGSTOP));
    return (pid_t)child;
}

TEST(event_fork_vfork_exit)
{
    pid_t pid = traced(forks, PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXIT), child;
    unsigned long message;

    child = follow(pid, PTRACE_EVENT_FORK);
    OK(pt(PTRACE_CONT, pid, 0, 0)); /* it waits for its child */
    OK(pt(PTRACE_CONT, child, 0, 0));
    EQ(wait_for(child), EVENT(PTRACE_EVENT_EXIT));
    OK(pt(PTRACE_GETEVENTMSG, child, 0, A(&message)));
    EQ(message, 4 << 8);
    OK(pt(PTRACE_CONT, child, 0, 0));
    EXITED(wait_for(child), 4);
    EQ(wait_for(pid), STOPPED(SIGCHLD));
    child = follow(pid, PTRACE_EVENT_VFORK);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    OK(pt(PTRACE_CONT, child, 0, 0));
    EQ(wait_for(child), EVENT(PTRACE_EVENT_EXIT));
    OK(pt(PTRACE_CONT, child, 0, 0));
    EXITED(wait_for(child), 5);
    EQ(wait_for(pid), EVENT(PTRACE_EVENT_VFORK_DONE));
    OK(pt(PTRACE_GETEVENTMSG, pid, 0, A(&message)));
    EQ(message, child);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGCHLD));
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), EVENT(PTRACE_EVENT_EXIT));
    finish(pid, 5);
}

MODE(exit9)
{
    return 9;
}

static void exec_self(void)
{
    execl("/proc/self/exe", "exe", "@exit9", NULL);
}

TEST(event_exec)
{
    pid_t pid = traced(exec_self, PTRACE_O_TRACEEXEC);
    struct user_fpregs_struct fp;
    unsigned long message;

    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), EVENT(PTRACE_EVENT_EXEC));
    OK(pt(PTRACE_GETEVENTMSG, pid, 0, A(&message)));
    EQ(message, pid);
    OK(pt(GETFPREGS, pid, 0, A(&fp)));
    EQ(fp.cwd, 0x37f);
    EQ(fp.mxcsr, 0x1f80);
    OK(pt(SETFPREGS, pid, 0, A(&fp)));
    finish(pid, 9);
    /* Without the option, a plain SIGTRAP. */
    pid = traced(exec_self, 0);
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGTRAP));
    finish(pid, 9);
}

static void *thread_body(void *arg)
{
    return arg;
}

static void make_thread(void)
{
    pthread_t t;

    pthread_create(&t, NULL, thread_body, NULL);
    pthread_join(t, NULL);
}

TEST(event_clone)
{
    pid_t pid = traced(make_thread, PTRACE_O_TRACECLONE), tid = follow(pid, PTRACE_EVENT_CLONE);

    ERR(ECHILD, waitpid(tid + 1000, NULL, __WALL));
    OK(pt(PTRACE_CONT, pid, 0, 0));
    OK(pt(PTRACE_CONT, tid, 0, 0));
    EXITED(wait_for(tid), 0);
    EXITED(wait_for(pid), 0);
}

static void *exec_body(void *arg)
{
    exec_self();
    return NULL;
}

static void exec_in_thread(void)
{
    pthread_t t;

    pthread_create(&t, NULL, exec_body, NULL);
    for (;;)
        pause();
}

/* A thread that execs goes by the number of its process from then on. */
TEST(event_exec_by_thread)
{
    pid_t pid = traced(exec_in_thread, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC), tid = follow(pid, PTRACE_EVENT_CLONE);
    unsigned long message;

    OK(pt(PTRACE_CONT, pid, 0, 0));
    OK(pt(PTRACE_CONT, tid, 0, 0));
    EQ(wait_for(pid), EVENT(PTRACE_EVENT_EXEC));
    OK(pt(PTRACE_GETEVENTMSG, pid, 0, A(&message)));
    EQ(message, tid);
    finish(pid, 9);
}

/* ---- attaching ---- */

static void spin(void)
{
    for (;;)
        __asm__ volatile("pause");
}

static void rest(void)
{
    for (;;)
        pause();
}

static pid_t start(void (*fn)(void))
{
    pid_t pid = OK(fork());

    if (!pid)
        fn();
    return pid;
}

static void end(pid_t pid)
{
    OK(kill(pid, SIGKILL));
    KILLED(wait_for(pid), SIGKILL);
}

TEST(attach)
{
    static void (*const fns[])(void) = {spin, rest};

    for (int i = 0; i < 2; i++) {
        pid_t pid = start(fns[i]);

        sleep_ms(20);
        ERR(ESRCH, pt(PTRACE_CONT, pid, 0, 0));
        OK(pt(PTRACE_ATTACH, pid, 0, 0));
        ERR(EPERM, pt(PTRACE_ATTACH, pid, 0, 0));
        EQ(wait_for(pid), STOPPED(SIGSTOP));
        CHECK(rip_of(pid));
        ERR(EIO, pt(PTRACE_INTERRUPT, pid, 0, 0));
        ERR(EIO, pt(PTRACE_LISTEN, pid, 0, 0));
        OK(pt(PTRACE_DETACH, pid, 0, 0));
        EQ(waitpid(pid, NULL, WNOHANG), 0);
        ERR(ESRCH, pt(PTRACE_CONT, pid, 0, 0));
        end(pid);
    }
    ERR(EPERM, pt(PTRACE_ATTACH, getpid(), 0, 0));
    ERR(ESRCH, pt(PTRACE_ATTACH, 999999, 0, 0));
}

TEST(attach_without_permission)
{
    pid_t pid = start(rest);
    int status = IN_CHILD({
        OK(setresgid(1234, 1234, 1234));
        OK(setresuid(1234, 1234, 1234));
        ERR(EPERM, pt(PTRACE_ATTACH, pid, 0, 0));
        ERR(EPERM, pt(PTRACE_SEIZE, pid, 0, 0));
        ERR(EPERM, pt(PTRACE_SEIZE, pid, 0, PTRACE_O_SUSPEND_SECCOMP));
    });

    EXITED(status, 0);
    ERR(EIO, pt(PTRACE_SEIZE, pid, 1, 0));
    ERR(EIO, pt(PTRACE_SEIZE, pid, 0, 1 << 30));
    end(pid);
}

#define GROUP_STOP(sig) (STOPPED(sig) | PTRACE_EVENT_STOP << 16)

TEST(seize)
{
    static void (*const fns[])(void) = {spin, rest};

    for (int i = 0; i < 2; i++) {
        pid_t pid = start(fns[i]);
        siginfo_t si;

        sleep_ms(20);
        OK(pt(PTRACE_SEIZE, pid, 0, O_EXITKILL));
        EQ(waitpid(pid, NULL, WNOHANG), 0);
        ERR(ESRCH, pt(PTRACE_CONT, pid, 0, 0));
        OK(pt(PTRACE_INTERRUPT, pid, 0, 0));
        EQ(wait_for(pid), GROUP_STOP(SIGTRAP));
        OK(pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
        EQ(si.si_code, SIGTRAP | PTRACE_EVENT_STOP << 8);
        OK(pt(PTRACE_CONT, pid, 0, 0));
        /* Group stop, listening, and its end. */
        OK(kill(pid, SIGSTOP));
        EQ(wait_for(pid), STOPPED(SIGSTOP));
        ERR(EIO, pt(PTRACE_LISTEN, pid, 0, 0));
        OK(pt(PTRACE_CONT, pid, 0, SIGSTOP));
        EQ(wait_for(pid), GROUP_STOP(SIGSTOP));
        OK(pt(PTRACE_LISTEN, pid, 0, 0));
        ERR(ESRCH, pt(PTRACE_CONT, pid, 0, 0));
        EQ(waitpid(pid, NULL, WNOHANG | WUNTRACED), 0);
        OK(pt(PTRACE_INTERRUPT, pid, 0, 0));
        EQ(wait_for(pid), GROUP_STOP(SIGSTOP));
        OK(pt(PTRACE_LISTEN, pid, 0, 0));
        OK(kill(pid, SIGCONT));
        EQ(wait_for(pid), GROUP_STOP(SIGTRAP));
        OK(pt(PTRACE_CONT, pid, 0, 0));
        EQ(wait_for(pid), STOPPED(SIGCONT));
        OK(pt(PTRACE_DETACH, pid, 0, 0));
        end(pid);
    }
}

TEST(group_stop_without_seize)
{
    pid_t pid = start(rest);
    siginfo_t si;
    char path[64];
    int status;

    OK(kill(pid, SIGSTOP));
    EQ(OK(waitpid(pid, &status, WUNTRACED)), pid);
    EQ(status, STOPPED(SIGSTOP));
    OK(pt(PTRACE_ATTACH, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGSTOP));
    OK(pt(PTRACE_CONT, pid, 0, 0));
    EQ(wait_for(pid), STOPPED(SIGSTOP)); /* that of the attaching */
    OK(pt(PTRACE_CONT, pid, 0, SIGSTOP));
    EQ(wait_for(pid), STOPPED(SIGSTOP)); /* the stop itself */
    ERR(EINVAL, pt(PTRACE_GETSIGINFO, pid, 0, A(&si)));
    OK(pt(PTRACE_DETACH, pid, 0, 0));
    /* It stays stopped, which is no news. */
    sleep_ms(20);
    EQ(waitpid(pid, NULL, WNOHANG | WUNTRACED), 0);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    CHECK(strstr(guest_read_file(path), "State:\tT (stopped)\n"));
    OK(kill(pid, SIGCONT));
    EQ(OK(waitpid(pid, &status, WCONTINUED)), pid);
    end(pid);
}

TEST(tracer_exits)
{
    for (int kill_it = 0; kill_it < 2; kill_it++) {
        pid_t pid = start(rest);
        int status = IN_CHILD({
            OK(pt(PTRACE_SEIZE, pid, 0, kill_it ? O_EXITKILL : 0));
            OK(pt(PTRACE_INTERRUPT, pid, 0, 0));
            EQ(wait_for(pid), GROUP_STOP(SIGTRAP));
        });

        EXITED(status, 0);
        if (kill_it) {
            KILLED(wait_for(pid), SIGKILL);
            continue;
        }
        sleep_ms(20);
        EQ(waitpid(pid, NULL, WNOHANG | WUNTRACED), 0);
        end(pid);
    }
}

/* A dead tracee is the tracer's first, and then the parent's. */
TEST(zombie_for_both)
{
    pid_t pid = start(rest);
    int p[2], status;
    char c;

    OK(pipe(p));
    pid_t tracer = OK(fork());
    if (!tracer) {
        OK(pt(PTRACE_SEIZE, pid, 0, 0));
        OK(kill(pid, SIGKILL));
        KILLED(wait_for(pid), SIGKILL);
        ERR(ECHILD, waitpid(pid, NULL, __WALL));
        write(p[1], "x", 1);
        _exit(0);
    }
    EQ(OK(waitpid(pid, &status, 0)), pid);
    KILLED(status, SIGKILL);
    EQ(read(p[0], &c, 1), 1);
    EXITED(wait_for(tracer), 0);
}

static void *spin_body(void *arg)
{
    *(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
    for (;;)
        __asm__ volatile("pause");
    return NULL;
}

/* One thread of a process alone. */
TEST(attach_to_thread)
{
    volatile pid_t *tid = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = OK(fork());

    if (!pid) {
        pthread_t t;

        pthread_create(&t, NULL, spin_body, (void *)tid);
        rest();
    }
    while (!*tid)
        sleep_ms(1);
    OK(pt(PTRACE_ATTACH, *tid, 0, 0));
    EQ(wait_for(*tid), STOPPED(SIGSTOP));
    CHECK(rip_of(*tid));
    ERR(ESRCH, pt(PTRACE_CONT, pid, 0, 0));
    OK(pt(PTRACE_CONT, *tid, 0, 0));
    OK(kill(pid, SIGKILL));
    KILLED(wait_for(*tid), SIGKILL);
    KILLED(wait_for(pid), SIGKILL);
}

TEST(traceme_twice)
{
    int status = IN_CHILD({
        OK(pt(PTRACE_TRACEME, 0, 0, 0));
        ERR(EPERM, pt(PTRACE_TRACEME, 0, 0, 0));
    });

    EXITED(status, 0);
}
