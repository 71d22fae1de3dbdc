/* SPDX-License-Identifier: Apache-2.0 */
/* The container's own control group. Limits are enforced by the host's group of the container; this shows them.
 * Source: Documentation/admin-guide/cgroup-v2.rst. */
#include "sentry/fs/cgroupfs.h"

#include <errno.h>
#include <linux/magic.h>

#include "sentry/fs/proc/proc_global.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/kernel/affinity.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"

typedef unsigned long long ull;

static int show_text(struct proc_call *c, struct buf *out)
{
    buf_puts(out, c->node->arg);
    return buf_error(out);
}

/* Numbers are those of the reader's pid namespace; processes outside it are 0, as on Linux. */
static int show_procs(struct proc_call *c, struct buf *out)
{
    struct tgroup *g;

    if (!c->container || !c->viewer)
        return 0;
    list_for_each_entry(g, &c->container->groups, container_link) {
        if (!g->zombie && g->leader && g->leader->pid)
            buf_printf(out, "%d\n", tgroup_pid_for(g, c->viewer));
    }
    return buf_error(out);
}

static int show_threads(struct proc_call *c, struct buf *out)
{
    struct tgroup *g;
    struct task *t;

    if (!c->container || !c->viewer)
        return 0;
    list_for_each_entry(g, &c->container->groups, container_link) {
        list_for_each_entry(t, &g->threads, thread_link) {
            if (t->pid && t->state != TASK_ZOMBIE)
                buf_printf(out, "%d\n", task_tid_for(t, c->viewer));
        }
    }
    return buf_error(out);
}

static int show_events(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "populated %d\nfrozen 0\n", c->container && c->container->group_count > 0);
    return buf_error(out);
}

static int show_memory_max(struct proc_call *c, struct buf *out)
{
    if (c->container && c->container->memory_limit)
        buf_printf(out, "%llu\n", (ull)c->container->memory_limit);
    else
        buf_puts(out, "max\n");
    return buf_error(out);
}

static int show_pids_max(struct proc_call *c, struct buf *out)
{
    if (c->container && c->container->pids_limit)
        buf_printf(out, "%llu\n", (ull)c->container->pids_limit);
    else
        buf_puts(out, "max\n");
    return buf_error(out);
}

static int show_memory_current(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%llu\n", (ull)proc_memory_get(c).used);
    return buf_error(out);
}

static int show_memory_stat(struct proc_call *c, struct buf *out)
{
    static const char *const zeros[] = {
        "kernel", "kernel_stack", "pagetables", "sock", "file_mapped", "file_dirty", "file_writeback", "anon_thp",
        "inactive_anon", "inactive_file", "active_file", "unevictable", "slab_reclaimable",
        "slab_unreclaimable", "slab", "pgfault", "pgmajfault",
    };
    struct proc_memory m = proc_memory_get(c);

    buf_printf(out, "anon %llu\nfile %llu\nshmem %llu\nactive_anon %llu\n", (ull)(m.used - MIN(m.used, m.shmem)),
               (ull)m.shmem, (ull)m.shmem, (ull)m.used);
    for (unsigned i = 0; i < ARRAY_SIZE(zeros); i++)
        buf_printf(out, "%s 0\n", zeros[i]);
    return buf_error(out);
}

static int show_cpu_stat(struct proc_call *c, struct buf *out)
{
    uint64_t user = 0, system = 0;
    struct tgroup *g;

    if (c->container) {
        list_for_each_entry(g, &c->container->groups, container_link) {
            user += tgroup_cpu_ns(g) + g->cutime_ns;
            system += g->stime_ns + g->cstime_ns;
        }
    }
    buf_printf(out, "usage_usec %llu\nuser_usec %llu\nsystem_usec %llu\nnr_periods 0\nnr_throttled 0\n"
                    "throttled_usec 0\n",
               (ull)((user + system) / 1000), (ull)(user / 1000), (ull)(system / 1000));
    return buf_error(out);
}

static int show_cpus(struct proc_call *c, struct buf *out)
{
    unsigned n = affinity_cpus(c->container);

    buf_printf(out, n > 1 ? "0-%u\n" : "%u\n", n - 1);
    return buf_error(out);
}

static int show_pids_current(struct proc_call *c, struct buf *out)
{
    unsigned n = 0;
    struct tgroup *g;

    if (c->container) {
        list_for_each_entry(g, &c->container->groups, container_link)
            n += g->thread_count;
    }
    buf_printf(out, "%u\n", n);
    return buf_error(out);
}

#define CG_TEXT(n, text) {.name = n, .mode = S_IFREG | 0444, .show = show_text, .arg = text}
#define CG_PRESSURE(n)                                                                             \
    CG_TEXT(n, "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")

static const struct proc_node root_nodes[] = {
    CG_TEXT("cgroup.controllers", "cpuset cpu io memory hugetlb pids\n"),
    PROC_FILE("cgroup.events", 0444, show_events),
    CG_TEXT("cgroup.freeze", "0\n"),
    CG_TEXT("cgroup.max.depth", "max\n"),
    CG_TEXT("cgroup.max.descendants", "max\n"),
    PROC_FILE("cgroup.procs", 0444, show_procs),
    CG_TEXT("cgroup.stat", "nr_descendants 0\nnr_dying_descendants 0\n"),
    CG_TEXT("cgroup.subtree_control", "\n"),
    PROC_FILE("cgroup.threads", 0444, show_threads),
    CG_TEXT("cgroup.type", "domain\n"),
    CG_TEXT("cpu.max", "max 100000\n"),
    CG_PRESSURE("cpu.pressure"),
    PROC_FILE("cpu.stat", 0444, show_cpu_stat),
    CG_TEXT("cpu.weight", "100\n"),
    CG_TEXT("cpu.weight.nice", "0\n"),
    CG_TEXT("cpuset.cpus", "\n"),
    PROC_FILE("cpuset.cpus.effective", 0444, show_cpus),
    CG_TEXT("cpuset.mems", "\n"),
    CG_TEXT("cpuset.mems.effective", "0\n"),
    CG_PRESSURE("io.pressure"),
    CG_TEXT("io.stat", ""),
    PROC_FILE("memory.current", 0444, show_memory_current),
    CG_TEXT("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"),
    CG_TEXT("memory.high", "max\n"),
    CG_TEXT("memory.low", "0\n"),
    PROC_FILE("memory.max", 0444, show_memory_max),
    CG_TEXT("memory.min", "0\n"),
    CG_TEXT("memory.oom.group", "0\n"),
    CG_PRESSURE("memory.pressure"),
    PROC_FILE("memory.stat", 0444, show_memory_stat),
    CG_TEXT("memory.swap.current", "0\n"),
    CG_TEXT("memory.swap.max", "max\n"),
    PROC_FILE("pids.current", 0444, show_pids_current),
    CG_TEXT("pids.events", "max 0\n"),
    PROC_FILE("pids.max", 0444, show_pids_max),
};
static const struct proc_dir root_dir = PROC_DIR_OF(root_nodes);
static const struct proc_node root_node = PROC_DIR("/", root_dir);

/* The options are those of the host's mount, which has its controllers and hierarchy already. */
static int cgroup_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                        struct dentry **ret_root)
{
    return proc_mount_tree("cgroup2", CGROUP2_SUPER_MAGIC, &root_node, ret_root);
}

const struct fs_type cgroup_fs_type = {.name = "cgroup", .nodev = true, .mount = cgroup_mount};
const struct fs_type cgroup2_fs_type = {
    .name = "cgroup2", .userns_mount = true, .nodev = true, .mount = cgroup_mount};

bool cgroupfs_is_group(const struct file *f)
{
    return inode_is_dir(f->inode) && f->inode->sb->magic == CGROUP2_SUPER_MAGIC;
}
