/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify: groups, which collect the events of the objects that they have marks on. Source: fanotify(7). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct file;
struct path;
struct task;

/* Starts listening to the VFS. Once, at start. */
void fan_init(void);
/* A new group's file. flags, event_flags: as in fanotify_init(2). Return: 0, −EINVAL, −EPERM, −EMFILE (too many groups), −ENOMEM. */
MUST_CHECK int fan_group_new(struct task *t, uint32_t flags, uint32_t event_flags, struct file **ret_file);
bool fan_group_is(const struct file *f);

/* What a call of fanotify_mark asks for, before its path is known. */
struct fan_request {
    uint32_t flags, mask; /* FAN_MARK_*; FAN_* */
};
/* Checks all that does not depend on the object. Return: 0, −EINVAL, −EPERM. */
MUST_CHECK int fan_mark_check(struct task *t, struct file *f, const struct fan_request *req);
/* FAN_MARK_FLUSH: all marks of the kind that flags name go. */
void fan_mark_flush(struct file *f, uint32_t flags);
/* FAN_MARK_ADD, FAN_MARK_REMOVE at path. May park. Return: 0, −EACCES, −EEXIST, −EINVAL, −EISDIR, −ENODEV, −ENOENT, −ENOMEM, −ENOSPC,
 * −ENOTDIR, −EOPNOTSUPP, −EXDEV. */
MUST_CHECK int fan_mark_change(struct task *t, struct file *f, const struct fan_request *req,
                               const struct path *path);
