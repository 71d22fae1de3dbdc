/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices a container may open: linux.resources.devices, with the meaning of the devices
 * cgroup. Source: Documentation/admin-guide/cgroup-v1/devices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct devrules;

enum { DEV_ACCESS_READ = 1, DEV_ACCESS_WRITE = 2, DEV_ACCESS_MKNOD = 4 };

struct devrule {
    bool allow;
    char type;            /* 'a', 'b' or 'c' */
    int64_t major, minor; /* −1: all */
    unsigned access;      /* DEV_ACCESS_* */
};

/* Rules in the order given, from "nothing is allowed", and after them those that runc adds for
 * every container (the standard devices, terminals, and making any node). Caller owns the result.
 * Return: 0, −E2BIG, −ENOMEM. */
MUST_CHECK int devrules_new(const struct devrule *rules, unsigned len, struct devrules **ret_rules);
void devrules_free(struct devrules *r);
/* Whether a device of type 'b' or 'c' may be used in all the ways of access. */
bool devrules_allow(const struct devrules *r, char type, uint32_t major, uint32_t minor,
                    unsigned access);
