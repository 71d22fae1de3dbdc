/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, link text and extended attributes of one inode. The inode is held by an O_PATH
 * descriptor, which most calls refuse; they reach it by its name in the working directory, which is
 * /proc/self/fd. */
#include "gofer/server/srv_meta.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "gofer/server/srv_handlers.h"
#include "platform/base/host.h"

/* Reads a request that is a node id alone. */
static int srv_meta_node_only(struct srv_call *call, struct srv_node **ret_node)
{
    struct wire_node_only req;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in)) {
        call->malformed = true;
        return -EINVAL;
    }
    return srv_handlers_node(call, req.node, ret_node);
}

static int srv_meta_reply_attr(struct srv_call *call, struct srv_node *n)
{
    struct wire_attr attr;
    int err = srv_handlers_attr(call->session, n->fd, "", &attr);
    if (err >= 0)
        codec_put(&call->out, &attr, sizeof(attr));
    return err;
}

int srv_meta_getattr(struct srv_call *call)
{
    struct srv_node *n;
    int err = srv_meta_node_only(call, &n);
    if (err < 0)
        return err;
    err = srv_meta_reply_attr(call, n);
    srv_handlers_put(call, n);
    return err;
}

static struct timespec srv_meta_time(uint32_t mask, uint32_t set, uint32_t now, int64_t sec,
                                     uint32_t nsec)
{
    if (mask & now)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    if (mask & set)
        return (struct timespec){.tv_sec = sec, .tv_nsec = (long)nsec};
    return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int srv_meta_apply(struct srv_node *n, const struct wire_setattr *req)
{
    char self[16];
    int err = 0;
    srv_handlers_fd_name(n->fd, self);
    if (req->mask & WIRE_SET_SIZE) {
        if (!S_ISREG(n->type))
            return S_ISDIR(n->type) ? -EISDIR : -EINVAL;
        err = (int)host_ret(truncate(self, (off_t)req->size));
    }
    if (err >= 0 && (req->mask & (WIRE_SET_UID | WIRE_SET_GID)))
        err = (int)host_ret(fchownat(n->fd, "", req->mask & WIRE_SET_UID ? req->uid : (uid_t)-1,
                                     req->mask & WIRE_SET_GID ? req->gid : (gid_t)-1,
                                     AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
    if (err >= 0 && (req->mask & WIRE_SET_MODE)) {
        if (S_ISLNK(n->type))
            return -EOPNOTSUPP;
        err = (int)host_ret(fchmodat(AT_FDCWD, self, req->mode & 07777, 0));
    }
    if (err >= 0 &&
        (req->mask & (WIRE_SET_ATIME | WIRE_SET_MTIME | WIRE_SET_ATIME_NOW | WIRE_SET_MTIME_NOW))) {
        struct timespec times[2] = {
            srv_meta_time(req->mask, WIRE_SET_ATIME, WIRE_SET_ATIME_NOW, req->atime_sec,
                          req->atime_nsec),
            srv_meta_time(req->mask, WIRE_SET_MTIME, WIRE_SET_MTIME_NOW, req->mtime_sec,
                          req->mtime_nsec),
        };
        err = (int)host_ret(utimensat(AT_FDCWD, self, times, 0));
    }
    return err;
}

int srv_meta_setattr(struct srv_call *call)
{
    struct wire_setattr req;
    struct srv_node *n;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in) || (req.mask & ~(uint32_t)WIRE_SET_ALL) ||
        req.atime_nsec > 999999999 || req.mtime_nsec > 999999999 || req.size > INT64_MAX) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_handlers_node(call, req.node, &n);
    if (err < 0)
        return err;
    err = srv_handlers_read_only(call, n) ? -EROFS : srv_meta_apply(n, &req);
    if (err >= 0)
        err = srv_meta_reply_attr(call, n);
    srv_handlers_put(call, n);
    return err;
}

int srv_meta_readlink(struct srv_call *call)
{
    struct srv_node *n;
    char *target = call->scratch;
    int err = srv_meta_node_only(call, &n);
    if (err < 0)
        return err;
    long size = S_ISLNK(n->type) ? host_ret(readlinkat(n->fd, "", target, WIRE_PATH_MAX)) : -EINVAL;
    srv_handlers_put(call, n);
    if (size < 0)
        return (int)size;
    codec_put_str(&call->out, target, (size_t)size);
    return 0;
}

/* Reads an xattr request's fixed part and name (NUL-terminated into name) and finds the node. */
static int srv_meta_xattr(struct srv_call *call, struct wire_xattr *ret_req,
                          char name[static WIRE_NAME_MAX + 1], struct srv_node **ret_node)
{
    codec_get(&call->in, ret_req, sizeof(*ret_req));
    struct codec_str s = codec_get_str(&call->in, WIRE_NAME_MAX);
    if (!s.data || ret_req->value_size > WIRE_XATTR_SIZE_MAX) {
        call->malformed = true;
        return -EINVAL;
    }
    memcpy(name, s.data, s.size);
    name[s.size] = '\0';
    return srv_handlers_node(call, ret_req->node, ret_node);
}

/* Lets n go and ends a call whose answer is the size bytes put into call->out; size may be −errno. */
static int srv_meta_value(struct srv_call *call, struct srv_node *n, long size)
{
    srv_handlers_put(call, n);
    if (size < 0)
        return size == -ERANGE ? -E2BIG : (int)size;
    call->out.size = (size_t)size;
    return 0;
}

int srv_meta_getxattr(struct srv_call *call)
{
    struct wire_xattr req;
    struct srv_node *n;
    char name[WIRE_NAME_MAX + 1], self[16];
    int err = srv_meta_xattr(call, &req, name, &n);
    if (err < 0)
        return err;
    srv_handlers_fd_name(n->fd, self);
    return srv_meta_value(call, n, host_ret(getxattr(self, name, call->out.data, call->out.capacity)));
}

int srv_meta_setxattr(struct srv_call *call)
{
    struct wire_xattr req;
    struct srv_node *n;
    char name[WIRE_NAME_MAX + 1], self[16];
    int err = srv_meta_xattr(call, &req, name, &n);
    if (err < 0)
        return err;
    const void *value = codec_get_bytes(&call->in, req.value_size);
    if (!codec_reader_done(&call->in) || (req.flags & ~(uint32_t)(XATTR_CREATE | XATTR_REPLACE))) {
        call->malformed = true;
        err = -EINVAL;
    } else if (srv_handlers_read_only(call, n)) {
        err = -EROFS;
    } else {
        srv_handlers_fd_name(n->fd, self);
        err = (int)host_ret(setxattr(self, name, value, req.value_size, (int)req.flags));
    }
    srv_handlers_put(call, n);
    return err;
}

int srv_meta_listxattr(struct srv_call *call)
{
    struct srv_node *n;
    char self[16];
    int err = srv_meta_node_only(call, &n);
    if (err < 0)
        return err;
    srv_handlers_fd_name(n->fd, self);
    return srv_meta_value(call, n, host_ret(listxattr(self, (char *)call->out.data, call->out.capacity)));
}

int srv_meta_removexattr(struct srv_call *call)
{
    struct wire_xattr req;
    struct srv_node *n;
    char name[WIRE_NAME_MAX + 1], self[16];
    int err = srv_meta_xattr(call, &req, name, &n);
    if (err < 0)
        return err;
    srv_handlers_fd_name(n->fd, self);
    err = srv_handlers_read_only(call, n) ? -EROFS : (int)host_ret(removexattr(self, name));
    srv_handlers_put(call, n);
    return err;
}

int srv_meta_statfs(struct srv_call *call)
{
    struct srv_node *n;
    struct statfs st;
    int err = srv_meta_node_only(call, &n);
    if (err < 0)
        return err;
    err = (int)host_ret(fstatfs(n->fd, &st));
    srv_handlers_put(call, n);
    if (err < 0)
        return err;
    struct wire_statfs reply = {
        .type = (uint64_t)st.f_type,
        .bsize = (uint64_t)st.f_bsize,
        .blocks = st.f_blocks,
        .bfree = st.f_bfree,
        .bavail = st.f_bavail,
        .files = st.f_files,
        .ffree = st.f_ffree,
        .namelen = (uint64_t)st.f_namelen,
        .frsize = (uint64_t)st.f_frsize,
    };
    codec_put(&call->out, &reply, sizeof(reply));
    return 0;
}

/* FSYNC and SYNCFS: by a descriptor that is open for reading, which the host asks for. */
static int srv_meta_sync(struct srv_call *call, int (*sync_fd)(int fd))
{
    struct srv_node *n;
    int err = srv_meta_node_only(call, &n);
    if (err < 0)
        return err;
    int fd = -EINVAL;
    if (S_ISDIR(n->type) || S_ISREG(n->type))
        fd = srv_handlers_reopen(call->session, n->fd, O_RDONLY);
    srv_handlers_put(call, n);
    if (fd < 0)
        return fd;
    err = (int)host_ret(sync_fd(fd));
    host_close(fd);
    return err;
}

int srv_meta_fsync(struct srv_call *call)
{
    return srv_meta_sync(call, fsync);
}

int srv_meta_syncfs(struct srv_call *call)
{
    return srv_meta_sync(call, syncfs);
}

int srv_meta_cachestat(struct srv_call *call)
{
    struct wire_cachestat req;
    struct srv_node *n;
    struct host_cachestat st;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in)) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_handlers_node(call, req.node, &n);
    if (err < 0)
        return err;
    int fd = S_ISREG(n->type) ? srv_handlers_reopen(call->session, n->fd, O_RDONLY) : -EINVAL;
    srv_handlers_put(call, n);
    if (fd < 0)
        return fd;
    err = host_cachestat(fd, req.offset, req.size, &st);
    host_close(fd);
    if (err < 0)
        return err;
    struct wire_cached reply = {st.cached, st.dirty, st.writeback, st.evicted, st.recently_evicted};
    codec_put(&call->out, &reply, sizeof(reply));
    return 0;
}

static int srv_meta_apply_flags(int fd, const struct wire_flags *req, uint32_t *ret_flags)
{
    int flags = 0;
    int err = (int)host_ret(ioctl(fd, FS_IOC_GETFLAGS, &flags));
    if (err >= 0 && req->mask) {
        flags = (int)(((uint32_t)flags & ~req->mask) | req->flags);
        err = (int)host_ret(ioctl(fd, FS_IOC_SETFLAGS, &flags));
        if (err >= 0) /* the host may add to it */
            err = (int)host_ret(ioctl(fd, FS_IOC_GETFLAGS, &flags));
    }
    *ret_flags = (uint32_t)flags;
    return err;
}

int srv_meta_flags(struct srv_call *call)
{
    struct wire_flags req;
    struct srv_node *n;
    uint32_t flags;
    codec_get(&call->in, &req, sizeof(req));
    if (!codec_reader_done(&call->in) || (req.mask & ~(uint32_t)WIRE_FLAGS_ALL) || (req.flags & ~req.mask)) {
        call->malformed = true;
        return -EINVAL;
    }
    int err = srv_handlers_node(call, req.node, &n);
    if (err < 0)
        return err;
    int fd = -ENOTTY;
    if (req.mask && srv_handlers_read_only(call, n))
        fd = -EROFS;
    else if (S_ISDIR(n->type) || S_ISREG(n->type))
        fd = srv_handlers_reopen(call->session, n->fd, O_RDONLY | O_NONBLOCK);
    srv_handlers_put(call, n);
    if (fd < 0)
        return fd;
    err = srv_meta_apply_flags(fd, &req, &flags);
    host_close(fd);
    if (err < 0)
        return err;
    codec_put(&call->out, &flags, sizeof(flags));
    return 0;
}
