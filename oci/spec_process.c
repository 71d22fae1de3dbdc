/* SPDX-License-Identifier: Apache-2.0 */
/* The process section of config.json. */
#include "oci/spec_priv.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#define SPEC_RLIMITS_MAX 16U /* as many as there are kinds */

/* Index is the kernel's number of the capability. */
static const char *const capability_names[] = {
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
};

int oci_capability_number(const char *name)
{
    for (unsigned i = 0; i < ARRAY_SIZE(capability_names); i++) {
        if (strcmp(capability_names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

const char *oci_capability_name(unsigned number)
{
    return number < ARRAY_SIZE(capability_names) ? capability_names[number] : NULL;
}

static const struct field_word spec_rlimits[] = {
    {"RLIMIT_AS", RLIMIT_AS},
    {"RLIMIT_CORE", RLIMIT_CORE},
    {"RLIMIT_CPU", RLIMIT_CPU},
    {"RLIMIT_DATA", RLIMIT_DATA},
    {"RLIMIT_FSIZE", RLIMIT_FSIZE},
    {"RLIMIT_LOCKS", RLIMIT_LOCKS},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
    {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
    {"RLIMIT_NICE", RLIMIT_NICE},
    {"RLIMIT_NOFILE", RLIMIT_NOFILE},
    {"RLIMIT_NPROC", RLIMIT_NPROC},
    {"RLIMIT_RSS", RLIMIT_RSS},
    {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
    {"RLIMIT_RTTIME", RLIMIT_RTTIME},
    {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
    {"RLIMIT_STACK", RLIMIT_STACK},
    {NULL, 0},
};

int oci_rlimit_number(const char *name)
{
    for (const struct field_word *w = spec_rlimits; w->word; w++) {
        if (strcmp(w->word, name) == 0)
            return (int)w->value;
    }
    return -1;
}

static int spec_rlimit_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("type", struct oci_rlimit, name, FIELD_REQUIRED),
        F_WORD("type", struct oci_rlimit, resource, FIELD_REQUIRED, spec_rlimits),
        F_U64("soft", struct oci_rlimit, soft, FIELD_REQUIRED),
        F_U64("hard", struct oci_rlimit, hard, FIELD_REQUIRED),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_gid_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    uint64_t gid;
    int r = json_as_u64(v, UINT32_MAX, &gid, ctx->e);
    if (!r)
        *(uint32_t *)dst = (uint32_t)gid;
    return r;
}

static int spec_user_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_U32("uid", struct oci_user, uid, 0),
        F_U32("gid", struct oci_user, gid, 0),
        F_U32_SET("umask", struct oci_user, umask, umask_set, 0777),
        F_ARRAY("additionalGids", struct oci_user, additional_gids, additional_gids_len, 0,
                spec_gid_read),
        F_STRING("username", struct oci_user, username, 0),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_console_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_U16("height", struct oci_process, console_rows, FIELD_REQUIRED),
        F_U16("width", struct oci_process, console_cols, FIELD_REQUIRED),
    };
    return FIELDS_READ(ctx, v, fields, dst);
}

/* Unknown names are left out with a warning, as a newer engine may list what is not known here. */
static int spec_capability_set_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    uint64_t *set = dst;
    int r = json_expect(v, JSON_ARRAY, ctx->e);
    if (r)
        return r;
    json_for_each(child, v)
    {
        const char *name;
        r = json_as_string(child, &name, ctx->e);
        if (r)
            return r;
        int number = oci_capability_number(name);
        if (number >= 0)
            *set |= UINT64_C(1) << number;
        else if ((r = fields_warn(ctx, child, "unknown capability \"%.64s\" is ignored", name)))
            return r;
    }
    return 0;
}

static int spec_capabilities_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_OBJECT("bounding", struct oci_capabilities, bounding, 0, spec_capability_set_read),
        F_OBJECT("effective", struct oci_capabilities, effective, 0, spec_capability_set_read),
        F_OBJECT("inheritable", struct oci_capabilities, inheritable, 0, spec_capability_set_read),
        F_OBJECT("permitted", struct oci_capabilities, permitted, 0, spec_capability_set_read),
        F_OBJECT("ambient", struct oci_capabilities, ambient, 0, spec_capability_set_read),
    };
    ((struct oci_capabilities *)dst)->set = true;
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_io_priority_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field_word classes[] = {
        {"IOPRIO_CLASS_RT", OCI_IO_CLASS_RT},
        {"IOPRIO_CLASS_BE", OCI_IO_CLASS_BE},
        {"IOPRIO_CLASS_IDLE", OCI_IO_CLASS_IDLE},
        {NULL, 0},
    };
    static const struct field fields[] = {
        F_WORD("class", struct oci_io_priority, io_class, FIELD_REQUIRED, classes),
        F_I32("priority", struct oci_io_priority, priority, 0),
    };
    ((struct oci_io_priority *)dst)->set = true;
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_scheduler_flags_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field_word flags[] = {
        {"SCHED_FLAG_RESET_ON_FORK", 0x01},  {"SCHED_FLAG_RECLAIM", 0x02},
        {"SCHED_FLAG_DL_OVERRUN", 0x04},     {"SCHED_FLAG_KEEP_POLICY", 0x08},
        {"SCHED_FLAG_KEEP_PARAMS", 0x10},    {"SCHED_FLAG_UTIL_CLAMP_MIN", 0x20},
        {"SCHED_FLAG_UTIL_CLAMP_MAX", 0x40}, {NULL, 0},
    };
    int r = json_expect(v, JSON_ARRAY, ctx->e);
    if (r)
        return r;
    json_for_each(child, v)
    {
        int64_t flag;
        r = fields_word(ctx, child, flags, &flag);
        if (r)
            return r;
        *(uint64_t *)dst |= (uint64_t)flag;
    }
    return 0;
}

static int spec_scheduler_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field_word policies[] = {
        {"SCHED_OTHER", SCHED_OTHER},
        {"SCHED_FIFO", SCHED_FIFO},
        {"SCHED_RR", SCHED_RR},
        {"SCHED_BATCH", SCHED_BATCH},
        {"SCHED_ISO", 4},
        {"SCHED_IDLE", SCHED_IDLE},
        {"SCHED_DEADLINE", 6},
        {NULL, 0},
    };
    static const struct field fields[] = {
        F_WORD("policy", struct oci_scheduler, policy, FIELD_REQUIRED, policies),
        F_I32("nice", struct oci_scheduler, nice, 0),
        F_I32("priority", struct oci_scheduler, priority, 0),
        F_OBJECT("flags", struct oci_scheduler, flags, 0, spec_scheduler_flags_read),
        F_U64("runtime", struct oci_scheduler, runtime_ns, 0),
        F_U64("deadline", struct oci_scheduler, deadline_ns, 0),
        F_U64("period", struct oci_scheduler, period_ns, 0),
    };
    ((struct oci_scheduler *)dst)->set = true;
    return FIELDS_READ(ctx, v, fields, dst);
}

static int spec_affinity_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_STRING("initial", struct oci_process, cpu_affinity_initial, 0),
        F_STRING("final", struct oci_process, cpu_affinity_final, 0),
    };
    int r = FIELDS_READ(ctx, v, fields, dst);
    static const char *const names[] = {"initial", "final"};
    for (unsigned i = 0; !r && i < ARRAY_SIZE(names); i++) {
        const struct json_value *list = json_member_peek(v, names[i]);
        const char *s = "";
        if (list)
            r = json_as_string(list, &s, ctx->e);
        if (!r && s[strspn(s, "0123456789,- ")])
            r = json_error(list, ctx->e, "expected a list of CPUs such as \"0-3,7\", got \"%.64s\"",
                           s);
    }
    return r;
}

static int spec_check_env(struct fields_ctx *ctx, const struct json_value *process)
{
    const struct json_value *env = json_member_peek(process, "env");
    if (!env)
        return 0;
    json_for_each(child, env)
    {
        const char *s;
        int r = json_as_string(child, &s, ctx->e);
        if (r)
            return r;
        const char *eq = strchr(s, '=');
        if (!eq || eq == s)
            return json_error(child, ctx->e, "expected \"name=value\", got \"%.64s\"", s);
    }
    return 0;
}

int spec_process_read(struct fields_ctx *ctx, const struct json_value *v, void *dst)
{
    static const struct field fields[] = {
        F_BOOL("terminal", struct oci_process, terminal),
        F_SELF("consoleSize", 0, spec_console_read),
        F_OBJECT("user", struct oci_process, user, 0, spec_user_read),
        F_STRINGS("args", struct oci_process, args, FIELD_REQUIRED | FIELD_NONEMPTY),
        F_STRINGS("env", struct oci_process, env, 0),
        F_STRING("cwd", struct oci_process, cwd, FIELD_REQUIRED | FIELD_NONEMPTY | FIELD_ABSOLUTE),
        F_OBJECT("capabilities", struct oci_process, capabilities, 0, spec_capabilities_read),
        F_ARRAY("rlimits", struct oci_process, rlimits, rlimits_len, 0, spec_rlimit_read),
        F_BOOL("noNewPrivileges", struct oci_process, no_new_privileges),
        F_I32_SET("oomScoreAdj", struct oci_process, oom_score_adj, oom_score_adj_set),
        F_STRING("apparmorProfile", struct oci_process, apparmor_profile, 0),
        F_STRING("selinuxLabel", struct oci_process, selinux_label, 0),
        F_OBJECT("ioPriority", struct oci_process, io_priority, 0, spec_io_priority_read),
        F_OBJECT("scheduler", struct oci_process, scheduler, 0, spec_scheduler_read),
        F_SELF("execCPUAffinity", 0, spec_affinity_read),
    };
    int r = FIELDS_READ(ctx, v, fields, dst);
    if (!r)
        r = spec_check_env(ctx, v);
    struct oci_process *p = dst;
    if (!r && p->rlimits_len > SPEC_RLIMITS_MAX)
        r = json_error(json_member_peek(v, "rlimits"), ctx->e, "more than %u entries",
                       SPEC_RLIMITS_MAX);
    return r;
}
