/* SPDX-License-Identifier: Apache-2.0 */
/* The layers in which a container's changes of its trees stay, and the overlays made of them while it is built. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct container_overlay;
struct ctx;
struct dentry;
struct gofer_client;
struct sentry_overlay;

/* Opens the place of the layers. Parks. Return: 0, −errno of the gofer or −ENOMEM. Owns: caller calls container_overlay_free. */
MUST_CHECK int container_overlay_new(struct ctx *ctx, struct gofer_client *gofer, const struct sentry_overlay *how,
                                     struct container_overlay **ret_overlay);
/* Makes the overlay of tree's layer over lower (consumed, also on failure). Parks. Return: 0 with the root to mount instead, −errno. */
MUST_CHECK int container_overlay_over(struct container_overlay *o, struct ctx *ctx, OWNS struct dentry *lower, uint32_t tree,
                                      struct dentry **ret_root);
/* The container is built: from here on the layers' limit counts. NULL: nothing happens. */
void container_overlay_built(struct container_overlay *o);
/* The overlays go on without it. NULL: nothing happens. */
void container_overlay_free(struct container_overlay *o);
