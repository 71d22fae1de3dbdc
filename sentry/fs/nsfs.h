/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces as files: /proc/PID/ns and what setns gets. */
#pragma once

#include <stdint.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"

struct file;
struct path;
struct task;

enum nsfs_kind {
    NSFS_CGROUP,
    NSFS_IPC,
    NSFS_MNT,
    NSFS_NET,
    NSFS_PID,
    NSFS_PID_CHILDREN,
    NSFS_TIME,
    NSFS_TIME_CHILDREN,
    NSFS_USER,
    NSFS_UTS,
    NSFS_KINDS,
};

/* Name under /proc/PID/ns. */
const char *nsfs_name(enum nsfs_kind kind);
/* CLONE_NEW*. */
int nsfs_clone_flag(enum nsfs_kind kind);
/* Appends "uts:[4026531838]" for t's namespace. Return: 0, −ENOENT (t has exited), −ENOMEM. */
MUST_CHECK int nsfs_print(enum nsfs_kind kind, const struct task *t, struct buf *out);
/* The file-system object of t's namespace. Return: 0 with a referenced path, −ESRCH, −ENOMEM. */
MUST_CHECK int nsfs_path(enum nsfs_kind kind, const struct task *t, struct path *ret_path);
/* For setns and ioctl: the kind of namespace that f stands for and the object (struct mntns, utsns, ipcns, netns, pidns,
 * cgroupns, userns, timens; NULL for the initial time and cgroup namespaces), borrowed while f lives. Return: 0 or −EINVAL (f is no namespace). */
MUST_CHECK int nsfs_of_file(const struct file *f, enum nsfs_kind *ret_kind, void **ret_ns);
