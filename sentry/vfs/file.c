/* SPDX-License-Identifier: Apache-2.0 */
/* Open file descriptions and the wrappers of their operations. */
#include "sentry/vfs/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/vfs/dnotify.h"
#include "sentry/vfs/eventpoll.h"
#include "sentry/vfs/flock.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/lease.h"
#include "sentry/vfs/notify.h"
#include "sentry/vfs/path_walk.h"

/* open(2) bits that are about the act of opening. */
#define FILE_OPEN_ONLY (O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC | FILE_OPEN_EXEC | FILE_OPEN_QUIET)

/* ---- life ---- */

struct file *file_new(const struct path *path, uint32_t flags, const struct file_ops *ops,
                      const struct cred *cred)
{
    if (limit_charge(LIMIT_KIND_FILES, 1) < 0)
        return NULL;
    struct file *f = NEW(struct file);
    if (!f) {
        limit_uncharge(LIMIT_KIND_FILES, 1);
        return NULL;
    }
    ref_init(&f->ref);
    f->ops = ops;
    f->path = path_ref(*path);
    f->inode = inode_ref(path->dentry->inode);
    f->flags = flags;
    f->cred = cred ? cred_ref(cred) : NULL;
    list_init(&f->epoll_items);
    sleeplock_init(&f->pos_lock);
    return f;
}

struct file *file_ref(struct file *f)
{
    ref_get(&f->ref);
    return f;
}

static void file_uncount(struct file *f)
{
    if (f->reader_counted)
        f->inode->readers--;
    f->reader_counted = false;
    if (!f->writer_counted)
        return;
    f->writer_counted = false;
    inode_put_write(f->inode);
    if (f->path.mount)
        f->path.mount->writers--;
}

static void file_free(struct file *f)
{
    struct path path = f->path;
    struct inode *inode = f->inode;
    const struct cred *cred = f->cred;
    mem_free(f);
    limit_uncharge(LIMIT_KIND_FILES, 1);
    path_unref(&path);
    inode_unref(inode);
    cred_unref(cred);
}

void file_unref(struct file *f)
{
    if (!f || !ref_put(&f->ref))
        return;
    /* The hooks below may look at f but not keep it. */
    notify_file(f, file_writable(f) ? IN_CLOSE_WRITE : IN_CLOSE_NOWRITE);
    if (!list_empty(&f->epoll_items))
        eventpoll_file_gone(f);
    if (f->inode->dnotify)
        dnotify_close(f, NULL);
    if (f->inode->leases)
        lease_close(f);
    if (f->async)
        f->async->free(f);
    if (f->inode->locks)
        flock_release_file(f);
    if (f->ops && f->ops->release)
        f->ops->release(f);
    file_uncount(f);
    file_free(f);
}

static const struct file_ops file_path_ops = {0};

int file_open_inode(struct ctx *ctx, const struct path *path, uint32_t flags, struct file **ret_file)
{
    struct inode *inode = path->dentry->inode;
    struct file *f = file_new(path, flags, &file_path_ops, ctx->cred);
    if (!f)
        return -ENFILE;
    int ret = 0;
    f->no_notify = flags & FILE_OPEN_QUIET;
    if (!(flags & O_PATH)) {
        if (S_ISREG(inode->mode) && file_writable(f)) {
            ret = inode_get_write(inode);
            if (ret == 0) {
                f->writer_counted = true;
                if (f->path.mount)
                    f->path.mount->writers++;
            }
        }
        if (S_ISREG(inode->mode) && !file_writable(f) && file_readable(f)) {
            inode->readers++;
            f->reader_counted = true;
        }
        if (ret == 0)
            ret = landlock_fs_open(ctx, f, flags & FILE_OPEN_EXEC);
        if (ret == 0 && (flags & FILE_OPEN_EXEC))
            ret = notify_ask(ctx, f, NOTIFY_OPEN_EXEC_PERM);
        if (ret == 0)
            ret = notify_ask(ctx, f, NOTIFY_OPEN_PERM);
        if (ret == 0 && inode->leases)
            ret = lease_break(ctx, inode, flags);
        if (ret == 0)
            ret = inode->ops->open ? inode->ops->open(ctx, inode, f) : -ENXIO;
    }
    if (ret < 0) {
        file_uncount(f);
        file_free(f);
        return ret;
    }
    f->flags &= ~(uint32_t)FILE_OPEN_ONLY;
    *ret_file = f;
    return 0;
}

/* ---- objects without a directory ---- */

enum file_anon_fs { FILE_ANON_PIPE, FILE_ANON_SOCKET, FILE_ANON_OTHER, FILE_ANON_LEN };

static struct mount *file_anon_mount(enum file_anon_fs which)
{
    static const struct {
        const char *type;
        uint64_t magic;
    } kinds[FILE_ANON_LEN] = {
        [FILE_ANON_PIPE] = {"pipefs", 0x50495045},
        [FILE_ANON_SOCKET] = {"sockfs", 0x534f434b},
        [FILE_ANON_OTHER] = {"anon_inodefs", 0x09041934},
    };
    static const struct inode_ops no_ops = {0};
    static struct mount *mounts[FILE_ANON_LEN];
    if (mounts[which])
        return mounts[which];
    struct superblock *sb = superblock_new(kinds[which].type, kinds[which].magic, NULL, NULL);
    struct inode *inode = sb ? inode_alloc(sb, &no_ops, sizeof(struct inode), S_IFDIR | 0555) : NULL;
    struct dentry *root = inode ? dentry_new_root(inode) : NULL;
    superblock_unref(sb);
    if (root)
        mounts[which] = mount_new_internal(root);
    return mounts[which];
}

/* An open of /proc/PID/fd/N may meet any anonymous object: only those whose class allows it come here again. */
static int file_anon_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    return S_ISFIFO(inode->mode) ? vfs_special_open(ctx, inode, file) : -ENXIO;
}

static const struct inode_ops file_anon_inode_ops = {.open = file_anon_open};

struct file *file_new_anon(const char *name_fmt_class, uint32_t mode, uint32_t flags,
                           const struct file_ops *ops, void *priv, const struct cred *cred)
{
    enum file_anon_fs which = !strcmp(name_fmt_class, "pipe")     ? FILE_ANON_PIPE
                              : !strcmp(name_fmt_class, "socket") ? FILE_ANON_SOCKET
                                                                  : FILE_ANON_OTHER;
    struct mount *m = file_anon_mount(which);
    if (!m)
        return NULL;
    struct inode *inode = inode_alloc(m->sb, &file_anon_inode_ops, sizeof(*inode), mode);
    if (!inode)
        return NULL;
    inode->ino = inode_next_ino();
    inode->uid = cred ? cred->fsuid : 0;
    inode->gid = cred ? cred->fsgid : 0;
    char name[64];
    snprintf(name, sizeof(name), which == FILE_ANON_OTHER ? "%s" : "%s:[%llu]", name_fmt_class,
             (unsigned long long)inode->ino);
    struct path path = {.mount = m, .dentry = dentry_new_detached(inode, name)};
    if (!path.dentry)
        return NULL;
    struct file *f = file_new(&path, flags, ops, cred);
    dentry_unref(path.dentry);
    if (f)
        f->priv = priv;
    return f;
}

/* ---- operations ---- */

void file_accessed(struct file *f)
{
    struct inode *inode = f->inode;
    const struct mount *m = f->path.mount;
    if ((f->flags & O_NOATIME) || (inode->flags & INODE_FL_NOATIME) || !m || (m->flags & MS_NOATIME) || ((m->flags | m->sb->flags) & MS_RDONLY) ||
        ((m->flags & MS_NODIRATIME) && inode_is_dir(inode)))
        return;
    /* relatime: once after each change, and once a day. */
    if (m->flags & MS_RELATIME) {
        const struct timespec *a = &inode->atime, *mt = &inode->mtime, *ct = &inode->ctime;
        bool newer = a->tv_sec > mt->tv_sec || (a->tv_sec == mt->tv_sec && a->tv_nsec > mt->tv_nsec);
        newer = newer && (a->tv_sec > ct->tv_sec || (a->tv_sec == ct->tv_sec && a->tv_nsec > ct->tv_nsec));
        if (newer && inode_now().tv_sec - a->tv_sec < 24 * 3600)
            return;
    }
    inode_touch(inode, IATTR_ATIME);
}

/* Positions are signed: no transfer may reach past the largest. */
static bool file_range_ok(const struct file *f, const struct uio *u, int64_t pos)
{
    return f->no_seek || (pos >= 0 && u->left <= (uint64_t)(INT64_MAX - pos));
}

ssize_t file_read(struct file *f, struct uio *u, int64_t *pos)
{
    if (!file_readable(f))
        return -EBADF;
    if (!file_range_ok(f, u, *pos))
        return -EINVAL;
    if (!f->ops->read)
        return inode_is_dir(f->inode) ? -EISDIR : -EINVAL;
    int ret = notify_ask(u->ctx, f, NOTIFY_ACCESS_PERM);
    if (ret < 0)
        return ret;
    bool asked = u->left > 0;
    ssize_t n = f->ops->read(f, u, pos);
    if (n >= 0 && asked && S_ISREG(f->inode->mode))
        file_accessed(f); /* also when there was nothing left to read */
    if (n > 0)
        notify_file(f, IN_ACCESS);
    return n;
}

ssize_t file_write(struct file *f, struct uio *u, int64_t *pos)
{
    if (!file_writable(f))
        return -EBADF;
    if (!file_range_ok(f, u, *pos))
        return -EINVAL;
    if (!f->ops->write)
        return -EINVAL;
    if (S_ISREG(f->inode->mode)) {
        if (!u->left)
            return 0;
        int ret = vfs_drop_privs(u->ctx, f->inode);
        if (ret < 0)
            return ret;
    }
    ssize_t n = f->ops->write(f, u, pos);
    if (n > 0)
        notify_file(f, IN_MODIFY);
    return n;
}

/* Devices that can seek may wait in a read for ever, with a writer beside them. */
static bool file_has_pos_lock(const struct file *f)
{
    return S_ISREG(f->inode->mode) || S_ISDIR(f->inode->mode);
}

void file_pos_lock(struct ctx *ctx, struct file *f)
{
    if (file_has_pos_lock(f))
        sleeplock_take(ctx, &f->pos_lock);
}

void file_pos_unlock(struct file *f)
{
    if (file_has_pos_lock(f))
        sleeplock_release(&f->pos_lock);
}

int64_t file_llseek_generic(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    int64_t base = 0, to;
    if (whence == SEEK_END || whence == SEEK_DATA || whence == SEEK_HOLE) {
        if (f->inode->ops->refresh) {
            int ret = f->inode->ops->refresh(ctx, f->inode);
            if (ret < 0)
                return ret;
        }
        base = (int64_t)f->inode->size;
    }
    switch (whence) {
    case SEEK_SET:
        to = offset;
        break;
    case SEEK_CUR:
        base = f->pos;
        /* fallthrough */
    case SEEK_END:
        if (__builtin_add_overflow(base, offset, &to))
            return -EOVERFLOW;
        break;
    case SEEK_DATA:
    case SEEK_HOLE:
        if (offset < 0 || offset >= base)
            return -ENXIO;
        to = whence == SEEK_DATA ? offset : base;
        break;
    default:
        return -EINVAL;
    }
    if (to < 0)
        return -EINVAL;
    f->pos = to;
    return to;
}

int64_t file_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence)
{
    if (f->no_seek)
        return -ESPIPE;
    file_pos_lock(ctx, f);
    int64_t ret = f->ops->llseek ? f->ops->llseek(ctx, f, offset, whence)
                                 : file_llseek_generic(ctx, f, offset, whence);
    file_pos_unlock(f);
    return ret;
}

uint32_t file_poll(struct file *f, struct poll_table *pt)
{
    if (!f->ops->poll)
        return EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM;
    return f->ops->poll(f, pt);
}

int64_t file_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    return f->ops->ioctl ? f->ops->ioctl(ctx, f, cmd, arg) : -ENOTTY;
}

int file_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map)
{
    if (!file_readable(f))
        return -EACCES;
    if (shared && (prot & PROT_WRITE) && (!file_writable(f) || (f->flags & O_ACCMODE) != O_RDWR))
        return -EACCES;
    if (shared && (prot & PROT_WRITE) && inode_append_only(f->inode))
        return -EACCES;
    if ((prot & PROT_EXEC) && f->path.mount && (f->path.mount->flags & MS_NOEXEC))
        return -EPERM;
    if (!f->ops->mmap)
        return -ENODEV;
    int ret = f->ops->mmap(ctx, f, prot, shared, ret_map);
    if (ret == 0)
        file_accessed(f);
    return ret;
}

int file_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    return f->ops->fsync ? f->ops->fsync(ctx, f, data_only) : -EINVAL;
}

int file_fallocate(struct ctx *ctx, struct file *f, int mode, int64_t offset, int64_t len)
{
    if (!f->ops->fallocate)
        return -EOPNOTSUPP;
    int ret = vfs_drop_privs(ctx, f->inode);
    if (ret == 0)
        ret = f->ops->fallocate(ctx, f, mode, offset, len);
    if (ret == 0)
        notify_file(f, IN_MODIFY);
    return ret;
}

ssize_t file_read_kernel(struct ctx *ctx, struct file *f, void *dst, size_t size, int64_t pos)
{
    if (!f->ops->read)
        return -EINVAL;
    int ret = notify_ask(ctx, f, NOTIFY_ACCESS_PERM);
    if (ret < 0)
        return ret;
    size_t done = 0;
    while (done < size) {
        struct uio u;
        uio_init_kernel(&u, (char *)dst + done, size - done);
        u.ctx = ctx;
        ssize_t n = f->ops->read(f, &u, &pos);
        uio_free(&u);
        if (n < 0)
            return done ? (ssize_t)done : n;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    if (done)
        notify_file(f, IN_ACCESS);
    return (ssize_t)done;
}

/* ---- directories ---- */

bool dir_emit_dots(struct file *f, struct dir_sink *sink)
{
    const struct dentry *d = f->path.dentry;
    if (f->pos == 0) {
        if (!sink->emit(sink, ".", 1, f->inode->ino, DT_DIR, 1))
            return false;
        f->pos = 1;
    }
    if (f->pos == 1) {
        const struct inode *up = d->parent->inode ? d->parent->inode : f->inode;
        if (!sink->emit(sink, "..", 2, up->ino, DT_DIR, 2))
            return false;
        f->pos = 2;
    }
    return true;
}

int file_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink)
{
    if (!f->ops->readdir)
        return -ENOTDIR;
    if (f->path.dentry->deleted)
        return -ENOENT;
    file_pos_lock(ctx, f);
    int ret = notify_ask(ctx, f, NOTIFY_ACCESS_PERM);
    if (ret == 0)
        ret = f->ops->readdir(ctx, f, sink);
    file_pos_unlock(f);
    if (ret == 0) {
        file_accessed(f);
        notify_file(f, IN_ACCESS);
    }
    return ret;
}
