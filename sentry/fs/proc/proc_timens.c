/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/timens_offsets: the clocks of the time namespace that the process's children will be in. Source: time_namespaces(7). */
#include "sentry/fs/proc/proc_pid.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "sentry/abi/abi_time.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timens.h"

static const struct timens_name {
    const char *name, *number;
    int32_t clockid;
} timens_names[TIMENS_CLOCKS] = {
    [TIMENS_MONOTONIC] = {"monotonic", "1", CLOCK_MONOTONIC},
    [TIMENS_BOOTTIME] = {"boottime", "7", CLOCK_BOOTTIME},
};

int proc_show_timens_offsets(struct proc_call *c, struct buf *out)
{
    if (!c->task->ns)
        return 0; /* it has exited */
    for (unsigned i = 0; i < TIMENS_CLOCKS; i++) {
        int64_t ns = timens_offset(c->task->ns->time_for_children, timens_names[i].clockid);
        int64_t sec = ns / NSEC_PER_SEC, nsec = ns % NSEC_PER_SEC;

        if (nsec < 0) {
            nsec += NSEC_PER_SEC;
            sec--;
        }
        buf_printf(out, "%-10s %10lld %9lld\n", timens_names[i].name, (long long)sec, (long long)nsec);
    }
    return buf_error(out);
}

struct timens_line {
    enum timens_clock clock;
    int64_t sec;
    uint32_t nsec;
};

/* "monotonic|boottime|1|7 SECONDS NANOSECONDS". Return: 0 or −EINVAL. */
static int parse_line(const char *text, struct timens_line *ret_line)
{
    char name[10];
    long long sec;
    unsigned long nsec;

    if (sscanf(text, "%9s %lld %lu", name, &sec, &nsec) != 3 || nsec >= NSEC_PER_SEC)
        return -EINVAL;
    for (unsigned i = 0; i < TIMENS_CLOCKS; i++) {
        if (!strcmp(name, timens_names[i].name) || !strcmp(name, timens_names[i].number)) {
            *ret_line = (struct timens_line){(enum timens_clock)i, sec, (uint32_t)nsec};
            return 0;
        }
    }
    return -EINVAL;
}

static int set_offsets(struct timens *ns, const struct timens_line *lines, unsigned len)
{
    int r = 0;

    for (unsigned i = 0; !r && i < len; i++)
        r = timens_check_offset(lines[i].clock, lines[i].sec, lines[i].nsec);
    for (unsigned i = 0; !r && i < len; i++)
        r = timens_set_offset(ns, lines[i].clock, lines[i].sec, lines[i].nsec);
    return r;
}

int64_t proc_write_timens_offsets(struct proc_call *c, const char *data, size_t size)
{
    struct timens_line lines[TIMENS_CLOCKS];
    struct timens *ns;
    unsigned len = 0;
    const char *at = data;
    int r;

    if (c->pos || size >= PROC_WRITE_MAX)
        return -EINVAL;
    /* One line a clock; what comes after them is left to another write, which fails. */
    while (len < TIMENS_CLOCKS && (!len || *at)) {
        char line[128];
        size_t n = strcspn(at, "\n");

        if (n >= sizeof(line))
            return -EINVAL;
        memcpy(line, at, n);
        line[n] = 0;
        r = parse_line(line, &lines[len++]);
        if (r)
            return r;
        at += n + (at[n] == '\n');
    }
    if (!c->task->ns)
        return -ESRCH;
    ns = c->task->ns->time_for_children;
    if (!c->opener || !cred_ns_cap(c->opener, ns ? ns->userns : NULL, CAP_SYS_TIME))
        return -EPERM;
    r = set_offsets(ns, lines, len);
    return r ? r : at - data;
}
