/* SPDX-License-Identifier: Apache-2.0 */
/* A container's layer as an OCI image layer. */
#pragma once

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Writes the layer of the root file system in the store at path to fd, as the OCI image specification's layer media type
 * application/vnd.oci.image.layer.v1.tar wants it: removed names as ".wh.NAME", replaced directories with ".wh..wh..opq". rootfs: the
 * tree below, with which the root's own attributes are compared. Sockets are left out, with a warning, as no archive has them.
 * Return: 0, −ENOENT (there is no layer), −errno, each with a message that names the file. */
MUST_CHECK int layer_export(const char *path, const char *rootfs, int fd, struct errmsg *e);
