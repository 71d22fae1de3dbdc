/* SPDX-License-Identifier: Apache-2.0 */
/* The container's own control group, read-only, in the form of version 2. */
#pragma once

#include <stdbool.h>

#include "sentry/vfs/mount.h"

struct file;

/* Both mount the same tree: a container config that says "cgroup" means whatever the host has. */
extern const struct fs_type cgroup_fs_type, cgroup2_fs_type;

/* Whether f is the directory of a group (of the only one). */
bool cgroupfs_is_group(const struct file *f);
