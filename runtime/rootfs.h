/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of a container's files: detached trees for the gofer, mount points, and the one look
 * into the image that the runtime takes (the home directory in /etc/passwd). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "oci/spec.h"
#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Trees in the order in which the sentry and the gofer count them: 0 is the root file system, then
 * one for each bind mount in the order of the spec. */
struct rootfs_trees {
    struct rootfs_tree {
        int fd; /* detached mount, O_PATH */
        bool read_only;
    } * v;
    unsigned len;
};

/* Whether a mount of the spec is served by the gofer as a tree of its own. */
bool rootfs_is_bind(const struct oci_mount *m);

/* Absolute path of the root file system. Owns: caller frees with mem_free. */
MUST_CHECK int rootfs_path(const struct oci_spec *spec, const char *bundle, char **ret_path);

/* Opens all trees, makes missing mount points in the root, applies mount attributes and read-only.
 * Relative bind sources are taken from the bundle. root_is_lower: the root is the lower layer of an overlay, and nothing is to be
 * changed in it. Return: 0, −errno with a message.
 * Owns: caller calls rootfs_close (also after a failure, which leaves *ret empty). */
MUST_CHECK int rootfs_open(const struct oci_spec *spec, const char *bundle, bool root_is_lower,
                           struct rootfs_trees *ret_trees, struct errmsg *e);
void rootfs_close(struct rootfs_trees *trees);

/* Home directory of uid as the image's /etc/passwd has it, "/" if it has none.
 * Return: 0 or −ENOMEM. Owns: caller frees with mem_free. */
MUST_CHECK int rootfs_home(int root_fd, uint32_t uid, char **ret_home);
