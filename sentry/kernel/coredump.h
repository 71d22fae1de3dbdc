/* SPDX-License-Identifier: Apache-2.0 */
/* Core dumps. The thread that dies writes the file while the others of its process wait at their end. Source: core(5). */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/core/waitq.h"

struct file;
struct task;
struct tgroup;

/* /proc/sys/kernel/core_pattern and core_uses_pid, of the sandbox. */
enum { CORE_PATTERN_SIZE = 128 };
struct core_settings {
    char pattern[CORE_PATTERN_SIZE]; /* (k) */
    bool uses_pid;                   /* (k) */
};
extern struct core_settings core_settings;

/* A dump under way. */
struct coredump {
    struct task *dumper;         /* (i) */
    const siginfo_t *info;       /* (i) */
    struct waitq arrival;        /* (k) the dumper waits for the others here; they for its end at tgroup.exec_wait */
    unsigned arrived;            /* (k) threads that are at their end and wait */
    bool abort;                  /* (k) SIGKILL */
    /* the file */
    struct file *file;
    uint64_t written, limit;     /* (k) bytes; RLIMIT_CORE */
};

/* The process of t dies of a signal that asks for a core: writes one where limits, rights and settings allow it, and ends the
 * process with the signal. Parks. */
void coredump(struct task *t, const siginfo_t *info);
/* For a thread at its end: waits for the dump of its process. Parks. */
void coredump_join(struct task *t);
/* A thread has gone without that. */
void coredump_left(struct tgroup *g);
void coredump_abort(struct tgroup *g);
/* Appends size bytes (p NULL: a hole). Return: 0, −EFBIG (the limit is reached), −EINTR (abort), −errno. */
MUST_CHECK int coredump_emit(struct coredump *d, const void *p, uint64_t size);
/* Writes the whole file (kernel/core_elf.c). Return: 0 or −errno. */
MUST_CHECK int core_elf_write(struct coredump *d);
