/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/sysvipc: the System V objects of the reader's namespace. */
#include "sentry/fs/proc/proc_global.h"

#include "sentry/ipc/sysv_msg.h"
#include "sentry/ipc/sysv_sem.h"
#include "sentry/ipc/sysv_shm.h"
#include "sentry/kernel/task.h"

static struct ipcns *call_ipcns(const struct proc_call *c)
{
    return c->viewer && c->viewer->ns ? c->viewer->ns->ipc : NULL;
}

static int show_msg(struct proc_call *c, struct buf *out)
{
    struct ipcns *ns = call_ipcns(c);

    if (ns)
        sysv_msg_print(c->viewer ? &c->viewer->ctx : NULL, ns, out);
    return buf_error(out);
}

static int show_sem(struct proc_call *c, struct buf *out)
{
    struct ipcns *ns = call_ipcns(c);

    if (ns)
        sysv_sem_print(c->viewer ? &c->viewer->ctx : NULL, ns, out);
    return buf_error(out);
}

static int show_shm(struct proc_call *c, struct buf *out)
{
    struct ipcns *ns = call_ipcns(c);

    if (ns)
        sysv_shm_print(c->viewer ? &c->viewer->ctx : NULL, ns, out);
    return buf_error(out);
}

static const struct proc_node sysvipc_nodes[] = {
    PROC_FILE("msg", 0444, show_msg),
    PROC_FILE("sem", 0444, show_sem),
    PROC_FILE("shm", 0444, show_shm),
};

const struct proc_dir proc_sysvipc_dir = PROC_DIR_OF(sysvipc_nodes);
