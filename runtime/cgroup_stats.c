/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the cgroup's counters on v1 and v2. */
#include "runtime/cgroup_stats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATS_FILE_MAX = 16384 };

/* A number, where "max" and what lies beyond are the most there is. Return: 0, −errno, −EINVAL. */
static int stats_number(const char *text, uint64_t *ret)
{
    char *end;
    if (!strncmp(text, "max", 3)) {
        *ret = UINT64_MAX;
        return 0;
    }
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (end == text || errno)
        return -EINVAL;
    *ret = n;
    return 0;
}

static int stats_read(const char *dir, const char *file, uint64_t *ret)
{
    char text[64];
    int r = dir ? cgroup_read(dir, file, text, sizeof(text)) : -ENOENT;
    return r < 0 ? r : stats_number(text, ret);
}

/* The number after "key " in a file of such lines. Return: 0, −ENOENT, −errno. */
static int stats_read_key(const char *dir, const char *file, const char *key, uint64_t *ret)
{
    char text[STATS_FILE_MAX];
    size_t len = strlen(key);
    int r = dir ? cgroup_read(dir, file, text, sizeof(text)) : -ENOENT;
    if (r < 0)
        return r;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, len) && line[len] == ' ')
            return stats_number(line + len + 1, ret);
    }
    return -ENOENT;
}

static void stats_put(struct json_writer *w, const char *name, const char *dir, const char *file)
{
    uint64_t n;
    if (stats_read(dir, file, &n) == 0)
        json_put_u64(w, name, n);
}

static void stats_put_key(struct json_writer *w, const char *name, const char *dir, const char *file, const char *key, uint64_t times)
{
    uint64_t n;
    if (stats_read_key(dir, file, key, &n) == 0)
        json_put_u64(w, name, n * times);
}

/* Every line "key number" of a file. */
static void stats_put_all(struct json_writer *w, const char *name, const char *dir, const char *file)
{
    char text[STATS_FILE_MAX], *save;
    json_open_object(w, name);
    if (dir && cgroup_read(dir, file, text, sizeof(text)) == 0) {
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            char *space = strchr(line, ' ');
            uint64_t n;
            if (!space || stats_number(space + 1, &n) < 0)
                continue;
            *space = '\0';
            json_put_u64(w, line, n);
        }
    }
    json_close_object(w);
}

static void stats_put_io(struct json_writer *w, unsigned major, unsigned minor, const char *op, uint64_t value)
{
    json_open_object(w, NULL);
    json_put_u64(w, "major", major);
    json_put_u64(w, "minor", minor);
    json_put_string(w, "op", op);
    json_put_u64(w, "value", value);
    json_close_object(w);
}

/* ---- v1 ---- */

static void stats_v1_cpu(const struct cgroup *cg, struct json_writer *w)
{
    const char *acct = cgroup_dir_peek(cg, "cpuacct"), *cpu = cgroup_dir_peek(cg, "cpu");
    uint64_t tick = 1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK);
    json_open_object(w, "cpu");
    json_open_object(w, "usage");
    stats_put(w, "total", acct, "cpuacct.usage");
    stats_put_key(w, "kernel", acct, "cpuacct.stat", "system", tick);
    stats_put_key(w, "user", acct, "cpuacct.stat", "user", tick);
    json_close_object(w);
    json_open_object(w, "throttling");
    stats_put_key(w, "periods", cpu, "cpu.stat", "nr_periods", 1);
    stats_put_key(w, "throttledPeriods", cpu, "cpu.stat", "nr_throttled", 1);
    stats_put_key(w, "throttledTime", cpu, "cpu.stat", "throttled_time", 1);
    json_close_object(w);
    json_close_object(w);
}

static void stats_v1_usage(struct json_writer *w, const char *name, const char *dir, const char *prefix)
{
    static const struct {
        const char *name, *file;
    } parts[] = {{"limit", "limit_in_bytes"}, {"usage", "usage_in_bytes"}, {"max", "max_usage_in_bytes"}, {"failcnt", "failcnt"}};
    json_open_object(w, name);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        char file[64];
        snprintf(file, sizeof(file), "%s.%s", prefix, parts[i].file);
        stats_put(w, parts[i].name, dir, file);
    }
    json_close_object(w);
}

static void stats_v1_io(const struct cgroup *cg, struct json_writer *w, const char *name, const char *file)
{
    char text[STATS_FILE_MAX], *save;
    const char *dir = cgroup_dir_peek(cg, "blkio");
    json_open_array(w, name);
    if (dir && cgroup_read(dir, file, text, sizeof(text)) == 0) {
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            unsigned major, minor;
            unsigned long long value;
            char op[16];
            if (sscanf(line, "%u:%u %15s %llu", &major, &minor, op, &value) == 4)
                stats_put_io(w, major, minor, op, value);
        }
    }
    json_close_array(w);
}

static void stats_v1(const struct cgroup *cg, struct json_writer *w)
{
    const char *memory = cgroup_dir_peek(cg, "memory"), *pids = cgroup_dir_peek(cg, "pids");
    stats_v1_cpu(cg, w);
    json_open_object(w, "memory");
    stats_v1_usage(w, "usage", memory, "memory");
    stats_v1_usage(w, "swap", memory, "memory.memsw");
    stats_v1_usage(w, "kernel", memory, "memory.kmem");
    stats_put_all(w, "raw", memory, "memory.stat");
    json_close_object(w);
    json_open_object(w, "pids");
    stats_put(w, "current", pids, "pids.current");
    stats_put(w, "limit", pids, "pids.max");
    json_close_object(w);
    json_open_object(w, "blkio");
    stats_v1_io(cg, w, "ioServiceBytesRecursive", "blkio.throttle.io_service_bytes_recursive");
    stats_v1_io(cg, w, "ioServicedRecursive", "blkio.throttle.io_serviced_recursive");
    json_close_object(w);
}

/* ---- v2 ---- */

static void stats_v2_cpu(const char *dir, struct json_writer *w)
{
    json_open_object(w, "cpu");
    json_open_object(w, "usage");
    stats_put_key(w, "total", dir, "cpu.stat", "usage_usec", 1000);
    stats_put_key(w, "kernel", dir, "cpu.stat", "system_usec", 1000);
    stats_put_key(w, "user", dir, "cpu.stat", "user_usec", 1000);
    json_close_object(w);
    json_open_object(w, "throttling");
    stats_put_key(w, "periods", dir, "cpu.stat", "nr_periods", 1);
    stats_put_key(w, "throttledPeriods", dir, "cpu.stat", "nr_throttled", 1);
    stats_put_key(w, "throttledTime", dir, "cpu.stat", "throttled_usec", 1000);
    json_close_object(w);
    json_close_object(w);
}

static void stats_v2_memory(const char *dir, struct json_writer *w)
{
    json_open_object(w, "memory");
    json_open_object(w, "usage");
    stats_put(w, "limit", dir, "memory.max");
    stats_put(w, "usage", dir, "memory.current");
    stats_put(w, "max", dir, "memory.peak");
    stats_put_key(w, "failcnt", dir, "memory.events", "max", 1);
    json_close_object(w);
    json_open_object(w, "swap");
    stats_put(w, "limit", dir, "memory.swap.max");
    stats_put(w, "usage", dir, "memory.swap.current");
    json_close_object(w);
    stats_put_all(w, "raw", dir, "memory.stat");
    json_close_object(w);
}

/* "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6": words that begin with a letter of ops and end in what. */
static void stats_v2_io(const char *dir, struct json_writer *w, const char *name, const char *what)
{
    static const struct {
        char letter;
        const char *op;
    } ops[] = {{'r', "Read"}, {'w', "Write"}, {'d', "Discard"}};
    char text[STATS_FILE_MAX], *save;
    json_open_array(w, name);
    if (cgroup_read(dir, "io.stat", text, sizeof(text)) < 0)
        text[0] = '\0';
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned major, minor;
        if (sscanf(line, "%u:%u", &major, &minor) != 2)
            continue;
        for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
            char key[16];
            uint64_t value;
            snprintf(key, sizeof(key), " %c%s=", ops[i].letter, what);
            const char *at = strstr(line, key);
            if (at && stats_number(at + strlen(key), &value) == 0)
                stats_put_io(w, major, minor, ops[i].op, value);
        }
    }
    json_close_array(w);
}

static void stats_v2(const char *dir, struct json_writer *w)
{
    stats_v2_cpu(dir, w);
    stats_v2_memory(dir, w);
    json_open_object(w, "pids");
    stats_put(w, "current", dir, "pids.current");
    stats_put(w, "limit", dir, "pids.max");
    json_close_object(w);
    json_open_object(w, "blkio");
    stats_v2_io(dir, w, "ioServiceBytesRecursive", "bytes");
    stats_v2_io(dir, w, "ioServicedRecursive", "ios");
    json_close_object(w);
}

void cgroup_stats_write(const struct cgroup *cg, struct json_writer *w)
{
    if (cg->len && cg->ops == &cgroup_v2_ops)
        stats_v2(cg->dirs[0].path, w);
    else
        stats_v1(cg, w);
}

uint64_t cgroup_stats_oom_kills(const struct cgroup *cg)
{
    bool v2 = cg->len && cg->ops == &cgroup_v2_ops;
    const char *dir = v2 ? cg->dirs[0].path : cgroup_dir_peek(cg, "memory");
    uint64_t n = 0;
    (void)(stats_read_key(dir, v2 ? "memory.events" : "memory.oom_control", "oom_kill", &n) == 0);
    return n;
}
