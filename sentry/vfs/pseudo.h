/* SPDX-License-Identifier: Apache-2.0 */
/* Helper for synthetic trees (proc, sys, dev): directories with fixed and dynamic entries, generated files. */
#pragma once

#include "platform/base/buf.h"
#include "platform/base/compiler.h"
#include "sentry/vfs/file.h"

/* A generated file: show fills the whole text at each first read (offset 0 or a seek back); write takes one call's bytes
 * (bounded by PSEUDO_WRITE_MAX). */
enum { PSEUDO_WRITE_MAX = 64 * 1024 };
struct pseudo_file_ops {
    int (*show)(struct ctx *ctx, struct inode *inode, struct buf *out);
    ssize_t (*write)(struct ctx *ctx, struct inode *inode, const char *data, size_t size);
};
/* Symbolic link with generated text; follow (may be NULL) makes it a magic link. */
struct pseudo_link_ops {
    int (*read)(struct ctx *ctx, struct inode *inode, struct buf *out);
    int (*follow)(struct ctx *ctx, struct inode *inode, struct path *ret_path);
};
/* A directory whose entries are computed: lookup returns a new inode; list calls emit for each name. */
struct pseudo_dir_ops {
    int (*lookup)(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode);
    /* Calls add(arg, name, d_type, ino) for each entry but . and ..; stops when it returns false. */
    int (*list)(struct ctx *ctx, struct inode *dir,
                bool (*add)(void *arg, const char *name, unsigned d_type, uint64_t ino), void *arg);
    /* Both or none: regular files can be made and removed, as inode_ops says. */
    int (*create)(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr, struct inode **ret_inode);
    int (*unlink)(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode);
};

/* All return NULL on no memory; priv is kept in inode->priv, free_priv (may be NULL) runs at evict. */
MUST_CHECK struct inode *pseudo_file_new(struct superblock *sb, uint32_t mode, const struct pseudo_file_ops *ops,
                                         void *priv, void (*free_priv)(void *priv));
MUST_CHECK struct inode *pseudo_link_new(struct superblock *sb, const struct pseudo_link_ops *ops, void *priv,
                                         void (*free_priv)(void *priv));
MUST_CHECK struct inode *pseudo_dir_new(struct superblock *sb, uint32_t mode, const struct pseudo_dir_ops *ops,
                                        void *priv, void (*free_priv)(void *priv));
/* A directory with a fixed set of children, to which entries are added once. */
MUST_CHECK struct inode *pseudo_static_dir_new(struct superblock *sb, uint32_t mode);
MUST_CHECK int pseudo_static_dir_add(struct inode *dir, const char *name, OWNS struct inode *child);
