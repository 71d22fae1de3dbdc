/* SPDX-License-Identifier: Apache-2.0 */
/* The futex calls of one operation each, futex_waitv, and words of locks whose owner died. */
#include "tests/guest/guest.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>

enum { NR_WAITV = 449, NR_WAKE = 454, NR_WAIT = 455, NR_REQUEUE = 456 };
enum { SIZE_U32 = 2, PRIVATE = 128 };

struct waitv {
    uint64_t val, addr;
    uint32_t flags, reserved;
};

static uint32_t words[8];

static long waitv(struct waitv *w, unsigned n, unsigned flags, const struct timespec *ts, int clock)
{
    return syscall(NR_WAITV, w, n, flags, ts, clock);
}

static struct waitv entry(uint32_t *addr, uint32_t val)
{
    return (struct waitv){val, (uintptr_t)addr, SIZE_U32 | PRIVATE, 0};
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    ts.tv_nsec += ms * 1000000;
    ts.tv_sec += ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    return ts;
}

/* Not on kernels before 6.7. */
static bool have_futex2(void)
{
    return !(syscall(NR_WAKE, words, 0UL, 0, 0) == -1 && errno == ENOSYS);
}

TEST(waitv_errors)
{
    struct waitv w[130];
    struct timespec bad = {0, 1000000000}, past = {0, 0};
    for (int i = 0; i < 130; i++)
        w[i] = entry(words, 0);
    ERR(EINVAL, waitv(w, 0, 0, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, waitv(w, 129, 0, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, waitv(w, 1, 1, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, waitv(NULL, 1, 0, NULL, CLOCK_MONOTONIC));
    ERR(EFAULT, waitv(guest_unmapped(), 1, 0, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, waitv(w, 1, 0, &past, CLOCK_PROCESS_CPUTIME_ID));
    ERR(EINVAL, waitv(w, 1, 0, &bad, CLOCK_MONOTONIC));
    ERR(ETIMEDOUT, waitv(w, 1, 0, &past, CLOCK_MONOTONIC));
    ERR(ETIMEDOUT, waitv(w, 128, 0, &past, CLOCK_REALTIME));
    w[1].val = 1;
    ERR(EAGAIN, waitv(w, 2, 0, NULL, CLOCK_MONOTONIC));
    w[1] = entry(guest_unmapped(), 0);
    ERR(EFAULT, waitv(w, 2, 0, NULL, CLOCK_MONOTONIC));
    w[1] = entry((uint32_t *)((char *)words + 1), 0);
    ERR(EINVAL, waitv(w, 2, 0, NULL, CLOCK_MONOTONIC));
    w[1] = entry(words, 0);
    w[1].flags = PRIVATE;
    ERR(EINVAL, waitv(w, 2, 0, NULL, CLOCK_MONOTONIC));
}

static void *wake_third(void *arg)
{
    while (syscall(SYS_futex, &words[2], FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0) != 1)
        sleep_ms(5);
    return NULL;
}

TEST(waitv_tells_which)
{
    struct waitv w[4];
    struct timespec end = in_ms(CLOCK_MONOTONIC, 40);
    pthread_t t;
    for (int i = 0; i < 4; i++)
        w[i] = entry(&words[i], 0);
    ERR(ETIMEDOUT, waitv(w, 4, 0, &end, CLOCK_MONOTONIC));
    end = in_ms(CLOCK_REALTIME, 40);
    ERR(ETIMEDOUT, waitv(w, 4, 0, &end, CLOCK_REALTIME));
    end = in_ms(CLOCK_MONOTONIC, 10000);
    EQ(pthread_create(&t, NULL, wake_third, NULL), 0);
    EQ(waitv(w, 4, 0, &end, CLOCK_MONOTONIC), 2);
    EQ(pthread_join(t, NULL), 0);
}

static volatile int hits;

static void on_signal(int sig)
{
    hits++;
}

static void *kicks(void *arg)
{
    while (!hits) {
        sleep_ms(20);
        pthread_kill(*(pthread_t *)arg, SIGUSR1);
    }
    sleep_ms(20);
    while (syscall(SYS_futex, words, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0) != 1 && !words[7])
        sleep_ms(5);
    return NULL;
}

TEST(waitv_and_signals)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct waitv w = entry(words, 0);
    pthread_t self = pthread_self(), t;
    OK(sigaction(SIGUSR1, &sa, NULL));
    EQ(pthread_create(&t, NULL, kicks, &self), 0);
    ERR(EINTR, waitv(&w, 1, 0, NULL, CLOCK_MONOTONIC));
    words[7] = 1;
    EQ(pthread_join(t, NULL), 0);
    words[7] = 0;
    hits = 0;
    sa.sa_flags = SA_RESTART;
    OK(sigaction(SIGUSR1, &sa, NULL));
    EQ(pthread_create(&t, NULL, kicks, &self), 0);
    EQ(waitv(&w, 1, 0, NULL, CLOCK_MONOTONIC), 0);
    CHECK(hits > 0);
    EQ(pthread_join(t, NULL), 0);
}

static void *waits(void *arg)
{
    long r = syscall(NR_WAIT, words, 0UL, (unsigned long)arg, SIZE_U32 | PRIVATE, NULL, CLOCK_MONOTONIC);
    return (void *)(long)(r ? errno : 0);
}

TEST(single_calls)
{
    struct timespec past = {0, 0};
    pthread_t t[3];
    void *r;
    if (!have_futex2())
        return;
    ERR(EINVAL, syscall(NR_WAIT, words, 0UL, 1UL, PRIVATE, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, syscall(NR_WAIT, words, 0UL, 1UL, SIZE_U32 | 64, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, syscall(NR_WAIT, words, 0UL, 0UL, SIZE_U32, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, syscall(NR_WAIT, words, 1UL << 32, 1UL, SIZE_U32, NULL, CLOCK_MONOTONIC));
    ERR(EAGAIN, syscall(NR_WAIT, words, 1UL, 1UL, SIZE_U32, NULL, CLOCK_MONOTONIC));
    ERR(ETIMEDOUT, syscall(NR_WAIT, words, 0UL, 1UL, SIZE_U32, &past, CLOCK_MONOTONIC));
    ERR(EFAULT, syscall(NR_WAIT, -4096L, 0UL, 1UL, SIZE_U32, NULL, CLOCK_MONOTONIC));
    ERR(EINVAL, syscall(NR_WAKE, words, 1UL, 1, PRIVATE));
    EQ(syscall(NR_WAKE, words, 1UL, 1, SIZE_U32 | PRIVATE), 0);
    for (int i = 0; i < 3; i++)
        EQ(pthread_create(&t[i], NULL, waits, (void *)(i == 2 ? 4L : 2L)), 0);
    while (syscall(NR_WAKE, words, 4UL, 1, SIZE_U32 | PRIVATE) != 1)
        sleep_ms(5);
    sleep_ms(50);
    struct waitv from_to[2] = {entry(words, 0), entry(&words[1], 0)};
    ERR(EINVAL, syscall(NR_REQUEUE, from_to, 1, 0, 1));
    EQ(syscall(NR_REQUEUE, from_to, 0, 1, 1), 2);
    EQ(syscall(NR_WAKE, words, 0xffffffffUL, 10, SIZE_U32 | PRIVATE), 0);
    EQ(syscall(NR_WAKE, &words[1], 0xffffffffUL, 10, SIZE_U32 | PRIVATE), 1);
    for (int i = 0; i < 3; i++) {
        EQ(pthread_join(t[i], &r), 0);
        EQ((long)r, 0);
    }
}

/* ---- locks whose owner died ---- */

struct lock {
    struct robust_list list;
    uint32_t word;
};

static struct robust_list_head head;

static void own_and_die(struct lock *l, uint32_t extra, bool pending)
{
    head.list.next = pending ? &head.list : &l->list;
    head.futex_offset = offsetof(struct lock, word);
    head.list_op_pending = pending ? &l->list : NULL;
    l->list.next = &head.list;
    l->word = ((uint32_t)syscall(SYS_gettid)) | extra;
    OK((int)syscall(SYS_set_robust_list, &head, sizeof(head)));
    syscall(SYS_exit, 0);
}

TEST(dead_owner_word)
{
    struct lock *l = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXITED(IN_CHILD(own_and_die(l, 0, false)), 0);
    EQ(l->word, FUTEX_OWNER_DIED);
    EXITED(IN_CHILD(own_and_die(l, FUTEX_WAITERS, false)), 0);
    EQ(l->word, FUTEX_OWNER_DIED | FUTEX_WAITERS);
    EXITED(IN_CHILD(own_and_die(l, FUTEX_WAITERS | FUTEX_OWNER_DIED, true)), 0);
    EQ(l->word, FUTEX_OWNER_DIED | FUTEX_WAITERS);
    /* Somebody else's stays. */
    EXITED(IN_CHILD(own_and_die(l, 0x100000, false)), 0);
    CHECK(!(l->word & FUTEX_OWNER_DIED));
}

TEST(dead_owner_wakes_one)
{
    struct lock *l = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint32_t *go = &l[1].word;
    int status;
    pid_t owner = OK(fork());
    if (!owner) {
        while (!__atomic_load_n(go, __ATOMIC_ACQUIRE))
            sleep_ms(5);
        own_and_die(l, FUTEX_WAITERS, false);
    }
    l->word = (uint32_t)owner | FUTEX_WAITERS;
    pid_t waiter = OK(fork());
    if (!waiter) {
        uint32_t seen;
        __atomic_store_n(go, 1, __ATOMIC_RELEASE);
        while (!((seen = __atomic_load_n(&l->word, __ATOMIC_ACQUIRE)) & FUTEX_OWNER_DIED))
            syscall(SYS_futex, &l->word, FUTEX_WAIT, seen, NULL, NULL, 0);
        _exit(seen == (FUTEX_OWNER_DIED | FUTEX_WAITERS) ? 0 : 1);
    }
    EQ(waitpid(waiter, &status, 0), waiter);
    EXITED(status, 0);
    EQ(waitpid(owner, &status, 0), owner);
}

/* Many processes that die with the lock, and as many that take it over: nobody is left waiting. */
TEST(robust_mutex_between_processes)
{
    enum { PROCESSES = 6, ROUNDS = 5 };
    pthread_mutex_t *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    EQ(pthread_mutex_init(m, &attr), 0);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[PROCESSES];
        int status;
        for (int i = 0; i < PROCESSES; i++) {
            pids[i] = OK(fork());
            if (pids[i])
                continue;
            int r = pthread_mutex_lock(m);
            if (r == EOWNERDEAD)
                r = pthread_mutex_consistent(m);
            _exit(r ? 1 : 0); /* without unlocking */
        }
        for (int i = 0; i < PROCESSES; i++) {
            EQ(waitpid(pids[i], &status, 0), pids[i]);
            EXITED(status, 0);
        }
    }
    EQ(pthread_mutex_lock(m), EOWNERDEAD);
}
