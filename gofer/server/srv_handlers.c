/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on the session itself, and what all operations share. */
#include "gofer/server/srv_handlers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gofer/server/srv_ahead.h"
#include "gofer/server/srv_dir.h"
#include "gofer/server/srv_exit.h"
#include "gofer/server/srv_make.h"
#include "gofer/server/srv_meta.h"
#include "gofer/server/srv_watch.h"
#include "platform/base/host.h"

/* ---- helpers ---- */

int srv_handlers_node(struct srv_call *call, uint64_t id, struct srv_node **ret_node)
{
    struct srv_node *n = srv_node_get(&call->session->nodes, id);
    if (!n)
        return -EBADF;
    *ret_node = n;
    return 0;
}

void srv_handlers_put(struct srv_call *call, struct srv_node *n)
{
    srv_node_put(&call->session->nodes, n);
}

bool srv_handlers_read_only(const struct srv_call *call, const struct srv_node *n)
{
    return call->session->trees[n->tree].read_only;
}

bool srv_handlers_hides(const struct srv_node *dir, const char *name)
{
    return dir->holds_store && !strcmp(name, WIRE_STORE_NAME);
}

int srv_handlers_dir_for_write(struct srv_call *call, uint64_t id, struct srv_node **ret_node)
{
    struct srv_node *n;
    int err = srv_handlers_node(call, id, &n);
    if (err < 0)
        return err;
    if (!S_ISDIR(n->type))
        err = -ENOTDIR;
    else if (srv_handlers_read_only(call, n))
        err = -EROFS;
    if (err < 0)
        srv_handlers_put(call, n);
    else
        *ret_node = n;
    return err;
}

int srv_handlers_name(struct srv_call *call, char name[static WIRE_NAME_MAX + 1])
{
    struct codec_str s = codec_get_str(&call->in, WIRE_PATH_MAX);
    if (!s.data || !codec_name_ok(s.data, s.size))
        return -EINVAL;
    memcpy(name, s.data, s.size);
    name[s.size] = '\0';
    return 0;
}

int srv_handlers_open_child(int dir_fd, const char *name)
{
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)host_ret(syscall(SYS_openat2, dir_fd, name, &how, sizeof(how)));
}

void srv_handlers_fd_name(int fd, char ret_name[static 16])
{
    char digits[16];
    unsigned len = 0, at = 0;
    do
        digits[len++] = (char)('0' + fd % 10);
    while (fd /= 10);
    while (len)
        ret_name[at++] = digits[--len];
    ret_name[at] = '\0';
}

int srv_handlers_reopen(struct srv_session *s, int fd, int flags)
{
    char name[16];
    srv_handlers_fd_name(fd, name);
    return (int)host_ret(openat(s->proc_self_fd, name, flags | O_CLOEXEC | O_NOCTTY));
}

static uint32_t srv_handlers_attr_flags(const struct statx *stx)
{
    uint32_t flags = 0;
    if (stx->stx_mask & STATX_BTIME)
        flags |= WIRE_ATTR_BTIME;
    if (stx->stx_attributes & STATX_ATTR_IMMUTABLE)
        flags |= WIRE_ATTR_IMMUTABLE;
    if (stx->stx_attributes & STATX_ATTR_APPEND)
        flags |= WIRE_ATTR_APPEND;
    return flags;
}

int srv_handlers_attr(struct srv_session *s, int fd, const char *name, struct wire_attr *ret_attr)
{
    struct statx stx;
    int err = (int)host_ret(statx(fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                                  STATX_BASIC_STATS | STATX_BTIME, &stx));
    if (err < 0)
        return err;
    *ret_attr = (struct wire_attr){
        .ino = stx.stx_ino,
        .size = stx.stx_size,
        .blocks = stx.stx_blocks,
        .atime_sec = stx.stx_atime.tv_sec,
        .mtime_sec = stx.stx_mtime.tv_sec,
        .ctime_sec = stx.stx_ctime.tv_sec,
        .btime_sec = stx.stx_btime.tv_sec,
        .atime_nsec = stx.stx_atime.tv_nsec,
        .mtime_nsec = stx.stx_mtime.tv_nsec,
        .ctime_nsec = stx.stx_ctime.tv_nsec,
        .btime_nsec = stx.stx_btime.tv_nsec,
        .mode = stx.stx_mode,
        .nlink = stx.stx_nlink,
        .uid = stx.stx_uid,
        .gid = stx.stx_gid,
        .rdev_major = stx.stx_rdev_major,
        .rdev_minor = stx.stx_rdev_minor,
        .blksize = stx.stx_blksize,
        .dev = srv_session_dev(s, stx.stx_dev_major, stx.stx_dev_minor),
        .flags = srv_handlers_attr_flags(&stx),
    };
    return 0;
}

int srv_handlers_put_entry(struct srv_call *call, int fd, uint32_t tree,
                           const struct wire_attr *attr)
{
    struct srv_node *n;
    int err = srv_node_new(&call->session->nodes, fd, tree, attr->mode, &n);
    if (err < 0)
        return err;
    struct wire_entry entry = {.node = srv_node_id(n), .attr = *attr};
    codec_put(&call->out, &entry, sizeof(entry));
    srv_handlers_put(call, n);
    return 0;
}

/* ---- operations ---- */

static int srv_handlers_attach(struct srv_call *call)
{
    struct wire_attach req;
    struct wire_attr attr;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in) || req.tree >= call->session->trees_len ||
        (req.flags & ~(uint32_t)(WIRE_ATTACH_WATCH | WIRE_ATTACH_LANE))) {
        call->malformed = true;
        return -EINVAL;
    }
    const struct gofer_tree *tree = &call->session->trees[req.tree];
    int fd = (int)host_ret(fcntl(tree->fd, F_DUPFD_CLOEXEC, 0));
    if (fd < 0)
        return fd;
    int err = srv_handlers_attr(call->session, fd, "", &attr);
    int watch_fd = err >= 0 && (req.flags & WIRE_ATTACH_WATCH)
                       ? srv_watch_tree(call->session, req.tree, fd, attr.dev)
                       : -1;
    if (watch_fd >= 0) {
        call->fds[call->fds_len++] = watch_fd;
        err = srv_watch_add(call->session, req.tree, fd, &attr);
    }
    if (err < 0) {
        host_close(fd);
        return err;
    }
    int lane = req.flags & WIRE_ATTACH_LANE ? srv_session_take_lane(call->session) : -1;
    if (lane >= 0)
        call->fds[call->fds_len++] = lane;
    uint32_t flags = (tree->read_only ? WIRE_TREE_READ_ONLY : 0) | (watch_fd >= 0 ? WIRE_TREE_WATCHED : 0) |
                     (lane >= 0 ? WIRE_TREE_LANE : 0) | (srv_watch_is_local(fd) ? WIRE_TREE_LOCAL : 0);
    struct srv_node *n;
    err = srv_node_new(&call->session->nodes, fd, req.tree, attr.mode, &n);
    if (err < 0)
        return err;
    /* Before the sentry knows the node's number. */
    n->holds_store = req.tree == 0;
    struct wire_entry entry = {.node = srv_node_id(n), .attr = attr};
    codec_put(&call->out, &entry, sizeof(entry));
    codec_put(&call->out, &flags, sizeof(flags));
    srv_handlers_put(call, n);
    return 0;
}

static int srv_handlers_open(struct srv_call *call)
{
    struct wire_open req;
    struct srv_node *n;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in) || (req.flags & ~(uint32_t)O_ACCMODE) ||
        req.flags == O_ACCMODE) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_handlers_node(call, req.node, &n);
    if (err < 0)
        return err;
    if (!S_ISREG(n->type))
        err = -EINVAL;
    else if (req.flags != O_RDONLY && srv_handlers_read_only(call, n))
        err = -EROFS;
    else
        err = srv_handlers_reopen(call->session, n->fd, (int)req.flags);
    srv_handlers_put(call, n);
    if (err < 0)
        return err;
    call->fds[call->fds_len++] = err;
    return 0;
}

static int srv_handlers_release(struct srv_call *call)
{
    struct wire_release req;
    codec_get(&call->in, &req, sizeof(req));
    if (req.count > WIRE_RELEASE_MAX) {
        call->malformed = true;
        return -EINVAL;
    }
    for (uint32_t i = 0; i < req.count && !call->in.bad; i++) {
        uint64_t node;
        codec_get(&call->in, &node, sizeof(node));
        if ((uint32_t)node & WIRE_RELEASE_WATCH)
            srv_watch_remove(call->session, (int)(node & (WIRE_RELEASE_WATCH - 1)));
        else
            srv_node_release(&call->session->nodes, node);
    }
    if (!codec_reader_done(&call->in))
        call->malformed = true;
    return 0;
}

static int srv_handlers_exit(struct srv_call *call)
{
    struct wire_exit req;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in)) {
        call->malformed = true;
        return -EINVAL;
    }
    srv_exit(req.wait_status);
}

srv_handler srv_handlers_find(enum wire_op op)
{
    static const srv_handler handlers[WIRE_OP_COUNT] = {
        [WIRE_OP_ATTACH] = srv_handlers_attach,   [WIRE_OP_WALK] = srv_dir_walk,
        [WIRE_OP_OPEN] = srv_handlers_open,       [WIRE_OP_CREATE] = srv_make_create,
        [WIRE_OP_MKDIR] = srv_make_mkdir,         [WIRE_OP_SYMLINK] = srv_make_symlink,
        [WIRE_OP_MKNOD] = srv_make_mknod,         [WIRE_OP_TMPFILE] = srv_make_tmpfile,
        [WIRE_OP_LINK] = srv_make_link,           [WIRE_OP_UNLINK] = srv_make_unlink,
        [WIRE_OP_RENAME] = srv_make_rename,       [WIRE_OP_READLINK] = srv_meta_readlink,
        [WIRE_OP_GETATTR] = srv_meta_getattr,     [WIRE_OP_SETATTR] = srv_meta_setattr,
        [WIRE_OP_GETXATTR] = srv_meta_getxattr,   [WIRE_OP_SETXATTR] = srv_meta_setxattr,
        [WIRE_OP_LISTXATTR] = srv_meta_listxattr, [WIRE_OP_REMOVEXATTR] = srv_meta_removexattr,
        [WIRE_OP_READDIR] = srv_dir_readdir,      [WIRE_OP_STATFS] = srv_meta_statfs,
        [WIRE_OP_FSYNC] = srv_meta_fsync,         [WIRE_OP_RELEASE] = srv_handlers_release,
        [WIRE_OP_EXIT] = srv_handlers_exit,       [WIRE_OP_SYNCFS] = srv_meta_syncfs,
        [WIRE_OP_OPEN_MANY] = srv_ahead_open_many, [WIRE_OP_CACHESTAT] = srv_meta_cachestat,
        [WIRE_OP_FLAGS] = srv_meta_flags,
    };
    return op < WIRE_OP_COUNT ? handlers[op] : NULL;
}
