/* SPDX-License-Identifier: Apache-2.0 */
/* A container from its creation to its end. */
#include "runtime/run_container.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/control.h"
#include "runtime/errtext.h"
#include "runtime/foreground.h"

enum { RUN_SENTRY_TIMEOUT_MS = 5000 };

struct run_wait {
    struct ctr *ctr;
    int status;
};

static int run_on_watch(void *arg)
{
    struct run_wait *w = arg;
    pid_t pid = waitpid(w->ctr->state.gofer.pid, &w->status, WNOHANG);
    if (pid < 0)
        return errno == EINTR ? 0 : -errno;
    return pid > 0;
}

static void run_on_signal(void *arg, int signo)
{
    struct run_wait *w = arg;
    struct errmsg e;
    if (ctr_kill(w->ctr, signo, false, &e) < 0)
        log_debug("forward signal %d: %s", signo, e.text);
}

/* Says so when the sentry did not end of its own will: the exit status alone would not tell. */
static void run_reap_sentry(struct ctr_new *n)
{
    struct procid *sentry = &n->ctr.state.sentry;
    struct errmsg e;
    int status;
    if (procid_wait_gone(sentry, RUN_SENTRY_TIMEOUT_MS) < 0 || waitpid(sentry->pid, &status, WNOHANG) <= 0)
        return;
    if (sandbox_describe_status(status, "sentry", &e) < 0)
        log_error("%s", e.text);
}

/* Waits for the end of a started container. Return: its exit status, −errno with a message. */
static int run_wait(struct ctr_new *n, int host_console, struct errmsg *e)
{
    struct run_wait w = {.ctr = &n->ctr};
    CLEANUP_CLOSE int pidfd = procid_open(&n->ctr.state.gofer);
    if (pidfd < 0)
        return errmsg_set(e, pidfd, "watch the container: %s", errtext(pidfd));
    const struct foreground f = {
        .watch_fd = pidfd,
        .on_watch = run_on_watch,
        .on_signal = run_on_signal,
        .arg = &w,
        .master = n->console.master,
        .host_console = host_console,
    };
    int r = foreground_wait(&f, e);
    if (r < 0)
        return r;
    run_reap_sentry(n);
    return WIFSIGNALED(w.status) ? 128 + WTERMSIG(w.status) : WEXITSTATUS(w.status);
}

static int run_destroy(const struct cli *cli, struct ctr_new *n, struct errmsg *e)
{
    if (n->lock < 0)
        n->lock = statefile_lock(n->ctr.dir, true);
    /* Somebody else may have deleted it while it ran. */
    if (n->lock < 0 || faccessat(n->ctr.dir, "state.json", F_OK, 0) < 0)
        return 0;
    return ctr_destroy(cli, &n->ctr, false, e);
}

static int run_in_foreground(const struct cli *cli, struct ctr_new *n, bool keep, struct errmsg *e)
{
    struct termios saved;
    CLEANUP_CLOSE int host_console = -1;
    int r = 0;
    bool raw = false;
    if (n->console.master >= 0) {
        r = host_console = console_host(e);
        if (r >= 0)
            r = console_make_raw(host_console, &saved, e);
        raw = r >= 0;
    }
    if (r >= 0)
        r = ctr_start(&n->ctr, e);
    /* From here on others may work on it too. */
    if (r >= 0) {
        host_close(TAKE_FD(n->lock));
        r = run_wait(n, host_console, e);
    }
    if (raw)
        console_restore(host_console, &saved);
    struct errmsg destroy_error;
    if ((r < 0 || !keep) && run_destroy(cli, n, &destroy_error) < 0) {
        if (r >= 0)
            log_error("%s", destroy_error.text);
    }
    return r;
}

int run_container(const struct cli *cli, const struct ctr_create *how, bool keep, struct errmsg *e)
{
    struct ctr_new n;
    if (how->foreground)
        foreground_block_signals();
    int r = ctr_create(cli, how, &n, e);
    if (r < 0)
        return r;
    if (how->foreground) {
        r = run_in_foreground(cli, &n, keep, e);
    } else {
        r = ctr_start(&n.ctr, e);
        struct errmsg ignored;
        if (r < 0 && run_destroy(cli, &n, &ignored) < 0)
            log_warn("%s", ignored.text);
    }
    ctr_new_close(&n);
    return r;
}
