/* SPDX-License-Identifier: Apache-2.0 */
/* Files that stand for descriptors inherited from the caller of the runtime: stdio and preserved ones. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct cred;
struct ctx;
struct file;
struct walk_base;

/* A file over a host descriptor, which it owns from now on (closed when the last user goes; also on failure). The
 * offset is the host's, shared with whoever else has the description open. The access mode and O_APPEND and O_NONBLOCK are
 * taken from the descriptor; later changes stay inside the sandbox. owner_uid: the uid that stat shows and that
 * may open /proc/self/fd/N again (stdio: the process's; UINT32_MAX: the host's).
 * Return: 0, −EBADF, −ENOMEM. */
MUST_CHECK int hostfd_new(OWNS int fd, uint32_t owner_uid, const struct cred *cred, struct file **ret_file);

/* As hostfd_new, but a descriptor of the host's /dev/null becomes the container's own /dev/null, so that both have one
 * identity (programs compare st_dev and st_ino). ctx's credentials own the file. */
MUST_CHECK int hostfd_open_stdio(struct ctx *ctx, const struct walk_base *base, OWNS int fd,
                                 uint32_t owner_uid, struct file **ret_file);
