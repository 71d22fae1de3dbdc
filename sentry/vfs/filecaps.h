/* SPDX-License-Identifier: Apache-2.0 */
/* The extended attribute security.capability, whose third revision names the user namespace that it is meant for by the id of that
 * namespace's user 0. What a guest writes and reads of it is in its own numbers. Source: capabilities(7), "Namespaced file
 * capabilities". */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"

struct ctx;
struct inode;
struct userns;

/* Whether uid is user 0 of ns or of one above it: only then is a file's capability set meant for the members of ns. */
bool filecaps_owned(const struct userns *ns, uint32_t uid);
/* Makes from what a guest writes what is stored. Return: the size of *ret_data; −EPERM, −EINVAL. */
MUST_CHECK ssize_t filecaps_in(struct ctx *ctx, const struct inode *inode, const void *src, size_t size,
                               struct vfs_ns_cap_data *ret_data);
/* Makes from what is stored (size bytes at data, which has room for the longer form) what ctx reads. Return: its size,
 * −EOVERFLOW (not to be told in ctx's numbers), −EINVAL. */
MUST_CHECK ssize_t filecaps_out(struct ctx *ctx, const struct inode *inode, struct vfs_ns_cap_data *data, size_t size);
