/* SPDX-License-Identifier: Apache-2.0 */
/* The linux section of config.json without its resources and seccomp parts. */
#include "oci/spec_priv.h"

#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/personality.h>

static const struct {
    const char *name;
    unsigned long clone_flag;
} ns_types[] = {
    [OCI_NS_PID] = {"pid", CLONE_NEWPID},          [OCI_NS_NETWORK] = {"network", CLONE_NEWNET},
    [OCI_NS_MOUNT] = {"mount", CLONE_NEWNS},       [OCI_NS_IPC] = {"ipc", CLONE_NEWIPC},
    [OCI_NS_UTS] = {"uts", CLONE_NEWUTS},          [OCI_NS_USER] = {"user", CLONE_NEWUSER},
    [OCI_NS_CGROUP] = {"cgroup", CLONE_NEWCGROUP}, [OCI_NS_TIME] = {"time", CLONE_NEWTIME},
};

const char *oci_ns_type_name(enum oci_ns_type type)
{
    return (unsigned)type < ARRAY_SIZE(ns_types) ? ns_types[type].name : NULL;
}

unsigned long oci_ns_clone_flag(enum oci_ns_type type)
{
    return (unsigned)type < ARRAY_SIZE(ns_types) ? ns_types[type].clone_flag : 0;
}

static int spec_namespace_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field_word types[] = {
        {"pid", OCI_NS_PID},       {"network", OCI_NS_NETWORK}, {"mount", OCI_NS_MOUNT},
        {"ipc", OCI_NS_IPC},       {"uts", OCI_NS_UTS},         {"user", OCI_NS_USER},
        {"cgroup", OCI_NS_CGROUP}, {"time", OCI_NS_TIME},       {NULL, 0},
    };
    static const struct field fields[] = {
        F_WORD("type", struct oci_namespace, type, FIELD_REQUIRED, types),
        F_STRING("path", struct oci_namespace, path, 0),
    };
    struct oci_namespace *ns = dst;
    int r = FIELDS_READ(ctx, v, fields, ns);
    if (r || !ns->path)
        return r;
    if (!ns->path[0])
        ns->path = NULL; /* engines write "" for a new one */
    else if (ns->path[0] != '/')
        return json_error(json_member_peek(v, "path"), ctx->e,
                          "expected an absolute path, got \"%.200s\"", ns->path);
    return 0;
}

static int spec_check_namespaces(struct fields_ctx *ctx, const struct json_value *v,
                                 const struct oci_linux *l)
{
    const struct json_value *list = json_member_peek(v, "namespaces");
    if (!list)
        return 0;
    unsigned seen = 0, i = 0;
    json_for_each(child, list)
    {
        enum oci_ns_type type = l->namespaces[i++].type;
        if (seen & 1U << type)
            return json_error(child, ctx->e, "namespace \"%s\" is listed twice",
                              oci_ns_type_name(type));
        seen |= 1U << type;
    }
    return 0;
}

/* Reads the type letter of a device; letters are those allowed. */
static int spec_device_letter(struct fields_ctx *ctx, const struct json_value *v, const char *name,
                              const char *letters, char *ret_letter)
{
    const struct json_value *type = json_member_peek(v, name);
    if (!type)
        return 0;
    const char *s;
    int r = json_as_string(type, &s, ctx->e);
    if (r || !s[0])
        return r;
    if (s[1] || !strchr(letters, s[0]))
        return json_error(type, ctx->e, "expected one of the letters %s, got \"%.64s\"", letters,
                          s);
    *ret_letter = s[0];
    return 0;
}

static int spec_device_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("path", struct oci_device, path, FIELD_REQUIRED | FIELD_NONEMPTY | FIELD_ABSOLUTE),
        F_I64("major", struct oci_device, major, 0),
        F_I64("minor", struct oci_device, minor, 0),
        F_U32_SET("fileMode", struct oci_device, file_mode, file_mode_set, 0),
        F_U32_SET("uid", struct oci_device, uid, uid_set, 0),
        F_U32_SET("gid", struct oci_device, gid, gid_set, 0),
    };
    struct oci_device *d = dst;
    int r = FIELDS_READ(ctx, v, fields, d);
    if (!r)
        r = spec_device_letter(ctx, v, "type", "bcup", &d->type);
    if (r)
        return r;
    if (!d->type)
        return json_missing(v, "type", ctx->e);
    if (d->type == 'p')
        return 0;
    static const char *const numbers[] = {"major", "minor"};
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        const struct json_value *number = json_member_peek(v, numbers[i]);
        if (!number)
            return json_missing(v, numbers[i], ctx->e);
        int64_t checked;
        r = json_as_i64(number, 0, UINT32_MAX, &checked, ctx->e);
        if (r)
            return r;
    }
    return 0;
}

static int spec_propagation_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    const char *s;
    int r = json_as_string(v, &s, ctx->e);
    if (r || !s[0])
        return r;
    unsigned long flags = mount_options_propagation(s);
    if (!flags)
        return json_error(v, ctx->e,
                          "expected one of shared, rshared, slave, rslave, private, rprivate, "
                          "unbindable, runbindable, got \"%.64s\"",
                          s);
    *(unsigned long *)dst = flags;
    return 0;
}

static int spec_intel_rdt_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("closID", struct oci_intel_rdt, clos_id, 0),
        F_STRING("l3CacheSchema", struct oci_intel_rdt, l3_cache_schema, 0),
        F_STRING("memBwSchema", struct oci_intel_rdt, mem_bw_schema, 0),
        F_BOOL("enableCMT", struct oci_intel_rdt, enable_cmt),
        F_BOOL("enableMBM", struct oci_intel_rdt, enable_mbm),
    };
    ((struct oci_intel_rdt *)dst)->set = true;
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_personality_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field_word domains[] = {
        {"LINUX", PER_LINUX},
        {"LINUX32", PER_LINUX32},
        {NULL, 0},
    };
    int r = json_expect(v, JSON_OBJECT, ctx->e);
    if (r)
        return r;
    const struct json_value *domain = json_member_peek(v, "domain");
    if (!domain)
        return json_missing(v, "domain", ctx->e);
    int64_t value;
    r = fields_word(ctx, domain, domains, &value);
    if (r)
        return r;
    const struct json_value *flags = json_member_peek(v, "flags");
    if (flags)
        r = json_expect(flags, JSON_ARRAY, ctx->e);
    if (!r && flags && json_len(flags) > 0)
        r = json_error(flags, ctx->e, "no flag is supported");
    ((struct oci_linux *)dst)->personality_set = true;
    ((struct oci_linux *)dst)->personality = (unsigned long)value;
    return r;
}

static int spec_time_offset_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_I64("secs", struct oci_time_offset, secs, 0),
        {FIELD_AS(uint32_t, FIELD_U32, "nanosecs", struct oci_time_offset, nanosecs, 0),
         .max = 999999999},
    };
    ((struct oci_time_offset *)dst)->set = true;
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_time_offsets_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_OBJECT("monotonic", struct oci_linux, monotonic, 0, spec_time_offset_read),
        F_OBJECT("boottime", struct oci_linux, boottime, 0, spec_time_offset_read),
    };
    int r = FIELDS_READ(ctx, v, fields, dst);
    if (r)
        return r;
    json_for_each(child, v)
    {
        if (strcmp(json_key(child), "monotonic") != 0 && strcmp(json_key(child), "boottime") != 0)
            return json_error(child, ctx->e, "unknown clock, expected monotonic or boottime");
    }
    return 0;
}

int spec_linux_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_ARRAY("namespaces", struct oci_linux, namespaces, namespaces_len, 0, spec_namespace_read),
        F_ARRAY("uidMappings", struct oci_linux, uid_mappings.v, uid_mappings.len, 0,
                spec_idmap_read),
        F_ARRAY("gidMappings", struct oci_linux, gid_mappings.v, gid_mappings.len, 0,
                spec_idmap_read),
        F_ARRAY("devices", struct oci_linux, devices, devices_len, 0, spec_device_read),
        F_STRING("cgroupsPath", struct oci_linux, cgroups_path, 0),
        F_OBJECT("resources", struct oci_linux, resources, 0, spec_resources_read),
        F_OBJECT("rootfsPropagation", struct oci_linux, rootfs_propagation, 0,
                 spec_propagation_read),
        F_STRINGS("maskedPaths", struct oci_linux, masked_paths, FIELD_ABSOLUTE),
        F_STRINGS("readonlyPaths", struct oci_linux, readonly_paths, FIELD_ABSOLUTE),
        F_PAIRS("sysctl", struct oci_linux, sysctl),
        F_STRING("mountLabel", struct oci_linux, mount_label, 0),
        F_OBJECT("seccomp", struct oci_linux, seccomp, 0, spec_seccomp_read),
        F_OBJECT("intelRdt", struct oci_linux, intel_rdt, 0, spec_intel_rdt_read),
        F_SELF("personality", 0, spec_personality_read),
        F_SELF("timeOffsets", 0, spec_time_offsets_read),
    };
    int r = FIELDS_READ(ctx, v, fields, dst);
    return r ? r : spec_check_namespaces(ctx, v, dst);
}
