/* SPDX-License-Identifier: Apache-2.0 */
/* Mount options of the form "a,b=c" for the synthetic file systems. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct fs_option {
    const char *name, *value; /* not terminated; value NULL: none was given */
    size_t name_len, value_len;
};

/* Takes the next option off *inout_data (NULL or "" is empty). Return: 1, 0 at the end. */
MUST_CHECK int fs_option_next(const char **inout_data, struct fs_option *ret_option);
bool fs_option_is(const struct fs_option *o, const char *name);
/* A user or group id, a number of the mounter's user namespace. Return: 0 with the initial id, or −EINVAL. */
struct ctx;
MUST_CHECK int fs_option_uid(const struct ctx *ctx, const struct fs_option *o, uint32_t *ret_uid);
MUST_CHECK int fs_option_gid(const struct ctx *ctx, const struct fs_option *o, uint32_t *ret_gid);
/* Return: 0 with the number (base 8 or 10), or −EINVAL. */
MUST_CHECK int fs_option_u32(const struct fs_option *o, unsigned base, uint32_t *ret_value);
