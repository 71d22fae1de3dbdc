/* SPDX-License-Identifier: Apache-2.0 */
/* Where the VFS tells inotify, dnotify and fanotify what happened. Costs one test while nobody watches anything. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"

struct ctx;
struct dentry;
struct file;
struct inode;
struct mount;
struct path;
struct superblock;

/* Bits of events are those of inotify(7) and fanotify(7), which agree. Besides: */
enum {
    NOTIFY_OPEN_EXEC = 0x1000,
    NOTIFY_OPEN_PERM = 0x10000,
    NOTIFY_ACCESS_PERM = 0x20000,
    NOTIFY_OPEN_EXEC_PERM = 0x40000,
    NOTIFY_RENAME = 0x10000000,
    NOTIFY_ISDIR = 0x40000000,
};
/* Events of a directory about its entries. */
#define NOTIFY_ENTRY_EVENTS (0x3c0U | NOTIFY_RENAME)

/* One event as fanotify is told it. Everything is borrowed. */
struct notify_event {
    uint32_t mask;           /* with NOTIFY_ISDIR where inode is a directory */
    const struct path *path; /* the open file's place; NULL: it does not say by which mount */
    struct superblock *sb;
    struct inode *inode;     /* whom it happened to; may be NULL for an entry event */
    struct inode *dir;       /* the directory that inode has a name in, or NULL */
    const char *name;        /* the name in dir, or NULL */
    struct inode *new_dir;   /* NOTIFY_RENAME alone */
    const char *new_name;
};

/* inotify's: name is NULL for an event on the inode itself; else inode is the directory and name the entry. cookie ties the
 * two halves of a rename. IN_EXCL_UNLINK is set on what happens to a child that is unlinked already. Must not park. */
typedef void (*notify_fn)(struct inode *inode, uint32_t mask, const char *name, uint32_t cookie);
/* The last mount of a file system is gone. Must not park. */
typedef void (*notify_sb_fn)(struct superblock *sb);
/* Registered once by the inotify layer (vfs/watch.c). */
void notify_set_handler(notify_fn fn, notify_sb_fn sb_fn);

/* fanotify's. None but ask parks. */
struct notify_fan_ops {
    void (*event)(const struct notify_event *ev);
    /* Asks those who decide about ev. Return: 0, −EPERM, −ERESTARTSYS. */
    int (*ask)(struct ctx *ctx, const struct notify_event *ev);
    /* Marks of what goes away go as well. */
    void (*inode_gone)(struct inode *inode);
    void (*mount_gone)(struct mount *m);
    void (*sb_gone)(struct superblock *sb);
};
/* Registered once (fs/fanotify.c). */
void notify_set_fan_ops(const struct notify_fan_ops *ops);

/* The layers count their watches and marks here: 0 keeps the hooks off. */
void notify_watches_changed(int delta);

extern uint32_t notify_watches; /* (k) read by the inline tests below only */
void notify_inode_slow(struct inode *inode, uint32_t mask);
void notify_entry_slow(struct inode *dir, uint32_t mask, const char *name, uint32_t cookie, struct inode *child);
void notify_dentry_slow(struct dentry *d, uint32_t mask);
void notify_file_slow(struct file *f, uint32_t mask);
int notify_ask_slow(struct ctx *ctx, struct file *f, uint32_t mask);
void notify_inode_gone_slow(struct inode *inode);

/* An event of the inode itself, by none of its names: IN_MOVE_SELF, IN_DELETE_SELF, IN_ATTRIB for the link count. */
static inline void notify_inode(struct inode *inode, uint32_t mask)
{
    if (unlikely(notify_watches != 0))
        notify_inode_slow(inode, mask);
}

/* IN_CREATE, IN_DELETE, IN_MOVED_* of directory dir: child is (or was) its entry name. */
static inline void notify_entry(struct inode *dir, uint32_t mask, const char *name, uint32_t cookie,
                                struct inode *child)
{
    if (unlikely(notify_watches != 0))
        notify_entry_slow(dir, mask, name, cookie, child);
}

/* All that directories are told of a rename. */
void notify_renamed(struct inode *old_dir, const char *old_name, struct inode *new_dir, const char *new_name,
                    struct inode *moved);

/* IN_MODIFY, IN_ATTRIB of d's inode where no open file is known: told to its own watches and, with the name, to those of the
 * parent directory. */
static inline void notify_dentry(struct dentry *d, uint32_t mask)
{
    if (unlikely(notify_watches != 0))
        notify_dentry_slow(d, mask);
}

/* The same of what is done through an open file: IN_OPEN, IN_ACCESS, IN_MODIFY, IN_CLOSE_*. */
static inline void notify_file(struct file *f, uint32_t mask)
{
    if (unlikely(notify_watches != 0))
        notify_file_slow(f, mask);
}

/* Asks for leave: NOTIFY_*_PERM. Parks while somebody thinks about it. Return: 0, −EPERM, −ERESTARTSYS. */
MUST_CHECK static inline int notify_ask(struct ctx *ctx, struct file *f, uint32_t mask)
{
    return unlikely(notify_watches != 0) ? notify_ask_slow(ctx, f, mask) : 0;
}

/* Inside the VFS: these go away. */
static inline void notify_inode_gone(struct inode *inode)
{
    if (unlikely(notify_watches != 0))
        notify_inode_gone_slow(inode);
}
void notify_mount_gone(struct mount *m);
void notify_sb_gone(struct superblock *sb);
