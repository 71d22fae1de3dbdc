/* SPDX-License-Identifier: Apache-2.0 */
/* System V semaphores. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct buf;
struct ipcns;
struct ctx;
struct pid;
struct sem_undo_list;

enum {
    SYSV_SEM_SETS_MAX = 32000,  /* semmni */
    SYSV_SEM_PER_SET_MAX = 32000, /* semmsl */
    SYSV_SEM_TOTAL_MAX = 1 << 20,
    SYSV_SEM_OPS_MAX = 500,     /* semopm */
    SYSV_SEM_VALUE_MAX = 32767, /* semvmx */
};

/* Source: semget(2), semop(2), semctl(2). */
MUST_CHECK int64_t sysv_sem_get(struct ctx *ctx, int32_t key, int32_t len, int32_t flags);
/* Parks. deadline_ns: CLOCK_MONOTONIC or WAIT_FOREVER. Return: 0, −EAGAIN, −EINTR, −EIDRM, −EFBIG, −ERANGE … */
MUST_CHECK int64_t sysv_sem_op(struct ctx *ctx, int id, uaddr_t ops, uint32_t len, uint64_t deadline_ns);
MUST_CHECK int64_t sysv_sem_control(struct ctx *ctx, int id, int32_t num, int32_t cmd, uint64_t arg);
/* The process pid ends: its SEM_UNDO adjustments, kept in *list, are made. */
void sysv_sem_exit(struct sem_undo_list **list, struct pid *pid);
/* /proc/sysvipc/sem. */
void sysv_sem_print(struct ctx *ctx, struct ipcns *ns, struct buf *out);
