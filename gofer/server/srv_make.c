/* SPDX-License-Identifier: Apache-2.0 */
/* Making, removing and moving directory entries. */
#include "gofer/server/srv_make.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "gofer/server/srv_handlers.h"
#include "gofer/server/srv_rules.h"
#include "gofer/server/srv_watch.h"
#include "platform/base/host.h"

/* Reads the fixed part and the name of CREATE, MKDIR, SYMLINK and MKNOD and finds the directory. */
static int srv_make_begin(struct srv_call *call, struct wire_make *ret_req,
                          char name[static WIRE_NAME_MAX + 1], struct srv_node **ret_dir)
{
    codec_get(&call->in, ret_req, sizeof(*ret_req));
    int err = srv_handlers_name(call, name);
    if (call->in.bad || ret_req->open_flags >= O_ACCMODE ||
        (ret_req->flags & ~(uint32_t)WIRE_MAKE_NODE) ||
        (ret_req->mode & ~(uint32_t)(S_IFMT | 07777))) {
        call->malformed = true;
        return -EINVAL;
    }
    if (err < 0)
        return err;
    if ((ret_req->flags & WIRE_MAKE_NODE) && !srv_node_has_room(&call->session->nodes))
        return -ENFILE;
    struct srv_node *dir;
    err = srv_handlers_dir_for_write(call, ret_req->dir, &dir);
    if (err == 0 && srv_handlers_hides(dir, name)) {
        srv_handlers_put(call, dir);
        return -EPERM;
    }
    if (err == 0)
        *ret_dir = dir;
    return err;
}

/* Gives the new inode behind fd (O_PATH or not) the owner, group and mode that were asked for, when
 * the host has not done so already. inout_attr are its attributes. */
static int srv_make_own(struct srv_call *call, int fd, const struct wire_make *req,
                        struct wire_attr *inout_attr)
{
    bool changed = false;
    int err;
    if (inout_attr->uid != req->uid || inout_attr->gid != req->gid) {
        err = (int)host_ret(
            fchownat(fd, "", req->uid, req->gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
        if (err < 0)
            return err;
        changed = true;
    }
    /* A change of owner clears set-id bits. */
    if (!S_ISLNK(inout_attr->mode) &&
        ((inout_attr->mode ^ req->mode) & 07777 || (changed && (req->mode & 06000)))) {
        char self[16];
        srv_handlers_fd_name(fd, self);
        err = (int)host_ret(fchmodat(call->session->proc_self_fd, self, req->mode & 07777, 0));
        if (err < 0)
            return err;
        changed = true;
    }
    return changed ? srv_handlers_attr(call->session, fd, "", inout_attr) : 0;
}

/* Writes the entry of the new inode: with a node made from fd (consumed) if want_node. */
static int srv_make_entry(struct srv_call *call, int fd, uint32_t tree, bool want_node,
                          const struct wire_attr *attr)
{
    if (want_node)
        return srv_handlers_put_entry(call, fd, tree, attr);
    struct wire_entry entry = {.node = WIRE_NODE_NONE, .attr = *attr};
    codec_put(&call->out, &entry, sizeof(entry));
    host_close(fd);
    return 0;
}

/* After mkdirat, symlinkat or mknodat succeeded: owner, mode, and the reply. */
static int srv_make_finish(struct srv_call *call, struct srv_node *dir, const char *name,
                           const struct wire_make *req, mode_t type)
{
    struct wire_attr attr;
    CLEANUP_CLOSE int fd = srv_handlers_open_child(dir->fd, name);
    if (fd < 0)
        return fd;
    int err = srv_handlers_attr(call->session, fd, "", &attr);
    if (err < 0)
        return err;
    /* Someone else has put another thing there already: leave that alone. */
    if ((attr.mode & S_IFMT) != type)
        return -ESTALE;
    err = srv_make_own(call, fd, req, &attr);
    if (err < 0) {
        (void)unlinkat(dir->fd, name, type == S_IFDIR ? AT_REMOVEDIR : 0);
        return err;
    }
    bool want_node = type == S_IFDIR || (req->flags & WIRE_MAKE_NODE);
    if (type == S_IFDIR) {
        err = srv_watch_add(call->session, dir->tree, fd, &attr);
        if (err < 0)
            return err;
    }
    return srv_make_entry(call, TAKE_FD(fd), dir->tree, want_node, &attr);
}

int srv_make_mkdir(struct srv_call *call)
{
    struct wire_make req;
    struct srv_node *dir;
    char name[WIRE_NAME_MAX + 1];
    int err = srv_make_begin(call, &req, name, &dir);
    if (err < 0)
        return err;
    if (!srv_node_has_room(&call->session->nodes)) {
        srv_handlers_put(call, dir);
        return -ENFILE;
    }
    err = (int)host_ret(mkdirat(dir->fd, name, req.mode & 07777));
    if (err >= 0)
        err = srv_make_finish(call, dir, name, &req, S_IFDIR);
    srv_handlers_put(call, dir);
    return err;
}

int srv_make_symlink(struct srv_call *call)
{
    struct wire_make req;
    struct srv_node *dir;
    char name[WIRE_NAME_MAX + 1], *target = call->scratch;
    int err = srv_make_begin(call, &req, name, &dir);
    if (err < 0)
        return err;
    struct codec_str text = codec_get_str(&call->in, WIRE_PATH_MAX);
    if (!codec_reader_done(&call->in)) {
        call->malformed = true;
        srv_handlers_put(call, dir);
        return -EINVAL;
    }
    memcpy(target, text.data, text.size);
    target[text.size] = '\0';
    err = (int)host_ret(symlinkat(target, dir->fd, name));
    if (err >= 0)
        err = srv_make_finish(call, dir, name, &req, S_IFLNK);
    srv_handlers_put(call, dir);
    return err;
}

int srv_make_mknod(struct srv_call *call)
{
    struct wire_make req;
    struct srv_node *dir;
    char name[WIRE_NAME_MAX + 1];
    int err = srv_make_begin(call, &req, name, &dir);
    if (err < 0)
        return err;
    mode_t type = req.mode & S_IFMT;
    err = srv_rules_mknod(type, req.rdev_major, req.rdev_minor);
    if (err >= 0)
        err = (int)host_ret(mknodat(dir->fd, name, type | (req.mode & 07777),
                                    makedev(req.rdev_major, req.rdev_minor)));
    if (err >= 0)
        err = srv_make_finish(call, dir, name, &req, type);
    srv_handlers_put(call, dir);
    return err;
}

/* The part of CREATE and TMPFILE after the host has made and opened the file. fd is consumed. */
static int srv_make_opened(struct srv_call *call, int file, uint32_t tree,
                           const struct wire_make *req)
{
    CLEANUP_CLOSE int fd = file;
    struct wire_attr attr;
    int node_fd = -1;
    int err = srv_handlers_attr(call->session, fd, "", &attr);
    if (err >= 0)
        err = srv_make_own(call, fd, req, &attr);
    if (err >= 0 && (req->flags & WIRE_MAKE_NODE))
        err = node_fd = srv_handlers_reopen(call->session, fd, O_PATH);
    if (err >= 0)
        err = srv_make_entry(call, node_fd, tree, node_fd >= 0, &attr);
    if (err < 0)
        return err;
    call->fds[call->fds_len++] = TAKE_FD(fd);
    return 0;
}

static int srv_make_open(int dir_fd, const char *name, uint32_t flags, uint32_t mode)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
        .mode = mode & 07777,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)host_ret(syscall(SYS_openat2, dir_fd, name, &how, sizeof(how)));
}

int srv_make_create(struct srv_call *call)
{
    struct wire_make req;
    struct srv_node *dir;
    char name[WIRE_NAME_MAX + 1];
    int err = srv_make_begin(call, &req, name, &dir);
    if (err < 0)
        return err;
    err = srv_make_open(dir->fd, name, req.open_flags | O_CREAT | O_EXCL, req.mode);
    if (err >= 0) {
        err = srv_make_opened(call, err, dir->tree, &req);
        if (err < 0)
            (void)unlinkat(dir->fd, name, 0);
    }
    srv_handlers_put(call, dir);
    return err;
}

int srv_make_tmpfile(struct srv_call *call)
{
    struct wire_make req;
    struct srv_node *dir;
    codec_get(&call->in, &req, sizeof(req));
    struct codec_str none = codec_get_str(&call->in, 0);
    if (!none.data || !codec_reader_done(&call->in) || req.open_flags >= O_ACCMODE ||
        (req.flags & ~(uint32_t)WIRE_MAKE_NODE)) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_handlers_dir_for_write(call, req.dir, &dir);
    if (err < 0)
        return err;
    err = srv_make_open(dir->fd, ".", req.open_flags | O_TMPFILE, req.mode);
    if (err >= 0)
        err = srv_make_opened(call, err, dir->tree, &req);
    srv_handlers_put(call, dir);
    return err;
}

int srv_make_link(struct srv_call *call)
{
    struct wire_link req;
    struct srv_node *dir, *n;
    struct wire_attr attr;
    char name[WIRE_NAME_MAX + 1], self[16];
    codec_get(&call->in, &req, sizeof(req));
    int err = srv_handlers_name(call, name);
    if (err < 0)
        return err;
    err = srv_handlers_dir_for_write(call, req.dir, &dir);
    if (err < 0)
        return err;
    err = srv_handlers_node(call, req.node, &n);
    if (err >= 0) {
        srv_handlers_fd_name(n->fd, self);
        if (n->tree != dir->tree)
            err = -EXDEV;
        else if (srv_handlers_hides(dir, name))
            err = -EPERM;
        else
            err = (int)host_ret(
                linkat(call->session->proc_self_fd, self, dir->fd, name, AT_SYMLINK_FOLLOW));
        if (err >= 0)
            err = srv_handlers_attr(call->session, n->fd, "", &attr);
        if (err >= 0)
            codec_put(&call->out, &attr, sizeof(attr));
        srv_handlers_put(call, n);
    }
    srv_handlers_put(call, dir);
    return err;
}

int srv_make_unlink(struct srv_call *call)
{
    struct wire_unlink req;
    struct srv_node *dir;
    char name[WIRE_NAME_MAX + 1];
    codec_get(&call->in, &req, sizeof(req));
    int err = srv_handlers_name(call, name);
    if (req.flags & ~(uint32_t)AT_REMOVEDIR)
        call->malformed = true;
    if (err < 0 || call->malformed)
        return -EINVAL;
    err = srv_handlers_dir_for_write(call, req.dir, &dir);
    if (err < 0)
        return err;
    err = srv_handlers_hides(dir, name) ? -ENOENT : (int)host_ret(unlinkat(dir->fd, name, (int)req.flags));
    srv_handlers_put(call, dir);
    return err;
}

int srv_make_rename(struct srv_call *call)
{
    struct wire_rename req;
    struct srv_node *old_dir, *new_dir;
    char old_name[WIRE_NAME_MAX + 1], new_name[WIRE_NAME_MAX + 1];
    codec_get(&call->in, &req, sizeof(req));
    int err = srv_handlers_name(call, old_name);
    if (err >= 0)
        err = srv_handlers_name(call, new_name);
    if (req.flags & ~(uint32_t)(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT))
        call->malformed = true;
    if (err < 0 || call->malformed)
        return -EINVAL;
    err = srv_handlers_dir_for_write(call, req.old_dir, &old_dir);
    if (err < 0)
        return err;
    err = srv_handlers_dir_for_write(call, req.new_dir, &new_dir);
    if (err >= 0) {
        if (old_dir->tree != new_dir->tree)
            err = -EXDEV;
        else if (srv_handlers_hides(old_dir, old_name))
            err = -ENOENT;
        else if (srv_handlers_hides(new_dir, new_name))
            err = -EPERM;
        else
            /* The C library makes another call, which is not in the seccomp list, of flags 0. */
            err = (int)host_ret(
                syscall(SYS_renameat2, old_dir->fd, old_name, new_dir->fd, new_name, req.flags));
        srv_handlers_put(call, new_dir);
    }
    srv_handlers_put(call, old_dir);
    return err;
}
