/* SPDX-License-Identifier: Apache-2.0 */
/* features: prints what this runtime can do. */
#include "runtime/verbs.h"

#include <unistd.h>

#include "oci/features.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"

static int cmd_features_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const struct features features = {
        .cgroup_v1 = true,
        .cgroup_v2 = true,
        .seccomp = true,
        .version = CLOISTER_VERSION,
    };
    CLEANUP_BUF struct buf out = {.data = NULL};
    features_write(&out, &features);
    int r = buf_error(&out);
    if (r == 0)
        r = host_write_all(STDOUT_FILENO, out.data, out.size);
    return r < 0 ? errmsg_set(e, r, "write the features: %s", errtext(r)) : 0;
}

const struct cli_verb cmd_features_verb = {
    .name = "features",
    .summary = "show the enabled features",
    .arguments = "",
    .min_args = 0,
    .max_args = 0,
    .run = cmd_features_run,
};
