/* SPDX-License-Identifier: Apache-2.0 */
/* Inode operations of gofer file systems. */
#include "sentry/fs/gofer/gofer_fs_priv.h"
#include "sentry/fs/gofer/gofer_lane.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/xattr.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

enum { GOFER_INODE_LARGE = 16 * 1024 * 1024 };

/* ---- attributes ---- */

int gofer_inode_refresh(struct ctx *ctx, struct inode *inode)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    struct gofer_sb *gs = gofer_sb_of(inode);
    gofer_fs_catch_up(gs);
    if (likely(!gi->stale && !gi->io_dirty && !gi->mapped && gofer_fs_attr_trusted(gi)))
        return 0;
    if (unlikely(gi->posted)) {
        int err = gofer_lane_settle(gs->client);
        if (err < 0)
            return err;
        gi->posted = false;
    }
    if (!gi->owner_stale && gofer_fs_attr_trusted(gi)) {
        if (gofer_cache_fstat(gi) || (!gi->stale && !gi->io_dirty))
            return 0;
    }
    for (unsigned tries = 0; tries < 4; tries++) {
        struct wire_attr attr;
        uint64_t node;
        bool had_node = gi->node != WIRE_NODE_NONE;
        int err = gofer_fs_node(gi, &node);
        /* Removed by somebody after it was looked up: what it was then is as good an answer as any.
         */
        if (err < 0)
            return err == -ESTALE ? 0 : err;
        /* The way to the node has brought the attributes along. */
        if (!had_node && !gi->stale && !gi->io_dirty && gofer_fs_attr_trusted(gi))
            return 0;
        struct gofer_mark mark = gofer_fs_mark(gs, gi);
        err = gofer_client_getattr(gs->client, node, &attr);
        if (err < 0)
            return err;
        if ((attr.mode ^ inode->mode) & S_IFMT)
            return -ESTALE;
        gofer_fs_set_attr(gi, &attr);
        if (gofer_fs_current(gs, gi, mark))
            return 0;
        /* Something was changed meanwhile, perhaps this: what came may be older. */
        gi->stale = gi->owner_stale = true;
    }
    return 0;
}

/* By what is cached, unless somebody outside is known to have changed owner or mode. */
static int gofer_inode_permission(struct ctx *ctx, struct inode *inode, unsigned mask)
{
    gofer_fs_catch_up(gofer_sb_of(inode));
    int err = unlikely(to_gofer_inode(inode)->owner_stale) ? gofer_inode_refresh(ctx, inode) : 0;
    return err < 0 ? err : inode_permission_generic(ctx, inode, mask);
}

static uint32_t gofer_inode_set_mask(const struct iattr *a)
{
    uint32_t mask = 0;
    if (a->valid & IATTR_MODE)
        mask |= WIRE_SET_MODE;
    if (a->valid & IATTR_UID)
        mask |= WIRE_SET_UID;
    if (a->valid & IATTR_GID)
        mask |= WIRE_SET_GID;
    if (a->valid & IATTR_ATIME)
        mask |= a->valid & IATTR_ATIME_NOW ? WIRE_SET_ATIME_NOW : WIRE_SET_ATIME;
    /* A change of size sets this time by itself. */
    if ((a->valid & IATTR_MTIME) && !((a->valid & IATTR_SIZE) && (a->valid & IATTR_MTIME_NOW)))
        mask |= a->valid & IATTR_MTIME_NOW ? WIRE_SET_MTIME_NOW : WIRE_SET_MTIME;
    return mask;
}

/* An owner or mode that is what it was changes nothing but ctime, which is not worth a round trip
 * (tar sets both of each file that it has just made). */
static void gofer_inode_skip_same(struct gofer_inode *gi, const struct iattr *a,
                                  uint32_t *inout_mask)
{
    struct inode *inode = &gi->inode;
    const uint32_t owner = WIRE_SET_UID | WIRE_SET_GID;
    gofer_fs_catch_up(gofer_sb_of(inode));
    if ((*inout_mask & ~(owner | WIRE_SET_MODE)) || gi->stale || gi->owner_stale ||
        !gofer_fs_attr_trusted(gi))
        return;
    if (((*inout_mask & WIRE_SET_UID) && a->uid != inode->uid) ||
        ((*inout_mask & WIRE_SET_GID) && a->gid != inode->gid) ||
        ((*inout_mask & WIRE_SET_MODE) && (a->mode & 07777) != (inode->mode & 07777)))
        return;
    /* A change of owner drops set-id bits on the host. */
    if ((*inout_mask & owner) && (inode->mode & (S_ISUID | S_ISGID)))
        return;
    *inout_mask = 0;
    inode_touch(inode, IATTR_CTIME);
}

static int gofer_inode_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *a)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    struct gofer_sb *gs = gofer_sb_of(inode);
    struct wire_setattr req = {.mask = gofer_inode_set_mask(a)};
    struct wire_attr attr;
    if (a->valid & IATTR_SIZE) {
        int err = S_ISREG(inode->mode) ? gofer_file_truncate(gi, a->size) : -EINVAL;
        if (err < 0)
            return err;
    }
    gofer_inode_skip_same(gi, a, &req.mask);
    if (!req.mask)
        return 0;
    int err = gofer_fs_node(gi, &req.node);
    if (err < 0)
        return err;
    req.mode = a->mode & 07777;
    req.uid = a->uid;
    req.gid = a->gid;
    if (req.mask & WIRE_SET_ATIME) {
        req.atime_sec = a->atime.tv_sec;
        req.atime_nsec = (uint32_t)a->atime.tv_nsec;
    }
    if (req.mask & WIRE_SET_MTIME) {
        req.mtime_sec = a->mtime.tv_sec;
        req.mtime_nsec = (uint32_t)a->mtime.tv_nsec;
    }
    uint64_t changes = gs->changes;
    err = gofer_client_setattr(gs->client, &req, &attr);
    if (err < 0)
        return err;
    gofer_watch_drain(gs->watch, true);
    bool alone = changes == gs->changes;
    gofer_fs_set_attr(gi, &attr);
    gofer_fs_changed(gi);
    /* With other changes under way the order of the replies says nothing. */
    gi->stale = gi->owner_stale = !alone;
    return 0;
}

/* ---- names ---- */

/* Looks one name up. Return: 0 with a referenced inode, −ENOENT, or the gofer's error. */
static int gofer_inode_lookup(struct ctx *ctx, struct inode *dir, const char *name,
                              struct inode **ret_inode)
{
    struct gofer_sb *gs = gofer_sb_of(dir);
    uint32_t access = ctx->lookup_open ? ctx->lookup_open - 1 : 0;
    bool open = ctx->lookup_open && gofer_cache_has_room();
    if (access == O_WRONLY)
        access = O_RDWR;
    gofer_fs_catch_up(gs);
    if (gofer_dir_knows_all(dir))
        return -ENOENT;
    for (unsigned tries = 0;; tries++) {
        struct wire_entry entry;
        struct gofer_walk walk = {.entries = &entry, .max = 1};
        uint64_t node;
        int err = gofer_fs_node(to_gofer_inode(dir), &node);
        struct gofer_mark mark = gofer_fs_mark(gs, to_gofer_inode(dir));
        if (err >= 0)
            err = gofer_client_walk(gs->client, node, name, strlen(name),
                                    open ? gofer_fs_open_walk(gs) : 0, access, &walk);
        if (err < 0)
            return err;
        if (walk.end == WIRE_WALK_MISSING)
            err = -ENOENT;
        else if (walk.end != WIRE_WALK_COMPLETE)
            err = walk.error ? walk.error : -EIO;
        else
            err = gofer_fs_inode(gs, &entry, walk.target, walk.target ? strlen(walk.target) : 0,
                                 gofer_fs_current(gs, to_gofer_inode(dir), mark), ret_inode);
        if (err >= 0 && walk.fd >= 0)
            gofer_cache_add(to_gofer_inode(*ret_inode), TAKE_FD(walk.fd), access == O_RDWR);
        gofer_walk_done(&walk);
        if (err != -ENFILE || tries)
            return err;
        gofer_fs_shrink(gs);
    }
}

/* Return: whether name is cached as inode (NULL: as absent) below dir. */
static bool gofer_inode_is_cached(const struct inode *dir, const char *name,
                                  const struct inode *inode)
{
    if (list_empty(&dir->dentries))
        return false;
    struct dentry *parent = list_first(&dir->dentries, struct dentry, alias);
    struct dentry *d = dentry_find(parent, name, strlen(name));
    bool same = d && d->inode == inode;
    dentry_unref(d);
    return same;
}

static int gofer_inode_revalidate(struct ctx *ctx, struct inode *dir, const char *name,
                                  struct inode *inode)
{
    struct gofer_inode *gi = to_gofer_inode(dir);
    uint64_t events = gi->events;
    gofer_fs_catch_up(gofer_sb_of(dir));
    /* What has come in may have taken this very name out of the cache. */
    if (gi->events != events && !gofer_inode_is_cached(dir, name, inode))
        return 0;
    if (gofer_fs_name_trusted(gi, inode))
        return 1;
    struct inode *now = NULL;
    int err = gofer_inode_lookup(ctx, dir, name, &now);
    if (err < 0 && err != -ENOENT)
        return err;
    inode_unref(now);
    /* The pointers are compared only: the same object means the same file, or still none. */
    return now == inode;
}

/* After a change of our own: takes the events that it has caused out of the queue. */
static void gofer_inode_settle(struct inode *dir, struct gofer_expect *e, unsigned len)
{
    gofer_watch_drain(gofer_sb_of(dir)->watch, true);
    gofer_watch_done(e, len);
}

static struct gofer_make gofer_inode_make_of(const struct newattr *attr)
{
    return (struct gofer_make){
        .mode = attr->mode & 07777,
        .uid = attr->uid,
        .gid = attr->gid,
    };
}

/* Turns the reply to a making call into an inode, and the directory's attributes stale. fd_rw: −1
 * or the file opened. */
static int gofer_inode_made(struct inode *dir, int err, const struct wire_entry *entry,
                            OWNS int fd_rw, const char *target, struct inode **ret_inode)
{
    struct gofer_sb *gs = gofer_sb_of(dir);
    gofer_fs_changed(to_gofer_inode(dir));
    /* Should the number be known, then it is of a file that is gone. */
    if (err >= 0)
        gofer_fs_forget(gs, &entry->attr);
    if (err >= 0)
        err = gofer_fs_inode(gs, entry, target, target ? strlen(target) : 0, true, ret_inode);
    if (err < 0) {
        host_close(fd_rw);
        return err;
    }
    struct gofer_inode *gi = to_gofer_inode(*ret_inode);
    gi->no_capability = true;
    if (fd_rw >= 0)
        gofer_cache_add(gi, fd_rw, true);
    return 0;
}

static int gofer_inode_create(struct ctx *ctx, struct inode *dir, const char *name,
                              const struct newattr *attr, struct inode **ret_inode)
{
    struct gofer_make make = gofer_inode_make_of(attr);
    struct wire_entry entry;
    uint64_t node;
    int fd = -1;
    /* New files are often renamed, linked or given times at once, which takes a node. */
    make.want_node = true;
    int err = gofer_cache_has_room() ? gofer_fs_node(to_gofer_inode(dir), &node) : -ENFILE;
    if (err < 0)
        return err;
    struct gofer_expect e;
    gofer_watch_expect(&e, to_gofer_inode(dir), name, IN_CREATE);
    err = gofer_client_create(gofer_sb_of(dir)->client, node, name, &make, O_RDWR, &entry, &fd);
    if (err == -ENFILE) {
        gofer_fs_shrink(gofer_sb_of(dir));
        make.want_node = false;
        err = gofer_fs_node(to_gofer_inode(dir), &node);
    }
    if (err >= 0 && !make.want_node) {
        err = gofer_client_create(gofer_sb_of(dir)->client, node, name, &make, O_RDWR, &entry, &fd);
    }
    gofer_inode_settle(dir, &e, 1);
    return gofer_inode_made(dir, err, &entry, fd, NULL, ret_inode);
}

static int gofer_inode_tmpfile(struct ctx *ctx, struct inode *dir, const struct newattr *attr,
                               struct inode **ret_inode)
{
    struct gofer_make make = gofer_inode_make_of(attr);
    struct wire_entry entry;
    uint64_t node;
    int fd = -1;
    make.want_node = true;
    int err = gofer_cache_has_room() ? gofer_fs_node(to_gofer_inode(dir), &node) : -ENFILE;
    if (err < 0)
        return err;
    err = gofer_client_tmpfile(gofer_sb_of(dir)->client, node, &make, O_RDWR, &entry, &fd);
    return gofer_inode_made(dir, err, &entry, fd, NULL, ret_inode);
}

static int gofer_inode_mkdir(struct ctx *ctx, struct inode *dir, const char *name,
                             const struct newattr *attr, struct inode **ret_inode)
{
    struct gofer_make make = gofer_inode_make_of(attr);
    struct wire_entry entry;
    uint64_t node;
    int err = gofer_fs_node(to_gofer_inode(dir), &node);
    if (err < 0)
        return err;
    struct gofer_expect e;
    gofer_watch_expect(&e, to_gofer_inode(dir), name, IN_CREATE);
    err = gofer_client_mkdir(gofer_sb_of(dir)->client, node, name, &make, &entry);
    if (err == -ENFILE) {
        gofer_fs_shrink(gofer_sb_of(dir));
        err = gofer_fs_node(to_gofer_inode(dir), &node);
        if (err >= 0)
            err = gofer_client_mkdir(gofer_sb_of(dir)->client, node, name, &make, &entry);
    }
    gofer_inode_settle(dir, &e, 1);
    err = gofer_inode_made(dir, err, &entry, -1, NULL, ret_inode);
    if (err >= 0)
        to_gofer_inode(*ret_inode)->complete = true;
    return err;
}

static int gofer_inode_mknod(struct ctx *ctx, struct inode *dir, const char *name,
                             const struct newattr *attr, struct inode **ret_inode)
{
    struct gofer_make make = gofer_inode_make_of(attr);
    struct wire_entry entry;
    uint64_t node;
    make.mode |= attr->mode & S_IFMT;
    make.rdev_major = major(attr->rdev);
    make.rdev_minor = minor(attr->rdev);
    int err = gofer_fs_node(to_gofer_inode(dir), &node);
    if (err < 0)
        return err;
    struct gofer_expect e;
    gofer_watch_expect(&e, to_gofer_inode(dir), name, IN_CREATE);
    err = gofer_client_mknod(gofer_sb_of(dir)->client, node, name, &make, &entry);
    gofer_inode_settle(dir, &e, 1);
    return gofer_inode_made(dir, err, &entry, -1, NULL, ret_inode);
}

static int gofer_inode_symlink(struct ctx *ctx, struct inode *dir, const char *name,
                               const char *target, const struct newattr *attr,
                               struct inode **ret_inode)
{
    struct gofer_make make = gofer_inode_make_of(attr);
    struct wire_entry entry;
    uint64_t node;
    int err = gofer_fs_node(to_gofer_inode(dir), &node);
    if (err < 0)
        return err;
    struct gofer_expect e;
    gofer_watch_expect(&e, to_gofer_inode(dir), name, IN_CREATE);
    err = gofer_client_symlink(gofer_sb_of(dir)->client, node, name, target, &make, &entry);
    gofer_inode_settle(dir, &e, 1);
    return gofer_inode_made(dir, err, &entry, -1, target, ret_inode);
}

static int gofer_inode_link(struct ctx *ctx, struct inode *inode, struct inode *dir,
                            const char *name)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    struct gofer_sb *gs = gofer_sb_of(dir);
    struct wire_attr attr;
    uint64_t node, dir_node;
    if (inode->sb != dir->sb)
        return -EXDEV;
    int err = gofer_fs_node(gi, &node);
    if (err >= 0)
        err = gofer_fs_node(to_gofer_inode(dir), &dir_node);
    if (err < 0)
        return err;
    struct gofer_expect e;
    gofer_watch_expect(&e, to_gofer_inode(dir), name, IN_CREATE);
    err = gofer_client_link(gs->client, node, dir_node, name, &attr);
    gofer_inode_settle(dir, &e, 1);
    if (err < 0)
        return err;
    gofer_fs_changed(to_gofer_inode(dir));
    gofer_fs_set_attr(gi, &attr);
    return 0;
}

/* An inode that is in use when its name goes must have a node first: without a name there is no
 * other way to it. own_refs: references that the names and the caller hold. */
static int gofer_inode_pin(struct inode *inode, uint32_t own_refs)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    uint64_t node;
    if (gi->node != WIRE_NODE_NONE || inode->ref.count <= own_refs)
        return 0;
    int err = gofer_fs_node(gi, &node);
    /* No more nodes are to be had: a file can do with a descriptor. */
    if (err == -ENFILE && S_ISREG(inode->mode)) {
        int fd = gofer_cache_get(gi, true);
        if (fd < 0)
            fd = gofer_cache_get(gi, false);
        if (fd < 0)
            return -ENFILE;
        gi->keep_open = true;
        gofer_cache_put(gi);
        return 0;
    }
    /* Gone already (a volume): then it is the removal that says so. */
    return err == -ESTALE ? 0 : err;
}

static void gofer_inode_unnamed(struct inode *inode, bool directory)
{
    if (directory)
        inode->nlink = 0;
    else if (inode->nlink)
        inode->nlink--;
    gofer_fs_changed(to_gofer_inode(inode));
}

static bool gofer_inode_unlinked(struct gofer_late *l, int error, const void *payload, size_t size)
{
    /* Somebody else has removed it first: there is nothing left to be done. */
    if (error != -ENOENT)
        gofer_fs_late_failed(l->owner, l->dev, l->ino, error, "unlink");
    return true;
}

/* Sends the removal of a file's name without waiting for it. */
static int gofer_inode_post_unlink(struct gofer_inode *dir, uint64_t node, const char *name)
{
    struct gofer_sb *gs = gofer_sb_of(&dir->inode);
    struct wire_unlink req = {.dir = node};
    struct gofer_late *l = gofer_lane_new(WIRE_OP_UNLINK, &req, sizeof(req), name, sizeof(req) + 2 + WIRE_NAME_MAX);
    if (!l)
        return -ENOMEM;
    l->owner = gs;
    l->ended = gofer_inode_unlinked;
    l->dev = dir->dev;
    l->ino = dir->host_ino;
    gofer_watch_expect(&l->expects[l->expects_len++], dir, l->name, IN_DELETE);
    gofer_lane_post(gs->client, l);
    return 0;
}

/* Whether unlink need not wait. What frees much may take long, and would hold up what comes after it. */
static int gofer_inode_may_post_unlink(struct inode *dir, struct inode *inode)
{
    if ((inode->flags & (INODE_FL_IMMUTABLE | INODE_FL_APPEND)) || inode->size > GOFER_INODE_LARGE)
        return 0;
    return gofer_fs_may_post(to_gofer_inode(dir), WIRE_NAME_MAX);
}

static int gofer_inode_remove(struct inode *dir, const char *name, struct inode *inode,
                              bool directory)
{
    uint64_t node;
    int post = 0;
    int err = gofer_inode_pin(inode, 1);
    if (err >= 0 && !directory)
        err = post = gofer_inode_may_post_unlink(dir, inode);
    if (err >= 0)
        err = gofer_fs_node(to_gofer_inode(dir), &node);
    if (err >= 0 && post)
        err = gofer_inode_post_unlink(to_gofer_inode(dir), node, name);
    if (err < 0)
        return err;
    if (post) {
        to_gofer_inode(inode)->posted = true;
        gofer_inode_unnamed(inode, directory);
        gofer_fs_changed(to_gofer_inode(dir));
        return 0;
    }
    struct gofer_expect e;
    gofer_watch_expect(&e, to_gofer_inode(dir), name, IN_DELETE);
    err = gofer_client_unlink(gofer_sb_of(dir)->client, node, name, directory);
    gofer_inode_settle(dir, &e, 1);
    if (err < 0)
        return err;
    gofer_inode_unnamed(inode, directory);
    gofer_fs_changed(to_gofer_inode(dir));
    return 0;
}

static int gofer_inode_unlink(struct ctx *ctx, struct inode *dir, const char *name,
                              struct inode *inode)
{
    return gofer_inode_remove(dir, name, inode, false);
}

static int gofer_inode_rmdir(struct ctx *ctx, struct inode *dir, const char *name,
                             struct inode *inode)
{
    return gofer_inode_remove(dir, name, inode, true);
}

static int gofer_inode_rename(struct ctx *ctx, struct inode *old_dir, const char *old_name,
                              struct inode *inode, struct inode *new_dir, const char *new_name,
                              struct inode *target, unsigned flags)
{
    uint64_t old_node, new_node;
    int err = 0;
    if (target && !(flags & RENAME_EXCHANGE))
        err = gofer_inode_pin(target, 2);
    if (err >= 0)
        err = gofer_fs_node(to_gofer_inode(old_dir), &old_node);
    if (err >= 0)
        err = gofer_fs_node(to_gofer_inode(new_dir), &new_node);
    if (err < 0)
        return err;
    struct gofer_expect e[4];
    unsigned len = 2;
    gofer_watch_expect(&e[0], to_gofer_inode(old_dir), old_name, IN_MOVED_FROM);
    gofer_watch_expect(&e[1], to_gofer_inode(new_dir), new_name, IN_MOVED_TO);
    if (flags & RENAME_EXCHANGE) {
        gofer_watch_expect(&e[2], to_gofer_inode(new_dir), new_name, IN_MOVED_FROM);
        gofer_watch_expect(&e[3], to_gofer_inode(old_dir), old_name, IN_MOVED_TO);
        len = 4;
    }
    err = gofer_client_rename(gofer_sb_of(old_dir)->client, old_node, old_name, new_node, new_name,
                              flags);
    gofer_inode_settle(old_dir, e, len);
    if (err < 0)
        return err;
    gofer_fs_changed(to_gofer_inode(inode));
    gofer_fs_changed(to_gofer_inode(old_dir));
    gofer_fs_changed(to_gofer_inode(new_dir));
    if (target && (flags & RENAME_EXCHANGE))
        gofer_fs_changed(to_gofer_inode(target));
    else if (target)
        gofer_inode_unnamed(target, inode_is_dir(target));
    return 0;
}

static ssize_t gofer_inode_readlink(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    uint64_t node;
    int err = gofer_fs_node(to_gofer_inode(inode), &node);
    if (err < 0)
        return err;
    return gofer_client_readlink(gofer_sb_of(inode)->client, node, dst, size);
}

static int gofer_inode_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    switch (inode->mode & S_IFMT) {
    case S_IFREG:
        return gofer_file_open(ctx, inode, file);
    case S_IFDIR:
        return gofer_dir_open(ctx, inode, file);
    default:
        return vfs_special_open(ctx, inode, file);
    }
}

/* ---- extended attributes ---- */

/* Of the security class only file capabilities mean something here: labels of the host's own
 * security modules are none of the guest's business. */
static bool gofer_inode_hidden_xattr(const char *name)
{
    return strncmp(name, "security.", 9) == 0 && strcmp(name, XATTR_NAME_CAPS) != 0;
}

static ssize_t gofer_inode_getxattr(struct ctx *ctx, struct inode *inode, const char *name,
                                    void *dst, size_t size)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    bool capability = strcmp(name, XATTR_NAME_CAPS) == 0;
    uint64_t node;
    if (gofer_inode_hidden_xattr(name))
        return -ENODATA;
    /* Asked at every exec. Others who set one are noticed as with any attribute. */
    gofer_fs_catch_up(gofer_sb_of(inode));
    if (capability && gi->no_capability && gofer_fs_attr_trusted(gi))
        return -ENODATA;
    if (strlen(name) > WIRE_NAME_MAX)
        return -ERANGE;
    int err = gofer_fs_node(gi, &node);
    if (err < 0)
        return err;
    struct gofer_mark mark = gofer_fs_mark(gofer_sb_of(inode), gi);
    ssize_t n = gofer_client_getxattr(gofer_sb_of(inode)->client, node, name, dst, size);
    if (n == -ENODATA && capability && gofer_fs_current(gofer_sb_of(inode), gi, mark))
        gi->no_capability = true;
    return n;
}

static int gofer_inode_setxattr(struct ctx *ctx, struct inode *inode, const char *name,
                                const void *src, size_t size, int flags)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    uint64_t node;
    if (gofer_inode_hidden_xattr(name))
        return -EOPNOTSUPP;
    if (strlen(name) > WIRE_NAME_MAX)
        return -ERANGE;
    int err = gofer_fs_node(gi, &node);
    if (err >= 0)
        err = gofer_client_setxattr(gofer_sb_of(inode)->client, node, name, src, size, flags);
    if (err < 0)
        return err;
    if (strcmp(name, XATTR_NAME_CAPS) == 0)
        gi->no_capability = false;
    gofer_fs_changed(gi);
    return 0;
}

static ssize_t gofer_inode_listxattr(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    uint64_t node;
    int err = gofer_fs_node(to_gofer_inode(inode), &node);
    if (err < 0)
        return err;
    CLEANUP_FREE char *all = mem_zalloc(WIRE_SLOT_SIZE);
    if (!all)
        return -ENOMEM;
    ssize_t n = gofer_client_listxattr(gofer_sb_of(inode)->client, node, all, WIRE_SLOT_SIZE),
            kept = 0;
    for (ssize_t at = 0; at < n;) {
        size_t len = strnlen(all + at, (size_t)(n - at)) + 1;
        if (at + (ssize_t)len > n)
            return -EIO;
        if (!gofer_inode_hidden_xattr(all + at)) {
            if (size && (size_t)kept + len > size)
                return -ERANGE;
            if (size)
                memcpy(dst + kept, all + at, len);
            kept += (ssize_t)len;
        }
        at += (ssize_t)len;
    }
    return n < 0 ? n : kept;
}

static int gofer_inode_removexattr(struct ctx *ctx, struct inode *inode, const char *name)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    uint64_t node;
    if (gofer_inode_hidden_xattr(name))
        return -ENODATA;
    if (strlen(name) > WIRE_NAME_MAX)
        return -ERANGE;
    int err = gofer_fs_node(gi, &node);
    if (err >= 0)
        err = gofer_client_removexattr(gofer_sb_of(inode)->client, node, name);
    if (err < 0)
        return err;
    gofer_fs_changed(gi);
    return 0;
}

/* ---- inode flags ---- */

static int gofer_inode_flags(struct inode *inode, uint32_t mask, uint32_t flags, uint32_t *ret_flags)
{
    struct gofer_inode *gi = to_gofer_inode(inode);
    uint64_t node;
    uint32_t now;
    int err = gofer_fs_node(gi, &node);
    if (!err)
        err = gofer_client_flags(gofer_sb_of(inode)->client, node, mask, flags, &now);
    if (err < 0)
        return err;
    inode->flags = now & (INODE_FL_IMMUTABLE | INODE_FL_APPEND | INODE_FL_NODUMP | INODE_FL_NOATIME);
    if (mask)
        gofer_fs_changed(gi);
    *ret_flags = now;
    return 0;
}

static int gofer_inode_fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags)
{
    return gofer_inode_flags(inode, 0, 0, ret_flags);
}

/* Flags that concern only who sets them. Others (what a file system does with data) are the host's, and stay as they are. */
static int gofer_inode_fileattr_set(struct ctx *ctx, struct inode *inode, uint32_t flags)
{
    uint32_t now;
    int err = gofer_inode_flags(inode, 0, 0, &now);
    if (err < 0)
        return err;
    uint32_t change = flags ^ now;
    if (change & ~(uint32_t)WIRE_FLAGS_ALL)
        return -EOPNOTSUPP;
    return change ? gofer_inode_flags(inode, change, flags & change, &now) : 0;
}

static void gofer_inode_evict(struct inode *inode)
{
    gofer_fs_evict(to_gofer_inode(inode));
}

#define GOFER_INODE_OPS                                                                         \
    .lookup = gofer_inode_lookup, .walk_prefetch = gofer_dir_prefetch,                          \
    .create = gofer_inode_create, .mkdir = gofer_inode_mkdir, .mknod = gofer_inode_mknod,       \
    .symlink = gofer_inode_symlink, .link = gofer_inode_link, .unlink = gofer_inode_unlink,     \
    .rmdir = gofer_inode_rmdir, .rename = gofer_inode_rename, .tmpfile = gofer_inode_tmpfile,   \
    .readlink = gofer_inode_readlink, .refresh = gofer_inode_refresh,                           \
    .setattr = gofer_inode_setattr, .open = gofer_inode_open, .getxattr = gofer_inode_getxattr, \
    .setxattr = gofer_inode_setxattr, .listxattr = gofer_inode_listxattr,                       \
    .removexattr = gofer_inode_removexattr, .evict = gofer_inode_evict,                         \
    .fileattr_get = gofer_inode_fileattr_get, .fileattr_set = gofer_inode_fileattr_set

const struct inode_ops gofer_inode_exclusive_ops = {GOFER_INODE_OPS};
const struct inode_ops gofer_inode_shared_ops = {
    GOFER_INODE_OPS,
    .revalidate = gofer_inode_revalidate,
    .permission = gofer_inode_permission,
};
