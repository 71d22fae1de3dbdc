/* SPDX-License-Identifier: Apache-2.0 */
/* User namespace objects. */
#include "sentry/core/userns.h"

#include <errno.h>

#include "platform/base/alloc.h"

int userns_new_initial(struct userns **ret_ns)
{
    struct userns *ns = NEW(struct userns);

    if (!ns)
        return -ENOMEM;
    ref_init(&ns->ref);
    *ret_ns = ns;
    return 0;
}

struct userns *userns_ref(struct userns *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

void userns_unref(struct userns *ns)
{
    /* Depth is bounded, and a loop costs no stack. */
    while (ns && ref_put(&ns->ref)) {
        struct userns *parent = ns->parent;

        mem_free(ns->uid_map);
        mem_free(ns->gid_map);
        mem_free(ns);
        ns = parent;
    }
}
