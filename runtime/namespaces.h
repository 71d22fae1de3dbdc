/* SPDX-License-Identifier: Apache-2.0 */
/* Host namespaces that a container's config names. The guests' own namespaces are the sentry's; these
 * are what others read from /proc/PID/ns of the container's pid. */
#pragma once

#include <sys/types.h>

#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct namespaces {
    int join[OCI_NS_TYPES]; /* descriptors of namespaces to join; −1: none */
    unsigned long create;   /* CLONE_NEW* flags of those to make */
};

/* Opens the namespaces to join. Return: 0, −errno with a message.
 * Owns: caller calls namespaces_close. */
MUST_CHECK int namespaces_open(const struct oci_spec *spec, struct namespaces *ret_ns, struct errmsg *e);
void namespaces_close(struct namespaces *ns);
/* Moves the calling process into them (net, ipc, uts, cgroup). */
MUST_CHECK int namespaces_enter(const struct namespaces *ns, struct errmsg *e);
/* Moves the calling process into net, ipc and uts of pid, for hooks of the container's side. */
MUST_CHECK int namespaces_enter_pid(pid_t pid, struct errmsg *e);
