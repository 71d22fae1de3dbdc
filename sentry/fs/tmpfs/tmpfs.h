/* SPDX-License-Identifier: Apache-2.0 */
/* tmpfs: files that live in the sentry's memory and, once large or mapped, on a host memory file each. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;
struct dentry;
struct file;

/* Registers the file-system type. memory_bytes is what the sandbox takes for its amount of RAM: an instance without size=
 * may use half of it. */
void tmpfs_register(uint64_t memory_bytes);

/* Root dentry of a new instance; data holds mount options (size=, nr_blocks=, nr_inodes=, mode=, uid=, gid=; NULL is fine).
 * Return: 0, −EINVAL, −ENOMEM. */
MUST_CHECK int tmpfs_new(struct ctx *ctx, unsigned long flags, const char *data, struct dentry **ret_root);

/* An open regular file in no directory, on an instance of the sentry's own without size limit: memfd, System V shared
 * memory, shared anonymous memory. name is shown as "/name (deleted)". mode: permissions; flags: O_RDWR and the like;
 * seals: F_SEAL_* in force (F_SEAL_SEAL: none may be added); size: initial, a hole. Owner is ctx's. Return: 0, −ENOMEM, −ENFILE. */
MUST_CHECK int tmpfs_file_new_unlinked(struct ctx *ctx, const char *name, uint32_t mode, uint32_t flags,
                                       uint32_t seals, uint64_t size, struct file **ret_file);
