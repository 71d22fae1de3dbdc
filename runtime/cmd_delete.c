/* SPDX-License-Identifier: Apache-2.0 */
/* delete: removes what a container left on the host. */
#include "runtime/verbs.h"

#include <errno.h>

#include "platform/base/host.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"

/* A directory whose maker was killed before it wrote a state: nothing but the directory exists. */
static int cmd_delete_leftover(const struct cli *cli, const char *id, struct errmsg *e)
{
    CLEANUP_CLOSE int dir = statefile_open_dir(cli->root, id, e);
    if (dir < 0)
        return dir;
    CLEANUP_CLOSE int lock = statefile_lock(dir, false);
    if (lock < 0)
        return errmsg_set(e, lock, "cannot delete container %s that is not stopped: creating", id);
    return statefile_remove(cli->root, id, dir, e);
}

static int cmd_delete_locked(const struct cli *cli, const char *id, bool force, bool with_layer, struct errmsg *e)
{
    struct ctr c;
    int r = ctr_open(cli, id, &c, e);
    if (r < 0)
        return r;
    if (!force && c.status != OCISTATE_STOPPED && c.status != OCISTATE_CREATED)
        r = errmsg_set(e, -EBUSY, "cannot delete container %s that is not stopped: %s", id,
                       ocistate_status_name(c.status));
    else
        r = ctr_destroy(cli, &c, with_layer, e);
    ctr_close(&c);
    return r;
}

/* The creating command holds the lock: only --force may end it, and must do so without the lock. */
static int cmd_delete_creating(const struct cli *cli, const char *id, bool force, struct errmsg *e)
{
    struct ctr c;
    int r = ctr_open(cli, id, &c, e);
    if (r < 0)
        return r;
    if (c.status == OCISTATE_CREATING) {
        if (!force)
            r = errmsg_set(e, -EBUSY, "cannot delete container %s that is not stopped: creating", id);
        else
            r = procid_kill(&c.state.creator, 9);
        if (r == -ESRCH)
            r = 0;
    }
    ctr_close(&c);
    return r;
}

static int cmd_delete_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *id = args->argv[0];
    bool force = cli_set(args, "force");
    int r = cmd_delete_creating(cli, id, force, e);
    if (r == 0) {
        CLEANUP_CLOSE int dir = statefile_open_dir(cli->root, id, e);
        if (dir < 0)
            return dir == -ENOENT && force ? 0 : dir;
        CLEANUP_CLOSE int lock = statefile_lock(dir, true);
        if (lock < 0 && lock != -ENOENT)
            return errmsg_set(e, lock, "lock the container: %s", errtext(lock));
        r = cmd_delete_locked(cli, id, force, cli_set(args, "layer"), e);
    } else if (r == -ENOENT && cmd_delete_leftover(cli, id, &(struct errmsg){.text = ""}) == 0) {
        return 0;
    }
    return r == -ENOENT && force ? 0 : r;
}

static const struct cli_flag cmd_delete_flags[] = {
    {"force", 'f', false, NULL, "forcibly deletes the container if it is still running (uses SIGKILL)"},
    {"layer", 0, false, NULL,
     "remove its layer, too, which is otherwise kept for the next container of this id and root file system"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_delete_verb = {
    .name = "delete",
    .summary = "delete any resources held by the container often used with detached container",
    .arguments = "<container-id>",
    .flags = cmd_delete_flags,
    .min_args = 1,
    .max_args = 1,
    .run = cmd_delete_run,
};
