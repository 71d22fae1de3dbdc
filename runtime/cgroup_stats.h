/* SPDX-License-Identifier: Apache-2.0 */
/* What the host has counted for a container's cgroup, in the words of runc's `events`. */
#pragma once

#include "oci/json.h"
#include "runtime/cgroup.h"

/* Writes the members cpu, memory, pids and blkio into the open object of w. Times are nanoseconds, sizes bytes. What the host does
 * not count is left out. */
void cgroup_stats_write(const struct cgroup *cg, struct json_writer *w);
/* How often the host has killed a process of the cgroup for want of memory. Return: 0 also when that is not known. */
uint64_t cgroup_stats_oom_kills(const struct cgroup *cg);
