/* SPDX-License-Identifier: Apache-2.0 */
/* The host's view of guest processes: files below a procfs of their pid namespace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"

/* Names the procfs (borrowed for ever). Once, at boot. */
void hostproc_set_dirfd(int fd);
/* Appends /proc/<host_pid>/<name> to out, at most HOSTPROC_MAX bytes. Runs on the I/O pool, since the host may wait for the
 * guest's memory lock. Parks. Return: 0, −ESRCH (no such process, or no procfs), −EFBIG, −ENOMEM. */
enum { HOSTPROC_MAX = 64 << 20 };
MUST_CHECK int hostproc_read(int host_pid, const char *name, struct buf *out);
/* Reads size bytes at offset of such a file (pagemap). Parks. p is the caller's, on no fiber's stack that may go.
 * Return: bytes, 0 at the end, −ESRCH, −errno. */
MUST_CHECK ssize_t hostproc_pread(int host_pid, const char *name, void *p, size_t size, uint64_t offset);
/* Reads or writes memory of the process as a debugger does: what its maps' protections forbid it itself is no obstacle, and a write to a
 * private map makes a private page. addr is the caller's to bound. Parks, p as above. Return: bytes, −ESRCH, −EIO (nothing there, or a
 * shared file that may not be written), −errno when the host does not let us. */
MUST_CHECK ssize_t hostproc_mem(int host_pid, void *p, size_t size, uint64_t addr, bool write);
