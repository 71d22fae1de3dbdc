/* SPDX-License-Identifier: Apache-2.0 */
/* Inside tmpfs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

enum {
    TMPFS_SMALL_PAGES = 16,                          /* larger files are host memory files */
    TMPFS_SMALL_SIZE = TMPFS_SMALL_PAGES * 4096,
    TMPFS_DIRENT_SIZE = 20,                          /* what an entry adds to a directory's size */
    TMPFS_XATTR_BYTES = 256 * 1024,                  /* names and values of one inode */
};

struct tmpfs_sb {
    uint64_t max_pages, used_pages;   /* (k) max 0: no limit */
    uint64_t max_inodes, used_inodes; /* (k) max 0: no limit */
    uint64_t last_ino;                /* (k) */
    uint32_t mode, uid, gid;          /* (i) of the root, for show_options */
};

struct tmpfs_dirent {
    struct inode *inode; /* referenced */
    struct tmpfs_dirent *hash_next;
    uint32_t hash, slot;
    uint8_t name_len;
    char name[];
};

/* Entries keep the slot they got until they are removed: a slot is a readdir position. */
union tmpfs_slot {
    struct tmpfs_dirent *entry;
    uintptr_t next_free; /* index·2 + 1 of the next free slot; 1 + 2·UINT32_MAX: none */
};

struct tmpfs_dir {
    union tmpfs_slot *slots;
    struct tmpfs_dirent **buckets;
    uint32_t slots_len, buckets_len, count;
    uint32_t free_slot; /* UINT32_MAX: none */
};

struct tmpfs_reg {
    char *data;           /* while small; capacity bytes, zero where nothing was written */
    uint32_t capacity;
    uint32_t page_bits;   /* while small: pages that are there, written or preallocated */
    uint32_t data_bits;   /* while small: those of them that were written */
    int fd, ro_fd;        /* host memory file, −1 while small; read-only twin, −1 until mapped */
    bool mapped;          /* guests may touch pages without our knowing */
    uint64_t host_mtime_ns; /* while mapped: the host file's, as last looked at */
    uint32_t seals;
    uint64_t dense_pages; /* host file: the first so many pages are all there */
    uint64_t charged;     /* pages counted against the instance */
};

struct tmpfs_xattr {
    struct tmpfs_xattr *next;
    char *name;
    void *value;
    uint32_t size;
};

struct tmpfs_inode {
    struct inode inode; /* must stay first */
    union {
        struct tmpfs_dir dir;
        struct tmpfs_reg reg;
    };
    struct tmpfs_xattr *xattrs;
    uint32_t xattr_bytes;
    struct tmpfs_inode *doomed_next; /* a directory that waits to be freed */
};

static inline struct tmpfs_inode *to_tmpfs(const struct inode *inode)
{
    return container_of(inode, struct tmpfs_inode, inode);
}
static inline struct tmpfs_sb *tmpfs_sb(const struct inode *inode)
{
    return inode->sb->priv;
}

extern const struct inode_ops tmpfs_dir_iops, tmpfs_reg_iops, tmpfs_symlink_iops, tmpfs_special_iops;

/* A new inode of attr's type. Return: 0, −ENOSPC (nr_inodes), −ENOMEM. */
MUST_CHECK int tmpfs_inode_new(struct superblock *sb, const struct newattr *attr, struct inode **ret_inode);
void tmpfs_evict(struct inode *inode);
void tmpfs_dir_free(struct tmpfs_inode *ti);
void tmpfs_reg_free(struct tmpfs_inode *ti);
/* Pages left in the instance. */
uint64_t tmpfs_room(const struct tmpfs_sb *s);

int tmpfs_fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags);
int tmpfs_fileattr_set(struct ctx *ctx, struct inode *inode, uint32_t flags);
/* Keeps the ACLs that the new inode has inherited. Return: 0, −ENOMEM, −ENOSPC. */
MUST_CHECK int tmpfs_xattr_inherit(struct inode *inode, const struct newattr *attr);
ssize_t tmpfs_getxattr(struct ctx *ctx, struct inode *inode, const char *name, void *dst, size_t size);
int tmpfs_setxattr(struct ctx *ctx, struct inode *inode, const char *name, const void *src, size_t size,
                   int flags);
ssize_t tmpfs_listxattr(struct ctx *ctx, struct inode *inode, char *dst, size_t size);
int tmpfs_removexattr(struct ctx *ctx, struct inode *inode, const char *name);
void tmpfs_xattr_free(struct tmpfs_inode *ti);
