/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and making host namespaces. */
#include "runtime/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "platform/base/host.h"
#include "runtime/errtext.h"

/* Of the host's namespaces a container is given only these; mount and pid come with the processes
 * that serve it, and user and time namespaces are the sentry's alone. */
static const enum oci_ns_type namespaces_host_types[] = {OCI_NS_NETWORK, OCI_NS_IPC, OCI_NS_UTS,
                                                         OCI_NS_CGROUP};

int namespaces_open(const struct oci_spec *spec, struct namespaces *ret_ns, struct errmsg *e)
{
    struct namespaces ns = {.create = 0};
    for (int i = 0; i < OCI_NS_TYPES; i++)
        ns.join[i] = -1;
    for (size_t i = 0; i < ARRAY_SIZE(namespaces_host_types); i++) {
        enum oci_ns_type type = namespaces_host_types[i];
        const struct oci_namespace *wanted = oci_spec_namespace_peek(spec, type);
        if (!wanted)
            continue;
        if (!wanted->path) {
            ns.create |= oci_ns_clone_flag(type);
            continue;
        }
        ns.join[type] = open(wanted->path, O_RDONLY | O_CLOEXEC);
        if (ns.join[type] < 0) {
            int r = errmsg_set(e, -errno, "namespace %s: open %s: %s", oci_ns_type_name(type),
                               wanted->path, errtext(errno));
            namespaces_close(&ns);
            return r;
        }
    }
    *ret_ns = ns;
    return 0;
}

void namespaces_close(struct namespaces *ns)
{
    for (int i = 0; i < OCI_NS_TYPES; i++) {
        host_close(ns->join[i]);
        ns->join[i] = -1;
    }
}

int namespaces_enter(const struct namespaces *ns, struct errmsg *e)
{
    for (int i = 0; i < OCI_NS_TYPES; i++) {
        enum oci_ns_type type = (enum oci_ns_type)i;
        if (ns->join[i] >= 0 && setns(ns->join[i], (int)oci_ns_clone_flag(type)) < 0)
            return errmsg_set(e, -errno, "join the %s namespace: %s", oci_ns_type_name(type),
                              errtext(errno));
    }
    if (ns->create && unshare((int)ns->create) < 0)
        return errmsg_set(e, -errno, "make new namespaces: %s", errtext(errno));
    return 0;
}

int namespaces_enter_pid(pid_t pid, struct errmsg *e)
{
    static const char *const names[] = {"net", "ipc", "uts"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, names[i]);
        CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return errmsg_set(e, -errno, "open %s: %s", path, errtext(errno));
        if (setns(fd, 0) < 0)
            return errmsg_set(e, -errno, "join %s: %s", path, errtext(errno));
    }
    return 0;
}
