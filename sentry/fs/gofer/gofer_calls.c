/* SPDX-License-Identifier: Apache-2.0 */
/* Typed calls of the gofer client: encoding of requests, decoding and validation of replies. */
#include "sentry/fs/gofer/gofer_client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/fs/gofer/gofer_client_priv.h"
#include "sentry/fs/gofer/gofer_lane.h"

/* Starts a call: takes a slot and begins the request with its fixed part. */
static int gofer_calls_begin(struct gofer_client *c, const void *fixed, size_t size,
                             struct gofer_slot **ret_slot, struct codec_writer *w)
{
    int err = gofer_client_begin(c, ret_slot);
    if (err < 0)
        return err;
    codec_writer_init(w, c->request, WIRE_SLOT_SIZE);
    codec_put(w, fixed, size);
    return 0;
}

/* Ends a call whose reply was decoded: it must have been used up exactly, and fds_len descriptors
 * must have come. A gofer that breaks the protocol is not listened to any more. Return: err, or
 * −EIO. */
static int gofer_calls_end(struct gofer_client *c, struct gofer_slot *s, int err, bool reply_ok)
{
    if (err >= 0 && !reply_ok) {
        gofer_client_die(c, "malformed payload");
        err = -EIO;
    }
    gofer_client_end(c, s);
    return err;
}

static bool gofer_calls_attr_ok(const struct wire_attr *a)
{
    switch (a->mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
    case S_IFSOCK:
        break;
    default:
        return false;
    }
    return !(a->mode & ~(uint32_t)(S_IFMT | 07777)) && a->size <= INT64_MAX &&
           a->blocks <= INT64_MAX && a->atime_nsec < 1000000000 && a->mtime_nsec < 1000000000 &&
           a->ctime_nsec < 1000000000 && a->btime_nsec < 1000000000;
}

static bool gofer_calls_entry_ok(const struct wire_entry *e)
{
    return gofer_calls_attr_ok(&e->attr) && (e->node != WIRE_NODE_NONE || !S_ISDIR(e->attr.mode));
}

/* Takes the one descriptor of a reply out of the slot. Return: fd, or −1 when there is not exactly
 * one. */
static int gofer_calls_take_fd(struct gofer_slot *s)
{
    if (s->fds_len != 1)
        return -1;
    s->fds_len = 0;
    return s->fds[0];
}

/* A call with a fixed part and up to two names, whose reply is a fixed part or nothing. */
static int gofer_calls_simple(struct gofer_client *c, enum wire_op op, const void *fixed,
                              size_t size, const char *name1, const char *name2, void *ret_fixed,
                              size_t ret_size)
{
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    bool ok = false;
    int err = gofer_calls_begin(c, fixed, size, &s, &w);
    if (err < 0)
        return err;
    if (name1)
        codec_put_str(&w, name1, strlen(name1));
    if (name2)
        codec_put_str(&w, name2, strlen(name2));
    err = gofer_client_finish(c, s, op, &w, &r);
    if (err >= 0) {
        ok = r.size == ret_size && s->fds_len == 0;
        if (ok)
            codec_get(&r, ret_fixed, ret_size);
    }
    return gofer_calls_end(c, s, err, ok);
}

/* The same for a reply that is attributes. */
static int gofer_calls_attr(struct gofer_client *c, enum wire_op op, const void *fixed, size_t size,
                            const char *name, struct wire_attr *ret_attr)
{
    struct wire_attr attr;
    int err = gofer_calls_simple(c, op, fixed, size, name, NULL, &attr, sizeof(attr));
    if (err < 0)
        return err;
    if (!gofer_calls_attr_ok(&attr)) {
        gofer_client_die(c, "malformed attributes");
        return -EIO;
    }
    *ret_attr = attr;
    return 0;
}

int gofer_client_attach(struct gofer_client *c, uint32_t tree, bool watch,
                        struct wire_entry *ret_entry, uint32_t *ret_flags, int *ret_watch_fd)
{
    bool want_lane = c->lane.sock < 0;
    struct wire_attach req = {.tree = tree,
                              .flags = (watch ? WIRE_ATTACH_WATCH : 0) | (want_lane ? WIRE_ATTACH_LANE : 0)};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    struct wire_entry entry = {0};
    uint32_t flags = 0;
    bool ok = false;
    int fd = -1, lane = -1;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w);
    if (err < 0)
        return err;
    err = gofer_client_finish(c, s, WIRE_OP_ATTACH, &w, &r);
    if (err >= 0) {
        codec_get(&r, &entry, sizeof(entry));
        codec_get(&r, &flags, sizeof(flags));
        size_t watched = watch && (flags & WIRE_TREE_WATCHED), laned = want_lane && (flags & WIRE_TREE_LANE);
        ok = codec_reader_done(&r) && gofer_calls_entry_ok(&entry) && entry.node != WIRE_NODE_NONE &&
             s->fds_len == watched + laned;
        if (ok && watched)
            fd = s->fds[0];
        if (ok && laned)
            lane = s->fds[watched];
        if (ok)
            s->fds_len = 0;
    }
    err = gofer_calls_end(c, s, err, ok);
    if (err < 0)
        return err;
    if (lane >= 0)
        gofer_lane_open(c, lane);
    *ret_entry = entry;
    *ret_flags = flags;
    *ret_watch_fd = fd;
    return 0;
}

/* ---- walk and open ---- */

void gofer_walk_done(struct gofer_walk *w)
{
    mem_free(w->target);
    w->target = NULL;
    host_close(w->fd);
    w->fd = -1;
}

static bool gofer_calls_walk_entries(struct codec_reader *r, const struct wire_walk_result *result,
                                     struct gofer_walk *walk)
{
    if (result->count > walk->max || result->end > WIRE_WALK_FAILED || result->error > 0 ||
        result->open_error > 0)
        return false;
    for (unsigned i = 0; i < result->count; i++) {
        codec_get(r, &walk->entries[i], sizeof(walk->entries[i]));
        if (!gofer_calls_entry_ok(&walk->entries[i]))
            return false;
        /* Only directories have something below them. */
        if (i + 1 < result->count && !S_ISDIR(walk->entries[i].attr.mode))
            return false;
    }
    return !r->bad;
}

/* Decodes a WALK reply. Return: 0, −EPROTO for a malformed one, −ENOMEM. */
static int gofer_calls_walk_reply(struct gofer_slot *s, struct codec_reader *r, uint32_t flags,
                                  struct gofer_walk *walk)
{
    struct wire_walk_result result;
    codec_get(r, &result, sizeof(result));
    if (!gofer_calls_walk_entries(r, &result, walk))
        return -EPROTO;
    if (result.count && S_ISLNK(walk->entries[result.count - 1].attr.mode)) {
        struct codec_str text = codec_get_str(r, WIRE_PATH_MAX);
        if (!text.data)
            return -EPROTO;
        walk->target = mem_strndup(text.data, text.size);
        if (!walk->target)
            return -ENOMEM;
    }
    if (!codec_reader_done(r))
        return -EPROTO;
    bool opened = (flags & WIRE_WALK_OPEN) && result.open_error == 0;
    if (opened) {
        walk->fd = gofer_calls_take_fd(s);
        if (walk->fd < 0 || result.end != WIRE_WALK_COMPLETE || !result.count)
            return -EPROTO;
    } else if (s->fds_len) {
        return -EPROTO;
    }
    walk->count = result.count;
    walk->end = result.end;
    walk->error = result.error;
    walk->open_error = result.open_error;
    return 0;
}

int gofer_client_walk(struct gofer_client *c, uint64_t node, const char *path, size_t size,
                      uint32_t flags, uint32_t open_flags, struct gofer_walk *inout_walk)
{
    struct wire_walk req = {.node = node, .flags = flags, .open_flags = open_flags};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    inout_walk->count = 0;
    inout_walk->target = NULL;
    inout_walk->fd = -1;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w);
    if (err < 0)
        return err;
    codec_put_str(&w, path, size);
    err = gofer_client_finish(c, s, WIRE_OP_WALK, &w, &r);
    if (err >= 0)
        err = gofer_calls_walk_reply(s, &r, flags, inout_walk);
    if (err < 0)
        gofer_walk_done(inout_walk);
    return gofer_calls_end(c, s, err == -EPROTO ? 0 : err, err != -EPROTO);
}

int gofer_client_open(struct gofer_client *c, uint64_t node, uint32_t open_flags)
{
    struct wire_open req = {.node = node, .flags = open_flags};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w), fd = -1;
    if (err < 0)
        return err;
    err = gofer_client_finish(c, s, WIRE_OP_OPEN, &w, &r);
    if (err >= 0)
        fd = gofer_calls_take_fd(s);
    err = gofer_calls_end(c, s, err, fd >= 0 && r.size == 0);
    if (err >= 0)
        return fd;
    host_close(fd);
    return err;
}

/* Decodes a reply to OPEN_MANY; the descriptors stay in the slot. Return: how many files, or −EPROTO. */
static int gofer_calls_opened(const struct gofer_slot *s, struct codec_reader *r, unsigned len, bool nodes,
                              struct gofer_opened *opened)
{
    size_t fds_len = 0;
    unsigned count = (unsigned)(r->size / sizeof(struct wire_opened));
    if (!count || count > len)
        return -EPROTO;
    for (unsigned i = 0; i < count; i++) {
        struct wire_opened o;
        codec_get(r, &o, sizeof(o));
        opened[i] = (struct gofer_opened){.fd = -1, .entry = o.entry};
        if (o.error > 0 || (!o.error && fds_len == s->fds_len))
            return -EPROTO;
        if (o.error)
            opened[i].entry.node = WIRE_NODE_NONE;
        else if (!S_ISREG(o.entry.attr.mode) || !gofer_calls_attr_ok(&o.entry.attr) ||
                 (o.entry.node != WIRE_NODE_NONE) != nodes)
            return -EPROTO;
        else
            opened[i].fd = s->fds[fds_len++];
    }
    return codec_reader_done(r) && fds_len == s->fds_len ? (int)count : -EPROTO;
}

int gofer_client_open_many(struct gofer_client *c, uint64_t dir, const struct codec_str *names, unsigned len,
                           bool nodes, struct gofer_opened *ret_opened)
{
    struct wire_open_many req = {.dir = dir, .count = len, .flags = nodes ? WIRE_OPEN_MANY_NODES : 0};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w), count = 0;
    if (err < 0)
        return err;
    for (unsigned i = 0; i < len; i++)
        codec_put_str(&w, names[i].data, names[i].size);
    err = gofer_client_finish(c, s, WIRE_OP_OPEN_MANY, &w, &r);
    if (err >= 0)
        count = gofer_calls_opened(s, &r, len, nodes, ret_opened);
    if (err >= 0 && count > 0)
        s->fds_len = 0; /* they are the caller's now */
    err = gofer_calls_end(c, s, err, count > 0);
    return err < 0 ? err : count;
}

/* ---- making and removing names ---- */

static int gofer_calls_make(struct gofer_client *c, enum wire_op op, uint64_t dir, const char *name,
                            const char *target, const struct gofer_make *make, uint32_t open_flags,
                            struct wire_entry *ret_entry, int *ret_fd)
{
    struct wire_make req = {
        .dir = dir,
        .mode = make->mode,
        .uid = make->uid,
        .gid = make->gid,
        .open_flags = open_flags,
        .rdev_major = make->rdev_major,
        .rdev_minor = make->rdev_minor,
        .flags = make->want_node ? WIRE_MAKE_NODE : 0,
    };
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    struct wire_entry entry = {0};
    bool ok = false;
    int fd = -1;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w);
    if (err < 0)
        return err;
    codec_put_str(&w, name, strlen(name));
    if (target)
        codec_put_str(&w, target, strlen(target));
    err = gofer_client_finish(c, s, op, &w, &r);
    if (err >= 0) {
        codec_get(&r, &entry, sizeof(entry));
        if (ret_fd)
            fd = gofer_calls_take_fd(s);
        ok = codec_reader_done(&r) && gofer_calls_entry_ok(&entry) && (fd >= 0 || !ret_fd) &&
             s->fds_len == 0 && (entry.node || !make->want_node);
    }
    err = gofer_calls_end(c, s, err, ok);
    if (err < 0) {
        host_close(fd);
        return err;
    }
    *ret_entry = entry;
    if (ret_fd)
        *ret_fd = fd;
    return 0;
}

/* What was made must be what was asked for. */
static int gofer_calls_make_type(struct gofer_client *c, int err, mode_t type,
                                 const struct wire_entry *entry)
{
    if (err >= 0 && (entry->attr.mode & S_IFMT) != type) {
        gofer_client_die(c, "made something else");
        return -EIO;
    }
    return err;
}

int gofer_client_create(struct gofer_client *c, uint64_t dir, const char *name,
                        const struct gofer_make *make, uint32_t open_flags,
                        struct wire_entry *ret_entry, int *ret_fd)
{
    int err =
        gofer_calls_make(c, WIRE_OP_CREATE, dir, name, NULL, make, open_flags, ret_entry, ret_fd);
    return gofer_calls_make_type(c, err, S_IFREG, ret_entry);
}

int gofer_client_tmpfile(struct gofer_client *c, uint64_t dir, const struct gofer_make *make,
                         uint32_t open_flags, struct wire_entry *ret_entry, int *ret_fd)
{
    int err =
        gofer_calls_make(c, WIRE_OP_TMPFILE, dir, "", NULL, make, open_flags, ret_entry, ret_fd);
    return gofer_calls_make_type(c, err, S_IFREG, ret_entry);
}

int gofer_client_mkdir(struct gofer_client *c, uint64_t dir, const char *name,
                       const struct gofer_make *make, struct wire_entry *ret_entry)
{
    int err = gofer_calls_make(c, WIRE_OP_MKDIR, dir, name, NULL, make, 0, ret_entry, NULL);
    return gofer_calls_make_type(c, err, S_IFDIR, ret_entry);
}

int gofer_client_symlink(struct gofer_client *c, uint64_t dir, const char *name, const char *target,
                         const struct gofer_make *make, struct wire_entry *ret_entry)
{
    int err = gofer_calls_make(c, WIRE_OP_SYMLINK, dir, name, target, make, 0, ret_entry, NULL);
    return gofer_calls_make_type(c, err, S_IFLNK, ret_entry);
}

int gofer_client_mknod(struct gofer_client *c, uint64_t dir, const char *name,
                       const struct gofer_make *make, struct wire_entry *ret_entry)
{
    int err = gofer_calls_make(c, WIRE_OP_MKNOD, dir, name, NULL, make, 0, ret_entry, NULL);
    return gofer_calls_make_type(c, err, make->mode & S_IFMT, ret_entry);
}

int gofer_client_link(struct gofer_client *c, uint64_t node, uint64_t dir, const char *name,
                      struct wire_attr *ret_attr)
{
    struct wire_link req = {.node = node, .dir = dir};
    return gofer_calls_attr(c, WIRE_OP_LINK, &req, sizeof(req), name, ret_attr);
}

int gofer_client_unlink(struct gofer_client *c, uint64_t dir, const char *name, bool directory)
{
    struct wire_unlink req = {.dir = dir, .flags = directory ? AT_REMOVEDIR : 0};
    return gofer_calls_simple(c, WIRE_OP_UNLINK, &req, sizeof(req), name, NULL, NULL, 0);
}

int gofer_client_rename(struct gofer_client *c, uint64_t old_dir, const char *old_name,
                        uint64_t new_dir, const char *new_name, uint32_t flags)
{
    struct wire_rename req = {.old_dir = old_dir, .new_dir = new_dir, .flags = flags};
    return gofer_calls_simple(c, WIRE_OP_RENAME, &req, sizeof(req), old_name, new_name, NULL, 0);
}

/* ---- one inode ---- */

ssize_t gofer_client_readlink(struct gofer_client *c, uint64_t node, char *dst, size_t size)
{
    struct wire_node_only req = {.node = node};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    size_t len = 0;
    bool ok = false;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w);
    if (err < 0)
        return err;
    err = gofer_client_finish(c, s, WIRE_OP_READLINK, &w, &r);
    if (err >= 0) {
        struct codec_str text = codec_get_str(&r, WIRE_PATH_MAX);
        ok = codec_reader_done(&r) && text.data && s->fds_len == 0;
        if (ok && size) {
            len = MIN(text.size, size - 1);
            memcpy(dst, text.data, len);
            dst[len] = '\0';
        }
    }
    err = gofer_calls_end(c, s, err, ok);
    return err < 0 ? err : (ssize_t)len;
}

int gofer_client_getattr(struct gofer_client *c, uint64_t node, struct wire_attr *ret_attr)
{
    struct wire_node_only req = {.node = node};
    return gofer_calls_attr(c, WIRE_OP_GETATTR, &req, sizeof(req), NULL, ret_attr);
}

int gofer_client_setattr(struct gofer_client *c, const struct wire_setattr *req,
                         struct wire_attr *ret_attr)
{
    return gofer_calls_attr(c, WIRE_OP_SETATTR, req, sizeof(*req), NULL, ret_attr);
}

int gofer_client_statfs(struct gofer_client *c, uint64_t node, struct wire_statfs *ret_st)
{
    struct wire_node_only req = {.node = node};
    return gofer_calls_simple(c, WIRE_OP_STATFS, &req, sizeof(req), NULL, NULL, ret_st,
                              sizeof(*ret_st));
}

int gofer_client_fsync(struct gofer_client *c, uint64_t node)
{
    struct wire_node_only req = {.node = node};
    return gofer_calls_simple(c, WIRE_OP_FSYNC, &req, sizeof(req), NULL, NULL, NULL, 0);
}

int gofer_client_syncfs(struct gofer_client *c, uint64_t node)
{
    struct wire_node_only req = {.node = node};
    return gofer_calls_simple(c, WIRE_OP_SYNCFS, &req, sizeof(req), NULL, NULL, NULL, 0);
}

int gofer_client_flags(struct gofer_client *c, uint64_t node, uint32_t mask, uint32_t flags, uint32_t *ret_flags)
{
    struct wire_flags req = {.node = node, .mask = mask, .flags = flags};
    return gofer_calls_simple(c, WIRE_OP_FLAGS, &req, sizeof(req), NULL, NULL, ret_flags, sizeof(*ret_flags));
}

int gofer_client_cachestat(struct gofer_client *c, uint64_t node, uint64_t offset, uint64_t size,
                           struct wire_cached *ret_cached)
{
    struct wire_cachestat req = {.node = node, .offset = offset, .size = size};
    return gofer_calls_simple(c, WIRE_OP_CACHESTAT, &req, sizeof(req), NULL, NULL, ret_cached, sizeof(*ret_cached));
}

/* ---- extended attributes ---- */

/* GETXATTR and LISTXATTR: the reply is the value. */
static ssize_t gofer_calls_value(struct gofer_client *c, enum wire_op op, const void *fixed,
                                 size_t fixed_size, const char *name, void *dst, size_t size)
{
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r = {0};
    bool ok = false;
    ssize_t len = 0;
    int err = gofer_calls_begin(c, fixed, fixed_size, &s, &w);
    if (err < 0)
        return err;
    if (name)
        codec_put_str(&w, name, strlen(name));
    err = gofer_client_finish(c, s, op, &w, &r);
    if (err >= 0) {
        ok = s->fds_len == 0;
        len = (ssize_t)r.size;
        if (size && r.size > size)
            len = -ERANGE;
        else if (size && r.size)
            memcpy(dst, r.data, r.size);
    }
    err = gofer_calls_end(c, s, err, ok);
    return err < 0 ? err : len;
}

ssize_t gofer_client_getxattr(struct gofer_client *c, uint64_t node, const char *name, void *dst,
                              size_t size)
{
    struct wire_xattr req = {.node = node};
    return gofer_calls_value(c, WIRE_OP_GETXATTR, &req, sizeof(req), name, dst, size);
}

ssize_t gofer_client_listxattr(struct gofer_client *c, uint64_t node, char *dst, size_t size)
{
    struct wire_node_only req = {.node = node};
    return gofer_calls_value(c, WIRE_OP_LISTXATTR, &req, sizeof(req), NULL, dst, size);
}

int gofer_client_setxattr(struct gofer_client *c, uint64_t node, const char *name,
                          const void *value, size_t size, int flags)
{
    struct wire_xattr req = {.node = node, .flags = (uint32_t)flags, .value_size = (uint32_t)size};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r = {0};
    if (size > WIRE_XATTR_SIZE_MAX - sizeof(req) - WIRE_NAME_MAX - 2)
        return -E2BIG;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w);
    if (err < 0)
        return err;
    codec_put_str(&w, name, strlen(name));
    codec_put(&w, value, size);
    err = gofer_client_finish(c, s, WIRE_OP_SETXATTR, &w, &r);
    return gofer_calls_end(c, s, err, r.size == 0 && s->fds_len == 0);
}

int gofer_client_removexattr(struct gofer_client *c, uint64_t node, const char *name)
{
    struct wire_xattr req = {.node = node};
    return gofer_calls_simple(c, WIRE_OP_REMOVEXATTR, &req, sizeof(req), name, NULL, NULL, 0);
}

/* ---- directories ---- */

/* Decodes one entry. Return: false when it is malformed. */
static bool gofer_calls_dirent(struct codec_reader *r, struct gofer_dirent *d,
                               struct wire_attr *attr)
{
    *d = (struct gofer_dirent){0};
    codec_get(r, &d->head, sizeof(d->head));
    d->name = codec_get_str(r, WIRE_NAME_MAX);
    if (!d->name.data || !codec_name_ok(d->name.data, d->name.size))
        return false;
    if (d->head.flags & WIRE_DIRENT_ATTR) {
        codec_get(r, attr, sizeof(*attr));
        if (r->bad || !gofer_calls_attr_ok(attr))
            return false;
        d->attr = attr;
    }
    if (d->head.flags & WIRE_DIRENT_TARGET) {
        d->target = codec_get_str(r, WIRE_PATH_MAX);
        if (!d->target.data || !d->attr || !S_ISLNK(attr->mode))
            return false;
    }
    return d->head.cookie <= INT64_MAX;
}

int gofer_client_readdir(struct gofer_client *c, uint64_t node, uint64_t cookie, uint32_t flags,
                         uint32_t max_size, void (*fn)(void *arg, const struct gofer_dirent *d),
                         void *arg)
{
    struct wire_readdir req = {.node = node,
                               .cookie = cookie,
                               .flags = flags,
                               .max_size = MIN(max_size, (uint32_t)WIRE_SLOT_SIZE)};
    struct wire_readdir_result result = {0};
    struct gofer_slot *s;
    struct codec_writer w;
    struct codec_reader r;
    bool ok = false;
    int err = gofer_calls_begin(c, &req, sizeof(req), &s, &w);
    if (err < 0)
        return err;
    err = gofer_client_finish(c, s, WIRE_OP_READDIR, &w, &r);
    if (err >= 0) {
        codec_get(&r, &result, sizeof(result));
        /* An empty piece that is not the end would be asked for again for ever. */
        ok = s->fds_len == 0 && (result.count || result.end);
        for (uint32_t i = 0; i < result.count && ok; i++) {
            struct gofer_dirent d;
            struct wire_attr attr;
            ok = gofer_calls_dirent(&r, &d, &attr);
            if (ok)
                fn(arg, &d);
        }
        ok = ok && codec_reader_done(&r);
    }
    err = gofer_calls_end(c, s, err, ok);
    return err < 0 ? err : result.end != 0;
}
