/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the calls about keys. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/abi/uaddr.h"
#include "sentry/kernel/key.h"
#include "sentry/kernel/taskkeys.h"

struct task;

/* The name of a type. Return: 0, −EFAULT, −EINVAL (too long, empty), −EPERM (of the kernel's own). */
MUST_CHECK int key_type_in(struct task *t, uaddr_t addr, char ret_name[KEY_TYPE_SIZE]);
/* A description; mem_free it. Return: 0, −EFAULT, −EINVAL (too long), −ENOMEM. */
MUST_CHECK int key_string_in(struct task *t, uaddr_t addr, char **ret_text);
/* A payload of at most KEY_PAYLOAD_MAX bytes (the caller has checked); NULL for none. mem_free it. */
MUST_CHECK int key_payload_in(struct task *t, uaddr_t addr, uint64_t size, void **ret_payload);
