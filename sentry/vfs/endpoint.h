/* SPDX-License-Identifier: Apache-2.0 */
/* The place of a bound unix socket in the file system: found through inode->endpoint. */
#pragma once

#include <stdint.h>

#include "sentry/vfs/mount.h"

/* Embedded in the socket; the socket clears path.dentry->inode->endpoint when it goes. */
struct endpoint {
    struct path path; /* (k) referenced; empty: not bound to a path */
};

/* Ties ep to the socket inode at path (takes over the reference). Nothing can fail. */
void endpoint_bind(struct endpoint *ep, OWNS struct path path);
/* Undoes it; fine when not bound. */
void endpoint_unbind(struct endpoint *ep);
