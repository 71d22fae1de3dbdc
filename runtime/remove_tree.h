/* SPDX-License-Identifier: Apache-2.0 */
/* Removing a directory that a container has filled. */
#pragma once

#include "platform/base/compiler.h"

/* Removes what name in dir is, a directory with everything below it, however deep. Links are not followed, mounts not entered.
 * Nobody else may be changing it. Can be interrupted and repeated. Return: 0 (also when there is nothing), −ENOMEM, −errno. */
MUST_CHECK int remove_tree(int dir, const char *name);
