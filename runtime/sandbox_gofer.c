/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer's way from a fork of the creating command to `cloister gofer`: the container's host
 * namespaces and cgroup, an empty root, and no descriptor but the ones it serves. */
#include "runtime/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/bootproto.h"
#include "runtime/confine.h"
#include "runtime/errtext.h"

static int sandbox_gofer_params(const struct sandbox_config *config, struct errmsg *e)
{
    CLEANUP_FREE unsigned char *read_only = mem_zalloc(config->trees->len);
    if (!read_only)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < config->trees->len; i++)
        read_only[i] = config->trees->v[i].read_only;
    bool debug = config->cli->debug || config->cli->debug_log;
    const struct gofer_params params = {
        .log_json = config->cli->log_json,
        .have_log = config->log_fd >= 0,
        .debug = debug,
        .immutable = config->spec->process.capabilities.bounding >> CAP_LINUX_IMMUTABLE & 1,
        .log_level = debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN,
        .trees_len = config->trees->len,
        .read_only = read_only,
    };
    int fd = gofer_params_write(&params);
    return fd < 0 ? errmsg_set(e, fd, "write the gofer's parameters: %s", errtext(fd)) : fd;
}

struct gofer_child {
    const struct sandbox_config *config;
    int params, sock, shm, ready, exe, go;
    bool in_cgroup; /* born there */
};

/* Names the host's UTS namespace after the container, for whoever looks in from outside. */
static void sandbox_gofer_hostname(const struct sandbox_config *config)
{
    const char *name = config->spec->hostname;
    if ((config->namespaces->create & CLONE_NEWUTS) && name && sethostname(name, strlen(name)) < 0)
        log_debug("sethostname: %s", errtext(errno));
}

static int sandbox_gofer_confine(const struct gofer_child *c, struct errmsg *e)
{
    const struct sandbox_config *config = c->config;
    setsid();
    confine_reset_signals();
    char go;
    if (host_read_all(c->go, &go, 1) < 0)
        return errmsg_set(e, -EPIPE, "the creating command is gone");
    /* Before a cgroup namespace is made, whose root is where this process is then. */
    int r = c->in_cgroup ? 0 : cgroup_join(config->cgroup, e);
    if (r == 0)
        r = namespaces_enter(config->namespaces, e);
    if (r < 0)
        return r;
    sandbox_gofer_hostname(config);
    if (unshare(CLONE_NEWNS) < 0)
        return errmsg_set(e, -errno, "make a mount namespace: %s", errtext(errno));
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return errmsg_set(e, -errno, "open /dev/null: %s", errtext(errno));
    int proc_self = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc/self/fd",
                                 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (proc_self < 0)
        return errmsg_set(e, -errno, "open_tree /proc/self/fd: %s", errtext(errno));
    r = confine_empty_root(e);
    if (r < 0)
        return r;
    size_t len = GOFER_FD_TREES - GOFER_FD_PARAMS + config->trees->len;
    CLEANUP_FREE int *fds = NEW_ARRAY(int, len);
    if (!fds)
        return errmsg_set(e, -ENOMEM, "out of memory");
    fds[0] = c->params;
    fds[GOFER_FD_SOCK - GOFER_FD_PARAMS] = c->sock;
    fds[GOFER_FD_SHM - GOFER_FD_PARAMS] = c->shm;
    fds[GOFER_FD_READY - GOFER_FD_PARAMS] = c->ready;
    fds[GOFER_FD_PROC_SELF - GOFER_FD_PARAMS] = proc_self;
    fds[GOFER_FD_LOG - GOFER_FD_PARAMS] = config->log_fd;
    for (unsigned i = 0; i < config->trees->len; i++)
        fds[GOFER_FD_TREES - GOFER_FD_PARAMS + i] = config->trees->v[i].fd;
    return confine_place_fds(fds, len, GOFER_FD_PARAMS, null, e);
}

NORETURN static void sandbox_gofer_child(const struct gofer_child *c)
{
    struct errmsg e = {.text = ""};
    int ready = c->ready;
    int exe = c->exe;
    if (sandbox_gofer_confine(c, &e) == 0) {
        ready = GOFER_FD_READY;
        /* place_fds closed what is in its way: exe was moved up beforehand. */
        int r = sandbox_exec_self(exe, "gofer", c->config->id);
        errmsg_set(&e, r, "exec the gofer: %s", errtext(r));
    }
    char text[1 + sizeof(e.text)];
    text[0] = 'E';
    memcpy(text + 1, e.text, sizeof(e.text));
    if (host_write_all(ready, text, 1 + strlen(e.text)) < 0)
        _exit(2);
    _exit(1);
}

/* Forks, on v2 right into the container's cgroup. */
static pid_t sandbox_gofer_fork(int cgroup)
{
    struct clone_args args = {
        .flags = cgroup >= 0 ? CLONE_INTO_CGROUP : 0,
        .exit_signal = SIGCHLD,
        .cgroup = cgroup >= 0 ? (uint64_t)cgroup : 0,
    };
    return (pid_t)host_ret(syscall(SYS_clone3, &args, sizeof(args)));
}

int sandbox_spawn_gofer(const struct sandbox_config *config, int sock, int shm, struct sandbox *sb,
                        struct errmsg *e)
{
    CLEANUP_CLOSE int params = sandbox_gofer_params(config, e);
    if (params < 0)
        return params;
    int ready[2], go[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "pipe: %s", errtext(errno));
    CLEANUP_CLOSE int ready_read = ready[0], ready_write = ready[1];
    if (pipe2(go, O_CLOEXEC) < 0)
        return errmsg_set(e, -errno, "pipe: %s", errtext(errno));
    CLEANUP_CLOSE int go_read = go[0], go_write = go[1];
    int high = GOFER_FD_TREES + (int)config->trees->len + 64;
    CLEANUP_CLOSE int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    CLEANUP_CLOSE int exe = self < 0 ? -1 : fcntl(self, F_DUPFD_CLOEXEC, high);
    if (exe < 0)
        return errmsg_set(e, -errno, "open /proc/self/exe: %s", errtext(errno));

    CLEANUP_CLOSE int cgroup = cgroup_clone_fd(config->cgroup, e);
    if (cgroup < -1)
        return cgroup;
    pid_t pid = sandbox_gofer_fork(cgroup);
    if (pid < 0)
        return errmsg_set(e, pid, "fork: %s", errtext(pid));
    if (pid == 0) {
        host_close(go_write);
        host_close(ready_read);
        const struct gofer_child c = {.config = config, .params = params, .sock = sock, .shm = shm,
                                      .ready = ready_write, .exe = exe, .go = go_read,
                                      .in_cgroup = cgroup >= 0};
        sandbox_gofer_child(&c);
    }
    int r = procid_of(pid, &sb->gofer);
    if (r == 0)
        r = confine_raise_limits(pid, e);
    if (r == 0)
        r = host_write_all(go_write, "g", 1);
    if (r < 0) {
        if (!e->text[0])
            errmsg_set(e, r, "start the gofer: %s", errtext(r));
        return r; /* the caller kills what sb names; without a go the child ends by itself */
    }
    sb->gofer_ready = TAKE_FD(ready_read);
    return 0;
}
