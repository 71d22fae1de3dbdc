/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the VFS: a walk in progress, for the operations that treat its last component in their own way. */
#pragma once

#include "sentry/vfs/path_walk.h"

enum walk_last {
    WALK_LAST_NORM,
    WALK_LAST_DOT,
    WALK_LAST_DOTDOT,
    WALK_LAST_ROOT, /* the path was only slashes */
};

struct walk_link {
    const char *rest;    /* where the walk goes on after the link's text */
    struct inode *inode; /* keeps the text alive, referenced */
    char *heap;          /* text of a link that is not cached */
};

struct walk {
    struct ctx *ctx;
    const struct walk_base *base;
    struct path root;     /* referenced: "/" and the end of ".." */
    struct path cur;      /* referenced: the directory that last is in */
    unsigned resolve;
    bool slash;           /* a trailing slash: the last component must be a directory */
    bool skip_prefetch;   /* the file system had its chance for this stretch */
    enum walk_last last_type;
    const char *last;     /* last component, last_len bytes, not terminated */
    size_t last_len;
    uint32_t last_hash;
    const char *next_text; /* what walk_parent_next resolves next */
    unsigned links;
    struct walk_link link[SYMLINK_DEPTH_MAX];
};

/* Starts at path. Follow with walk_parent_next; walk_end in any case. */
MUST_CHECK int walk_start(struct walk *w, struct ctx *ctx, const struct walk_base *base, const char *path);
void walk_end(struct walk *w);
/* Resolves all of the current text but its last component. */
MUST_CHECK int walk_parent_next(struct walk *w);
/* Child for a last component of type NORM; referenced, may be negative. */
MUST_CHECK int walk_lookup_last(struct walk *w, struct dentry **ret_dentry);
/* Moves the walk onto the last component when it is not NORM, following mounts. */
MUST_CHECK int walk_onto_special(struct walk *w);
/* Follows the symbolic link d (in w->cur). Return: 1 = walk_parent_next goes on with its text, 0 = w->cur is where a
 * magic link leads, −errno. */
MUST_CHECK int walk_follow(struct walk *w, struct dentry *d);
/* w->cur becomes d and whatever is mounted on it. Consumes the reference of d. */
MUST_CHECK int walk_step(struct walk *w, OWNS struct dentry *d, bool onto_mounts);
/* The whole walk, for callers that take what it finds. */
MUST_CHECK int walk_all(struct walk *w, unsigned flags);
/* Hands w->cur over. */
static inline struct path walk_take(struct walk *w)
{
    struct path p = w->cur;
    w->cur = (struct path){0};
    return p;
}
