/* SPDX-License-Identifier: Apache-2.0 */
/* The config.json that `spec` writes for a person to start from. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/buf.h"

/* Appends the document: indented by tabs, no newline at the end. With rootless, root of a new user
 * namespace is mapped to uid and gid, and what an ordinary user can't have is left out. Errors
 * stick to out. */
void spec_template_write(struct buf *out, bool rootless, uint32_t uid, uint32_t gid);
