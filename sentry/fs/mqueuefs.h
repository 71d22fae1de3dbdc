/* SPDX-License-Identifier: Apache-2.0 */
/* The mqueue file system: shows the POSIX message queues of whoever looks. */
#pragma once

struct fs_type;

extern const struct fs_type mqueue_fs_type;
