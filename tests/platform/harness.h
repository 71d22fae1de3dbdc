/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of a few calls on the bare seccomp platform, for tests that attack it or shake it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform/base/list.h"
#include "platform/platform.h"

#define CHECK(c)                                                                                   \
    do {                                                                                           \
        if (!(c)) {                                                                                \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #c);                        \
            _Exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum {
    HARNESS_BLOB = 0x10000000, /* where guests find their code, writable as well */
    HARNESS_BLOB_SIZE = 0x100000,
    HARNESS_STACK = 0x20000000, /* end of the first stack */
    HARNESS_STACK_SIZE = 0x100000,
    HARNESS_FILE = 0x28000000, /* two maps of one file, and one of another */
};

/* A guest process. Ends when its last thread has; freed when its status was taken. */
struct hproc {
    struct list link, children, sibling;
    struct hproc *parent;
    struct list threads;
    struct plat_aspace *aspace;
    bool dying, ended, died_host;
    bool top; /* freed by harness_wait only */
    int status; /* exit code, or 256 + signal */
    void *waiter; /* thread of it in K_WAIT */
    void *joiner; /* fiber in harness_wait */
};

extern struct platform *harness_platform;
/* Counts of what happened; tests reset and look at them. */
extern unsigned harness_events, harness_procs, harness_faults, harness_bad_checks;
/* Prints what guests write. */
extern bool harness_verbose;

/* Runs fn on a fiber in a pid namespace of its own and ends the test with its result; 77 without the right to do so. The
 * test's arguments are kept for fn. */
int harness_main(int (*fn)(int argc, char **argv), int argc, char **argv);
/* Starts the guest image in a new process at its entry: mode, task size, arg. */
struct hproc *harness_start(unsigned mode, uint64_t arg);
/* Waits for the end. Return: its status, or −1 after limit_ms (the process is killed then). The process is freed. */
int harness_wait(struct hproc *p, unsigned limit_ms);
void harness_kill(struct hproc *p);
void harness_sleep_us(uint64_t us);
/* Host processes in the namespace, and descriptors of this process. */
unsigned harness_count_pids(void);
unsigned harness_count_fds(void);
/* Waits until neither guest processes nor strays are left: the sentry, the zygote, the pool. Return: whether so. */
bool harness_settled(unsigned limit_ms);
/* Host pid of the zygote, and of some random guest process (0: none). */
int harness_zygote(void);
int harness_random_pid(void);
/* Any process of the namespace. */
int harness_random_host_pid(void);
/* Return: whether the namespace has a limit of its own. */
bool harness_set_pid_max(const char *text);
uint64_t harness_random(void);
/* From now on so many descriptors are handed over by another thread. */
void harness_slow_sends(unsigned n);
