/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup v1: one hierarchy for each controller. */
#include "runtime/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"

enum { CGROUP_V1_FREEZE_TRIES = 1000, CGROUP_V1_FREEZE_NS = 1000 * 1000 };

static int cgroup_v1_write(const struct cgroup *cg, const char *controller, const char *file,
                           const char *text, struct errmsg *e)
{
    const char *dir = cgroup_dir_peek(cg, controller);
    if (!dir)
        return errmsg_set(e, -ENOENT, "cgroup controller %s is not available for %s", controller, file);
    return cgroup_write(dir, file, text, e);
}

static int cgroup_v1_write_i64(const struct cgroup *cg, const char *controller, const char *file,
                               int64_t value, struct errmsg *e)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, value);
    return cgroup_v1_write(cg, controller, file, text, e);
}

static int cgroup_v1_write_u64(const struct cgroup *cg, const char *controller, const char *file,
                               const struct oci_u64 *value, struct errmsg *e)
{
    if (!value->set)
        return 0;
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, value->value);
    return cgroup_v1_write(cg, controller, file, text, e);
}

/* A cpuset without CPUs or memory nodes takes no processes: copy them down from the parent. */
static int cgroup_v1_fill_cpuset(const char *dir, struct errmsg *e)
{
    static const char *const files[] = {"cpuset.cpus", "cpuset.mems"};
    CLEANUP_FREE char *parent = mem_strdup(dir);
    if (!parent)
        return errmsg_set(e, -ENOMEM, "out of memory");
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return 0;
    *slash = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char text[4096];
        if (cgroup_read(dir, files[i], text, sizeof(text)) < 0 || *text)
            continue;
        int r = cgroup_read(parent, files[i], text, sizeof(text));
        if (r < 0)
            return errmsg_set(e, r, "read %s/%s: %s", parent, files[i], errtext(r));
        if (!*text) {
            r = cgroup_v1_fill_cpuset(parent, e);
            if (r == 0)
                r = cgroup_read(parent, files[i], text, sizeof(text));
            if (r < 0)
                return r;
        }
        r = cgroup_write(dir, files[i], text, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int cgroup_v1_create(struct cgroup *cg, struct errmsg *e)
{
    for (unsigned i = 0; i < cg->len; i++) {
        int r = cgroup_mkdirs(cg->dirs[i].path, e);
        if (r < 0)
            return r;
    }
    const char *cpuset = cgroup_dir_peek(cg, "cpuset");
    return cpuset ? cgroup_v1_fill_cpuset(cpuset, e) : 0;
}

/* Memory and memory+swap limits bound each other: the wider one has to move first when both grow. */
static int cgroup_v1_set_memory_limits(const struct cgroup *cg, const struct oci_resources *res,
                                       struct errmsg *e)
{
    static const char mem[] = "memory.limit_in_bytes", memsw[] = "memory.memsw.limit_in_bytes";
    int64_t limit = res->memory.limit.set ? res->memory.limit.value : 0;
    int64_t swap = res->memory.swap.set ? res->memory.swap.value : 0;
    if (limit == -1 && swap == 0)
        swap = -1;
    const char *dir = cgroup_dir_peek(cg, "memory");
    char text[64];
    bool have_swap = dir && cgroup_read(dir, memsw, text, sizeof(text)) == 0;
    if (!have_swap)
        swap = 0; /* a kernel without swap accounting: there is nothing to bound */
    int r = 0;
    bool swap_first = swap != 0 && (swap == -1 || strtoull(text, NULL, 10) < (uint64_t)swap);
    if (swap_first)
        r = cgroup_v1_write_i64(cg, "memory", memsw, swap, e);
    if (r == 0 && limit != 0)
        r = cgroup_v1_write_i64(cg, "memory", mem, limit, e);
    if (r == 0 && swap != 0 && !swap_first)
        r = cgroup_v1_write_i64(cg, "memory", memsw, swap, e);
    return r;
}

static int cgroup_v1_set_memory(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    int r = cgroup_v1_set_memory_limits(cg, res, e);
    if (r == 0 && res->memory.reservation.set && res->memory.reservation.value != 0)
        r = cgroup_v1_write_i64(cg, "memory", "memory.soft_limit_in_bytes",
                                res->memory.reservation.value, e);
    if (r == 0 && res->memory.disable_oom_killer.set && res->memory.disable_oom_killer.value)
        r = cgroup_v1_write(cg, "memory", "memory.oom_control", "1", e);
    if (r == 0)
        r = cgroup_v1_write_u64(cg, "memory", "memory.swappiness", &res->memory.swappiness, e);
    return r;
}

static int cgroup_v1_set_cpu(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    int r = 0;
    if (res->cpu.shares.set && res->cpu.shares.value)
        r = cgroup_v1_write_u64(cg, "cpu", "cpu.shares", &res->cpu.shares, e);
    if (r == 0 && res->cpu.idle.set)
        r = cgroup_v1_write_i64(cg, "cpu", "cpu.idle", res->cpu.idle.value, e);
    if (r == 0 && res->cpu.period.set && res->cpu.period.value)
        r = cgroup_v1_write_u64(cg, "cpu", "cpu.cfs_period_us", &res->cpu.period, e);
    if (r == 0 && res->cpu.quota.set && res->cpu.quota.value)
        r = cgroup_v1_write_i64(cg, "cpu", "cpu.cfs_quota_us", res->cpu.quota.value, e);
    if (r == 0 && res->cpu.burst.set)
        r = cgroup_v1_write_u64(cg, "cpu", "cpu.cfs_burst_us", &res->cpu.burst, e);
    if (r == 0 && res->cpu.realtime_period.set && res->cpu.realtime_period.value)
        r = cgroup_v1_write_u64(cg, "cpu", "cpu.rt_period_us", &res->cpu.realtime_period, e);
    if (r == 0 && res->cpu.realtime_runtime.set && res->cpu.realtime_runtime.value)
        r = cgroup_v1_write_i64(cg, "cpu", "cpu.rt_runtime_us", res->cpu.realtime_runtime.value, e);
    if (r == 0 && res->cpu.cpus && *res->cpu.cpus)
        r = cgroup_v1_write(cg, "cpuset", "cpuset.cpus", res->cpu.cpus, e);
    if (r == 0 && res->cpu.mems && *res->cpu.mems)
        r = cgroup_v1_write(cg, "cpuset", "cpuset.mems", res->cpu.mems, e);
    return r;
}

static int cgroup_v1_set_throttle(const struct cgroup *cg, const char *file,
                                  const struct oci_throttle_devices *list, struct errmsg *e)
{
    int r = 0;
    for (unsigned i = 0; i < list->len && r == 0; i++) {
        char text[96];
        snprintf(text, sizeof(text), "%" PRId64 ":%" PRId64 " %" PRIu64, list->v[i].major,
                 list->v[i].minor, list->v[i].rate);
        r = cgroup_v1_write(cg, "blkio", file, text, e);
    }
    return r;
}

static int cgroup_v1_set_block_io(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    int r = 0;
    const char *dir = cgroup_dir_peek(cg, "blkio");
    char text[64];
    if (res->block_io.weight.set && res->block_io.weight.value) {
        /* Which scheduler serves the weight depends on the kernel. */
        bool bfq = dir && cgroup_read(dir, "blkio.bfq.weight", text, sizeof(text)) == 0;
        r = cgroup_v1_write_u64(cg, "blkio", bfq ? "blkio.bfq.weight" : "blkio.weight",
                                &res->block_io.weight, e);
    }
    if (r == 0)
        r = cgroup_v1_set_throttle(cg, "blkio.throttle.read_bps_device", &res->block_io.read_bps, e);
    if (r == 0)
        r = cgroup_v1_set_throttle(cg, "blkio.throttle.write_bps_device", &res->block_io.write_bps, e);
    if (r == 0)
        r = cgroup_v1_set_throttle(cg, "blkio.throttle.read_iops_device", &res->block_io.read_iops, e);
    if (r == 0)
        r = cgroup_v1_set_throttle(cg, "blkio.throttle.write_iops_device", &res->block_io.write_iops, e);
    return r;
}

static int cgroup_v1_set_rest(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    int r = 0;
    if (res->pids_limit.set && res->pids_limit.value > 0)
        r = cgroup_v1_write_i64(cg, "pids", "pids.max", res->pids_limit.value + CGROUP_OWN_TASKS, e);
    else if (res->pids_limit.set && res->pids_limit.value < 0)
        r = cgroup_v1_write(cg, "pids", "pids.max", "max", e);
    for (unsigned i = 0; i < res->hugepage_limits_len && r == 0; i++) {
        char file[64], text[32];
        snprintf(file, sizeof(file), "hugetlb.%.16s.limit_in_bytes", res->hugepage_limits[i].page_size);
        snprintf(text, sizeof(text), "%" PRIu64, res->hugepage_limits[i].limit);
        r = cgroup_v1_write(cg, "hugetlb", file, text, e);
    }
    if (r == 0 && res->net_class_id.set && res->net_class_id.value)
        r = cgroup_v1_write_u64(cg, "net_cls", "net_cls.classid", &res->net_class_id, e);
    for (unsigned i = 0; i < res->net_priorities_len && r == 0; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%.32s %u", res->net_priorities[i].name,
                 res->net_priorities[i].priority);
        r = cgroup_v1_write(cg, "net_prio", "net_prio.ifpriomap", text, e);
    }
    return r;
}

static int cgroup_v1_set(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    if (res->unified.len)
        return errmsg_set(e, -EINVAL, "invalid configuration: cannot use unified on cgroup v1");
    int r = cgroup_v1_set_memory(cg, res, e);
    if (r == 0)
        r = cgroup_v1_set_cpu(cg, res, e);
    if (r == 0)
        r = cgroup_v1_set_block_io(cg, res, e);
    if (r == 0)
        r = cgroup_v1_set_rest(cg, res, e);
    return r;
}

static int cgroup_v1_freeze(const struct cgroup *cg, bool frozen, struct errmsg *e)
{
    const char *dir = cgroup_dir_peek(cg, "freezer");
    const char *want = frozen ? "FROZEN" : "THAWED";
    if (!dir)
        return errmsg_set(e, -EOPNOTSUPP, "cgroup controller freezer is not available");
    for (int i = 0; i < CGROUP_V1_FREEZE_TRIES; i++) {
        /* Written again each time: a task that is born while the group freezes can stay awake. */
        int r = cgroup_write(dir, "freezer.state", want, e);
        char state[32];
        if (r == 0)
            r = cgroup_read(dir, "freezer.state", state, sizeof(state));
        if (r < 0)
            return r;
        if (strcmp(state, want) == 0)
            return 0;
        const struct timespec ts = {.tv_nsec = CGROUP_V1_FREEZE_NS};
        nanosleep(&ts, NULL);
    }
    if (frozen && cgroup_write(dir, "freezer.state", "THAWED", NULL) < 0)
        return errmsg_set(e, -EBUSY, "unable to freeze, and to thaw again: %s", dir);
    return errmsg_set(e, -EBUSY, "unable to %s %s", frozen ? "freeze" : "thaw", dir);
}

static int cgroup_v1_is_frozen(const struct cgroup *cg)
{
    const char *dir = cgroup_dir_peek(cg, "freezer");
    char state[32];
    int r = dir ? cgroup_read(dir, "freezer.state", state, sizeof(state)) : -ENOENT;
    return r < 0 ? r : strcmp(state, "THAWED") != 0;
}

const struct cgroup_ops cgroup_v1_ops = {
    .create = cgroup_v1_create,
    .set = cgroup_v1_set,
    .freeze = cgroup_v1_freeze,
    .is_frozen = cgroup_v1_is_frozen,
};
