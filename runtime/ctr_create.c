/* SPDX-License-Identifier: Apache-2.0 */
/* Making a container. Each step leaves a state from which `delete` can clean up if this process is
 * killed; when a step fails, this file cleans up itself. */
#include "runtime/ctr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "oci/validate.h"
#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "runtime/control.h"
#include "runtime/errtext.h"
#include "runtime/hooks.h"
#include "runtime/layer_store.h"
#include "runtime/namespaces.h"
#include "runtime/privs.h"
#include "runtime/rootfs.h"
#include "runtime/tree_walk.h"

enum { CTR_CONFIG_MAX = 8 << 20 };

/* Everything that lives only while the container is made. */
struct ctr_making {
    const struct cli *cli;
    const struct ctr_create *how;
    struct overlay_choice overlay;
    struct layer_store layer;
    char *layer_path, *state_root;
    uint64_t layer_used, layer_names;
    char *bundle, *config, *rootfs, *home, *cgroup_path, *owner;
    size_t config_size;
    struct oci_spec *spec;
    struct rootfs_trees trees;
    struct namespaces namespaces;
    int control_sock, log_fd;
    int *preserved;
    unsigned preserved_len, listen_fds;
    uint16_t console_rows, console_cols;
    bool hooks_ran;
};

static void ctr_making_free(struct ctr_making *m)
{
    rootfs_close(&m->trees);
    namespaces_close(&m->namespaces);
    host_close(m->control_sock);
    host_close(m->log_fd);
    oci_spec_free(m->spec);
    mem_free(m->bundle);
    mem_free(m->config);
    mem_free(m->rootfs);
    mem_free(m->home);
    mem_free(m->cgroup_path);
    mem_free(m->owner);
    mem_free(m->preserved);
    layer_store_close(&m->layer);
    mem_free(m->layer_path);
    mem_free(m->state_root);
}

int ctr_read_bundle(const char *bundle, char **ret_json, size_t *ret_size, struct errmsg *e)
{
    CLEANUP_CLOSE int dir = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errmsg_set(e, -errno, "chdir %s: %s", bundle, errtext(errno));
    int r = host_read_file(dir, "config.json", CTR_CONFIG_MAX, ret_json, ret_size);
    if (r == -ENOENT)
        return errmsg_set(e, r, "JSON specification file config.json not found");
    if (r < 0)
        return errmsg_set(e, r, "read %s/config.json: %s", bundle, errtext(r));
    return 0;
}

int ctr_write_pid_file(const char *path, int pid, struct errmsg *e)
{
    const char *slash = strrchr(path, '/');
    CLEANUP_BUF struct buf tmp = {.data = NULL};
    buf_printf(&tmp, "%.*s.%s", (int)(slash ? slash - path + 1 : 0), path, slash ? slash + 1 : path);
    if (buf_error(&tmp) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    CLEANUP_CLOSE int fd = open(tmp.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return errmsg_set(e, -errno, "open %s: %s", tmp.data, errtext(errno));
    char text[16];
    int n = snprintf(text, sizeof(text), "%d", pid);
    int r = host_write_all(fd, text, (size_t)n);
    if (r == 0)
        r = (int)host_ret(rename(tmp.data, path));
    if (r < 0) {
        unlink(tmp.data);
        return errmsg_set(e, r, "write %s: %s", path, errtext(r));
    }
    return 0;
}

/* What this runtime can't give is refused rather than left out. */
static int ctr_check_supported(const struct oci_spec *spec, struct errmsg *e)
{
    if (geteuid() != 0 || !privs_have(CAP_SYS_ADMIN))
        return errmsg_set(e, -EPERM,
                          "the sandbox's boundary needs root with CAP_SYS_ADMIN to set up "
                          "(see `cloister doctor`)");
    if (oci_spec_namespace_peek(spec, OCI_NS_USER) || spec->linux_.uid_mappings.len ||
        spec->linux_.gid_mappings.len)
        return errmsg_set(e, -EOPNOTSUPP, "user namespaces with id mappings are not supported");
    if (spec->linux_.seccomp.listener_path)
        return errmsg_set(e, -EOPNOTSUPP, "linux.seccomp.listenerPath: listeners outside the container are not supported");
    if (!spec->root_path)
        return errmsg_set(e, -EINVAL, "root must be specified");
    if (!spec->process.args.len)
        return errmsg_set(e, -EINVAL, "process property must not be empty");
    return 0;
}

static int ctr_check_terminal(const struct ctr_create *how, const struct oci_spec *spec, struct errmsg *e)
{
    bool terminal = spec->process.terminal;
    if (!how->foreground && terminal && !how->console_socket)
        return errmsg_set(e, -EINVAL,
                          "cannot allocate tty if cloister will detach without setting console socket");
    if (how->console_socket && (how->foreground || !terminal))
        return errmsg_set(e, -EINVAL,
                          "cannot use console socket if cloister will not detach or allocate tty");
    return 0;
}

/* What the config asks of the host's kernel and the sentry has no use for. The container is confined without it, but nobody
 * shall believe that it is in force. */
static void ctr_warn_of_no_effect(const struct oci_spec *spec)
{
    if (spec->process.apparmor_profile || spec->process.selinux_label || spec->linux_.mount_label)
        log_warn("AppArmor and SELinux labels have no effect inside the container");
}

/* Reads and checks the config. Nothing exists yet that would have to be cleaned up. */
static int ctr_load_config(struct ctr_making *m, struct errmsg *e)
{
    const struct ctr_create *how = m->how;
    int r;
    m->bundle = realpath(how->bundle, NULL);
    if (!m->bundle)
        return errmsg_set(e, -errno, "chdir %s: %s", how->bundle, errtext(errno));
    if (how->config) {
        m->config = mem_dup(how->config, how->config_size + 1);
        m->config_size = how->config_size;
        r = m->config ? 0 : errmsg_set(e, -ENOMEM, "out of memory");
    } else {
        r = ctr_read_bundle(m->bundle, &m->config, &m->config_size, e);
    }
    if (r == 0)
        r = oci_spec_parse(m->config, m->config_size, &m->spec, e);
    if (r == 0)
        r = ctr_check_supported(m->spec, e);
    if (r == 0)
        r = ctr_check_terminal(how, m->spec, e);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < m->spec->warnings.len; i++)
        log_warn("%s", m->spec->warnings.v[i]);
    ctr_warn_of_no_effect(m->spec);
    r = rootfs_path(m->spec, m->bundle, &m->rootfs);
    if (r < 0)
        return errmsg_set(e, r, "out of memory");
    struct stat st;
    if (stat(m->rootfs, &st) < 0)
        return errmsg_set(e, -errno, "invalid rootfs: stat %s: %s", m->rootfs, errtext(errno));
    return overlay_choice_read(&how->overlay, m->spec, m->rootfs, &m->overlay, e);
}

/* The container's descriptors from 3 on: those of LISTEN_FDS and of --preserve-fds. */
static int ctr_find_preserved(struct ctr_making *m, struct errmsg *e)
{
    unsigned total = m->how->preserve_fds;
    const char *listen = getenv("LISTEN_FDS");
    if (listen && atoi(listen) > 0)
        m->listen_fds = (unsigned)atoi(listen);
    total += m->listen_fds;
    if (total > 1024 || m->listen_fds > 1024)
        return errmsg_set(e, -E2BIG, "too many descriptors to preserve");
    m->preserved = NEW_ARRAY(int, total + 1);
    if (!m->preserved)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < total; i++) {
        int fd = 3 + (int)i;
        if (fcntl(fd, F_GETFD) < 0)
            return errmsg_set(e, -EBADF, "unable to stat preserved file descriptor %d: %s", fd,
                              errtext(EBADF));
        m->preserved[i] = fd;
    }
    m->preserved_len = total;
    return 0;
}

static char *ctr_user_name(void)
{
    char text[32];
    uid_t uid = geteuid();
    if (uid == 0)
        return mem_strdup("root");
    snprintf(text, sizeof(text), "#%u", uid);
    return mem_strdup(text);
}

static struct layer_wish ctr_layer_wish(const struct ctr_making *m, const struct ctr *c, const char *state_dir)
{
    return (struct layer_wish){.state_root = m->state_root, .id = c->id, .rootfs = m->rootfs, .dir = m->overlay.dir,
                               .state_dir = state_dir};
}

/* Where the layer will be, so that whoever finds only the state knows. One that is there already is not this container's to lose. */
static int ctr_plan_layer(struct ctr_making *m, struct ctr *c, struct errmsg *e)
{
    c->state.layer = "";
    if (!m->overlay.root || m->overlay.memory)
        return 0;
    struct stat st;
    if (ctr_absolute(m->cli->root, &m->state_root) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    const struct layer_wish wish = ctr_layer_wish(m, c, NULL);
    m->layer_path = layer_store_path(&wish);
    if (!m->layer_path)
        return errmsg_set(e, -ENOMEM, "out of memory");
    c->state.layer = m->layer_path;
    c->state.layer_limit = m->overlay.size;
    c->state.layer_keep = lstat(m->layer_path, &st) == 0;
    return 0;
}

static int ctr_open_layer(struct ctr_making *m, struct ctr *c, struct errmsg *e)
{
    CLEANUP_BUF struct buf state_dir = {.data = NULL};
    buf_printf(&state_dir, "%s/%s", m->state_root, c->id);
    if (buf_error(&state_dir) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    const struct layer_wish wish = ctr_layer_wish(m, c, state_dir.data);
    int r = layer_store_open(&wish, &m->layer, e);
    if (r == 0 && strcmp(m->layer.path, c->state.layer) != 0) {
        c->state.layer = m->layer.path;
        r = statefile_write(c->dir, &c->state, e);
    }
    if (r == 0)
        r = rootfs_add_layer(&m->trees, m->layer.path, e);
    if (r == 0)
        r = layer_store_move_lock(&m->layer, m->trees.v[m->trees.len - 1].fd, e);
    for (unsigned i = 0; r == 0 && i + 1 < m->trees.len; i++)
        if (i == 0 || m->trees.v[i].is_lower)
            r = layer_store_add(&m->layer, i, m->trees.v[i].fd, e);
    if (r == 0 && m->overlay.size) {
        r = tree_usage(m->layer.fd, &m->layer_used, &m->layer_names);
        if (r < 0)
            errmsg_set(e, r, "overlay: measure the layer %s: %s", m->layer.path, errtext(r));
    }
    return r;
}

/* Writes the state "creating", so that a delete after our death knows what to look for. */
static int ctr_write_first_state(struct ctr_making *m, struct ctr *c, struct errmsg *e)
{
    struct statefile *s = &c->state;
    s->oci_version = m->spec->oci_version;
    s->bundle = m->bundle;
    s->rootfs = m->rootfs;
    s->owner = m->owner;
    s->annotations = m->spec->annotations;
    s->status = OCISTATE_CREATING;
    clock_gettime(CLOCK_REALTIME, &s->created);
    s->terminal = m->spec->process.terminal;
    s->cgroup_namespace = oci_spec_namespace_peek(m->spec, OCI_NS_CGROUP) != NULL;
    const char **dirs = arena_calloc(&s->arena, c->cgroup.len + 1, sizeof(*dirs));
    if (!dirs || procid_of(getpid(), &s->creator) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < c->cgroup.len; i++) {
        CLEANUP_BUF struct buf text = {.data = NULL};
        cgroup_encode(&c->cgroup, i, &text);
        dirs[i] = buf_error(&text) < 0 ? NULL : arena_strndup(&s->arena, text.data, text.size);
        if (!dirs[i])
            return errmsg_set(e, -ENOMEM, "out of memory");
    }
    s->cgroup_dirs = dirs;
    s->cgroup_dirs_len = c->cgroup.len;
    int r = ctr_plan_layer(m, c, e);
    if (r == 0)
        r = statefile_write(c->dir, s, e);
    if (r == 0)
        r = statefile_save_config(c->dir, m->config, m->config_size, e);
    return r;
}

/* What the container's /proc/PID/cgroup shows. */
static int ctr_shown_cgroup(struct ctr_making *m, const struct ctr *c)
{
    const char *path = m->spec->linux_.cgroups_path;
    if (c->state.cgroup_namespace)
        path = "/";
    CLEANUP_BUF struct buf b = {.data = NULL};
    if (!path || !*path || strchr(path, ':'))
        buf_printf(&b, "/%s", c->id);
    else
        buf_printf(&b, "%s%s", path[0] == '/' ? "" : "/", path);
    m->cgroup_path = TAKE_PTR(b.data);
    return b.failed ? -ENOMEM : 0;
}

/* The pty, from the beginning with the size of the person's window if there is one. */
static int ctr_make_console(struct ctr_making *m, struct ctr_new *n, struct errmsg *e)
{
    m->console_rows = m->spec->process.console_rows;
    m->console_cols = m->spec->process.console_cols;
    if (m->how->foreground) {
        CLEANUP_CLOSE int host = console_host(e);
        if (host < 0)
            return host;
        int r = console_get_size(host, &m->console_rows, &m->console_cols);
        if (r < 0)
            return errmsg_set(e, r, "read the terminal's size: %s", errtext(r));
    }
    return console_new(m->console_rows, m->console_cols, &n->console, e);
}

/* Host resources that need no process. */
static int ctr_prepare(struct ctr_making *m, struct ctr_new *n, struct errmsg *e)
{
    const struct oci_process *process = &m->spec->process;
    int r = ctr_find_preserved(m, e);
    if (r == 0)
        r = namespaces_open(m->spec, &m->namespaces, e);
    if (r < 0)
        return r;
    const struct rootfs_lowers lowers = {.root = m->overlay.root, .binds = m->overlay.all};
    r = rootfs_open(m->spec, m->bundle, lowers, &m->trees, e);
    if (r == 0 && m->overlay.root && !m->overlay.memory)
        r = ctr_open_layer(m, &n->ctr, e);
    if (r < 0)
        return errmsg_prefix(e, r, "error during container init");
    CLEANUP_CLOSE int upper = m->layer.path ? layer_store_open_upper(m->layer.path) : -1;
    if (rootfs_home(upper, m->trees.v[0].fd, process->user.uid, &m->home) < 0 ||
        ctr_shown_cgroup(m, &n->ctr) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    if (process->terminal) {
        r = ctr_make_console(m, n, e);
        if (r < 0)
            return r;
    }
    m->log_fd = cli_open_process_log(m->cli, !m->how->foreground, e);
    if (m->log_fd < -1)
        return m->log_fd;
    m->control_sock = control_listen(n->ctr.dir, e);
    if (m->control_sock < 0)
        return m->control_sock;
    r = cgroup_create(&n->ctr.cgroup, e);
    if (r == 0)
        r = cgroup_set(&n->ctr.cgroup, &m->spec->linux_.resources, e);
    return r < 0 ? errmsg_prefix(e, r, "unable to apply cgroup configuration") : 0;
}

static int ctr_create_hooks(struct ctr_making *m, struct ctr *c, struct errmsg *e)
{
    static const enum oci_hook_kind kinds[] = {OCI_HOOK_PRESTART, OCI_HOOK_CREATE_RUNTIME,
                                               OCI_HOOK_CREATE_CONTAINER};
    struct ocistate state;
    ctr_describe(c, &state);
    state.status = OCISTATE_CREATING;
    state.pid = c->state.gofer.pid;
    m->hooks_ran = true;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        pid_t enter = kinds[i] == OCI_HOOK_CREATE_CONTAINER ? c->state.gofer.pid : 0;
        int r = hooks_run(m->spec, kinds[i], &state, enter, e);
        if (r < 0)
            return errmsg_prefix(e, r, "error during container init");
    }
    return 0;
}

static int ctr_start_processes(struct ctr_making *m, struct ctr_new *n, struct errmsg *e)
{
    struct ctr *c = &n->ctr;
    const struct sandbox_config config = {
        .cli = m->cli,
        .spec = m->spec,
        .id = c->id,
        .home = m->home,
        .cgroup_path = m->cgroup_path,
        .config = m->config,
        .config_size = m->config_size,
        .trees = &m->trees,
        .cgroup = &c->cgroup,
        .namespaces = &m->namespaces,
        .control_sock = m->control_sock,
        .log_fd = m->log_fd,
        .stdio = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
        .console = n->console.slave,
        .console_rows = m->console_rows,
        .console_cols = m->console_cols,
        .preserved = m->preserved,
        .preserved_len = m->preserved_len,
        .listen_fds = m->listen_fds,
        .foreground = m->how->foreground,
        .overlay = m->overlay,
        .layer_used = m->layer_used,
        .layer_names = m->layer_names,
    };
    int r = sandbox_spawn(&config, &n->sandbox, e);
    if (r < 0)
        return r;
    c->state.gofer = n->sandbox.gofer;
    c->state.sentry = n->sandbox.sentry;
    r = statefile_write(c->dir, &c->state, e);
    if (r == 0)
        r = sandbox_wait_gofer(&n->sandbox, e);
    if (r == 0)
        r = ctr_create_hooks(m, c, e);
    if (r == 0)
        r = sandbox_wait_sentry(&n->sandbox, &config, e);
    return r;
}

/* Tells the world, then lets go. */
static int ctr_publish(struct ctr_making *m, struct ctr_new *n, struct errmsg *e)
{
    struct ctr *c = &n->ctr;
    int r = 0;
    host_close(n->console.slave);
    n->console.slave = -1;
    if (m->how->console_socket) {
        r = console_send(&n->console, m->how->console_socket, e);
        console_close(&n->console);
    }
    if (r == 0 && m->how->pid_file)
        r = ctr_write_pid_file(m->how->pid_file, c->state.gofer.pid, e);
    if (r < 0)
        return r;
    c->state.status = OCISTATE_CREATED;
    /* A throw-away container that goes on with another's layer does not take it along. */
    c->state.layer_keep |= !m->how->layer_ends;
    r = statefile_write(c->dir, &c->state, e);
    if (r == 0)
        r = sandbox_commit(&n->sandbox, e);
    c->status = OCISTATE_CREATED;
    return r;
}

/* Takes back everything after a failure; e keeps the reason. */
static void ctr_undo(struct ctr_making *m, struct ctr_new *n)
{
    struct errmsg ignored;
    struct ctr *c = &n->ctr;
    sandbox_kill(&n->sandbox);
    if (cgroup_destroy(&c->cgroup, &ignored) < 0)
        log_warn("%s", ignored.text);
    if (m->hooks_ran) {
        struct ocistate state;
        ctr_describe(c, &state);
        state.status = OCISTATE_STOPPED;
        state.pid = 0;
        if (hooks_run(m->spec, OCI_HOOK_POSTSTOP, &state, 0, &ignored) < 0)
            log_error("%s", ignored.text);
    }
    /* Its lock. */
    rootfs_close(&m->trees);
    layer_store_close(&m->layer);
    if (c->state.layer && c->state.layer[0] && layer_store_drop(c->state.layer, m->rootfs, c->state.layer_keep, &ignored) < 0)
        log_warn("%s", ignored.text);
    if (statefile_remove(m->cli->root, c->id, c->dir, &ignored) < 0)
        log_warn("%s", ignored.text);
}

static int ctr_make(struct ctr_making *m, struct ctr_new *n, struct errmsg *e)
{
    struct ctr *c = &n->ctr;
    int r = cgroup_plan(m->spec->linux_.cgroups_path, c->id, m->cli->systemd_cgroup, &c->cgroup, e);
    if (r == 0)
        r = ctr_write_first_state(m, c, e);
    if (r < 0)
        return r;
    r = ctr_prepare(m, n, e);
    if (r == 0)
        r = ctr_start_processes(m, n, e);
    if (r < 0)
        return errmsg_prefix(e, r, "unable to start container process");
    return ctr_publish(m, n, e);
}

int ctr_create(const struct cli *cli, const struct ctr_create *how, struct ctr_new *ret_new,
               struct errmsg *e)
{
    struct ctr_making m = {.cli = cli, .how = how, .layer.fd = -1, .control_sock = -1, .log_fd = -1};
    struct ctr_new n = {.ctr = {.id = how->id, .dir = -1, .status = OCISTATE_CREATING},
                        .lock = -1, .sandbox = SANDBOX_NONE, .console = {-1, -1}};
    for (int i = 0; i < OCI_NS_TYPES; i++)
        m.namespaces.join[i] = -1;
    m.owner = ctr_user_name();
    int r = statefile_check_id(how->id, e);
    if (r == 0)
        r = ctr_load_config(&m, e);
    if (r == 0) {
        r = statefile_new_dir(cli->root, how->id, &n.lock, e);
        if (r >= 0) {
            n.ctr.dir = r;
            n.terminal = m.spec->process.terminal;
            r = ctr_make(&m, &n, e);
            if (r < 0)
                ctr_undo(&m, &n);
        }
    }
    if (r == 0) {
        /* The state's strings belong to the spec, which goes now: take them from the file. */
        statefile_free(&n.ctr.state);
        r = statefile_read(n.ctr.dir, &n.ctr.state, e);
    }
    if (r == 0)
        *ret_new = n;
    else
        ctr_new_close(&n);
    ctr_making_free(&m);
    return r < 0 ? r : 0;
}

void ctr_new_close(struct ctr_new *n)
{
    sandbox_release(&n->sandbox);
    console_close(&n->console);
    ctr_close(&n->ctr);
    host_close(n->lock);
    n->lock = -1;
}
