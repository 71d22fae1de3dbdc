/* SPDX-License-Identifier: Apache-2.0 */
/* Listing directories and looking ahead on walks: both learn more than was asked for and put it
 * into the dentry cache, so that what follows (`ls -l`, find, the next component) costs no round
 * trip. */
#include "sentry/fs/gofer/gofer_fs_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/path_walk.h"

enum { GOFER_DIR_CHUNK = 32 * 1024 }; /* bytes of one reply to READDIR */

/* One entry of a listing, packed in gofer_dir.buffer; name follows. */
struct gofer_dir_entry {
    uint64_t ino;
    int64_t next_pos;
    uint8_t type;
    uint8_t len;
};

/* An open directory. Positions are the host's cookies plus 2, for "." and ".." come first. */
struct gofer_dir {
    char *buffer;
    size_t size, capacity; /* bytes in use, allocated */
    size_t at;             /* the next entry to hand out */
    int64_t pos;           /* its position; −1: the buffer holds nothing for anybody */
    bool end;              /* nothing follows the buffer */
    bool snapshot; /* the buffer holds all names, taken from the cache; positions are numbers */
    bool rewound;  /* the next read from the start shows what is there then */
    bool all;      /* every entry since the start was put into the cache */
    /* The directory's dir_seq and child_evictions when the listing began. */
    uint32_t seq, evictions;
    bool failed; /* out of memory while filling */
};

/* What a READDIR reply is turned into. */
struct gofer_dir_fill {
    struct gofer_dir *dir;
    struct gofer_sb *sb;
    struct dentry *dentry; /* entries are primed below it; NULL: not */
    uint32_t seq;          /* its dir_seq before the request */
    struct gofer_mark mark;
};

static int64_t gofer_dir_pos(uint64_t cookie)
{
    return cookie > (uint64_t)INT64_MAX - 3 ? INT64_MAX : (int64_t)cookie + 2;
}

/* Puts an entry into the cache. Return: false when that failed. */
static bool gofer_dir_prime(struct gofer_dir_fill *fill, const struct gofer_dirent *d)
{
    struct wire_entry entry = {.node = WIRE_NODE_NONE, .attr = *d->attr};
    struct inode *inode;
    /* The directory was changed meanwhile: what came may not be true any more. */
    if (fill->dentry->dir_seq != fill->seq)
        return false;
    struct dentry *known = dentry_find(fill->dentry, d->name.data, d->name.size);
    if (!known) {
        if (gofer_fs_inode(
                fill->sb, &entry, d->target.data, d->target.size,
                gofer_fs_current(fill->sb, to_gofer_inode(fill->dentry->inode), fill->mark),
                &inode) < 0)
            return false;
        dentry_prime(fill->dentry, d->name.data, d->name.size, inode);
        inode_unref(inode);
        known = dentry_find(fill->dentry, d->name.data, d->name.size);
    }
    bool ok = known && known->inode;
    dentry_unref(known);
    return ok;
}

/* Appends an entry to the buffer. Return: false without memory. */
static bool gofer_dir_append(struct gofer_dir *dir, struct gofer_dir_entry e, const char *name)
{
    size_t need = dir->size + sizeof(e) + e.len;
    if (need > dir->capacity) {
        size_t capacity = MAX(need, dir->capacity ? dir->capacity * 2 : (size_t)4096);
        char *bigger = mem_realloc(dir->buffer, capacity, 1);
        if (!bigger)
            return false;
        dir->buffer = bigger;
        dir->capacity = capacity;
    }
    memcpy(dir->buffer + dir->size, &e, sizeof(e));
    memcpy(dir->buffer + dir->size + sizeof(e), name, e.len);
    dir->size = need;
    return true;
}

static void gofer_dir_take(void *arg, const struct gofer_dirent *d)
{
    struct gofer_dir_fill *fill = arg;
    struct gofer_dir *dir = fill->dir;
    struct gofer_dir_entry e = {
        .ino = d->head.ino,
        .next_pos = gofer_dir_pos(d->head.cookie),
        .type = d->attr ? (uint8_t)IFTODT(d->attr->mode) : (uint8_t)d->head.type,
        .len = (uint8_t)d->name.size,
    };
    if (!gofer_dir_append(dir, e, d->name.data)) {
        dir->failed = true;
        return;
    }
    if (!fill->dentry || !d->attr || !gofer_dir_prime(fill, d))
        dir->all = false;
}

/* Fills the buffer with all names of a directory that is wholly in the cache. */
static int gofer_dir_take_snapshot(struct gofer_dir *dir, const struct dentry *dentry)
{
    const struct dentry *d;
    int64_t pos = 2;
    dir->size = dir->at = 0;
    dir->pos = 2;
    dir->snapshot = dir->end = true;
    list_for_each_entry (d, &dentry->children, sibling) {
        if (!d->inode)
            continue;
        struct gofer_dir_entry e = {.ino = d->inode->ino,
                                    .next_pos = ++pos,
                                    .type = (uint8_t)IFTODT(d->inode->mode),
                                    .len = (uint8_t)d->name_len};
        if (!gofer_dir_append(dir, e, d->name)) {
            dir->pos = -1;
            return -ENOMEM;
        }
    }
    return 0;
}

/* Goes to a position within the snapshot. */
static void gofer_dir_seek_snapshot(struct gofer_dir *dir, int64_t pos)
{
    dir->at = 0;
    for (dir->pos = 2; dir->pos < pos && dir->at < dir->size; dir->pos++) {
        struct gofer_dir_entry e;
        memcpy(&e, dir->buffer + dir->at, sizeof(e));
        dir->at += sizeof(e) + e.len;
    }
    dir->pos = pos;
}

/* Fills the buffer with entries from pos on. */
static int gofer_dir_fetch(struct file *f, struct gofer_dir *dir, int64_t pos)
{
    struct gofer_inode *gi = to_gofer_inode(f->inode);
    struct gofer_sb *gs = gofer_sb_of(f->inode);
    struct dentry *dentry = f->path.dentry;
    struct gofer_dir_fill fill = {.dir = dir, .sb = gs};
    uint64_t node;

    gofer_fs_catch_up(gs);
    dir->rewound = dir->rewound && pos != 2;
    if (dir->snapshot && pos != 2) {
        gofer_dir_seek_snapshot(dir, pos);
        return 0;
    }
    dir->snapshot = false;
    if (pos == 2 && gofer_dir_knows_all(f->inode))
        return gofer_dir_take_snapshot(dir, dentry);
    if (!dentry->deleted) {
        fill.dentry = dentry;
        fill.seq = dentry->dir_seq;
        fill.mark = gofer_fs_mark(gs, gi);
    }
    if (pos == 2) {
        dir->all = fill.dentry != NULL;
        dir->seq = dentry->dir_seq;
        dir->evictions = dentry->child_evictions;
    } else if (dir->pos != pos) {
        dir->all = false;
    }
    dir->size = dir->at = 0;
    dir->pos = pos;
    dir->end = dir->failed = false;
    int err = gofer_fs_node(gi, &node);
    if (err >= 0)
        err = gofer_client_readdir(gs->client, node, (uint64_t)(pos - 2),
                                   fill.dentry ? WIRE_READDIR_ATTRS : 0, GOFER_DIR_CHUNK,
                                   gofer_dir_take, &fill);
    if (err >= 0 && dir->failed)
        err = -ENOMEM;
    if (err < 0) {
        dir->pos = -1;
        return err;
    }
    dir->end = err == 1;
    if (dir->end && dir->all && dir->seq == dentry->dir_seq &&
        dir->evictions == dentry->child_evictions) {
        gi->complete = true;
        gi->complete_at = dir->evictions;
    }
    return 0;
}

/* Hands out what the buffer holds. Return: false when the caller's buffer is full. */
static bool gofer_dir_emit(struct file *f, struct gofer_dir *dir, struct dir_sink *sink)
{
    while (dir->at < dir->size) {
        struct gofer_dir_entry e;
        memcpy(&e, dir->buffer + dir->at, sizeof(e));
        const char *name = dir->buffer + dir->at + sizeof(e);
        if (!sink->emit(sink, name, e.len, e.ino, e.type, e.next_pos))
            return false;
        dir->at += sizeof(e) + e.len;
        dir->pos = f->pos = e.next_pos;
    }
    return true;
}

static int gofer_dir_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink)
{
    struct gofer_dir *dir = f->priv;
    int64_t first = f->pos;
    if (!dir_emit_dots(f, sink))
        return 0;
    for (bool emitted = false;;) {
        if (f->pos == INT64_MAX)
            return 0;
        if (dir->pos != f->pos || dir->at >= dir->size || (dir->rewound && f->pos == 2)) {
            /* One round trip is enough for a call that has entries to show. */
            bool again = dir->rewound && f->pos == 2;
            if ((dir->pos == f->pos && dir->end && !again) || emitted)
                return 0;
            int err = gofer_dir_fetch(f, dir, f->pos);
            if (err < 0)
                return f->pos != first ? 0 : err;
        }
        int64_t before = f->pos;
        if (!gofer_dir_emit(f, dir, sink))
            return 0;
        emitted = emitted || f->pos != before;
    }
}

static int64_t gofer_dir_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    struct gofer_dir *dir = f->priv;
    int64_t to = whence == SEEK_CUR ? f->pos + offset : offset;
    /* ext4 has an end of directories, most others do not. */
    if (whence == SEEK_END && offset == 0 && f->inode->sb->magic == EXT4_SUPER_MAGIC)
        to = INT64_MAX;
    else if ((whence != SEEK_SET && whence != SEEK_CUR) || to < 0)
        return -EINVAL;
    /* Rewinding shows what is there now. */
    dir->rewound = dir->rewound || to == 0;
    f->pos = to;
    return to;
}

static int gofer_dir_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    uint64_t node;
    int err = gofer_fs_node(to_gofer_inode(f->inode), &node);
    if (err >= 0)
        err = gofer_client_fsync(gofer_sb_of(f->inode)->client, node);
    int late = gofer_fs_settle(gofer_sb_of(f->inode));
    return err < 0 ? err : late;
}

static void gofer_dir_release(struct file *f)
{
    struct gofer_dir *dir = f->priv;
    mem_free(dir->buffer);
    mem_free(dir);
}

static const struct file_ops gofer_dir_file_ops = {
    .readdir = gofer_dir_readdir,
    .llseek = gofer_dir_llseek,
    .fsync = gofer_dir_fsync,
    .release = gofer_dir_release,
};

int gofer_dir_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    struct gofer_dir *dir = NEW(struct gofer_dir);
    if (!dir)
        return -ENOMEM;
    dir->pos = -1;
    gofer_ahead_listed(to_gofer_inode(inode));
    file->priv = dir;
    file->ops = &gofer_dir_file_ops;
    return 0;
}

bool gofer_dir_knows_all(const struct inode *dir)
{
    const struct gofer_inode *gi = container_of(dir, struct gofer_inode, inode);
    if (!gi->complete || list_empty(&dir->dentries) || !gofer_fs_name_trusted(gi, NULL))
        return false;
    return list_first(&dir->dentries, struct dentry, alias)->child_evictions == gi->complete_at;
}

/* ---- looking ahead ---- */

/* One component of the text a walk still has to resolve. */
struct gofer_dir_step {
    const char *name;
    size_t len;
};

/* Splits rest up to where it stops being plain names. path receives the names joined by slashes.
 * Return: how many. */
static unsigned gofer_dir_split(const char *rest, struct gofer_dir_step *steps, char *path,
                                size_t *ret_size)
{
    unsigned count = 0;
    size_t size = 0;
    const char *p = rest;
    while (count < WIRE_WALK_MAX) {
        while (*p == '/')
            p++;
        size_t len = strcspn(p, "/");
        if (!codec_name_ok(p, len) || size + len + 1 > WIRE_PATH_MAX)
            break;
        if (size)
            path[size++] = '/';
        memcpy(path + size, p, len);
        size += len;
        steps[count++] = (struct gofer_dir_step){p, len};
        p += len;
    }
    *ret_size = size;
    return count;
}

/* Puts the walk's results into the cache, going down from dir. */
static void gofer_dir_prime_walk(struct gofer_sb *gs, struct dentry *dir, uint32_t seq,
                                 const struct gofer_dir_step *steps, unsigned len,
                                 struct gofer_walk *walk, struct gofer_mark mark, bool write)
{
    struct dentry *at = dentry_ref(dir);
    /* at is where the next entry belongs, and nothing has changed there. */
    bool current = gofer_fs_current(gs, NULL, mark);
    bool valid = dir->dir_seq == seq && (gs->share == GOFER_EXCLUSIVE || current);
    unsigned i;
    for (i = 0; i < walk->count; i++) {
        const char *target = i + 1 == walk->count ? walk->target : NULL;
        struct inode *inode = NULL;
        /* Also when the entry can't be used: its node has to belong to somebody. */
        if (gofer_fs_inode(gs, &walk->entries[i], target, target ? strlen(target) : 0, current,
                           &inode) < 0)
            valid = false;
        if (inode && i + 1 == walk->count && walk->fd >= 0)
            gofer_cache_add(to_gofer_inode(inode), TAKE_FD(walk->fd), write);
        if (valid) {
            dentry_prime(at, steps[i].name, steps[i].len, inode);
            struct dentry *child = dentry_find(at, steps[i].name, steps[i].len);
            valid = child && child->inode == inode && child->dir_seq == 0;
            if (valid) {
                dentry_unref(at);
                at = dentry_ref(child);
            }
            dentry_unref(child);
        }
        inode_unref(inode);
    }
    if (valid && walk->end == WIRE_WALK_MISSING && i < len)
        dentry_prime(at, steps[i].name, steps[i].len, NULL);
    dentry_unref(at);
}

void gofer_dir_prefetch(struct ctx *ctx, struct dentry *dir, const char *rest)
{
    struct gofer_sb *gs = gofer_sb_of(dir->inode);
    struct {
        struct wire_entry entries[WIRE_WALK_MAX];
        struct gofer_dir_step steps[WIRE_WALK_MAX];
        char path[WIRE_PATH_MAX];
    } *work = mem_zalloc(sizeof(*work));
    size_t size;
    struct gofer_mark mark = gofer_fs_mark(gs, NULL);
    uint64_t node;
    uint32_t seq = dir->dir_seq;
    if (!work)
        return;
    unsigned len = gofer_dir_split(rest, work->steps, work->path, &size);
    /* The file itself comes along when the walk is an open's and reaches its end. */
    uint32_t access = ctx->lookup_open ? ctx->lookup_open - 1 : 0;
    bool open = ctx->lookup_open && len && !work->steps[len - 1].name[work->steps[len - 1].len] &&
                gofer_cache_has_room();
    if (access == O_WRONLY)
        access = O_RDWR;
    struct gofer_walk walk = {.entries = work->entries, .max = len, .fd = -1};
    /* One component alone is what lookup does as well. */
    if (len > 1 && gofer_fs_node(to_gofer_inode(dir->inode), &node) >= 0 &&
        gofer_client_walk(gs->client, node, work->path, size, open ? gofer_fs_open_walk(gs) : 0,
                          access, &walk) >= 0)
        gofer_dir_prime_walk(gs, dir, seq, work->steps, len, &walk, mark, access == O_RDWR);
    gofer_walk_done(&walk);
    mem_free(work);
}
