/* SPDX-License-Identifier: Apache-2.0 */
/* Honest guests that check every answer: what shakes the platform must not shake them. */
#include "tests/platform/guest_image.h"

enum { WORK_BUF = 3000 };

static int work_calls(void)
{
    static uint8_t buf[WORK_BUF + 8];
    for (unsigned i = 0; i < 20; i++) {
        long n = (long)(guest_random() % WORK_BUF) + 1, byte = (long)(guest_random() & 0xff);
        if (CALL1(K_GETPID, i) != (long)i + 1)
            return 1;
        if (CALL3(K_FILL, buf, n, byte) != 0 || CALL2(K_SUM, buf, n) != n * byte)
            return 2;
        if (buf[0] != byte || buf[n - 1] != byte)
            return 3;
    }
    if (CALL2(K_SUM, 0, 10) != -14 || CALL2(K_SUM, guest.zone, 10) != -14 || CALL2(K_SUM, -8, 16) != -14)
        return 4;
    if (CALL3(K_FILL, guest.zone + 8, 8, 1) != -14)
        return 5;
    return 0;
}

static int work_memory(void)
{
    long a = CALL6(NR_MMAP, 0, 0x4000, 3, 0x22, -1, 0);
    if (a < 0 && a > -4096)
        return 10;
    *(volatile char *)a = 1;
    long f = CALL2(K_MAP_FILE, 1, 2);
    if (f < 0 && f > -4096)
        return 11;
    if (*(volatile char *)f != 'c')
        return 12;
    if (CALL2(NR_MUNMAP, a, 0x4000) || CALL2(NR_MUNMAP, f, 0x1000))
        return 13;
    return CALL0(K_HOSTCALLS) ? 14 : 0;
}

static void work_thread(uint64_t arg)
{
    if (CALL1(K_GETPID, arg) != (long)arg + 1)
        guest_exit(20);
    for (int i = 0; i < 5; i++)
        if (work_memory())
            guest_exit(21);
}

static int work_thread_pair(void)
{
    volatile uint32_t words[2];
    for (unsigned i = 0; i < 2; i++)
        if (guest_spawn(work_thread, i, &words[i]) < 0)
            return 22;
    guest_join(&words[0]);
    guest_join(&words[1]);
    return 0;
}

static int work_fork(void)
{
    volatile uint32_t mark = 7;
    long pid = CALL0(K_FORK);
    if (pid == 0) {
        mark = 8;
        int r = work_calls();
        guest_exit(r ? r : 33);
    }
    if (pid < 0)
        return 30;
    long status = CALL0(K_WAIT);
    return status != 33 || mark != 7 ? 31 : 0;
}

/* A wait with a limit, which a stop or a freeze breaks off. */
static int work_timed_wait(void)
{
    uint32_t word = 1;
    long limit[2] = {0, 2000000};
    long r = CALL6(NR_FUTEX, &word, 0, 1, limit, 0, 0);
    return r == -110 ? 0 : 40;
}

int guest_work(uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++) {
        int r = work_calls();
        if (!r)
            r = work_memory();
        if (!r)
            r = work_fork();
        if (!r && i % 4 == 0)
            r = work_thread_pair();
        if (!r)
            r = work_timed_wait();
        if (r)
            return r;
    }
    return 0;
}

static void threads_one(uint64_t arg)
{
    if (CALL1(K_GETPID, arg) != (long)arg + 1)
        guest_exit(50);
    while (!guest.word2)
        CALL6(NR_FUTEX, &guest.word2, 0, 0, 0, 0, 0);
}

int guest_threads(uint64_t n)
{
    static volatile uint32_t words[4096];
    if (n > 4096)
        n = 4096;
    for (uint64_t i = 0; i < n; i++)
        if (guest_spawn(threads_one, i, &words[i]) < 0)
            return 51;
    guest.word2 = 1;
    CALL6(NR_FUTEX, &guest.word2, 1, 0x7fffffff, 0, 0, 0);
    for (uint64_t i = 0; i < n; i++)
        guest_join(&words[i]);
    return 0;
}

static void forkers_one(uint64_t arg)
{
    for (int i = 0; i < 20; i++) {
        long pid = CALL0(K_FORK);
        if (pid == 0)
            guest_exit(CALL1(K_GETPID, i) == i + 1 ? 0 : 60);
        if (pid < 0)
            guest_exit(61);
    }
}

int guest_forkers(uint64_t n)
{
    static volatile uint32_t words[256];
    for (uint64_t i = 0; i < n && i < 256; i++)
        if (guest_spawn(forkers_one, i, &words[i]) < 0)
            return 62;
    for (uint64_t i = 0; i < n && i < 256; i++)
        guest_join(&words[i]);
    for (uint64_t i = 0; i < n * 20; i++)
        if (CALL0(K_WAIT) != 0)
            return 63;
    return CALL0(K_WAIT) == -10 ? 0 : 64;
}

static void leak_mapper(uint64_t arg)
{
    while (!guest.word2) {
        long f = CALL2(K_MAP_FILE, 1, 2);
        CALL2(NR_MUNMAP, f, 0x1000);
    }
}

static void leak_spawner(uint64_t arg)
{
    while (!guest.word2) {
        volatile uint32_t word;
        if (guest_spawn(threads_one, 1, &word) < 0)
            guest_exit(70);
        /* threads_one waits for word2, which is set at the end. */
        CALL1(K_SLEEP, 2000);
    }
}

int guest_fd_leak(void)
{
    static volatile uint32_t words[3];
    guest_spawn(leak_mapper, 0, &words[0]);
    guest_spawn(leak_mapper, 1, &words[1]);
    guest_spawn(leak_spawner, 2, &words[2]);
    for (int i = 0; i < 300; i++) {
        long pid = CALL0(K_FORK);
        if (pid == 0) {
            /* What can be closed was open. */
            for (int fd = 0; fd < 64; fd++)
                if (HOST1(NR_CLOSE, fd) == 0)
                    guest_exit(71);
            guest_exit(0);
        }
        if (pid < 0)
            return 72;
        if (CALL0(K_WAIT) != 0)
            return 73;
    }
    return 0;
}
