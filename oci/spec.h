/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of the OCI runtime specification 1.0.2 to 1.2, as typed and validated structs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "oci/arena.h"
#include "oci/mount_options.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* All strings and arrays belong to the arena of the document they came from and live as long as it.
 * A field may be pointed at memory from elsewhere: nothing but the arena is freed. Absent strings
 * are NULL, absent arrays have length 0; string lists end with NULL besides having a length. */

struct oci_strings {
    const char *const *v; /* v[len] is NULL; v is never NULL after parsing */
    unsigned len;
};

struct oci_pair {
    const char *key, *value;
};

struct oci_pairs {
    const struct oci_pair *v; /* sorted by key, no key twice */
    unsigned len;
};

/* Optional numbers: value means something only if set. */
struct oci_bool {
    bool set, value;
};
struct oci_i64 {
    bool set;
    int64_t value;
};
struct oci_u64 {
    bool set;
    uint64_t value;
};

struct oci_idmap {
    uint32_t container_id, host_id, size;
};

struct oci_idmaps {
    const struct oci_idmap *v;
    unsigned len;
};

/* --- process --- */

struct oci_rlimit {
    const char *name; /* "RLIMIT_NOFILE" */
    int resource;     /* RLIMIT_NOFILE */
    uint64_t soft, hard;
};

/* Bit n is capability number n (CAP_CHOWN is bit 0). */
struct oci_capabilities {
    bool set; /* the object is present */
    uint64_t bounding, effective, inheritable, permitted, ambient;
};

struct oci_user {
    uint32_t uid, gid;
    bool umask_set;
    uint32_t umask;
    const uint32_t *additional_gids;
    unsigned additional_gids_len;
    const char *username; /* not used on Linux */
};

enum oci_io_class { OCI_IO_CLASS_NONE, OCI_IO_CLASS_RT, OCI_IO_CLASS_BE, OCI_IO_CLASS_IDLE };

struct oci_io_priority {
    bool set;
    enum oci_io_class io_class; /* numbers are the kernel's IOPRIO_CLASS_* */
    int priority;               /* 0 (highest) to 7 */
};

struct oci_scheduler {
    bool set;
    int policy; /* SCHED_* */
    int32_t nice, priority;
    uint64_t flags;                              /* SCHED_FLAG_* */
    uint64_t runtime_ns, deadline_ns, period_ns; /* SCHED_DEADLINE */
};

struct oci_process {
    bool terminal;
    uint16_t console_rows, console_cols; /* 0: not given */
    struct oci_user user;
    struct oci_strings args; /* at least one */
    struct oci_strings env;  /* each "name=value" */
    const char *cwd;         /* absolute */
    struct oci_capabilities capabilities;
    const struct oci_rlimit *rlimits;
    unsigned rlimits_len;
    bool no_new_privileges;
    bool oom_score_adj_set;
    int oom_score_adj; /* −1000 to 1000 */
    const char *apparmor_profile;
    const char *selinux_label;
    struct oci_io_priority io_priority;
    struct oci_scheduler scheduler;
    const char *cpu_affinity_initial, *cpu_affinity_final; /* lists such as "0-3,7" */
};

/* --- mounts --- */

struct oci_mount {
    const char
        *destination;   /* absolute and clean; a relative one was taken from / with a warning */
    const char *type;   /* "bind" for every bind mount; NULL if absent */
    const char *source; /* as written: bind sources may be relative to the bundle */
    struct oci_strings options;  /* as written */
    struct mount_options parsed; /* the same, sorted */
    struct oci_idmaps uid_mappings, gid_mappings;
};

/* --- hooks --- */

struct oci_hook {
    const char *path; /* absolute */
    struct oci_strings args;
    struct oci_strings env;
    unsigned timeout_s; /* 0: none */
};

enum oci_hook_kind {
    OCI_HOOK_PRESTART,
    OCI_HOOK_CREATE_RUNTIME,
    OCI_HOOK_CREATE_CONTAINER,
    OCI_HOOK_START_CONTAINER,
    OCI_HOOK_POSTSTART,
    OCI_HOOK_POSTSTOP,
    OCI_HOOK_KINDS,
};

struct oci_hooks {
    const struct oci_hook *v;
    unsigned len;
};

/* JSON name of a kind: "createRuntime". */
const char *oci_hook_kind_name(enum oci_hook_kind kind);

/* --- linux --- */

enum oci_ns_type {
    OCI_NS_PID,
    OCI_NS_NETWORK,
    OCI_NS_MOUNT,
    OCI_NS_IPC,
    OCI_NS_UTS,
    OCI_NS_USER,
    OCI_NS_CGROUP,
    OCI_NS_TIME,
    OCI_NS_TYPES,
};

struct oci_namespace {
    enum oci_ns_type type;
    const char *path; /* absolute: join this one; NULL: make a new one */
};

/* "pid", "network", … as in config.json. */
const char *oci_ns_type_name(enum oci_ns_type type);
/* CLONE_NEW* flag of a type. */
unsigned long oci_ns_clone_flag(enum oci_ns_type type);

struct oci_device {
    const char *path; /* absolute */
    char type;        /* 'c', 'b', 'u' or 'p' */
    int64_t major, minor;
    bool file_mode_set;
    uint32_t file_mode;
    bool uid_set, gid_set;
    uint32_t uid, gid;
};

struct oci_device_rule {
    bool allow;
    char type;            /* 'a', 'b' or 'c' */
    int64_t major, minor; /* −1: all */
    const char *access;   /* some of "rwm"; never NULL */
};

struct oci_weight_device {
    int64_t major, minor;
    struct oci_u64 weight, leaf_weight;
};

struct oci_throttle_device {
    int64_t major, minor;
    uint64_t rate; /* bytes or operations per second */
};

struct oci_throttle_devices {
    const struct oci_throttle_device *v;
    unsigned len;
};

struct oci_hugepage_limit {
    const char *page_size; /* "2MB" */
    uint64_t limit;        /* bytes */
};

struct oci_net_priority {
    const char *name;
    uint32_t priority;
};

struct oci_rdma {
    const char *name; /* device, "mlx5_1" */
    struct oci_u64 hca_handles, hca_objects;
};

struct oci_resources {
    const struct oci_device_rule *devices;
    unsigned devices_len;
    struct {
        struct oci_i64 limit, reservation, swap, kernel, kernel_tcp; /* bytes, −1: unlimited */
        struct oci_u64 swappiness;
        struct oci_bool disable_oom_killer, use_hierarchy, check_before_update;
    } memory;
    struct {
        struct oci_u64 shares;
        struct oci_i64 quota;            /* us per period, −1: unlimited */
        struct oci_u64 burst;            /* us */
        struct oci_u64 period;           /* us */
        struct oci_i64 realtime_runtime; /* us */
        struct oci_u64 realtime_period;  /* us */
        const char *cpus, *mems;
        struct oci_i64 idle;
    } cpu;
    struct oci_i64 pids_limit; /* −1 (or 0): unlimited */
    struct {
        struct oci_u64 weight, leaf_weight;
        const struct oci_weight_device *weight_device;
        unsigned weight_device_len;
        struct oci_throttle_devices read_bps, write_bps, read_iops, write_iops;
    } block_io;
    const struct oci_hugepage_limit *hugepage_limits;
    unsigned hugepage_limits_len;
    struct oci_u64 net_class_id;
    const struct oci_net_priority *net_priorities;
    unsigned net_priorities_len;
    const struct oci_rdma *rdma;
    unsigned rdma_len;
    struct oci_pairs unified; /* cgroup v2 file name → text */
};

/* Values are those of libseccomp's SCMP_ACT_* without the errno or trace data. */
enum oci_seccomp_action {
    OCI_SECCOMP_KILL_PROCESS = (int)0x80000000,
    OCI_SECCOMP_KILL_THREAD = 0x00000000,
    OCI_SECCOMP_TRAP = 0x00030000,
    OCI_SECCOMP_ERRNO = 0x00050000,
    OCI_SECCOMP_NOTIFY = 0x7fc00000,
    OCI_SECCOMP_TRACE = 0x7ff00000,
    OCI_SECCOMP_LOG = 0x7ffc0000,
    OCI_SECCOMP_ALLOW = 0x7fff0000,
};

enum oci_seccomp_op {
    OCI_SECCOMP_NE,
    OCI_SECCOMP_LT,
    OCI_SECCOMP_LE,
    OCI_SECCOMP_EQ,
    OCI_SECCOMP_GE,
    OCI_SECCOMP_GT,
    OCI_SECCOMP_MASKED_EQ, /* (argument & value) == value_two */
};

struct oci_seccomp_arg {
    unsigned index; /* 0 to 5 */
    enum oci_seccomp_op op;
    uint64_t value, value_two;
};

struct oci_seccomp_rule {
    struct oci_strings names;
    enum oci_seccomp_action action;
    bool errno_set;
    uint32_t errno_ret;
    const struct oci_seccomp_arg *args;
    unsigned args_len;
};

struct oci_seccomp {
    bool set;
    enum oci_seccomp_action default_action;
    bool default_errno_set;
    uint32_t default_errno_ret;
    struct oci_strings architectures; /* "SCMP_ARCH_X86_64", known names only */
    uint32_t flags;                   /* SECCOMP_FILTER_FLAG_* */
    const char *listener_path, *listener_metadata;
    const struct oci_seccomp_rule *rules;
    unsigned rules_len;
};

struct oci_intel_rdt {
    bool set;
    const char *clos_id, *l3_cache_schema, *mem_bw_schema;
    bool enable_cmt, enable_mbm;
};

struct oci_time_offset {
    bool set;
    int64_t secs;
    uint32_t nanosecs;
};

struct oci_linux {
    const struct oci_namespace *namespaces; /* no type twice */
    unsigned namespaces_len;
    struct oci_idmaps uid_mappings, gid_mappings;
    const struct oci_device *devices;
    unsigned devices_len;
    const char *cgroups_path;
    struct oci_resources resources;
    unsigned long rootfs_propagation; /* MS_SHARED, … | MS_REC; 0: not given */
    struct oci_strings masked_paths, readonly_paths;
    struct oci_pairs sysctl;
    const char *mount_label;
    struct oci_seccomp seccomp;
    struct oci_intel_rdt intel_rdt;
    bool personality_set;
    unsigned long personality; /* PER_LINUX or PER_LINUX32 */
    struct oci_time_offset monotonic, boottime;
};

/* --- the document --- */

struct oci_spec {
    const char *oci_version;
    struct oci_process process; /* required, as in runc */
    const char *root_path;      /* as written: may be relative to the bundle */
    bool root_readonly;
    const char *hostname, *domainname;
    const struct oci_mount *mounts;
    unsigned mounts_len;
    struct oci_hooks hooks[OCI_HOOK_KINDS];
    struct oci_pairs annotations;
    struct oci_linux linux_;
    struct oci_strings warnings; /* for the log: unknown capabilities, relative destinations, … */
    struct arena arena;          /* everything above; may be used for more with the same lifetime */
};

/* A process.json (`exec --process`) or resources.json (`update -r`) on its own. */
struct oci_process_doc {
    struct oci_process process;
    struct oci_strings warnings;
    struct arena arena;
};
struct oci_resources_doc {
    struct oci_resources resources;
    struct arena arena;
};

/* Parses and validates a config.json of size bytes. Return: 0. Errors: EINVAL (e names the line of
 * a syntax error, or the JSON path and what was expected there), E2BIG (too large or too deep),
 * ENOMEM. Owns: caller frees with oci_spec_free. Source: runtime-spec config.md, config-linux.md.
 */
MUST_CHECK int oci_spec_parse(const char *json, size_t size, struct oci_spec **ret_spec,
                              struct errmsg *e);
/* NULL is fine. */
void oci_spec_free(struct oci_spec *spec);

/* As oci_spec_parse, for a bare process object; paths in messages start at "process". */
MUST_CHECK int oci_process_parse(const char *json, size_t size, struct oci_process_doc **ret_doc,
                                 struct errmsg *e);
void oci_process_doc_free(struct oci_process_doc *doc);

/* As oci_spec_parse, for a bare resources object; paths in messages start at "resources". */
MUST_CHECK int oci_resources_parse(const char *json, size_t size,
                                   struct oci_resources_doc **ret_doc, struct errmsg *e);
void oci_resources_doc_free(struct oci_resources_doc *doc);

/* The namespace entry of a type; NULL if the container shares the host's. Owns: the spec. */
const struct oci_namespace *oci_spec_namespace_peek(const struct oci_spec *spec,
                                                    enum oci_ns_type type);
/* Value of an annotation; NULL if absent. Owns: the spec. */
const char *oci_spec_annotation_peek(const struct oci_spec *spec, const char *key);

/* "CAP_CHOWN" → 0. Return: the number, or −1 if unknown. Exact, upper case, with the prefix. */
int oci_capability_number(const char *name);
/* 0 → "CAP_CHOWN"; NULL past the last. */
const char *oci_capability_name(unsigned number);
/* "RLIMIT_NOFILE" → RLIMIT_NOFILE. Return: the number, or −1 if unknown. */
int oci_rlimit_number(const char *name);
