/* SPDX-License-Identifier: Apache-2.0 */
/* Dentries: the cache of names, positive and negative. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/list.h"
#include "platform/base/ref.h"
#include "sentry/vfs/inode.h"

struct dentry {
    struct ref ref;
    struct dentry *parent;  /* (k) referenced; itself (unreferenced) for a root or a detached one */
    struct inode *inode;    /* (k) referenced; NULL: negative */
    struct superblock *sb;  /* (i) referenced */
    struct list children;   /* (k) of sibling */
    struct list sibling;    /* (k) */
    struct dentry *hash_next, **hash_pprev; /* (k) (parent, name) table; pprev NULL when unhashed */
    struct list alias;      /* (k) in inode->dentries */
    struct list lru;        /* (k) unused dentries, oldest first */
    uint32_t hash;
    uint32_t mounted;       /* (k) mounts on top of this dentry, in any namespace */
    uint32_t dir_seq;       /* (k) counts changes of this directory's entries: a lookup that parked checks it */
    uint16_t name_len;
    char *name;             /* (k) changes on rename */
    bool deleted;           /* (k) was unlinked: d_path shows " (deleted)" */
    bool detached;          /* (i) in no tree: pipe:[1] */
    uint32_t child_evictions; /* (k) counts names that may exist and left the cache: a file system may know all names */
    bool handled;           /* (k) kept by handle.c, which holds a reference */
    bool lru_referenced;    /* (k) used since it went onto the LRU list */
    char inline_name[24];   /* (k) name points here when it fits */
};

/* Root dentry of a file system. Owns: consumes inode. Return: NULL on no memory. */
MUST_CHECK struct dentry *dentry_new_root(OWNS struct inode *inode);
/* A dentry that is in no tree (pipe:[1], memfd:x): shown by its name. Consumes inode. */
MUST_CHECK struct dentry *dentry_new_detached(OWNS struct inode *inode, const char *name);
struct dentry *dentry_ref(struct dentry *d);
void dentry_unref(struct dentry *d); /* NULL is fine; unused dentries stay cached (bounded) */
/* Finds or looks up name below parent; asks the file system when not cached. ret is referenced and may be
 * negative (inode NULL). May park. Return: 0, −ENOTDIR, −ENAMETOOLONG, the file system's errors. */
MUST_CHECK int dentry_lookup(struct ctx *ctx, struct dentry *parent, const char *name, size_t len,
                             struct dentry **ret_dentry);
/* Cached only. Return: referenced dentry or NULL. */
MUST_CHECK struct dentry *dentry_find(struct dentry *parent, const char *name, size_t len);
/* Puts a known child into the cache (a file system that learnt it by readdir or walk_prefetch). Takes its own reference of
 * inode; NULL primes a negative entry. An entry that is cached already wins. */
void dentry_prime(struct dentry *parent, const char *name, size_t len, struct inode *inode);
/* After a successful create / unlink / rename in the file system. */
void dentry_instantiate(struct dentry *d, OWNS struct inode *inode);
void dentry_delete(struct dentry *d);
void dentry_move(struct dentry *d, struct dentry *new_parent, const char *new_name);
void dentry_exchange(struct dentry *a, struct dentry *b);
/* Unhashes d and everything below it (a pid's directory when it exits, a volume's stale subtree). */
void dentry_invalidate(struct dentry *d);
bool dentry_is_ancestor(const struct dentry *ancestor, const struct dentry *d); /* or equal */
/* Drops every unused dentry of sb (last unmount, a guest's drop_caches). */
void dentry_shrink_sb(struct superblock *sb);
/* Counts for tests and /proc/sys/fs/dentry-state. */
uint32_t dentry_count(void);
uint32_t dentry_unused_count(void);
/* Frees unused dentries until at most keep remain (memory pressure, unmount). */
void dentry_shrink(uint32_t keep);
