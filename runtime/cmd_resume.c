/* SPDX-License-Identifier: Apache-2.0 */
/* resume: lets a paused container go on. */
#include "runtime/verbs.h"

#include <errno.h>

#include "runtime/ctr.h"

static int cmd_resume_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    if (c.status != OCISTATE_PAUSED)
        r = errmsg_set(e, -EINVAL, "container not paused");
    else
        r = cgroup_freeze(&c.cgroup, false, e);
    ctr_close(&c);
    return r;
}

const struct cli_verb cmd_resume_verb = {
    .name = "resume",
    .summary = "resumes all processes that have been previously paused",
    .arguments = "<container-id>",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_resume_run,
};
