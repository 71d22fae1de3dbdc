/* SPDX-License-Identifier: Apache-2.0 */
/* exec: runs a further program in a container. Whoever started it sees a host process, this command or
 * with --detach a small waiter, that ends as the program does and dies with it; if that process is
 * killed, so is the program. */
#include "runtime/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/console.h"
#include "runtime/control.h"
#include "runtime/ctr.h"
#include "runtime/errtext.h"
#include "runtime/exec_process.h"
#include "runtime/foreground.h"

enum { CMD_EXEC_FAILURE = 255 };

struct exec_run {
    struct ctr ctr;
    int process; /* memfd of the process.json */
    bool terminal;
    struct console console;
    const char *console_socket;
    unsigned preserve_fds;
    int sock;
    int status; /* wait status once it has exited */
};

static int exec_check_state(const struct ctr *c, bool ignore_paused, struct errmsg *e)
{
    switch (c->status) {
    case OCISTATE_RUNNING:
    case OCISTATE_CREATED:
        return 0;
    case OCISTATE_PAUSED:
        if (ignore_paused)
            return 0;
        return errmsg_set(e, -EINVAL,
                          "cannot exec in a paused container (use --ignore-paused to override)");
    default:
        return errmsg_set(e, -EINVAL, "cannot exec in a stopped container");
    }
}

static int exec_prepare(struct exec_run *x, const struct cli_args *args, bool detach, struct errmsg *e)
{
    CLEANUP_BUF struct buf json = {.data = NULL};
    int r = exec_process_build(&x->ctr, args, &json, &x->terminal, e);
    if (r < 0)
        return r;
    x->process = memfd_create("process.json", MFD_CLOEXEC);
    r = x->process < 0 ? -errno : host_write_all(x->process, json.data, json.size);
    if (r < 0)
        return errmsg_set(e, r, "write the process for the sentry: %s", errtext(r));
    if (detach && x->terminal && !x->console_socket)
        return errmsg_set(e, -EINVAL,
                          "cannot allocate tty if cloister will detach without setting console socket");
    if (x->console_socket && (!detach || !x->terminal))
        return errmsg_set(e, -EINVAL,
                          "cannot use console socket if cloister will not detach or allocate tty");
    if (!x->terminal)
        return 0;
    r = console_new(0, 0, &x->console, e);
    if (r == 0 && x->console_socket)
        r = console_send(&x->console, x->console_socket, e);
    return r;
}

/* Asks the sentry to start it. Return: guest pid, −errno with a message. */
static int exec_start(struct exec_run *x, struct errmsg *e)
{
    int fds[CONTROL_FDS_MAX], len = 0;
    int32_t args[CONTROL_ARGS] = {0};
    fds[len++] = x->process;
    if (x->terminal) {
        uint16_t rows = 0, cols = 0;
        if (console_get_size(x->console.slave, &rows, &cols) < 0)
            rows = cols = 0;
        args[0] = CONTROL_EXEC_TERMINAL;
        args[1] = rows;
        args[2] = cols;
        fds[len++] = x->console.slave;
    } else {
        args[0] = CONTROL_EXEC_STDIN | CONTROL_EXEC_STDOUT | CONTROL_EXEC_STDERR;
        for (int fd = 0; fd <= 2; fd++)
            fds[len++] = fd;
    }
    for (unsigned i = 0; i < x->preserve_fds; i++)
        fds[len++] = 3 + (int)i;
    args[3] = (int32_t)x->preserve_fds;
    x->sock = control_connect(x->ctr.dir);
    if (x->sock < 0)
        return errmsg_set(e, x->sock, "cannot exec in a stopped container");
    struct control_reply reply;
    int r = control_send(x->sock, CONTROL_EXEC, args, fds, (unsigned)len);
    if (r == 0)
        r = control_recv(x->sock, &reply);
    if (r == 0 && reply.kind != CONTROL_REPLY)
        r = -EPROTO;
    if (r < 0)
        return errmsg_set(e, r, "ask the sentry: %s", errtext(r));
    if (reply.result < 0)
        return errmsg_set(e, reply.result, "unable to start container process: %s",
                          reply.size ? reply.data : errtext(reply.result));
    host_close(TAKE_FD(x->console.slave));
    return reply.result;
}

static int exec_on_watch(void *arg)
{
    struct exec_run *x = arg;
    struct control_reply reply;
    int r = control_recv(x->sock, &reply);
    if (r == -EPIPE) {
        x->status = SIGKILL; /* the container is gone, and so is the program */
        return 1;
    }
    if (r < 0)
        return r;
    if (reply.kind != CONTROL_EXITED)
        return 0; /* answers to signals and sizes */
    x->status = reply.result;
    return 1;
}

static void exec_on_signal(void *arg, int signo)
{
    struct exec_run *x = arg;
    const int32_t args[CONTROL_ARGS] = {signo};
    int r = control_send(x->sock, CONTROL_SIGNAL, args, NULL, 0);
    if (r < 0)
        log_debug("forward signal %d: %s", signo, errtext(r));
}

static void exec_on_resize(void *arg, unsigned rows, unsigned cols)
{
    struct exec_run *x = arg;
    const int32_t args[CONTROL_ARGS] = {(int32_t)rows, (int32_t)cols};
    int r = control_send(x->sock, CONTROL_RESIZE, args, NULL, 0);
    if (r < 0)
        log_debug("resize: %s", errtext(r));
}

static int exec_wait(struct exec_run *x, int master, int host_console, struct errmsg *e)
{
    const struct foreground f = {
        .watch_fd = x->sock,
        .on_watch = exec_on_watch,
        .on_signal = exec_on_signal,
        .on_resize = exec_on_resize,
        .arg = x,
        .master = master,
        .host_console = host_console,
    };
    return foreground_wait(&f, e);
}

static int exec_in_foreground(struct exec_run *x, const char *pid_file, struct errmsg *e)
{
    struct termios saved;
    CLEANUP_CLOSE int host_console = -1;
    foreground_block_signals();
    if (x->terminal) {
        host_console = console_host(e);
        if (host_console < 0)
            return host_console;
        uint16_t rows, cols;
        int r = console_get_size(host_console, &rows, &cols);
        if (r == 0)
            r = console_set_size(x->console.master, rows, cols);
        if (r < 0)
            return errmsg_set(e, r, "size the console: %s", errtext(r));
    }
    int r = exec_start(x, e);
    if (r >= 0 && pid_file)
        r = ctr_write_pid_file(pid_file, getpid(), e);
    if (r >= 0 && x->terminal)
        r = console_make_raw(host_console, &saved, e);
    if (r < 0)
        return r;
    r = exec_wait(x, x->console.master, host_console, e);
    if (x->terminal)
        console_restore(host_console, &saved);
    if (r < 0)
        return r;
    return WIFSIGNALED(x->status) ? 128 + WTERMSIG(x->status) : WEXITSTATUS(x->status);
}

/* Ends this process as the program ended. */
NORETURN static void exec_end_as(int status)
{
    if (WIFSIGNALED(status)) {
        const struct rlimit none = {1, 1};
        setrlimit(RLIMIT_CORE, &none);
        signal(WTERMSIG(status), SIG_DFL);
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* The waiter of a detached exec. Tells the command through result: a guest pid, or −errno and text. */
NORETURN static void exec_waiter(struct exec_run *x, int result)
{
    struct errmsg e = {.text = ""};
    setsid();
    foreground_block_signals();
    struct control_reply reply = {.kind = CONTROL_REPLY};
    /* Its share of memory and time is the container's, and whoever reads its cgroup finds it there. */
    int r = cgroup_add(&x->ctr.cgroup, getpid(), &e);
    if (r == 0 && x->terminal && ioctl(x->console.slave, TIOCSCTTY, 0) < 0)
        r = errmsg_set(&e, -errno, "take the console: %s", errtext(errno));
    int console = x->terminal ? fcntl(x->console.slave, F_DUPFD_CLOEXEC, 3) : -1;
    if (r == 0)
        r = exec_start(x, &e);
    reply.result = r;
    reply.size = (uint32_t)snprintf(reply.data, sizeof(reply.data), "%s", e.text);
    if (host_write_all(result, &reply, sizeof(reply)) < 0 || r < 0)
        _exit(CMD_EXEC_FAILURE);
    host_close(result);
    host_close(x->console.master);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    for (unsigned i = 0; i < x->preserve_fds; i++)
        close(3 + (int)i);
    log_setup(-1, LOG_FORMAT_TEXT, LOG_LEVEL_ERROR);
    if (exec_wait(x, -1, console, &e) < 0)
        x->status = SIGKILL;
    exec_end_as(x->status);
}

static int exec_detached(struct exec_run *x, const char *pid_file, struct errmsg *e)
{
    int result[2];
    if (pipe2(result, O_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "pipe: %s", errtext(errno));
    CLEANUP_CLOSE int result_read = result[0], result_write = result[1];
    pid_t pid = fork();
    if (pid < 0)
        return errmsg_set(e, -errno, "fork: %s", errtext(errno));
    if (pid == 0) {
        host_close(result_read);
        exec_waiter(x, result_write);
    }
    host_close(TAKE_FD(result_write));
    struct control_reply reply;
    int r = host_read_all(result_read, &reply, sizeof(reply));
    if (r < 0)
        return errmsg_set(e, r, "the waiting process ended");
    if (reply.result < 0)
        return errmsg_set(e, reply.result, "%s", reply.data);
    r = pid_file ? ctr_write_pid_file(pid_file, pid, e) : 0;
    if (r < 0)
        kill(pid, SIGKILL);
    return r;
}

static int cmd_exec_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    bool detach = cli_set(args, "detach");
    struct exec_run x = {.process = -1, .console = {-1, -1}, .sock = -1,
                         .console_socket = cli_value(args, "console-socket")};
    long preserve;
    int r = cli_number(args, "preserve-fds", 0, CONTROL_FDS_MAX - 8, &preserve, e);
    if (r < 0)
        return r;
    x.preserve_fds = (unsigned)preserve;
    r = ctr_open(cli, args->argv[0], &x.ctr, e);
    if (r < 0)
        return errmsg_prefix(e, r, "exec failed");
    r = exec_check_state(&x.ctr, cli_set(args, "ignore-paused"), e);
    if (r == 0)
        r = exec_prepare(&x, args, detach, e);
    if (r == 0)
        r = detach ? exec_detached(&x, cli_value(args, "pid-file"), e)
                   : exec_in_foreground(&x, cli_value(args, "pid-file"), e);
    host_close(x.process);
    host_close(x.sock);
    console_close(&x.console);
    ctr_close(&x.ctr);
    return r < 0 ? errmsg_prefix(e, r, "exec failed") : r;
}

static const struct cli_flag cmd_exec_flags[] = {
    {"console-socket", 0, true, NULL,
     "path to an AF_UNIX socket which will receive a file descriptor referencing the master end of the "
     "console's pseudoterminal"},
    {"cwd", 0, true, NULL, "current working directory in the container"},
    {"env", 'e', true, NULL, "set environment variables"},
    {"tty", 't', false, NULL, "allocate a pseudo-TTY"},
    {"user", 'u', true, NULL, "UID (format: <uid>[:<gid>])"},
    {"additional-gids", 'g', true, NULL, "additional gids"},
    {"process", 'p', true, NULL, "path to the process.json"},
    {"detach", 'd', false, NULL, "detach from the container's process"},
    {"pid-file", 0, true, NULL, "specify the file to write the process id to"},
    {"no-new-privs", 0, false, NULL, "set the no new privileges value for the process"},
    {"cap", 'c', true, NULL, "add a capability to the bounding set for the process"},
    {"preserve-fds", 0, true, "0", "pass N additional file descriptors to the container"},
    {"ignore-paused", 0, false, NULL, "allow exec in a paused container"},
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_exec_verb = {
    .name = "exec",
    .summary = "execute new process inside the container",
    .arguments = "<container-id> <command> [command options]  || -p process.json <container-id>",
    .flags = cmd_exec_flags,
    .min_args = 1,
    .max_args = -1,
    .flags_first = true,
    .failure = CMD_EXEC_FAILURE,
    .run = cmd_exec_run,
};
