/* SPDX-License-Identifier: Apache-2.0 */
/* The mounts section of config.json. */
#include "oci/spec_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>

int spec_idmap_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_U32("containerID", struct oci_idmap, container_id, FIELD_REQUIRED),
        F_U32("hostID", struct oci_idmap, host_id, FIELD_REQUIRED),
        F_U32("size", struct oci_idmap, size, FIELD_REQUIRED),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

/* Makes path absolute and drops empty, "." and ".." components, by the text alone: which files the
 * rest names is decided inside the container. Return: a new string, or NULL. */
static char *spec_clean_path(struct arena *a, const char *path)
{
    char *clean = arena_alloc(a, strlen(path) + 2);
    if (!clean)
        return NULL;
    char *end = clean;
    while (*path) {
        size_t len = strcspn(path, "/");
        if (len == 2 && path[0] == '.' && path[1] == '.') {
            while (end > clean && *--end != '/')
                continue;
        } else if (len > 0 && !(len == 1 && path[0] == '.')) {
            *end++ = '/';
            end = mempcpy(end, path, len);
        }
        path += len;
        path += strspn(path, "/");
    }
    if (end == clean)
        *end++ = '/';
    *end = '\0';
    return clean;
}

/* runc takes a relative destination from the root, because specifications before 1.0.0 allowed it.
 */
static int spec_mount_destination(struct fields_ctx *ctx, const struct json_value *v,
                                  struct oci_mount *m)
{
    if (m->destination[0] != '/') {
        int r = fields_warn(ctx, json_member_peek(v, "destination"),
                            "relative path \"%.200s\" is taken from the root", m->destination);
        if (r)
            return r;
    }
    m->destination = spec_clean_path(ctx->arena, m->destination);
    return m->destination ? 0 : fields_oom(ctx);
}

int spec_mount_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("destination", struct oci_mount, destination, FIELD_REQUIRED | FIELD_NONEMPTY),
        F_STRING("type", struct oci_mount, type, 0),
        F_STRING("source", struct oci_mount, source, 0),
        F_STRINGS("options", struct oci_mount, options, 0),
        F_ARRAY("uidMappings", struct oci_mount, uid_mappings.v, uid_mappings.len, 0,
                spec_idmap_read),
        F_ARRAY("gidMappings", struct oci_mount, gid_mappings.v, gid_mappings.len, 0,
                spec_idmap_read),
    };
    struct oci_mount *m = dst;
    int r = FIELDS_READ(ctx, v, fields, m);
    if (!r)
        r = spec_mount_destination(ctx, v, m);
    if (r)
        return r;
    if (mount_options_parse(ctx->arena, m->options.v, m->options.len, &m->parsed))
        return fields_oom(ctx);
    /* A bind mount may be asked for by type or by option. */
    if (m->type && strcmp(m->type, "bind") == 0)
        m->parsed.set |= MS_BIND;
    else if (m->parsed.set & MS_BIND)
        m->type = "bind";
    if ((m->parsed.set & MS_BIND) && (!m->source || !m->source[0]))
        return json_error(v, ctx->e, "a bind mount needs a source");
    return 0;
}
