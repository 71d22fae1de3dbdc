/* SPDX-License-Identifier: Apache-2.0 */
/* What prctl changes about the CPU. */
#include "tests/guest/guest.h"

#include <pthread.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <x86intrin.h>

extern char **environ;

static sigjmp_buf back;
static volatile int last_code;
static void *volatile last_addr;

static void on_fault(int sig, siginfo_t *info, void *uc)
{
    last_code = info->si_code;
    last_addr = info->si_addr;
    siglongjmp(back, 1);
}

/* Whether the counter can be read. */
static bool readable(void)
{
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;
    volatile bool ok = false;

    OK(sigaction(SIGSEGV, &sa, &old));
    if (!sigsetjmp(back, 1)) {
        (void)__rdtsc();
        ok = true;
    }
    OK(sigaction(SIGSEGV, &old, NULL));
    return ok;
}

static void state_is(int state)
{
    int now = 0;

    OK(prctl(PR_GET_TSC, &now));
    EQ(now, state);
    EQ(readable(), state == PR_TSC_ENABLE);
}

TEST(time_stamp_counter)
{
    state_is(PR_TSC_ENABLE);
    ERR(EINVAL, prctl(PR_SET_TSC, 0));
    ERR(EINVAL, prctl(PR_SET_TSC, 3));
    ERR(EFAULT, prctl(PR_GET_TSC, 8));
    OK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    state_is(PR_TSC_SIGSEGV);
    EQ(last_code, SI_KERNEL);
    EQ((long)last_addr, 0);
    /* Calls of every kind go on as before. */
    for (int i = 0; i < 200; i++) {
        char c = 0;
        int p[2];

        OK(pipe(p));
        OK(write(p[1], &c, 1));
        EQ(read(p[0], &c, 1), 1);
        close(p[0]);
        close(p[1]);
    }
    OK(prctl(PR_SET_TSC, PR_TSC_ENABLE));
    state_is(PR_TSC_ENABLE);
}

TEST(time_stamp_counter_unhandled)
{
    KILLED(IN_CHILD({
               OK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
               (void)__rdtsc();
           }),
           SIGSEGV);
}

static void *thread_state(void *state)
{
    state_is((int)(long)state);
    OK(prctl(PR_SET_TSC, PR_TSC_ENABLE)); /* its own alone */
    state_is(PR_TSC_ENABLE);
    return NULL;
}

MODE(tsc_state)
{
    state_is(atoi(argv[2]));
    return 0;
}

static void exec_state(const char *state)
{
    char *args[] = {"/proc/self/exe", "@tsc_state", (char *)state, NULL};

    execv(args[0], args);
    _exit(99);
}

TEST(time_stamp_counter_is_inherited)
{
    pthread_t th;
    pid_t pid;
    int status;
    char *args[] = {"/proc/self/exe", "@tsc_state", "2", NULL};

    OK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    EQ(pthread_create(&th, NULL, thread_state, (void *)(long)PR_TSC_SIGSEGV), 0);
    EQ(pthread_join(th, NULL), 0);
    state_is(PR_TSC_SIGSEGV);
    EXITED(IN_CHILD(state_is(PR_TSC_SIGSEGV)), 0);
    EXITED(IN_CHILD(exec_state("2")), 0);
    EXITED(IN_CHILD({
               OK(prctl(PR_SET_TSC, PR_TSC_ENABLE));
               exec_state("1");
           }),
           0);
    EQ(posix_spawn(&pid, args[0], NULL, NULL, args, environ), 0);
    OK(waitpid(pid, &status, 0));
    EXITED(status, 0);
    state_is(PR_TSC_SIGSEGV);
}

TEST(time_stamp_counter_and_vfork)
{
    pid_t pid = vfork();

    if (!pid) {
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
        _exit(0);
    }
    OK(pid);
    OK(waitpid(pid, NULL, 0));
    state_is(PR_TSC_ENABLE);
}
