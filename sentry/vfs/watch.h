/* SPDX-License-Identifier: Apache-2.0 */
/* inotify: marks on inodes and the events that the VFS reports to them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "platform/base/compiler.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/inode.h"

struct ctx;
struct cred;
struct file;

/* Limits of all users together. Source: /proc/sys/fs/inotify. */
enum {
    WATCH_QUEUE_MAX = 16384,   /* events an instance holds: max_queued_events */
    WATCH_INSTANCES_MAX = 128, /* a user: max_user_instances */
    WATCH_MARKS_MAX = 65536,   /* a user: max_user_watches */
};

/* Number of marks that exist; zero keeps the hooks below at one load. Only watch.c writes it. */
extern uint32_t watch_marks;

/* ---- hooks for the VFS; all cheap when nothing is watched, none parks ---- */

void watch_report(struct inode *inode, const char *name, uint32_t mask, uint32_t cookie);
void watch_report_dentry(struct dentry *d, uint32_t mask);
void watch_report_gone(struct inode *inode);

/* Something happened to the entry name of directory dir: IN_CREATE, IN_DELETE, IN_MOVED_FROM, IN_MOVED_TO,
 * with IN_ISDIR or-ed in when the entry is a directory. cookie ties the two halves of a rename, else 0. */
static inline void watch_entry(struct inode *dir, const char *name, uint32_t mask, uint32_t cookie)
{
    if (unlikely(watch_marks))
        watch_report(dir, name, mask, cookie);
}

/* Something happened to an object: IN_OPEN, IN_ACCESS, IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_CLOSE_NOWRITE. Tells marks on its inode
 * and, with the name, marks on its parent directory. For a file pass file->path.dentry. */
static inline void watch_dentry(struct dentry *d, uint32_t mask)
{
    if (unlikely(watch_marks))
        watch_report_dentry(d, mask);
}

/* As watch_dentry without the parent: IN_MOVE_SELF after a rename, IN_ATTRIB when the link count fell. */
static inline void watch_inode(struct inode *inode, uint32_t mask)
{
    if (unlikely(watch_marks))
        watch_report(inode, NULL, mask, 0);
}

/* The inode has lost its last name and its last user: IN_DELETE_SELF, then its marks go (IN_IGNORED). Called
 * when the last reference of its unlinked dentry goes (a mark holds the inode, never a dentry). */
static inline void watch_inode_gone(struct inode *inode)
{
    if (unlikely(watch_marks) && inode->watches)
        watch_report_gone(inode);
}

/* The file system was unmounted: IN_UNMOUNT, then the marks go. */
void watch_sb_gone(struct superblock *sb);
/* A fresh number that ties IN_MOVED_FROM and IN_MOVED_TO; never 0. */
uint32_t watch_cookie(void);

/* ---- inotify instances ---- */

/* Return: a new instance's file; −EMFILE (too many of this user), −ENOMEM. */
MUST_CHECK int watch_new(const struct cred *cred, uint32_t flags, struct file **ret_file);
bool watch_is(const struct file *f);
/* Adds or changes the mark of inode. mask as in inotify_add_watch(2), flags included. Return: watch descriptor; −EEXIST
 * (IN_MASK_CREATE), −ENOSPC, −ENOMEM. */
MUST_CHECK int watch_add(struct file *f, struct inode *inode, uint32_t mask);
/* Return: 0 or −EINVAL (no such watch). */
MUST_CHECK int watch_remove(struct file *f, int wd);
