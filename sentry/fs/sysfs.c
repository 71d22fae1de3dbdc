/* SPDX-License-Identifier: Apache-2.0 */
/* /sys. Source: Documentation/ABI/stable and testing (sysfs-devices-system-cpu, sysfs-class-net, sysfs-kernel-mm-*). */
#include "sentry/fs/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>

#include "sentry/fs/cpu_info.h"
#include "sentry/fs/proc/proc_global.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/kernel/affinity.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/socket/netns.h"

enum { SYSFS_INDEX_SHIFT = 16 }; /* proc_call.fd holds a CPU's number, and a cache's above it */

static int show_text(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%s\n", (const char *)c->node->arg);
    return buf_error(out);
}

static int show_invalid(struct proc_call *c, struct buf *out)
{
    return -EINVAL;
}

#define SYS_TEXT(n, text) {.name = n, .mode = S_IFREG | 0444, .show = show_text, .arg = text}
#define SYS_LINK(n, target) {.name = n, .mode = S_IFLNK | 0777, .flags = PROC_FIXED_TEXT, .show = show_link, .arg = target}
#define EMPTY_DIR(n) {.name = n, .mode = S_IFDIR | 0555, .dir = &empty_dir}

static int show_link(struct proc_call *c, struct buf *out)
{
    buf_puts(out, c->node->arg);
    return buf_error(out);
}

static const struct proc_dir empty_dir;

/* ---- processors ---- */

static unsigned cpus_of(const struct proc_call *c)
{
    return affinity_cpus(c->container);
}

static unsigned cpu_of(const struct proc_call *c)
{
    return (unsigned)c->fd & ((1U << SYSFS_INDEX_SHIFT) - 1);
}

static int show_cpu_range(struct proc_call *c, struct buf *out)
{
    unsigned n = cpus_of(c);

    buf_printf(out, n > 1 ? "0-%u\n" : "%u\n", n - 1);
    return buf_error(out);
}

static int show_kernel_max(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%d\n", AFFINITY_CPUS_MAX - 1);
    return buf_error(out);
}

/* A mask in words of 32 bits: all CPUs, or only the one that the entry is about. */
static void put_mask(struct buf *out, unsigned cpus, bool all, unsigned one)
{
    for (unsigned w = (cpus + 31) / 32; w-- > 0;) {
        unsigned in_word = MIN(cpus - w * 32, 32U);
        uint32_t bits = all ? (in_word == 32 ? UINT32_MAX : (1U << in_word) - 1)
                            : one / 32 == w ? 1U << one % 32
                                            : 0;

        buf_printf(out, w == (cpus + 31) / 32 - 1 ? "%0*x" : ",%0*x", (int)(in_word + 3) / 4, bits);
    }
    buf_putc(out, '\n');
}

static int show_own_mask(struct proc_call *c, struct buf *out)
{
    put_mask(out, cpus_of(c), false, cpu_of(c));
    return buf_error(out);
}

static int show_all_mask(struct proc_call *c, struct buf *out)
{
    put_mask(out, cpus_of(c), true, 0);
    return buf_error(out);
}

static int show_own_number(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u\n", cpu_of(c));
    return buf_error(out);
}

static const struct proc_node topology_nodes[] = {
    SYS_TEXT("cluster_id", "65535"),
    PROC_FILE("core_cpus", 0444, show_own_mask),
    PROC_FILE("core_cpus_list", 0444, show_own_number),
    PROC_FILE("core_id", 0444, show_own_number),
    PROC_FILE("core_siblings", 0444, show_all_mask),
    PROC_FILE("core_siblings_list", 0444, show_cpu_range),
    PROC_FILE("die_cpus", 0444, show_all_mask),
    PROC_FILE("die_cpus_list", 0444, show_cpu_range),
    SYS_TEXT("die_id", "0"),
    PROC_FILE("package_cpus", 0444, show_all_mask),
    PROC_FILE("package_cpus_list", 0444, show_cpu_range),
    SYS_TEXT("physical_package_id", "0"),
    PROC_FILE("thread_siblings", 0444, show_own_mask),
    PROC_FILE("thread_siblings_list", 0444, show_own_number),
};
static const struct proc_dir topology_dir = PROC_DIR_OF(topology_nodes);

/* ---- caches ---- */

static const struct cpu_cache *cache_of(const struct proc_call *c)
{
    return &cpu_info_get()->caches[(unsigned)c->fd >> SYSFS_INDEX_SHIFT];
}

enum cache_field { CACHE_LEVEL, CACHE_TYPE, CACHE_SIZE, CACHE_LINE, CACHE_SETS, CACHE_WAYS, CACHE_PARTITION, CACHE_ID };

static int show_cache(struct proc_call *c, struct buf *out)
{
    const struct cpu_cache *k = cache_of(c);

    switch ((enum cache_field)(uintptr_t)c->node->arg) {
    case CACHE_LEVEL:
        buf_printf(out, "%u\n", k->level);
        break;
    case CACHE_TYPE:
        buf_printf(out, "%s\n", k->type);
        break;
    case CACHE_SIZE:
        buf_printf(out, "%uK\n", k->size_kb);
        break;
    case CACHE_LINE:
        buf_printf(out, "%u\n", k->line);
        break;
    case CACHE_SETS:
        buf_printf(out, "%u\n", k->sets);
        break;
    case CACHE_WAYS:
        buf_printf(out, "%u\n", k->ways);
        break;
    case CACHE_PARTITION:
        buf_printf(out, "%u\n", k->partitions);
        break;
    case CACHE_ID:
        buf_printf(out, "%u\n", k->level > 2 ? 0 : cpu_of(c));
        break;
    }
    return buf_error(out);
}

/* The last level is the package's, the others each core's. */
static int show_cache_map(struct proc_call *c, struct buf *out)
{
    return cache_of(c)->level > 2 ? show_all_mask(c, out) : show_own_mask(c, out);
}

static int show_cache_list(struct proc_call *c, struct buf *out)
{
    return cache_of(c)->level > 2 ? show_cpu_range(c, out) : show_own_number(c, out);
}

#define CACHE_FILE(n, field)                                                                       \
    {.name = n, .mode = S_IFREG | 0444, .show = show_cache, .arg = (const void *)(uintptr_t)(field)}
static const struct proc_node index_nodes[] = {
    CACHE_FILE("coherency_line_size", CACHE_LINE),
    CACHE_FILE("id", CACHE_ID),
    CACHE_FILE("level", CACHE_LEVEL),
    CACHE_FILE("number_of_sets", CACHE_SETS),
    CACHE_FILE("physical_line_partition", CACHE_PARTITION),
    PROC_FILE("shared_cpu_list", 0444, show_cache_list),
    PROC_FILE("shared_cpu_map", 0444, show_cache_map),
    CACHE_FILE("size", CACHE_SIZE),
    CACHE_FILE("type", CACHE_TYPE),
    CACHE_FILE("ways_of_associativity", CACHE_WAYS),
};
static const struct proc_dir index_dir = PROC_DIR_OF(index_nodes);
static const struct proc_node index_node = PROC_DIR("index", index_dir);

static int numbered(const char *name, const char *prefix, unsigned limit)
{
    size_t len = strlen(prefix);
    int n = strncmp(name, prefix, len) == 0 ? proc_parse_number(name + len) : -1;

    return n >= 0 && (unsigned)n < limit ? n : -1;
}

static int next_numbered(int64_t from, const char *prefix, unsigned limit, struct proc_entry *ret_entry)
{
    if (from >= limit)
        return 0;
    ret_entry->number = from;
    ret_entry->d_type = DT_DIR;
    snprintf(ret_entry->name, sizeof(ret_entry->name), "%s%d", prefix, (int)from);
    return 1;
}

static int cache_lookup(struct proc_call *c, const char *name, struct proc_key *ret_key)
{
    int n = numbered(name, "index", cpu_info_get()->caches_len);

    if (n < 0)
        return -ENOENT;
    ret_key->fd = (int)(cpu_of(c) | (unsigned)n << SYSFS_INDEX_SHIFT);
    ret_key->node = &index_node;
    return 0;
}

static int cache_next(struct proc_call *c, int64_t from, struct proc_entry *ret_entry)
{
    return next_numbered(from, "index", cpu_info_get()->caches_len, ret_entry);
}

static const struct proc_dir cache_dir = {.lookup = cache_lookup, .next = cache_next};

static const struct proc_node cpu_nodes[] = {
    PROC_DIR("cache", cache_dir),
    PROC_DIR("topology", topology_dir),
    SYS_TEXT("online", "1"),
};
static const struct proc_dir cpu_dir = PROC_DIR_OF(cpu_nodes);
static const struct proc_node cpu_node = PROC_DIR("cpu", cpu_dir);

static int cpus_lookup(struct proc_call *c, const char *name, struct proc_key *ret_key)
{
    int n = numbered(name, "cpu", cpus_of(c));

    if (n < 0)
        return -ENOENT;
    ret_key->fd = n;
    ret_key->node = &cpu_node;
    return 0;
}

static int cpus_next(struct proc_call *c, int64_t from, struct proc_entry *ret_entry)
{
    return next_numbered(from, "cpu", cpus_of(c), ret_entry);
}

static const struct proc_node smt_nodes[] = {SYS_TEXT("active", "0"), SYS_TEXT("control", "notsupported")};
static const struct proc_dir smt_dir = PROC_DIR_OF(smt_nodes);
static const struct proc_node cpus_nodes[] = {
    PROC_DIR("smt", smt_dir),
    SYS_TEXT("isolated", ""),
    PROC_FILE("kernel_max", 0444, show_kernel_max),
    SYS_TEXT("offline", ""),
    PROC_FILE("online", 0444, show_cpu_range),
    PROC_FILE("possible", 0444, show_cpu_range),
    PROC_FILE("present", 0444, show_cpu_range),
};
static const struct proc_dir cpus_dir = {
    .nodes = cpus_nodes, .nodes_len = ARRAY_SIZE(cpus_nodes), .lookup = cpus_lookup, .next = cpus_next};

/* ---- memory nodes: one ---- */

static int show_node_meminfo(struct proc_call *c, struct buf *out)
{
    struct proc_memory m = proc_memory_get(c);

    buf_printf(out, "Node 0 MemTotal:       %llu kB\nNode 0 MemFree:        %llu kB\nNode 0 MemUsed:        %llu kB\n",
               (unsigned long long)m.total / 1024, (unsigned long long)(m.total - m.used) / 1024,
               (unsigned long long)m.used / 1024);
    return buf_error(out);
}

static const struct proc_node node0_nodes[] = {
    PROC_FILE("cpulist", 0444, show_cpu_range),
    PROC_FILE("cpumap", 0444, show_all_mask),
    SYS_TEXT("distance", "10"),
    PROC_FILE("meminfo", 0444, show_node_meminfo),
};
static const struct proc_dir node0_dir = PROC_DIR_OF(node0_nodes);
static const struct proc_node nodes_nodes[] = {
    PROC_DIR("node0", node0_dir),     SYS_TEXT("has_cpu", "0"), SYS_TEXT("has_memory", "0"),
    SYS_TEXT("has_normal_memory", "0"), SYS_TEXT("online", "0"),  SYS_TEXT("possible", "0"),
};
static const struct proc_dir nodes_dir = PROC_DIR_OF(nodes_nodes);
static const struct proc_node system_nodes[] = {PROC_DIR("cpu", cpus_dir), PROC_DIR("node", nodes_dir)};
static const struct proc_dir system_dir = PROC_DIR_OF(system_nodes);

/* ---- the loopback interface ---- */

static const struct proc_node statistics_nodes[] = {
    SYS_TEXT("collisions", "0"), SYS_TEXT("multicast", "0"),  SYS_TEXT("rx_bytes", "0"),
    SYS_TEXT("rx_dropped", "0"), SYS_TEXT("rx_errors", "0"),  SYS_TEXT("rx_packets", "0"),
    SYS_TEXT("tx_bytes", "0"),   SYS_TEXT("tx_dropped", "0"), SYS_TEXT("tx_errors", "0"),
    SYS_TEXT("tx_packets", "0"),
};
static const struct proc_dir statistics_dir = PROC_DIR_OF(statistics_nodes);
static const struct proc_node lo_nodes[] = {
    PROC_DIR("statistics", statistics_dir),
    SYS_TEXT("addr_len", "6"),
    SYS_TEXT("address", "00:00:00:00:00:00"),
    SYS_TEXT("broadcast", "00:00:00:00:00:00"),
    SYS_TEXT("carrier", "1"),
    SYS_TEXT("carrier_changes", "0"),
    SYS_TEXT("dev_id", "0x0"),
    SYS_TEXT("dormant", "0"),
    {.name = "duplex", .mode = S_IFREG | 0444, .show = show_invalid},
    SYS_TEXT("flags", "0x9"),
    SYS_TEXT("ifalias", ""),
    SYS_TEXT("ifindex", "1"),
    SYS_TEXT("iflink", "1"),
    SYS_TEXT("link_mode", "0"),
    SYS_TEXT("mtu", "65536"),
    SYS_TEXT("operstate", "unknown"),
    {.name = "speed", .mode = S_IFREG | 0444, .show = show_invalid},
    SYS_TEXT("tx_queue_len", "1000"),
    SYS_TEXT("type", "772"),
    SYS_TEXT("uevent", "INTERFACE=lo\nIFINDEX=1"),
};
static const struct proc_dir lo_dir = PROC_DIR_OF(lo_nodes);
static const struct proc_node virtual_net_nodes[] = {PROC_DIR("lo", lo_dir)};
static const struct proc_dir virtual_net_dir = PROC_DIR_OF(virtual_net_nodes);
static const struct proc_node virtual_nodes[] = {PROC_DIR("net", virtual_net_dir)};
static const struct proc_dir virtual_dir = PROC_DIR_OF(virtual_nodes);
static const struct proc_node class_net_nodes[] = {SYS_LINK("lo", "../../devices/virtual/net/lo")};
static const struct proc_dir class_net_dir = PROC_DIR_OF(class_net_nodes);

/* ---- kernel ---- */

static const struct proc_node khugepaged_nodes[] = {SYS_TEXT("defrag", "1"), SYS_TEXT("pages_to_scan", "4096")};
static const struct proc_dir khugepaged_dir = PROC_DIR_OF(khugepaged_nodes);
static const struct proc_node thp_nodes[] = {
    PROC_DIR("khugepaged", khugepaged_dir),
    SYS_TEXT("defrag", "always defer defer+madvise [madvise] never"),
    SYS_TEXT("enabled", "always [madvise] never"),
    SYS_TEXT("hpage_pmd_size", "2097152"),
    SYS_TEXT("shmem_enabled", "always within_size advise [never] deny force"),
    SYS_TEXT("use_zero_page", "1"),
};
static const struct proc_dir thp_dir = PROC_DIR_OF(thp_nodes);
static const struct proc_node huge2m_nodes[] = {
    SYS_TEXT("free_hugepages", "0"), SYS_TEXT("nr_hugepages", "0"), SYS_TEXT("nr_overcommit_hugepages", "0"),
    SYS_TEXT("resv_hugepages", "0"), SYS_TEXT("surplus_hugepages", "0"),
};
static const struct proc_dir huge2m_dir = PROC_DIR_OF(huge2m_nodes);
static const struct proc_node hugepages_nodes[] = {PROC_DIR("hugepages-2048kB", huge2m_dir)};
static const struct proc_dir hugepages_dir = PROC_DIR_OF(hugepages_nodes);
static const struct proc_node mm_nodes[] = {
    PROC_DIR("hugepages", hugepages_dir), PROC_DIR("transparent_hugepage", thp_dir)};
static const struct proc_dir mm_dir = PROC_DIR_OF(mm_nodes);
static const struct proc_node kernel_nodes[] = {
    EMPTY_DIR("config"), EMPTY_DIR("debug"), PROC_DIR("mm", mm_dir), EMPTY_DIR("security"), EMPTY_DIR("tracing"),
    SYS_TEXT("kexec_crash_loaded", "0"), SYS_TEXT("kexec_loaded", "0"), SYS_TEXT("profiling", "0"),
    SYS_TEXT("rcu_expedited", "0"), SYS_TEXT("uevent_seqnum", "1"),
};
static const struct proc_dir kernel_dir = PROC_DIR_OF(kernel_nodes);

/* ---- the tree ---- */

static const struct proc_node class_nodes[] = {
    EMPTY_DIR("block"), EMPTY_DIR("mem"), PROC_DIR("net", class_net_dir), EMPTY_DIR("tty")};
static const struct proc_dir class_dir = PROC_DIR_OF(class_nodes);
static const struct proc_node bus_nodes[] = {EMPTY_DIR("cpu"), EMPTY_DIR("node"), EMPTY_DIR("pci")};
static const struct proc_dir bus_dir = PROC_DIR_OF(bus_nodes);
static const struct proc_node dev_nodes[] = {EMPTY_DIR("block"), EMPTY_DIR("char")};
static const struct proc_dir dev_dir = PROC_DIR_OF(dev_nodes);
static const struct proc_node devices_nodes[] = {PROC_DIR("system", system_dir), PROC_DIR("virtual", virtual_dir)};
static const struct proc_dir devices_dir = PROC_DIR_OF(devices_nodes);
static const struct proc_node fs_nodes[] = {EMPTY_DIR("bpf"), EMPTY_DIR("cgroup")};
static const struct proc_dir fs_dir = PROC_DIR_OF(fs_nodes);
static const struct proc_node root_nodes[] = {
    EMPTY_DIR("block"),           PROC_DIR("bus", bus_dir), PROC_DIR("class", class_dir),
    PROC_DIR("dev", dev_dir),     PROC_DIR("devices", devices_dir), EMPTY_DIR("firmware"),
    PROC_DIR("fs", fs_dir),       PROC_DIR("kernel", kernel_dir), EMPTY_DIR("module"),
    EMPTY_DIR("power"),
};
static const struct proc_dir root_dir = PROC_DIR_OF(root_nodes);
static const struct proc_node root_node = PROC_DIR("/", root_dir);

static int sysfs_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                       struct dentry **ret_root)
{
    return proc_mount_tree("sysfs", SYSFS_MAGIC, &root_node, ret_root);
}

/* What differs from tree to tree is the network. */
static struct userns *sysfs_owner(const struct ctx *ctx)
{
    const struct task *t = ctx->is_task ? container_of(ctx, const struct task, ctx) : NULL;

    return t && t->ns && t->ns->net ? t->ns->net->userns : ctx->cred->userns;
}

const struct fs_type sysfs_fs_type = {
    .name = "sysfs", .userns_mount = true, .nodev = true, .owner = sysfs_owner, .mount = sysfs_mount};
