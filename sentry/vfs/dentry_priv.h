/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the VFS: the cache's fast path for walks. */
#pragma once

#include "sentry/vfs/dentry.h"

enum { DENTRY_TABLE_BITS = 14, DENTRY_LRU_MAX = 32768 };

#define DENTRY_HASH_SEED 0xcbf29ce484222325ULL

/* One step of the name hash; a walk folds it into its search for the next slash. */
static inline uint64_t dentry_hash_step(uint64_t h, unsigned char c)
{
    return (h ^ c) * 0x100000001b3ULL;
}

static inline uint32_t dentry_hash_end(uint64_t h)
{
    return (uint32_t)(h ^ (h >> 32));
}

uint32_t dentry_hash_name(const char *name, size_t len);
/* Cached child, not referenced: valid until the next park or VFS call. */
struct dentry *dentry_peek(struct dentry *parent, const char *name, size_t len, uint32_t hash);
/* A dentry below parent that is in no directory: O_TMPFILE ("#ino"). Consumes inode. */
MUST_CHECK struct dentry *dentry_new_unlinked(struct dentry *parent, OWNS struct inode *inode);
/* Replaces the bound of unused dentries. Tests only. */
void dentry_set_limit(uint32_t max);
