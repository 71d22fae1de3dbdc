/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the whole system: as far as the container is the system. Source: proc(5). */
#include "sentry/fs/proc/proc_global.h"

#include <stdio.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "platform/base/host.h"
#include "sentry/fs/cpu_info.h"
#include "sentry/kernel/affinity.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/timekeeper.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"

enum { CPU_TICK_NS = 10000000, MEMORY_GROUPS_MAX = 4096 };

typedef unsigned long long ull;

/* The true time, whatever a namespace's clock shows. */
static uint64_t up_ns(const struct container *c)
{
    return timekeeper_uptime(NULL, c ? c->kernel : NULL);
}

/* What the reader's clock shows. */
static uint64_t shown_up_ns(const struct proc_call *c)
{
    return timekeeper_uptime(c->viewer, c->container ? c->container->kernel : NULL);
}

/* ---- CPU time ---- */

struct cpu_use {
    uint64_t user_ns, system_ns, idle_ns;
    unsigned blocked, tasks;
};

/* Each dead child's time is with the parent that waited for it, so live processes hold all of it. */
static struct cpu_use get_cpu_use(const struct container *c)
{
    struct cpu_use u = {0};
    uint64_t all = up_ns(c) * affinity_cpus(c), busy;
    struct timespec own;
    struct tgroup *g;
    struct task *t;

    if (!c)
        return u;
    list_for_each_entry(g, &c->groups, container_link) {
        u.user_ns += tgroup_cpu_ns(g) + g->cutime_ns;
        u.system_ns += g->stime_ns + g->cstime_ns;
        list_for_each_entry(t, &g->threads, thread_link) {
            u.blocked += task_state_char(t) == 'D';
            u.tasks++;
        }
    }
    /* The kernel's own work. */
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
        u.system_ns += (uint64_t)own.tv_sec * 1000000000u + (uint64_t)own.tv_nsec;
    busy = u.user_ns + u.system_ns;
    u.idle_ns = all > busy ? all - busy : 0;
    return u;
}

static void put_cpu_line(struct buf *out, const char *label, const struct cpu_use *u, unsigned share)
{
    buf_printf(out, "%s %llu 0 %llu %llu 0 0 0 0 0 0\n", label, (ull)(u->user_ns / share / CPU_TICK_NS),
               (ull)(u->system_ns / share / CPU_TICK_NS), (ull)(u->idle_ns / share / CPU_TICK_NS));
}

/* e to the power of −x, x ≥ 0, to two digits and more. */
static double decay(double x)
{
    double term = 1, sum = 1;

    if (x > 30)
        return 0;
    for (int i = 1; i < 100; i++) {
        term *= x / i;
        sum += term;
    }
    return 1 / sum;
}

/* Threads that ran, on average since the last look: their CPU time over the time that passed. Whoever sleeps on a futex
 * in guest code looks like running to us, so states can't be counted. */
static double average_running(const struct cpu_use *u, double *ret_seconds)
{
    static uint64_t last_ns, last_busy;
    static double average;
    uint64_t now = host_monotonic_ns(), busy = u->user_ns + u->system_ns;

    *ret_seconds = last_ns ? (double)(now - last_ns) / 1e9 : 0;
    if (*ret_seconds > 0.001)
        average = busy > last_busy ? (double)(busy - last_busy) / 1e9 / *ret_seconds : 0;
    last_ns = now;
    last_busy = busy;
    return average;
}

/* The averages, brought up to date when somebody looks: an idle sandbox has no timer for them. Return: threads running
 * lately, the reader among them. */
static unsigned update_load(const struct cpu_use *u, double ret_load[3])
{
    static double load[3];
    static const double minutes[3] = {1, 5, 15};
    double seconds, running = average_running(u, &seconds);

    for (unsigned i = 0; i < 3; i++) {
        double keep = decay(seconds / (minutes[i] * 60));

        load[i] = load[i] * keep + (running + u->blocked) * (1 - keep);
        ret_load[i] = load[i];
    }
    return MAX((unsigned)(running + 0.5), 1U);
}

int proc_show_system_stat(struct proc_call *c, struct buf *out)
{
    unsigned cpus = affinity_cpus(c->container);
    struct cpu_use u = get_cpu_use(c->container);
    double load[3];
    unsigned running = update_load(&u, load);
    uint64_t btime = (host_realtime_ns() - shown_up_ns(c)) / 1000000000u;
    char label[16];

    put_cpu_line(out, "cpu ", &u, 1);
    for (unsigned i = 0; i < cpus; i++) {
        snprintf(label, sizeof(label), "cpu%u", i);
        put_cpu_line(out, label, &u, cpus);
    }
    buf_printf(out, "intr 0\nctxt 0\nbtime %llu\nprocesses %llu\nprocs_running %u\nprocs_blocked %u\n",
               (ull)btime, (ull)(c->container ? c->container->kernel->forks : 0), running, u.blocked);
    buf_puts(out, "softirq 0 0 0 0 0 0 0 0 0 0 0\n");
    return buf_error(out);
}

static void put_seconds(struct buf *out, uint64_t ns)
{
    buf_printf(out, "%llu.%02llu", (ull)(ns / 1000000000u), (ull)(ns % 1000000000u / CPU_TICK_NS));
}

int proc_show_uptime(struct proc_call *c, struct buf *out)
{
    struct cpu_use u = get_cpu_use(c->container);

    put_seconds(out, shown_up_ns(c));
    buf_putc(out, ' ');
    put_seconds(out, u.idle_ns);
    buf_putc(out, '\n');
    return buf_error(out);
}

int proc_show_loadavg(struct proc_call *c, struct buf *out)
{
    struct cpu_use u = get_cpu_use(c->container);
    double load[3];
    unsigned running = update_load(&u, load);

    buf_printf(out, "%.2f %.2f %.2f %u/%u %d\n", load[0], load[1], load[2], running, u.tasks, c->ns->last);
    return buf_error(out);
}

void proc_get_loads(struct container *c, double ret_load[3])
{
    struct cpu_use u = get_cpu_use(c);

    update_load(&u, ret_load);
}

/* ---- memory ---- */

static uint64_t host_memory(void)
{
    static uint64_t total;
    struct sysinfo si;

    if (!total)
        total = sysinfo(&si) == 0 ? (uint64_t)si.totalram * si.mem_unit : 1ULL << 30;
    return total;
}

/* The n-th process of c that has memory of its own, referenced. */
static struct mm *nth_mm(const struct proc_call *c, unsigned n)
{
    struct tgroup *g;

    list_for_each_entry(g, &c->container->groups, container_link) {
        struct task *t = tgroup_first(g);

        if (t && t->mm && n-- == 0)
            return mm_ref(t->mm);
    }
    return NULL;
}

struct proc_memory proc_memory_get(struct proc_call *c)
{
    struct proc_memory m = {.total = host_memory()};
    struct mm *mm;

    if (!c->container)
        return m;
    if (c->container->memory_limit && c->container->memory_limit < m.total)
        m.total = c->container->memory_limit;
    /* Each look parks, so the list is walked anew; processes that come or go meanwhile may be missed. */
    for (unsigned i = 0; i < MEMORY_GROUPS_MAX && (mm = nth_mm(c, i)); i++) {
        struct mm_usage u;

        if (mm_get_usage(c->ctx, mm, &u) == 0) {
            m.used += u.anon;
            m.shmem += u.shmem;
        }
        mm_unref(mm);
    }
    m.used = MIN(m.used + m.shmem, m.total);
    return m;
}

int proc_show_meminfo(struct proc_call *c, struct buf *out)
{
    struct proc_memory m = proc_memory_get(c);
    uint64_t free = m.total - m.used, anon = m.used - MIN(m.shmem, m.used);
    const struct {
        const char *label;
        uint64_t bytes;
    } rows[] = {
        {"MemTotal", m.total},    {"MemFree", free},     {"MemAvailable", free}, {"Buffers", 0},
        {"Cached", m.shmem},      {"SwapCached", 0},     {"Active", m.used},     {"Inactive", 0},
        {"Active(anon)", anon},   {"Inactive(anon)", 0}, {"Active(file)", 0},    {"Inactive(file)", 0},
        {"Unevictable", 0},       {"Mlocked", 0},        {"SwapTotal", 0},       {"SwapFree", 0},
        {"Zswap", 0},             {"Zswapped", 0},       {"Dirty", 0},           {"Writeback", 0},
        {"AnonPages", anon},      {"Mapped", 0},         {"Shmem", m.shmem},     {"KReclaimable", 0},
        {"Slab", 0},              {"SReclaimable", 0},   {"SUnreclaim", 0},      {"KernelStack", 0},
        {"PageTables", 0},        {"SecPageTables", 0},  {"NFS_Unstable", 0},    {"Bounce", 0},
        {"WritebackTmp", 0},      {"CommitLimit", m.total / 2}, {"Committed_AS", m.used},
        {"VmallocTotal", 34359738367ULL << 10}, {"VmallocUsed", 0}, {"VmallocChunk", 0},
        {"Percpu", 0},            {"HardwareCorrupted", 0}, {"AnonHugePages", 0}, {"ShmemHugePages", 0},
        {"ShmemPmdMapped", 0},    {"FileHugePages", 0},  {"FilePmdMapped", 0},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        char label[24];

        snprintf(label, sizeof(label), "%s:", rows[i].label);
        buf_printf(out, "%-16s%8llu kB\n", label, (ull)(rows[i].bytes / 1024));
    }
    buf_puts(out, "HugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\n"
                  "HugePages_Surp:        0\nHugepagesize:       2048 kB\nHugetlb:               0 kB\n");
    return buf_error(out);
}

int proc_show_vmstat(struct proc_call *c, struct buf *out)
{
    static const char *const zeros[] = {
        "nr_zone_inactive_anon", "nr_dirty", "nr_writeback", "nr_slab_reclaimable", "nr_slab_unreclaimable",
        "pgpgin", "pgpgout", "pswpin", "pswpout", "pgfault", "pgmajfault", "pgfree", "pgsteal_kswapd",
        "pgscan_kswapd", "pgscan_direct", "oom_kill", "allocstall_normal", "compact_stall", "thp_fault_alloc",
    };
    struct proc_memory m = proc_memory_get(c);

    buf_printf(out, "nr_free_pages %llu\nnr_anon_pages %llu\nnr_mapped 0\nnr_file_pages %llu\nnr_shmem %llu\n",
               (ull)((m.total - m.used) / PAGE_SIZE), (ull)((m.used - MIN(m.shmem, m.used)) / PAGE_SIZE),
               (ull)(m.shmem / PAGE_SIZE), (ull)(m.shmem / PAGE_SIZE));
    for (unsigned i = 0; i < ARRAY_SIZE(zeros); i++)
        buf_printf(out, "%s 0\n", zeros[i]);
    return buf_error(out);
}

/* ---- processors ---- */

int proc_show_cpuinfo(struct proc_call *c, struct buf *out)
{
    const struct cpu_info *info = cpu_info_get();
    unsigned cpus = affinity_cpus(c->container);
    uint32_t cache = info->caches_len ? info->caches[info->caches_len - 1].size_kb : 0;
    CLEANUP_BUF struct buf flags = {0};

    cpu_info_print_flags(&flags);
    for (unsigned i = 0; i < cpus; i++) {
        buf_printf(out, "processor\t: %u\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\nmodel name\t: %s\n", i,
                   info->vendor, info->family, info->model, info->model_name);
        buf_printf(out, "stepping\t: %u\nmicrocode\t: 0xffffffff\ncpu MHz\t\t: %u.000\ncache size\t: %u KB\n",
                   info->stepping, info->mhz, cache);
        buf_printf(out, "physical id\t: 0\nsiblings\t: %u\ncore id\t\t: %u\ncpu cores\t: %u\napicid\t\t: %u\n"
                        "initial apicid\t: %u\n",
                   cpus, i, cpus, i, i);
        buf_printf(out, "fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: %u\nwp\t\t: yes\nflags\t\t:%s\nbugs\t\t:\n",
                   info->cpuid_level, flags.data ? flags.data : "");
        buf_printf(out, "bogomips\t: %u.00\nclflush size\t: %u\ncache_alignment\t: %u\n"
                        "address sizes\t: %u bits physical, %u bits virtual\npower management:\n\n",
                   info->mhz * 2, info->clflush, info->clflush, info->physical_bits, info->virtual_bits);
    }
    return buf_error(out);
}

int proc_show_interrupts(struct proc_call *c, struct buf *out)
{
    unsigned cpus = affinity_cpus(c->container);

    buf_puts(out, "    ");
    for (unsigned i = 0; i < cpus; i++)
        buf_printf(out, "       CPU%-4u", i);
    buf_puts(out, "\n");
    return buf_error(out);
}

int proc_show_softirqs(struct proc_call *c, struct buf *out)
{
    static const char *const names[] = {"HI",      "TIMER", "NET_TX", "NET_RX", "BLOCK",
                                        "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};
    unsigned cpus = affinity_cpus(c->container);

    buf_puts(out, "                    ");
    for (unsigned i = 0; i < cpus; i++)
        buf_printf(out, "CPU%-8u", i);
    buf_putc(out, '\n');
    for (unsigned n = 0; n < ARRAY_SIZE(names); n++) {
        buf_printf(out, "%12s:", names[n]);
        for (unsigned i = 0; i < cpus; i++)
            buf_printf(out, " %10u", 0);
        buf_putc(out, '\n');
    }
    return buf_error(out);
}

int proc_show_schedstat_cpus(struct proc_call *c, struct buf *out)
{
    struct cpu_use u = get_cpu_use(c->container);
    unsigned cpus = affinity_cpus(c->container);

    buf_printf(out, "version 16\ntimestamp %llu\n", (ull)(up_ns(c->container) / 1000000));
    for (unsigned i = 0; i < cpus; i++)
        buf_printf(out, "cpu%u 0 0 0 0 0 0 %llu 0 0\n", i, (ull)(u.user_ns / cpus));
    return buf_error(out);
}
