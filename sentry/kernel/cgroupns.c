/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroup namespace objects. */
#include "sentry/kernel/cgroupns.h"

#include <errno.h>

#include "platform/base/alloc.h"

int cgroupns_new(struct userns *userns, uint32_t uid, struct cgroupns **ret_ns)
{
    struct cgroupns *ns = NEW(struct cgroupns);
    int r;

    if (!ns)
        return -ENOMEM;
    r = ucharge_take(&ns->charge, UCOUNT_CGROUP_NS, userns, uid);
    if (r) {
        mem_free(ns);
        return r;
    }
    ref_init(&ns->ref);
    ns->userns = userns_ref(userns);
    ns->ino = userns_next_ino();
    *ret_ns = ns;
    return 0;
}

struct cgroupns *cgroupns_ref(struct cgroupns *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

void cgroupns_unref(struct cgroupns *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    userns_unref(ns->userns);
    ucharge_drop(&ns->charge);
    mem_free(ns);
}
