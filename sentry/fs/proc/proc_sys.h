/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of entries of /proc/sys. */
#pragma once

#include "sentry/fs/proc/procfs.h"

/* One number, or several that belong together. */
struct sysctl_ints {
    int64_t values[4]; /* (k) */
    unsigned len;      /* (i) 0 counts as 1 */
    int64_t min, max;  /* (i) of each */
};

/* A number that lives elsewhere. */
struct sysctl_var {
    int32_t *value; /* (k) */
    int32_t min, max;
};

/* One line of text. */
struct sysctl_text {
    char text[128]; /* (k) */
};

MUST_CHECK int sysctl_show_ints(struct proc_call *c, struct buf *out);
int64_t sysctl_write_ints(struct proc_call *c, const char *data, size_t size);
MUST_CHECK int sysctl_show_var(struct proc_call *c, struct buf *out);
int64_t sysctl_write_var(struct proc_call *c, const char *data, size_t size);
MUST_CHECK int sysctl_show_text(struct proc_call *c, struct buf *out);
int64_t sysctl_write_text(struct proc_call *c, const char *data, size_t size);

/* Values are kept in the table's own storage, which is not const although the table is. */
#define SYSCTL_INT(n, v, lo, hi)                                                                   \
    {.name = n, .mode = S_IFREG | 0644, .show = sysctl_show_ints, .write = sysctl_write_ints,      \
     .arg = &(struct sysctl_ints){.values = {v}, .min = lo, .max = hi}}
#define SYSCTL_INTS(n, count, lo, hi, ...)                                                         \
    {.name = n, .mode = S_IFREG | 0644, .show = sysctl_show_ints, .write = sysctl_write_ints,      \
     .arg = &(struct sysctl_ints){.values = {__VA_ARGS__}, .len = count, .min = lo, .max = hi}}
#define SYSCTL_FIXED(n, v)                                                                         \
    {.name = n, .mode = S_IFREG | 0444, .show = sysctl_show_ints,                                  \
     .arg = &(const struct sysctl_ints){.values = {v}}}
#define SYSCTL_VAR(n, v, lo, hi)                                                                   \
    {.name = n, .mode = S_IFREG | 0644, .show = sysctl_show_var, .write = sysctl_write_var,        \
     .arg = &(const struct sysctl_var){.value = v, .min = lo, .max = hi}}
#define SYSCTL_TEXT(n, t)                                                                          \
    {.name = n, .mode = S_IFREG | 0644, .show = sysctl_show_text, .write = sysctl_write_text,      \
     .arg = &(struct sysctl_text){t}}
#define SYSCTL_FIXED_TEXT(n, t)                                                                    \
    {.name = n, .mode = S_IFREG | 0444, .show = sysctl_show_text, .arg = &(const struct sysctl_text){t}}

extern const struct proc_dir proc_sys_net_dir, proc_sys_keys_dir;
