/* SPDX-License-Identifier: Apache-2.0 */
/* events: what the host has counted for a container, once or again and again, and when it ran out of memory. */
#include "runtime/verbs.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oci/json.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/cgroup_stats.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"
#include "runtime/layer_store.h"

enum { EVENTS_INTERVAL_MAX = 24 * 3600, EVENTS_OOM_MS = 1000 };

/* "5s", "500ms", "2m", "1h": a duration as Go writes it, of one unit. Return: 0 with milliseconds, −EINVAL. */
static int events_parse_interval(const char *text, int *ret_ms)
{
    static const struct {
        const char *unit;
        unsigned long ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (end == text || text[0] == '-' || strcmp(end, units[i].unit) || !n ||
            n > EVENTS_INTERVAL_MAX * 1000UL / units[i].ms)
            continue;
        *ret_ms = (int)(n * units[i].ms);
        return 0;
    }
    return -EINVAL;
}

static int events_print(const struct buf *line, struct errmsg *e)
{
    int r = buf_error(line);
    if (r == 0)
        r = host_write_all(STDOUT_FILENO, line->data, line->size);
    return r < 0 ? errmsg_set(e, r, "write the event: %s", errtext(r)) : 0;
}

static int events_stats(const struct ctr *c, struct errmsg *e)
{
    CLEANUP_BUF struct buf line = {.data = NULL};
    struct json_writer w;
    json_writer_init(&w, &line, NULL);
    json_open_object(&w, NULL);
    json_put_string(&w, "type", "stats");
    json_put_string(&w, "id", c->id);
    json_open_object(&w, "data");
    cgroup_stats_write(&c->cgroup, &w);
    if (c->state.layer[0]) {
        uint64_t size, names;
        int r = layer_store_usage(c->state.layer, &size, &names);
        if (r < 0)
            return errmsg_set(e, r, "measure the layer %s: %s", c->state.layer, errtext(r));
        json_open_object(&w, "layer");
        json_put_u64(&w, "usage", size);
        json_put_u64(&w, "names", names);
        if (c->state.layer_limit)
            json_put_u64(&w, "limit", c->state.layer_limit);
        json_close_object(&w);
    }
    json_close_object(&w);
    json_close_object(&w);
    buf_putc(&line, '\n');
    return events_print(&line, e);
}

static int events_oom(const struct ctr *c, struct errmsg *e)
{
    CLEANUP_BUF struct buf line = {.data = NULL};
    struct json_writer w;
    json_writer_init(&w, &line, NULL);
    json_open_object(&w, NULL);
    json_put_string(&w, "type", "oom");
    json_put_string(&w, "id", c->id);
    json_close_object(&w);
    buf_putc(&line, '\n');
    return events_print(&line, e);
}

/* Until the container ends. */
static int events_follow(const struct ctr *c, int interval_ms, struct errmsg *e)
{
    CLEANUP_CLOSE int end = procid_open(&c->state.gofer);
    uint64_t kills = cgroup_stats_oom_kills(&c->cgroup), now;
    if (end < 0)
        return end == -ESRCH ? 0 : errmsg_set(e, end, "watch the container: %s", errtext(end));
    for (int left = interval_ms, r = 0; r == 0;) {
        int wait = left < EVENTS_OOM_MS ? left : EVENTS_OOM_MS;
        struct pollfd p = {.fd = end, .events = POLLIN};
        int ended = poll(&p, 1, wait);
        if (ended < 0 && errno != EINTR)
            return errmsg_set(e, -errno, "watch the container: %s", errtext(errno));
        if (ended > 0)
            return 0;
        now = cgroup_stats_oom_kills(&c->cgroup);
        for (; r == 0 && kills < now; kills++)
            r = events_oom(c, e);
        left -= wait;
        if (r == 0 && left <= 0) {
            r = events_stats(c, e);
            left = interval_ms;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int cmd_events_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *interval = cli_value(args, "interval");
    int interval_ms = 5000;
    struct ctr c;
    if (interval && events_parse_interval(interval, &interval_ms) < 0)
        return errmsg_set(e, -EINVAL, "--interval: \"%s\" is not a duration such as 500ms, 5s, 1m", interval);
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    if (c.status == OCISTATE_STOPPED)
        r = errmsg_set(e, -ESRCH, "container with id %s is not running", c.id);
    else if (cli_set(args, "stats"))
        r = events_stats(&c, e);
    else
        r = events_follow(&c, interval_ms, e);
    ctr_close(&c);
    return r;
}

static const struct cli_flag cmd_events_flags[] = {
    {"interval", 0, true, "5s", "set the stats collection interval"},
    {"stats", 0, false, NULL, "display the container's stats then exit"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_events_verb = {
    .name = "events",
    .summary = "display container events such as OOM notifications, cpu, memory, and IO usage statistics",
    .arguments = "<container-id>",
    .description = "Numbers are those of the container's cgroup as the host counts it, with the few tasks of the sandbox that are\n"
                   "in it. \"layer\" is what the container's changes of its file systems take on disk.",
    .flags = cmd_events_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_events_run,
};
