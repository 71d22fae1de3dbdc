/* SPDX-License-Identifier: Apache-2.0 */
/* Path resolution. */
#include "sentry/vfs/path_walk.h"

#include <errno.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/vfs/acl.h"
#include "sentry/vfs/dentry_priv.h"
#include "sentry/vfs/path_walk_priv.h"

#define WALK_SCOPED (RESOLVE_BENEATH | RESOLVE_IN_ROOT)

int walk_start(struct walk *w, struct ctx *ctx, const struct walk_base *base, const char *path)
{
    w->ctx = ctx;
    w->base = base;
    w->resolve = base->resolve;
    w->root = (struct path){0};
    w->cur = (struct path){0};
    w->links = 0;
    w->slash = false;
    w->skip_prefetch = false;
    w->next_text = path;
    if (path[0] == '/' && (w->resolve & RESOLVE_BENEATH))
        return -EXDEV;
    w->root = path_ref(w->resolve & WALK_SCOPED ? *base->cwd : *base->root);
    /* An absolute path begins at the root wherever that is mounted: RESOLVE_NO_XDEV says nothing against it. */
    w->cur = path_ref(path[0] == '/' ? w->root : *base->cwd);
    return 0;
}

void walk_end(struct walk *w)
{
    path_unref(&w->cur);
    path_unref(&w->root);
    for (unsigned i = 0; i < w->links; i++) {
        mem_free(w->link[i].heap);
        inode_unref(w->link[i].inode);
    }
    w->links = 0;
}

/* ---- steps ---- */

static int walk_may_search(struct walk *w, struct inode *inode)
{
    if (likely((inode->mode & 0111) == 0111 && !inode->ops->permission && acl_is_none(inode)))
        return 0;
    return inode_permission(w->ctx, inode, MAY_EXEC);
}

int walk_step(struct walk *w, OWNS struct dentry *d, bool onto_mounts)
{
    dentry_unref(w->cur.dentry);
    w->cur.dentry = d;
    if (likely(!d->mounted) || !onto_mounts)
        return 0;
    struct mount *before = w->cur.mount;
    mount_follow_down(&w->cur);
    return w->cur.mount != before && (w->resolve & RESOLVE_NO_XDEV) ? -EXDEV : 0;
}

static int walk_dotdot(struct walk *w)
{
    struct mount *before = w->cur.mount;
    for (;;) {
        if (path_equal(&w->cur, &w->root))
            return w->resolve & RESOLVE_BENEATH ? -EXDEV : 0;
        if (w->cur.dentry != w->cur.mount->root)
            break;
        if (!mount_follow_up(&w->cur))
            return 0;
    }
    struct dentry *up = dentry_ref(w->cur.dentry->parent);
    dentry_unref(w->cur.dentry);
    w->cur.dentry = up;
    mount_follow_down(&w->cur);
    return w->cur.mount != before && (w->resolve & RESOLVE_NO_XDEV) ? -EXDEV : 0;
}

/* The slow way to a child: rest is the text from the component on, for the file system's look-ahead. */
static int walk_lookup_slow(struct walk *w, const char *name, size_t len, uint32_t hash, const char *rest,
                            struct dentry **ret_dentry)
{
    struct dentry *dir = w->cur.dentry;
    if (len > NAME_LEN_MAX)
        return -ENAMETOOLONG;
    struct dentry *d = dentry_peek(dir, name, len, hash);
    if (w->resolve & RESOLVE_CACHED) {
        if (!d || dir->inode->ops->revalidate)
            return -EAGAIN;
    } else if (!d && rest[len] && !w->skip_prefetch && !dir->deleted && dir->inode->ops->walk_prefetch) {
        w->skip_prefetch = true;
        dir->inode->ops->walk_prefetch(w->ctx, dir, rest);
        d = dentry_peek(dir, name, len, hash);
        if (d) {
            *ret_dentry = dentry_ref(d);
            return 0;
        }
    }
    return dentry_lookup(w->ctx, dir, name, len, ret_dentry);
}

static int walk_lookup(struct walk *w, const char *name, size_t len, uint32_t hash, const char *rest,
                       struct dentry **ret_dentry)
{
    struct dentry *d = dentry_peek(w->cur.dentry, name, len, hash);
    if (unlikely(!d || w->cur.dentry->inode->ops->revalidate))
        return walk_lookup_slow(w, name, len, hash, rest, ret_dentry);
    w->skip_prefetch = false;
    *ret_dentry = dentry_ref(d);
    return 0;
}

int walk_lookup_last(struct walk *w, struct dentry **ret_dentry)
{
    return walk_lookup(w, w->last, w->last_len, w->last_hash, w->last, ret_dentry);
}

/* A link in a sticky directory that everybody may write is followed only by its owner, or when it belongs to the owner
 * of the directory (fs.protected_symlinks). */
static int walk_may_follow(struct walk *w, const struct inode *link)
{
    const struct inode *dir = w->cur.dentry->inode;
    if ((dir->mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH))
        return 0;
    if (!PROTECTED_SYMLINKS || w->ctx->cred->fsuid == link->uid || dir->uid == link->uid)
        return 0;
    return -EACCES;
}

static int walk_follow_magic(struct walk *w, struct inode *inode)
{
    if (w->resolve & RESOLVE_NO_MAGICLINKS)
        return -ELOOP;
    struct path to = {0};
    int ret = inode->ops->follow(w->ctx, inode, &to);
    if (ret < 0)
        return ret;
    ret = 0;
    if (w->resolve & WALK_SCOPED)
        ret = -EXDEV;
    else if ((w->resolve & RESOLVE_NO_XDEV) && to.mount != w->cur.mount)
        ret = -EXDEV;
    path_unref(&w->cur);
    w->cur = to;
    return ret;
}

int walk_follow(struct walk *w, struct dentry *d)
{
    struct inode *inode = d->inode;
    if (w->links >= SYMLINK_DEPTH_MAX || (w->resolve & RESOLVE_NO_SYMLINKS) ||
        (w->cur.mount && (w->cur.mount->flags & MS_NOSYMFOLLOW)))
        return -ELOOP;
    struct walk_link *link = &w->link[w->links];
    *link = (struct walk_link){.inode = inode_ref(inode)};
    w->links++;
    if (inode->ops->follow) {
        int ret = walk_follow_magic(w, inode);
        w->skip_prefetch = false;
        return ret;
    }
    int ret = walk_may_follow(w, inode);
    if (ret < 0)
        return ret;
    const char *text;
    if (likely(inode->link_text)) {
        text = inode->link_text;
    } else {
        if (w->resolve & RESOLVE_CACHED)
            return -EAGAIN;
        ret = inode_link_text(w->ctx, inode, &text, &link->heap);
        if (ret < 0)
            return ret;
    }
    if (!*text)
        return -ENOENT;
    if (*text == '/') {
        if (w->resolve & RESOLVE_BENEATH)
            return -EXDEV;
        if ((w->resolve & RESOLVE_NO_XDEV) && w->root.mount != w->cur.mount)
            return -EXDEV;
        struct path root = path_ref(w->root);
        path_unref(&w->cur);
        w->cur = root;
    }
    w->next_text = text;
    w->skip_prefetch = false;
    return 1;
}

/* ---- the loop ---- */

/* Finds the end of the component at p and its hash. Return: its length. */
static inline size_t walk_scan(const char *p, uint32_t *ret_hash)
{
    uint64_t h = DENTRY_HASH_SEED;
    size_t len = 0;
    for (unsigned char c; (c = (unsigned char)p[len]) && c != '/'; len++)
        h = dentry_hash_step(h, c);
    *ret_hash = dentry_hash_end(h);
    return len;
}

/* Goes through one component that is not the last. *inout_p is set to the text to go on with. */
static int walk_component(struct walk *w, const char *name, size_t len, uint32_t hash,
                          const char **inout_p, unsigned *inout_depth)
{
    struct dentry *d;
    int ret = walk_lookup(w, name, len, hash, name, &d);
    if (unlikely(ret < 0))
        return ret;
    struct inode *inode = d->inode;
    if (unlikely(!inode)) {
        dentry_unref(d);
        return -ENOENT;
    }
    if (likely(inode_is_dir(inode)))
        return walk_step(w, d, true);
    if (!S_ISLNK(inode->mode) || d->mounted) {
        ret = walk_step(w, d, true);
        return ret < 0 || inode_is_dir(w->cur.dentry->inode) ? ret : -ENOTDIR;
    }
    ret = walk_follow(w, d);
    dentry_unref(d);
    if (ret == 1) {
        w->link[w->links - 1].rest = *inout_p;
        *inout_p = w->next_text;
        (*inout_depth)++;
    }
    return ret < 0 ? ret : 0;
}

int walk_parent_next(struct walk *w)
{
    const char *p = w->next_text;
    /* Indices of links whose rest is still to come; links met at the end of a text have nothing to come. */
    uint8_t pending[SYMLINK_DEPTH_MAX];
    unsigned depth = 0;
    w->last_type = WALK_LAST_ROOT;
    w->last = p;
    w->last_len = 0;
    for (;;) {
        while (*p == '/')
            p++;
        while (!*p && depth) {
            p = w->link[pending[--depth]].rest;
            w->skip_prefetch = false;
            while (*p == '/')
                p++;
        }
        if (!*p)
            return 0;
        struct inode *dir = w->cur.dentry->inode;
        if (unlikely(!inode_is_dir(dir)))
            return -ENOTDIR;
        int ret = walk_may_search(w, dir);
        if (unlikely(ret < 0))
            return ret;
        uint32_t hash;
        const char *name = p;
        size_t len = walk_scan(p, &hash);
        p += len;
        bool slash = *p == '/';
        while (*p == '/')
            p++;
        unsigned outer = depth;
        while (!*p && outer && !*w->link[pending[outer - 1]].rest)
            outer--;
        bool dot = name[0] == '.' && len == 1, dotdot = name[0] == '.' && len == 2 && name[1] == '.';
        if (!*p && !outer) {
            w->last_type = dot ? WALK_LAST_DOT : dotdot ? WALK_LAST_DOTDOT : WALK_LAST_NORM;
            w->last = name;
            w->last_len = len;
            w->last_hash = hash;
            w->slash |= slash;
            return 0;
        }
        if (dot)
            continue;
        unsigned new_depth = depth;
        ret = dotdot ? walk_dotdot(w) : walk_component(w, name, len, hash, &p, &new_depth);
        if (unlikely(ret < 0))
            return ret;
        if (new_depth != depth) {
            pending[depth] = (uint8_t)(w->links - 1);
            depth = new_depth;
        }
    }
}

int walk_onto_special(struct walk *w)
{
    if (w->last_type == WALK_LAST_DOTDOT)
        return walk_dotdot(w);
    return 0;
}

/* What the last component turned out to be must suit the flags. */
static int walk_check_last(struct walk *w, unsigned flags)
{
    return ((flags & WALK_DIRECTORY) || w->slash) && !inode_is_dir(w->cur.dentry->inode) ? -ENOTDIR : 0;
}

int walk_all(struct walk *w, unsigned flags)
{
    for (;;) {
        int ret = walk_parent_next(w);
        if (ret < 0)
            return ret;
        if (w->last_type != WALK_LAST_NORM) {
            ret = walk_onto_special(w);
            return ret < 0 ? ret : walk_check_last(w, flags);
        }
        struct dentry *d;
        ret = walk_lookup_last(w, &d);
        if (ret < 0)
            return ret;
        if (!d->inode) {
            dentry_unref(d);
            return -ENOENT;
        }
        if (S_ISLNK(d->inode->mode) && !d->mounted && ((flags & WALK_FOLLOW) || w->slash)) {
            ret = walk_follow(w, d);
            dentry_unref(d);
            if (ret == 1)
                continue;
        } else {
            ret = walk_step(w, d, !(flags & WALK_NO_MOUNT));
        }
        return ret < 0 ? ret : walk_check_last(w, flags);
    }
}

int walk_path(struct ctx *ctx, const struct walk_base *base, const char *path, unsigned flags,
              struct path *ret_path)
{
    if (unlikely(!*path)) {
        if (!(flags & WALK_EMPTY))
            return -ENOENT;
        if ((flags & WALK_DIRECTORY) && !inode_is_dir(base->cwd->dentry->inode))
            return -ENOTDIR;
        *ret_path = path_ref(*base->cwd);
        return 0;
    }
    struct walk w;
    int ret = walk_start(&w, ctx, base, path);
    if (ret == 0)
        ret = walk_all(&w, flags);
    if (ret == 0)
        *ret_path = walk_take(&w);
    walk_end(&w);
    return ret;
}

int walk_parent(struct ctx *ctx, const struct walk_base *base, const char *path, struct path *ret_parent,
                char *last, bool *ret_trailing)
{
    if (!*path)
        return -ENOENT;
    struct walk w;
    int ret = walk_start(&w, ctx, base, path);
    if (ret == 0)
        ret = walk_parent_next(&w);
    if (ret == 0 && w.last_len > NAME_LEN_MAX)
        ret = -ENAMETOOLONG;
    if (ret == 0) {
        if (w.last_type == WALK_LAST_ROOT) {
            strcpy(last, ".");
        } else {
            memcpy(last, w.last, w.last_len);
            last[w.last_len] = '\0';
        }
        *ret_trailing = w.slash;
        *ret_parent = walk_take(&w);
    }
    walk_end(&w);
    return ret;
}
