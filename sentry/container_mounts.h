/* SPDX-License-Identifier: Apache-2.0 */
/* The mount namespace that a container starts with. */
#pragma once

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

struct container;
struct ctx;
struct sentry_container_config;

/* Makes c->mntns from the gofer's trees and the config's mounts, fills /dev, and masks and protects paths. On a fiber.
 * Errors: −errno with a message that names the mount or path. On failure c->mntns may be half made: the
 * caller frees the container. */
MUST_CHECK int container_mounts_make(struct ctx *ctx, struct container *c,
                                     const struct sentry_container_config *config, struct errmsg *e);
