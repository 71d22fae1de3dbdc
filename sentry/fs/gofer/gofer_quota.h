/* SPDX-License-Identifier: Apache-2.0 */
/* A limit of what an exclusive tree may take on its host's disk. The host has no quotas that could be had everywhere, so the sentry,
 * through which every change goes, keeps count: of files by the blocks that the host says they have, of directories by their names.
 * A file that may be written through a mapping, where the sentry sees nothing, counts with its whole size. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/vfs/inode.h"

struct gofer_inode;
struct gofer_sb;
struct statfs;

struct gofer_quota {
    uint64_t limit, used;      /* bytes (i), (k) */
    uint64_t names_max, names; /* directory entries (i), (k) */
    bool enforced;             /* (k) not yet: it only counts */
    struct inode_ops ops;      /* (i) of the tree's inodes: those of any exclusive tree, which count */
};

/* New attributes of gi are known: its blocks may have changed. Does not park. */
void gofer_quota_note(struct gofer_inode *gi);
/* gi goes from memory, and from the disk if it has no name. */
void gofer_quota_evict(struct gofer_inode *gi);

/* Takes what a write of up to *inout_size bytes at pos may need, and makes that less where not all of it may be had.
 * Return: bytes taken, to be given back with gofer_quota_settle; −ENOSPC. */
MUST_CHECK int64_t gofer_quota_reserve(struct gofer_inode *gi, int64_t pos, uint64_t *inout_size);
/* After the write: what it really took is known by the open descriptor. */
void gofer_quota_settle(struct gofer_inode *gi, int64_t reserved);
/* Whether the whole of gi, at this size, may come to be on disk through a mapping. Return: 0, −ENOSPC. */
MUST_CHECK int gofer_quota_map(struct gofer_inode *gi, uint64_t size);
/* What statfs tells of a limited tree. */
void gofer_quota_statfs(const struct gofer_quota *q, struct statfs *inout_st);
