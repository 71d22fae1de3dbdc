/* SPDX-License-Identifier: Apache-2.0 */
/* The root of /proc: its fixed files, and the processes. Source: proc(5). */
#include "sentry/fs/proc/proc_global.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "sentry/fs/devfs.h"
#include "sentry/fs/proc/proc_pid.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"

/* ---- mounts (of a process, and of the caller through self) ---- */

int proc_show_mounts(struct proc_call *c, struct buf *out)
{
    const struct task *t = c->task;

    return t->ns && t->ns->mnt && t->fs ? mntns_print_mounts(t->ns->mnt, &t->fs->root, out) : -EINVAL;
}

int proc_show_mountinfo(struct proc_call *c, struct buf *out)
{
    const struct task *t = c->task;

    return t->ns && t->ns->mnt && t->fs ? mntns_print_mountinfo(t->ns->mnt, &t->fs->root, out) : -EINVAL;
}

/* Made from the lines of mounts: source, place, type. */
int proc_show_mountstats(struct proc_call *c, struct buf *out)
{
    CLEANUP_BUF struct buf mounts = {0};
    char *line, *rest;
    int r = proc_show_mounts(c, &mounts);

    if (r)
        return r;
    for (line = mounts.data; line && *line; line = rest) {
        char *source = line, *place, *type;

        rest = strchrnul(line, '\n');
        if (*rest)
            *rest++ = '\0';
        place = strchrnul(source, ' ');
        if (*place)
            *place++ = '\0';
        type = strchrnul(place, ' ');
        if (*type)
            *type++ = '\0';
        type[strcspn(type, " ")] = '\0';
        buf_printf(out, "device %s mounted on %s with fstype %s\n", source, place, type);
    }
    return buf_error(out);
}

uint32_t proc_poll_mounts(struct proc_call *c, struct poll_table *pt)
{
    struct mntns *ns = c->task->ns ? c->task->ns->mnt : NULL;
    uint32_t events = EPOLLIN | EPOLLRDNORM;

    if (!ns)
        return events;
    poll_wait(pt, mntns_changed(ns));
    /* A change is told once. */
    if (*c->seen != mntns_seq(ns))
        events |= EPOLLPRI | EPOLLERR;
    *c->seen = mntns_seq(ns);
    return events;
}

/* ---- links ---- */

static int show_self(struct proc_call *c, struct buf *out)
{
    int pid = c->viewer ? tgroup_pid_in(c->viewer->group, c->ns) : 0;

    if (!pid)
        return -ENOENT;
    buf_printf(out, "%d", pid);
    return buf_error(out);
}

static int show_thread_self(struct proc_call *c, struct buf *out)
{
    int pid = c->viewer ? tgroup_pid_in(c->viewer->group, c->ns) : 0;

    if (!pid)
        return -ENOENT;
    buf_printf(out, "%d/task/%d", pid, task_tid_in(c->viewer, c->ns));
    return buf_error(out);
}

static int show_text(struct proc_call *c, struct buf *out)
{
    buf_puts(out, c->node->arg);
    return buf_error(out);
}

/* ---- small files ---- */

static int show_version(struct proc_call *c, struct buf *out)
{
    const char *release = c->container ? c->container->kernel->release : NULL;

    buf_printf(out, "Linux version %s (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0, "
                    "GNU ld (GNU Binutils for Debian) 2.40) %s\n",
               release ? release : KERNEL_RELEASE, KERNEL_VERSION);
    return buf_error(out);
}

static int show_filesystems(struct proc_call *c, struct buf *out)
{
    fs_type_print(out);
    return buf_error(out);
}

static int show_devices(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "Character devices:\n");
    chrdev_print(out);
    buf_puts(out, "136 pts\n\nBlock devices:\n");
    return buf_error(out);
}

static int show_pressure(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    return buf_error(out);
}

static const struct proc_node pressure_nodes[] = {
    PROC_FILE("cpu", 0444, show_pressure),
    PROC_FILE("io", 0444, show_pressure),
    PROC_FILE("memory", 0444, show_pressure),
};
static const struct proc_dir pressure_dir = PROC_DIR_OF(pressure_nodes);

static int show_tty_drivers(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "/dev/tty             /dev/tty        5       0 system:/dev/tty\n"
                  "/dev/console         /dev/console    5       1 system:console\n"
                  "/dev/ptmx            /dev/ptmx       5       2 system\n"
                  "pty_slave            /dev/pts      136 0-1048575 pty:slave\n"
                  "pty_master           /dev/ptm      128 0-1048575 pty:master\n");
    return buf_error(out);
}

static int show_tty_ldiscs(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "n_tty       0\n");
    return buf_error(out);
}

static const struct proc_node tty_nodes[] = {
    PROC_FILE("drivers", 0444, show_tty_drivers),
    PROC_FILE("ldiscs", 0444, show_tty_ldiscs),
};
static const struct proc_dir tty_dir = PROC_DIR_OF(tty_nodes);

static int show_execdomains(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "0-0\tLinux           \t[kernel]\n");
    return buf_error(out);
}

static int show_cgroups(struct proc_call *c, struct buf *out)
{
    static const char *const names[] = {"cpuset", "cpu", "io", "memory", "hugetlb", "pids"};

    buf_puts(out, "#subsys_name\thierarchy\tnum_cgroups\tenabled\n");
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        buf_printf(out, "%s\t0\t1\t1\n", names[i]);
    return buf_error(out);
}

/* ---- processes ---- */

static int root_lookup(struct proc_call *c, const char *name, struct proc_key *ret_key)
{
    int number = proc_parse_number(name);
    struct pid *pid = number > 0 ? pid_peek(c->ns, number) : NULL;

    /* Threads are not listed, but found. */
    if (!pid || !pid->task)
        return -ENOENT;
    ret_key->pid = pid;
    ret_key->whole = true;
    ret_key->node = &proc_pid_node;
    return 0;
}

static bool root_hides(const struct proc_call *c, const struct tgroup *g)
{
    const struct proc_sb *ps = proc_sb_of(c->inode->sb);

    if (ps->hidepid < 2 || (ps->hidepid == 2 && cred_in_group(c->ctx->cred, ps->gid)))
        return false;
    return !proc_may_access(c, g->leader);
}

static int root_next(struct proc_call *c, int64_t from, struct proc_entry *ret_entry)
{
    struct tgroup *g;
    bool hidden;
    int number = (int)MIN(from, (int64_t)INT32_MAX);

    for (; (g = pidns_next_tgroup(c->ns, number, &number)); number++) {
        hidden = root_hides(c, g);
        tgroup_unref(g);
        if (hidden)
            continue;
        ret_entry->number = number;
        ret_entry->d_type = DT_DIR;
        snprintf(ret_entry->name, sizeof(ret_entry->name), "%d", number);
        return 1;
    }
    return 0;
}

#define PROC_LINK(n, target) {.name = n, .mode = S_IFLNK | 0777, .flags = PROC_FIXED_TEXT, .show = show_text, .arg = target}
#define PROC_TEXT(n, m, text) {.name = n, .mode = S_IFREG | (m), .show = show_text, .arg = text}

static const struct proc_dir empty_dir;

static const struct proc_node root_nodes[] = {
    {.name = "self", .mode = S_IFLNK | 0777, .show = show_self},
    {.name = "thread-self", .mode = S_IFLNK | 0777, .show = show_thread_self},
    PROC_LINK("mounts", "self/mounts"),
    PROC_LINK("net", "self/net"),
    PROC_DIR("bus", empty_dir),
    PROC_DIR("driver", empty_dir),
    PROC_DIR("fs", empty_dir),
    PROC_DIR("irq", empty_dir),
    PROC_DIR("sys", proc_sys_dir),
    PROC_DIR("sysvipc", proc_sysvipc_dir),
    PROC_DIR("tty", tty_dir),
    PROC_DIR("pressure", pressure_dir),
    PROC_TEXT("buddyinfo", 0444, ""),
    PROC_FILE("cgroups", 0444, show_cgroups),
    PROC_TEXT("cmdline", 0444, "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet\n"),
    PROC_TEXT("consoles", 0444, ""),
    PROC_FILE("cpuinfo", 0444, proc_show_cpuinfo),
    PROC_TEXT("crypto", 0444, ""),
    PROC_FILE("devices", 0444, show_devices),
    PROC_TEXT("diskstats", 0444, ""),
    PROC_TEXT("dma", 0444, ""),
    PROC_FILE("execdomains", 0444, show_execdomains),
    PROC_FILE("filesystems", 0444, show_filesystems),
    PROC_FILE("interrupts", 0444, proc_show_interrupts),
    PROC_TEXT("iomem", 0400, ""),
    PROC_TEXT("ioports", 0400, ""),
    PROC_FILE("keys", 0444, proc_show_keys),
    PROC_FILE("key-users", 0444, proc_show_key_users),
    PROC_FILE("loadavg", 0444, proc_show_loadavg),
    PROC_TEXT("locks", 0444, ""),
    PROC_FILE("meminfo", 0444, proc_show_meminfo),
    PROC_TEXT("misc", 0444, ""),
    PROC_TEXT("modules", 0444, ""),
    PROC_TEXT("partitions", 0444, ""),
    PROC_FILE("schedstat", 0444, proc_show_schedstat_cpus),
    PROC_FILE("softirqs", 0444, proc_show_softirqs),
    PROC_FILE("stat", 0444, proc_show_system_stat),
    PROC_TEXT("swaps", 0444, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
    PROC_FILE("uptime", 0444, proc_show_uptime),
    PROC_FILE("version", 0444, show_version),
    PROC_FILE("vmstat", 0444, proc_show_vmstat),
    PROC_TEXT("zoneinfo", 0444, ""),
};

const struct proc_dir proc_root_dir = {
    .nodes = root_nodes,
    .nodes_len = ARRAY_SIZE(root_nodes),
    .lookup = root_lookup,
    .next = root_next,
};
