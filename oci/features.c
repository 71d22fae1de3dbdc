/* SPDX-License-Identifier: Apache-2.0 */
/* The features document. */
#include "oci/features.h"

#include <string.h>

#include "oci/json.h"
#include "oci/ocistate.h"
#include "oci/spec.h"

static void features_seccomp(struct json_writer *w, bool enabled)
{
    static const char *const actions[] = {
        "SCMP_ACT_ALLOW",        "SCMP_ACT_ERRNO",       "SCMP_ACT_KILL",
        "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG",
        "SCMP_ACT_TRACE",        "SCMP_ACT_TRAP",        NULL,
    };
    static const char *const operators[] = {
        "SCMP_CMP_EQ", "SCMP_CMP_GE",        "SCMP_CMP_GT", "SCMP_CMP_LE",
        "SCMP_CMP_LT", "SCMP_CMP_MASKED_EQ", "SCMP_CMP_NE", NULL,
    };
    static const char *const archs[] = {"SCMP_ARCH_X86_64", NULL};
    json_open_object(w, "seccomp");
    json_put_bool(w, "enabled", enabled);
    if (enabled) {
        json_put_strings(w, "actions", actions);
        json_put_strings(w, "operators", operators);
        json_put_strings(w, "archs", archs);
    }
    json_close_object(w);
}

static void features_enabled(struct json_writer *w, const char *key, bool enabled)
{
    json_open_object(w, key);
    json_put_bool(w, "enabled", enabled);
    json_close_object(w);
}

static void features_linux(struct json_writer *w, const struct features *f)
{
    static const char *const namespaces[] = {"cgroup", "ipc",  "mount", "network",
                                             "pid",    "user", "uts",   NULL};
    json_open_object(w, "linux");
    json_put_strings(w, "namespaces", namespaces);
    json_open_array(w, "capabilities");
    for (unsigned i = 0; oci_capability_name(i); i++)
        json_put_string(w, NULL, oci_capability_name(i));
    json_close_array(w);
    json_open_object(w, "cgroup");
    json_put_bool(w, "v1", f->cgroup_v1);
    json_put_bool(w, "v2", f->cgroup_v2);
    json_put_bool(w, "systemd", f->cgroup_systemd);
    json_put_bool(w, "systemdUser", f->cgroup_systemd_user);
    json_close_object(w);
    features_seccomp(w, f->seccomp);
    features_enabled(w, "apparmor", f->apparmor);
    features_enabled(w, "selinux", f->selinux);
    json_open_object(w, "mountExtensions");
    features_enabled(w, "idmap", f->idmap);
    json_close_object(w);
    json_close_object(w);
}

void features_write(struct buf *out, const struct features *f)
{
    struct json_writer w;
    json_writer_init(&w, out, "    ");
    json_open_object(&w, NULL);
    json_put_string(&w, "ociVersionMin", "1.0.0");
    json_put_string(&w, "ociVersionMax", OCI_SPEC_VERSION);
    json_open_array(&w, "hooks");
    for (unsigned i = 0; i < OCI_HOOK_KINDS; i++)
        json_put_string(&w, NULL, oci_hook_kind_name(i));
    json_close_array(&w);
    json_open_array(&w, "mountOptions");
    for (unsigned i = 0; mount_options_name(i); i++) {
        if (f->idmap || !strstr(mount_options_name(i), "idmap"))
            json_put_string(&w, NULL, mount_options_name(i));
    }
    json_close_array(&w);
    features_linux(&w, f);
    json_open_object(&w, "annotations");
    if (f->commit)
        json_put_string(&w, "dev.cloister.commit", f->commit);
    json_put_string(&w, "dev.cloister.version", f->version);
    json_close_object(&w);
    json_close_object(&w);
    buf_putc(out, '\n');
}
