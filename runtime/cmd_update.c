/* SPDX-License-Identifier: Apache-2.0 */
/* update: changes the limits of a container that exists. */
#include "runtime/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oci/json.h"
#include "oci/spec.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"

enum { CMD_UPDATE_FILE_MAX = 1 << 20 };

/* The flags that stand for a member of the resources document. */
static const struct {
    const char *flag, *object, *member;
    bool is_bytes, is_text;
} update_members[] = {
    {"memory", "memory", "limit", true, false},
    {"memory-reservation", "memory", "reservation", true, false},
    {"memory-swap", "memory", "swap", true, false},
    {"cpu-share", "cpu", "shares", false, false},
    {"cpu-quota", "cpu", "quota", false, false},
    {"cpu-period", "cpu", "period", false, false},
    {"cpu-rt-runtime", "cpu", "realtimeRuntime", false, false},
    {"cpu-rt-period", "cpu", "realtimePeriod", false, false},
    {"cpuset-cpus", "cpu", "cpus", false, true},
    {"cpuset-mems", "cpu", "mems", false, true},
    {"pids-limit", "pids", "limit", false, false},
    {"blkio-weight", "blockIO", "weight", false, false},
};

/* A number, for sizes with a suffix such as k, M or GB (of 1024). */
static int update_number(const char *flag, const char *text, bool is_bytes, int64_t *ret_value,
                         struct errmsg *e)
{
    static const char suffixes[] = "kmgt";
    char *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno || end == text)
        return errmsg_set(e, -EINVAL, "invalid value for %s: \"%s\"", flag, text);
    const char *suffix = *end ? strchr(suffixes, *end | 0x20) : NULL;
    if (is_bytes && suffix) {
        end++;
        for (const char *s = suffixes; s <= suffix; s++)
            if (__builtin_mul_overflow(value, 1024, &value))
                return errmsg_set(e, -ERANGE, "invalid value for %s: \"%s\"", flag, text);
    }
    if (is_bytes && (*end | 0x20) == 'b')
        end++;
    if (*end)
        return errmsg_set(e, -EINVAL, "invalid value for %s: \"%s\"", flag, text);
    *ret_value = value;
    return 0;
}

/* Writes the flags as a resources document: one parser for both. */
static int update_from_flags(const struct cli_args *args, struct buf *out, struct errmsg *e)
{
    struct json_writer w;
    const char *open = NULL;
    json_writer_init(&w, out, NULL);
    json_open_object(&w, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(update_members); i++) {
        const char *text = cli_value(args, update_members[i].flag);
        if (!text || !*text)
            continue;
        if (!open || strcmp(open, update_members[i].object) != 0) {
            if (open)
                json_close_object(&w);
            open = update_members[i].object;
            json_open_object(&w, open);
        }
        int64_t value = 0;
        int r = update_members[i].is_text
                    ? 0
                    : update_number(update_members[i].flag, text, update_members[i].is_bytes, &value, e);
        if (r < 0)
            return r;
        if (update_members[i].is_text)
            json_put_string(&w, update_members[i].member, text);
        else
            json_put_i64(&w, update_members[i].member, value);
    }
    if (open)
        json_close_object(&w);
    json_close_object(&w);
    return buf_error(out) < 0 ? errmsg_set(e, -ENOMEM, "out of memory") : 0;
}

static int update_from_file(const char *path, struct buf *out, struct errmsg *e)
{
    CLEANUP_CLOSE int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                                  : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errmsg_set(e, -errno, "open %s: %s", path, errtext(errno));
    for (;;) {
        char chunk[4096];
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errmsg_set(e, -errno, "read %s: %s", path, errtext(errno));
        if (n == 0)
            break;
        buf_append(out, chunk, (size_t)n);
        if (out->size > CMD_UPDATE_FILE_MAX)
            return errmsg_set(e, -EFBIG, "read %s: too large", path);
    }
    return buf_error(out) < 0 ? errmsg_set(e, -ENOMEM, "out of memory") : 0;
}

static int update_apply(const struct ctr *c, const struct buf *json, struct errmsg *e)
{
    struct oci_resources_doc *doc = NULL;
    if (c->status == OCISTATE_STOPPED || c->status == OCISTATE_CREATING)
        return errmsg_set(e, -EINVAL, "container not running");
    int r = oci_resources_parse(json->data ? json->data : "", json->size, &doc, e);
    if (r < 0)
        return r;
    r = cgroup_set(&c->cgroup, &doc->resources, e);
    oci_resources_doc_free(doc);
    return r;
}

static int cmd_update_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *path = cli_value(args, "resources");
    CLEANUP_BUF struct buf json = {.data = NULL};
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    r = path ? update_from_file(path, &json, e) : update_from_flags(args, &json, e);
    if (r == 0)
        r = update_apply(&c, &json, e);
    ctr_close(&c);
    return r;
}

static const struct cli_flag cmd_update_flags[] = {
    {"resources", 'r', true, NULL,
     "path to the file containing the resources to update or '-' to read from the standard input; all "
     "other flags are ignored then"},
    {"blkio-weight", 0, true, NULL, "per cgroup weight, from 10 to 1000"},
    {"cpu-period", 0, true, NULL, "CPU period to be used for hardcapping (in usecs)"},
    {"cpu-quota", 0, true, NULL, "CPU hardcap limit (in usecs): allowed CPU time in a period"},
    {"cpu-share", 0, true, NULL, "CPU shares (relative weight against other containers)"},
    {"cpu-rt-period", 0, true, NULL, "realtime CPU period (in usecs)"},
    {"cpu-rt-runtime", 0, true, NULL, "realtime CPU limit (in usecs)"},
    {"cpuset-cpus", 0, true, NULL, "CPUs to use"},
    {"cpuset-mems", 0, true, NULL, "memory nodes to use"},
    {"memory", 0, true, NULL, "memory limit (in bytes)"},
    {"memory-reservation", 0, true, NULL, "memory reservation or soft limit (in bytes)"},
    {"memory-swap", 0, true, NULL, "total of memory and swap (in bytes); '-1' for unlimited swap"},
    {"pids-limit", 0, true, NULL, "maximum number of pids allowed in the container"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_update_verb = {
    .name = "update",
    .summary = "update container resource constraints",
    .arguments = "<container-id>",
    .flags = cmd_update_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_update_run,
};
