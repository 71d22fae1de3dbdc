/* SPDX-License-Identifier: Apache-2.0 */
/* create: makes a container that waits for start. */
#include "runtime/verbs.h"

#include "runtime/create_flags.h"

static const struct cli_flag cmd_create_flags[] = {
    CREATE_FLAGS,
    {NULL, 0, false, NULL, NULL},
};

static int cmd_create_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    struct ctr_create how;
    int r = create_flags_read(args, &how, e);
    if (r < 0)
        return r;
    struct ctr_new n;
    r = ctr_create(cli, &how, &n, e);
    if (r < 0)
        return errmsg_prefix(e, r, "cloister create failed");
    ctr_new_close(&n);
    return 0;
}

const struct cli_verb cmd_create_verb = {
    .name = "create",
    .summary = "create a container",
    .arguments = "<container-id>",
    .description = "The bundle is a directory with a file config.json and usually the root file system.",
    .flags = cmd_create_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_create_run,
};
