/* SPDX-License-Identifier: Apache-2.0 */
/* A host process named by pid and start time, so that a reused pid is never taken for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"

struct procid {
    pid_t pid;      /* 0: no process */
    uint64_t start; /* clock ticks since boot, field 22 of /proc/PID/stat */
};

/* Reads the start time of a live process of ours. Return: 0, −ESRCH. */
MUST_CHECK int procid_of(pid_t pid, struct procid *ret_id);
/* Whether the process exists and is not a zombie. */
bool procid_alive(const struct procid *id);
/* Return: a pidfd of exactly that process (zombie or not), or −ESRCH or another −errno. */
MUST_CHECK int procid_open(const struct procid *id);
/* Sends a signal to exactly that process. Return: 0, −ESRCH, −errno. */
MUST_CHECK int procid_kill(const struct procid *id, int signo);
/* Waits until the process is a zombie or gone. Return: 0, −ETIMEDOUT. */
MUST_CHECK int procid_wait_gone(const struct procid *id, int timeout_ms);
