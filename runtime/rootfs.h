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
        bool is_lower; /* the lower layer of an overlay: nothing is to be changed in it */
    } * v;
    unsigned len;
};

/* Whether a mount of the spec is served by the gofer as a tree of its own. */
bool rootfs_is_bind(const struct oci_mount *m);

/* Absolute path of the root file system. Owns: caller frees with mem_free. */
MUST_CHECK int rootfs_path(const struct oci_spec *spec, const char *bundle, char **ret_path);

/* Which trees are lower layers of overlays. Of bind mounts: those of directories that are not read-only. */
struct rootfs_lowers {
    bool root, binds;
};

/* Opens all trees, makes missing mount points in the root, applies mount attributes and read-only.
 * Relative bind sources are taken from the bundle. Return: 0, −errno with a message.
 * Owns: caller calls rootfs_close (also after a failure, which leaves *ret empty). */
MUST_CHECK int rootfs_open(const struct oci_spec *spec, const char *bundle, struct rootfs_lowers lowers,
                           struct rootfs_trees *ret_trees, struct errmsg *e);
void rootfs_close(struct rootfs_trees *trees);

/* Adds the directory path, a store of layers, as the last tree; its descriptor can hold a lock. Return: 0, −errno with a message. */
MUST_CHECK int rootfs_add_layer(struct rootfs_trees *trees, const char *path, struct errmsg *e);

/* Home directory of uid as the /etc/passwd of the container has it, "/" if it has none. upper_fd: the layer over the root; −1: none.
 * Return: 0 or −ENOMEM. Owns: caller frees with mem_free. */
MUST_CHECK int rootfs_home(int upper_fd, int root_fd, uint32_t uid, char **ret_home);
