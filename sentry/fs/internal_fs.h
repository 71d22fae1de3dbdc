/* SPDX-License-Identifier: Apache-2.0 */
/* Files of objects that are in no directory but need an inode of their own kind (inherited descriptors, namespaces). */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct file;
struct file_ops;
struct inode;
struct mount;

/* The internal mount in *slot, made at the first call. type is a static string. Return: borrowed, NULL on no memory. */
MUST_CHECK struct mount *internal_fs_mount(struct mount **slot, const char *type, uint64_t magic);
/* A file over inode (whose superblock is m's) that shows as name. Return: NULL on no memory. */
MUST_CHECK struct file *internal_fs_file(struct mount *m, OWNS struct inode *inode, const char *name,
                                         uint32_t flags, const struct file_ops *ops,
                                         const struct cred *cred);
