/* SPDX-License-Identifier: Apache-2.0 */
/* --overlay, --overlay-size and the annotations of the same meaning. */
#include "runtime/overlay_choice.h"

#include <errno.h>
#include <string.h>

#define OVERLAY_ANNOTATION "dev.cloister.overlay"

static const char *annotation(const struct oci_spec *spec, const char *key)
{
    for (unsigned i = 0; i < spec->annotations.len; i++) {
        if (!strcmp(spec->annotations.v[i].key, key))
            return spec->annotations.v[i].value;
    }
    return NULL;
}

/* A number of bytes with an optional K, M or G. Return: 0, −EINVAL (not one, zero, or beyond 2^62). */
static int parse_size(const char *text, uint64_t *ret_size)
{
    uint64_t n = 0;
    unsigned shift = 0;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (n > (1ULL << 62) / 10)
            return -EINVAL;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    switch (*text) {
    case 'k': case 'K': shift = 10; text++; break;
    case 'm': case 'M': shift = 20; text++; break;
    case 'g': case 'G': shift = 30; text++; break;
    }
    if (*text || !n || n > (1ULL << 62) >> shift)
        return -EINVAL;
    *ret_size = n << shift;
    return 0;
}

int overlay_choice_read(const char *flag, const char *size_flag, const struct oci_spec *spec, struct overlay_choice *ret_choice,
                        struct errmsg *e)
{
    const char *how = flag ? flag : annotation(spec, OVERLAY_ANNOTATION);
    const char *size = size_flag ? size_flag : annotation(spec, OVERLAY_ANNOTATION ".size");
    const char *medium = annotation(spec, OVERLAY_ANNOTATION ".medium");
    struct overlay_choice choice = {.root = how && !strcmp(how, "root")};

    if (how && !choice.root && strcmp(how, "none"))
        return errmsg_set(e, -EINVAL, "%s: \"%s\" is neither root nor none", flag ? "--overlay" : "annotation " OVERLAY_ANNOTATION,
                          how);
    if (medium && strcmp(medium, "memory"))
        return errmsg_set(e, -EINVAL, "annotation " OVERLAY_ANNOTATION ".medium: \"%s\" is not memory, which is all there is yet", medium);
    if (size && parse_size(size, &choice.size) < 0)
        return errmsg_set(e, -EINVAL, "%s: \"%s\" is not a number of bytes (with K, M or G)",
                          size_flag ? "--overlay-size" : "annotation " OVERLAY_ANNOTATION ".size", size);
    if (size && !choice.root)
        return errmsg_set(e, -EINVAL, "%s: a size without an overlay of the root",
                          size_flag ? "--overlay-size" : "annotation " OVERLAY_ANNOTATION ".size");
    if (spec->root_readonly)
        choice = (struct overlay_choice){0};
    *ret_choice = choice;
    return 0;
}
