/* SPDX-License-Identifier: Apache-2.0 */
/* Open file descriptions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/core/waitq.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/mount.h"

struct cred;
struct file;
struct host_cachestat; /* platform/base/host.h */
struct eventpoll_item;

/* Where readdir entries go. Positions 0 and 1 are "." and "..": a readdir op starts with dir_emit_dots; its own
 * entries have positions from 2 on, and it leaves f->pos at the first entry not taken. Return: true = go on, false = buffer full (the entry was not taken). */
struct dir_sink {
    bool (*emit)(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned d_type,
                 int64_t next_pos);
};

/* Emits "." and ".." while f->pos is below 2. Return: true when f->pos is now ≥ 2. */
MUST_CHECK bool dir_emit_dots(struct file *f, struct dir_sink *sink);

/* How a file is mapped: a host descriptor, borrowed by the caller until the call ends. */
struct file_map {
    int host_fd;     /* opened with no more than the access asked for */
    uint64_t offset; /* where file offset 0 is in it (0 but for special files) */
    bool anonymous;  /* map private zero pages instead (/dev/zero private) */
};

/* A NULL op gives the errno in brackets. pos is &file->pos itself or a pread offset elsewhere; ops advance *pos themselves. */
struct file_ops {
    ssize_t (*read)(struct file *f, struct uio *u, int64_t *pos);  /* [EINVAL] */
    ssize_t (*write)(struct file *f, struct uio *u, int64_t *pos); /* [EINVAL] O_APPEND is the op's to honour */
    int (*readdir)(struct ctx *ctx, struct file *f, struct dir_sink *sink); /* [ENOTDIR] uses f->pos */
    int64_t (*llseek)(struct ctx *ctx, struct file *f, int64_t offset, int whence); /* [generic by inode size] */
    uint32_t (*poll)(struct file *f, struct poll_table *pt);       /* [always IN|OUT|RDNORM|WRNORM] EPOLL* bits */
    int64_t (*ioctl)(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg); /* [ENOTTY] */
    int (*mmap)(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map); /* [ENODEV] */
    int (*fsync)(struct ctx *ctx, struct file *f, bool data_only); /* [EINVAL] */
    int (*fallocate)(struct ctx *ctx, struct file *f, int mode, int64_t offset, int64_t len); /* [EOPNOTSUPP] */
    /* Adds the pages of size bytes at offset (0: to the end) that are in memory; ret_stat comes zeroed. [0: none] */
    int (*cachestat)(struct ctx *ctx, struct file *f, uint64_t offset, uint64_t size, struct host_cachestat *ret_stat);
    int (*setfl)(struct ctx *ctx, struct file *f, uint32_t flags); /* told of O_NONBLOCK/O_APPEND/O_ASYNC changes */
    /* fcntl commands of one kind of file: F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS. [EINVAL; pipe size: EBADF] */
    int64_t (*fcntl)(struct ctx *ctx, struct file *f, unsigned cmd, uint64_t arg);
    bool signals_io; /* O_ASYNC has an effect: the queues of poll are told of all news */
    /* Called at each close of a descriptor (flush), before locks go. */
    int (*flush)(struct ctx *ctx, struct file *f);
    /* Last reference gone. Must not park. */
    void (*release)(struct file *f);
    /* Extra lines of /proc/PID/fdinfo. */
    void (*show_fdinfo)(struct file *f, struct buf *out);
};

/* A flag of file_open_inode besides O_*: the file is opened to be run. */
#define FILE_OPEN_EXEC 0x20U
/* Likewise: nobody is told of it, or of what is done through it. */
#define FILE_OPEN_QUIET 0x10U

/* Who is told of news by signals. The rest of the object is its maker's, kernel/file_owner.c. */
struct file_async {
    void (*tell)(struct file *f, int fd, int code);
    void (*free)(struct file *f);
};

struct file {
    struct ref ref;
    const struct file_ops *ops; /* (k) set by open */
    struct path path;           /* (i) referenced; a detached dentry for pipes and the like */
    struct inode *inode;        /* (i) = path.dentry->inode, referenced */
    uint32_t flags;             /* (k) O_* incl. access mode and O_PATH, without O_CREAT|O_EXCL|O_NOCTTY|O_TRUNC|O_CLOEXEC */
    int64_t pos;                /* (k) */
    const struct cred *cred;    /* (i) of the opener, referenced */
    struct list epoll_items;    /* (k) of eventpoll_item.file_link */
    struct file_async *async;   /* (k) owned: F_SETOWN, F_SETSIG, O_ASYNC; kernel/file_owner.c. NULL: never asked for */
    bool created;               /* (i) this open made the file: F_CREATED_QUERY */
    bool no_notify;             /* (i) what is done through it is told to nobody: files out of fanotify's events */
    bool no_seek;               /* (i) stream: lseek gives ESPIPE, read/write ignore pos */
    bool writer_counted;        /* (i) inode->writers and mount->writers hold us */
    bool reader_counted;        /* (i) inode->readers does */
    uint32_t landlock_denied;   /* (i) LANDLOCK_* rights that the opener's domain withholds */
    struct sleeplock pos_lock;  /* (k) held by read, write and lseek of seekable files while they use pos */
    void *priv;                 /* (k) file's own */
};

static inline bool file_readable(const struct file *f)
{
    return (f->flags & 3) == 0 || (f->flags & 3) == 2;
}
static inline bool file_writable(const struct file *f)
{
    return (f->flags & 3) == 1 || (f->flags & 3) == 2;
}

/* A file object for path (takes its own references) without calling inode->ops->open. NULL on no memory. */
MUST_CHECK struct file *file_new(const struct path *path, uint32_t flags, const struct file_ops *ops,
                                 const struct cred *cred);
/* A file for an object that is in no directory. name_fmt_class "pipe" or "socket" is shown as "pipe:[ino]"; anything else
 * ("anon_inode:[eventpoll]") as it is. mode gives S_IFMT and permissions. Makes inode (anonymous superblock), dentry and file in one. NULL on no memory. */
MUST_CHECK struct file *file_new_anon(const char *name_fmt_class, uint32_t mode, uint32_t flags,
                                      const struct file_ops *ops, void *priv, const struct cred *cred);
/* Tells the owner of f (F_SETOWN; if there is one) by a signal. code: POLL_IN …; fd is shown. Does not park, harmless in a wake. */
static inline void file_tell_owner(struct file *f, int fd, int code)
{
    if (f->async)
        f->async->tell(f, fd, code);
}
struct file *file_ref(struct file *f);
void file_unref(struct file *f); /* NULL is fine; release runs at the last one */

/* One open of path: makes the file object and calls the open op (or the O_PATH one). No permission checks: those are
 * vfs_open_path's. Return: 0, −ENOMEM, −ETXTBSY, the file system's errors. */
MUST_CHECK int file_open_inode(struct ctx *ctx, const struct path *path, uint32_t flags, struct file **ret_file);
MUST_CHECK ssize_t file_read(struct file *f, struct uio *u, int64_t *pos);
MUST_CHECK ssize_t file_write(struct file *f, struct uio *u, int64_t *pos);
/* The shared position around one read, write or seek: threads take turns on it. Of regular files and
 * directories only. */
void file_pos_lock(struct ctx *ctx, struct file *f);
void file_pos_unlock(struct file *f);
/* One getdents: entries go to sink from f->pos on. Return: 0, −ENOTDIR, −ENOENT (directory is gone). */
MUST_CHECK int file_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink);
/* Seek by inode size, for ops that have nothing better. */
MUST_CHECK int64_t file_llseek_generic(struct ctx *ctx, struct file *f, int64_t offset, int whence);
MUST_CHECK int file_fsync(struct ctx *ctx, struct file *f, bool data_only);
MUST_CHECK int file_fallocate(struct ctx *ctx, struct file *f, int mode, int64_t offset, int64_t len);
/* Updates the access time as the mount's options ask (relatime). */
void file_accessed(struct file *f);
MUST_CHECK int64_t file_llseek(struct ctx *ctx, struct file *f, int64_t offset, int whence);
uint32_t file_poll(struct file *f, struct poll_table *pt);
MUST_CHECK int64_t file_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg);
MUST_CHECK int file_mmap(struct ctx *ctx, struct file *f, uint32_t prot, bool shared, struct file_map *ret_map);
/* Reads size bytes at pos into sentry memory (exec, scripts). Return: bytes, short at the end. */
MUST_CHECK ssize_t file_read_kernel(struct ctx *ctx, struct file *f, void *dst, size_t size, int64_t pos);
