/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's way from a clone of the creating command to `cloister boot`: namespaces of its own, a
 * user that exists nowhere else, no capabilities, an empty read-only root. */
#include "runtime/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/bootproto.h"
#include "runtime/confine.h"
#include "runtime/errtext.h"
#include "runtime/privs.h"

static int sandbox_sentry_params(const struct sandbox_config *config, unsigned doors_len, struct errmsg *e)
{
    const struct cli *cli = config->cli;
    bool debug = cli->debug || cli->debug_log || cli->strace;
    struct boot_params params = {
        .strace = cli->strace,
        .log_json = cli->log_json,
        .have_log = config->log_fd >= 0,
        .foreground = config->foreground,
        .terminal = config->console >= 0,
        .overlay_root = config->overlay.root,
        .overlay_all = config->overlay.all,
        .overlay_memory = config->overlay.memory,
        .overlay_size = config->overlay.size,
        .overlay_used = config->layer_used,
        .overlay_names = config->layer_names,
        .log_level = debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN,
        .console_rows = config->console_rows,
        .console_cols = config->console_cols,
        .preserved_len = config->preserved_len,
        .doors_len = doors_len,
        .listen_fds = config->listen_fds,
        .id = config->id,
        .home = config->home,
        .cgroup_path = config->cgroup_path,
        .config = config->config,
        .config_size = config->config_size,
    };
    for (int i = 0; i < 3; i++)
        if (config->console < 0 && config->stdio[i] >= 0)
            params.stdio_mask |= 1u << i;
    int fd = boot_params_write(&params);
    return fd < 0 ? errmsg_set(e, fd, "write the sentry's parameters: %s", errtext(fd)) : fd;
}

/* The ways into the container's cgroup and back. */
struct sentry_doors {
    int in[CGROUP_DIRS_MAX], out[CGROUP_DIRS_MAX];
    unsigned len;
};

struct sentry_child {
    const struct sandbox_config *config;
    const struct sentry_doors *doors;
    int params, sock, gofer_sock, gofer_shm, exe;
};

/* A procfs of the new pid namespace that is mounted nowhere: reachable through this descriptor only. */
static int sandbox_sentry_proc(struct errmsg *e)
{
    CLEANUP_CLOSE int fs = (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
    if (fs < 0)
        return errmsg_set(e, -errno, "fsopen proc: %s", errtext(errno));
    /* Nothing but processes; older kernels lack the option and then show the rest too. */
    if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "subset", "pid", 0) < 0 && errno != EINVAL)
        return errmsg_set(e, -errno, "configure procfs: %s", errtext(errno));
    if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return errmsg_set(e, -errno, "create procfs: %s", errtext(errno));
    int mount = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                             MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (mount < 0)
        return errmsg_set(e, -errno, "mount procfs for the sentry: %s", errtext(errno));
    return mount;
}

static int sandbox_sentry_become_nobody(struct errmsg *e)
{
    if (setgroups(0, NULL) < 0)
        return errmsg_set(e, -errno, "setgroups: %s", errtext(errno));
    if (setresgid(BOOT_UID_INSIDE, BOOT_UID_INSIDE, BOOT_UID_INSIDE) < 0)
        return errmsg_set(e, -errno, "setresgid: %s", errtext(errno));
    if (setresuid(BOOT_UID_INSIDE, BOOT_UID_INSIDE, BOOT_UID_INSIDE) < 0)
        return errmsg_set(e, -errno, "setresuid: %s", errtext(errno));
    /* After the change of user, which clears it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return errmsg_set(e, -errno, "set the parent-death signal: %s", errtext(errno));
    return 0;
}

static int sandbox_sentry_place(const struct sentry_child *c, int proc, int null, struct errmsg *e)
{
    const struct sandbox_config *config = c->config;
    const struct sentry_doors *doors = c->doors;
    size_t preserved_at = BOOT_FD_PRESERVED - BOOT_FD_PARAMS, doors_at = preserved_at + config->preserved_len;
    size_t len = doors_at + 2 * doors->len;
    CLEANUP_FREE int *fds = NEW_ARRAY(int, len);
    if (!fds)
        return errmsg_set(e, -ENOMEM, "out of memory");
    fds[0] = c->params;
    fds[BOOT_FD_SOCK - BOOT_FD_PARAMS] = c->sock;
    fds[BOOT_FD_CONTROL - BOOT_FD_PARAMS] = config->control_sock;
    fds[BOOT_FD_GOFER_SOCK - BOOT_FD_PARAMS] = c->gofer_sock;
    fds[BOOT_FD_GOFER_SHM - BOOT_FD_PARAMS] = c->gofer_shm;
    fds[BOOT_FD_PROC - BOOT_FD_PARAMS] = proc;
    fds[BOOT_FD_LOG - BOOT_FD_PARAMS] = config->log_fd;
    for (int i = 0; i < 3; i++)
        fds[BOOT_FD_STDIO + i - BOOT_FD_PARAMS] = config->console < 0 ? config->stdio[i] : -1;
    fds[BOOT_FD_CONSOLE - BOOT_FD_PARAMS] = config->console;
    for (unsigned i = 0; i < config->preserved_len; i++)
        fds[preserved_at + i] = config->preserved[i];
    for (unsigned i = 0; i < doors->len; i++) {
        fds[doors_at + i] = doors->in[i];
        fds[doors_at + doors->len + i] = doors->out[i];
    }
    return confine_place_fds(fds, len, BOOT_FD_PARAMS, null, e);
}

static int sandbox_sentry_confine(const struct sentry_child *c, struct errmsg *e)
{
    setsid();
    confine_reset_signals();
    struct boot_message m;
    if (boot_recv(c->sock, &m, NULL) < 0 || m.type != BOOT_GO)
        return errmsg_set(e, -EPIPE, "the creating command is gone");
    /* The host tells the leader of the terminal's session when its window changes. */
    if (c->config->console >= 0 && ioctl(c->config->console, TIOCSCTTY, 0) < 0)
        return errmsg_set(e, -errno, "take the console: %s", errtext(errno));
    int r = sandbox_sentry_become_nobody(e);
    if (r < 0)
        return r;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return errmsg_set(e, -errno, "open /dev/null: %s", errtext(errno));
    int proc = sandbox_sentry_proc(e);
    if (proc < 0)
        return proc;
    r = confine_empty_root(e);
    if (r == 0)
        r = privs_drop_all(e);
    if (r == 0)
        r = sandbox_sentry_place(c, proc, null, e);
    return r;
}

NORETURN static void sandbox_sentry_child(const struct sentry_child *c)
{
    struct errmsg e = {.text = ""};
    int sock = c->sock;
    int r = sandbox_sentry_confine(c, &e);
    if (r == 0) {
        sock = BOOT_FD_SOCK;
        r = sandbox_exec_self(c->exe, "boot", c->config->id);
        errmsg_set(&e, r, "exec the sentry: %s", errtext(r));
    }
    if (boot_send(sock, BOOT_ERROR, r, e.text, -1) < 0)
        _exit(2);
    _exit(1);
}

/* Gives the child's user namespace its only user and group. */
static int sandbox_sentry_map_ids(pid_t pid, struct errmsg *e)
{
    static const char *const files[] = {"uid_map", "gid_map"};
    char text[64];
    snprintf(text, sizeof(text), "%d %u 1", BOOT_UID_INSIDE, (unsigned)BOOT_UID_BASE + (unsigned)pid);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
        int r = host_write_file(AT_FDCWD, path, text, strlen(text));
        if (r < 0)
            return errmsg_set(e, r, "map the sentry's user: write %s: %s", path, errtext(r));
    }
    return 0;
}

static pid_t sandbox_sentry_clone(void)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                 CLONE_NEWNET | CLONE_NEWCGROUP,
        .exit_signal = SIGCHLD,
    };
    return (pid_t)host_ret(syscall(SYS_clone3, &args, sizeof(args)));
}

static int sandbox_sentry_start(const struct sandbox_config *config, const struct sentry_doors *doors,
                                int gofer_sock, int gofer_shm, struct sandbox *sb, struct errmsg *e)
{
    CLEANUP_CLOSE int params = sandbox_sentry_params(config, doors->len, e);
    if (params < 0)
        return params;
    int socks[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
        return errmsg_set(e, -errno, "socketpair: %s", errtext(errno));
    CLEANUP_CLOSE int ours = socks[0], theirs = socks[1];
    int high = BOOT_FD_PRESERVED + (int)config->preserved_len + 2 * CGROUP_DIRS_MAX + 64;
    CLEANUP_CLOSE int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    CLEANUP_CLOSE int exe = self < 0 ? -1 : fcntl(self, F_DUPFD_CLOEXEC, high);
    if (exe < 0)
        return errmsg_set(e, -errno, "open /proc/self/exe: %s", errtext(errno));

    pid_t pid = sandbox_sentry_clone();
    if (pid < 0)
        return errmsg_set(e, pid, "make the sentry's namespaces: %s", errtext(pid));
    if (pid == 0) {
        host_close(ours);
        const struct sentry_child c = {.config = config, .doors = doors, .params = params, .sock = theirs,
                                       .gofer_sock = gofer_sock, .gofer_shm = gofer_shm, .exe = exe};
        sandbox_sentry_child(&c);
    }
    int r = procid_of(pid, &sb->sentry);
    if (r == 0)
        r = sandbox_sentry_map_ids(pid, e);
    if (r == 0)
        r = confine_raise_limits(pid, e);
    if (r == 0)
        r = boot_send(ours, BOOT_GO, 0, NULL, -1);
    if (r < 0) {
        if (!e->text[0])
            errmsg_set(e, r, "start the sentry: %s", errtext(r));
        return r;
    }
    sb->sentry_sock = TAKE_FD(ours);
    return 0;
}

int sandbox_spawn_sentry(const struct sandbox_config *config, int gofer_sock, int gofer_shm,
                         struct sandbox *sb, struct errmsg *e)
{
    struct sentry_doors doors = {.len = 0};
    int r = cgroup_open_doors(config->cgroup, doors.in, doors.out, e);
    if (r < 0)
        return r;
    doors.len = (unsigned)r;
    r = sandbox_sentry_start(config, &doors, gofer_sock, gofer_shm, sb, e);
    for (unsigned i = 0; i < doors.len; i++) {
        host_close(doors.in[i]);
        host_close(doors.out[i]);
    }
    return r;
}
