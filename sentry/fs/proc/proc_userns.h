/* SPDX-License-Identifier: Apache-2.0 */
/* Files about user namespaces. */
#pragma once

#include "sentry/core/userns.h"
#include "sentry/fs/proc/procfs.h"

extern const enum userns_ids proc_userns_kinds[USERNS_ID_KINDS];
MUST_CHECK int proc_userns_show_map(struct proc_call *c, struct buf *out);
int64_t proc_userns_write_map(struct proc_call *c, const char *data, size_t size);
MUST_CHECK int proc_userns_show_setgroups(struct proc_call *c, struct buf *out);
int64_t proc_userns_write_setgroups(struct proc_call *c, const char *data, size_t size);

#define PROC_USERNS_MAP(n, kind)                                                                   \
    {.name = n, .mode = S_IFREG | 0644, .show = proc_userns_show_map, .write = proc_userns_write_map, \
     .arg = &proc_userns_kinds[kind]}
/* Entries of /proc/PID. */
#define PROC_USERNS_NODES                                                                          \
    PROC_USERNS_MAP("uid_map", USERNS_UIDS), PROC_USERNS_MAP("gid_map", USERNS_GIDS),              \
    PROC_USERNS_MAP("projid_map", USERNS_PROJIDS),                                                 \
    {.name = "setgroups", .mode = S_IFREG | 0644, .show = proc_userns_show_setgroups,              \
     .write = proc_userns_write_setgroups}

MUST_CHECK int proc_userns_show_initial(struct proc_call *c, struct buf *out);
int64_t proc_userns_write_initial(struct proc_call *c, const char *data, size_t size);
/* A limit of the initial user namespace, whoever reads. */
#define SYSCTL_UCOUNT(n, k)                                                                        \
    {.name = n, .mode = S_IFREG | 0644, .show = proc_userns_show_initial, .write = proc_userns_write_initial, \
     .arg = &(const enum ucount_kind){k}}

extern const struct proc_dir proc_userns_sys_dir; /* /proc/sys/user */
