/* SPDX-License-Identifier: Apache-2.0 */
/* ps: prints the container's processes, by the pids they have inside. */
#include "runtime/verbs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/control.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"

static int cmd_ps_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *format = cli_value(args, "format");
    format = format ? format : "table";
    bool json = strcmp(format, "json") == 0;
    if (!json && strcmp(format, "table") != 0)
        return errmsg_set(e, -EINVAL, "invalid format option");
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    CLEANUP_FREE int32_t *pids = NULL;
    int len = c.status == OCISTATE_STOPPED ? 0 : control_ps(c.dir, &pids, e);
    ctr_close(&c);
    if (len < 0)
        return len;
    CLEANUP_BUF struct buf out = {.data = NULL};
    buf_puts(&out, json ? "[" : "PID\n");
    for (int i = 0; i < len; i++)
        buf_printf(&out, json ? "%s%d" : "%.0s%d\n", i ? "," : "", pids[i]);
    if (json)
        buf_puts(&out, "]\n");
    r = buf_error(&out);
    if (r == 0)
        r = host_write_all(STDOUT_FILENO, out.data, out.size);
    return r < 0 ? errmsg_set(e, r, "write the list: %s", errtext(r)) : 0;
}

static const struct cli_flag cmd_ps_flags[] = {
    {"format", 'f', true, "\"table\"", "select one of: table or json"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_ps_verb = {
    .name = "ps",
    .summary = "ps displays the processes running inside a container",
    .arguments = "<container-id>",
    .flags = cmd_ps_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_ps_run,
};
