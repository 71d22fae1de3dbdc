/* SPDX-License-Identifier: Apache-2.0 */
/* Path resolution and the operations on names that system calls and the kernel use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "sentry/vfs/file.h"

enum { PATH_SIZE_MAX = 4096, NAME_LEN_MAX = 255, SYMLINK_DEPTH_MAX = 40 };

/* Where a walk starts and what it sees as "/". Borrowed references. */
struct walk_base {
    const struct path *root;
    const struct path *cwd; /* start of relative paths (cwd, or the dirfd's path) */
    uint32_t umask;
    unsigned resolve; /* RESOLVE_* of openat2 */
};

enum {
    WALK_FOLLOW = 1,    /* follow a symlink in the last component */
    WALK_DIRECTORY = 2, /* must be a directory */
    WALK_EMPTY = 4,     /* "" means cwd itself (AT_EMPTY_PATH) */
    WALK_NO_MOUNT = 8,  /* do not step onto a mount at the last component (umount with NOFOLLOW keeps it off) */
};

/* What Linux makes switchable in /proc/sys/fs, at the values that distributions set. */
enum { PROTECTED_SYMLINKS = 1, PROTECTED_HARDLINKS = 1, PROTECTED_FIFOS = 1, PROTECTED_REGULAR = 2 };

enum { MAY_EXEC = 1, MAY_WRITE = 2, MAY_READ = 4, MAY_ACCESS = 16 };

/* Resolves path. Return: 0 with a referenced, positive path; −ENOENT, −ENOTDIR, −EACCES, −ELOOP, −ENAMETOOLONG, −EXDEV. */
MUST_CHECK int walk_path(struct ctx *ctx, const struct walk_base *base, const char *path, unsigned flags,
                         struct path *ret_path);
/* Resolves all but the last component, which is copied to last (NAME_LEN_MAX+1 bytes; may be "." or ".."); trailing is set when
 * the path ends in a slash. */
MUST_CHECK int walk_parent(struct ctx *ctx, const struct walk_base *base, const char *path,
                           struct path *ret_parent, char *last, bool *ret_trailing);

/* open(2): flags are O_*, mode without umask applied (the base's umask is). */
MUST_CHECK int vfs_open(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t flags,
                        uint32_t mode, struct file **ret_file);
/* Opens an already resolved path (re-open of /proc/self/fd/N, exec). Permission is checked unless kernel is set. */
MUST_CHECK int vfs_open_path(struct ctx *ctx, const struct path *path, uint32_t flags, struct file **ret_file);
MUST_CHECK int vfs_mkdir(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode);
MUST_CHECK int vfs_mknod(struct ctx *ctx, const struct walk_base *base, const char *path, uint32_t mode,
                         uint64_t rdev);
/* As vfs_mknod for a socket that is being bound: hands back its path. */
MUST_CHECK int vfs_mknod_path(struct ctx *ctx, const struct walk_base *base, const char *path,
                              uint32_t mode, struct path *ret_path);
MUST_CHECK int vfs_symlink(struct ctx *ctx, const struct walk_base *base, const char *path,
                           const char *target);
MUST_CHECK int vfs_link(struct ctx *ctx, const struct path *from, const struct walk_base *base,
                        const char *path);
MUST_CHECK int vfs_unlink(struct ctx *ctx, const struct walk_base *base, const char *path);
MUST_CHECK int vfs_rmdir(struct ctx *ctx, const struct walk_base *base, const char *path);
MUST_CHECK int vfs_rename(struct ctx *ctx, const struct walk_base *old_base, const char *old_path,
                          const struct walk_base *new_base, const char *new_path, unsigned flags);
MUST_CHECK int vfs_setattr(struct ctx *ctx, const struct path *path, const struct iattr *attr);
MUST_CHECK int vfs_truncate(struct ctx *ctx, const struct path *path, uint64_t size);
/* Drops set-id bits and security.capability as a write or a truncation by ctx does. Cheap when there is nothing to drop. */
MUST_CHECK int vfs_drop_privs(struct ctx *ctx, struct inode *inode);
/* Extended attributes with the checks of each name space. */
MUST_CHECK ssize_t vfs_getxattr(struct ctx *ctx, const struct path *path, const char *name, void *dst,
                                size_t size);
MUST_CHECK int vfs_setxattr(struct ctx *ctx, const struct path *path, const char *name, const void *src,
                            size_t size, int flags);
MUST_CHECK ssize_t vfs_listxattr(struct ctx *ctx, const struct path *path, char *dst, size_t size);
MUST_CHECK int vfs_removexattr(struct ctx *ctx, const struct path *path, const char *name);
/* Whether ctx owns inode or has CAP_FOWNER over it. */
bool inode_owner_or_capable(struct ctx *ctx, const struct inode *inode);
/* Whether ctx's user namespace gives it cap over an inode of these owners (both must be mapped there). */
bool inode_capable(struct ctx *ctx, const struct inode *inode, int cap);
/* Generic permission check with ctx's credentials (fsuid, fsgid, capabilities). Return: 0, −EACCES, −EROFS. */
MUST_CHECK int inode_permission(struct ctx *ctx, struct inode *inode, unsigned mask);
/* The check by mode bits and capabilities alone, for a file system's own permission op. Return: 0 or −EACCES. */
MUST_CHECK int inode_permission_generic(struct ctx *ctx, struct inode *inode, unsigned mask);
/* Owner, group, mode bits and ACLs of a new entry in dir (setgid directories, umask, default ACL). May park.
 * Return: 0 or −errno. Owns: newattr_done (vfs/acl.h), also after an error. */
MUST_CHECK int vfs_new_owner(struct ctx *ctx, struct inode *dir, uint32_t mode, uint32_t umask, struct newattr *ret_attr);
