/* SPDX-License-Identifier: Apache-2.0 */
/* UTS namespaces: host name and domain name. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/userns.h"

enum { UTS_NAME_MAX = 64 };

struct utsns {
    struct ref ref;
    struct userns *userns; /* (i) referenced; NULL: the initial one */
    struct ucharge charge; /* (i) */
    uint64_t ino;          /* (i) of /proc/PID/ns/uts */
    char hostname[UTS_NAME_MAX + 1];   /* (k) */
    char domainname[UTS_NAME_MAX + 1]; /* (k) */
};

/* hostname and domainname may be NULL ("localhost", "(none)"). Return: 0, −ENOMEM, −EINVAL (too long). */
MUST_CHECK int utsns_new(struct userns *userns, const char *hostname, const char *domainname,
                         struct utsns **ret_ns);
MUST_CHECK int utsns_dup(const struct utsns *ns, struct userns *userns, struct utsns **ret_ns);
struct utsns *utsns_ref(struct utsns *ns);
void utsns_unref(struct utsns *ns); /* NULL is fine */
