/* SPDX-License-Identifier: Apache-2.0 */
/* The linux.resources section of config.json, and the document that `update` reads. */
#include "oci/spec_priv.h"

#include <errno.h>
#include <string.h>

static int spec_device_rule_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_BOOL("allow", struct oci_device_rule, allow),
        F_I64("major", struct oci_device_rule, major, 0),
        F_I64("minor", struct oci_device_rule, minor, 0),
        F_STRING("access", struct oci_device_rule, access, 0),
    };
    static const struct field_word types[] = {
        {"", 'a'}, {"a", 'a'}, {"b", 'b'}, {"c", 'c'}, {NULL, 0}};
    struct oci_device_rule *rule = dst;
    *rule = (struct oci_device_rule){.type = 'a', .major = -1, .minor = -1};
    int r = FIELDS_READ(ctx, v, fields, rule);
    if (r)
        return r;
    const struct json_value *type = json_member_peek(v, "type");
    if (type) {
        int64_t letter;
        r = fields_word(ctx, type, types, &letter);
        if (r)
            return r;
        rule->type = (char)letter;
    }
    if (!rule->access || !rule->access[0])
        rule->access = "rwm";
    if (rule->access[strspn(rule->access, "rwm")])
        return json_error(json_member_peek(v, "access"), ctx->e,
                          "expected letters out of rwm, got \"%.64s\"", rule->access);
    return 0;
}

static int spec_memory_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
#define R struct oci_resources
    static const struct field fields[] = {
        F_OPT_I64("limit", R, memory.limit),
        F_OPT_I64("reservation", R, memory.reservation),
        F_OPT_I64("swap", R, memory.swap),
        F_OPT_I64("kernel", R, memory.kernel),
        F_OPT_I64("kernelTCP", R, memory.kernel_tcp),
        F_OPT_U64("swappiness", R, memory.swappiness, 0),
        F_OPT_BOOL("disableOOMKiller", R, memory.disable_oom_killer),
        F_OPT_BOOL("useHierarchy", R, memory.use_hierarchy),
        F_OPT_BOOL("checkBeforeUpdate", R, memory.check_before_update),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_cpu_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_OPT_U64("shares", R, cpu.shares, 0),
        F_OPT_I64("quota", R, cpu.quota),
        F_OPT_U64("burst", R, cpu.burst, 0),
        F_OPT_U64("period", R, cpu.period, 0),
        F_OPT_I64("realtimeRuntime", R, cpu.realtime_runtime),
        F_OPT_U64("realtimePeriod", R, cpu.realtime_period, 0),
        F_STRING("cpus", R, cpu.cpus, 0),
        F_STRING("mems", R, cpu.mems, 0),
        F_OPT_I64("idle", R, cpu.idle),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_pids_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_OPT_I64("limit", R, pids_limit),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_weight_device_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_I64("major", struct oci_weight_device, major, FIELD_REQUIRED),
        F_I64("minor", struct oci_weight_device, minor, FIELD_REQUIRED),
        F_OPT_U64("weight", struct oci_weight_device, weight, UINT16_MAX),
        F_OPT_U64("leafWeight", struct oci_weight_device, leaf_weight, UINT16_MAX),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_throttle_device_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_I64("major", struct oci_throttle_device, major, FIELD_REQUIRED),
        F_I64("minor", struct oci_throttle_device, minor, FIELD_REQUIRED),
        F_U64("rate", struct oci_throttle_device, rate, FIELD_REQUIRED),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_block_io_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
#define THROTTLE(json, member) \
    F_ARRAY(json, R, block_io.member.v, block_io.member.len, 0, spec_throttle_device_read)
    static const struct field fields[] = {
        F_OPT_U64("weight", R, block_io.weight, UINT16_MAX),
        F_OPT_U64("leafWeight", R, block_io.leaf_weight, UINT16_MAX),
        F_ARRAY("weightDevice", R, block_io.weight_device, block_io.weight_device_len, 0,
                spec_weight_device_read),
        THROTTLE("throttleReadBpsDevice", read_bps),
        THROTTLE("throttleWriteBpsDevice", write_bps),
        THROTTLE("throttleReadIOPSDevice", read_iops),
        THROTTLE("throttleWriteIOPSDevice", write_iops),
    };
#undef THROTTLE
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_hugepage_limit_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("pageSize", struct oci_hugepage_limit, page_size, FIELD_REQUIRED | FIELD_NONEMPTY),
        F_U64("limit", struct oci_hugepage_limit, limit, FIELD_REQUIRED),
    };
    struct oci_hugepage_limit *h = dst;
    int r = FIELDS_READ(ctx, v, fields, h);
    if (r)
        return r;
    /* The size becomes part of a cgroup file name: digits and a unit, nothing else. */
    size_t digits = strspn(h->page_size, "0123456789");
    const char *unit = h->page_size + digits;
    if (digits == 0 ||
        (strcmp(unit, "KB") != 0 && strcmp(unit, "MB") != 0 && strcmp(unit, "GB") != 0))
        return json_error(json_member_peek(v, "pageSize"), ctx->e,
                          "expected a size such as \"2MB\", got \"%.64s\"", h->page_size);
    return 0;
}

static int spec_net_priority_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("name", struct oci_net_priority, name, FIELD_REQUIRED | FIELD_NONEMPTY),
        F_U32("priority", struct oci_net_priority, priority, FIELD_REQUIRED),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_network_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_OPT_U64("classID", R, net_class_id, UINT32_MAX),
        F_ARRAY("priorities", R, net_priorities, net_priorities_len, 0, spec_net_priority_read),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

/* A map from device name to limits. */
static int spec_rdma_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_OPT_U64("hcaHandles", struct oci_rdma, hca_handles, UINT32_MAX),
        F_OPT_U64("hcaObjects", struct oci_rdma, hca_objects, UINT32_MAX),
    };
    struct oci_resources *res = dst;
    int r = json_expect(v, JSON_OBJECT, ctx->e);
    if (r)
        return r;
    struct oci_rdma *list = arena_calloc(ctx->arena, json_len(v), sizeof(*list));
    if (!list)
        return fields_oom(ctx);
    unsigned len = 0;
    json_for_each(child, v)
    {
        struct oci_rdma *entry = &list[len++];
        r = json_key_check(child, ctx->e);
        if (!r)
            r = FIELDS_READ(ctx, child, fields, entry);
        if (r)
            return r;
        entry->name = json_key(child);
    }
    res->rdma = list;
    res->rdma_len = len;
    return 0;
}

int spec_resources_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_ARRAY("devices", R, devices, devices_len, 0, spec_device_rule_read),
        F_SELF("memory", 0, spec_memory_read),
        F_SELF("cpu", 0, spec_cpu_read),
        F_SELF("pids", 0, spec_pids_read),
        F_SELF("blockIO", 0, spec_block_io_read),
        F_ARRAY("hugepageLimits", R, hugepage_limits, hugepage_limits_len, 0,
                spec_hugepage_limit_read),
        F_SELF("network", 0, spec_network_read),
        F_SELF("rdma", 0, spec_rdma_read),
        F_PAIRS("unified", R, unified),
    };
#undef R
    int r = FIELDS_READ(ctx, v, fields, dst);
    if (r)
        return r;
    const struct oci_resources *res = dst;
    for (unsigned i = 0; i < res->unified.len; i++) {
        const char *key = res->unified.v[i].key;
        if (strchr(key, '/') || key[0] == '.')
            return json_error(json_member_peek(json_member_peek(v, "unified"), key), ctx->e,
                              "expected the name of a cgroup file");
    }
    return 0;
}
