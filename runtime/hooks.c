/* SPDX-License-Identifier: Apache-2.0 */
/* Running hooks: state on standard input, output kept for the error message, a time limit. */
#include "runtime/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/confine.h"
#include "runtime/errtext.h"
#include "runtime/namespaces.h"

enum { HOOKS_OUTPUT_MAX = 1 << 16, HOOKS_STREAMS = 2 };

struct hooks_run {
    const struct oci_hook *hook;
    int stdin_fd;
    int out_read[HOOKS_STREAMS], out_write[HOOKS_STREAMS]; /* stdout, stderr */
    int exec_read, exec_write; /* errno of a failed exec */
    pid_t enter_pid;
    const char *cwd;
    struct buf output[HOOKS_STREAMS];
};

static void hooks_run_close(struct hooks_run *run)
{
    host_close(run->stdin_fd);
    host_close(run->exec_read);
    host_close(run->exec_write);
    for (int i = 0; i < HOOKS_STREAMS; i++) {
        host_close(run->out_read[i]);
        host_close(run->out_write[i]);
        buf_free(&run->output[i]);
    }
}

static int hooks_run_open(struct hooks_run *run, const struct buf *state, struct errmsg *e)
{
    run->stdin_fd = memfd_create("state", MFD_CLOEXEC);
    if (run->stdin_fd < 0)
        return errmsg_set(e, -errno, "memfd: %s", errtext(errno));
    int r = host_write_all(run->stdin_fd, state->data, state->size);
    if (r < 0 || lseek(run->stdin_fd, 0, SEEK_SET) < 0)
        return errmsg_set(e, r < 0 ? r : -errno, "write the state for a hook");
    for (int i = 0; i < HOOKS_STREAMS; i++) {
        int p[2];
        if (pipe2(p, O_CLOEXEC) < 0)
            return errmsg_set(e, -errno, "pipe: %s", errtext(errno));
        run->out_read[i] = p[0];
        run->out_write[i] = p[1];
    }
    int p[2];
    if (pipe2(p, O_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "pipe: %s", errtext(errno));
    run->exec_read = p[0];
    run->exec_write = p[1];
    return 0;
}

NORETURN static void hooks_child(const struct hooks_run *run)
{
    extern char **environ;
    const struct oci_hook *hook = run->hook;
    struct errmsg e;
    int err = EPERM;
    confine_reset_signals();
    setpgid(0, 0); /* so that a time-out reaches what the hook started */
    if (run->enter_pid <= 0 || namespaces_enter_pid(run->enter_pid, &e) == 0) {
        if (chdir(run->cwd) == 0 && dup2(run->stdin_fd, 0) >= 0 && dup2(run->out_write[0], 1) >= 0 &&
            dup2(run->out_write[1], 2) >= 0) {
            char *const plain[] = {(char *)hook->path, NULL};
            execve(hook->path, hook->args.len ? (char *const *)hook->args.v : plain,
                   hook->env.len ? (char *const *)hook->env.v : environ);
        }
        err = errno;
    }
    ssize_t n = write(run->exec_write, &err, sizeof(err));
    _exit(n == sizeof(err) ? 127 : 126);
}

/* Collects output until the hook is gone. Return: 0, −ETIMEDOUT, −errno. */
static int hooks_collect(struct hooks_run *run, int pidfd, uint64_t deadline_ns)
{
    for (;;) {
        int left_ms = -1;
        if (deadline_ns) {
            uint64_t now = host_monotonic_ns();
            if (now >= deadline_ns)
                return -ETIMEDOUT;
            left_ms = (int)((deadline_ns - now) / 1000000u) + 1;
        }
        struct pollfd p[] = {{.fd = run->out_read[0], .events = POLLIN},
                             {.fd = run->out_read[1], .events = POLLIN},
                             {.fd = pidfd, .events = POLLIN}};
        if (poll(p, ARRAY_SIZE(p), left_ms) < 0 && errno != EINTR)
            return -errno;
        bool idle = true;
        for (int i = 0; i < HOOKS_STREAMS; i++) {
            if (!p[i].revents)
                continue;
            char chunk[4096];
            ssize_t n = read(run->out_read[i], chunk, sizeof(chunk));
            if (n <= 0) {
                host_close(TAKE_FD(run->out_read[i]));
                continue;
            }
            idle = false;
            if (run->output[i].size < HOOKS_OUTPUT_MAX)
                buf_append(&run->output[i], chunk, (size_t)n);
        }
        /* A child of the hook may keep the pipes open: the hook's own end is what counts. */
        if (p[2].revents && idle)
            return 0;
    }
}

static int hooks_describe(struct hooks_run *run, int status, struct errmsg *e)
{
    char how[64];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status))
        snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
    else
        snprintf(how, sizeof(how), "signal: %s", strsignal(WTERMSIG(status)));
    return errmsg_set(e, -ECANCELED, "error running hook: %s, stdout: %s, stderr: %s", how,
                      run->output[0].data ? run->output[0].data : "",
                      run->output[1].data ? run->output[1].data : "");
}

static int hooks_wait(struct hooks_run *run, pid_t pid, struct errmsg *e)
{
    int exec_err = 0, status = 0;
    if (read(run->exec_read, &exec_err, sizeof(exec_err)) == sizeof(exec_err)) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        return errmsg_set(e, -exec_err, "fork/exec %s: %s", run->hook->path, errtext(exec_err));
    }
    CLEANUP_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    unsigned timeout_s = run->hook->timeout_s;
    uint64_t deadline = timeout_s ? host_monotonic_ns() + timeout_s * UINT64_C(1000000000) : 0;
    int r = pidfd < 0 ? -errno : hooks_collect(run, pidfd, deadline);
    if (r < 0)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (r == -ETIMEDOUT)
        return errmsg_set(e, r, "hook ran past specified timeout of %u.0s", timeout_s);
    if (r < 0)
        return errmsg_set(e, r, "wait for a hook: %s", errtext(r));
    return hooks_describe(run, status, e);
}

static int hooks_run_one(const struct oci_hook *hook, const struct buf *state, const char *cwd,
                         pid_t enter_pid, struct errmsg *e)
{
    struct hooks_run run = {.hook = hook, .stdin_fd = -1, .out_read = {-1, -1}, .out_write = {-1, -1},
                            .exec_read = -1, .exec_write = -1, .enter_pid = enter_pid, .cwd = cwd};
    int r = hooks_run_open(&run, state, e);
    if (r == 0) {
        pid_t pid = fork();
        if (pid == 0)
            hooks_child(&run);
        if (pid < 0) {
            r = errmsg_set(e, -errno, "fork: %s", errtext(errno));
        } else {
            host_close(TAKE_FD(run.exec_write));
            host_close(TAKE_FD(run.out_write[0]));
            host_close(TAKE_FD(run.out_write[1]));
            r = hooks_wait(&run, pid, e);
        }
    }
    hooks_run_close(&run);
    return r;
}

int hooks_run(const struct oci_spec *spec, enum oci_hook_kind kind, const struct ocistate *state,
              pid_t enter_pid, struct errmsg *e)
{
    const struct oci_hooks *hooks = &spec->hooks[kind];
    if (!hooks->len)
        return 0;
    CLEANUP_BUF struct buf text = {.data = NULL};
    struct ocistate plain = *state;
    plain.rootfs = plain.owner = NULL;
    plain.created = (struct timespec){.tv_sec = 0};
    ocistate_write(&text, &plain, NULL);
    if (buf_error(&text) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < hooks->len; i++) {
        int r = hooks_run_one(&hooks->v[i], &text, state->bundle, enter_pid, e);
        if (r < 0)
            return errmsg_prefix(e, r, "error running hook #%u", i);
    }
    return 0;
}
