/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces of a task but for the user namespace, which is a matter of credentials, and its own pid namespace. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"

struct cgroupns;
struct cred;
struct fsctx;
struct ipcns;
struct mntns;
struct netns;
struct pidns;
struct timens;
struct utsns;

/* Shared and immutable: a task that changes namespaces gets another one. */
struct nsproxy {
    struct ref ref;
    struct mntns *mnt;
    struct utsns *uts;
    struct ipcns *ipc;
    struct netns *net;
    struct pidns *pid_for_children;
    struct cgroupns *cgroup; /* NULL: the container's own */
    struct timens *time, *time_for_children; /* NULL: the host's clocks */
};

/* CLONE_NEW* of namespaces here. */
#define NSPROXY_FLAGS (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWCGROUP | \
                       CLONE_NEWTIME)

struct netns *netns_ref(struct netns *ns); /* the socket layer's */
void netns_unref(struct netns *ns);

/* A copy with references of its own; members may be NULL. */
MUST_CHECK int nsproxy_dup(const struct nsproxy *ns, struct nsproxy **ret_ns);
/* What a task that begins with memory of its own (fork, exec) gets: it enters the time namespace for children. Return: 0 with a
 * reference, −ENOMEM. */
MUST_CHECK int nsproxy_for_new_mm(struct nsproxy *ns, struct nsproxy **ret_ns);
struct nsproxy *nsproxy_ref(struct nsproxy *ns);
void nsproxy_unref(struct nsproxy *ns);
/* A copy with new namespaces for flags (CLONE_NEW*), which cred's user namespace owns and cred's user is counted for. own_pid is
 * the maker's pid namespace. With CLONE_NEWNS the paths of fs, which is nobody else's, move to the new mounts. Return: 0, −EINVAL,
 * −ENOSPC, −ENOMEM; on failure nothing but fs, which is to be thrown away, has changed. */
MUST_CHECK int nsproxy_new(const struct nsproxy *ns, uint64_t flags, const struct cred *cred, struct pidns *own_pid,
                           struct fsctx *fs, struct nsproxy **ret_ns);
