/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks section of config.json. */
#include "oci/spec_priv.h"

#include <limits.h>

static const char *const hook_kind_names[] = {
    [OCI_HOOK_PRESTART] = "prestart",
    [OCI_HOOK_CREATE_RUNTIME] = "createRuntime",
    [OCI_HOOK_CREATE_CONTAINER] = "createContainer",
    [OCI_HOOK_START_CONTAINER] = "startContainer",
    [OCI_HOOK_POSTSTART] = "poststart",
    [OCI_HOOK_POSTSTOP] = "poststop",
};

const char *oci_hook_kind_name(enum oci_hook_kind kind)
{
    return (unsigned)kind < ARRAY_SIZE(hook_kind_names) ? hook_kind_names[kind] : NULL;
}

static int spec_timeout_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    int64_t seconds;
    int r = json_as_i64(v, 1, INT_MAX, &seconds, ctx->e);
    if (!r)
        *(unsigned *)dst = (unsigned)seconds;
    return r;
}

static int spec_hook_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("path", struct oci_hook, path, FIELD_REQUIRED | FIELD_NONEMPTY | FIELD_ABSOLUTE),
        F_STRINGS("args", struct oci_hook, args, 0),
        F_STRINGS("env", struct oci_hook, env, 0),
        F_OBJECT("timeout", struct oci_hook, timeout_s, 0, spec_timeout_read),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

struct spec_hook_kinds {
    struct oci_hooks kind[OCI_HOOK_KINDS];
};

int spec_hooks_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
#define KIND(json, index) \
    F_ARRAY(json, struct spec_hook_kinds, kind[index].v, kind[index].len, 0, spec_hook_read)
    static const struct field fields[] = {
        KIND("prestart", OCI_HOOK_PRESTART),
        KIND("createRuntime", OCI_HOOK_CREATE_RUNTIME),
        KIND("createContainer", OCI_HOOK_CREATE_CONTAINER),
        KIND("startContainer", OCI_HOOK_START_CONTAINER),
        KIND("poststart", OCI_HOOK_POSTSTART),
        KIND("poststop", OCI_HOOK_POSTSTOP),
    };
#undef KIND
    return FIELDS_READ(ctx, v, fields, dst);
}
