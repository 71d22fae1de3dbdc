/* SPDX-License-Identifier: Apache-2.0 */
/* UTS namespace objects. */
#include "sentry/kernel/utsns.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/core/userns.h"

int utsns_new(struct userns *userns, const char *hostname, const char *domainname, struct utsns **ret_ns)
{
    struct utsns *ns;

    if (!hostname)
        hostname = "localhost";
    if (!domainname)
        domainname = "(none)";
    if (strlen(hostname) > UTS_NAME_MAX || strlen(domainname) > UTS_NAME_MAX)
        return -EINVAL;
    ns = NEW(struct utsns);
    if (!ns)
        return -ENOMEM;
    ref_init(&ns->ref);
    ns->userns = userns_ref(userns);
    ns->ino = userns_next_ino();
    strcpy(ns->hostname, hostname);
    strcpy(ns->domainname, domainname);
    *ret_ns = ns;
    return 0;
}

int utsns_dup(const struct utsns *ns, struct userns *userns, struct utsns **ret_ns)
{
    return utsns_new(userns, ns->hostname, ns->domainname, ret_ns);
}

struct utsns *utsns_ref(struct utsns *ns)
{
    ref_get(&ns->ref);
    return ns;
}

void utsns_unref(struct utsns *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    userns_unref(ns->userns);
    ucharge_drop(&ns->charge);
    mem_free(ns);
}
