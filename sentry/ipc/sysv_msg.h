/* SPDX-License-Identifier: Apache-2.0 */
/* System V message queues. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"

struct buf;
struct ipcns;
struct ctx;

enum { SYSV_MSG_QUEUES_MAX = 32000 /* msgmni */, SYSV_MSG_SIZE_MAX = 8192 /* msgmax */, SYSV_MSG_QUEUE_BYTES = 16384 /* msgmnb */ };

/* Source: msgget(2), msgop(2), msgctl(2). msg points at the guest's long type and text. Sends and receives park. */
MUST_CHECK int64_t sysv_msg_get(struct ctx *ctx, int32_t key, int32_t flags);
MUST_CHECK int64_t sysv_msg_send(struct ctx *ctx, int id, uaddr_t msg, uint64_t size, int32_t flags);
MUST_CHECK int64_t sysv_msg_receive(struct ctx *ctx, int id, uaddr_t msg, uint64_t size, int64_t type, int32_t flags);
MUST_CHECK int64_t sysv_msg_control(struct ctx *ctx, int id, int32_t cmd, uaddr_t buf);
/* /proc/sysvipc/msg. */
void sysv_msg_print(struct ctx *ctx, struct ipcns *ns, struct buf *out);
