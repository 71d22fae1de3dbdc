/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of namespaces, and the making of new ones. */
#include "sentry/kernel/nsproxy.h"

#include <errno.h>
#include <linux/sched.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/ipc/ipcns.h"
#include "sentry/kernel/cgroupns.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/timens.h"
#include "sentry/kernel/utsns.h"
#include "sentry/vfs/mount.h"

/* The socket layer's: socket/netns.h. */
MUST_CHECK int netns_new(struct userns *userns, bool lo_up, struct netns **ret_ns);
MUST_CHECK int netns_charge(struct netns *ns, uint32_t uid);

int nsproxy_dup(const struct nsproxy *ns, struct nsproxy **ret_ns)
{
    struct nsproxy *n = NEW(struct nsproxy);

    if (!n)
        return -ENOMEM;
    ref_init(&n->ref);
    n->mnt = ns->mnt ? mntns_ref(ns->mnt) : NULL;
    n->uts = ns->uts ? utsns_ref(ns->uts) : NULL;
    n->ipc = ns->ipc ? ipcns_ref(ns->ipc) : NULL;
    n->net = ns->net ? netns_ref(ns->net) : NULL;
    n->pid_for_children = pidns_ref(ns->pid_for_children);
    n->cgroup = cgroupns_ref(ns->cgroup);
    n->time = timens_ref(ns->time);
    n->time_for_children = timens_ref(ns->time_for_children);
    *ret_ns = n;
    return 0;
}

int nsproxy_for_new_mm(struct nsproxy *ns, struct nsproxy **ret_ns)
{
    int r;

    if (ns->time == ns->time_for_children) {
        *ret_ns = nsproxy_ref(ns);
        return 0;
    }
    r = nsproxy_dup(ns, ret_ns);
    if (r)
        return r;
    timens_unref((*ret_ns)->time);
    (*ret_ns)->time = timens_ref(ns->time_for_children);
    return 0;
}

struct nsproxy *nsproxy_ref(struct nsproxy *ns)
{
    ref_get(&ns->ref);
    return ns;
}

void nsproxy_unref(struct nsproxy *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    if (ns->mnt)
        mntns_unref(ns->mnt);
    utsns_unref(ns->uts);
    if (ns->ipc)
        ipcns_unref(ns->ipc);
    if (ns->net)
        netns_unref(ns->net);
    pidns_unref(ns->pid_for_children);
    cgroupns_unref(ns->cgroup);
    timens_unref(ns->time);
    timens_unref(ns->time_for_children);
    mem_free(ns);
}

static int new_mnt(struct nsproxy *n, const struct cred *cred, struct fsctx *fs)
{
    struct path *paths[2] = {&fs->root, &fs->cwd};
    struct mntns *mnt;
    int r = mntns_clone(n->mnt, cred->userns, cred->euid, paths, 2, &mnt);

    if (r)
        return r;
    mntns_unref(n->mnt);
    n->mnt = mnt;
    return 0;
}

static int new_uts(struct nsproxy *n, const struct cred *cred)
{
    struct utsns *uts;
    int r = utsns_dup(n->uts, cred->userns, &uts);

    if (r)
        return r;
    utsns_unref(n->uts);
    n->uts = uts;
    return ucharge_take(&uts->charge, UCOUNT_UTS_NS, cred->userns, cred->euid);
}

static int new_ipc(struct nsproxy *n, const struct cred *cred)
{
    struct ipcns *ipc;
    int r = ipcns_new(cred->userns, &ipc);

    if (r)
        return r;
    ipcns_unref(n->ipc);
    n->ipc = ipc;
    return ucharge_take(&ipc->charge, UCOUNT_IPC_NS, cred->userns, cred->euid);
}

static int new_pid(struct nsproxy *n, const struct cred *cred, struct pidns *own_pid)
{
    struct pidns *pid;
    int r;

    /* Children can have but one level more than their maker. */
    if (n->pid_for_children != own_pid)
        return -EINVAL;
    r = pidns_new(own_pid, cred->userns, &pid);
    if (r)
        return r;
    pidns_unref(n->pid_for_children);
    n->pid_for_children = pid;
    return ucharge_take(&pid->charge, UCOUNT_PID_NS, cred->userns, cred->euid);
}

static int new_net(struct nsproxy *n, const struct cred *cred)
{
    struct netns *net;
    int r = netns_new(cred->userns, false, &net);

    if (r)
        return r;
    netns_unref(n->net);
    n->net = net;
    return netns_charge(net, cred->euid);
}

static int new_cgroup(struct nsproxy *n, const struct cred *cred)
{
    struct cgroupns *cgroup;
    int r = cgroupns_new(cred->userns, cred->euid, &cgroup);

    if (r)
        return r;
    cgroupns_unref(n->cgroup);
    n->cgroup = cgroup;
    return 0;
}

/* Its maker stays outside. */
static int new_time(struct nsproxy *n, const struct cred *cred)
{
    struct timens *time;
    int r = timens_new(n->time_for_children, cred->userns, cred->euid, &time);

    if (r)
        return r;
    timens_unref(n->time_for_children);
    n->time_for_children = time;
    return 0;
}

int nsproxy_new(const struct nsproxy *ns, uint64_t flags, const struct cred *cred, struct pidns *own_pid,
                struct fsctx *fs, struct nsproxy **ret_ns)
{
    struct nsproxy *n;
    int r = nsproxy_dup(ns, &n);

    if (r)
        return r;
    if (flags & CLONE_NEWNS)
        r = new_mnt(n, cred, fs);
    if (!r && (flags & CLONE_NEWUTS))
        r = new_uts(n, cred);
    if (!r && (flags & CLONE_NEWIPC))
        r = new_ipc(n, cred);
    if (!r && (flags & CLONE_NEWPID))
        r = new_pid(n, cred, own_pid);
    if (!r && (flags & CLONE_NEWCGROUP))
        r = new_cgroup(n, cred);
    if (!r && (flags & CLONE_NEWTIME))
        r = new_time(n, cred);
    if (!r && (flags & CLONE_NEWNET))
        r = new_net(n, cred);
    if (r) {
        nsproxy_unref(n);
        return r;
    }
    *ret_ns = n;
    return 0;
}
