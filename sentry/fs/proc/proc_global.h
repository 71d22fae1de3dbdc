/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of the files at the root of /proc. */
#pragma once

#include "sentry/fs/proc/procfs.h"

/* proc_system.c */
MUST_CHECK int proc_show_system_stat(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_uptime(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_keys(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_key_users(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_loadavg(struct proc_call *c, struct buf *out);
/* The load averages of c (NULL: zeros) over 1, 5 and 15 minutes. */
void proc_get_loads(struct container *c, double ret_load[3]);
MUST_CHECK int proc_show_meminfo(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_vmstat(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_cpuinfo(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_interrupts(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_softirqs(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_schedstat_cpus(struct proc_call *c, struct buf *out);

struct proc_memory {
    uint64_t total, used, shmem; /* bytes */
};
/* What c's container may use and its processes use. Parks. */
struct proc_memory proc_memory_get(struct proc_call *c);

/* proc_sysvipc.c */
extern const struct proc_dir proc_sysvipc_dir;
