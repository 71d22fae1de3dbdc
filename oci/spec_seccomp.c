/* SPDX-License-Identifier: Apache-2.0 */
/* The linux.seccomp section of config.json. */
#include "oci/spec_priv.h"

#include <errno.h>
#include <string.h>

static const struct field_word spec_seccomp_actions[] = {
    {"SCMP_ACT_KILL", OCI_SECCOMP_KILL_THREAD},
    {"SCMP_ACT_KILL_PROCESS", OCI_SECCOMP_KILL_PROCESS},
    {"SCMP_ACT_KILL_THREAD", OCI_SECCOMP_KILL_THREAD},
    {"SCMP_ACT_TRAP", OCI_SECCOMP_TRAP},
    {"SCMP_ACT_ERRNO", OCI_SECCOMP_ERRNO},
    {"SCMP_ACT_TRACE", OCI_SECCOMP_TRACE},
    {"SCMP_ACT_ALLOW", OCI_SECCOMP_ALLOW},
    {"SCMP_ACT_LOG", OCI_SECCOMP_LOG},
    {"SCMP_ACT_NOTIFY", OCI_SECCOMP_NOTIFY},
    {NULL, 0},
};

static const struct field_word spec_seccomp_ops[] = {
    {"SCMP_CMP_NE", OCI_SECCOMP_NE},
    {"SCMP_CMP_LT", OCI_SECCOMP_LT},
    {"SCMP_CMP_LE", OCI_SECCOMP_LE},
    {"SCMP_CMP_EQ", OCI_SECCOMP_EQ},
    {"SCMP_CMP_GE", OCI_SECCOMP_GE},
    {"SCMP_CMP_GT", OCI_SECCOMP_GT},
    {"SCMP_CMP_MASKED_EQ", OCI_SECCOMP_MASKED_EQ},
    {NULL, 0},
};

/* Values are not used: the names say which machine a rule list is for. */
static const struct field_word spec_seccomp_archs[] = {
    {"SCMP_ARCH_X86", 0},      {"SCMP_ARCH_X86_64", 0},      {"SCMP_ARCH_X32", 0},
    {"SCMP_ARCH_ARM", 0},      {"SCMP_ARCH_AARCH64", 0},     {"SCMP_ARCH_MIPS", 0},
    {"SCMP_ARCH_MIPS64", 0},   {"SCMP_ARCH_MIPS64N32", 0},   {"SCMP_ARCH_MIPSEL", 0},
    {"SCMP_ARCH_MIPSEL64", 0}, {"SCMP_ARCH_MIPSEL64N32", 0}, {"SCMP_ARCH_PPC", 0},
    {"SCMP_ARCH_PPC64", 0},    {"SCMP_ARCH_PPC64LE", 0},     {"SCMP_ARCH_S390", 0},
    {"SCMP_ARCH_S390X", 0},    {"SCMP_ARCH_PARISC", 0},      {"SCMP_ARCH_PARISC64", 0},
    {"SCMP_ARCH_RISCV64", 0},  {"SCMP_ARCH_LOONGARCH64", 0}, {"SCMP_ARCH_M68K", 0},
    {"SCMP_ARCH_SH", 0},       {"SCMP_ARCH_SHEB", 0},        {NULL, 0},
};

static const struct field_word spec_seccomp_flags[] = {
    {"SECCOMP_FILTER_FLAG_TSYNC", 1U << 0},
    {"SECCOMP_FILTER_FLAG_LOG", 1U << 1},
    {"SECCOMP_FILTER_FLAG_SPEC_ALLOW", 1U << 2},
    {"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", 1U << 5},
    {NULL, 0},
};

static int spec_seccomp_flags_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    int r = json_expect(v, JSON_ARRAY, ctx->e);
    if (r)
        return r;
    json_for_each(child, v)
    {
        int64_t flag;
        r = fields_word(ctx, child, spec_seccomp_flags, &flag);
        if (r)
            return r;
        *(uint32_t *)dst |= (uint32_t)flag;
    }
    return 0;
}

static int spec_seccomp_arg_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        {FIELD_AS(unsigned, FIELD_U32, "index", struct oci_seccomp_arg, index, FIELD_REQUIRED),
         .max = 5},
        F_U64("value", struct oci_seccomp_arg, value, FIELD_REQUIRED),
        F_U64("valueTwo", struct oci_seccomp_arg, value_two, 0),
        F_WORD("op", struct oci_seccomp_arg, op, FIELD_REQUIRED, spec_seccomp_ops),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_seccomp_rule_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRINGS("names", struct oci_seccomp_rule, names, FIELD_REQUIRED | FIELD_NONEMPTY),
        F_WORD("action", struct oci_seccomp_rule, action, FIELD_REQUIRED, spec_seccomp_actions),
        F_U32_SET("errnoRet", struct oci_seccomp_rule, errno_ret, errno_set, 0),
        F_ARRAY("args", struct oci_seccomp_rule, args, args_len, 0, spec_seccomp_arg_read),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

int spec_seccomp_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_WORD("defaultAction", struct oci_seccomp, default_action, FIELD_REQUIRED,
               spec_seccomp_actions),
        F_U32_SET("defaultErrnoRet", struct oci_seccomp, default_errno_ret, default_errno_set, 0),
        F_STRINGS("architectures", struct oci_seccomp, architectures, 0),
        F_OBJECT("flags", struct oci_seccomp, flags, 0, spec_seccomp_flags_read),
        F_STRING("listenerPath", struct oci_seccomp, listener_path, 0),
        F_STRING("listenerMetadata", struct oci_seccomp, listener_metadata, 0),
        F_ARRAY("syscalls", struct oci_seccomp, rules, rules_len, 0, spec_seccomp_rule_read),
    };
    ((struct oci_seccomp *)dst)->set = true;
    int r = FIELDS_READ(ctx, v, fields, dst);
    if (r)
        return r;
    const struct json_value *archs = json_member_peek(v, "architectures");
    if (!archs)
        return 0;
    json_for_each(child, archs)
    {
        int64_t unused;
        r = fields_word(ctx, child, spec_seccomp_archs, &unused);
        if (r)
            return r;
    }
    return 0;
}
