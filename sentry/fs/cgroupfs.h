/* SPDX-License-Identifier: Apache-2.0 */
/* The container's own control group, read-only, in the form of version 2. */
#pragma once

#include "sentry/vfs/mount.h"

/* Both mount the same tree: a container config that says "cgroup" means whatever the host has. */
extern const struct fs_type cgroup_fs_type, cgroup2_fs_type;
