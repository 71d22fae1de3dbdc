/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up paths and listing directories. */
#include "gofer/server/srv_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gofer/server/srv_handlers.h"
#include "gofer/server/srv_watch.h"
#include "platform/base/host.h"

/* ---- WALK ---- */

struct srv_walk {
    struct srv_call *call;
    struct wire_walk req;
    struct wire_walk_result result;
    struct srv_node *dir; /* where the next component is looked up; referenced */
    size_t target_size;
    bool has_target; /* the last entry is a symbolic link; call->scratch holds its target */
};

/* Checks the path and counts its components. Return: count or −EINVAL. */
static int srv_dir_count(struct codec_str path)
{
    int count = 0;
    const char *at = path.data, *end = path.data + path.size;
    while (at <= end) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash ? slash : end;
        if (!codec_name_ok(at, (size_t)(stop - at)) || ++count > WIRE_WALK_MAX)
            return -EINVAL;
        at = stop + 1;
    }
    return count;
}

static int srv_dir_add(struct srv_walk *w, uint64_t node, const struct wire_attr *attr)
{
    struct wire_entry entry = {.node = node, .attr = *attr};
    codec_put(&w->call->out, &entry, sizeof(entry));
    w->result.count++;
    return S_ISDIR(attr->mode) ? 1 : 0;
}

/* Opens the last component's file. A failure is told beside the walk's result. */
static void srv_dir_open(struct srv_walk *w, int fd, const struct wire_attr *attr)
{
    struct srv_call *call = w->call;
    if (!S_ISREG(attr->mode))
        w->result.open_error = -EINVAL;
    else if (w->req.open_flags != O_RDONLY && srv_handlers_read_only(call, w->dir))
        w->result.open_error = -EROFS;
    else {
        int file = srv_handlers_reopen(call->session, fd, (int)w->req.open_flags);
        w->result.open_error = MIN(file, 0);
        if (file >= 0)
            call->fds[call->fds_len++] = file;
    }
}

/* Looks up one component and adds its entry. Return: 1 for a directory, which becomes w->dir; 0 for
 * anything else; −errno when it can't be had. */
static int srv_dir_component(struct srv_walk *w, const char *name, bool last)
{
    struct srv_session *s = w->call->session;
    struct wire_attr attr;
    if (srv_handlers_hides(w->dir, name))
        return -ENOENT;
    /* One host call is enough for the attributes of a file. */
    if (last && !(w->req.flags & (WIRE_WALK_NODES | WIRE_WALK_OPEN))) {
        int err = srv_handlers_attr(s, w->dir->fd, name, &attr);
        if (err < 0)
            return err;
        if (!S_ISDIR(attr.mode) && !S_ISLNK(attr.mode))
            return srv_dir_add(w, WIRE_NODE_NONE, &attr);
    }
    CLEANUP_CLOSE int fd = srv_handlers_open_child(w->dir->fd, name);
    if (fd < 0)
        return fd;
    int err = srv_handlers_attr(s, fd, "", &attr);
    if (err < 0)
        return err;
    if (S_ISLNK(attr.mode)) {
        long n = host_ret(readlinkat(fd, "", w->call->scratch, WIRE_PATH_MAX));
        if (n < 0)
            return (int)n;
        w->target_size = (size_t)n;
        w->has_target = true;
    }
    bool open = last && (w->req.flags & WIRE_WALK_OPEN);
    if (!S_ISDIR(attr.mode) && !(w->req.flags & WIRE_WALK_NODES)) {
        if (open)
            srv_dir_open(w, fd, &attr);
        return srv_dir_add(w, WIRE_NODE_NONE, &attr);
    }
    if (S_ISDIR(attr.mode)) {
        err = srv_watch_add(s, w->dir->tree, fd, &attr);
        if (err < 0)
            return err;
    }
    struct srv_node *n;
    err = srv_node_new(&s->nodes, TAKE_FD(fd), w->dir->tree, attr.mode, &n);
    if (err < 0)
        return err;
    /* Last, for an opened file goes with a walk that has succeeded. */
    if (open)
        srv_dir_open(w, n->fd, &attr);
    err = srv_dir_add(w, srv_node_id(n), &attr);
    if (err == 1) {
        srv_handlers_put(w->call, w->dir);
        w->dir = n;
    } else {
        srv_handlers_put(w->call, n);
    }
    return err;
}

static void srv_dir_steps(struct srv_walk *w, struct codec_str path)
{
    const char *at = path.data, *end = path.data + path.size;
    for (;;) {
        char name[WIRE_NAME_MAX + 1];
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t size = (size_t)((slash ? slash : end) - at);
        memcpy(name, at, size);
        name[size] = '\0';
        int found = srv_dir_component(w, name, !slash);
        if (found < 0) {
            w->result.end = found == -ENOENT ? WIRE_WALK_MISSING : WIRE_WALK_FAILED;
            w->result.error = found;
            return;
        }
        if (!slash)
            return;
        if (found == 0) {
            w->result.end = WIRE_WALK_STOPPED;
            return;
        }
        at = slash + 1;
    }
}

int srv_dir_walk(struct srv_call *call)
{
    struct srv_walk w = {.call = call};
    codec_get(&call->in, &w.req, sizeof(w.req));
    struct codec_str path = codec_get_str(&call->in, WIRE_PATH_MAX);
    if (!codec_reader_done(&call->in) || w.req.open_flags >= O_ACCMODE ||
        (w.req.flags & ~(uint32_t)(WIRE_WALK_NODES | WIRE_WALK_OPEN))) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_dir_count(path);
    if (err < 0)
        return err;
    err = srv_handlers_node(call, w.req.node, &w.dir);
    if (err < 0)
        return err;
    if (!S_ISDIR(w.dir->type)) {
        srv_handlers_put(call, w.dir);
        return -ENOTDIR;
    }
    void *head = codec_reserve(&call->out, sizeof(w.result));
    w.result.open_error = -ENOENT;
    srv_dir_steps(&w, path);
    srv_handlers_put(call, w.dir);
    memcpy(head, &w.result, sizeof(w.result));
    if (w.has_target)
        codec_put_str(&call->out, call->scratch, w.target_size);
    return 0;
}

/* ---- READDIR ---- */

enum {
    SRV_DIR_BUFFER = SRV_SCRATCH_SIZE - WIRE_PATH_MAX - 1, /* host entries read at a time */
    SRV_DIR_ENTRY_MAX = sizeof(struct wire_dirent) + 2 + WIRE_NAME_MAX + sizeof(struct wire_attr) +
                        2 + WIRE_PATH_MAX,
    SRV_DIR_REPLY_MIN = 2 * SRV_DIR_ENTRY_MAX
};

/* Adds one entry. Return: false when it does not fit. */
static bool srv_dir_emit(struct srv_call *call, int fd, const struct dirent64 *d, uint32_t flags)
{
    struct codec_writer *w = &call->out;
    struct wire_dirent entry = {.ino = d->d_ino, .cookie = (uint64_t)d->d_off, .type = d->d_type};
    struct wire_attr attr;
    char *target = call->scratch + SRV_DIR_BUFFER;
    long target_size = -1;
    size_t size = strnlen(d->d_name, WIRE_NAME_MAX);
    /* Room is checked for the worst case first, so that no host call is made for nothing. */
    if (w->capacity - w->size < SRV_DIR_ENTRY_MAX)
        return false;
    if ((flags & WIRE_READDIR_ATTRS) &&
        srv_handlers_attr(call->session, fd, d->d_name, &attr) >= 0) {
        entry.flags |= WIRE_DIRENT_ATTR;
        if (S_ISLNK(attr.mode))
            target_size = host_ret(readlinkat(fd, d->d_name, target, WIRE_PATH_MAX));
        if (target_size >= 0)
            entry.flags |= WIRE_DIRENT_TARGET;
    }
    codec_put(w, &entry, sizeof(entry));
    codec_put_str(w, d->d_name, size);
    if (entry.flags & WIRE_DIRENT_ATTR)
        codec_put(w, &attr, sizeof(attr));
    if (entry.flags & WIRE_DIRENT_TARGET)
        codec_put_str(w, target, (size_t)target_size);
    return true;
}

/* How much to read from the host so that about all of it fits into the reply. */
static size_t srv_dir_read_size(const struct codec_writer *w, uint32_t flags)
{
    size_t room = w->capacity - w->size;
    if (flags & WIRE_READDIR_ATTRS)
        room /= 5;
    return MIN(MAX(room, (size_t)1024), (size_t)SRV_DIR_BUFFER);
}

/* Fills the reply from fd. *inout_pos is where fd stands. Return: 0 or −errno. */
static int srv_dir_fill(struct srv_call *call, const struct srv_node *dir, int fd, uint32_t flags, uint64_t *inout_pos,
                        struct wire_readdir_result *result)
{
    char *buffer = call->scratch;
    while (call->out.capacity - call->out.size >= SRV_DIR_ENTRY_MAX) {
        size_t want = srv_dir_read_size(&call->out, flags);
        long n = host_ret(syscall(SYS_getdents64, fd, buffer, want));
        if (n < 0)
            return result->count ? 0 : (int)n;
        if (n == 0) {
            result->end = 1;
            return 0;
        }
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(buffer + at);
            at += d->d_reclen;
            *inout_pos = (uint64_t)d->d_off;
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
                srv_handlers_hides(dir, d->d_name))
                continue;
            if (!srv_dir_emit(call, fd, d, flags)) {
                /* fd is past what was sent: a position that no cookie has makes the next read seek.
                 */
                *inout_pos = UINT64_MAX;
                return 0;
            }
            result->count++;
        }
    }
    return 0;
}

/* Return: descriptor for reading the directory, standing at cookie, or −errno. */
static int srv_dir_reader(struct srv_call *call, struct srv_node *n, uint64_t cookie)
{
    uint64_t pos = 0;
    int fd = srv_node_take_reader(&call->session->nodes, n, &pos);
    if (fd < 0) {
        pos = 0;
        fd = srv_handlers_reopen(call->session, n->fd, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
            return fd;
    }
    if (pos != cookie) {
        long at = host_ret(lseek(fd, (off_t)cookie, SEEK_SET));
        if (at < 0) {
            host_close(fd);
            return (int)at;
        }
    }
    return fd;
}

int srv_dir_readdir(struct srv_call *call)
{
    struct wire_readdir req;
    struct wire_readdir_result result = {0};
    struct srv_node *n;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in) || req.max_size > WIRE_SLOT_SIZE ||
        (req.flags & ~(uint32_t)WIRE_READDIR_ATTRS)) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_handlers_node(call, req.node, &n);
    if (err < 0)
        return err;
    int fd = S_ISDIR(n->type) ? srv_dir_reader(call, n, req.cookie) : -ENOTDIR;
    if (fd < 0) {
        srv_handlers_put(call, n);
        return fd;
    }
    uint64_t pos = req.cookie;
    call->out.capacity = MAX(req.max_size, (uint32_t)SRV_DIR_REPLY_MIN);
    void *head = codec_reserve(&call->out, sizeof(result));
    err = srv_dir_fill(call, n, fd, req.flags, &pos, &result);
    memcpy(head, &result, sizeof(result));
    if (err < 0 || result.end)
        host_close(fd);
    else
        srv_node_keep_reader(&call->session->nodes, n, fd, pos);
    srv_handlers_put(call, n);
    return err;
}
