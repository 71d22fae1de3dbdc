/* SPDX-License-Identifier: Apache-2.0 */
/* Inside fs/gofer: the objects behind superblocks and inodes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/list.h"
#include "sentry/fs/gofer/gofer_client.h"
#include "sentry/fs/gofer/gofer_fs.h"
#include "sentry/fs/gofer/gofer_quota.h"
#include "sentry/fs/gofer/gofer_watch.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/inode.h"

enum {
    GOFER_NODES_MAX = 8192, /* nodes of one file system's inodes that are kept without need */
    GOFER_PATH_MAX = 4096
};

struct gofer_sb {
    struct superblock *sb;       /* (i) not referenced: it owns us */
    struct gofer_client *client; /* (i) referenced */
    enum gofer_share share;      /* (i) */
    uint32_t root_dev;           /* (i) the tree's own file system among those it may contain */
    uint64_t root_node;          /* (i) */
    struct gofer_inode **table;  /* (k) inodes by (dev, ino) */
    uint32_t table_len;          /* (k) a power of two */
    uint32_t inodes;             /* (k) in the table */
    struct list nodes;           /* (k) of gofer_inode.node_link, oldest first */
    uint32_t nodes_len;          /* (k) */
    uint64_t changes; /* (k) counts changes made through us: a reply that was under way is older */
    struct gofer_quota *quota; /* (i) owned; NULL: no limit */
    struct gofer_watch *watch; /* (i) the client's, if this tree is watched */
    bool local;                /* (i) the host refuses no change for reasons that are not known here */
    int late_error;            /* (k) −errno of a change that failed late, until a sync tells it; else 0 */
    bool no_nowait_read;       /* (k) the host refuses RWF_NOWAIT */
    /* (k) transfers that can't be asked not to wait go to the I/O pool until then, since one took
     * long; 0: they need not */
    uint64_t slow_read_ns, slow_write_ns;
};

struct gofer_inode {
    struct inode inode;
    struct gofer_inode *next; /* (k) in the table's chain */
    bool hashed;              /* (k) */
    uint32_t dev;             /* (i) wire's */
    uint64_t host_ino;        /* (i) */
    uint64_t node;            /* (k) owned; WIRE_NODE_NONE: got from the names when needed */
    struct list node_link;    /* (k) */
    uint64_t checked_ns;      /* (k) shared trees: when attributes were last taken from the host */
    /* (k) attributes may be older than the host's */
    bool stale;
    bool owner_stale;     /* the owner, too, which only the gofer can tell */
    bool io_dirty;        /* (k) data was moved since: an fstat tells size and times */
    bool mapped;          /* (k) a writable shared mapping was made: times change at any moment */
    bool counted;         /* (k) for the tree's limit: charged is what it counts there */
    uint64_t charged;     /* (k) bytes */
    bool no_capability;   /* (k) known to have no security.capability */
    bool posted;          /* (k) a change of it may be under way on the lane: the host does not know yet */
    bool others;          /* (k) a directory in which others have made, removed or moved names */
    bool complete;        /* (k) a directory whose names were all put into the cache … */
    uint32_t complete_at; /* (k) … when its dentry's child_evictions was this */
    /* Files opened ahead, gofer_ahead.c (k) */
    uint64_t ahead_last;  /* directories: number of the file that was opened last by a round trip; 0: none */
    uint8_t ahead_unused; /* … files of it opened ahead that nobody has opened since */
    bool ahead;           /* files: such a one */
    /* Shared trees, gofer_watch.c (k) */
    uint32_t wd;     /* number of the watch on this directory; 0: none */
    uint64_t events; /* changes by others that concern it or its entries */
    uint64_t watch_seen;
    struct gofer_inode *watch_next;
    /* Descriptors of a regular file, gofer_cache.c (k) */
    int fd_ro, fd_rw;
    bool keep_open; /* the descriptors are the only way left to the file */
    uint32_t opens; /* open files */
    uint32_t pins;  /* host calls under way or mappings being made with one of the fds */
    struct list cache_link;
};

static inline struct gofer_inode *to_gofer_inode(struct inode *inode)
{
    return container_of(inode, struct gofer_inode, inode);
}

static inline struct gofer_sb *gofer_sb_of(const struct inode *inode)
{
    return inode->sb->priv;
}

/* ---- gofer_fs.c ---- */

/* What was known before a request: whether its reply is still true when it comes. */
struct gofer_mark {
    uint64_t changes, events;
};

/* dir: whose entries the request is about; NULL: anything. */
struct gofer_mark gofer_fs_mark(struct gofer_sb *gs, const struct gofer_inode *dir);
/* Return: whether neither we nor, as far as is known, others have changed anything since. */
bool gofer_fs_current(struct gofer_sb *gs, const struct gofer_inode *dir, struct gofer_mark mark);

/* The inode of a reply's entry, found or made. Consumes entry's node. target (may be NULL) is a
 * symbolic link's text. current: the attributes are as the host has them now.
 * Return: 0 with a reference, or −ENOMEM. */
MUST_CHECK int gofer_fs_inode(struct gofer_sb *gs, const struct wire_entry *entry,
                              const char *target, size_t target_size, bool current,
                              struct inode **ret_inode);
/* A new file has this number: what is in the table under it is gone. */
void gofer_fs_forget(struct gofer_sb *gs, const struct wire_attr *attr);
/* ctime is about to change: what others may have changed with it is not known any more. */
void gofer_fs_new_ctime(struct gofer_inode *gi);
/* Takes attributes over. */
void gofer_fs_set_attr(struct gofer_inode *gi, const struct wire_attr *attr);
/* The gofer's node of the inode, got through its names when there is none yet. May park.
 * Return: 0, −ESTALE when the file can't be found any more, the gofer's errors. */
MUST_CHECK int gofer_fs_node(struct gofer_inode *gi, uint64_t *ret_node);
/* Flags of a walk that also opens. Where others may remove the file, its node keeps it reachable.
 */
uint32_t gofer_fs_open_walk(const struct gofer_sb *gs);
/* Opens the inode's file on the host with exactly this access. May park. Return: fd (the caller's)
 * or −errno. */
MUST_CHECK int gofer_fs_open(struct gofer_inode *gi, uint32_t open_flags);
/* Hands the node of an entry to the inode it belongs to, if that is known, else gives it back.
 * Return: the inode (not referenced) or NULL. */
struct gofer_inode *gofer_fs_adopt(struct gofer_sb *gs, const struct wire_entry *entry);
/* A change was made through us: the attributes named by gi are out of date. */
void gofer_fs_changed(struct gofer_inode *gi);
/* The inode goes: gives everything back. Does not park. */
void gofer_fs_evict(struct gofer_inode *gi);
/* Makes room in the gofer's table of nodes after −ENFILE. */
void gofer_fs_shrink(struct gofer_sb *gs);
/* Takes in what others have done, for what follows. May park, for what other containers have under way. */
void gofer_fs_catch_up(struct gofer_sb *gs);
/* Whether a change of dir's names may be sent without waiting for its answer: nobody else changes them, as far as
 * is known, and nothing but a lack of space can make it fail. room: bytes of its message. May park.
 * Return: 1, 0 or −EIO. */
MUST_CHECK int gofer_fs_may_post(struct gofer_inode *dir, size_t room);
/* A change in the directory of that number has failed after it was told to have been made. */
void gofer_fs_late_failed(struct gofer_sb *gs, uint32_t dev, uint64_t ino, int error, const char *what);
/* What is under way is done. May park. Return: 0, or the error of a change that failed late: told once. */
MUST_CHECK int gofer_fs_settle(struct gofer_sb *gs);
/* Return: whether cached attributes of gi, that are not known to be stale, may be used without
 * asking the gofer. After gofer_fs_catch_up. */
bool gofer_fs_attr_trusted(const struct gofer_inode *gi);
/* Return: whether a name below dir that is cached as inode (NULL: as absent) may be used likewise.
 */
bool gofer_fs_name_trusted(const struct gofer_inode *dir, const struct inode *inode);

/* ---- gofer_inode.c ---- */

extern const struct inode_ops gofer_inode_exclusive_ops, gofer_inode_shared_ops;
/* Brings attributes up to date. May park. */
MUST_CHECK int gofer_inode_refresh(struct ctx *ctx, struct inode *inode);

/* ---- gofer_dir.c ---- */

MUST_CHECK int gofer_dir_open(struct ctx *ctx, struct inode *inode, struct file *file);
/* Return: whether a name that is not cached is known not to exist. */
bool gofer_dir_knows_all(const struct inode *dir);
void gofer_dir_prefetch(struct ctx *ctx, struct dentry *dir, const char *rest);

/* ---- gofer_file.c ---- */

MUST_CHECK int gofer_file_open(struct ctx *ctx, struct inode *inode, struct file *file);
/* Sets the size of a regular file. May park. */
MUST_CHECK int gofer_file_truncate(struct gofer_inode *gi, uint64_t size);

/* ---- gofer_ahead.c ---- */

/* Opens the file O_RDONLY, and with it those that are likely to be opened next. May park.
 * Return: fd (the caller's) or −errno. */
MUST_CHECK int gofer_ahead_open(struct gofer_inode *gi);
/* The file is opened by somebody. */
void gofer_ahead_used(struct gofer_inode *gi);
/* The directory is about to be listed: files of it may be read in turn after that. */
void gofer_ahead_listed(struct gofer_inode *dir);

/* ---- gofer_cache.c ---- */

/* A descriptor for I/O, kept from being closed until gofer_cache_put. write: opened O_RDWR; else
 * any. May park. Return: fd (the cache's) or −errno. */
MUST_CHECK int gofer_cache_get(struct gofer_inode *gi, bool write);
/* As gofer_cache_get, but an O_RDONLY descriptor and no other: for mappings. */
MUST_CHECK int gofer_cache_get_read_only(struct gofer_inode *gi);
void gofer_cache_put(struct gofer_inode *gi);
/* Return: whether a descriptor that comes with another reply can be kept. */
MUST_CHECK bool gofer_cache_has_room(void);
/* Return: how many more could be kept without closing others. */
unsigned gofer_cache_room(void);
/* Hands over such a descriptor, opened O_RDWR (write) or O_RDONLY. */
void gofer_cache_add(struct gofer_inode *gi, OWNS int fd, bool write);
/* A descriptor that is open anyway, or −1. Valid until the next park. */
int gofer_cache_peek(const struct gofer_inode *gi);
void gofer_cache_opened(struct gofer_inode *gi);
void gofer_cache_closed(struct gofer_inode *gi);
/* The inode goes. */
void gofer_cache_drop(struct gofer_inode *gi);
/* Takes attributes from an open descriptor. Return: false when there is none. */
bool gofer_cache_fstat(struct gofer_inode *gi);
