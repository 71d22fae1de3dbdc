/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/sys without net. Entries that may be written keep the value; those whose limit is built in are read-only.
 * Source: Documentation/admin-guide/sysctl. */
#include "sentry/fs/proc/proc_sys.h"

#include <ctype.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/fs/aio.h"
#include "sentry/fs/devpts.h"
#include "sentry/fs/pipe.h"
#include "sentry/fs/proc/proc_userns.h"
#include "sentry/kernel/coredump.h"
#include "sentry/kernel/guest_seccomp.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/utsns.h"
#include "sentry/vfs/dentry.h"

/* ---- kinds of entries ---- */

int sysctl_show_ints(struct proc_call *c, struct buf *out)
{
    const struct sysctl_ints *s = c->node->arg;

    for (unsigned i = 0; i < MAX(s->len, 1U); i++)
        buf_printf(out, i ? "\t%lld" : "%lld", (long long)s->values[i]);
    buf_putc(out, '\n');
    return buf_error(out);
}

int64_t sysctl_write_ints(struct proc_call *c, const char *data, size_t size)
{
    struct sysctl_ints *s = (struct sysctl_ints *)(uintptr_t)c->node->arg;
    int64_t values[4];
    unsigned len = MAX(s->len, 1U), n = 0;
    char *end;

    memcpy(values, s->values, sizeof(values));
    while (n < len) {
        while (isspace((unsigned char)*data))
            data++;
        if (!*data)
            break;
        errno = 0;
        values[n] = strtoll(data, &end, 0);
        if (end == data || errno || values[n] < s->min || values[n] > s->max)
            return -EINVAL;
        data = end;
        n++;
    }
    if (n == 0)
        return -EINVAL;
    memcpy(s->values, values, sizeof(values));
    return (int64_t)size;
}

int sysctl_show_var(struct proc_call *c, struct buf *out)
{
    const struct sysctl_var *v = c->node->arg;

    buf_printf(out, "%d\n", *v->value);
    return buf_error(out);
}

int64_t sysctl_write_var(struct proc_call *c, const char *data, size_t size)
{
    const struct sysctl_var *v = c->node->arg;
    char *end;

    errno = 0;
    long value = strtol(data, &end, 0);
    if (end == data || errno || value < v->min || value > v->max)
        return -EINVAL;
    *v->value = (int32_t)value;
    return (int64_t)size;
}

int sysctl_show_text(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%s\n", ((const struct sysctl_text *)c->node->arg)->text);
    return buf_error(out);
}

int64_t sysctl_write_text(struct proc_call *c, const char *data, size_t size)
{
    struct sysctl_text *s = (struct sysctl_text *)(uintptr_t)c->node->arg;
    size_t len = strcspn(data, "\n");

    if (len >= sizeof(s->text))
        return -EINVAL;
    memcpy(s->text, data, len);
    s->text[len] = '\0';
    return (int64_t)size;
}

/* ---- names ---- */

static struct utsns *call_utsns(const struct proc_call *c)
{
    if (c->viewer && c->viewer->ns)
        return c->viewer->ns->uts;
    return c->container ? c->container->utsns : NULL;
}

/* node->arg: set for the domain name. */
static int show_uts_name(struct proc_call *c, struct buf *out)
{
    struct utsns *u = call_utsns(c);

    if (u)
        buf_printf(out, "%s\n", c->node->arg ? u->domainname : u->hostname);
    return buf_error(out);
}

static int64_t write_uts_name(struct proc_call *c, const char *data, size_t size)
{
    struct utsns *u = call_utsns(c);
    size_t len = strcspn(data, "\n");
    char *dst;

    if (!u || !cred_ns_cap(c->ctx->cred, u->userns, CAP_SYS_ADMIN))
        return -EPERM;
    if (len > UTS_NAME_MAX)
        return -EINVAL;
    dst = c->node->arg ? u->domainname : u->hostname;
    memcpy(dst, data, len);
    dst[len] = '\0';
    return (int64_t)size;
}

static int show_osrelease(struct proc_call *c, struct buf *out)
{
    const char *release = c->container ? c->container->kernel->release : NULL;

    buf_printf(out, "%s\n", release ? release : KERNEL_RELEASE);
    return buf_error(out);
}

/* ---- random ---- */

static void put_uuid(struct buf *out, const uint8_t u[16])
{
    for (unsigned i = 0; i < 16; i++)
        buf_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", u[i]);
    buf_putc(out, '\n');
}

static void make_uuid(uint8_t u[16])
{
    host_random(u, 16);
    u[6] = (uint8_t)((u[6] & 0x0f) | 0x40);
    u[8] = (uint8_t)((u[8] & 0x3f) | 0x80);
}

static int show_uuid(struct proc_call *c, struct buf *out)
{
    uint8_t u[16];

    make_uuid(u);
    put_uuid(out, u);
    return buf_error(out);
}

static int show_boot_id(struct proc_call *c, struct buf *out)
{
    static uint8_t id[16];

    if (id[6] == 0)
        make_uuid(id);
    put_uuid(out, id);
    return buf_error(out);
}

/* ---- counts ---- */

static int show_file_nr(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%llu\t0\t%d\n", (unsigned long long)limit_used(LIMIT_KIND_FILES), LIMIT_FILES);
    return buf_error(out);
}

static int show_aio_nr(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%llu\n", (unsigned long long)aio_nr());
    return buf_error(out);
}

static int show_dentry_state(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u\t%u\t45\t0\t0\t0\n", dentry_count(), dentry_unused_count());
    return buf_error(out);
}

/* Inodes are held by their dentries. */
static int show_inode_nr(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u\t%u\n", dentry_count(), dentry_unused_count());
    return buf_error(out);
}

static int show_inode_state(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u\t%u\t0\t0\t0\t0\t0\n", dentry_count(), dentry_unused_count());
    return buf_error(out);
}

static int show_pty_nr(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%u\n", devpts_in_use());
    return buf_error(out);
}

static int show_max_size(struct proc_call *c, struct buf *out)
{
    buf_puts(out, "18446744073692774399\n");
    return buf_error(out);
}

static int64_t write_drop_caches(struct proc_call *c, const char *data, size_t size)
{
    long what = strtol(data, NULL, 10);

    if (what < 1 || what > 4)
        return -EINVAL;
    if (what & 2)
        dentry_shrink(0);
    return (int64_t)size;
}

/* ---- core dumps ---- */

static int show_core_pattern(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%s\n", core_settings.pattern);
    return buf_error(out);
}

static int64_t write_core_pattern(struct proc_call *c, const char *data, size_t size)
{
    size_t len = strcspn(data, "\n");

    /* A pipe would be a program that runs outside of every container. */
    if (len >= sizeof(core_settings.pattern) || data[0] == '|' || data[0] == '@')
        return -EINVAL;
    memcpy(core_settings.pattern, data, len);
    core_settings.pattern[len] = '\0';
    return (int64_t)size;
}

static int show_core_uses_pid(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%d\n", core_settings.uses_pid);
    return buf_error(out);
}

static int64_t write_core_uses_pid(struct proc_call *c, const char *data, size_t size)
{
    if ((data[0] != '0' && data[0] != '1') || (data[1] && data[1] != '\n'))
        return -EINVAL;
    core_settings.uses_pid = data[0] == '1';
    return (int64_t)size;
}

/* ---- tables ---- */

static const struct proc_node random_nodes[] = {
    PROC_FILE("boot_id", 0444, show_boot_id),
    SYSCTL_FIXED("entropy_avail", 256),
    SYSCTL_FIXED("poolsize", 256),
    SYSCTL_FIXED("urandom_min_reseed_secs", 60),
    PROC_FILE("uuid", 0444, show_uuid),
    SYSCTL_FIXED("write_wakeup_threshold", 256),
};
static const struct proc_dir random_dir = PROC_DIR_OF(random_nodes);

static const struct proc_node pty_nodes[] = {
    SYSCTL_FIXED("max", DEVPTS_TOTAL_MAX),
    PROC_FILE("nr", 0444, show_pty_nr),
    SYSCTL_FIXED("reserve", 1024),
};
static const struct proc_dir pty_dir = PROC_DIR_OF(pty_nodes);

static int show_seccomp_logged(struct proc_call *c, struct buf *out)
{
    unsigned off = c->container ? c->container->kernel->seccomp_unlogged : 0;

    guest_seccomp_put_actions(out, GUEST_SECCOMP_ACTIONS_ALL & ~off & ~(unsigned)GUEST_SECCOMP_ACTION_ALLOW);
    buf_putc(out, '\n');
    return buf_error(out);
}

static int64_t write_seccomp_logged(struct proc_call *c, const char *data, size_t size)
{
    unsigned bits = 0;

    if (!c->container || !cred_has_cap(c->ctx->cred, CAP_SYS_ADMIN))
        return -EPERM;
    for (const char *at = data + strspn(data, " \n"); *at; at += strspn(at, " \n")) {
        size_t len = strcspn(at, " \n");
        unsigned bit = guest_seccomp_action_bit(at, (unsigned)len);

        if (!bit || bit == GUEST_SECCOMP_ACTION_ALLOW)
            return -EINVAL;
        bits |= bit;
        at += len;
    }
    c->container->kernel->seccomp_unlogged = GUEST_SECCOMP_ACTIONS_ALL & ~bits;
    return (int64_t)size;
}

static const struct proc_node seccomp_nodes[] = {
    SYSCTL_FIXED_TEXT("actions_avail", "kill_process kill_thread trap errno user_notif trace log allow"),
    {.name = "actions_logged", .mode = S_IFREG | 0644, .show = show_seccomp_logged, .write = write_seccomp_logged},
};
static const struct proc_dir seccomp_dir = PROC_DIR_OF(seccomp_nodes);

static const struct proc_node kernel_nodes[] = {
    PROC_DIR("keys", proc_sys_keys_dir),
    PROC_DIR("pty", pty_dir),
    PROC_DIR("random", random_dir),
    PROC_DIR("seccomp", seccomp_dir),
    SYSCTL_INT("auto_msgmni", 0, 0, 1),
    SYSCTL_FIXED("cap_last_cap", CAP_LAST_CAP),
    {.name = "core_pattern", .mode = S_IFREG | 0644, .show = show_core_pattern, .write = write_core_pattern},
    SYSCTL_INT("core_pipe_limit", 0, 0, INT32_MAX),
    {.name = "core_uses_pid", .mode = S_IFREG | 0644, .show = show_core_uses_pid, .write = write_core_uses_pid},
    SYSCTL_FIXED("dmesg_restrict", 1),
    {.name = "domainname", .mode = S_IFREG | 0644, .show = show_uts_name, .write = write_uts_name, .arg = ""},
    {.name = "hostname", .mode = S_IFREG | 0644, .show = show_uts_name, .write = write_uts_name},
    SYSCTL_INT("kptr_restrict", 1, 0, 2),
    SYSCTL_FIXED("modules_disabled", 1),
    SYSCTL_INT("msgmax", 8192, 0, INT32_MAX),
    SYSCTL_INT("msgmnb", 16384, 0, INT32_MAX),
    SYSCTL_INT("msgmni", 32000, 0, 32768),
    SYSCTL_FIXED("ngroups_max", LIMIT_GROUPS),
    PROC_FILE("osrelease", 0444, show_osrelease),
    SYSCTL_FIXED_TEXT("ostype", "Linux"),
    SYSCTL_INT("overflowgid", 65534, 0, 65535),
    SYSCTL_INT("overflowuid", 65534, 0, 65535),
    SYSCTL_INT("panic", 0, INT32_MIN, INT32_MAX),
    SYSCTL_INT("panic_on_oops", 0, 0, 1),
    SYSCTL_FIXED("perf_event_max_sample_rate", 100000),
    SYSCTL_FIXED("perf_event_mlock_kb", 516),
    SYSCTL_INT("perf_event_paranoid", 3, -1, 4),
    SYSCTL_FIXED("pid_max", LIMIT_PID_MAX),
    SYSCTL_INTS("printk", 4, 0, INT32_MAX, 4, 4, 1, 7),
    SYSCTL_FIXED("randomize_va_space", 2),
    SYSCTL_FIXED("sched_rr_timeslice_ms", 100),
    SYSCTL_FIXED("sched_rt_period_us", 1000000),
    SYSCTL_FIXED("sched_rt_runtime_us", 950000),
    SYSCTL_INTS("sem", 4, 0, INT32_MAX, 32000, 1024000000, 500, 32000),
    SYSCTL_INT("shm_rmid_forced", 0, 0, 1),
    PROC_FILE("shmall", 0444, show_max_size),
    PROC_FILE("shmmax", 0444, show_max_size),
    SYSCTL_INT("shmmni", 4096, 0, 32768),
    SYSCTL_FIXED("sysrq", 0),
    SYSCTL_FIXED("tainted", 0),
    SYSCTL_FIXED("threads-max", LIMIT_TASKS),
    SYSCTL_FIXED("timer_migration", 1),
    SYSCTL_FIXED("unprivileged_bpf_disabled", 2),
    SYSCTL_FIXED_TEXT("version", KERNEL_VERSION),
};
static const struct proc_dir kernel_dir = PROC_DIR_OF(kernel_nodes);

static const struct proc_node epoll_nodes[] = {SYSCTL_FIXED("max_user_watches", LIMIT_EPOLL_WATCHES)};
static const struct proc_dir epoll_dir = PROC_DIR_OF(epoll_nodes);

static const struct proc_node inotify_nodes[] = {
    SYSCTL_VAR("max_queued_events", &limit_tuned[LIMIT_TUNED_INOTIFY_QUEUE], 0, INT32_MAX),
    SYSCTL_UCOUNT("max_user_instances", UCOUNT_INOTIFY_INSTANCES),
    SYSCTL_UCOUNT("max_user_watches", UCOUNT_INOTIFY_WATCHES),
};
static const struct proc_dir inotify_dir = PROC_DIR_OF(inotify_nodes);

static const struct proc_node fanotify_nodes[] = {
    SYSCTL_VAR("max_queued_events", &limit_tuned[LIMIT_TUNED_FANOTIFY_QUEUE], 0, INT32_MAX),
    SYSCTL_UCOUNT("max_user_groups", UCOUNT_FANOTIFY_GROUPS),
    SYSCTL_UCOUNT("max_user_marks", UCOUNT_FANOTIFY_MARKS),
};
static const struct proc_dir fanotify_dir = PROC_DIR_OF(fanotify_nodes);

static const struct proc_node mqueue_nodes[] = {
    SYSCTL_INT("msg_default", 10, 1, 65536),   SYSCTL_INT("msg_max", 10, 1, 65536),
    SYSCTL_INT("msgsize_default", 8192, 128, 16777216), SYSCTL_INT("msgsize_max", 8192, 128, 16777216),
    SYSCTL_INT("queues_max", 256, 0, INT32_MAX),
};
static const struct proc_dir mqueue_dir = PROC_DIR_OF(mqueue_nodes);
static const struct proc_dir empty_dir;

static const struct proc_node fs_nodes[] = {
    PROC_DIR("binfmt_misc", empty_dir),
    PROC_DIR("epoll", epoll_dir),
    PROC_DIR("fanotify", fanotify_dir),
    PROC_DIR("inotify", inotify_dir),
    PROC_DIR("mqueue", mqueue_dir),
    SYSCTL_FIXED("aio-max-nr", AIO_MAX_NR),
    PROC_FILE("aio-nr", 0444, show_aio_nr),
    PROC_FILE("dentry-state", 0444, show_dentry_state),
    SYSCTL_FIXED("file-max", LIMIT_FILES),
    PROC_FILE("file-nr", 0444, show_file_nr),
    PROC_FILE("inode-nr", 0444, show_inode_nr),
    PROC_FILE("inode-state", 0444, show_inode_state),
    SYSCTL_VAR("lease-break-time", &limit_tuned[LIMIT_TUNED_LEASE_BREAK_TIME], 0, INT32_MAX),
    SYSCTL_VAR("leases-enable", &limit_tuned[LIMIT_TUNED_LEASES_ENABLE], 0, 1),
    SYSCTL_FIXED("mount-max", LIMIT_MOUNTS),
    SYSCTL_FIXED("nr_open", LIMIT_NR_OPEN),
    SYSCTL_INT("overflowgid", 65534, 0, 65535),
    SYSCTL_INT("overflowuid", 65534, 0, 65535),
    SYSCTL_FIXED("pipe-max-size", LIMIT_PIPE_SIZE),
    SYSCTL_FIXED("pipe-user-pages-hard", 0),
    SYSCTL_FIXED("pipe-user-pages-soft", PIPE_PAGES_SOFT),
    SYSCTL_FIXED("protected_fifos", 1),
    SYSCTL_FIXED("protected_hardlinks", 1),
    SYSCTL_FIXED("protected_regular", 2),
    SYSCTL_FIXED("protected_symlinks", 1),
    SYSCTL_FIXED("suid_dumpable", 0),
};
static const struct proc_dir fs_dir = PROC_DIR_OF(fs_nodes);

static const struct proc_node vm_nodes[] = {
    SYSCTL_INT("admin_reserve_kbytes", 8192, 0, INT32_MAX),
    SYSCTL_INT("dirty_background_bytes", 0, 0, INT64_MAX),
    SYSCTL_INT("dirty_background_ratio", 10, 0, 100),
    SYSCTL_INT("dirty_bytes", 0, 0, INT64_MAX),
    SYSCTL_INT("dirty_expire_centisecs", 3000, 0, INT32_MAX),
    SYSCTL_INT("dirty_ratio", 20, 0, 100),
    SYSCTL_INT("dirty_writeback_centisecs", 500, 0, INT32_MAX),
    {.name = "drop_caches", .mode = S_IFREG | 0200, .write = write_drop_caches},
    SYSCTL_FIXED("legacy_va_layout", 0),
    SYSCTL_INT("max_map_count", 65530, 0, INT32_MAX),
    SYSCTL_INT("min_free_kbytes", 67584, 0, INT32_MAX),
    SYSCTL_FIXED("mmap_min_addr", 65536),
    SYSCTL_FIXED("mmap_rnd_bits", 28),
    SYSCTL_FIXED("nr_hugepages", 0),
    SYSCTL_FIXED("nr_overcommit_hugepages", 0),
    SYSCTL_INT("oom_dump_tasks", 1, 0, 1),
    SYSCTL_INT("oom_kill_allocating_task", 0, 0, 1),
    SYSCTL_INT("overcommit_kbytes", 0, 0, INT64_MAX),
    SYSCTL_INT("overcommit_memory", 0, 0, 2),
    SYSCTL_INT("overcommit_ratio", 50, 0, 1000),
    SYSCTL_INT("page-cluster", 3, 0, 31),
    SYSCTL_INT("panic_on_oom", 0, 0, 2),
    SYSCTL_INT("swappiness", 60, 0, 200),
    SYSCTL_FIXED("unprivileged_userfaultfd", 0),
    SYSCTL_INT("user_reserve_kbytes", 131072, 0, INT32_MAX),
    SYSCTL_INT("vfs_cache_pressure", 100, 0, INT32_MAX),
    SYSCTL_INT("zone_reclaim_mode", 0, 0, 7),
};
static const struct proc_dir vm_dir = PROC_DIR_OF(vm_nodes);

static const struct proc_node dev_tty_nodes[] = {
    SYSCTL_FIXED("ldisc_autoload", 0),
    SYSCTL_FIXED("legacy_tiocsti", 0),
};
static const struct proc_dir dev_tty_dir = PROC_DIR_OF(dev_tty_nodes);
static const struct proc_node dev_nodes[] = {PROC_DIR("tty", dev_tty_dir)};
static const struct proc_dir dev_dir = PROC_DIR_OF(dev_nodes);

static const struct proc_node sys_nodes[] = {
    PROC_DIR("dev", dev_dir), PROC_DIR("fs", fs_dir),   PROC_DIR("kernel", kernel_dir),
    PROC_DIR("net", proc_sys_net_dir), PROC_DIR("user", proc_userns_sys_dir), PROC_DIR("vm", vm_dir),
};

const struct proc_dir proc_sys_dir = PROC_DIR_OF(sys_nodes);
