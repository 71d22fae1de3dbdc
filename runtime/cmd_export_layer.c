/* SPDX-License-Identifier: Apache-2.0 */
/* export-layer: what a container has changed in its root file system, as an image layer. */
#include "runtime/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"
#include "runtime/layer_export.h"

static int export_to(const struct ctr *c, const char *output, struct errmsg *e)
{
    if (!output) {
        if (isatty(STDOUT_FILENO))
            return errmsg_set(e, -EINVAL, "refusing to write an archive to a terminal: use --output or a pipe");
        return layer_export(c->state.layer, c->state.rootfs, STDOUT_FILENO, e);
    }
    CLEANUP_CLOSE int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errmsg_set(e, -errno, "open %s: %s", output, errtext(errno));
    int r = layer_export(c->state.layer, c->state.rootfs, fd, e);
    /* Half an archive is none. What is no file was there before. */
    struct stat st;
    if (r < 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        (void)unlink(output);
    return r;
}

static int cmd_export_layer_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    struct ctr c;
    int r = ctr_open(cli, args->argv[0], &c, e);
    if (r < 0)
        return r;
    if (!c.state.layer[0])
        r = errmsg_set(e, -ENOENT, "container %s has no layer on disk (see --overlay of create and run)", c.id);
    else
        r = export_to(&c, cli_value(args, "output"), e);
    ctr_close(&c);
    return r;
}

static const struct cli_flag cmd_export_layer_flags[] = {
    {"output", 'o', true, NULL, "write to a file, instead of standard output"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_export_layer_verb = {
    .name = "export-layer",
    .summary = "write what a container has changed in its root file system as an OCI image layer",
    .arguments = "<container-id>",
    .description = "The archive is of the media type application/vnd.oci.image.layer.v1.tar. A running container may change\n"
                   "files while they are read: pause it first for an image of one moment.",
    .flags = cmd_export_layer_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_export_layer_run,
};
