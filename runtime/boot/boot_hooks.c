/* SPDX-License-Identifier: Apache-2.0 */
/* startContainer hooks: programs of the container's own file system, run inside it before its own. */
#include "runtime/boot/boot_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oci/ocistate.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "runtime/errtext.h"
#include "sentry/core/fiber.h"
#include "sentry/core/ktimer.h"

/* A running hook. On the waiting fiber's stack. */
struct boot_hook_wait {
    struct ktimer timer;
    struct boot *boot;
    struct fiber *fiber;
    int pid; /* guest pid; 0: not yet known or ended */
    int status;
    bool done, timed_out;
};

static void boot_hook_on_exit(void *arg, int wait_status)
{
    struct boot_hook_wait *w = arg;
    w->status = wait_status;
    w->pid = 0;
    w->done = true;
    fiber_ready(w->fiber);
}

static void boot_hook_on_timeout(struct ktimer *t)
{
    struct boot_hook_wait *w = container_of(t, struct boot_hook_wait, timer);
    w->timed_out = true;
    if (w->pid && sentry_container_kill_pid(w->boot->container, w->pid, SIGKILL) < 0)
        w->pid = 0;
}

/* The state document on a descriptor that the hook can read to its end. */
static int boot_hook_stdin(const struct boot *b)
{
    CLEANUP_BUF struct buf text = {.data = NULL};
    const struct ocistate state = {
        .oci_version = b->spec->oci_version,
        .id = b->params.id,
        .pid = 1, /* as seen where the hook runs */
        .status = OCISTATE_CREATED,
        .bundle = "/",
        .annotations = b->spec->annotations,
    };
    ocistate_write(&text, &state, NULL);
    if (buf_error(&text) < 0)
        return -ENOMEM;
    CLEANUP_CLOSE int fd = memfd_create("state", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : host_write_all(fd, text.data, text.size);
    if (r < 0)
        return r;
    return lseek(fd, 0, SEEK_SET) < 0 ? -errno : TAKE_FD(fd);
}

static int boot_hook_run(struct boot *b, const struct oci_hook *hook, struct errmsg *e)
{
    const char *const plain[] = {hook->path, NULL}, *const no_env[] = {NULL};
    const struct oci_process *init = &b->spec->process;
    struct boot_hook_wait w = {.boot = b, .fiber = fiber_current()};
    int in = boot_hook_stdin(b);
    if (in < 0)
        return errmsg_set(e, in, "write the state for a hook: %s", errtext(in));
    /* argv[0] decides which program runs, and a hook's is its path. */
    CLEANUP_FREE const char **argv = NEW_ARRAY(const char *, hook->args.len + 2);
    if (!argv) {
        host_close(in);
        return errmsg_set(e, -ENOMEM, "out of memory");
    }
    memcpy(argv, hook->args.len ? hook->args.v : plain, MAX(hook->args.len, 1u) * sizeof(*argv));
    argv[0] = hook->path;
    const struct sentry_process p = {
        .argv = (char *const *)argv,
        .envp = (char *const *)(hook->env.len ? hook->env.v : no_env),
        .cwd = "/",
        .umask = UINT32_MAX,
        .cap_effective = init->capabilities.effective,
        .cap_permitted = init->capabilities.permitted,
        .cap_inheritable = init->capabilities.inheritable,
        .cap_bounding = init->capabilities.bounding,
        .stdio = {in, -1, -1},
        .console = -1,
    };
    int r = sentry_container_exec(b->container, &p, e, boot_hook_on_exit, &w);
    if (r < 0)
        return errmsg_prefix(e, r, "fork/exec %s", hook->path);
    w.pid = w.done ? 0 : r;
    if (hook->timeout_s &&
        ktimer_set(&w.timer, host_monotonic_ns() + hook->timeout_s * UINT64_C(1000000000),
                   boot_hook_on_timeout) < 0)
        boot_hook_on_timeout(&w.timer); /* without a timer there is no time */
    while (!w.done)
        fiber_park();
    ktimer_cancel(&w.timer);
    if (w.timed_out)
        return errmsg_set(e, -ETIMEDOUT, "hook ran past specified timeout of %u.0s", hook->timeout_s);
    if (WIFEXITED(w.status) && WEXITSTATUS(w.status) == 0)
        return 0;
    if (WIFEXITED(w.status))
        return errmsg_set(e, -ECANCELED, "error running hook: exit status %d", WEXITSTATUS(w.status));
    return errmsg_set(e, -ECANCELED, "error running hook: signal: %s", strsignal(WTERMSIG(w.status)));
}

int boot_hooks_start_container(struct boot *b, struct errmsg *e)
{
    const struct oci_hooks *hooks = &b->spec->hooks[OCI_HOOK_START_CONTAINER];
    for (unsigned i = 0; i < hooks->len; i++) {
        int r = boot_hook_run(b, &hooks->v[i], e);
        if (r < 0)
            return errmsg_prefix(e, r, "error running hook #%u", i);
    }
    return 0;
}
