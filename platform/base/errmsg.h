/* SPDX-License-Identifier: Apache-2.0 */
/* An error message for a person, built outward as it passes callers. For oci/ and runtime/ only. */
#pragma once

#include "platform/base/compiler.h"

struct errmsg {
    char text[1024];
};

/* Sets the message. Return: err, so that `return errmsg_set(e, -EINVAL, "…")` reads well. e may be NULL. */
int errmsg_set(struct errmsg *e, int err, const char *fmt, ...) PRINTF(3, 4);
/* Puts "context: " before the message already there. Return: err. */
int errmsg_prefix(struct errmsg *e, int err, const char *fmt, ...) PRINTF(3, 4);
