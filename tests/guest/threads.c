/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: life and death, locks, exec and exit in company. */
#include "tests/guest/guest.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static volatile int shared, turn;
static __thread int tls = 5;

static void *returns_arg(void *arg)
{
    tls++;
    return tls == 6 ? arg : NULL;
}

TEST(create_and_join)
{
    pthread_t t[32];
    void *result;

    for (long i = 0; i < 32; i++)
        EQ(pthread_create(&t[i], NULL, returns_arg, (void *)(i + 100)), 0);
    for (long i = 0; i < 32; i++) {
        EQ(pthread_join(t[i], &result), 0);
        EQ((long)result, i + 100);
    }
    EQ(tls, 5);
}

static void *counts(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

TEST(mutex_contention)
{
    pthread_t t[8];

    for (int i = 0; i < 8; i++)
        EQ(pthread_create(&t[i], NULL, counts, NULL), 0);
    for (int i = 0; i < 8; i++)
        EQ(pthread_join(t[i], NULL), 0);
    EQ(shared, 160000);
}

static void *ping(void *arg)
{
    int mine = (int)(long)arg;

    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != mine)
            pthread_cond_wait(&cond, &mutex);
        turn = !mine;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

TEST_TIME(condition_ping_pong, 40)
{
    pthread_t a, b;

    EQ(pthread_create(&a, NULL, ping, (void *)0), 0);
    EQ(pthread_create(&b, NULL, ping, (void *)1), 0);
    EQ(pthread_join(a, NULL), 0);
    EQ(pthread_join(b, NULL), 0);
}

TEST(timed_waits)
{
    struct timespec ts;
    sem_t sem;
    uint64_t begin = now_ms();

    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += 50000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
    }
    pthread_mutex_lock(&mutex);
    EQ(pthread_cond_timedwait(&cond, &mutex, &ts), ETIMEDOUT);
    CHECK(now_ms() - begin >= 48);
    pthread_mutex_unlock(&mutex);
    sem_init(&sem, 0, 0);
    ERR(ETIMEDOUT, sem_timedwait(&sem, &ts));
}

static void *sleeps_long(void *arg)
{
    for (;;)
        pause();
    return NULL;
}

static void *exits_group(void *arg)
{
    sleep_ms(20);
    exit(33);
}

TEST(exit_in_a_thread_ends_all)
{
    EXITED(IN_CHILD({
               pthread_t t;
               for (int i = 0; i < 10; i++)
                   pthread_create(&t, NULL, sleeps_long, NULL);
               pthread_create(&t, NULL, exits_group, NULL);
               sleeps_long(NULL);
           }), 33);
}

static void *exits_late(void *arg)
{
    sleep_ms(100);
    _exit(44);
}

TEST(leader_exits_first)
{
    EXITED(IN_CHILD({
               pthread_t t;
               pthread_create(&t, NULL, exits_late, NULL);
               pthread_exit(NULL);
           }), 44);
}

static void *spins(void *arg)
{
    for (;;)
        shared++;
    return NULL;
}

TEST(fatal_signal_ends_spinning_threads)
{
    KILLED(IN_CHILD({
               pthread_t t;
               for (int i = 0; i < 3; i++)
                   pthread_create(&t, NULL, spins, NULL);
               sleep_ms(20);
               raise(SIGTERM);
           }), SIGTERM);
    int status;
    pid_t child = OK(fork());
    if (!child)
        spins(NULL);
    sleep_ms(20);
    OK(kill(child, SIGTERM));
    EQ(waitpid(child, &status, 0), child);
    KILLED(status, SIGTERM);
}

MODE(status) /* one thread, whose number is the process's */
{
    char *s = guest_read_file("/proc/self/status");

    return strstr(s, "Threads:\t1\n") && getpid() == (pid_t)syscall(SYS_gettid) ? getpid() == atoi(argv[2]) ? 21 : 22 : 23;
}

static void *execs(void *arg)
{
    execv("/proc/self/exe", arg);
    return NULL;
}

TEST(exec_in_a_thread)
{
    EXITED(IN_CHILD({
               pthread_t t;
               char pid[16];
               char *argv[] = {"x", "@status", pid, NULL};
               snprintf(pid, sizeof(pid), "%d", getpid());
               for (int i = 0; i < 5; i++)
                   pthread_create(&t, NULL, sleeps_long, NULL);
               pthread_create(&t, NULL, execs, argv);
               sleeps_long(NULL);
           }), 21);
}

static void *fork_child(void *arg)
{
    int status;
    pid_t child = fork();

    if (!child)
        _exit((int)(long)arg);
    waitpid(child, &status, 0);
    return (void *)(long)WEXITSTATUS(status);
}

TEST(fork_in_threads)
{
    pthread_t t[8];
    void *r;

    for (long i = 0; i < 8; i++)
        EQ(pthread_create(&t[i], NULL, fork_child, (void *)(i + 1)), 0);
    for (long i = 0; i < 8; i++) {
        EQ(pthread_join(t[i], &r), 0);
        EQ((long)r, i + 1);
    }
}

static pthread_t main_thread;
static volatile int got_signal;
static volatile pid_t got_tid;

static void on_signal(int sig)
{
    got_signal = sig;
    got_tid = (pid_t)syscall(SYS_gettid);
}

static void *waits_for_signal(void *arg)
{
    *(volatile pid_t *)arg = (pid_t)syscall(SYS_gettid);
    while (!got_signal)
        sleep_ms(5);
    return NULL;
}

TEST(pthread_kill_hits_the_thread)
{
    volatile pid_t tid = 0;
    pthread_t t;

    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    EQ(pthread_create(&t, NULL, waits_for_signal, (void *)&tid), 0);
    while (!tid)
        sleep_ms(1);
    EQ(pthread_kill(t, SIGUSR1), 0);
    EQ(pthread_join(t, NULL), 0);
    EQ(got_tid, tid);
}

TEST(process_signal_goes_to_who_takes_it)
{
    volatile pid_t tid = 0;
    sigset_t s;
    pthread_t t;

    signal(SIGUSR1, on_signal);
    EQ(pthread_create(&t, NULL, waits_for_signal, (void *)&tid), 0);
    while (!tid)
        sleep_ms(1);
    sigemptyset(&s);
    sigaddset(&s, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &s, NULL);
    OK(kill(getpid(), SIGUSR1));
    EQ(pthread_join(t, NULL), 0);
    EQ(got_tid, tid);
}

TEST(cancel)
{
    pthread_t t;
    void *r;

    EQ(pthread_create(&t, NULL, sleeps_long, NULL), 0);
    sleep_ms(20);
    EQ(pthread_cancel(t), 0);
    EQ(pthread_join(t, &r), 0);
    CHECK(r == PTHREAD_CANCELED);
}

static pthread_mutex_t *make_mutex(int protocol, int robust, bool pshared)
{
    pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t a;

    CHECK(m != MAP_FAILED);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutexattr_setrobust(&a, robust);
    pthread_mutexattr_setpshared(&a, pshared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
    EQ(pthread_mutex_init(m, &a), 0);
    return m;
}

static void *locks_and_dies(void *arg)
{
    pthread_mutex_lock(arg);
    sleep_ms(50);
    return NULL;
}

TEST(robust_mutex_in_threads)
{
    pthread_mutex_t *m = make_mutex(PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, false);
    pthread_t t;

    EQ(pthread_create(&t, NULL, locks_and_dies, m), 0);
    sleep_ms(20);
    EQ(pthread_mutex_lock(m), EOWNERDEAD);
    EQ(pthread_mutex_consistent(m), 0);
    EQ(pthread_mutex_unlock(m), 0);
    EQ(pthread_mutex_lock(m), 0);
    EQ(pthread_join(t, NULL), 0);
}

TEST(robust_mutex_between_processes)
{
    pthread_mutex_t *m = make_mutex(PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, true);
    pid_t child = OK(fork());

    if (!child) {
        pthread_mutex_lock(m);
        sleep_ms(60);
        _exit(0);
    }
    sleep_ms(20);
    EQ(pthread_mutex_lock(m), EOWNERDEAD);
    EQ(pthread_mutex_consistent(m), 0);
    EQ(pthread_mutex_unlock(m), 0);
    EQ(waitpid(child, NULL, 0), child);
}

TEST(shared_mutex_and_condition)
{
    struct shared {
        pthread_mutex_t m;
        pthread_cond_t c;
        int ready;
    } *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t ma;
    pthread_condattr_t ca;
    pid_t child;

    pthread_mutexattr_init(&ma);
    pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&ca);
    pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->m, &ma);
    pthread_cond_init(&s->c, &ca);
    child = OK(fork());
    if (!child) {
        sleep_ms(50);
        pthread_mutex_lock(&s->m);
        s->ready = 1;
        pthread_cond_signal(&s->c);
        pthread_mutex_unlock(&s->m);
        _exit(0);
    }
    pthread_mutex_lock(&s->m);
    while (!s->ready)
        pthread_cond_wait(&s->c, &s->m);
    pthread_mutex_unlock(&s->m);
    EQ(waitpid(child, NULL, 0), child);
}

static pthread_mutex_t *pi_mutex;

static void *pi_counts(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        pthread_mutex_lock(pi_mutex);
        shared++;
        pthread_mutex_unlock(pi_mutex);
    }
    return NULL;
}

TEST_TIME(priority_inheritance_mutex, 60)
{
    struct timespec ts;
    pthread_t t[6];

    pi_mutex = make_mutex(PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, false);
    for (int i = 0; i < 6; i++)
        EQ(pthread_create(&t[i], NULL, pi_counts, NULL), 0);
    for (int i = 0; i < 6; i++)
        EQ(pthread_join(t[i], NULL), 0);
    EQ(shared, 12000);
    EQ(pthread_create(&t[0], NULL, locks_and_dies, pi_mutex), 0);
    sleep_ms(20);
    EQ(pthread_mutex_trylock(pi_mutex), EBUSY);
    clock_gettime(CLOCK_REALTIME, &ts);
    EQ(pthread_mutex_timedlock(pi_mutex, &ts), ETIMEDOUT);
    EQ(pthread_join(t[0], NULL), 0);
}

TEST(barrier_and_rwlock)
{
    pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

    EQ(pthread_rwlock_rdlock(&rw), 0);
    EQ(pthread_rwlock_rdlock(&rw), 0);
    EQ(pthread_rwlock_trywrlock(&rw), EBUSY);
    EQ(pthread_rwlock_unlock(&rw), 0);
    EQ(pthread_rwlock_unlock(&rw), 0);
    EQ(pthread_rwlock_wrlock(&rw), 0);
}

static int clone_fn(void *arg)
{
    *(volatile int *)arg = (int)syscall(SYS_gettid);
    syscall(SYS_exit, 0);
    return 0;
}

TEST(child_cleartid_wakes)
{
    static char stack[64 * 1024];
    static volatile int tid = -1, word;
    int r;

    r = clone(clone_fn, stack + sizeof(stack),
              CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                  CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID,
              (void *)&tid, &word, NULL, &word);
    OK(r);
    while (word) {
        int now = word;
        if (now)
            syscall(SYS_futex, &word, 0 /* WAIT */, now, NULL, NULL, 0);
    }
    EQ(tid, r);
}

TEST(clone_vm_without_thread)
{
    static char stack[64 * 1024];
    static volatile int tid;
    int status, child;

    child = OK(clone(clone_fn, stack + sizeof(stack), CLONE_VM | SIGCHLD, (void *)&tid));
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    EQ(tid, child);
}

static void *opens(void *arg)
{
    *(int *)arg = open("/dev/null", O_RDONLY);
    chdir("/tmp");
    umask(0123);
    return NULL;
}

TEST(threads_share_files_and_cwd)
{
    char cwd[64];
    pthread_t t;
    int fd = -1;

    EQ(pthread_create(&t, NULL, opens, &fd), 0);
    EQ(pthread_join(t, NULL), 0);
    OK(fcntl(fd, F_GETFD));
    STR(getcwd(cwd, sizeof(cwd)), "/tmp");
    EQ(umask(0), 0123);
}

static void *deep_stack(void *arg)
{
    volatile char big[400 * 1024];

    for (size_t i = 0; i < sizeof(big); i += 1024)
        big[i] = 1;
    return NULL;
}

TEST(big_stacks)
{
    pthread_t t[10];

    for (int i = 0; i < 10; i++)
        EQ(pthread_create(&t[i], NULL, deep_stack, NULL), 0);
    for (int i = 0; i < 10; i++)
        EQ(pthread_join(t[i], NULL), 0);
}

static void *stops_soon(void *arg)
{
    while (!got_signal)
        ;
    return NULL;
}

TEST(stop_reaches_all_threads)
{
    int status;
    pid_t child = OK(fork());

    if (!child) {
        pthread_t t;
        for (int i = 0; i < 3; i++)
            pthread_create(&t, NULL, stops_soon, NULL);
        sleeps_long(NULL);
    }
    sleep_ms(30);
    OK(kill(child, SIGSTOP));
    EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    OK(kill(child, SIGCONT));
    OK(kill(child, SIGKILL));
    EQ(waitpid(child, &status, 0), child);
    KILLED(status, SIGKILL);
}

static volatile int fpu_stop;
static pid_t fpu_main;

static void fpu_handler(int sig)
{
    volatile double third = 1.0;
    third /= 3; /* inexact: a trap, if the handler came to a wrong state */
}

static void *fpu_sender(void *arg)
{
    while (!fpu_stop) {
        syscall(SYS_tgkill, getpid(), fpu_main, SIGUSR1);
        for (volatile int i = 0; i < 300; i++)
            ;
    }
    return NULL;
}

/* Signals that come while the way back from another one's handler is taken must not cost the interrupted code its FPU state. */
TEST(fpu_state_survives_signals_in_a_row)
{
    struct sigaction sa = {.sa_handler = fpu_handler};
    pthread_t thread;
    uint32_t mxcsr;
    fpu_main = (pid_t)syscall(SYS_gettid);
    OK(sigaction(SIGUSR1, &sa, NULL));
    OK(sigaction(SIGUSR2, &sa, NULL));
    EQ(pthread_create(&thread, NULL, fpu_sender, NULL), 0);
    for (uint64_t until = now_ms() + 500; now_ms() < until;) {
        volatile double value = 2.0;
        OK(raise(SIGUSR2));
        value /= 3;
        CHECK(value > 0.66 && value < 0.67);
        __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
        EQ(mxcsr & 0x1f80, 0x1f80);
    }
    fpu_stop = 1;
    EQ(pthread_join(thread, NULL), 0);
}
