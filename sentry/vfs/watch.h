/* SPDX-License-Identifier: Apache-2.0 */
/* inotify: marks on inodes, and the instances that collect the events which vfs/notify.h reports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct file;
struct inode;

/* Starts listening to the VFS. Once, at start. */
void watch_init(void);
/* A new instance's file. flags: O_NONBLOCK. Return: 0, −EMFILE (too many instances), −ENOMEM. Source: inotify(7). */
MUST_CHECK int watch_new(const struct cred *cred, uint32_t flags, struct file **ret_file);
bool watch_is(const struct file *f);
/* Adds or changes the mark of inode. mask as in inotify_add_watch(2), flags included. Return: watch descriptor; −EEXIST
 * (IN_MASK_CREATE), −ENOSPC, −ENOMEM. */
MUST_CHECK int watch_add(struct file *f, struct inode *inode, uint32_t mask);
/* Return: 0 or −EINVAL (no such watch). */
MUST_CHECK int watch_remove(struct file *f, int wd);
