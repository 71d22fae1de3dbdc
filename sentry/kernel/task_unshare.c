/* SPDX-License-Identifier: Apache-2.0 */
/* unshare(2): everything new is made first, and then takes the place of the old without fail. */
#include "sentry/kernel/task_unshare.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>

#include "sentry/core/cred.h"
#include "sentry/ipc/sysv_sem.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/tgroup.h"
#include "sentry/vfs/mount.h"

bool task_is_chrooted(const struct task *t)
{
    struct path top = mntns_root(t->ns->mnt);
    bool elsewhere = !path_equal(&top, &t->fs->root);

    path_unref(&top);
    return elsewhere;
}

/* What unshare is asked for has to be known and possible. */
static int unshare_check(const struct task *t, uint64_t flags)
{
    const uint64_t known = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD |
                           CLONE_NEWUSER | NSPROXY_FLAGS;

    if (flags & ~known)
        return -EINVAL;
    /* What threads share can't be parted; it is fine to ask where there is nothing to part. */
    if ((flags & CLONE_THREAD) && t->group->thread_count > 1)
        return -EINVAL;
    if ((flags & CLONE_SIGHAND) && t->group->sighand->ref.count > 1)
        return -EINVAL;
    if ((flags & CLONE_VM) && task_mm_is_shared(t))
        return -EINVAL;
    return 0;
}

static uint64_t unshare_implied(uint64_t flags)
{
    if (flags & CLONE_NEWUSER)
        flags |= CLONE_THREAD | CLONE_FS;
    if (flags & CLONE_VM)
        flags |= CLONE_SIGHAND;
    if (flags & CLONE_SIGHAND)
        flags |= CLONE_THREAD;
    if (flags & CLONE_NEWNS)
        flags |= CLONE_FS;
    return flags;
}

/* The new parts; each may stay NULL. */
struct unshared {
    struct fdtable *files;
    struct fsctx *fs;
    struct cred *cred;
    struct nsproxy *ns;
};

static void unshare_drop(struct task *t, struct unshared *u)
{
    if (u->files)
        fdtable_unref(&t->ctx, u->files);
    if (u->fs)
        fsctx_unref(u->fs);
    cred_unref(u->cred);
    nsproxy_unref(u->ns);
}

static int unshare_prepare(const struct task *t, uint64_t flags, struct unshared *u)
{
    int r = 0;

    /* Of root and working directory there is a copy to change, so that a later failure leaves them where they are. */
    if ((flags & CLONE_FS) && ((flags & CLONE_NEWNS) || t->fs->ref.count > 1))
        r = fsctx_dup(t->fs, &u->fs);
    if (!r && (flags & CLONE_FILES) && t->files->ref.count > 1)
        r = fdtable_dup(t->files, &u->files);
    if (!r && (flags & CLONE_NEWUSER))
        r = task_is_chrooted(t) ? -EPERM : cred_new_userns(t->ctx.cred, &u->cred);
    if (!r && (flags & NSPROXY_FLAGS)) {
        const struct cred *owner = u->cred ? u->cred : t->ctx.cred;

        r = cred_own_cap(owner, CAP_SYS_ADMIN) ? nsproxy_new(t->ns, flags, owner, t->pidns, u->fs, &u->ns) : -EPERM;
    }
    return r;
}

int task_unshare(struct task *t, uint64_t flags)
{
    struct unshared u = {0};
    int r;

    flags = unshare_implied(flags);
    r = unshare_check(t, flags);
    if (!r)
        r = unshare_prepare(t, flags, &u);
    if (r) {
        unshare_drop(t, &u);
        return r;
    }
    /* With threads about, what is to be undone at the end stays theirs. */
    if ((flags & (CLONE_SYSVSEM | CLONE_NEWIPC)) && t->group->thread_count == 1)
        sysv_sem_exit(&t->group->sem_undos, t->group->leader->pid);
    struct unshared old = {.files = u.files ? t->files : NULL, .fs = u.fs ? t->fs : NULL, .ns = u.ns ? t->ns : NULL};
    if (u.files)
        t->files = u.files;
    if (u.fs)
        t->fs = u.fs;
    if (u.ns)
        t->ns = u.ns;
    if (u.cred)
        task_set_cred(t, u.cred);
    unshare_drop(t, &old);
    return 0;
}
