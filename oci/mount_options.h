/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a mount in config.json, sorted into what mount(2) and mount_setattr(2) take. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "oci/arena.h"
#include "platform/base/compiler.h"

/* Later options win over earlier ones, as in mount(8). */
struct mount_options {
    unsigned long set;     /* MS_* flags asked for; MS_BIND | MS_REC for rbind */
    unsigned long cleared; /* MS_* flags asked to be off ("rw", "suid", …), for bind remounts */
    /* Propagation changes in the order given: MS_PRIVATE, MS_SHARED, MS_SLAVE or MS_UNBINDABLE,
     * each with MS_REC or without. */
    const unsigned long *propagation;
    unsigned propagation_len;
    uint64_t rec_set;     /* MOUNT_ATTR_* to set on the whole tree ("rro", "rnosuid", …) */
    uint64_t rec_cleared; /* MOUNT_ATTR_* to clear on the whole tree */
    bool tmpcopyup;       /* fill a tmpfs with what the image has at its place */
    bool idmap;           /* idmapped mount; with idmap_recursive the whole tree */
    bool idmap_recursive;
    const char *data; /* what is left: file-system options, comma-separated; "" if none */
};

/* Sorts len options. Strings and arrays live in a. Return: 0. Errors: ENOMEM. */
MUST_CHECK int mount_options_parse(struct arena *a, const char *const *options, unsigned len,
                                   struct mount_options *ret_options);

/* Name of the index-th known option in alphabetical order; NULL past the end. For `features`. */
const char *mount_options_name(unsigned index);

/* Converts one rootfsPropagation word ("private", "rslave", …). Return: MS_* flags, 0 if unknown.
 */
unsigned long mount_options_propagation(const char *word);
