/* SPDX-License-Identifier: Apache-2.0 */
/* open, openat, openat2, creat, close, close_range. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"

/* The kernel's O_LARGEFILE, which 64-bit callers get whether they ask or not; libc defines it as 0. */
#define OPEN_LARGEFILE 0100000
#define OPEN_FMODE_BITS (O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK)
#define OPEN_VALID                                                                                 \
    (OPEN_FMODE_BITS | O_SYNC | O_DSYNC | O_ASYNC | O_DIRECT | OPEN_LARGEFILE | O_DIRECTORY | O_NOFOLLOW |  \
     O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE)
#define OPEN_PATH_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_PATH | O_CLOEXEC)

/* Return: 0 or −EINVAL for combinations that mean nothing. */
static int open_check(uint32_t flags)
{
    if (flags & O_PATH)
        return 0;
    if ((flags & (O_DIRECTORY | O_CREAT)) == (O_DIRECTORY | O_CREAT))
        return -EINVAL;
    if (flags & O_TMPFILE & ~O_DIRECTORY) {
        if ((flags & O_TMPFILE) != O_TMPFILE || (flags & O_CREAT))
            return -EINVAL;
        if ((flags & O_ACCMODE) == O_RDONLY)
            return -EINVAL;
    }
    return 0;
}

static int64_t open_common(struct task *t, int dirfd, uaddr_t addr, uint32_t flags, uint32_t mode,
                           unsigned resolve)
{
    int ret = open_check(flags);
    if (ret < 0)
        return ret;
    CLEANUP_PATHNAME char *path = NULL;
    ret = pathname_in(t, addr, &path);
    if (ret < 0)
        return ret;
    int fd = fdtable_reserve(t, 0);
    if (fd < 0)
        return fd;
    struct walk_base base;
    struct path hold;
    /* A scoped walk starts at the descriptor even when the path is absolute. */
    bool scoped = resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT);
    ret = fsctx_base(t, dirfd, scoped ? "." : path, &hold, &base);
    struct file *f;
    if (ret == 0) {
        base.resolve = resolve;
        ret = vfs_open(&t->ctx, &base, path, flags, mode, &f);
        path_unref(&hold);
    }
    if (ret < 0) {
        fdtable_unreserve(t, fd);
        return ret;
    }
    fdtable_install(t, fd, f, flags & O_CLOEXEC);
    return fd;
}

int64_t sys_openat(struct task *t, int32_t dirfd, uaddr_t path, int32_t flags, int32_t mode)
{
    uint32_t f = (uint32_t)flags & OPEN_VALID;
    if (f & O_PATH)
        f &= OPEN_PATH_FLAGS;
    else
        f |= OPEN_LARGEFILE;
    return open_common(t, dirfd, path, f, (uint32_t)mode & 07777, 0);
}

int64_t sys_open(struct task *t, uaddr_t path, int32_t flags, int32_t mode)
{
    return sys_openat(t, AT_FDCWD, path, flags, mode);
}

int64_t sys_creat(struct task *t, uaddr_t path, int32_t mode)
{
    return sys_openat(t, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int64_t sys_openat2(struct task *t, int32_t dirfd, uaddr_t path, uaddr_t how_addr, uint64_t size)
{
    enum { RESOLVE_ALL = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH |
                         RESOLVE_IN_ROOT | RESOLVE_CACHED };
    struct open_how how;
    if (size < sizeof(how))
        return -EINVAL;
    int ret = copy_in_struct(&t->ctx, &how, sizeof(how), how_addr, size);
    if (ret < 0)
        return ret;
    if ((how.flags & ~(uint64_t)OPEN_VALID) || (how.resolve & ~(uint64_t)RESOLVE_ALL))
        return -EINVAL;
    if ((how.resolve & (RESOLVE_BENEATH | RESOLVE_IN_ROOT)) == (RESOLVE_BENEATH | RESOLVE_IN_ROOT))
        return -EINVAL;
    bool makes = how.flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
    if (makes ? how.mode & ~07777ULL : how.mode)
        return -EINVAL;
    if ((how.flags & O_PATH) && (how.flags & ~(uint64_t)OPEN_PATH_FLAGS))
        return -EINVAL;
    if ((how.resolve & RESOLVE_CACHED) && (makes || (how.flags & O_TRUNC)))
        return -EAGAIN;
    return open_common(t, dirfd, path, (uint32_t)how.flags, (uint32_t)how.mode, (unsigned)how.resolve);
}

int64_t sys_close(struct task *t, int32_t fd)
{
    int ret = fdtable_close(t, fd);
    /* The number is gone whatever happened: a restart would close somebody else's. */
    return ret <= -ERESTARTSYS ? -EINTR : ret;
}

int64_t sys_close_range(struct task *t, uint32_t first, uint32_t last, uint32_t flags)
{
    if ((flags & ~(uint32_t)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)) || first > last)
        return -EINVAL;
    if ((flags & CLOSE_RANGE_UNSHARE) && t->files->ref.count > 1) {
        struct fdtable *own;
        int ret = fdtable_dup(t->files, &own);
        if (ret < 0)
            return ret;
        struct fdtable *shared = t->files;
        t->files = own;
        fdtable_unref(&t->ctx, shared);
    }
    if (flags & CLOSE_RANGE_CLOEXEC)
        fdtable_cloexec_range(t, first, last);
    else
        fdtable_close_range(t, first, last);
    return 0;
}
