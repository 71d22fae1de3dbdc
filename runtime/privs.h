/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities of the sandbox's own processes on the host. */
#pragma once

#include <stdbool.h>

#include "platform/base/compiler.h"
#include "platform/base/errmsg.h"

/* Gives up every capability, bounding and ambient sets included, and sets no_new_privs. */
MUST_CHECK int privs_drop_all(struct errmsg *e);
/* Keeps only what changing owners, modes and contents of other users' files needs (CHOWN,
 * DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, MKNOD, SETFCAP; with immutable LINUX_IMMUTABLE), effective and permitted; no
 * bounding, inheritable or ambient ones. Sets no_new_privs. */
MUST_CHECK int privs_keep_file_set(bool immutable, struct errmsg *e);
/* Checks that the calling process has no capability at all and can't gain any.
 * Return: 0, −EPERM with a message. */
MUST_CHECK int privs_check_none(struct errmsg *e);
/* Whether the calling process has the capability in its effective set. */
int privs_have(int capability);
