/* SPDX-License-Identifier: Apache-2.0 */
/* run: creates and starts a container and waits for it. */
#include "runtime/verbs.h"

#include "runtime/create_flags.h"
#include "runtime/run_container.h"

static const struct cli_flag cmd_run_flags[] = {
    CREATE_FLAGS,
    {"detach", 'd', false, NULL, "detach from the container's process"},
    {"keep", 0, false, NULL, "do not delete the container after it exits"},
    {"no-subreaper", 0, false, NULL, "accepted for compatibility; no subreaper is used"},
    {NULL, 0, false, NULL, NULL},
};

static int cmd_run_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    struct ctr_create how;
    int r = create_flags_read(args, &how, e);
    if (r < 0)
        return r;
    how.foreground = !cli_set(args, "detach");
    how.layer_ends = how.foreground && !cli_set(args, "keep");
    r = run_container(cli, &how, cli_set(args, "keep"), e);
    return r < 0 ? errmsg_prefix(e, r, "cloister run failed") : r;
}

const struct cli_verb cmd_run_verb = {
    .name = "run",
    .summary = "create and run a container",
    .arguments = "<container-id>",
    .description = "The bundle is a directory with a file config.json and usually the root file system.\n"
                   "In the foreground the exit status is that of the container's process, or 128 and the\n"
                   "signal that ended it.",
    .flags = cmd_run_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_run_run,
};
