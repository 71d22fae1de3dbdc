/* SPDX-License-Identifier: Apache-2.0 */
/* do: runs one command in a throw-away container, in a given tree or in a read-only view of the host's
 * root, without a bundle. */
#include "runtime/create_flags.h"
#include "runtime/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oci/json.h"
#include "oci/ocistate.h"
#include "oci/spec.h"
#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "runtime/console.h"
#include "runtime/errtext.h"
#include "runtime/run_container.h"

static const char *const do_capabilities[] = {
    "CAP_CHOWN",  "CAP_DAC_OVERRIDE", "CAP_FOWNER",           "CAP_FSETID",     "CAP_KILL",
    "CAP_SETGID", "CAP_SETUID",       "CAP_SETPCAP",          "CAP_NET_RAW",    "CAP_SYS_CHROOT",
    "CAP_MKNOD",  "CAP_AUDIT_WRITE",  "CAP_NET_BIND_SERVICE", "CAP_SYS_PTRACE", NULL,
};

static const struct {
    const char *destination, *type, *options[6];
} do_mounts[] = {
    {"/proc", "proc", {"nosuid", "noexec", "nodev"}},
    {"/dev", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}},
    {"/dev/pts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
    {"/dev/shm", "tmpfs", {"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
    {"/dev/mqueue", "mqueue", {"nosuid", "noexec", "nodev"}},
    {"/sys", "sysfs", {"nosuid", "noexec", "nodev", "ro"}},
    {"/tmp", "tmpfs", {"nosuid", "nodev", "mode=1777"}},
};

static void do_put_mounts(struct json_writer *w, bool with_tmp)
{
    json_open_array(w, "mounts");
    for (size_t i = 0; i < ARRAY_SIZE(do_mounts); i++) {
        if (!with_tmp && strcmp(do_mounts[i].destination, "/tmp") == 0)
            continue;
        json_open_object(w, NULL);
        json_put_string(w, "destination", do_mounts[i].destination);
        json_put_string(w, "type", do_mounts[i].type);
        json_put_string(w, "source", do_mounts[i].type);
        json_put_strings(w, "options", do_mounts[i].options);
        json_close_object(w);
    }
    json_close_array(w);
}

static void do_put_process(struct json_writer *w, const struct cli_args *args, bool terminal, const char *cwd,
                           const char *const *env)
{
    static const char *const sets[] = {"bounding", "effective", "permitted"};
    json_open_object(w, "process");
    json_put_bool(w, "terminal", terminal);
    json_open_object(w, "user");
    json_put_i64(w, "uid", 0);
    json_put_i64(w, "gid", 0);
    json_close_object(w);
    json_put_strings(w, "args", (const char *const *)args->argv);
    json_put_strings(w, "env", env);
    json_put_string(w, "cwd", cwd);
    json_open_object(w, "capabilities");
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
        json_put_strings(w, sets[i], do_capabilities);
    json_close_object(w);
    json_close_object(w);
}

static void do_put_linux(struct json_writer *w)
{
    static const char *const types[] = {"pid", "network", "ipc", "uts", "mount", "cgroup"};
    json_open_object(w, "linux");
    json_open_array(w, "namespaces");
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        json_open_object(w, NULL);
        json_put_string(w, "type", types[i]);
        json_close_object(w);
    }
    json_close_array(w);
    json_close_object(w);
}

/* Whether the directory exists below the tree, so that the command can start where the person is. */
static bool do_has_dir(const char *rootfs, const char *dir)
{
    CLEANUP_BUF struct buf path = {.data = NULL};
    struct stat st;
    buf_printf(&path, "%s/%s", rootfs, dir);
    return buf_error(&path) == 0 && stat(path.data, &st) == 0 && S_ISDIR(st.st_mode);
}

static void do_write_config(struct buf *out, const struct cli_args *args, const char *rootfs,
                            bool read_only, bool terminal)
{
    static const char default_path[] =
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char cwd[4096], term[128];
    const char *host_term = getenv("TERM"), *lang = getenv("LANG");
    const char *env[4] = {default_path};
    const char *given = cli_value(args, "cwd");
    char lang_text[128];
    snprintf(term, sizeof(term), "TERM=%s", host_term ? host_term : "xterm");
    env[1] = term;
    if (lang) {
        snprintf(lang_text, sizeof(lang_text), "LANG=%s", lang);
        env[2] = lang_text;
    }
    if (!given)
        given = getcwd(cwd, sizeof(cwd)) && do_has_dir(rootfs, cwd) ? cwd : "/";
    struct json_writer w;
    json_writer_init(&w, out, "  ");
    json_open_object(&w, NULL);
    json_put_string(&w, "ociVersion", OCI_SPEC_VERSION);
    do_put_process(&w, args, terminal, given, env);
    json_open_object(&w, "root");
    json_put_string(&w, "path", rootfs);
    json_put_bool(&w, "readonly", read_only);
    json_close_object(&w);
    json_put_string(&w, "hostname", "cloister");
    do_put_mounts(&w, read_only);
    do_put_linux(&w);
    json_close_object(&w);
}

static int cmd_do_run(const struct cli *cli, const struct cli_args *args, struct errmsg *e)
{
    const char *given = cli_value(args, "rootfs");
    char *rootfs = realpath(given ? given : "/", NULL);
    if (!rootfs)
        return errmsg_set(e, -errno, "cloister do failed: %s: %s", given, errtext(errno));
    /* Without a tree of its own the command must not change the host's. */
    struct overlay_flags overlay = overlay_flags_read(args);
    bool kept = overlay.overlay && strcmp(overlay.overlay, "none");
    overlay.fallback = "none";
    /* A throw-away container's layer is one as well. */
    if (kept && !overlay.medium && !overlay.dir)
        overlay.medium = "memory";
    bool read_only = (!given && !kept) || cli_set(args, "read-only");
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    CLEANUP_BUF struct buf config = {.data = NULL};
    do_write_config(&config, args, rootfs, read_only, terminal);
    free(rootfs);
    if (buf_error(&config) < 0)
        return errmsg_set(e, -ENOMEM, "out of memory");
    char id[32];
    snprintf(id, sizeof(id), "do-%d", (int)getpid());
    const struct ctr_create how = {
        .id = id,
        .bundle = "/",
        .foreground = true,
        .overlay = overlay,
        .layer_ends = true,
        .config = config.data,
        .config_size = config.size,
    };
    int r = run_container(cli, &how, false, e);
    return r < 0 ? errmsg_prefix(e, r, "cloister do failed") : r;
}

static const struct cli_flag cmd_do_flags[] = {
    {"rootfs", 'r', true, NULL, "tree to use as root; by default the host's own, read-only"},
    {"read-only", 0, false, NULL, "do not let the command change the tree"},
    {"cwd", 0, true, NULL, "directory to start in"},
    OVERLAY_FLAGS,
    {NULL, 0, false, NULL, NULL},
};

const struct cli_verb cmd_do_verb = {
    .name = "do",
    .summary = "run one command in a throw-away container",
    .arguments = "[--] <command> [arguments...]",
    .flags = cmd_do_flags,
    .min_args = 1,
    .max_args = -1,
    .flags_first = true,
    .run = cmd_do_run,
};
