/* SPDX-License-Identifier: Apache-2.0 */
/* System V shared memory. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct buf;
struct ipcns;
struct ctx;

enum { SYSV_SHM_SEGMENTS_MAX = 4096 /* kernel.shmmni */, SYSV_SHM_PAGES_MAX = 1 << 24 /* kernel.shmall */ };

/* Source: shmget(2), shmop(2), shmctl(2). */
MUST_CHECK int64_t sysv_shm_get(struct ctx *ctx, int32_t key, uint64_t size, int32_t flags);
/* Parks. Return: the address. */
MUST_CHECK int64_t sysv_shm_attach(struct ctx *ctx, int id, uint64_t addr, int32_t flags);
MUST_CHECK int64_t sysv_shm_detach(struct ctx *ctx, uint64_t addr);
MUST_CHECK int64_t sysv_shm_control(struct ctx *ctx, int id, int32_t cmd, uaddr_t buf);
/* /proc/sysvipc/shm. */
void sysv_shm_print(struct ctx *ctx, struct ipcns *ns, struct buf *out);
