/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the synthetic file systems and devices known. */
#pragma once

/* Registers file-system types (proc, sysfs, devpts, mqueue, cgroup, cgroup2) and character devices. Once, at boot. */
void fs_register_all(void);
