/* SPDX-License-Identifier: Apache-2.0 */
/* Good configs: every section lands in its struct; unknown fields are ignored; memory may run out.
 */
#include "oci/spec.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "oci/spec_template.h"
#include "platform/base/alloc.h"
#include "tests/unit/oci/full_config.h"

static struct oci_spec *parse(const char *single_quoted)
{
    char *text = strdup(single_quoted);
    for (char *p = text; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    struct oci_spec *spec = NULL;
    struct errmsg e = {""};
    cr_assert_eq(oci_spec_parse(text, strlen(text), &spec, &e), 0, "%s", e.text);
    free(text);
    return spec;
}

Test(spec, smallest)
{
    struct oci_spec *s =
        parse("{'ociVersion':'1.0.2-dev','root':{'path':'r'},"
              "'process':{'args':['sh'],'cwd':'/','unknown':[{'x':null}]},'vm':{'k':1}}");
    cr_assert_str_eq(s->oci_version, "1.0.2-dev");
    cr_assert_str_eq(s->root_path, "r");
    cr_assert_not(s->root_readonly);
    cr_assert_eq(s->process.args.len, 1);
    cr_assert_null(s->process.args.v[1]);
    cr_assert_eq(s->process.env.len, 0);
    cr_assert_not_null(s->process.env.v);
    cr_assert_not_null(s->linux_.masked_paths.v);
    cr_assert_null(s->linux_.masked_paths.v[0]);
    cr_assert_not(s->process.capabilities.set);
    cr_assert_not(s->process.user.umask_set);
    cr_assert_null(s->hostname);
    cr_assert_null(oci_spec_namespace_peek(s, OCI_NS_PID));
    cr_assert_null(oci_spec_annotation_peek(s, "a"));
    cr_assert_eq(s->warnings.len, 0);
    oci_spec_free(s);
    oci_spec_free(NULL);
}

Test(spec, process)
{
    struct oci_spec *s = parse(full_config);
    const struct oci_process *p = &s->process;
    cr_assert(p->terminal);
    cr_assert_eq(p->console_rows, 24);
    cr_assert_eq(p->console_cols, 80);
    cr_assert_eq(p->user.uid, 1000);
    cr_assert_eq(p->user.gid, 100);
    cr_assert(p->user.umask_set);
    cr_assert_eq(p->user.umask, 027);
    cr_assert_eq(p->user.additional_gids_len, 2);
    cr_assert_eq(p->user.additional_gids[1], 20);
    cr_assert_str_eq(p->args.v[1], "-c");
    cr_assert_str_eq(p->env.v[0], "PATH=/bin");
    cr_assert_str_eq(p->cwd, "/home");
    cr_assert_eq(p->capabilities.bounding, UINT64_C(1) << 5 | UINT64_C(1) << 40);
    cr_assert_eq(p->capabilities.effective, UINT64_C(1));
    cr_assert_eq(p->capabilities.inheritable, 0);
    cr_assert_eq(p->rlimits_len, 2);
    cr_assert_eq(p->rlimits[0].resource, RLIMIT_NOFILE);
    cr_assert_eq(p->rlimits[1].hard, UINT64_MAX);
    cr_assert(p->no_new_privileges);
    cr_assert(p->oom_score_adj_set);
    cr_assert_eq(p->oom_score_adj, -5);
    cr_assert_str_eq(p->apparmor_profile, "profile");
    cr_assert_str_eq(p->selinux_label, "label");
    cr_assert(p->io_priority.set);
    cr_assert_eq(p->io_priority.io_class, OCI_IO_CLASS_BE);
    cr_assert_eq(p->io_priority.priority, 4);
    cr_assert_eq(p->scheduler.policy, SCHED_FIFO);
    cr_assert_eq(p->scheduler.priority, 10);
    cr_assert_eq(p->scheduler.flags, 1);
    cr_assert_str_eq(p->cpu_affinity_initial, "0-1");
    oci_spec_free(s);
}

Test(spec, mounts_and_hooks)
{
    struct oci_spec *s = parse(full_config);
    cr_assert_eq(s->mounts_len, 3);
    cr_assert_str_eq(s->mounts[0].type, "proc");
    cr_assert_str_eq(s->mounts[1].destination, "/data/b");
    cr_assert_str_eq(s->mounts[1].type, "bind");
    cr_assert_str_eq(s->mounts[1].source, "volume");
    cr_assert_eq(s->mounts[1].parsed.set, MS_BIND | MS_REC | MS_RDONLY);
    cr_assert_eq(s->mounts[1].parsed.propagation_len, 1);
    cr_assert_eq(s->mounts[1].uid_mappings.len, 1);
    cr_assert_eq(s->mounts[1].uid_mappings.v[0].host_id, 1000);
    cr_assert_str_eq(s->mounts[2].destination, "/relative");
    cr_assert_str_eq(s->mounts[2].parsed.data, "mode=755");
    const struct oci_hooks *h = &s->hooks[OCI_HOOK_PRESTART];
    cr_assert_eq(h->len, 1);
    cr_assert_str_eq(h->v[0].path, "/bin/hook");
    cr_assert_eq(h->v[0].timeout_s, 5);
    cr_assert_str_eq(h->v[0].args.v[0], "hook");
    cr_assert_eq(s->hooks[OCI_HOOK_POSTSTOP].len, 1);
    cr_assert_eq(s->hooks[OCI_HOOK_POSTSTOP].v[0].timeout_s, 0);
    cr_assert_eq(s->hooks[OCI_HOOK_CREATE_RUNTIME].len, 0);
    oci_spec_free(s);
}

Test(spec, linux_section)
{
    struct oci_spec *s = parse(full_config);
    const struct oci_linux *l = &s->linux_;
    cr_assert_str_eq(s->hostname, "h");
    cr_assert_str_eq(s->domainname, "d");
    cr_assert(s->root_readonly);
    cr_assert_str_eq(oci_spec_annotation_peek(s, "b"), "3");
    cr_assert_eq(s->annotations.len, 2, "of equal keys one is kept");
    cr_assert_str_eq(s->annotations.v[0].key, "a.x");
    cr_assert_null(oci_spec_namespace_peek(s, OCI_NS_PID)->path);
    cr_assert_str_eq(oci_spec_namespace_peek(s, OCI_NS_NETWORK)->path, "/proc/5/ns/net");
    cr_assert_eq(l->uid_mappings.len, 1);
    cr_assert_eq(l->devices_len, 2);
    cr_assert_eq(l->devices[0].type, 'c');
    cr_assert_eq(l->devices[0].file_mode, 0666);
    cr_assert_eq(l->devices[1].type, 'p');
    cr_assert_eq(l->rootfs_propagation, MS_SLAVE | MS_REC);
    cr_assert_eq(l->masked_paths.len, 1);
    cr_assert_str_eq(l->sysctl.v[0].key, "net.ipv4.ip_forward");
    cr_assert_str_eq(l->intel_rdt.clos_id, "c");
    cr_assert(l->personality_set);
    cr_assert_eq(l->monotonic.secs, -7);
    cr_assert_eq(l->boottime.nanosecs, 9);
    cr_assert_eq(l->seccomp.default_action, OCI_SECCOMP_ERRNO);
    cr_assert_eq(l->seccomp.default_errno_ret, 38);
    cr_assert_eq(l->seccomp.flags, 2);
    cr_assert_eq(l->seccomp.rules_len, 2);
    cr_assert_eq(l->seccomp.rules[0].names.len, 2);
    cr_assert_eq(l->seccomp.rules[1].args[0].op, OCI_SECCOMP_MASKED_EQ);
    cr_assert_eq(l->seccomp.rules[1].args[0].value_two, 2114060288);
    cr_assert_eq(s->warnings.len, 2);
    cr_assert_str_eq(s->warnings.v[0],
                     "process.capabilities.bounding[2]: unknown capability \"CAP_NEW\" is ignored");
    cr_assert_str_eq(s->warnings.v[1],
                     "mounts[2].destination: relative path \"relative\" is taken from the root");
    oci_spec_free(s);
}

Test(spec, resources)
{
    struct oci_spec *s = parse(full_config);
    const struct oci_resources *r = &s->linux_.resources;
    cr_assert_eq(r->devices_len, 2);
    cr_assert_eq(r->devices[0].type, 'a');
    cr_assert_eq(r->devices[0].major, -1);
    cr_assert_str_eq(r->devices[0].access, "rwm");
    cr_assert(r->devices[1].allow);
    cr_assert_eq(r->memory.limit.value, 1 << 20);
    cr_assert_eq(r->memory.swap.value, -1);
    cr_assert_not(r->memory.kernel.set);
    cr_assert(r->memory.disable_oom_killer.set);
    cr_assert_not(r->memory.disable_oom_killer.value);
    cr_assert_eq(r->cpu.shares.value, 1024);
    cr_assert_eq(r->cpu.quota.value, -1);
    cr_assert_str_eq(r->cpu.cpus, "0");
    cr_assert_eq(r->pids_limit.value, 100);
    cr_assert_eq(r->block_io.weight.value, 10);
    cr_assert_eq(r->block_io.write_iops.len, 1);
    cr_assert_eq(r->block_io.write_iops.v[0].rate, 600);
    cr_assert_eq(r->block_io.weight_device[0].leaf_weight.value, 7);
    cr_assert_str_eq(r->hugepage_limits[0].page_size, "2MB");
    cr_assert_eq(r->net_class_id.value, 1048577);
    cr_assert_str_eq(r->net_priorities[0].name, "eth0");
    cr_assert_str_eq(r->rdma[0].name, "mlx5_1");
    cr_assert_eq(r->rdma[0].hca_handles.value, 3);
    cr_assert_str_eq(r->unified.v[0].value, "max");
    oci_spec_free(s);
}

Test(spec, destinations_are_clean)
{
    static const char *const paths[][2] = {
        {"/", "/"},      {"//a//b/", "/a/b"}, {"/a/./b/../c", "/a/c"}, {"/../..", "/"},
        {"a/b", "/a/b"}, {"/a/..", "/"},      {"/.../x", "/.../x"},    {"/a/../../b", "/b"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(paths); i++) {
        char text[300];
        snprintf(text, sizeof(text),
                 "{'ociVersion':'1.1.0','root':{'path':'r'},'process':{'args':['a'],'cwd':'/'},"
                 "'mounts':[{'destination':'%s','type':'tmpfs'}]}",
                 paths[i][0]);
        struct oci_spec *s = parse(text);
        cr_assert_str_eq(s->mounts[0].destination, paths[i][1]);
        oci_spec_free(s);
    }
}

Test(spec, versions)
{
    static const char *const versions[] = {"1.0.0",     "1.0.2", "1.0.2-dev",
                                           "1.1.0+dev", "1.2.1", "1.30.0"};
    for (unsigned i = 0; i < ARRAY_SIZE(versions); i++) {
        char text[300];
        snprintf(text, sizeof(text),
                 "{'ociVersion':'%s','root':{'path':'r'},'process':{'args':['a'],'cwd':'/'}}",
                 versions[i]);
        oci_spec_free(parse(text));
    }
}

Test(spec, templates_are_valid)
{
    for (int rootless = 0; rootless < 2; rootless++) {
        struct buf b = {0};
        spec_template_write(&b, rootless, 1000, 100);
        struct oci_spec *s = parse(b.data);
        cr_assert_eq(s->linux_.uid_mappings.len, rootless);
        cr_assert_eq(!oci_spec_namespace_peek(s, OCI_NS_USER), !rootless);
        cr_assert_eq(s->warnings.len, 0);
        oci_spec_free(s);
        buf_free(&b);
    }
}

Test(spec, bare_process)
{
    const char *text =
        "{\"args\":[\"id\"],\"cwd\":\"/\",\"capabilities\":{\"effective\":[\"CAP_X\"]}}";
    struct oci_process_doc *doc = NULL;
    struct errmsg e = {""};
    cr_assert_eq(oci_process_parse(text, strlen(text), &doc, &e), 0, "%s", e.text);
    cr_assert_str_eq(doc->process.args.v[0], "id");
    cr_assert_str_eq(doc->warnings.v[0],
                     "process.capabilities.effective[0]: unknown capability \"CAP_X\" is ignored");
    oci_process_doc_free(doc);
}

Test(spec, names)
{
    cr_assert_eq(oci_capability_number("CAP_CHECKPOINT_RESTORE"), 40);
    cr_assert_eq(oci_capability_number("CAP_SYS_ADMIN"), 21);
    cr_assert_eq(oci_capability_number("cap_kill"), -1);
    cr_assert_null(oci_capability_name(41));
    cr_assert_eq(oci_rlimit_number("RLIMIT_STACK"), RLIMIT_STACK);
    cr_assert_eq(oci_rlimit_number("NOFILE"), -1);
    cr_assert_eq(oci_ns_clone_flag(OCI_NS_USER), CLONE_NEWUSER);
    cr_assert_str_eq(oci_ns_type_name(OCI_NS_CGROUP), "cgroup");
    cr_assert_str_eq(oci_hook_kind_name(OCI_HOOK_START_CONTAINER), "startContainer");
}

Test(spec, every_allocation_may_fail)
{
    char *text = strdup(full_config);
    for (char *p = text; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    unsigned n = 1;
    for (;; n++) {
        struct oci_spec *s = NULL;
        struct errmsg e = {""};
        mem_fail_nth(n);
        int r = oci_spec_parse(text, strlen(text), &s, &e);
        mem_fail_nth(0);
        if (!r) {
            oci_spec_free(s);
            break;
        }
        cr_assert_eq(r, -ENOMEM, "allocation %u: %d %s", n, r, e.text);
        cr_assert_str_eq(e.text, "out of memory");
        cr_assert_null(s);
        cr_assert_lt(n, 10000);
    }
    cr_assert_gt(n, 5);
    free(text);
}
