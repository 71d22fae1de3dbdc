/* SPDX-License-Identifier: Apache-2.0 */
/* Sending signals: to processes, groups, threads, with and without a payload. */
#include "syscalls_gen.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "sentry/core/cred.h"
#include "sentry/fs/anon_pidfd.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/file.h"

/* Sends what t's kill(2) says to process g; sig 0 only asks. given: the caller's own info, or NULL. */
static int kill_group(struct task *t, struct tgroup *g, int sig, const siginfo_t *given)
{
    siginfo_t info;
    int r;

    if (!g->leader)
        return -ESRCH;
    r = signal_may_send(t, g->leader, sig);
    if (r || !sig)
        return r;
    if (given)
        info = *given;
    else
        siginfo_user(&info, sig, SI_USER, tgroup_pid_in(t->group, g->leader->pidns), siginfo_uid(t, g->leader));
    return signal_send_group(g, &info);
}

static int kill_pid(struct task *t, int pid, int sig, const siginfo_t *given)
{
    struct tgroup *g = tgroup_find(t->pidns, pid);
    struct task *thread;
    int r;

    if (!g) { /* a thread's number stands for its process */
        thread = task_find(t->pidns, pid);
        if (!thread)
            return -ESRCH;
        g = tgroup_ref(thread->group);
        task_unref(thread);
    }
    r = kill_group(t, g, sig, given);
    tgroup_unref(g);
    return r;
}

/* Succeeds when one member could be told. */
static int kill_members(struct task *t, struct pgrp *p, int sig)
{
    struct tgroup *g, *next;
    int r = -ESRCH, sent = 0;

    list_for_each_entry_safe(g, next, &p->members, pgrp_link) {
        int err = kill_group(t, g, sig, NULL);

        if (g->forks_in_flight && sig && !err)
            g->fork_missed |= SIGBIT(sig);
        sent |= !err;
        if (err || r == -ESRCH)
            r = err;
    }
    return sent ? 0 : r;
}

/* kill(−1): everybody but pid 1 of the namespace and the caller; the first processes of namespaces below are no exception. */
static int kill_all(struct task *t, int sig)
{
    int number = 2, r = 0, count = 0;
    struct tgroup *g;

    while ((g = pidns_next_tgroup(t->pidns, number, &number))) {
        if (g != t->group) {
            int err = kill_group(t, g, sig, NULL);

            count++;
            if (err != -EPERM)
                r = err;
            if (g->forks_in_flight && sig && !err)
                g->fork_missed |= SIGBIT(sig);
        }
        tgroup_unref(g);
        number++;
    }
    return count ? r : -ESRCH;
}

static int kill_pgrp(struct task *t, int id, int sig)
{
    struct pgrp *p = id ? pgrp_find(t->pidns, id) : pgrp_ref(t->group->pgrp);
    int r;

    if (!p)
        return -ESRCH;
    r = kill_members(t, p, sig);
    pgrp_unref(p);
    return r;
}

static bool sig_valid(int sig)
{
    return sig >= 0 && sig <= NSIG_K;
}

int64_t sys_kill(struct task *t, int32_t pid, int32_t sig)
{
    if (pid == INT_MIN)
        return -ESRCH;
    if (!sig_valid(sig))
        return -EINVAL;
    if (pid > 0)
        return kill_pid(t, pid, sig, NULL);
    return pid == -1 ? kill_all(t, sig) : kill_pgrp(t, -pid, sig);
}

/* tgid 0: of whatever process. */
static int kill_thread(struct task *t, int tgid, int tid, int sig, const siginfo_t *given)
{
    struct task *target = task_find(t->pidns, tid);
    siginfo_t info;
    int r;

    if (!target)
        return -ESRCH;
    r = tgid && tgroup_pid_for(target->group, t) != tgid ? -ESRCH : signal_may_send(t, target, sig);
    if (!r && sig) {
        if (given)
            info = *given;
        else
            siginfo_user(&info, sig, SI_TKILL, tgroup_pid_in(t->group, target->pidns), siginfo_uid(t, target));
        r = signal_send_task(target, &info);
    }
    task_unref(target);
    return r;
}

int64_t sys_tgkill(struct task *t, int32_t tgid, int32_t tid, int32_t sig)
{
    if (tgid <= 0 || tid <= 0 || !sig_valid(sig))
        return -EINVAL;
    return kill_thread(t, tgid, tid, sig, NULL);
}

int64_t sys_tkill(struct task *t, int32_t tid, int32_t sig)
{
    if (tid <= 0 || !sig_valid(sig))
        return -EINVAL;
    return kill_thread(t, 0, tid, sig, NULL);
}

/* Reads a caller's info. Nobody but the target itself may claim to be the kernel or kill(2). */
static int info_in(struct task *t, int pid, int sig, uaddr_t addr, siginfo_t *ret_info)
{
    if (COPY_IN(&t->ctx, ret_info, addr))
        return -EFAULT;
    ret_info->si_signo = sig;
    if ((ret_info->si_code >= 0 || ret_info->si_code == SI_TKILL) && tgroup_pid_for(t->group, t) != pid)
        return -EPERM;
    return 0;
}

int64_t sys_rt_sigqueueinfo(struct task *t, int32_t pid, int32_t sig, uaddr_t addr)
{
    siginfo_t info;
    int r = info_in(t, pid, sig, addr, &info);

    if (r)
        return r;
    return sig_valid(sig) ? kill_pid(t, pid, sig, &info) : -EINVAL;
}

int64_t sys_rt_tgsigqueueinfo(struct task *t, int32_t tgid, int32_t tid, int32_t sig, uaddr_t addr)
{
    siginfo_t info;
    int r;

    if (tgid <= 0 || tid <= 0)
        return -EINVAL;
    r = info_in(t, tid, sig, addr, &info);
    if (r)
        return r;
    return sig_valid(sig) ? kill_thread(t, tgid, tid, sig, &info) : -EINVAL;
}

int64_t sys_pidfd_send_signal(struct task *t, int32_t pidfd, int32_t sig, uaddr_t addr, uint32_t flags)
{
    struct tgroup *g;
    siginfo_t info;
    struct file *f;
    bool gone;
    int r = 0;

    if (flags)
        return -EINVAL;
    f = fdtable_get_any(t, pidfd);
    if (!f)
        return -EBADF;
    g = anon_pidfd_group(f);
    g = g ? tgroup_ref(g) : procfs_dir_group(f, &gone);
    if (!g) {
        file_unref(f);
        return gone ? -ESRCH : -EBADF;
    }
    if (!uaddr_is_null(addr)) {
        if (COPY_IN(&t->ctx, &info, addr))
            r = -EFAULT;
        else if (info.si_signo != sig)
            r = -EINVAL;
        else if (g != t->group && (info.si_code >= 0 || info.si_code == SI_TKILL))
            r = -EPERM;
    }
    if (!r && !sig_valid(sig))
        r = -EINVAL;
    if (!r)
        r = kill_group(t, g, sig, uaddr_is_null(addr) ? NULL : &info);
    tgroup_unref(g);
    file_unref(f);
    return r;
}
