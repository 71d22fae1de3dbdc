/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the overlay. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/sysmacros.h>

#include "sentry/fs/overlay/overlay.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"
#include "sentry/vfs/sleeplock.h"

enum { OVL_MAGIC = 0x794c7630, OVL_TABLE_BITS = 10 };

struct ovl_layer {
    struct mount *mount; /* referenced, private; NULL: there is no upper */
    unsigned fsid;       /* numbers the file systems, so that inode numbers can be told apart */
};

struct ovl_sb {
    struct ovl_layer *layers;  /* (i) 0 is the upper one */
    unsigned layers_len;       /* (i) */
    unsigned depth;            /* (i) 1: no layer is an overlay */
    struct dentry *work;       /* (i) referenced; where things are prepared. NULL: read-only */
    uint64_t temps;            /* (k) counts names made there */
    const struct cred *mounter; /* (i) referenced; in whose name the upper is written. NULL: the sentry's own */
    enum overlay_prefix prefix; /* (i) */
    bool volatile_;            /* (i) */
    char *options;             /* (i) */
    struct ovl_inode *table[1U << OVL_TABLE_BITS]; /* (k) files by their inode in the upper layer */
};

/* A directory or file of a lower layer. */
struct ovl_ref {
    struct dentry *dentry; /* referenced, positive */
    unsigned layer;
};

struct ovl_inode {
    struct inode inode;      /* must stay first */
    struct sleeplock lock;   /* (k) held while it is copied up; whoever takes a name from it before that holds it, too */
    struct dentry *upper;    /* (k) referenced; NULL until it is copied up, and then for good */
    struct ovl_ref *lowers;  /* (i) */
    unsigned lowers_len;     /* (i) of a file at most 1 */
    struct ovl_ref one;      /* what lowers points to when it is one */
    struct ovl_inode *hash_next; /* (k) */
    bool hashed;             /* (k) */
    bool removed;            /* (k) a directory, or a file of a lower layer, that has lost its name */
};

static inline struct ovl_inode *to_ovl(const struct inode *inode)
{
    return container_of(inode, struct ovl_inode, inode);
}
static inline struct ovl_sb *ovl_sb(const struct inode *inode)
{
    return inode->sb->priv;
}
/* The dentry that stands for oi in its uppermost layer. It keeps its inode as long as oi lives. */
static inline struct dentry *ovl_real_dentry(const struct ovl_inode *oi)
{
    return oi->upper ? oi->upper : oi->lowers[0].dentry;
}
static inline struct inode *ovl_real(const struct ovl_inode *oi)
{
    return ovl_real_dentry(oi)->inode;
}
static inline bool ovl_is_merged(const struct ovl_inode *oi)
{
    return oi->lowers_len + (oi->upper != NULL) > 1;
}
static inline bool ovl_is_whiteout(const struct inode *inode)
{
    return S_ISCHR(inode->mode) && inode->rdev == 0;
}
/* Where the upper layer is private, guests may have whiteouts of their own (for overlays that they mount there): device 0:n is 0:n+1
 * in that layer. */
static inline uint64_t ovl_rdev_below(const struct ovl_sb *s, uint32_t mode, uint64_t rdev)
{
    bool moved = s->prefix == OVERLAY_PREFIX_PRIVATE && S_ISCHR(mode) && major(rdev) == 0;
    return moved ? makedev(0, minor(rdev) + 1) : rdev;
}
static inline uint64_t ovl_rdev_shown(const struct ovl_sb *s, const struct inode *real)
{
    bool moved = s->prefix == OVERLAY_PREFIX_PRIVATE && S_ISCHR(real->mode) && major(real->rdev) == 0 && minor(real->rdev);
    return moved ? makedev(0, minor(real->rdev) - 1) : real->rdev;
}
/* Inode numbers of several file systems side by side: the file system goes to the top, where there is room. */
static inline uint64_t ovl_ino(const struct ovl_sb *s, unsigned layer, uint64_t ino)
{
    return ino >> 48 ? ino : ino | (uint64_t)s->layers[layer].fsid << 48;
}

/* ---- layers (ovl_layer.c) ---- */

/* What to make: by target a symbolic link, by link another name, else by attr. */
struct ovl_make {
    const struct newattr *attr;
    const char *target;
    struct inode *link;
};

/* Child of a layer's directory. Return: 0 with a referenced positive dentry or NULL, −errno. */
MUST_CHECK int ovl_layer_lookup(struct ctx *ctx, struct dentry *dir, const char *name, struct dentry **ret);
/* These keep the layer's own cache in step. They park. */
MUST_CHECK int ovl_layer_make(struct ctx *ctx, struct dentry *dir, const char *name, const struct ovl_make *make,
                              struct dentry **ret);
MUST_CHECK int ovl_layer_remove(struct ctx *ctx, struct dentry *d);
MUST_CHECK int ovl_layer_rename(struct ctx *ctx, struct dentry *d, struct dentry *to, const char *name, unsigned flags);
MUST_CHECK int ovl_layer_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr);
/* Makes something under a name of its own in the work directory; a whiteout there; removes it with what is in it. */
MUST_CHECK int ovl_temp_make(struct ctx *ctx, struct ovl_sb *s, const struct ovl_make *make, struct dentry **ret);
MUST_CHECK int ovl_whiteout_make(struct ctx *ctx, struct ovl_sb *s, struct dentry *dir, const char *name,
                                 struct dentry **ret);
/* Removes the whiteouts in a directory of the upper layer, which is empty otherwise. */
MUST_CHECK int ovl_clear_whiteouts(struct ctx *ctx, struct dentry *dir);
void ovl_temp_drop(struct ctx *ctx, struct dentry *d);
/* Whether the mounter may change dir, a directory of the upper layer. Return: 0 or −errno. */
MUST_CHECK int ovl_may_write(struct ctx *ctx, const struct ovl_sb *s, struct inode *dir);

/* ---- extended attributes (ovl_xattr.c) ---- */

/* What the names of the overlay's own begin with in the layers. */
const char *ovl_xattr_prefix(const struct ovl_sb *s);
/* Whether an attribute of a lower layer goes along when its file is copied up. */
bool ovl_xattr_copies(const struct ovl_sb *s, const char *name);
/* Marks of the overlay on a layer's directory. */
MUST_CHECK int ovl_is_opaque(struct ctx *ctx, const struct ovl_sb *s, struct inode *dir);
MUST_CHECK int ovl_set_opaque(struct ctx *ctx, const struct ovl_sb *s, struct inode *dir);

/* ---- inodes (ovl_inode.c, ovl_lookup.c) ---- */

/* The inode over these (consumed, also on failure): a known one or a new one. lowers is copied, its references are consumed. */
MUST_CHECK int ovl_inode_get(struct superblock *sb, OWNS struct dentry *upper, const struct ovl_ref *lowers, unsigned len,
                             struct inode **ret);
/* Takes over the real inode's attributes, as cached there. */
void ovl_sync(struct ovl_inode *oi);
/* oi has been copied up to upper (consumed). */
void ovl_set_upper(struct ovl_inode *oi, OWNS struct dentry *upper);
int ovl_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret);
void ovl_walk_prefetch(struct ctx *ctx, struct dentry *dir, const char *rest);
/* Whether a lower layer of dir shows name. Return: 1, 0, −errno. */
MUST_CHECK int ovl_lower_has(struct ctx *ctx, struct ovl_inode *dir, const char *name);

int ovl_refresh(struct ctx *ctx, struct inode *inode);
int ovl_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr);
int ovl_fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags);
int ovl_fileattr_set(struct ctx *ctx, struct inode *inode, uint32_t flags);
ssize_t ovl_readlink(struct ctx *ctx, struct inode *inode, char *dst, size_t size);
ssize_t ovl_getxattr(struct ctx *ctx, struct inode *inode, const char *name, void *dst, size_t size);
int ovl_setxattr(struct ctx *ctx, struct inode *inode, const char *name, const void *src, size_t size, int flags);
ssize_t ovl_listxattr(struct ctx *ctx, struct inode *inode, char *dst, size_t size);
int ovl_removexattr(struct ctx *ctx, struct inode *inode, const char *name);
void ovl_evict(struct inode *inode);

extern const struct inode_ops ovl_dir_iops, ovl_file_iops;

/* ---- copying up (ovl_copyup.c) ---- */

/* inode and all directories above it get into the upper layer. Parks. Return: 0, −EROFS, −EINTR, errors of the layers. */
MUST_CHECK int ovl_copy_up(struct ctx *ctx, struct inode *inode);

/* ---- open files (ovl_file.c, ovl_readdir.c) ---- */

MUST_CHECK int ovl_open_real(struct ctx *ctx, struct mount *m, struct dentry *d, uint32_t flags, struct file **ret);
int ovl_open(struct ctx *ctx, struct inode *inode, struct file *f);
int ovl_dir_open(struct ctx *ctx, struct inode *inode, struct file *f);
/* Whether the merged directory has no entries. Return: 1, 0, −errno. */
MUST_CHECK int ovl_dir_is_empty(struct ctx *ctx, struct ovl_inode *dir);
