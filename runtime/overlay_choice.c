/* SPDX-License-Identifier: Apache-2.0 */
/* --overlay, its kin, and the annotations of the same meaning. */
#include "runtime/overlay_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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

/* One setting and how it was given. */
struct overlay_setting {
    const char *value; /* NULL: it was not */
    const char *name;
};

static struct overlay_setting setting(const char *flag, const char *flag_name, const struct oci_spec *spec, const char *key)
{
    if (flag)
        return (struct overlay_setting){flag, flag_name};
    return (struct overlay_setting){annotation(spec, key + strlen("annotation ")), key};
}

/* Whether the root is a layer of its own already, as engines mount it: a second one would only cost. */
static bool is_layer(const char *rootfs)
{
    enum { OVERLAYFS = 0x794c7630, FUSE = 0x65735546 };
    struct statx stx;
    struct statfs st;
    return statx(AT_FDCWD, rootfs, 0, STATX_BASIC_STATS, &stx) == 0 && (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) &&
           statfs(rootfs, &st) == 0 && (st.f_type == OVERLAYFS || st.f_type == FUSE);
}

static int read_how(struct overlay_setting how, const char *fallback, struct overlay_choice *choice, struct errmsg *e)
{
    const char *value = how.value ? how.value : fallback;
    choice->all = !strcmp(value, "all");
    choice->root = choice->all || !strcmp(value, "root");
    if (!choice->root && strcmp(value, "none"))
        return errmsg_set(e, -EINVAL, "%s: \"%s\" is none of root, all, none", how.name, value);
    return 0;
}

static int read_rest(struct overlay_setting medium, struct overlay_setting size, struct overlay_setting dir,
                     struct overlay_choice *choice, struct errmsg *e)
{
    choice->memory = medium.value && !strcmp(medium.value, "memory");
    if (medium.value && !choice->memory && strcmp(medium.value, "disk"))
        return errmsg_set(e, -EINVAL, "%s: \"%s\" is neither disk nor memory", medium.name, medium.value);
    if (size.value && parse_size(size.value, &choice->size) < 0)
        return errmsg_set(e, -EINVAL, "%s: \"%s\" is not a number of bytes (with K, M or G)", size.name, size.value);
    if (dir.value && (dir.value[0] != '/' || choice->memory))
        return errmsg_set(e, -EINVAL, choice->memory ? "%s: \"%s\" is of no use to an overlay in memory" :
                          "%s: \"%s\" is not an absolute path", dir.name, dir.value);
    choice->dir = dir.value;
    return 0;
}

int overlay_choice_read(const struct overlay_flags *flags, const struct oci_spec *spec, const char *rootfs,
                        struct overlay_choice *ret_choice, struct errmsg *e)
{
    struct overlay_choice choice = {.root = false};
    struct overlay_setting how = setting(flags->overlay, "--overlay", spec, "annotation dev.cloister.overlay");
    struct overlay_setting medium =
        setting(flags->medium, "--overlay-medium", spec, "annotation dev.cloister.overlay.medium");
    struct overlay_setting size = setting(flags->size, "--overlay-size", spec, "annotation dev.cloister.overlay.size");
    struct overlay_setting dir = {flags->dir, "--overlay-dir"};
    bool more = medium.value || size.value || dir.value;
    const char *fallback = flags->fallback ? flags->fallback : !more && is_layer(rootfs) ? "none" : "root";
    int r = read_how(how, fallback, &choice, e);
    if (r == 0)
        r = read_rest(medium, size, dir, &choice, e);
    if (r < 0)
        return r;
    /* What was asked of a layer must not be lost for want of one. */
    if (!choice.root && size.value)
        return errmsg_set(e, -EINVAL, "%s: a size without an overlay (--overlay=root or all)", size.name);
    if (!choice.root && dir.value)
        return errmsg_set(e, -EINVAL, "%s: a place without an overlay (--overlay=root or all)", dir.name);
    if (!choice.root && medium.value)
        return errmsg_set(e, -EINVAL, "%s: a medium without an overlay (--overlay=root or all)", medium.name);
    if (spec->root_readonly && !choice.all)
        choice = (struct overlay_choice){.root = false};
    *ret_choice = choice;
    return 0;
}
