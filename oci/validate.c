/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-checks between the parts of a parsed config. */
#include "oci/validate.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define VALIDATE_SCHED_DEADLINE 6
/* Every field of the structures that sethostname(2) and setdomainname(2) fill. */
#define VALIDATE_UTS_SIZE 64

static int validate_uts(const struct oci_spec *spec, struct errmsg *e)
{
    const struct {
        const char *path, *value;
    } names[] = {{"hostname", spec->hostname}, {"domainname", spec->domainname}};
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        if (!names[i].value || !names[i].value[0])
            continue;
        if (strlen(names[i].value) > VALIDATE_UTS_SIZE)
            return errmsg_set(e, -EINVAL, "%s: longer than %d bytes", names[i].path,
                              VALIDATE_UTS_SIZE);
        if (!oci_spec_namespace_peek(spec, OCI_NS_UTS))
            return errmsg_set(e, -EINVAL, "%s: unable to set without a private UTS namespace",
                              names[i].path);
    }
    return 0;
}

static int validate_user_namespace(const struct oci_spec *spec, struct errmsg *e)
{
    const struct oci_linux *l = &spec->linux_;
    const struct oci_namespace *ns = oci_spec_namespace_peek(spec, OCI_NS_USER);
    bool mapped = l->uid_mappings.len || l->gid_mappings.len;
    if (mapped && !ns)
        return errmsg_set(e, -EINVAL, "linux.%s: user namespace mappings need a user namespace",
                          l->uid_mappings.len ? "uidMappings" : "gidMappings");
    if (!ns || ns->path)
        return 0;
    if (!l->uid_mappings.len)
        return errmsg_set(e, -EINVAL, "linux.uidMappings: a new user namespace needs mappings");
    if (!l->gid_mappings.len)
        return errmsg_set(e, -EINVAL, "linux.gidMappings: a new user namespace needs mappings");
    return 0;
}

static int validate_mapping(const char *path, const struct oci_idmaps *maps, struct errmsg *e)
{
    for (unsigned i = 0; i < maps->len; i++) {
        const struct oci_idmap *m = &maps->v[i];
        if (m->size == 0)
            return errmsg_set(e, -EINVAL, "%s[%u].size: must not be 0", path, i);
        if ((uint64_t)m->container_id + m->size > UINT32_MAX ||
            (uint64_t)m->host_id + m->size > UINT32_MAX)
            return errmsg_set(e, -EINVAL, "%s[%u]: goes beyond the last id", path, i);
        for (unsigned j = 0; j < i; j++) {
            const struct oci_idmap *o = &maps->v[j];
            if ((uint64_t)m->container_id + m->size > o->container_id &&
                (uint64_t)o->container_id + o->size > m->container_id)
                return errmsg_set(e, -EINVAL, "%s[%u]: overlaps %s[%u]", path, i, path, j);
        }
    }
    return 0;
}

static int validate_mappings(const struct oci_spec *spec, struct errmsg *e)
{
    int r = validate_mapping("linux.uidMappings", &spec->linux_.uid_mappings, e);
    return r ? r : validate_mapping("linux.gidMappings", &spec->linux_.gid_mappings, e);
}

/* Paths inside the container can only be changed in a mount namespace of its own. */
static int validate_mount_namespace(const struct oci_spec *spec, struct errmsg *e)
{
    if (oci_spec_namespace_peek(spec, OCI_NS_MOUNT))
        return 0;
    const struct {
        const char *path;
        unsigned len;
    } lists[] = {{"linux.maskedPaths", spec->linux_.masked_paths.len},
                 {"linux.readonlyPaths", spec->linux_.readonly_paths.len}};
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++) {
        if (lists[i].len)
            return errmsg_set(e, -EINVAL,
                              "%s: unable to restrict paths without a private mount namespace",
                              lists[i].path);
    }
    return 0;
}

static bool validate_word_in(const char *word, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(word, *list) == 0)
            return true;
    }
    return false;
}

/* Which namespace a sysctl belongs to. Return: false if it is the whole host's. */
static bool validate_sysctl_namespace(const char *key, enum oci_ns_type *ret_type)
{
    static const char *const ipc[] = {
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.auto_msgmni",
        "kernel.sem_next_id",
        "kernel.msg_next_id",
        "kernel.shm_next_id",
        NULL,
    };
    if (validate_word_in(key, ipc) || strncmp(key, "fs.mqueue.", 10) == 0)
        *ret_type = OCI_NS_IPC;
    else if (strncmp(key, "net.", 4) == 0)
        *ret_type = OCI_NS_NETWORK;
    else if (strcmp(key, "kernel.domainname") == 0 || strcmp(key, "kernel.hostname") == 0)
        *ret_type = OCI_NS_UTS;
    else
        return false;
    return true;
}

/* Names become paths below /proc/sys and parts of messages. */
static bool validate_sysctl_name(const char *key)
{
    for (; *key; key++) {
        if ((unsigned char)*key <= 0x20 || *key == 0x7f)
            return false;
    }
    return true;
}

static int validate_sysctl(const struct oci_spec *spec, struct errmsg *e)
{
    for (unsigned i = 0; i < spec->linux_.sysctl.len; i++) {
        /* Both spellings are in use: net.ipv4.ip_forward and net/ipv4/ip_forward. */
        char key[128];
        const char *written = spec->linux_.sysctl.v[i].key;
        if (!validate_sysctl_name(written))
            return errmsg_set(e, -EINVAL,
                              "linux.sysctl: a name holds a space or control character");
        if (strlen(written) >= sizeof(key))
            return errmsg_set(e, -EINVAL, "linux.sysctl[\"%.64s…\"]: name is too long", written);
        strcpy(key, written);
        for (char *p = key; !strchr(written, '.') && (p = strchr(p, '/'));)
            *p = '.';
        enum oci_ns_type type;
        if (strstr(key, "..") || !validate_sysctl_namespace(key, &type))
            return errmsg_set(e, -EINVAL,
                              "linux.sysctl[\"%s\"]: not in a separate kernel namespace", written);
        if (!oci_spec_namespace_peek(spec, type))
            return errmsg_set(e, -EINVAL,
                              "linux.sysctl[\"%s\"]: not allowed in the host's %s namespace",
                              written, oci_ns_type_name(type));
        if (strcmp(key, "kernel.hostname") == 0)
            return errmsg_set(e, -EINVAL, "linux.sysctl[\"%s\"]: conflicts with hostname", written);
    }
    return 0;
}

static int validate_time(const struct oci_spec *spec, struct errmsg *e)
{
    const struct oci_linux *l = &spec->linux_;
    const struct oci_namespace *ns = oci_spec_namespace_peek(spec, OCI_NS_TIME);
    if ((l->monotonic.set || l->boottime.set) && (!ns || ns->path))
        return errmsg_set(e, -EINVAL, "linux.timeOffsets: need a new time namespace");
    if (ns && ns->path)
        return errmsg_set(e, -EINVAL, "linux.namespaces: %s: a time namespace of the host can't be joined", ns->path);
    return 0;
}

static int validate_mounts(const struct oci_spec *spec, struct errmsg *e)
{
    for (unsigned i = 0; i < spec->mounts_len; i++) {
        const struct oci_mount *m = &spec->mounts[i];
        bool mapped = m->uid_mappings.len || m->gid_mappings.len;
        if (mapped && (!m->uid_mappings.len || !m->gid_mappings.len))
            return errmsg_set(e, -EINVAL, "mounts[%u]: needs both uidMappings and gidMappings", i);
        if ((mapped || m->parsed.idmap) && strcmp(m->type ? m->type : "", "bind") != 0)
            return errmsg_set(e, -EINVAL, "mounts[%u]: only bind mounts can be idmapped", i);
    }
    return 0;
}

static int validate_seccomp(const struct oci_spec *spec, struct errmsg *e)
{
    const struct oci_seccomp *s = &spec->linux_.seccomp;
    if (!s->set)
        return 0;
    /* The supervisor would have to answer its own program's start. */
    if (s->default_action == OCI_SECCOMP_NOTIFY)
        return errmsg_set(e, -EINVAL,
                          "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY is not allowed here");
    if (s->listener_metadata && s->listener_metadata[0] && !s->listener_path)
        return errmsg_set(e, -EINVAL, "linux.seccomp.listenerMetadata: needs listenerPath");
    for (unsigned i = 0; i < s->rules_len; i++) {
        if (s->rules[i].action == OCI_SECCOMP_NOTIFY && !s->listener_path)
            return errmsg_set(
                e, -EINVAL, "linux.seccomp.syscalls[%u].action: SCMP_ACT_NOTIFY needs listenerPath",
                i);
    }
    return 0;
}

static int validate_scheduler(const struct oci_scheduler *s, struct errmsg *e)
{
    if (!s->set)
        return 0;
    if (s->nice < -20 || s->nice > 19)
        return errmsg_set(e, -EINVAL, "process.scheduler.nice: %d is out of range (-20 to 19)",
                          s->nice);
    bool realtime = s->policy == SCHED_FIFO || s->policy == SCHED_RR;
    if (s->priority != 0 && !realtime)
        return errmsg_set(e, -EINVAL,
                          "process.scheduler.priority: only for SCHED_FIFO and SCHED_RR");
    if (s->priority < 0 || s->priority > 99)
        return errmsg_set(e, -EINVAL, "process.scheduler.priority: %d is out of range (0 to 99)",
                          s->priority);
    if (s->policy != VALIDATE_SCHED_DEADLINE && (s->runtime_ns || s->deadline_ns || s->period_ns))
        return errmsg_set(
            e, -EINVAL,
            "process.scheduler: runtime, deadline and period are only for SCHED_DEADLINE");
    return 0;
}

int validate_process(const struct oci_process *p, struct errmsg *e)
{
    for (unsigned i = 0; i < p->rlimits_len; i++) {
        if (p->rlimits[i].soft > p->rlimits[i].hard)
            return errmsg_set(
                e, -EINVAL, "process.rlimits[%u]: soft limit %llu is above hard limit %llu", i,
                (unsigned long long)p->rlimits[i].soft, (unsigned long long)p->rlimits[i].hard);
        for (unsigned j = 0; j < i; j++) {
            if (p->rlimits[j].resource == p->rlimits[i].resource)
                return errmsg_set(e, -EINVAL, "process.rlimits[%u]: %s is listed twice", i,
                                  p->rlimits[i].name);
        }
    }
    if (p->oom_score_adj < -1000 || p->oom_score_adj > 1000)
        return errmsg_set(e, -EINVAL, "process.oomScoreAdj: %d is out of range (-1000 to 1000)",
                          p->oom_score_adj);
    if (p->io_priority.priority < 0 || p->io_priority.priority > 7)
        return errmsg_set(e, -EINVAL, "process.ioPriority.priority: %d is out of range (0 to 7)",
                          p->io_priority.priority);
    return validate_scheduler(&p->scheduler, e);
}

int validate_spec(const struct oci_spec *spec, struct errmsg *e)
{
    static int (*const checks[])(const struct oci_spec *, struct errmsg *) = {
        validate_uts,    validate_user_namespace, validate_mappings, validate_mount_namespace,
        validate_sysctl, validate_time,           validate_mounts,   validate_seccomp,
    };
    int r = validate_process(&spec->process, e);
    for (unsigned i = 0; !r && i < ARRAY_SIZE(checks); i++)
        r = checks[i](spec, e);
    return r;
}
