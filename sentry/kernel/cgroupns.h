/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup namespaces. All of a container's processes are in its one group, which is the root of every view of the hierarchy:
 * so namespaces differ in their identity and owner alone. Source: cgroup_namespaces(7). */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"

struct cgroupns {
    struct ref ref;
    struct userns *userns; /* (i) referenced */
    uint64_t ino;          /* (i) of /proc/PID/ns/cgroup */
    struct ucharge charge; /* (i) */
};

/* NULL stands for the container's own one. Return: 0, −ENOSPC, −ENOMEM. */
MUST_CHECK int cgroupns_new(struct userns *userns, uint32_t uid, struct cgroupns **ret_ns);
struct cgroupns *cgroupns_ref(struct cgroupns *ns); /* NULL is fine */
void cgroupns_unref(struct cgroupns *ns);           /* NULL is fine */
