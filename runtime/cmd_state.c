/* SPDX-License-Identifier: Apache-2.0 */
/* state: prints what a container is doing. */
#include "runtime/verbs.h"

#include <errno.h>
#include <unistd.h>

#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"

static int cmd_state_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    struct ocistate state;
    ctr_describe(&c, &state);
    state.owner = ""; /* as runc leaves it here */
    CLEANUP_BUF struct buf out = {.data = NULL};
    ocistate_write(&out, &state, "  ");
    r = buf_error(&out);
    if (r == 0)
        r = host_write_all(STDOUT_FILENO, out.data, out.size);
    if (r < 0)
        errmsg_set(e, r, "write the state: %s", errtext(r));
    ctr_close(&c);
    return r;
}

const struct cli_verb cmd_state_verb = {
    .name = "state",
    .summary = "output the state of a container",
    .arguments = "<container-id>",
    .min_args = 1,
    .max_args = 1,
    .run = cmd_state_run,
};
