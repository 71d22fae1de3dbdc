/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls that read and write share: transfers with RWF_* flags, RLIMIT_FSIZE. */
#pragma once

#include <linux/fs.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct file;
struct task;
struct uio;

enum { RW_NOAPPEND = 0x20 /* RWF_NOAPPEND */ };
#define RW_FLAGS_KNOWN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | RW_NOAPPEND)

/* Shortens a write of *inout_size bytes at start to what RLIMIT_FSIZE allows. Return: 0, or −EFBIG (with SIGXFSZ) when it
 * allows nothing. */
MUST_CHECK int rw_limit(struct task *t, const struct file *f, uint64_t start, uint64_t *inout_size);

/* One transfer of f, which is open for it, at pos (−1: at the file's own position, or of a stream) with RWF_* flags that are all
 * known. Parks. Return: bytes or −errno. */
MUST_CHECK int64_t rw_file(struct task *t, struct file *f, struct uio *u, int64_t pos, int flags, bool write);
