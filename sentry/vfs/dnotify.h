/* SPDX-License-Identifier: Apache-2.0 */
/* F_NOTIFY: signals about what happens in a directory. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct file;
struct inode;

/* Adds DN_* events (none: takes all back; unknown ones are ignored) of directory f for the descriptor table of the caller, shown as fd. Without DN_MULTISHOT the
 * first one is the last. Return: 0, −ENOTDIR, −ENOMEM, −ENOSPC. Source: fcntl(2). */
MUST_CHECK int dnotify_set(struct file *f, const void *table, int fd, uint32_t events);
/* The table closes a descriptor of f; NULL: f itself goes. */
void dnotify_close(struct file *f, const void *table);
/* Events of inotify's kinds (IN_*) in or of directory dir, DN_RENAME of a name that stays in it. Neither parks. */
void dnotify_tell(struct inode *dir, uint32_t mask);
void dnotify_tell_renamed(struct inode *dir);
