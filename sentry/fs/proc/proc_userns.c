/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/{uid,gid,projid}_map and setgroups, and /proc/sys/user. Source: user_namespaces(7), namespaces(7). */
#include "sentry/fs/proc/proc_userns.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>

#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/fs/proc/proc_sys.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/signal.h"
#include "sentry/kernel/task.h"

const enum userns_ids proc_userns_kinds[USERNS_ID_KINDS] = {USERNS_UIDS, USERNS_GIDS, USERNS_PROJIDS};

static enum userns_ids kind_of(const struct proc_call *c)
{
    return *(const enum userns_ids *)c->node->arg;
}

int proc_userns_show_map(struct proc_call *c, struct buf *out)
{
    const struct userns *ns = c->task->ctx.cred->userns, *reader = c->opener ? c->opener->userns : NULL;
    enum userns_ids kind = kind_of(c);

    if (userns_is_initial(ns)) {
        buf_printf(out, "%10u %10u %10u\n", 0, 0, UINT32_MAX);
        return buf_error(out);
    }
    /* What ids stand for is told in the reader's numbers; to the members themselves, in the parent's. */
    if (userns_same(reader, ns))
        reader = ns->parent;
    for (uint32_t i = 0; i < ns->maps[kind].len; i++) {
        const struct userns_extent *e = &ns->maps[kind].extents[i];

        buf_printf(out, "%10u %10u %10u\n", e->first, userns_map_out(reader, kind, e->lower_first), e->count);
    }
    return buf_error(out);
}

/* The members have numbers now, and each knows its own without asking. */
static void publish_members(const struct proc_call *c)
{
    const struct userns *ns = c->task->ctx.cred->userns;
    struct tgroup *g;

    list_for_each_entry(g, &c->task->group->container->groups, container_link) {
        for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
            if (t->ctx.cred->userns == ns)
                task_publish_self(t);
        }
    }
}

int64_t proc_userns_write_map(struct proc_call *c, const char *data, size_t size)
{
    int r;

    if (c->pos || size >= PROC_WRITE_MAX)
        return -EINVAL;
    if (!c->opener)
        return -EPERM;
    r = userns_map_write(c->task->ctx.cred->userns, kind_of(c), c->ctx->cred, c->opener, data);
    if (r)
        return r;
    publish_members(c);
    return (int64_t)size;
}

int proc_userns_show_setgroups(struct proc_call *c, struct buf *out)
{
    const struct userns *ns = c->task->ctx.cred->userns;

    buf_puts(out, !userns_is_initial(ns) && ns->setgroups_denied ? "deny\n" : "allow\n");
    return buf_error(out);
}

int64_t proc_userns_write_setgroups(struct proc_call *c, const char *data, size_t size)
{
    struct userns *ns = c->task->ctx.cred->userns;
    int r;

    if (c->pos || size >= 8)
        return -EINVAL;
    if (!c->opener || !cred_ns_cap(c->opener, ns, CAP_SYS_ADMIN))
        return -EACCES;
    r = userns_setgroups_write(ns, data);
    return r ? r : (int64_t)size;
}

/* ---- /proc/sys/user: limits on what is made in the reader's user namespace ---- */

static int32_t *max_of(const struct proc_call *c)
{
    struct userns *ns = c->ctx && c->ctx->cred ? c->ctx->cred->userns : NULL;

    return ucount_max_of(ns, *(const enum ucount_kind *)c->node->arg);
}

int proc_userns_show_initial(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%d\n", *ucount_max_of(NULL, *(const enum ucount_kind *)c->node->arg));
    return buf_error(out);
}

int64_t proc_userns_write_initial(struct proc_call *c, const char *data, size_t size)
{
    char *end;
    long value = strtol(data, &end, 10);

    if (end == data || value < 0 || value > INT_MAX)
        return -EINVAL;
    *ucount_max_of(NULL, *(const enum ucount_kind *)c->node->arg) = (int32_t)value;
    return (int64_t)size;
}

static int show_max(struct proc_call *c, struct buf *out)
{
    buf_printf(out, "%d\n", *max_of(c));
    return buf_error(out);
}

static int64_t write_max(struct proc_call *c, const char *data, size_t size)
{
    char *end;
    long value = strtol(data, &end, 10);

    if (!cred_own_cap(c->ctx->cred, CAP_SYS_RESOURCE) || (c->opener && !cred_own_cap(c->opener, CAP_SYS_RESOURCE)))
        return -EPERM;
    if (end == data || value < 0 || value > INT_MAX)
        return -EINVAL;
    *max_of(c) = (int32_t)value;
    return (int64_t)size;
}

#define MAX_NODE(n, k)                                                                             \
    {.name = "max_" n, .mode = S_IFREG | 0644, .flags = PROC_OWN_RESOURCE, .show = show_max, \
     .write = write_max, .arg = &(const enum ucount_kind){k}}
static const struct proc_node user_nodes[] = {
    MAX_NODE("cgroup_namespaces", UCOUNT_CGROUP_NS),
    MAX_NODE("fanotify_groups", UCOUNT_FANOTIFY_GROUPS),
    MAX_NODE("fanotify_marks", UCOUNT_FANOTIFY_MARKS),
    MAX_NODE("inotify_instances", UCOUNT_INOTIFY_INSTANCES),
    MAX_NODE("inotify_watches", UCOUNT_INOTIFY_WATCHES),
    MAX_NODE("ipc_namespaces", UCOUNT_IPC_NS),
    MAX_NODE("mnt_namespaces", UCOUNT_MNT_NS),
    MAX_NODE("net_namespaces", UCOUNT_NET_NS),
    MAX_NODE("pid_namespaces", UCOUNT_PID_NS),
    MAX_NODE("time_namespaces", UCOUNT_TIME_NS),
    MAX_NODE("user_namespaces", UCOUNT_USER_NS),
    MAX_NODE("uts_namespaces", UCOUNT_UTS_NS),
};
const struct proc_dir proc_userns_sys_dir = PROC_DIR_OF(user_nodes);
