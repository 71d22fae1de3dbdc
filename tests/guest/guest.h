/* SPDX-License-Identifier: Apache-2.0 */
/* The little that guest tests share: a test is a function run in a child of its own, with a time limit. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct guest_test {
    const char *name;
    void (*fn)(void);
    unsigned seconds;
    struct guest_test *next;
};

/* A part of the program that tests run by exec of /proc/self/exe: argv[1] is "@name". */
struct guest_mode {
    const char *name;
    int (*fn)(int argc, char **argv);
    struct guest_mode *next;
};

extern struct guest_test *guest_tests;
extern struct guest_mode *guest_modes;

#define TEST_TIME(name, seconds)                                                                   \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        static struct guest_test t = {#name, test_##name, seconds, NULL};                          \
        struct guest_test **p = &guest_tests;                                                      \
        while (*p)                                                                                 \
            p = &(*p)->next;                                                                       \
        *p = &t;                                                                                   \
    }                                                                                              \
    static void test_##name(void)
#define TEST(name) TEST_TIME(name, 20)

#define MODE(name)                                                                                 \
    static int mode_##name(int argc, char **argv);                                                 \
    __attribute__((constructor)) static void register_mode_##name(void)                            \
    {                                                                                              \
        static struct guest_mode m = {#name, mode_##name, NULL};                                   \
        m.next = guest_modes;                                                                      \
        guest_modes = &m;                                                                          \
    }                                                                                              \
    static int mode_##name(int argc, char **argv)

/* Ends the test (the process, whichever it is) as failed. */
__attribute__((noreturn, format(printf, 3, 4))) void guest_fail(const char *file, int line, const char *fmt, ...);

/* Ends the test as skipped, since the machine lacks something. guest_run.py takes that only of a test that the host's kernel
 * skips as well. */
__attribute__((noreturn)) void guest_skip(const char *why);

#define FAIL(...) guest_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            FAIL("%s is false (errno %d)", #cond, errno);                                          \
    } while (0)
#define EQ(a, b)                                                                                   \
    do {                                                                                           \
        long long eq_a_ = (long long)(a), eq_b_ = (long long)(b);                                  \
        if (eq_a_ != eq_b_)                                                                        \
            FAIL("%s is %lld, not %s = %lld (errno %d)", #a, eq_a_, #b, eq_b_, errno);             \
    } while (0)
/* The call works: any result but −1. Value: the result. */
#define OK(expr)                                                                                   \
    ({                                                                                             \
        __auto_type ok_r_ = (expr);                                                                \
        if ((long)ok_r_ == -1)                                                                     \
            FAIL("%s: %s", #expr, strerror(errno));                                                \
        ok_r_;                                                                                     \
    })
/* The call fails with errno e. */
#define ERR(e, expr)                                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long err_r_ = (long)(expr);                                                                \
        if (err_r_ != -1)                                                                          \
            FAIL("%s gives %ld, not %s", #expr, err_r_, #e);                                       \
        if (errno != (e))                                                                          \
            FAIL("%s gives errno %d (%s), not %s", #expr, errno, strerror(errno), #e);             \
    } while (0)
#define STR(a, b)                                                                                  \
    do {                                                                                           \
        const char *str_a_ = (a), *str_b_ = (b);                                                   \
        if (strcmp(str_a_, str_b_))                                                                \
            FAIL("%s is \"%s\", not \"%s\"", #a, str_a_, str_b_);                                  \
    } while (0)

/* Runs code in a child and gives its wait status. */
#define IN_CHILD(...)                                                                              \
    ({                                                                                             \
        int in_child_status_;                                                                      \
        pid_t in_child_pid_ = OK(fork());                                                          \
        if (!in_child_pid_) {                                                                      \
            __VA_ARGS__;                                                                               \
            _exit(0);                                                                              \
        }                                                                                          \
        EQ(OK(waitpid(in_child_pid_, &in_child_status_, 0)), in_child_pid_);                       \
        in_child_status_;                                                                          \
    })
/* A wait status is that of an exit with this code / of a death by this signal. */
#define EXITED(status, code) guest_status(__FILE__, __LINE__, (status), (code), 0)
#define KILLED(status, sig) guest_status(__FILE__, __LINE__, (status), 0, (sig))
void guest_status(const char *file, int line, int status, int code, int sig);

static inline uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&ts, &ts) && errno == EINTR)
        ;
}

/* A fresh directory under /tmp that is the working directory from now on. */
void guest_tmpdir(void);
/* A file of that content. */
void guest_write_file(const char *path, const char *content);
/* Reads all of a small file. */
char *guest_read_file(const char *path);
/* A page-aligned address whose page and the next one are not mapped / the last byte before an unmapped page. */
void *guest_unmapped(void);
char *guest_page_end(void);

/* Every test runs in a directory of the root file system and in one of a tmpfs. */
#define BOTH(name)                                                                                 \
    static void both_##name(void);                                                                 \
    TEST(name##_root)                                                                              \
    {                                                                                              \
        guest_tmpdir();                                                                            \
        both_##name();                                                                             \
    }                                                                                              \
    TEST(name##_tmpfs)                                                                             \
    {                                                                                              \
        char path[] = "/dev/shm/guest.XXXXXX";                                                     \
        CHECK(mkdtemp(path));                                                                      \
        OK(chdir(path));                                                                           \
        both_##name();                                                                             \
    }                                                                                              \
    static void both_##name(void)
