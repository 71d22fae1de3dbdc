/* SPDX-License-Identifier: Apache-2.0 */
/* The IPC layer's view of tasks. */
#include "sentry/ipc/ipc_caller.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "platform/platform.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/socket/netlink.h"
#include "sentry/vfs/file.h"

struct ipcns *ipc_caller_ns(struct ctx *ctx)
{
    return ctx_task(ctx)->ns->ipc;
}

struct mm *ipc_caller_mm(struct ctx *ctx)
{
    return ctx_task(ctx)->mm;
}

uint64_t ipc_caller_rlimit(struct ctx *ctx, int resource)
{
    return ctx_task(ctx)->group->rlimits[resource].rlim_cur;
}

uint32_t ipc_caller_umask(struct ctx *ctx)
{
    return ctx_task(ctx)->fs->umask;
}

struct sem_undo_list **ipc_caller_undos(struct ctx *ctx)
{
    return &ctx_task(ctx)->group->sem_undos;
}

struct pid *ipc_caller_pid(struct ctx *ctx)
{
    return pid_ref(ctx_task(ctx)->group->leader->pid);
}

struct pid *ipc_caller_pid_ref(struct pid *pid)
{
    return pid_ref(pid);
}

void ipc_caller_pid_put(struct pid *pid)
{
    pid_unref(pid);
}

int ipc_caller_pid_number(struct ctx *ctx, const struct pid *pid)
{
    struct task *t = ctx_task_or_null(ctx);
    return t && pid ? pid_number(pid, t->pidns) : 0;
}

int ipc_caller_memory_file(struct ctx *ctx, const char *name, uint32_t mode, uint64_t size,
                           struct file **ret_file)
{
    return tmpfs_file_new_unlinked(ctx, name, mode, O_RDWR, 0, size, ret_file);
}

int64_t ipc_caller_map(struct ctx *ctx, struct file *f, uint64_t addr, uint64_t size, uint32_t prot,
                       bool replace)
{
    struct task *t = ctx_task(ctx);
    struct file_map map = {.host_fd = -1};
    int r = file_mmap(ctx, f, prot, true, &map);
    if (!r)
        r = mm_note_file(t->mm, f, map.host_fd);
    if (r)
        return r;
    uint64_t how = MAP_SHARED;
    if (addr)
        how |= replace ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    struct plat_hostcall call = {
        .nr = SYS_mmap, .fd = map.host_fd, .args = {addr, size, prot, how, (uint64_t)-1, map.offset}};
    if (plat_thread_hostcalls(ctx->thread, &call, 1))
        return -EINTR;
    return call.result == -EEXIST ? -EINVAL : call.result;
}

int64_t ipc_caller_unmap(struct ctx *ctx, uint64_t addr, uint64_t size)
{
    struct plat_hostcall call = {.nr = SYS_munmap, .fd = -1, .args = {addr, size}};
    return plat_thread_hostcalls(ctx->thread, &call, 1) ? -EINTR : call.result;
}

struct tgroup *ipc_caller_group(struct ctx *ctx)
{
    struct task *t = ctx_task_or_null(ctx);
    return t ? t->group : NULL;
}

struct tgroup *ipc_caller_group_ref(struct tgroup *g)
{
    return tgroup_ref(g);
}

void ipc_caller_group_put(struct tgroup *g)
{
    tgroup_unref(g);
}

int ipc_caller_group_number(struct tgroup *g)
{
    return g->leader ? tgroup_pid_in(g, g->leader->pidns) : 0;
}

void ipc_caller_signal(struct ctx *ctx, struct tgroup *g, const struct sigevent *ev)
{
    struct task *t = ctx_task_or_null(ctx);
    if (g->zombie || !g->leader)
        return;
    siginfo_t info = {.si_signo = ev->sigev_signo, .si_code = SI_MESGQ};
    info.si_value = ev->sigev_value;
    info.si_pid = t ? tgroup_pid_in(t->group, g->leader->pidns) : 0;
    info.si_uid = t ? siginfo_uid(t, g->leader) : 0;
    (void)signal_send_group(g, &info);
}

void ipc_caller_tell(struct file *socket, const void *p, uint32_t size)
{
    (void)!netlink_answer(to_netlink(socket_of(socket)), p, size);
}
