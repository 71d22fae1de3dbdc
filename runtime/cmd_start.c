/* SPDX-License-Identifier: Apache-2.0 */
/* start: runs the program of a created container. */
#include "runtime/verbs.h"

#include <errno.h>

#include "platform/base/host.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"

static int cmd_start_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    CLEANUP_CLOSE int dir = statefile_open_dir(cli->root, args->argv[0], e);
    if (dir < 0)
        return dir;
    CLEANUP_CLOSE int lock = statefile_lock(dir, true);
    if (lock < 0)
        return lock == -ENOENT ? errmsg_set(e, lock, "container does not exist")
                               : errmsg_set(e, lock, "lock the container: %s", errtext(lock));
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    r = ctr_start(&c, e);
    ctr_close(&c);
    return r;
}

const struct cli_verb cmd_start_verb = {
    .name = "start",
    .summary = "executes the user defined process in a created container",
    .arguments = "<container-id>",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_start_run,
};
