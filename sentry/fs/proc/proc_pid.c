/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of processes and threads. Source: proc(5). */
#include "sentry/fs/proc/proc_pid.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sentry/fs/proc/proc_userns.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"

/* ---- small files ---- */

static int show_comm(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%s\n", c->task->comm);
    return buf_error(out);
}

static int64_t write_comm(struct proc_call *c, const char *data, size_t size)
{
    if (!c->viewer || c->viewer->group != c->task->group)
        return -EINVAL;
    task_set_comm(c->task, data);
    return (int64_t)size;
}

/* What may be traced, not just looked at. */
static bool may_trace(const struct proc_call *c)
{
    return !c->viewer || !ptrace_may_access(c->viewer, c->task, PTRACE_ATTACH_FS);
}

static int show_personality(struct proc_call *c, struct buf *out)
{
    if (!may_trace(c))
        return -EPERM;
    buf_printf(out, "%08llx\n", (unsigned long long)c->task->personality);
    return buf_error(out);
}

static int show_wchan(struct proc_call *c, struct buf *out)
{
    buf_putc(out, '0');
    return buf_error(out);
}

static int show_syscall(struct proc_call *c, struct buf *out)
{
    const struct task *t = c->task;
    const struct regs *regs = t->vfork_child ? &t->vfork_regs : t->thread ? &t->thread->regs : NULL;

    if (!may_trace(c))
        return -EPERM;
    if (!regs) {
        buf_puts(out, "-1 0x0 0x0\n");
        return buf_error(out);
    }
    /* Stopped threads are as far from running as those that sleep in a call. */
    if ((t->state != TASK_KERNEL && t->state != TASK_STOPPED) || !t->ctx.parked) {
        buf_puts(out, "running\n");
        return buf_error(out);
    }
    if (!t->in_syscall || t->sysno < 0) {
        buf_printf(out, "-1 0x%llx 0x%llx\n", (unsigned long long)regs->rsp,
                   (unsigned long long)regs->rip);
        return buf_error(out);
    }
    buf_printf(out, "%lld", (long long)t->sysno);
    for (unsigned i = 0; i < 6; i++)
        buf_printf(out, " 0x%llx", (unsigned long long)t->sysargs[i]);
    buf_printf(out, " 0x%llx 0x%llx\n", (unsigned long long)regs->rsp, (unsigned long long)regs->rip);
    return buf_error(out);
}

static int show_cgroup(struct proc_call *c, struct buf *out)
{
    /* The cgroup namespace of a container starts at its own group. */
    buf_puts(out, "0::/\n");
    return buf_error(out);
}

static int show_cpuset(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "/\n");
    return buf_error(out);
}

static int show_unset_id(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u", UINT32_MAX);
    return buf_error(out);
}

static int64_t write_loginuid(struct proc_call *c, const char *data, size_t size)
{
    return -EPERM; /* no audit session was begun for the container */
}

static int show_coredump_filter(struct proc_call *c, struct buf *out)
{
    if (c->task->mm)
        buf_printf(out, "%08x\n", c->task->mm->dump_filter);
    return buf_error(out);
}

static int64_t write_coredump_filter(struct proc_call *c, const char *data, size_t size)
{
    unsigned long value;
    char *end;

    errno = 0;
    value = strtoul(data, &end, 0);
    if (end == data || errno || value > UINT32_MAX)
        return -EINVAL;
    if (!c->task->mm)
        return -ESRCH;
    c->task->mm->dump_filter = (uint32_t)value & MM_DUMP_ALL;
    return (int64_t)size;
}

static int show_attr(struct proc_call *c, struct buf *out)
{
    return -EINVAL; /* no security module */
}

static int show_timerslack(struct proc_call *c, struct buf *out)
{
    if (c->viewer != c->task && !cred_ns_cap(c->ctx->cred, c->task->ctx.cred->userns, CAP_SYS_NICE))
        return -EPERM;
    buf_printf(out, "%llu\n", (unsigned long long)c->task->timer_slack_ns);
    return buf_error(out);
}

static int64_t write_timerslack(struct proc_call *c, const char *data, size_t size)
{
    char *end;
    unsigned long long ns = strtoull(data, &end, 0);

    if (end == data)
        return -EINVAL;
    if (c->viewer != c->task && !cred_ns_cap(c->ctx->cred, c->task->ctx.cred->userns, CAP_SYS_NICE))
        return -EPERM;
    c->task->timer_slack_ns = ns ? ns : 50000;
    return (int64_t)size;
}

/* ---- the out-of-memory killer ---- */

static int show_oom_score_adj(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%d\n", c->task->group->oom_score_adj);
    return buf_error(out);
}

static int show_oom_adj(struct proc_call *c, struct buf *out)
{
    int adj = c->task->group->oom_score_adj;

    buf_printf(out, "%d\n", adj == 1000 ? 15 : adj * 17 / 1000);
    return buf_error(out);
}

/* A larger value than 0 makes the process a likelier victim; the size of its memory is the host's to weigh. */
static int show_oom_score(struct proc_call *c, struct buf *out)
{
    int score = (1000 + c->task->group->oom_score_adj) * 2 / 3;

    buf_printf(out, "%d\n", MAX(score, 0));
    return buf_error(out);
}

static int64_t set_oom_adj(struct proc_call *c, long adj, size_t size)
{
    struct tgroup *g = c->task->group;

    if (adj < g->oom_score_adj && !cred_has_cap(c->ctx->cred, CAP_SYS_RESOURCE))
        return -EACCES;
    g->oom_score_adj = (int)adj;
    return (int64_t)size;
}

static int64_t write_oom_score_adj(struct proc_call *c, const char *data, size_t size)
{
    char *end;
    long adj = strtol(data, &end, 10);

    if (end == data || adj < -1000 || adj > 1000)
        return -EINVAL;
    return set_oom_adj(c, adj, size);
}

static int64_t write_oom_adj(struct proc_call *c, const char *data, size_t size)
{
    char *end;
    long adj = strtol(data, &end, 10);

    if (end == data || adj < -17 || adj > 15)
        return -EINVAL;
    return set_oom_adj(c, adj == 15 ? 1000 : adj * 1000 / 17, size);
}

/* ---- children and threads ---- */

static int show_children(struct proc_call *c, struct buf *out)
{
    struct tgroup *child;

    list_for_each_entry(child, &c->task->group->children, sibling) {
        int pid = tgroup_pid_in(child, c->ns);

        /* Children whose maker is gone count as the leader's. */
        if (pid && (child->parent_task == c->task ||
                    (!child->parent_task && c->task->group->leader == c->task)))
            buf_printf(out, "%d ", pid);
    }
    return buf_error(out);
}

static int task_lookup(struct proc_call *c, const char *name, struct proc_key *ret_key)
{
    int tid = proc_parse_number(name);
    struct pid *pid = tid > 0 ? pid_peek(c->ns, tid) : NULL;

    if (!pid || !pid->task || pid->task->group != c->task->group)
        return -ENOENT;
    ret_key->pid = pid;
    ret_key->whole = false;
    ret_key->node = &proc_tid_node;
    return 0;
}

static int task_next(struct proc_call *c, int64_t from, struct proc_entry *ret_entry)
{
    struct task *t;
    int best = 0;

    list_for_each_entry(t, &c->task->group->threads, thread_link) {
        int tid = t->pid ? task_tid_in(t, c->ns) : 0;

        if (tid && tid >= from && (!best || tid < best))
            best = tid;
    }
    if (!best)
        return 0;
    ret_entry->number = best;
    ret_entry->d_type = DT_DIR;
    snprintf(ret_entry->name, sizeof(ret_entry->name), "%d", best);
    return 1;
}

static const struct proc_dir task_dir = {.lookup = task_lookup, .next = task_next};

/* ---- tables ---- */

#define ATTR_NODE(n) {.name = n, .mode = S_IFREG | 0666, .show = show_attr}
static const struct proc_node attr_nodes[] = {
    ATTR_NODE("current"), {.name = "prev", .mode = S_IFREG | 0444, .show = show_attr},
    ATTR_NODE("exec"),    ATTR_NODE("fscreate"),
    ATTR_NODE("keycreate"), ATTR_NODE("sockcreate"),
};
static const struct proc_dir attr_dir = PROC_DIR_OF(attr_nodes);

#define MAGIC_LINK(n, s, f) {.name = n, .mode = S_IFLNK | 0777, .flags = PROC_PTRACE, .show = s, .follow = f}

/* Entries that processes and threads have in common. */
#define PROC_COMMON_NODES                                                                          \
    {.name = "fd", .mode = S_IFDIR | 0500, .flags = PROC_FD_ACCESS, .dir = &proc_fd_dir},          \
    {.name = "fdinfo", .mode = S_IFDIR | 0555, .flags = PROC_FD_ACCESS, .dir = &proc_fdinfo_dir},  \
    {.name = "ns", .mode = S_IFDIR | 0511, .dir = &proc_ns_dir},                                   \
    PROC_DIR("net", proc_net_dir),                                                                 \
    {.name = "environ", .mode = S_IFREG | 0400, .flags = PROC_PTRACE, .show = proc_show_environ},  \
    {.name = "auxv", .mode = S_IFREG | 0400, .flags = PROC_PTRACE, .show = proc_show_auxv},        \
    PROC_FILE("status", 0444, proc_show_status),                                                   \
    {.name = "personality", .mode = S_IFREG | 0400, .show = show_personality},                     \
    PROC_FILE("limits", 0444, proc_show_limits),                                                   \
    {.name = "comm", .mode = S_IFREG | 0644, .show = show_comm, .write = write_comm},              \
    {.name = "syscall", .mode = S_IFREG | 0400, .show = show_syscall},                             \
    PROC_FILE("cmdline", 0444, proc_show_cmdline),                                                 \
    PROC_FILE("stat", 0444, proc_show_stat),                                                       \
    PROC_FILE("statm", 0444, proc_show_statm),                                                     \
    {.name = "maps", .mode = S_IFREG | 0444, .flags = PROC_PTRACE, .show = proc_show_maps, .ioctl = proc_map_query}, \
    {.name = "mem", .mode = S_IFREG | 0600, .flags = PROC_PTRACE, .open = proc_open_mem},          \
    MAGIC_LINK("cwd", proc_show_cwd, proc_follow_cwd),                                             \
    MAGIC_LINK("root", proc_show_root, proc_follow_root),                                          \
    MAGIC_LINK("exe", proc_show_exe, proc_follow_exe),                                             \
    {.name = "mounts", .mode = S_IFREG | 0444, .show = proc_show_mounts, .poll = proc_poll_mounts}, \
    {.name = "mountinfo", .mode = S_IFREG | 0444, .show = proc_show_mountinfo, .poll = proc_poll_mounts}, \
    {.name = "smaps", .mode = S_IFREG | 0444, .flags = PROC_PTRACE, .show = proc_show_smaps},      \
    {.name = "smaps_rollup", .mode = S_IFREG | 0444, .flags = PROC_PTRACE, .show = proc_show_smaps_rollup}, \
    {.name = "pagemap", .mode = S_IFREG | 0400, .flags = PROC_PTRACE, .open = proc_open_pagemap},  \
    PROC_DIR("attr", attr_dir),                                                                    \
    PROC_FILE("wchan", 0444, show_wchan),                                                          \
    PROC_FILE("schedstat", 0444, proc_show_schedstat),                                             \
    PROC_FILE("cpuset", 0444, show_cpuset),                                                        \
    PROC_FILE("cgroup", 0444, show_cgroup),                                                        \
    PROC_FILE("oom_score", 0444, show_oom_score),                                                  \
    {.name = "oom_adj", .mode = S_IFREG | 0644, .show = show_oom_adj, .write = write_oom_adj},     \
    {.name = "oom_score_adj", .mode = S_IFREG | 0644, .show = show_oom_score_adj,                  \
     .write = write_oom_score_adj},                                                                \
    {.name = "loginuid", .mode = S_IFREG | 0644, .show = show_unset_id, .write = write_loginuid},  \
    PROC_FILE("sessionid", 0444, show_unset_id),                                                   \
    {.name = "io", .mode = S_IFREG | 0400, .show = proc_show_io},                                  \
    PROC_USERNS_NODES

static const struct proc_node pid_nodes[] = {
    {.name = "task", .mode = S_IFDIR | 0555, .flags = PROC_THREADS, .dir = &task_dir},
    PROC_COMMON_NODES,
    {.name = "mountstats", .mode = S_IFREG | 0400, .show = proc_show_mountstats},
    {.name = "coredump_filter", .mode = S_IFREG | 0644, .show = show_coredump_filter, .write = write_coredump_filter},
    {.name = "timens_offsets", .mode = S_IFREG | 0644, .show = proc_show_timens_offsets, .write = proc_write_timens_offsets},
    {.name = "timerslack_ns", .mode = S_IFREG | 0666, .show = show_timerslack, .write = write_timerslack},
};

static const struct proc_node tid_nodes[] = {
    PROC_COMMON_NODES,
    PROC_FILE("children", 0444, show_children),
};

const struct proc_dir proc_pid_dir = PROC_DIR_OF(pid_nodes);
const struct proc_dir proc_tid_dir = PROC_DIR_OF(tid_nodes);
const struct proc_node proc_pid_node = {
    .name = "pid", .mode = S_IFDIR | 0555, .flags = PROC_NO_DUMP_OWNER, .dir = &proc_pid_dir};
const struct proc_node proc_tid_node = {
    .name = "tid", .mode = S_IFDIR | 0555, .flags = PROC_NO_DUMP_OWNER, .dir = &proc_tid_dir};
