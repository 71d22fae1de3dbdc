/* SPDX-License-Identifier: Apache-2.0 */
/* Where the VFS tells inotify what happened. Costs one test while nobody watches anything. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct dentry;
struct file;
struct inode;
struct superblock;

/* Event bits are those of inotify(7) (IN_ACCESS …), with IN_ISDIR set by the VFS, and IN_EXCL_UNLINK on what happens to a
 * child that is unlinked already. name is NULL for an event on the
 * inode itself; else inode is the directory and name the entry. cookie ties the two halves of a rename. Must not park. */
typedef void (*notify_fn)(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie);
/* The last mount of a file system is gone. Must not park. */
typedef void (*notify_sb_fn)(const struct superblock *sb);
/* Registered once by the inotify layer (vfs/watch.c). */
void notify_set_handler(notify_fn fn, notify_sb_fn sb_fn);
/* The inotify layer counts its watches here: 0 keeps the hooks off. */
void notify_watches_changed(int delta);

extern uint32_t notify_watches; /* (k) read by the inline tests below only */
void notify_inode_slow(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie);
void notify_dentry_slow(struct dentry *d, uint32_t mask);

/* One event of directory dir about its entry name (IN_CREATE, IN_DELETE, IN_MOVED_*), or of inode itself (name NULL). */
static inline void notify_inode(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie)
{
    if (unlikely(notify_watches != 0))
        notify_inode_slow(inode, mask, name, cookie);
}

/* An event of d's inode (IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_OPEN, IN_CLOSE_*): told to its own watches and, with
 * the name, to those of the parent directory. */
static inline void notify_dentry(struct dentry *d, uint32_t mask)
{
    if (unlikely(notify_watches != 0))
        notify_dentry_slow(d, mask);
}

void notify_sb_gone(const struct superblock *sb);

/* A number for the halves of one rename. */
uint32_t notify_next_cookie(void);
