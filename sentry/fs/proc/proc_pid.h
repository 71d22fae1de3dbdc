/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of the process directories, by subject. */
#pragma once

#include "sentry/fs/proc/procfs.h"

/* proc_status.c */
MUST_CHECK int proc_show_stat(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_status(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_statm(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_limits(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_io(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_schedstat(struct proc_call *c, struct buf *out);
/* Appends a bit mask of CPUs as "3" / "0-1". */
void proc_print_cpus(struct buf *out, const struct proc_call *c, const struct task *t, bool list);

/* proc_mem.c */
MUST_CHECK int proc_show_cmdline(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_environ(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_auxv(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_maps(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_smaps(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_smaps_rollup(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_open_mem(struct proc_call *c, struct file *f);
MUST_CHECK int proc_open_pagemap(struct proc_call *c, struct file *f);

/* proc_mapquery.c */
int64_t proc_map_query(struct proc_call *c, uint32_t cmd, uint64_t arg);

/* proc_fd.c */
extern const struct proc_dir proc_fd_dir, proc_fdinfo_dir, proc_ns_dir;
MUST_CHECK int proc_show_exe(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_follow_exe(struct proc_call *c, struct path *ret_path);
MUST_CHECK int proc_show_cwd(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_follow_cwd(struct proc_call *c, struct path *ret_path);
MUST_CHECK int proc_show_root(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_follow_root(struct proc_call *c, struct path *ret_path);
/* What c's viewer sees as "/": borrowed, NULL when there is none. */
const struct path *proc_viewer_root(const struct proc_call *c);

/* proc_global.c */
MUST_CHECK int proc_show_mounts(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_mountinfo(struct proc_call *c, struct buf *out);
MUST_CHECK int proc_show_mountstats(struct proc_call *c, struct buf *out);
uint32_t proc_poll_mounts(struct proc_call *c, struct poll_table *pt);

/* proc_timens.c */
MUST_CHECK int proc_show_timens_offsets(struct proc_call *c, struct buf *out);
int64_t proc_write_timens_offsets(struct proc_call *c, const char *data, size_t size);
