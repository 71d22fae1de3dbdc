/* SPDX-License-Identifier: Apache-2.0 */
/* IPC namespaces. */
#include "sentry/ipc/ipcns.h"

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/userns.h"
#include "sentry/ipc/posix_mq.h"

int ipcns_new(struct userns *userns, struct ipcns **ret_ns)
{
    struct ipcns *ns = NEW(struct ipcns);
    if (!ns)
        return -ENOMEM;
    ref_init(&ns->ref);
    ns->userns = userns_ref(userns);
    ns->ino = userns_next_ino();
    *ret_ns = ns;
    return 0;
}

struct ipcns *ipcns_ref(struct ipcns *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

bool ipcns_deserted(const struct ipcns *ns)
{
    return ns->ref.count == ns->mounts;
}

void ipcns_unref(struct ipcns *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    sysv_ids_free(&ns->shm);
    sysv_ids_free(&ns->sem);
    sysv_ids_free(&ns->msg);
    posix_mq_table_free(ns->mq);
    userns_unref(ns->userns);
    ucharge_drop(&ns->charge);
    mem_free(ns);
}
