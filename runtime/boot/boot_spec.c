/* SPDX-License-Identifier: Apache-2.0 */
/* From the typed config.json to what the sentry takes. */
#include "runtime/boot/boot_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/fs/devrules.h"

/* Linux's device numbers have 12 and 20 bits. */
enum { BOOT_MAJOR_MAX = (1 << 12) - 1, BOOT_MINOR_MAX = (1 << 20) - 1 };

/* File systems of the sentry, by the names that configs use for them. */
static const struct {
    const char *name, *type;
} boot_spec_types[] = {
    {"bind", "bind"},     {"proc", "proc"},      {"tmpfs", "tmpfs"},
    {"devpts", "devpts"}, {"sysfs", "sysfs"},    {"mqueue", "mqueue"},
    {"cgroup", "cgroup"}, {"cgroup2", "cgroup"}, {"devtmpfs", "tmpfs"},
};

static int boot_spec_mount(const struct oci_mount *m, int *inout_trees, struct sentry_mount *ret,
                           struct errmsg *e)
{
    const char *type = NULL;
    for (size_t i = 0; m->type && i < ARRAY_SIZE(boot_spec_types); i++)
        if (strcmp(m->type, boot_spec_types[i].name) == 0)
            type = boot_spec_types[i].type;
    if (!type)
        return errmsg_set(e, -ENODEV, "error mounting \"%s\" to rootfs at \"%s\": no such device",
                          m->source ? m->source : "", m->destination);
    bool bind = strcmp(type, "bind") == 0;
    unsigned long propagation = 0;
    for (unsigned i = 0; i < m->parsed.propagation_len; i++)
        propagation = m->parsed.propagation[i];
    *ret = (struct sentry_mount){
        .destination = m->destination,
        .type = type,
        .source = m->source ? m->source : m->type,
        .data = m->parsed.data ? m->parsed.data : "",
        .flags = m->parsed.set & ~(unsigned long)(MS_BIND | MS_REC),
        .propagation = propagation,
        .tree = bind ? ++*inout_trees : -1,
    };
    /* "rro" and its kin name mount attributes, whose values are those of the mount flags. */
    ret->flags |= (unsigned long)m->parsed.rec_set & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
    return 0;
}

int boot_process_make(struct arena *a, const struct oci_process *p, const char *home,
                      struct sentry_process *ret_process)
{
    bool have_home = false;
    const char **env = arena_calloc(a, p->env.len + 2, sizeof(*env));
    struct sentry_rlimit *rlimits = arena_calloc(a, p->rlimits_len + 1, sizeof(*rlimits));
    if (!env || !rlimits)
        return -ENOMEM;
    for (unsigned i = 0; i < p->env.len; i++) {
        env[i] = p->env.v[i];
        have_home |= strncmp(env[i], "HOME=", 5) == 0;
    }
    if (!have_home && home) {
        env[p->env.len] = arena_printf(a, "HOME=%s", home);
        if (!env[p->env.len])
            return -ENOMEM;
    }
    for (unsigned i = 0; i < p->rlimits_len; i++)
        rlimits[i] = (struct sentry_rlimit){.resource = p->rlimits[i].resource,
                                            .soft = p->rlimits[i].soft,
                                            .hard = p->rlimits[i].hard};
    *ret_process = (struct sentry_process){
        .argv = (char *const *)p->args.v,
        .envp = (char *const *)env,
        .cwd = p->cwd,
        .uid = p->user.uid,
        .gid = p->user.gid,
        .umask = p->user.umask_set ? p->user.umask : UINT32_MAX,
        .groups = p->user.additional_gids,
        .groups_len = p->user.additional_gids_len,
        .cap_effective = p->capabilities.effective,
        .cap_permitted = p->capabilities.permitted,
        .cap_inheritable = p->capabilities.inheritable,
        .cap_bounding = p->capabilities.bounding,
        .cap_ambient = p->capabilities.ambient,
        .no_new_privs = p->no_new_privileges,
        .rlimits = rlimits,
        .rlimits_len = p->rlimits_len,
        .oom_score_adj = p->oom_score_adj_set ? p->oom_score_adj : 0,
        .terminal = p->terminal,
        .console_rows = p->console_rows,
        .console_cols = p->console_cols,
        .stdio = {-1, -1, -1},
        .console = -1,
    };
    return 0;
}

static int boot_spec_mounts(const struct boot *b, struct boot_config *c, struct errmsg *e)
{
    const struct oci_spec *spec = b->spec;
    struct sentry_mount *mounts = arena_calloc(&c->arena, spec->mounts_len + 1, sizeof(*mounts));
    if (!mounts)
        return errmsg_set(e, -ENOMEM, "out of memory");
    int trees = 0;
    for (unsigned i = 0; i < spec->mounts_len; i++) {
        int r = boot_spec_mount(&spec->mounts[i], &trees, &mounts[i], e);
        if (r < 0)
            return r;
    }
    c->config.mounts = mounts;
    c->config.mounts_len = spec->mounts_len;
    /* The layers come after the mounts' trees. */
    if (c->config.overlay.root && !b->params.overlay_memory)
        c->config.overlay.tree = trees + 1;
    return 0;
}

static int boot_spec_sysctl(const struct boot *b, struct boot_config *c, struct errmsg *e)
{
    const struct oci_pairs *in = &b->spec->linux_.sysctl;
    const char **list = arena_calloc(&c->arena, in->len + 1, sizeof(*list));
    for (unsigned i = 0; list && i < in->len; i++) {
        list[i] = arena_printf(&c->arena, "%s=%s", in->v[i].key, in->v[i].value);
        if (!list[i])
            list = NULL;
    }
    c->config.sysctl = list;
    return list ? 0 : errmsg_set(e, -ENOMEM, "out of memory");
}

static void boot_spec_limits(const struct boot *b, struct boot_config *c)
{
    const struct oci_resources *res = &b->spec->linux_.resources;
    if (res->memory.limit.set && res->memory.limit.value > 0)
        c->config.memory_limit = (uint64_t)res->memory.limit.value;
    if (res->pids_limit.set && res->pids_limit.value > 0)
        c->config.pids_limit = (uint64_t)res->pids_limit.value;
    /* A share of 1.5 CPUs shows as 2. */
    uint64_t period = res->cpu.period.set && res->cpu.period.value ? res->cpu.period.value : 100000;
    if (res->cpu.quota.set && res->cpu.quota.value > 0)
        c->config.cpu_count = (uint32_t)(((uint64_t)res->cpu.quota.value + period - 1) / period);
}

static int boot_spec_devices(const struct boot *b, struct boot_config *c, struct errmsg *e)
{
    const struct oci_linux *in = &b->spec->linux_;
    struct sentry_device *devices = arena_calloc(&c->arena, in->devices_len + 1, sizeof(*devices));
    struct devrule *rules = arena_calloc(&c->arena, in->resources.devices_len + 1, sizeof(*rules));
    if (!devices || !rules)
        return errmsg_set(e, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < in->devices_len; i++) {
        const struct oci_device *d = &in->devices[i];
        uint32_t type = d->type == 'b' ? S_IFBLK : d->type == 'p' ? S_IFIFO : S_IFCHR;
        if (d->major > BOOT_MAJOR_MAX || d->minor > BOOT_MINOR_MAX)
            return errmsg_set(e, -EINVAL, "linux.devices[%u]: there is no device number %lld:%lld",
                              i, (long long)d->major, (long long)d->minor);
        devices[i] = (struct sentry_device){
            .path = d->path,
            .mode = type | (d->file_mode_set ? d->file_mode & 07777 : 0666),
            .rdev = d->type == 'p' ? 0 : makedev((unsigned)d->major, (unsigned)d->minor),
            .uid = d->uid,
            .gid = d->gid,
        };
    }
    for (unsigned i = 0; i < in->resources.devices_len; i++) {
        const struct oci_device_rule *r = &in->resources.devices[i];
        rules[i] = (struct devrule){
            .allow = r->allow, .type = r->type, .major = r->major, .minor = r->minor};
        rules[i].access = (strchr(r->access, 'r') ? DEV_ACCESS_READ : 0) |
                          (strchr(r->access, 'w') ? DEV_ACCESS_WRITE : 0) |
                          (strchr(r->access, 'm') ? DEV_ACCESS_MKNOD : 0);
    }
    c->config.devices = devices;
    c->config.devices_len = in->devices_len;
    c->config.device_rules = rules;
    c->config.device_rules_len = in->resources.devices_len;
    return 0;
}

/* The protocol of socket activation: sd_listen_fds(3). The program is pid 1 where it runs. */
static int boot_spec_listen_env(const struct boot *b, struct boot_config *c)
{
    if (!b->params.listen_fds)
        return 0;
    unsigned len = 0;
    while (c->config.process.envp[len])
        len++;
    const char **env = arena_calloc(&c->arena, len + 3, sizeof(*env));
    if (!env)
        return -ENOMEM;
    memcpy(env, c->config.process.envp, len * sizeof(*env));
    env[len] = arena_printf(&c->arena, "LISTEN_FDS=%u", b->params.listen_fds);
    env[len + 1] = "LISTEN_PID=1";
    c->config.process.envp = (char *const *)env;
    return env[len] ? 0 : -ENOMEM;
}

static void boot_spec_fds(const struct boot *b, struct boot_config *c)
{
    struct sentry_process *p = &c->config.process;
    for (int i = 0; i < 3; i++)
        if (b->params.stdio_mask >> i & 1)
            p->stdio[i] = BOOT_FD_STDIO + i;
    if (b->params.terminal)
        p->console = BOOT_FD_CONSOLE;
    for (uint32_t i = 0; i < b->params.preserved_len; i++)
        c->preserved[i] = BOOT_FD_PRESERVED + (int)i;
    p->preserve_fds = c->preserved;
    p->preserve_fds_len = b->params.preserved_len;
    c->config.gofer_sock = BOOT_FD_GOFER_SOCK;
    c->config.gofer_shm = BOOT_FD_GOFER_SHM;
}

int boot_config_make(const struct boot *b, struct boot_config **ret_config, struct errmsg *e)
{
    const struct oci_spec *spec = b->spec;
    const struct oci_linux *l = &spec->linux_;
    const struct oci_namespace *time = oci_spec_namespace_peek(spec, OCI_NS_TIME);
    struct boot_config *c = NEW(struct boot_config);
    if (!c)
        return errmsg_set(e, -ENOMEM, "out of memory");
    c->config = (struct sentry_container_config){
        .id = b->params.id,
        .hostname = spec->hostname,
        .domainname = spec->domainname,
        .time_namespace = time && !time->path,
        .time_offsets = {{l->monotonic.secs, l->monotonic.nanosecs}, {l->boottime.secs, l->boottime.nanosecs}},
        .root_readonly = spec->root_readonly,
        .overlay = {.root = b->params.overlay_root, .all = b->params.overlay_all, .tree = -1, .size = b->params.overlay_size,
                    .used = b->params.overlay_used, .names = b->params.overlay_names},
        .root_propagation = spec->linux_.rootfs_propagation,
        .masked_paths = spec->linux_.masked_paths.v,
        .readonly_paths = spec->linux_.readonly_paths.v,
        .cgroups_path = b->params.cgroup_path,
        .platform = b->platform,
    };
    int r = boot_process_make(&c->arena, &spec->process, b->params.home, &c->config.process);
    if (r == 0)
        boot_seccomp_apply(b, &c->config.process);
    if (r == 0)
        r = boot_spec_listen_env(b, c);
    if (r < 0)
        errmsg_set(e, r, "out of memory");
    if (r == 0)
        r = boot_spec_mounts(b, c, e);
    if (r == 0)
        r = boot_spec_sysctl(b, c, e);
    if (r == 0)
        r = boot_spec_devices(b, c, e);
    if (r < 0) {
        boot_config_free(c);
        return r;
    }
    boot_spec_limits(b, c);
    boot_spec_fds(b, c);
    c->config.process.terminal = b->params.terminal;
    if (b->params.console_rows || b->params.console_cols) {
        c->config.process.console_rows = b->params.console_rows;
        c->config.process.console_cols = b->params.console_cols;
    }
    *ret_config = c;
    return 0;
}

void boot_config_free(struct boot_config *config)
{
    if (!config)
        return;
    arena_free(&config->arena);
    mem_free(config);
}
