/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a sandbox as a whole: boot, and the containers in it. */
#include "sentry/sentry.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysinfo.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/container_mounts.h"
#include "sentry/core/cred.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/devrules.h"
#include "sentry/fs/fan_group.h"
#include "sentry/fs/fs_register.h"
#include "sentry/fs/gofer/gofer_client.h"
#include "sentry/fs/pipe.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/fs/tty_console.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task_run.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/kernel/timens.h"
#include "sentry/kernel/utsns.h"
#include "sentry/mm/hostproc.h"
#include "sentry/process.h"
#include "sentry/socket/netns.h"
#include "sentry/vfs/inode.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/watch.h"

struct sentry {
    struct kernel kernel;
};

int sentry_new(const struct sentry_options *options, struct sentry **ret_sentry)
{
    struct sysinfo info;
    struct sentry *s = NEW(struct sentry);
    if (!s)
        return -ENOMEM;
    s->kernel.strace = options->strace;
    s->kernel.release = options->kernel_release ? options->kernel_release : KERNEL_RELEASE;
    s->kernel.boot_ns = host_monotonic_ns();
    list_init(&s->kernel.containers);
    hostproc_set_dirfd(options->proc_fd);
    uint64_t memory = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 1UL << 30;
    tmpfs_register(memory);
    fs_register_all();
    vfs_set_special_open(S_IFIFO, pipe_fifo_open);
    watch_init();
    fan_init();
    *ret_sentry = s;
    return 0;
}

static void container_free(struct container *c)
{
    if (!c)
        return;
    list_del(&c->link);
    process_free(c->init_process);
    tty_console_put(c->console);
    tgroup_unref(c->init);
    mntns_unref(c->mntns);
    utsns_unref(c->utsns);
    timens_unref(c->timens);
    ipcns_unref(c->ipcns);
    netns_unref(c->netns);
    pidns_unref(c->pidns);
    gofer_client_unref(c->gofer);
    devrules_free(c->devrules);
    platform_free(c->platform);
    mem_free(c->cgroups_path);
    mem_free(c->id);
    mem_free(c);
}

/* Takes over what config hands to the container for good, first of all. */
static int container_take(struct container *c, const struct sentry_container_config *config, struct errmsg *e)
{
    c->platform = config->platform;
    int err = gofer_client_new(config->gofer_sock, config->gofer_shm, &c->gofer);
    if (err)
        return errmsg_set(e, err, "gofer channel: %s", strerror(-err));
    c->id = mem_strdup(config->id);
    c->cgroups_path = config->cgroups_path ? mem_strdup(config->cgroups_path) : NULL;
    if (!c->id || (config->cgroups_path && !c->cgroups_path))
        return errmsg_set(e, -ENOMEM, "out of memory");
    err = devrules_new(config->device_rules, config->device_rules_len, &c->devrules);
    if (err)
        return errmsg_set(e, err, "linux.resources.devices: %s", strerror(-err));
    c->memory_limit = config->memory_limit;
    c->pids_limit = config->pids_limit;
    c->cpu_count = config->cpu_count;
    return platform_start(c->platform, &task_run_client);
}

static int container_namespaces(struct container *c, const struct sentry_container_config *config, struct errmsg *e)
{
    int err = utsns_new(NULL, config->hostname, config->domainname, &c->utsns);
    if (!err)
        err = pidns_new(NULL, NULL, &c->pidns);
    if (!err)
        err = netns_new(NULL, true, &c->netns);
    if (!err)
        err = ipcns_new(NULL, &c->ipcns);
    return err ? errmsg_set(e, err, "namespaces: %s", strerror(-err)) : 0;
}

/* Its init enters the namespace at its exec. */
static int container_time(struct container *c, const struct sentry_container_config *config, struct errmsg *e)
{
    static const char *const names[TIMENS_CLOCKS] = {[TIMENS_MONOTONIC] = "monotonic", [TIMENS_BOOTTIME] = "boottime"};
    int err;

    if (!config->time_namespace)
        return 0;
    err = timens_new(NULL, NULL, 0, &c->timens);
    if (err)
        return errmsg_set(e, err, "namespaces: %s", strerror(-err));
    for (unsigned i = 0; i < TIMENS_CLOCKS; i++) {
        const struct sentry_time_offset *o = &config->time_offsets[i];

        err = timens_set_offset(c->timens, i, o->sec, o->nsec);
        if (err)
            return errmsg_set(e, err, "linux.timeOffsets.%s: %s", names[i], strerror(-err));
    }
    return 0;
}

static int container_root_readonly(struct ctx *ctx, struct container *c)
{
    CLEANUP_PATH struct path root = mntns_root(c->mntns);
    return mount_remount(ctx, &root, MS_RDONLY, "", true);
}

int sentry_container_create(struct sentry *s, const struct sentry_container_config *config, struct errmsg *e,
                            struct container **ret_container)
{
    struct ctx ctx = {0};
    struct cred *root;
    struct container *c = NEW(struct container);
    if (!c)
        return errmsg_set(e, -ENOMEM, "out of memory");
    c->kernel = &s->kernel;
    list_init(&c->groups);
    list_add_tail(&s->kernel.containers, &c->link);
    int err = container_take(c, config, e);
    if (!err)
        err = container_namespaces(c, config, e);
    if (!err)
        err = container_time(c, config, e);
    if (!err && (err = cred_new_root(&root)) == 0) {
        ctx.cred = root;
        err = container_mounts_make(&ctx, c, config, e);
        if (!err)
            err = process_new(c, &config->process, true, e, &c->init_process);
        if (!err && config->root_readonly) {
            err = container_root_readonly(&ctx, c);
            if (err)
                errmsg_set(e, err, "make the root read-only: %s", strerror(-err));
        }
        cred_unref(root);
    }
    if (err) {
        container_free(c);
        return err;
    }
    *ret_container = c;
    return 0;
}
