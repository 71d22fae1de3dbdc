/* SPDX-License-Identifier: Apache-2.0 */
/* Network namespaces. */
#include "sentry/socket/netns.h"

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/userns.h"
#include "sentry/socket/sock_inet.h"

int netns_new(struct userns *userns, bool lo_up, struct netns **ret_ns)
{
    struct netns *ns = NEW(struct netns);
    if (!ns)
        return -ENOMEM;
    ref_init(&ns->ref);
    ns->userns = userns ? userns_ref(userns) : NULL;
    ns->ino = userns_next_ino();
    ns->lo_up = lo_up;
    for (unsigned i = 0; i < NETNS_UNIX_BUCKETS; i++)
        list_init(&ns->unix_names[i]);
    list_init(&ns->unix_all);
    *ret_ns = ns;
    return 0;
}

int netns_charge(struct netns *ns, uint32_t uid)
{
    return ucharge_take(&ns->charge, UCOUNT_NET_NS, ns->userns, uid);
}

struct netns *netns_ref(struct netns *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

void netns_unref(struct netns *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    sock_inet_ports_free(ns->ports);
    userns_unref(ns->userns);
    ucharge_drop(&ns->charge);
    mem_free(ns);
}
