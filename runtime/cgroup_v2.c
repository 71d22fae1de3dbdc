/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup v2: the unified hierarchy. */
#include "runtime/cgroup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/errtext.h"

enum { CGROUP_V2_FREEZE_TRIES = 2000, CGROUP_V2_FREEZE_NS = 1000 * 1000 };

/* Gives dir's children every controller that dir has. Failures are left to the write that needs the
 * controller, which can name what is missing. */
static void cgroup_v2_enable(const char *dir)
{
    char controllers[1024];
    if (cgroup_read(dir, "cgroup.controllers", controllers, sizeof(controllers)) < 0)
        return;
    char *save;
    for (char *word = strtok_r(controllers, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char text[64];
        struct errmsg e;
        snprintf(text, sizeof(text), "+%.60s", word);
        if (cgroup_write(dir, "cgroup.subtree_control", text, &e) < 0)
            log_debug("%s", e.text);
    }
}

static int cgroup_v2_create(struct cgroup *cg, struct errmsg *e)
{
    static const char root[] = "/sys/fs/cgroup";
    CLEANUP_FREE char *part = mem_strdup(cg->dirs[0].path);
    if (!part)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (char *slash = part + strlen(root); slash; slash = strchr(slash + 1, '/')) {
        if (*slash != '/')
            break;
        *slash = '\0';
        int r = cgroup_mkdirs(part, e);
        if (r < 0)
            return r;
        cgroup_v2_enable(part);
        *slash = '/';
    }
    return cgroup_mkdirs(part, e);
}

static int cgroup_v2_write_limit(const char *dir, const char *file, int64_t value, struct errmsg *e)
{
    char text[32];
    if (value < 0)
        return cgroup_write(dir, file, "max", e);
    snprintf(text, sizeof(text), "%" PRId64, value);
    return cgroup_write(dir, file, text, e);
}

static int cgroup_v2_set_memory(const char *dir, const struct oci_resources *res, struct errmsg *e)
{
    int64_t limit = res->memory.limit.set ? res->memory.limit.value : 0;
    int64_t swap = res->memory.swap.set ? res->memory.swap.value : 0;
    int r = 0;
    if (swap > 0 && limit <= 0)
        return errmsg_set(e, -EINVAL, "unable to set swap limit without memory limit");
    if (swap > 0 && swap < limit)
        return errmsg_set(e, -EINVAL, "memory+swap limit should be >= memory limit");
    if (limit == -1 && swap == 0)
        swap = -1;
    char text[64];
    bool have_swap = cgroup_read(dir, "memory.swap.max", text, sizeof(text)) == 0;
    /* The specification's swap counts memory too, the file's does not. */
    if (swap != 0 && have_swap)
        r = cgroup_v2_write_limit(dir, "memory.swap.max", swap < 0 ? -1 : swap - limit, e);
    if (r == 0 && limit != 0)
        r = cgroup_v2_write_limit(dir, "memory.max", limit, e);
    if (r == 0 && res->memory.reservation.set && res->memory.reservation.value != 0)
        r = cgroup_v2_write_limit(dir, "memory.low", res->memory.reservation.value, e);
    return r;
}

/* Maps shares (2 to 262144, default 1024) to a weight (1 to 10000), as every runtime does. */
static uint64_t cgroup_v2_weight(uint64_t shares)
{
    shares = shares < 2 ? 2 : MIN(shares, (uint64_t)262144);
    return 1 + ((shares - 2) * 9999) / 262142;
}

static int cgroup_v2_set_cpu(const char *dir, const struct oci_resources *res, struct errmsg *e)
{
    char text[96];
    int r = 0;
    if (res->cpu.idle.set && res->cpu.idle.value == 1)
        r = cgroup_write(dir, "cpu.idle", "1", e);
    if (r == 0 && res->cpu.shares.set && res->cpu.shares.value &&
        !(res->cpu.idle.set && res->cpu.idle.value == 1)) {
        snprintf(text, sizeof(text), "%" PRIu64, cgroup_v2_weight(res->cpu.shares.value));
        r = cgroup_write(dir, "cpu.weight", text, e);
    }
    int64_t quota = res->cpu.quota.set ? res->cpu.quota.value : 0;
    uint64_t period = res->cpu.period.set ? res->cpu.period.value : 0;
    if (r == 0 && (quota != 0 || period != 0)) {
        char amount[32] = "max";
        if (quota > 0)
            snprintf(amount, sizeof(amount), "%" PRId64, quota);
        snprintf(text, sizeof(text), "%s %" PRIu64, amount, period ? period : 100000);
        r = cgroup_write(dir, "cpu.max", text, e);
    }
    if (r == 0 && res->cpu.burst.set) {
        snprintf(text, sizeof(text), "%" PRIu64, res->cpu.burst.value);
        r = cgroup_write(dir, "cpu.max.burst", text, e);
    }
    if (r == 0 && res->cpu.cpus && *res->cpu.cpus)
        r = cgroup_write(dir, "cpuset.cpus", res->cpu.cpus, e);
    if (r == 0 && res->cpu.mems && *res->cpu.mems)
        r = cgroup_write(dir, "cpuset.mems", res->cpu.mems, e);
    return r;
}

static int cgroup_v2_set_io_max(const char *dir, const char *key, const struct oci_throttle_devices *list,
                                struct errmsg *e)
{
    int r = 0;
    for (unsigned i = 0; i < list->len && r == 0; i++) {
        char text[96];
        snprintf(text, sizeof(text), "%" PRId64 ":%" PRId64 " %s=%" PRIu64, list->v[i].major,
                 list->v[i].minor, key, list->v[i].rate);
        r = cgroup_write(dir, "io.max", text, e);
    }
    return r;
}

static int cgroup_v2_set_io(const char *dir, const struct oci_resources *res, struct errmsg *e)
{
    char text[64];
    int r = 0;
    if (res->block_io.weight.set && res->block_io.weight.value) {
        uint64_t weight = res->block_io.weight.value;
        if (cgroup_read(dir, "io.bfq.weight", text, sizeof(text)) == 0) {
            snprintf(text, sizeof(text), "%" PRIu64, weight);
            r = cgroup_write(dir, "io.bfq.weight", text, e);
        } else {
            /* 10 to 1000 onto 1 to 10000. */
            weight = 1 + (MAX(weight, (uint64_t)10) - 10) * 9999 / 990;
            snprintf(text, sizeof(text), "default %" PRIu64, weight);
            r = cgroup_write(dir, "io.weight", text, e);
        }
    }
    if (r == 0)
        r = cgroup_v2_set_io_max(dir, "rbps", &res->block_io.read_bps, e);
    if (r == 0)
        r = cgroup_v2_set_io_max(dir, "wbps", &res->block_io.write_bps, e);
    if (r == 0)
        r = cgroup_v2_set_io_max(dir, "riops", &res->block_io.read_iops, e);
    if (r == 0)
        r = cgroup_v2_set_io_max(dir, "wiops", &res->block_io.write_iops, e);
    return r;
}

static int cgroup_v2_set_unified(const char *dir, const struct oci_resources *res, struct errmsg *e)
{
    int r = 0;
    for (unsigned i = 0; i < res->unified.len && r == 0; i++) {
        if (strchr(res->unified.v[i].key, '/'))
            return errmsg_set(e, -EINVAL, "unified resource \"%s\" must be a file name (no slashes)",
                              res->unified.v[i].key);
        r = cgroup_write(dir, res->unified.v[i].key, res->unified.v[i].value, e);
    }
    return r;
}

static int cgroup_v2_set(const struct cgroup *cg, const struct oci_resources *res, struct errmsg *e)
{
    const char *dir = cg->dirs[0].path;
    int r = cgroup_v2_set_memory(dir, res, e);
    if (r == 0)
        r = cgroup_v2_set_cpu(dir, res, e);
    if (r == 0)
        r = cgroup_v2_set_io(dir, res, e);
    if (r == 0 && res->pids_limit.set && res->pids_limit.value != 0)
        r = cgroup_v2_write_limit(
            dir, "pids.max", res->pids_limit.value < 0 ? -1 : res->pids_limit.value + CGROUP_OWN_TASKS, e);
    for (unsigned i = 0; i < res->hugepage_limits_len && r == 0; i++) {
        char file[64], text[32];
        snprintf(file, sizeof(file), "hugetlb.%.16s.max", res->hugepage_limits[i].page_size);
        snprintf(text, sizeof(text), "%" PRIu64, res->hugepage_limits[i].limit);
        r = cgroup_write(dir, file, text, e);
    }
    if (r == 0)
        r = cgroup_v2_set_unified(dir, res, e);
    return r;
}

static int cgroup_v2_freeze(const struct cgroup *cg, bool frozen, struct errmsg *e)
{
    const char *dir = cg->dirs[0].path;
    int r = cgroup_write(dir, "cgroup.freeze", frozen ? "1" : "0", e);
    if (r < 0)
        return r;
    for (int i = 0; i < CGROUP_V2_FREEZE_TRIES; i++) {
        char events[256];
        r = cgroup_read(dir, "cgroup.events", events, sizeof(events));
        if (r < 0)
            return errmsg_set(e, r, "read %s/cgroup.events: %s", dir, errtext(r));
        if (strstr(events, frozen ? "frozen 1" : "frozen 0"))
            return 0;
        const struct timespec ts = {.tv_nsec = CGROUP_V2_FREEZE_NS};
        nanosleep(&ts, NULL);
    }
    if (frozen && cgroup_write(dir, "cgroup.freeze", "0", NULL) < 0)
        return errmsg_set(e, -EBUSY, "unable to freeze, and to thaw again: %s", dir);
    return errmsg_set(e, -EBUSY, "unable to %s %s", frozen ? "freeze" : "thaw", dir);
}

static int cgroup_v2_is_frozen(const struct cgroup *cg)
{
    char text[16];
    int r = cgroup_read(cg->dirs[0].path, "cgroup.freeze", text, sizeof(text));
    return r < 0 ? r : text[0] == '1';
}

const struct cgroup_ops cgroup_v2_ops = {
    .create = cgroup_v2_create,
    .set = cgroup_v2_set,
    .freeze = cgroup_v2_freeze,
    .is_frozen = cgroup_v2_is_frozen,
};
