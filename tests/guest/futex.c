/* SPDX-License-Identifier: Apache-2.0 */
/* futex(2) without the thread library. */
#include "tests/guest/guest.h"

#include <linux/futex.h>
#include <pthread.h>

static int words[4];

static long futex(int *addr, int op, int val, const void *timeout, int *addr2, int val3)
{
    return syscall(SYS_futex, addr, op, val, timeout, addr2, val3);
}

TEST(wait_checks_the_value)
{
    words[0] = 5;
    ERR(EAGAIN, futex(words, FUTEX_WAIT, 6, NULL, NULL, 0));
    ERR(EAGAIN, futex(words, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 6, NULL, NULL, 0));
    EQ(futex(words, FUTEX_WAKE, 10, NULL, NULL, 0), 0);
}

TEST(bad_arguments)
{
    struct timespec bad = {0, 1000000000};

    ERR(EINVAL, futex((int *)((char *)words + 1), FUTEX_WAIT, 0, NULL, NULL, 0));
    ERR(EFAULT, futex(guest_unmapped(), FUTEX_WAIT, 0, NULL, NULL, 0));
    ERR(EFAULT, futex((int *)-4096L, FUTEX_WAIT, 0, NULL, NULL, 0));
    ERR(EFAULT, futex(words, FUTEX_WAIT, 0, guest_unmapped(), NULL, 0));
    ERR(EINVAL, futex(words, FUTEX_WAIT, 0, &bad, NULL, 0));
    ERR(EINVAL, futex(words, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0));
    ERR(ENOSYS, futex(words, 77, 0, NULL, NULL, 0));
}

TEST(timeouts)
{
    struct timespec ts = {0, 40000000};
    uint64_t begin = now_ms();

    ERR(ETIMEDOUT, futex(words, FUTEX_WAIT, 0, &ts, NULL, 0));
    CHECK(now_ms() - begin >= 39);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ERR(ETIMEDOUT, futex(words, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &ts, NULL, -1));
    clock_gettime(CLOCK_REALTIME, &ts);
    ERR(ETIMEDOUT, futex(words, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &ts, NULL, -1));
}

static volatile int awake;

static void *waiter(void *arg)
{
    int r = (int)futex(words, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, (int)(long)arg);

    __atomic_add_fetch(&awake, 1, __ATOMIC_SEQ_CST);
    return (void *)(long)(r ? errno : 0);
}

static void start(pthread_t *t, int n, long bits)
{
    for (int i = 0; i < n; i++)
        EQ(pthread_create(&t[i], NULL, waiter, (void *)bits), 0);
    sleep_ms(50);
}

static void join(pthread_t *t, int n)
{
    void *r;

    for (int i = 0; i < n; i++) {
        EQ(pthread_join(t[i], &r), 0);
        EQ((long)r, 0);
    }
}

TEST(wake_counts)
{
    pthread_t t[6];

    start(t, 6, -1);
    EQ(futex(words, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 2, NULL, NULL, 0), 2);
    sleep_ms(30);
    EQ(awake, 2);
    EQ(futex(words, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 100, NULL, NULL, 0), 4);
    join(t, 6);
}

TEST(bitsets)
{
    pthread_t t[4];

    start(t, 2, 1);
    start(t + 2, 2, 2);
    EQ(futex(words, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, 100, NULL, NULL, 4), 0);
    EQ(futex(words, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, 100, NULL, NULL, 2), 2);
    EQ(futex(words, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, 100, NULL, NULL, 3), 2);
    join(t, 4);
}

TEST(requeue)
{
    pthread_t t[4];

    start(t, 4, -1);
    EQ(futex(words, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 1, (void *)2L, &words[1], 0), 3);
    ERR(EAGAIN, futex(words, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 1, (void *)2L, &words[1], 9));
    EQ(futex(&words[1], FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 100, NULL, NULL, 0), 2);
    EQ(futex(words, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 100, NULL, NULL, 0), 1);
    join(t, 4);
}

TEST(wake_op)
{
    pthread_t t[2];

    start(t, 2, -1);
    words[2] = 10;
    /* words[2] += 5; was it 10? then wake its waiters as well */
    EQ(futex(words, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 5, (void *)5L, &words[2], FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 10)), 2);
    EQ(words[2], 15);
    join(t, 2);
}

TEST(shared_between_processes)
{
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status, fd;
    pid_t child = OK(fork());

    if (!child) {
        long r = futex(shared, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(r ? 1 : 0);
    }
    sleep_ms(50);
    EQ(futex(shared, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    /* Through different addresses of one file. */
    guest_tmpdir();
    fd = OK(open("f", O_RDWR | O_CREAT, 0600));
    OK(ftruncate(fd, 8192));
    shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    child = OK(fork());
    if (!child) {
        int *other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
        _exit(futex(other, FUTEX_WAIT, 0, NULL, NULL, 0) ? 1 : 0);
    }
    sleep_ms(50);
    EQ(futex(shared + 1024, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

static volatile int hits;

static void on_signal(int sig)
{
    hits++;
}

static void *kicks(void *arg)
{
    sleep_ms(40);
    pthread_kill(*(pthread_t *)arg, SIGUSR1);
    sleep_ms(40);
    words[0] = 1;
    futex(words, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    return NULL;
}

TEST(signals_end_or_restart)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct timespec ts = {5, 0};
    pthread_t self = pthread_self(), t;

    OK(sigaction(SIGUSR1, &sa, NULL));
    EQ(pthread_create(&t, NULL, kicks, &self), 0);
    ERR(EINTR, futex(words, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0));
    EQ(hits, 1);
    EQ(pthread_join(t, NULL), 0);
    words[0] = 0;
    sa.sa_flags = SA_RESTART;
    OK(sigaction(SIGUSR1, &sa, NULL));
    EQ(pthread_create(&t, NULL, kicks, &self), 0);
    EQ(futex(words, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0), 0);
    EQ(hits, 2);
    EQ(pthread_join(t, NULL), 0);
    /* With a time limit, a handler ends it all the same. */
    words[0] = 0;
    EQ(pthread_create(&t, NULL, kicks, &self), 0);
    ERR(EINTR, futex(words, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &ts, NULL, 0));
    EQ(pthread_join(t, NULL), 0);
}

TEST(stop_does_not_end_the_wait)
{
    uint64_t begin = now_ms();
    int status;
    pid_t child = OK(fork());

    if (!child) {
        struct timespec ts = {0, 300000000};
        _exit(futex(words, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &ts, NULL, 0) == -1 && errno == ETIMEDOUT ? 0 : 1);
    }
    sleep_ms(50);
    OK(kill(child, SIGSTOP));
    EQ(waitpid(child, &status, WUNTRACED), child);
    OK(kill(child, SIGCONT));
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
    CHECK(now_ms() - begin >= 299);
}

TEST(pi_lock_words)
{
    int tid = (int)syscall(SYS_gettid), status;
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EQ(futex(shared, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0), 0);
    EQ(*shared & FUTEX_TID_MASK, tid);
    ERR(EDEADLK, futex(shared, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0));
    EQ(futex(shared, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0), 0);
    EQ(*shared & FUTEX_TID_MASK, 0);
    *shared = 0;
    EQ(futex(shared, FUTEX_TRYLOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0), 0);
    EQ(*shared & FUTEX_TID_MASK, tid);
    *shared = 999999;
    ERR(ESRCH, futex(shared, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0));
    ERR(EPERM, futex(shared, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0));
    (void)status;
}

TEST(robust_list_calls)
{
    void *head;
    size_t len;

    OK((int)syscall(SYS_get_robust_list, 0, &head, &len));
    EQ(len, 24);
    ERR(EINVAL, syscall(SYS_set_robust_list, head, 25));
    OK((int)syscall(SYS_set_robust_list, head, 24));
    ERR(ESRCH, syscall(SYS_get_robust_list, 999999, &head, &len));
}

static int hammer;

static void *hammers(void *arg)
{
    for (int i = 0; i < 3000; i++) {
        while (__atomic_exchange_n(&hammer, 1, __ATOMIC_ACQUIRE))
            futex(&hammer, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
        words[3]++;
        __atomic_store_n(&hammer, 0, __ATOMIC_RELEASE);
        futex(&hammer, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    }
    return NULL;
}

TEST_TIME(no_wake_is_lost, 60)
{
    pthread_t t[8];

    for (int i = 0; i < 8; i++)
        EQ(pthread_create(&t[i], NULL, hammers, NULL), 0);
    for (int i = 0; i < 8; i++)
        EQ(pthread_join(t[i], NULL), 0);
    EQ(words[3], 24000);
}
