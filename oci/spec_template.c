/* SPDX-License-Identifier: Apache-2.0 */
/* The template of config.json. */
#include "oci/spec_template.h"

#include "oci/json.h"
#include "oci/ocistate.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void spec_template_process(struct json_writer *w)
{
    static const char *const capabilities[] = {"CAP_AUDIT_WRITE", "CAP_KILL",
                                               "CAP_NET_BIND_SERVICE", NULL};
    json_open_object(w, "process");
    json_put_bool(w, "terminal", true);
    json_open_object(w, "user");
    json_put_u64(w, "uid", 0);
    json_put_u64(w, "gid", 0);
    json_close_object(w);
    json_put_strings(w, "args", LIST("sh"));
    json_put_strings(
        w, "env",
        LIST("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"));
    json_put_string(w, "cwd", "/");
    json_open_object(w, "capabilities");
    json_put_strings(w, "bounding", capabilities);
    json_put_strings(w, "effective", capabilities);
    json_put_strings(w, "permitted", capabilities);
    json_put_strings(w, "ambient", capabilities);
    json_close_object(w);
    json_open_array(w, "rlimits");
    json_open_object(w, NULL);
    json_put_string(w, "type", "RLIMIT_NOFILE");
    json_put_u64(w, "hard", 1024);
    json_put_u64(w, "soft", 1024);
    json_close_object(w);
    json_close_array(w);
    json_put_bool(w, "noNewPrivileges", true);
    json_close_object(w);
}

static void spec_template_mount(struct json_writer *w, const char *destination, const char *type,
                                const char *source, const char *const *options)
{
    json_open_object(w, NULL);
    json_put_string(w, "destination", destination);
    json_put_string(w, "type", type);
    json_put_string(w, "source", source);
    if (options)
        json_put_strings(w, "options", options);
    json_close_object(w);
}

static void spec_template_mounts(struct json_writer *w, bool rootless)
{
    json_open_array(w, "mounts");
    spec_template_mount(w, "/proc", "proc", "proc", NULL);
    spec_template_mount(w, "/dev", "tmpfs", "tmpfs",
                        LIST("nosuid", "strictatime", "mode=755", "size=65536k"));
    /* Group 5 (tty) isn't mapped for an ordinary user. */
    spec_template_mount(
        w, "/dev/pts", "devpts", "devpts",
        rootless ? LIST("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620")
                 : LIST("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"));
    spec_template_mount(w, "/dev/shm", "tmpfs", "shm",
                        LIST("nosuid", "noexec", "nodev", "mode=1777", "size=65536k"));
    spec_template_mount(w, "/dev/mqueue", "mqueue", "mqueue", LIST("nosuid", "noexec", "nodev"));
    if (rootless)
        spec_template_mount(w, "/sys", "none", "/sys",
                            LIST("rbind", "nosuid", "noexec", "nodev", "ro"));
    else
        spec_template_mount(w, "/sys", "sysfs", "sysfs", LIST("nosuid", "noexec", "nodev", "ro"));
    spec_template_mount(w, "/sys/fs/cgroup", "cgroup", "cgroup",
                        LIST("nosuid", "noexec", "nodev", "relatime", "ro"));
    json_close_array(w);
}

static void spec_template_mapping(struct json_writer *w, const char *key, uint32_t host_id)
{
    json_open_array(w, key);
    json_open_object(w, NULL);
    json_put_u64(w, "containerID", 0);
    json_put_u64(w, "hostID", host_id);
    json_put_u64(w, "size", 1);
    json_close_object(w);
    json_close_array(w);
}

static void spec_template_linux(struct json_writer *w, bool rootless, uint32_t uid, uint32_t gid)
{
    static const char *const rooted[] = {"pid", "network", "ipc", "uts", "mount", "cgroup", NULL};
    static const char *const mapped[] = {"pid", "ipc", "uts", "mount", "cgroup", "user", NULL};
    json_open_object(w, "linux");
    if (rootless) {
        spec_template_mapping(w, "uidMappings", uid);
        spec_template_mapping(w, "gidMappings", gid);
    } else {
        json_open_object(w, "resources");
        json_open_array(w, "devices");
        json_open_object(w, NULL);
        json_put_bool(w, "allow", false);
        json_put_string(w, "access", "rwm");
        json_close_object(w);
        json_close_array(w);
        json_close_object(w);
    }
    json_open_array(w, "namespaces");
    for (const char *const *ns = rootless ? mapped : rooted; *ns; ns++) {
        json_open_object(w, NULL);
        json_put_string(w, "type", *ns);
        json_close_object(w);
    }
    json_close_array(w);
    json_put_strings(w, "maskedPaths",
                     LIST("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys",
                          "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
                          "/proc/sched_debug", "/sys/firmware", "/proc/scsi"));
    json_put_strings(
        w, "readonlyPaths",
        LIST("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"));
    json_close_object(w);
}

void spec_template_write(struct buf *out, bool rootless, uint32_t uid, uint32_t gid)
{
    struct json_writer w;
    json_writer_init(&w, out, "\t");
    json_open_object(&w, NULL);
    json_put_string(&w, "ociVersion", OCI_SPEC_VERSION);
    spec_template_process(&w);
    json_open_object(&w, "root");
    json_put_string(&w, "path", "rootfs");
    json_put_bool(&w, "readonly", true);
    json_close_object(&w);
    /* Programs see this name, so it doesn't tell which runtime runs them. */
    json_put_string(&w, "hostname", "container");
    spec_template_mounts(&w, rootless);
    spec_template_linux(&w, rootless, uid, gid);
    json_close_object(&w);
}
