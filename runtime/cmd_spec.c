/* SPDX-License-Identifier: Apache-2.0 */
/* spec: writes a config.json to start from. */
#include "runtime/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "oci/spec_template.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"

static int cmd_spec_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *bundle = cli_value(args, "bundle");
    CLEANUP_CLOSE int dir = open(bundle ? bundle : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errmsg_set(e, -errno, "chdir %s: %s", bundle ? bundle : ".", errtext(errno));
    CLEANUP_BUF struct buf out = {.data = NULL};
    spec_template_write(&out, cli_set(args, "rootless"), geteuid(), getegid());
    if (buf_error(&out) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    CLEANUP_CLOSE int fd = openat(dir, "config.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return errmsg_set(e, -EEXIST, "File config.json exists. Remove it first");
    int r = fd < 0 ? -errno : host_write_all(fd, out.data, out.size);
    return r < 0 ? errmsg_set(e, r, "open config.json: %s", errtext(r)) : 0;
}

static const struct cli_flag cmd_spec_flags[] = {
    {"bundle", 'b', true, NULL, "path to the root of the bundle directory"},
    {"rootless", 0, false, NULL, "generate a configuration for a rootless container"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_spec_verb = {
    .name = "spec",
    .summary = "create a new specification file",
    .arguments = "",
    .flags = cmd_spec_flags,
    .min_args = 0,
    .max_args = 0,
    .run = cmd_spec_run,
};
