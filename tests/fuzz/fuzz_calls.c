/* SPDX-License-Identifier: Apache-2.0 */
/* Random system calls, for the inside of a container: the first process, immune to signals of its
 * children, makes them run one program of calls after the other. A program follows from its seed,
 * but for how its threads race.
 *
 * Usage: fuzz-calls FIRST-SEED PROGRAMS [trace]
 *   trace   prints each call before it is made
 * Prints "@@ SEED" before each program. Status: 0; 3 when a killed process does not end. */
#include "tests/fuzz/fuzz_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct call calls[] = {
#include "fuzz_calls_table.h"
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]), FOCUS = 12, THREADS = 3, FORKS = 24 };
enum { PROGRAM_SECONDS = 3, END_SECONDS = 60 };

static struct values values;
static const struct call *focus[FOCUS];
static _Atomic int *forks; /* how many processes a program has made, in all of them */
static int trace = -1;

/* ---- a program ---- */

static bool makes_process(const struct call *c)
{
    return c->number == SYS_fork || c->number == SYS_vfork || c->number == SYS_clone ||
           c->number == SYS_clone3;
}

static void show(const struct call *c, const uint64_t *a)
{
    char line[300];
    int n = snprintf(line, sizeof(line), "%d %s(%#lx, %#lx, %#lx, %#lx, %#lx, %#lx)\n",
                     (int)syscall(SYS_gettid), c->name, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (write(trace, line, (size_t)n) < 0)
        trace = -1;
}

static void one_call(uint64_t *seed)
{
    const struct call *c = values_below(seed, 3) ? focus[values_below(seed, FOCUS)]
                                                 : &calls[values_below(seed, CALLS)];
    uint64_t a[6] = {0};
    for (int i = 0; c->args[i] && i < 6; i++)
        a[i] = values_pick(&values, seed, c, i);
    if (makes_process(c) && atomic_fetch_add(forks, 1) >= FORKS)
        return;
    /* A child of vfork that came back into this function would leave its parent a torn stack. */
    long number = c->number == SYS_vfork ? SYS_fork : c->number;
    if (number == SYS_clone && (a[0] & CLONE_VM) && !a[1])
        a[1] = (uint64_t)values.arena + 2 * VALUES_PAGE;
    if (trace >= 0)
        show(c, a);
    long ret = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (makes_process(c) && ret == 0)
        *seed ^= 0x5555;
    else if (makes_process(c) && ret > 0)
        values.pids[2 + values_below(seed, 2)] = (pid_t)ret;
    else if (ret > 2 && ret < 1024 && values_below(seed, 4) == 0)
        values.fds[values_below(seed, VALUES_FDS)] = (int)ret;
}

static void *run_thread(void *arg)
{
    uint64_t seed = values.seed ^ (uint64_t)(uintptr_t)arg << 48;
    uint64_t n = 50 + values_below(&seed, 400);
    for (uint64_t i = 0; i < n; i++)
        one_call(&seed);
    return NULL;
}

static void on_alarm(int sig)
{
    (void)sig;
}

static void program_limits(uint64_t *seed)
{
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4 << 20, 4 << 20});
    setrlimit(RLIMIT_AS, &(struct rlimit){1 << 30, 1 << 30});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){256, 256});
    /* Ends calls that wait. */
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 20000}, {0, 20000}}, NULL);
    if (values_below(seed, 4) == 0 && setresuid(65534, 65534, 65534) < 0)
        _exit(1);
    if (values_below(seed, 4) == 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return; /* the program runs without */
}

__attribute__((noreturn)) static void run_program(uint64_t number)
{
    uint64_t seed = number;
    values.seed = values_random(&seed);
    char dir[64];
    snprintf(dir, sizeof(dir), "%s/w%lu", number & 1 ? "/tmp" : "/root", number);
    mkdir(dir, 0777);
    chmod(dir, 0777);
    if (chdir(dir) < 0)
        _exit(1);
    setsid();
    values_setup(&values);
    for (int i = 0; i < FOCUS; i++)
        focus[i] = &calls[values_below(&seed, CALLS)];
    program_limits(&seed);
    uint64_t threads = values_below(&seed, THREADS);
    for (uint64_t i = 1; i <= threads; i++) {
        pthread_t t;
        pthread_create(&t, NULL, run_thread, (void *)i);
    }
    run_thread(NULL);
    _exit(0);
}

/* ---- the first process ---- */

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Waits for SIGCHLD or the time. */
static void wait_child(double seconds)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    struct timespec ts = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    sigtimedwait(&set, NULL, &ts);
}

/* Kills everything but this process, and reaps it. Return: whether all ended. */
static bool end_all(void)
{
    double until = now() + END_SECONDS;
    while (now() < until) {
        kill(-1, SIGKILL);
        pid_t pid = waitpid(-1, NULL, WNOHANG | __WALL);
        if (pid < 0 && errno == ECHILD)
            return true;
        if (pid == 0)
            wait_child(0.05);
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    uint64_t first = strtoull(argv[1], NULL, 0), n = strtoull(argv[2], NULL, 0);
    forks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (uint64_t i = first; i < first + n; i++) {
        printf("@@ %lu\n", i);
        fflush(stdout);
        atomic_store(forks, 0);
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            return 3;
        }
        if (!pid) {
            sigprocmask(SIG_UNBLOCK, &set, NULL);
            if (argc > 3)
                trace = fcntl(1, F_DUPFD_CLOEXEC, 200);
            for (int fd = 0; fd < 3; fd++)
                close(fd);
            run_program(i);
        }
        for (double until = now() + PROGRAM_SECONDS; now() < until; wait_child(0.1))
            if (waitpid(pid, NULL, WNOHANG) == pid)
                break;
        if (!end_all()) {
            printf("program %lu does not end\n", i);
            return 3;
        }
    }
    return 0;
}
