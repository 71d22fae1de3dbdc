/* SPDX-License-Identifier: Apache-2.0 */
/* Existing containers: found, looked at, started, signalled, destroyed. */
#include "runtime/ctr.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/control.h"
#include "runtime/errtext.h"
#include "runtime/hooks.h"
#include "runtime/layer_store.h"

enum {
    CTR_STATE_TIMEOUT_MS = 2000,   /* the sentry's answer to "what are you doing" */
    CTR_KILL_TIMEOUT_MS = 10000,   /* its answer to a signal, before it is killed itself */
    CTR_GONE_TIMEOUT_MS = 20000,   /* end of a killed process */
};

/* What the container is doing, from the file, the processes and, where these can disagree, the sentry. */
static enum ocistate_status ctr_status(const struct ctr *c)
{
    const struct statefile *s = &c->state;
    if (s->status == OCISTATE_CREATING)
        return procid_alive(&s->creator) ? OCISTATE_CREATING : OCISTATE_STOPPED;
    if (!procid_alive(&s->gofer) || !procid_alive(&s->sentry))
        return OCISTATE_STOPPED;
    if (c->cgroup.len && cgroup_is_frozen(&c->cgroup) == 1)
        return OCISTATE_PAUSED;
    if (s->status != OCISTATE_CREATED)
        return s->status;
    /* A start that was killed between the sentry's doing and the file's saying so. */
    struct errmsg ignored;
    int r = control_call(c->dir, CONTROL_STATE, NULL, CTR_STATE_TIMEOUT_MS, &ignored);
    if (r == CONTROL_RUNNING)
        return OCISTATE_RUNNING;
    return r == CONTROL_EXITING ? OCISTATE_STOPPED : OCISTATE_CREATED;
}

int ctr_open(const struct cli *cli, const char *id, struct ctr *ret_ctr, struct errmsg *e)
{
    struct ctr c = {.id = id, .dir = statefile_open_dir(cli->root, id, e)};
    if (c.dir < 0)
        return c.dir;
    int r = statefile_read(c.dir, &c.state, e);
    if (r == 0) {
        r = cgroup_decode(c.state.cgroup_dirs, c.state.cgroup_dirs_len, &c.cgroup);
        if (r < 0)
            errmsg_set(e, r, "read the container's cgroups: %s", errtext(r));
    }
    if (r < 0) {
        ctr_close(&c);
        return r;
    }
    c.status = ctr_status(&c);
    *ret_ctr = c;
    return 0;
}

void ctr_close(struct ctr *c)
{
    host_close(c->dir);
    c->dir = -1;
    statefile_free(&c->state);
    cgroup_free(&c->cgroup);
}

void ctr_describe(const struct ctr *c, struct ocistate *ret_state)
{
    *ret_state = (struct ocistate){
        .oci_version = c->state.oci_version,
        .id = c->id,
        .pid = c->status == OCISTATE_STOPPED ? 0 : c->state.gofer.pid,
        .status = c->status,
        .bundle = c->state.bundle,
        .annotations = c->state.annotations,
        .rootfs = c->state.rootfs,
        .created = c->state.created,
        .owner = c->state.owner,
    };
}

/* The spec that the container was made from. */
static int ctr_read_spec(const struct ctr *c, struct oci_spec **ret_spec, struct errmsg *e)
{
    CLEANUP_FREE char *json = NULL;
    size_t size;
    int r = statefile_read_config(c->dir, &json, &size, e);
    return r < 0 ? r : oci_spec_parse(json, size, ret_spec, e);
}

/* Runs hooks of a kind; the state says `status`. */
static int ctr_run_hooks(const struct ctr *c, enum oci_hook_kind kind, enum ocistate_status status,
                         struct errmsg *e)
{
    struct oci_spec *spec = NULL;
    int r = ctr_read_spec(c, &spec, e);
    if (r < 0)
        return r;
    struct ocistate state;
    ctr_describe(c, &state);
    state.status = status;
    if (status == OCISTATE_STOPPED)
        state.pid = 0;
    r = hooks_run(spec, kind, &state, 0, e);
    oci_spec_free(spec);
    return r;
}

int ctr_start(struct ctr *c, struct errmsg *e)
{
    switch (c->status) {
    case OCISTATE_CREATED:
        break;
    case OCISTATE_STOPPED:
        return errmsg_set(e, -EINVAL, "cannot start a container that has stopped");
    case OCISTATE_RUNNING:
        return errmsg_set(e, -EINVAL, "cannot start an already running container");
    default:
        return errmsg_set(e, -EINVAL, "cannot start a container in the %s state",
                          ocistate_status_name(c->status));
    }
    int r = control_call(c->dir, CONTROL_START, NULL, -1, e);
    if (r < 0)
        return r;
    c->state.status = c->status = OCISTATE_RUNNING;
    r = statefile_write(c->dir, &c->state, e);
    if (r < 0)
        return r;
    r = ctr_run_hooks(c, OCI_HOOK_POSTSTART, OCISTATE_RUNNING, e);
    if (r < 0) {
        struct errmsg ignored;
        if (ctr_kill(c, SIGKILL, true, &ignored) < 0)
            log_debug("kill after a failed hook: %s", ignored.text);
    }
    return r;
}

/* Ends the host processes, whatever they are doing. */
static int ctr_kill_processes(const struct ctr *c, struct errmsg *e)
{
    const struct procid *const all[] = {&c->state.sentry, &c->state.gofer};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        int r = procid_kill(all[i], SIGKILL);
        if (r < 0 && r != -ESRCH)
            return errmsg_set(e, r, "kill process %d: %s", (int)all[i]->pid, errtext(r));
    }
    return 0;
}

int ctr_kill(struct ctr *c, int signo, bool all, struct errmsg *e)
{
    if (c->status == OCISTATE_STOPPED)
        return all ? 0 : errmsg_set(e, -ESRCH, "container not running");
    if (c->status == OCISTATE_CREATING)
        return errmsg_set(e, -EBUSY, "container not running");
    const int32_t args[CONTROL_ARGS] = {signo, all};
    int r = control_call(c->dir, CONTROL_KILL, args, CTR_KILL_TIMEOUT_MS, e);
    if (r == -EPIPE || r == -ECONNREFUSED || r == -ENOENT)
        return errmsg_set(e, -ESRCH, "container not running"); /* it ended just now */
    if (r < 0 && signo == SIGKILL) {
        log_warn("the sentry does not answer (%s): killing it", e->text);
        r = ctr_kill_processes(c, e);
    } else if (r < 0) {
        return errmsg_prefix(e, r, "unable to signal init");
    }
    /* Frozen processes die only when they thaw. */
    if (r == 0 && signo == SIGKILL && c->status == OCISTATE_PAUSED)
        r = cgroup_freeze(&c->cgroup, false, e);
    return r < 0 ? r : 0;
}

int ctr_destroy(const struct cli *cli, struct ctr *c, bool with_layer, struct errmsg *e)
{
    if (c->state.status == OCISTATE_CREATING && procid_kill(&c->state.creator, 0) == 0 &&
        c->state.creator.pid != getpid()) {
        int r = procid_kill(&c->state.creator, SIGKILL);
        if (r == 0)
            r = procid_wait_gone(&c->state.creator, CTR_GONE_TIMEOUT_MS);
        if (r < 0 && r != -ESRCH)
            return errmsg_set(e, r, "end the creating command: %s", errtext(r));
    }
    int r = ctr_kill_processes(c, e);
    if (r < 0)
        return r;
    if (c->cgroup.len && cgroup_is_frozen(&c->cgroup) == 1) {
        r = cgroup_freeze(&c->cgroup, false, e);
        if (r < 0)
            return r;
    }
    r = procid_wait_gone(&c->state.sentry, CTR_GONE_TIMEOUT_MS);
    if (r == 0)
        r = procid_wait_gone(&c->state.gofer, CTR_GONE_TIMEOUT_MS);
    if (r < 0)
        return errmsg_set(e, r, "could not kill the container's processes: %s", errtext(r));
    r = cgroup_destroy(&c->cgroup, e);
    if (r < 0)
        return r;
    /* Without a saved config the container never came far enough to have run any hook. */
    struct errmsg hook_error;
    if (faccessat(c->dir, "config.json", F_OK, 0) == 0 &&
        ctr_run_hooks(c, OCI_HOOK_POSTSTOP, OCISTATE_STOPPED, &hook_error) < 0)
        log_error("%s", hook_error.text);
    if (c->state.layer[0]) {
        r = layer_store_drop(c->state.layer, c->state.rootfs, c->state.layer_keep && !with_layer, e);
        if (r < 0)
            return r;
    }
    return statefile_remove(cli->root, c->id, c->dir, e);
}

int ctr_absolute(const char *path, char **ret_path)
{
    if (path[0] == '/') {
        *ret_path = mem_strdup(path);
        return *ret_path ? 0 : -ENOMEM;
    }
    char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return -errno;
    CLEANUP_BUF struct buf b = {.data = NULL};
    buf_printf(&b, "%s/%s", cwd, path);
    free(cwd);
    *ret_path = TAKE_PTR(b.data);
    return b.failed ? -ENOMEM : 0;
}
