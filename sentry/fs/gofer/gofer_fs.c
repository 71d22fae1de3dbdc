/* SPDX-License-Identifier: Apache-2.0 */
/* Superblocks of gofer file systems, the table of their inodes, and how an inode is found again. */
#include "sentry/fs/gofer/gofer_fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "platform/base/log.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/gofer/gofer_client_priv.h"
#include "sentry/fs/gofer/gofer_fs_priv.h"
#include "sentry/fs/gofer/gofer_lane.h"
#include "sentry/vfs/acl.h"

enum { GOFER_TABLE_MIN = 256, GOFER_FIND_TRIES = 8 };

/* ---- the table of inodes ---- */

static struct gofer_inode **gofer_fs_bucket(struct gofer_sb *gs, uint32_t dev, uint64_t ino)
{
    uint64_t h = (ino + ((uint64_t)dev << 40)) * 0x9e3779b97f4a7c15ULL;
    return &gs->table[(h >> 32) & (gs->table_len - 1)];
}

static struct gofer_inode *gofer_fs_find(struct gofer_sb *gs, uint32_t dev, uint64_t ino)
{
    struct gofer_inode *gi = *gofer_fs_bucket(gs, dev, ino);
    while (gi && (gi->host_ino != ino || gi->dev != dev))
        gi = gi->next;
    return gi;
}

static void gofer_fs_unhash(struct gofer_sb *gs, struct gofer_inode *gi)
{
    if (!gi->hashed)
        return;
    struct gofer_inode **at = gofer_fs_bucket(gs, gi->dev, gi->host_ino);
    while (*at != gi)
        at = &(*at)->next;
    *at = gi->next;
    gi->hashed = false;
    gs->inodes--;
}

/* Doubles the table. Without memory chains just get longer. */
static void gofer_fs_grow(struct gofer_sb *gs)
{
    struct gofer_inode **old = gs->table;
    uint32_t old_len = gs->table_len;
    struct gofer_inode **table = NEW_ARRAY(struct gofer_inode *, (size_t)old_len * 2);
    if (!table)
        return;
    gs->table = table;
    gs->table_len = old_len * 2;
    for (uint32_t i = 0; i < old_len; i++) {
        while (old[i]) {
            struct gofer_inode *gi = old[i];
            struct gofer_inode **to = gofer_fs_bucket(gs, gi->dev, gi->host_ino);
            old[i] = gi->next;
            gi->next = *to;
            *to = gi;
        }
    }
    mem_free(old);
}

static void gofer_fs_hash(struct gofer_sb *gs, struct gofer_inode *gi)
{
    if (gs->inodes >= gs->table_len)
        gofer_fs_grow(gs);
    struct gofer_inode **at = gofer_fs_bucket(gs, gi->dev, gi->host_ino);
    gi->next = *at;
    *at = gi;
    gi->hashed = true;
    gs->inodes++;
}

/* ---- nodes ---- */

static void gofer_fs_drop_node(struct gofer_sb *gs, struct gofer_inode *gi)
{
    if (gi->node == WIRE_NODE_NONE)
        return;
    gofer_client_release(gs->client, gi->node);
    gi->node = WIRE_NODE_NONE;
    if (!list_empty(&gi->node_link)) {
        list_del(&gi->node_link);
        gs->nodes_len--;
    }
}

/* Whether the file can be found by a name again. */
static bool gofer_fs_has_name(const struct gofer_inode *gi)
{
    const struct dentry *d;
    list_for_each_entry (d, &gi->inode.dentries, alias) {
        if (d->hash_pprev)
            return true;
    }
    return false;
}

/* Gives back the oldest nodes above the bound: they are had again when needed. */
static void gofer_fs_trim_nodes(struct gofer_sb *gs, uint32_t keep)
{
    for (uint32_t left = gs->nodes_len; left && gs->nodes_len > keep; left--) {
        struct gofer_inode *gi = list_first(&gs->nodes, struct gofer_inode, node_link);
        if (gi->inode.nlink && gofer_fs_has_name(gi)) {
            gofer_fs_drop_node(gs, gi);
        } else {
            list_del(&gi->node_link);
            list_add_tail(&gs->nodes, &gi->node_link);
        }
    }
}

static void gofer_fs_take_node(struct gofer_sb *gs, struct gofer_inode *gi, uint64_t node)
{
    if (node == WIRE_NODE_NONE)
        return;
    if (gi->node != WIRE_NODE_NONE) {
        gofer_client_release(gs->client, node);
        return;
    }
    gi->node = node;
    if (node == gs->root_node)
        return;
    list_add_tail(&gs->nodes, &gi->node_link);
    if (++gs->nodes_len > GOFER_NODES_MAX)
        gofer_fs_trim_nodes(gs, GOFER_NODES_MAX - GOFER_NODES_MAX / 8);
}

void gofer_fs_shrink(struct gofer_sb *gs)
{
    gofer_fs_trim_nodes(gs, gs->nodes_len / 2);
    gofer_client_flush(gs->client);
}

/* ---- inodes ---- */

void gofer_fs_new_ctime(struct gofer_inode *gi)
{
    if (gofer_sb_of(&gi->inode)->share == GOFER_SHARED)
        acl_forget(&gi->inode);
}

void gofer_fs_set_attr(struct gofer_inode *gi, const struct wire_attr *attr)
{
    struct inode *inode = &gi->inode;
    if (inode->ctime.tv_sec != attr->ctime_sec || inode->ctime.tv_nsec != attr->ctime_nsec)
        gofer_fs_new_ctime(gi);
    inode->mode = attr->mode;
    inode->uid = attr->uid;
    inode->gid = attr->gid;
    inode->nlink = attr->nlink;
    inode->size = attr->size;
    inode->blocks = attr->blocks;
    inode->blksize = attr->blksize;
    inode->rdev = makedev(attr->rdev_major, attr->rdev_minor);
    inode->atime = (struct timespec){attr->atime_sec, attr->atime_nsec};
    inode->mtime = (struct timespec){attr->mtime_sec, attr->mtime_nsec};
    inode->ctime = (struct timespec){attr->ctime_sec, attr->ctime_nsec};
    inode->btime = (struct timespec){attr->btime_sec, attr->btime_nsec};
    inode->has_btime = attr->flags & WIRE_ATTR_BTIME;
    inode->flags = (inode->flags & ~(uint32_t)(INODE_FL_IMMUTABLE | INODE_FL_APPEND)) |
                   (attr->flags & WIRE_ATTR_IMMUTABLE ? INODE_FL_IMMUTABLE : 0) |
                   (attr->flags & WIRE_ATTR_APPEND ? INODE_FL_APPEND : 0);
    gi->stale = gi->owner_stale = gi->io_dirty = false;
    gi->checked_ns = host_monotonic_ns();
    gofer_quota_note(gi);
    /* Writes made here while the reply was under way are not in it. */
    if (gi->fd_rw >= 0)
        gofer_cache_fstat(gi);
}

void gofer_fs_changed(struct gofer_inode *gi)
{
    gi->stale = true;
    gofer_sb_of(&gi->inode)->changes++;
}

struct gofer_mark gofer_fs_mark(struct gofer_sb *gs, const struct gofer_inode *dir)
{
    return (struct gofer_mark){
        .changes = gs->changes,
        .events = dir ? dir->events : gofer_watch_events(gs->watch),
    };
}

bool gofer_fs_current(struct gofer_sb *gs, const struct gofer_inode *dir, struct gofer_mark mark)
{
    return gs->changes == mark.changes &&
           (dir ? dir->events : gofer_watch_events(gs->watch)) == mark.events;
}

void gofer_fs_catch_up(struct gofer_sb *gs)
{
    if (gs->share == GOFER_SHARED)
        gofer_lane_settle_others(gs->client);
    if (gs->watch)
        gofer_watch_drain(gs->watch, false);
}

static bool gofer_fs_recent(const struct gofer_inode *gi)
{
    return host_monotonic_ns() - gi->checked_ns < GOFER_SHARED_TRUST_NS;
}

/* Whether the host tells of every change of gi's attributes: a directory's own watch does, and for
 * other files those of the directories that hold their names, if all names are known. */
static bool gofer_fs_covered(const struct gofer_inode *gi)
{
    if (gi->wd)
        return true;
    if (inode_is_dir(&gi->inode))
        return false;
    const struct dentry *d;
    uint64_t watched = 0;
    list_for_each_entry (d, &gi->inode.dentries, alias) {
        if (d->hash_pprev && d->parent->inode && to_gofer_inode(d->parent->inode)->wd)
            watched++;
        if (watched >= gi->inode.nlink)
            return true;
    }
    return false;
}

bool gofer_fs_attr_trusted(const struct gofer_inode *gi)
{
    return gofer_sb_of(&gi->inode)->share == GOFER_EXCLUSIVE || gofer_fs_covered(gi) ||
           gofer_fs_recent(gi);
}

bool gofer_fs_name_trusted(const struct gofer_inode *dir, const struct inode *inode)
{
    if (gofer_sb_of(&dir->inode)->share == GOFER_EXCLUSIVE || dir->wd)
        return true;
    return inode && gofer_fs_recent(container_of(inode, struct gofer_inode, inode));
}

/* Whether attr can be of the inode gi, which had the same number: a number is used again after its
 * file went. */
static bool gofer_fs_same(const struct gofer_inode *gi, const struct wire_attr *attr)
{
    const struct inode *inode = &gi->inode;
    if ((inode->mode ^ attr->mode) & S_IFMT)
        return false;
    return !inode->has_btime || !(attr->flags & WIRE_ATTR_BTIME) ||
           (inode->btime.tv_sec == attr->btime_sec && inode->btime.tv_nsec == attr->btime_nsec);
}

static struct gofer_inode *gofer_fs_new_inode(struct gofer_sb *gs, const struct wire_attr *attr)
{
    const struct inode_ops *ops =
        gs->quota                      ? &gs->quota->ops
        : gs->share == GOFER_EXCLUSIVE ? &gofer_inode_exclusive_ops
                                       : &gofer_inode_shared_ops;
    struct inode *inode = inode_alloc(gs->sb, ops, sizeof(struct gofer_inode), attr->mode);
    if (!inode)
        return NULL;
    struct gofer_inode *gi = to_gofer_inode(inode);
    gi->dev = attr->dev;
    gi->host_ino = attr->ino;
    gi->fd_ro = gi->fd_rw = -1;
    list_init(&gi->node_link);
    list_init(&gi->cache_link);
    /* Files of another file system mounted below the tree's root have numbers of their own. */
    inode->ino = attr->dev == gs->root_dev ? attr->ino : attr->ino ^ ((uint64_t)attr->dev << 48);
    return gi;
}

int gofer_fs_inode(struct gofer_sb *gs, const struct wire_entry *entry, const char *target,
                   size_t target_size, bool current, struct inode **ret_inode)
{
    const struct wire_attr *attr = &entry->attr;
    struct gofer_inode *gi = gofer_fs_find(gs, attr->dev, attr->ino);
    if (gi && !gofer_fs_same(gi, attr)) {
        gofer_fs_unhash(gs, gi);
        gi = NULL;
    }
    if (gi) {
        inode_ref(&gi->inode);
        /* Of an exclusive tree the cached attributes are the newer ones, or known to be stale. */
        if (gs->share == GOFER_SHARED) {
            if (current)
                gofer_fs_set_attr(gi, attr);
            else
                gi->stale = gi->owner_stale = true;
        }
    } else {
        gi = gofer_fs_new_inode(gs, attr);
        if (!gi) {
            gofer_client_release(gs->client, entry->node);
            return -ENOMEM;
        }
        gofer_fs_set_attr(gi, attr);
        gi->stale = gi->owner_stale = gs->share == GOFER_SHARED && !current;
        gofer_fs_hash(gs, gi);
    }
    gofer_fs_take_node(gs, gi, entry->node);
    if (gs->watch)
        gofer_watch_set(gi, attr->watch);
    if (target && !gi->inode.link_text)
        gi->inode.link_text = mem_strndup(target, target_size);
    *ret_inode = &gi->inode;
    return 0;
}

struct gofer_inode *gofer_fs_adopt(struct gofer_sb *gs, const struct wire_entry *entry)
{
    struct gofer_inode *gi = gofer_fs_find(gs, entry->attr.dev, entry->attr.ino);
    if (!gi || !gofer_fs_same(gi, &entry->attr)) {
        gofer_client_release(gs->client, entry->node);
        return NULL;
    }
    gofer_fs_take_node(gs, gi, entry->node);
    return gi;
}

void gofer_fs_forget(struct gofer_sb *gs, const struct wire_attr *attr)
{
    struct gofer_inode *gi = gofer_fs_find(gs, attr->dev, attr->ino);
    if (gi)
        gofer_fs_unhash(gs, gi);
}

/* ---- finding an inode again ---- */

/* A path to gi from the nearest directory whose node is known, in path (GOFER_PATH_MAX bytes,
 * filled from its end). Return: its start, or NULL when there is none. */
static const char *gofer_fs_path(struct gofer_inode *gi, char *path, uint64_t *ret_node,
                                 unsigned *ret_components)
{
    struct gofer_inode *at = gi;
    char *p = path + GOFER_PATH_MAX - 1;
    *p = '\0';
    for (unsigned n = 1; n <= WIRE_WALK_MAX; n++) {
        struct dentry *d, *named = NULL;
        list_for_each_entry (d, &at->inode.dentries, alias) {
            if (d->hash_pprev && d->parent != d && d->parent->inode) {
                named = d;
                break;
            }
        }
        if (!named || (size_t)(p - path) < named->name_len + 1U)
            return NULL;
        if (n > 1)
            *--p = '/';
        p -= named->name_len;
        memcpy(p, named->name, named->name_len);
        at = to_gofer_inode(named->parent->inode);
        if (at->node != WIRE_NODE_NONE) {
            *ret_node = at->node;
            *ret_components = n;
            return p;
        }
    }
    return NULL;
}

/* One attempt: walks to gi with these flags. Nodes found on the way go to the inodes they belong
 * to. Return: 1 when the walk ended at gi (walk->fd is set if asked for), 0 when it ended
 * elsewhere, −errno. */
static int gofer_fs_walk_to(struct gofer_inode *gi, uint32_t flags, uint32_t open_flags, char *path,
                            struct wire_entry *entries, struct gofer_walk *walk)
{
    struct gofer_sb *gs = gofer_sb_of(&gi->inode);
    struct gofer_mark mark = gofer_fs_mark(gs, NULL);
    uint64_t node;
    unsigned components;
    const char *p = gofer_fs_path(gi, path, &node, &components);
    if (!p)
        return 0;
    *walk = (struct gofer_walk){.entries = entries, .max = components, .fd = -1};
    int err = gofer_client_walk(gs->client, node, p, strlen(p), flags, open_flags, walk);
    if (err < 0)
        return err;
    for (unsigned i = 0; i < walk->count; i++) {
        struct wire_attr *attr = &walk->entries[i].attr;
        struct gofer_inode *found = gofer_fs_find(gs, attr->dev, attr->ino);
        if (!found || !gofer_fs_same(found, attr)) {
            gofer_client_release(gs->client, walk->entries[i].node);
            continue;
        }
        gofer_fs_take_node(gs, found, walk->entries[i].node);
        if (gs->watch)
            gofer_watch_set(found, attr->watch);
        if (gofer_fs_current(gs, NULL, mark) && !found->io_dirty && found->fd_rw < 0 &&
            (found->stale || gs->share == GOFER_SHARED))
            gofer_fs_set_attr(found, attr);
    }
    if (walk->end == WIRE_WALK_FAILED && walk->error != -ENOTDIR)
        return walk->error;
    const struct wire_attr *last = walk->count == components ? &entries[components - 1].attr : NULL;
    return last && last->ino == gi->host_ino && last->dev == gi->dev && gofer_fs_same(gi, last);
}

/* Tries until the walk ends at gi, which a rename under way may spoil a few times. */
static int gofer_fs_reach(struct gofer_inode *gi, uint32_t flags, uint32_t open_flags,
                          struct gofer_walk *walk)
{
    CLEANUP_FREE char *path = mem_zalloc(GOFER_PATH_MAX);
    CLEANUP_FREE struct wire_entry *entries = NEW_ARRAY(struct wire_entry, WIRE_WALK_MAX);
    if (!path || !entries)
        return -ENOMEM;
    for (unsigned tries = 0; tries < GOFER_FIND_TRIES; tries++) {
        int err = gofer_fs_walk_to(gi, flags, open_flags, path, entries, walk);
        if (err == -ENFILE && tries == 0) {
            gofer_fs_shrink(gofer_sb_of(&gi->inode));
            err = 0;
        }
        if (err) {
            walk->entries = NULL;
            return err;
        }
        gofer_walk_done(walk);
        /* Somebody else may have got there first, by another name. */
        if (!(flags & WIRE_WALK_OPEN) && gi->node != WIRE_NODE_NONE)
            return 1;
        fiber_yield();
    }
    return -ESTALE;
}

int gofer_fs_node(struct gofer_inode *gi, uint64_t *ret_node)
{
    if (unlikely(gi->node == WIRE_NODE_NONE)) {
        struct gofer_walk walk = {.fd = -1};
        int err = gofer_fs_reach(gi, WIRE_WALK_NODES, 0, &walk);
        gofer_walk_done(&walk);
        if (err < 0)
            return err;
        if (gi->node == WIRE_NODE_NONE)
            return -ESTALE;
    }
    /* Those in use are given back last: a request with this node may be about to be sent. */
    if (!list_empty(&gi->node_link)) {
        list_del(&gi->node_link);
        list_add_tail(&gofer_sb_of(&gi->inode)->nodes, &gi->node_link);
    }
    *ret_node = gi->node;
    return 0;
}

uint32_t gofer_fs_open_walk(const struct gofer_sb *gs)
{
    return gs->share == GOFER_SHARED ? WIRE_WALK_OPEN | WIRE_WALK_NODES : WIRE_WALK_OPEN;
}

int gofer_fs_open(struct gofer_inode *gi, uint32_t open_flags)
{
    struct gofer_sb *gs = gofer_sb_of(&gi->inode);
    if (gi->node != WIRE_NODE_NONE)
        return gofer_client_open(gs->client, gi->node, open_flags);
    struct gofer_walk walk = {.fd = -1};
    int err = gofer_fs_reach(gi, gofer_fs_open_walk(gs), open_flags, &walk);
    if (err == -ENFILE) /* a file that is known can do without a node */
        err = gofer_fs_reach(gi, WIRE_WALK_OPEN, open_flags, &walk);
    if (err < 0) {
        gofer_walk_done(&walk);
        return err;
    }
    int fd = TAKE_FD(walk.fd);
    err = walk.open_error;
    gofer_walk_done(&walk);
    return fd >= 0 ? fd : err < 0 ? err : -EIO;
}

/* ---- changes that nobody waits for ---- */

int gofer_fs_may_post(struct gofer_inode *dir, size_t room)
{
    struct gofer_sb *gs = gofer_sb_of(&dir->inode);
    gofer_fs_catch_up(gs);
    bool alone = gs->share == GOFER_EXCLUSIVE || (dir->wd && !dir->others);
    /* A root file system that its runtime has bound something into is of several devices. */
    if (!gs->local || !alone || (dir->inode.flags & (INODE_FL_IMMUTABLE | INODE_FL_APPEND)) || dir->dev != gs->root_dev)
        return 0;
    int err = gofer_lane_room(gs->client, room);
    return err == -EOPNOTSUPP ? 0 : err < 0 ? err : 1;
}

void gofer_fs_late_failed(struct gofer_sb *gs, uint32_t dev, uint64_t ino, int error, const char *what)
{
    struct gofer_inode *dir = gofer_fs_find(gs, dev, ino);
    if (!gofer_client_dead(gs->client))
        log_error("gofer: %s failed after it was told to be done: %s", what, strerror(-error));
    gs->late_error = error;
    if (dir)
        gofer_watch_distrust(dir);
}

int gofer_fs_settle(struct gofer_sb *gs)
{
    int err = gofer_lane_settle(gs->client);
    if (err >= 0)
        err = gs->late_error;
    gs->late_error = 0;
    return err;
}

/* ---- superblocks ---- */

static int gofer_fs_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st)
{
    struct gofer_sb *gs = sb->priv;
    struct wire_statfs st;
    int err = gofer_client_statfs(gs->client, gs->root_node, &st);
    if (err < 0)
        return err;
    ret_st->f_type = (__fsword_t)st.type;
    ret_st->f_bsize = (__fsword_t)st.bsize;
    ret_st->f_frsize = (__fsword_t)st.frsize;
    ret_st->f_blocks = st.blocks;
    ret_st->f_bfree = st.bfree;
    ret_st->f_bavail = st.bavail;
    ret_st->f_files = st.files;
    ret_st->f_ffree = st.ffree;
    ret_st->f_namelen = (__fsword_t)st.namelen;
    if (gs->quota)
        gofer_quota_statfs(gs->quota, ret_st);
    return 0;
}

static int gofer_fs_sync(struct ctx *ctx, struct superblock *sb)
{
    struct gofer_sb *gs = sb->priv;
    int err = gofer_client_syncfs(gs->client, gs->root_node);
    int late = gofer_fs_settle(gs);
    return err < 0 ? err : late;
}

static void gofer_fs_free(struct superblock *sb)
{
    struct gofer_sb *gs = sb->priv;
    if (!gs)
        return;
    BUG_ON(gs->inodes);
    gofer_lane_purge(gs->client, gs);
    gofer_client_unref(gs->client);
    mem_free(gs->table);
    mem_free(gs->quota);
    mem_free(gs);
}

static const struct sb_ops gofer_fs_sb_ops = {
    .statfs = gofer_fs_statfs,
    .sync = gofer_fs_sync,
    .free = gofer_fs_free,
};

/* What the guest sees in /proc/mounts: the host file system's own name. */
static const char *gofer_fs_type_name(uint64_t magic)
{
    static const struct {
        uint64_t magic;
        const char *name;
    } names[] = {
        {EXT4_SUPER_MAGIC, "ext4"},   {XFS_SUPER_MAGIC, "xfs"},
        {BTRFS_SUPER_MAGIC, "btrfs"}, {OVERLAYFS_SUPER_MAGIC, "overlay"},
        {TMPFS_MAGIC, "tmpfs"},       {F2FS_SUPER_MAGIC, "f2fs"},
        {NFS_SUPER_MAGIC, "nfs"},     {FUSE_SUPER_MAGIC, "fuse"},
        {V9FS_MAGIC, "9p"},           {CEPH_SUPER_MAGIC, "ceph"},
        {0x2fc12fc1, "zfs"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        if (names[i].magic == magic)
            return names[i].name;
    }
    return "ext4";
}

static struct gofer_sb *gofer_fs_new_sb(struct gofer_client *client, enum gofer_share share,
                                        const struct wire_entry *root, const struct wire_statfs *st)
{
    struct gofer_sb *gs = NEW(struct gofer_sb);
    if (!gs)
        return NULL;
    gs->table = NEW_ARRAY(struct gofer_inode *, GOFER_TABLE_MIN);
    gs->sb = gs->table
                 ? superblock_new(gofer_fs_type_name(st->type), st->type, &gofer_fs_sb_ops, NULL)
                 : NULL;
    if (!gs->sb) {
        mem_free(gs->table);
        mem_free(gs);
        return NULL;
    }
    gs->sb->has_handles = true;
    gs->sb->acls = SB_ACLS_BELOW;
    gs->table_len = GOFER_TABLE_MIN;
    gs->client = gofer_client_ref(client);
    gs->share = share;
    gs->root_dev = root->attr.dev;
    gs->root_node = root->node;
    list_init(&gs->nodes);
    gs->sb->priv = gs;
    gs->sb->blksize = (uint32_t)MIN(st->bsize, (uint64_t)1 << 20);
    gs->sb->name_max = (uint32_t)MIN(st->namelen, (uint64_t)WIRE_NAME_MAX);
    return gs;
}

int gofer_fs_mount(struct gofer_client *client, uint32_t tree, enum gofer_share share,
                   struct dentry **ret_root)
{
    struct wire_entry entry;
    struct wire_statfs st;
    struct inode *root;
    uint32_t flags;
    int watch_fd;
    int err = gofer_client_attach(client, tree, share == GOFER_SHARED, &entry, &flags, &watch_fd);
    if (err < 0)
        return err;
    bool watched = watch_fd >= 0 && gofer_watch_open(client, watch_fd) >= 0;
    err = gofer_client_statfs(client, entry.node, &st);
    struct gofer_sb *gs = err < 0 ? NULL : gofer_fs_new_sb(client, share, &entry, &st);
    if (!gs) {
        gofer_client_release(client, entry.node);
        return err < 0 ? err : -ENOMEM;
    }
    if (flags & WIRE_TREE_READ_ONLY)
        gs->sb->flags |= MS_RDONLY;
    gs->local = flags & WIRE_TREE_LOCAL;
    if (watched)
        gs->watch = client->tree_watch;
    struct superblock *sb = gs->sb;
    err = gofer_fs_inode(gs, &entry, NULL, 0, true, &root);
    if (err >= 0) {
        /* The root inode holds the superblock from here on. */
        *ret_root = dentry_new_root(root);
        err = *ret_root ? 0 : -ENOMEM;
    }
    superblock_unref(sb);
    return err;
}

/* Called by the inode ops' evict. */
void gofer_fs_evict(struct gofer_inode *gi)
{
    struct gofer_sb *gs = gofer_sb_of(&gi->inode);
    gofer_quota_evict(gi);
    gofer_cache_drop(gi);
    gofer_watch_drop(gi);
    gofer_fs_drop_node(gs, gi);
    gofer_fs_unhash(gs, gi);
}
