/* SPDX-License-Identifier: Apache-2.0 */
/* Whether writes to a container's trees stay in a layer of its own and where that is, from flags and annotations. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Values of flags; NULL where they were not given. Each wins over its annotation. */
struct overlay_flags {
    const char *overlay, *medium, *size, *dir;
    const char *fallback; /* what counts when neither flag nor annotation says anything; NULL: root, but for a root that is a layer already */
};

struct overlay_choice {
    bool root;       /* changes of the root file system go to a layer of the container's own */
    bool all;        /* as do those of bind mounts */
    bool memory;     /* the layer is in the sandbox's memory and ends with it; else on disk */
    uint64_t size;   /* bytes that the layer may have; 0: no limit of its own */
    const char *dir; /* where layers on disk are; borrowed; NULL: with the root file system */
};

/* rootfs: path of the root file system. A root that is read-only needs no layer and has none. Return: 0, −EINVAL with a message that
 * names the flag or the annotation. */
MUST_CHECK int overlay_choice_read(const struct overlay_flags *flags, const struct oci_spec *spec, const char *rootfs,
                                   struct overlay_choice *ret_choice, struct errmsg *e);
