/* SPDX-License-Identifier: Apache-2.0 */
/* The document that `features` prints: what this runtime can do. */
#pragma once

#include <stdbool.h>

#include "platform/base/buf.h"

/* What only the caller knows to be true of this build. */
struct features {
    bool cgroup_v1, cgroup_v2, cgroup_systemd, cgroup_systemd_user;
    bool seccomp; /* linux.seccomp of the config is enforced on the container's programs */
    bool apparmor, selinux;
    bool idmap;          /* idmapped mounts */
    const char *version; /* of the runtime */
    const char *commit;  /* NULL: left out */
};

/* Appends the document, indented by four spaces, with a newline. Errors stick to out. */
void features_write(struct buf *out, const struct features *features);
