/* SPDX-License-Identifier: Apache-2.0 */
/* overlayfs: directories of several file systems seen as one, with all changes in the uppermost. The format of the upper layer is
 * Linux's, so that either can go on with what the other has left. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"
#include "sentry/vfs/mount.h"

enum {
    OVERLAY_LOWERS_MAX = 500, /* layers below the upper one, as Linux */
    OVERLAY_DEPTH_MAX = 2,    /* overlays on overlays, as Linux */
};

/* Under which extended attributes the overlay's own marks are, and guests' own of such names. */
enum overlay_prefix {
    OVERLAY_PREFIX_TRUSTED, /* trusted.overlay. */
    OVERLAY_PREFIX_USER,    /* user.overlay.: what mount(2) calls userxattr */
    /* user.cloister.: for layers of the sentry's own on a host whose trusted.* is out of reach. Guests' trusted.* are kept under it
     * as well, and whiteouts that they make for overlays of their own are told from this one's. */
    OVERLAY_PREFIX_PRIVATE,
};

struct overlay_config {
    const struct path *lowers;  /* borrowed; the uppermost first */
    unsigned lowers_len;        /* 1 … OVERLAY_LOWERS_MAX; without an upper at least 2 */
    struct path upper, work;    /* borrowed; both or neither (read-only). work: a directory beside upper, on the same mount */
    enum overlay_prefix prefix;
    bool handles;               /* its files have handles that open, as those of a plain file system */
    bool volatile_;             /* nothing is synced */
    const char *options;        /* what /proc/mounts shows of them, with a leading comma; copied. NULL: nothing */
};

/* Makes an overlay. Everything below is done without asking for ctx's rights; those over the upper directory are the caller's to
 * check. Takes its own references. May park. Return: 0 with the root's dentry, −EINVAL (layers that do not go together, too
 * deep), −ENOTDIR, −ENOMEM, the errors of the layers. */
MUST_CHECK int overlay_new(struct ctx *ctx, const struct overlay_config *config, struct dentry **ret_root);

/* Makes the type "overlay" known to mount(2). */
void overlay_register(void);
