/* SPDX-License-Identifier: Apache-2.0 */
/* Whether writes to the root file system stay in a layer of the container's own, from flags and annotations. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct overlay_choice {
    bool root;     /* changes to the root file system go to a layer in the sandbox's memory, and end with it */
    uint64_t size; /* bytes that the layer may have; 0: what a tmpfs without size= may have */
};

/* flag, size_flag: values of --overlay and --overlay-size, NULL where they were not given; they win over the annotations
 * dev.cloister.overlay and dev.cloister.overlay.size. A root that is read-only needs no layer and has none. Return: 0, −EINVAL with a
 * message that names the flag or the annotation. */
MUST_CHECK int overlay_choice_read(const char *flag, const char *size_flag, const struct oci_spec *spec,
                                   struct overlay_choice *ret_choice, struct errmsg *e);
