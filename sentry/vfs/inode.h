/* SPDX-License-Identifier: Apache-2.0 */
/* Inodes and superblocks: what a file system gives the VFS. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/core/ctx.h"
#include "sentry/core/waitq.h"
#include "sentry/vfs/sleeplock.h"

struct acl; /* vfs/acl.h */
struct dentry;
struct file;
struct inode;
struct path;
struct superblock;
struct userns;
struct flock_state; /* vfs/flock.h */
struct dnotify;     /* vfs/dnotify.h: F_NOTIFY */
struct watch_set;   /* vfs/watch.h: inotify marks */
struct fan_set;     /* fs/fanotify.h: fanotify marks */
struct endpoint;    /* vfs/endpoint.h: a unix socket bound to this inode */
struct pipe;        /* fs/pipe.h: the pipe behind a fifo */
struct statfs;

struct kstat {
    uint64_t ino, nlink, size, blocks; /* blocks of 512 bytes */
    uint32_t mode, uid, gid, blksize;
    uint64_t dev, rdev; /* Linux's encoding for user space (as makedev) */
    struct timespec atime, mtime, ctime, btime;
    bool has_btime;
    uint64_t attributes, attributes_mask; /* statx */
};

enum {
    IATTR_MODE = 1,
    IATTR_UID = 2,
    IATTR_GID = 4,
    IATTR_SIZE = 8,
    IATTR_ATIME = 16,
    IATTR_MTIME = 32,
    IATTR_ATIME_NOW = 64, /* with IATTR_ATIME */
    IATTR_MTIME_NOW = 128,
    IATTR_CTIME = 256,
    IATTR_DROP_PRIVS = 512, /* for vfs_setattr only: set-id bits and file capabilities go, as at any chown */
};

struct iattr {
    unsigned valid; /* IATTR_* */
    uint32_t mode, uid, gid;
    uint64_t size;
    struct timespec atime, mtime;
};

enum acl_kind { ACL_KIND_ACCESS, ACL_KIND_DEFAULT, ACL_KINDS };

/* What the VFS tells a file system about who makes an entry: owner and final mode are already decided
 * (umask, setgid directory, inherited ACL) by vfs_new_owner(). */
struct newattr {
    uint32_t mode; /* S_IFMT bits and permissions */
    uint32_t uid, gid;
    uint64_t rdev;
    struct acl *acls[ACL_KINDS]; /* inherited; NULL: none. With SB_ACLS_HERE the file system keeps them with the new inode */
};

/* All may park unless said otherwise. Names are single components, NUL-terminated, ≤ 255 bytes, never "." or "..".
 * A NULL op gives the errno in brackets. The VFS has checked permissions, read-only mounts, types and existence
 * (through its dentries) before it calls; the file system must still cope with races outside. */
struct inode_ops {
    /* Finds name in dir. Return: 0 with a referenced inode, −ENOENT (the VFS makes a negative dentry). [ENOTDIR] */
    int (*lookup)(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode);
    /* Hint before a lookup that is not cached and is followed by more components: rest ("b/c/file", may hold "." and
     * ".." and ends with a NUL) is what the walk still has to resolve below dir. The file system may learn as much as
     * it can in one go and put it into the cache with dentry_prime (dentry_find gives the child to go on from);
     * lookup is called for whatever is still missing. Errors are not reported. NULL: no such means. */
    void (*walk_prefetch)(struct ctx *ctx, struct dentry *dir, const char *rest);
    /* Makes a regular file (an open of it follows at once when it was made by open(2)). [EPERM] */
    int (*create)(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                  struct inode **ret_inode);
    int (*mkdir)(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                 struct inode **ret_inode);
    int (*mknod)(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                 struct inode **ret_inode);
    int (*symlink)(struct ctx *ctx, struct inode *dir, const char *name, const char *target,
                   const struct newattr *attr, struct inode **ret_inode);
    int (*link)(struct ctx *ctx, struct inode *inode, struct inode *dir, const char *name);
    int (*unlink)(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode);
    int (*rmdir)(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode);
    /* flags: RENAME_NOREPLACE, EXCHANGE, WHITEOUT. target: inode at the new name or NULL. */
    int (*rename)(struct ctx *ctx, struct inode *old_dir, const char *old_name, struct inode *inode,
                  struct inode *new_dir, const char *new_name, struct inode *target, unsigned flags);
    /* An unnamed regular file (O_TMPFILE). [EOPNOTSUPP] */
    int (*tmpfile)(struct ctx *ctx, struct inode *dir, const struct newattr *attr, struct inode **ret_inode);
    /* Copies the link text, NUL-terminated, at most size bytes with the NUL. Return: length. [EINVAL] Not called when
     * inode->link_text is set; the VFS sets that from the first call unless sb->no_dcache. */
    ssize_t (*readlink)(struct ctx *ctx, struct inode *inode, char *dst, size_t size);
    /* Magic links (/proc/PID/fd/N, exe, cwd …): Return: 0 with a referenced path. Checked before readlink on walks. */
    int (*follow)(struct ctx *ctx, struct inode *inode, struct path *ret_path);
    /* Brings the inode's cached attributes up to date. NULL: they always are. */
    int (*refresh)(struct ctx *ctx, struct inode *inode);
    /* Applies attr and updates the inode's cached attributes. NULL: the VFS changes the cached ones. */
    int (*setattr)(struct ctx *ctx, struct inode *inode, const struct iattr *attr);
    /* Sets file->ops (and file->priv) for an open of inode; file->flags tell the access (O_NOCTTY and O_TRUNC are still in
     * them; the VFS drops these afterwards). [ENXIO] */
    int (*open)(struct ctx *ctx, struct inode *inode, struct file *file);
    /* Replaces the mode-bit check when a file system decides for itself. mask: MAY_*. NULL: generic. */
    int (*permission)(struct ctx *ctx, struct inode *inode, unsigned mask);
    /* Extended attributes; size 0 asks for the length. [EOPNOTSUPP] */
    ssize_t (*getxattr)(struct ctx *ctx, struct inode *inode, const char *name, void *dst, size_t size);
    int (*setxattr)(struct ctx *ctx, struct inode *inode, const char *name, const void *src, size_t size,
                    int flags);
    ssize_t (*listxattr)(struct ctx *ctx, struct inode *inode, char *dst, size_t size);
    int (*removexattr)(struct ctx *ctx, struct inode *inode, const char *name);
    /* The flags that chattr sets, FS_*_FL of <linux/fs.h>. set: whoever asks may; afterwards inode->flags is up to date. Flags that
     * the file system does not have: −EOPNOTSUPP. [ENOTTY] */
    int (*fileattr_get)(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags);
    int (*fileattr_set)(struct ctx *ctx, struct inode *inode, uint32_t flags);
    /* Says whether a cached child dentry may still be used without asking (volumes). Return: 1 yes, 0 no (looked up
     * anew), −errno. inode is NULL for a negative dentry. NULL op: always yes. */
    int (*revalidate)(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode);
    /* Last reference gone. Must not park: defer host work. NULL: nothing to do. The VFS frees the memory when the
     * inode was made with inode_alloc. */
    void (*evict)(struct inode *inode);
};

struct inode {
    struct ref ref;
    const struct inode_ops *ops; /* (i) */
    struct superblock *sb;       /* (i) referenced */
    uint64_t ino;                /* (i) */
    /* Cached attributes (k) */
    uint32_t mode, uid, gid;
    uint32_t blksize;
    uint64_t nlink, size, blocks, rdev;
    struct timespec atime, mtime, ctime, btime;
    bool has_btime;
    struct list dentries; /* (k) of dentry.alias */
    char *link_text;      /* (k) owned; text of a symbolic link that never changes, once known */
    /* (k) held by the VFS around changes of a directory's entries, so that they do not interleave at parks */
    struct sleeplock dir_lock;
    /* Hung on by other layers on demand (k) */
    struct flock_state *locks;
    struct watch_set *watches;
    struct dnotify *dnotify;
    struct lease *leases;
    struct fan_set *fan_set;
    struct endpoint *endpoint; /* not owned: the socket clears it when it goes */
    struct pipe *pipe;
    int32_t readers; /* open for reading alone; of regular files, for leases */
    int32_t writers; /* open for writing (> 0) or denied for execution (< 0): ETXTBSY */
    /* (k) ACLs as last read, for the kinds in acls_known (vfs/acl.c); acls_changes counts when that was given up */
    struct acl *acls[ACL_KINDS];
    uint32_t acls_known;
    uint32_t acls_changes;
    uint32_t flags;  /* (k) FS_IMMUTABLE_FL, FS_APPEND_FL, FS_NOATIME_FL, FS_NODUMP_FL: as last seen */
    bool linkable;   /* (k) an O_TMPFILE file without O_EXCL: may get a name though nlink is 0 */
    bool no_sec;     /* (k) known to have no security.capability: nothing to drop at a write */
    void *priv; /* file system's */
};

struct sb_ops {
    int (*statfs)(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st); /* NULL: zeros with magic */
    int (*sync)(struct ctx *ctx, struct superblock *sb);
    /* remount with new options; data may be "". [EINVAL when data is not empty] */
    int (*remount)(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data);
    /* Appends ",opt=val…" for /proc/mounts. May be NULL. */
    int (*show_options)(struct superblock *sb, char *dst, size_t size);
    void (*free)(struct superblock *sb); /* last reference gone */
};

/* What a file system does about POSIX ACLs, which it keeps as extended attributes. */
enum sb_acls {
    SB_ACLS_NONE,  /* it has none */
    SB_ACLS_HERE,  /* new inodes get newattr.acls, and the VFS changes the list when the mode changes */
    SB_ACLS_BELOW, /* what is below it (a host) does both by itself */
};

struct superblock {
    struct ref ref;
    const struct sb_ops *ops; /* (i) */
    const char *type;         /* (i) "tmpfs" … static string */
    uint64_t magic;           /* (i) statfs f_type */
    uint64_t dev;             /* (i) st_dev, unique a superblock */
    unsigned long flags;      /* (k) MS_RDONLY … */
    uint32_t name_max, blksize; /* (i) */
    enum sb_acls acls;          /* (i) */
    bool no_dcache_negative;  /* (i) never keep negative dentries (proc) */
    bool has_handles;         /* (i) its files may be named by handles that open */
    bool no_dcache;           /* (i) dentries are dropped when unused (proc PID trees) */
    struct sleeplock rename_lock; /* (k) a directory is moving to another parent */
    uint64_t sync_pass;       /* (k) the last sync(2) that came here */
    uint32_t mount_count;     /* (k) mounts of it; at the last one the cached dentries go */
    bool dead;                /* (k) no mount is left: dentries are not kept when unused */
    struct userns *userns;    /* (k) who mounted it, referenced; NULL: the initial one. Set before it is seen */
    struct fan_set *fan_set;  /* (k) fanotify marks of all of it */
    uint32_t fan_marks;       /* (k) fanotify marks of it, its mounts and its inodes */
    bool no_judges;           /* (i) nobody may decide about its files: opening them takes locks that others wait for */
    uint32_t fan_judges;      /* (k) of these, those of groups that may decide */
    bool nodev;               /* (k) devices of it are not to be opened, for anybody could have made them */
    void *priv;
};

/* Superblock with a fresh anonymous device number. Return: NULL on no memory. */
MUST_CHECK struct superblock *superblock_new(const char *type, uint64_t magic, const struct sb_ops *ops,
                                             void *priv);
struct superblock *superblock_ref(struct superblock *sb);
void superblock_unref(struct superblock *sb); /* NULL is fine */
/* statfs with the generic fields filled in. Return: 0 or the file system's error. */
MUST_CHECK int superblock_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st);

/* The object's memory is freed when the last reference goes, after ops->evict.
 * Zeroed object of size bytes whose first member is a struct inode, with count 1, times = now, nlink 1.
 * Return: NULL on no memory. */
MUST_CHECK struct inode *inode_alloc(struct superblock *sb, const struct inode_ops *ops, size_t size,
                                     uint32_t mode);
struct inode *inode_ref(struct inode *inode);
void inode_unref(struct inode *inode); /* NULL is fine */
uint64_t inode_next_ino(void);         /* for file systems without numbers of their own */

/* Fills st from the cached attributes after ops->refresh. */
MUST_CHECK int inode_getattr(struct ctx *ctx, struct inode *inode, struct kstat *ret_st);
/* Sets the given IATTR_ATIME|MTIME|CTIME cached times to now (cheap; no file-system call). */
void inode_touch(struct inode *inode, unsigned which);

/* The time that file systems stamp with: the host's coarse real-time clock, as host file systems use. */
struct timespec inode_now(void);
/* Applies attr to the cached attributes, stamping ctime: what a setattr op of a memory file system ends with. */
void inode_apply_attr(struct inode *inode, const struct iattr *attr);
/* Raw extended attribute without permission checks (exec, overlay). Return: size, −ENODATA, −ERANGE, −EOPNOTSUPP. */
MUST_CHECK ssize_t inode_getxattr(struct ctx *ctx, struct inode *inode, const char *name, void *dst,
                                  size_t size);
/* Text of a symbolic link, from the cache or the file system. *ret_heap is to be freed by the caller (NULL when the text
 * belongs to the inode). Return: 0, −EINVAL, −ENOMEM, the file system's errors. */
MUST_CHECK int inode_link_text(struct ctx *ctx, struct inode *inode, const char **ret_text, char **ret_heap);

/* ETXTBSY bookkeeping. get: −ETXTBSY while the other side is in force. Each successful call is undone by its put. */
MUST_CHECK int inode_get_write(struct inode *inode);
void inode_put_write(struct inode *inode);
MUST_CHECK int inode_deny_write(struct inode *inode); /* a running executable */
void inode_allow_write(struct inode *inode);

/* Who opens fifos, sockets and device nodes that file systems only store (registered by sentry.c). type is S_IFIFO,
 * S_IFCHR, S_IFBLK. fn sets file->ops and file->priv as inode_ops.open does. Without one an open gives −ENXIO. */
typedef int (*vfs_special_open_fn)(struct ctx *ctx, struct inode *inode, struct file *file);
void vfs_set_special_open(uint32_t type, vfs_special_open_fn fn);
/* For a file system's open op: calls what is registered for inode's type (sockets: −ENXIO). */
MUST_CHECK int vfs_special_open(struct ctx *ctx, struct inode *inode, struct file *file);

/* Of <linux/fs.h>, whose names of mount flags clash with the C library's. */
enum { INODE_FL_IMMUTABLE = 0x10, INODE_FL_APPEND = 0x20, INODE_FL_NODUMP = 0x40, INODE_FL_NOATIME = 0x80 };

/* Nothing about it may be changed / only what is added to it. */
static inline bool inode_immutable(const struct inode *i)
{
    return unlikely(i->flags & INODE_FL_IMMUTABLE);
}
static inline bool inode_append_only(const struct inode *i)
{
    return unlikely(i->flags & INODE_FL_APPEND);
}
static inline bool inode_protected(const struct inode *i)
{
    return unlikely(i->flags & (INODE_FL_IMMUTABLE | INODE_FL_APPEND));
}

static inline bool inode_is_dir(const struct inode *i)
{
    return S_ISDIR(i->mode);
}
