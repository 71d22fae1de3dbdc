/* SPDX-License-Identifier: Apache-2.0 */
/* pause: freezes every process of a container. */
#include "runtime/verbs.h"

#include <errno.h>

#include "runtime/ctr.h"

static int cmd_pause_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    if (c.status != OCISTATE_RUNNING && c.status != OCISTATE_CREATED)
        r = errmsg_set(e, -EINVAL, "container not running");
    else
        r = cgroup_freeze(&c.cgroup, true, e);
    ctr_close(&c);
    return r;
}

const struct cli_verb cmd_pause_verb = {
    .name = "pause",
    .summary = "pause suspends all processes inside the container",
    .arguments = "<container-id>",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_pause_run,
};
