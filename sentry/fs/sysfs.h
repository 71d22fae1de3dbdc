/* SPDX-License-Identifier: Apache-2.0 */
/* /sys: what programs look up about processors, memory and network interfaces. */
#pragma once

#include "sentry/vfs/mount.h"

extern const struct fs_type sysfs_fs_type;
