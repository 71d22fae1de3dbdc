/* SPDX-License-Identifier: Apache-2.0 */
/* What the shared runner of the probes needs: a probe prints what each call answers, and the answers under runc and under Cloister
 * are compared line by line. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *probe_text(long r)
{
    static char texts[8][64];
    static unsigned next;
    char *p = texts[next++ % 8];
    if (r >= 0)
        snprintf(p, sizeof(texts[0]), "%ld", r);
    else
        snprintf(p, sizeof(texts[0]), "-%s", strerrorname_np(errno));
    return p;
}

/* The value of a call. */
#define P(call)                                                                                    \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long probe_r_ = (long)(call);                                                              \
        printf("%s = %s\n", #call, probe_text(probe_r_));                                          \
    } while (0)
/* Whether a call gives a descriptor, which is closed. */
#define PF(call)                                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long probe_r_ = (long)(call);                                                              \
        printf("%s = %s\n", #call, probe_r_ >= 0 ? "ok" : probe_text(probe_r_));                   \
        if (probe_r_ > 2)                                                                          \
            close((int)probe_r_);                                                                  \
    } while (0)

#define PROBE(fn)                                                                                  \
    do {                                                                                           \
        puts("--- " #fn);                                                                          \
        fn();                                                                                      \
    } while (0)

/* Runs code in a child; prints how it ends unless it exits with 0. */
#define CHILD(...)                                                                                 \
    do {                                                                                           \
        int child_status_;                                                                         \
        fflush(stdout);                                                                            \
        pid_t child_pid_ = fork();                                                                 \
        if (!child_pid_) {                                                                         \
            __VA_ARGS__;                                                                           \
            fflush(stdout);                                                                        \
            _exit(0);                                                                              \
        }                                                                                          \
        waitpid(child_pid_, &child_status_, 0);                                                    \
        if (child_status_)                                                                         \
            printf("status %x\n", child_status_);                                                  \
    } while (0)
