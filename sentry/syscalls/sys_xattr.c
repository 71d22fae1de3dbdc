/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"

enum { XATTR_NAME_SIZE = 256, XATTR_LIST_SIZE = 65536 };

static int xattr_name_in(struct task *t, uaddr_t addr, char name[XATTR_NAME_SIZE])
{
    ssize_t len = copy_in_str(&t->ctx, name, addr, XATTR_NAME_SIZE);
    if (len == -ENAMETOOLONG || len == 0)
        return -ERANGE;
    return len < 0 ? (int)len : 0;
}

/* The object of a call. */
struct xattr_where {
    int fd;       /* −1: path */
    uaddr_t path;
    bool follow;
};

/* Return: 0 with a referenced path. */
static int xattr_find(struct task *t, const struct xattr_where *w, struct path *ret_path)
{
    if (w->fd == -1)
        return pathname_walk(t, AT_FDCWD, w->path, w->follow ? WALK_FOLLOW : 0, ret_path);
    struct file *f = fdtable_get(t, w->fd);
    if (!f)
        return -EBADF;
    *ret_path = path_ref(f->path);
    file_unref(f);
    return 0;
}

static int64_t xattr_set(struct task *t, const struct xattr_where *w, uaddr_t name_addr, uaddr_t value,
                         uint64_t size, int32_t flags)
{
    if (flags & ~(XATTR_CREATE | XATTR_REPLACE))
        return -EINVAL;
    char name[XATTR_NAME_SIZE];
    int ret = xattr_name_in(t, name_addr, name);
    if (ret < 0)
        return ret;
    if (size > LIMIT_XATTR_SIZE)
        return -E2BIG;
    CLEANUP_FREE void *data = mem_zalloc(size);
    if (!data)
        return -ENOMEM;
    ret = copy_in(&t->ctx, data, value, size);
    if (ret < 0)
        return ret;
    struct path p;
    ret = xattr_find(t, w, &p);
    if (ret < 0)
        return ret;
    ret = vfs_setxattr(&t->ctx, &p, name, data, size, flags);
    path_unref(&p);
    return ret;
}

static int64_t xattr_get(struct task *t, const struct xattr_where *w, uaddr_t name_addr, uaddr_t value,
                         uint64_t size)
{
    char name[XATTR_NAME_SIZE];
    int ret = xattr_name_in(t, name_addr, name);
    if (ret < 0)
        return ret;
    size = MIN(size, (uint64_t)LIMIT_XATTR_SIZE);
    CLEANUP_FREE void *data = mem_zalloc(size);
    if (!data)
        return -ENOMEM;
    struct path p;
    ret = xattr_find(t, w, &p);
    if (ret < 0)
        return ret;
    ssize_t n = vfs_getxattr(&t->ctx, &p, name, data, size);
    path_unref(&p);
    if (n > 0 && size) {
        ret = copy_out(&t->ctx, value, data, (size_t)n);
        if (ret < 0)
            return ret;
    }
    return n;
}

static int64_t xattr_list(struct task *t, const struct xattr_where *w, uaddr_t list, uint64_t size)
{
    size = MIN(size, (uint64_t)XATTR_LIST_SIZE);
    CLEANUP_FREE char *data = mem_zalloc(size);
    if (!data)
        return -ENOMEM;
    struct path p;
    int ret = xattr_find(t, w, &p);
    if (ret < 0)
        return ret;
    ssize_t n = vfs_listxattr(&t->ctx, &p, data, size);
    path_unref(&p);
    if (n > 0 && size) {
        ret = copy_out(&t->ctx, list, data, (size_t)n);
        if (ret < 0)
            return ret;
    }
    return n;
}

static int64_t xattr_remove(struct task *t, const struct xattr_where *w, uaddr_t name_addr)
{
    char name[XATTR_NAME_SIZE];
    int ret = xattr_name_in(t, name_addr, name);
    if (ret < 0)
        return ret;
    struct path p;
    ret = xattr_find(t, w, &p);
    if (ret < 0)
        return ret;
    ret = vfs_removexattr(&t->ctx, &p, name);
    path_unref(&p);
    return ret;
}

#define XATTR_PATH(p) (&(struct xattr_where){.fd = -1, .path = (p), .follow = true})
#define XATTR_LINK(p) (&(struct xattr_where){.fd = -1, .path = (p)})
/* A negative descriptor must not look like "by path". */
#define XATTR_FD(n) (&(struct xattr_where){.fd = (n) < 0 ? INT32_MIN : (n)})

int64_t sys_setxattr(struct task *t, uaddr_t path, uaddr_t name, uaddr_t value, uint64_t size, int32_t flags)
{
    return xattr_set(t, XATTR_PATH(path), name, value, size, flags);
}
int64_t sys_lsetxattr(struct task *t, uaddr_t path, uaddr_t name, uaddr_t value, uint64_t size, int32_t flags)
{
    return xattr_set(t, XATTR_LINK(path), name, value, size, flags);
}
int64_t sys_fsetxattr(struct task *t, int32_t fd, uaddr_t name, uaddr_t value, uint64_t size, int32_t flags)
{
    return xattr_set(t, XATTR_FD(fd), name, value, size, flags);
}

int64_t sys_getxattr(struct task *t, uaddr_t path, uaddr_t name, uaddr_t value, uint64_t size)
{
    return xattr_get(t, XATTR_PATH(path), name, value, size);
}
int64_t sys_lgetxattr(struct task *t, uaddr_t path, uaddr_t name, uaddr_t value, uint64_t size)
{
    return xattr_get(t, XATTR_LINK(path), name, value, size);
}
int64_t sys_fgetxattr(struct task *t, int32_t fd, uaddr_t name, uaddr_t value, uint64_t size)
{
    return xattr_get(t, XATTR_FD(fd), name, value, size);
}

int64_t sys_listxattr(struct task *t, uaddr_t path, uaddr_t list, uint64_t size)
{
    return xattr_list(t, XATTR_PATH(path), list, size);
}
int64_t sys_llistxattr(struct task *t, uaddr_t path, uaddr_t list, uint64_t size)
{
    return xattr_list(t, XATTR_LINK(path), list, size);
}
int64_t sys_flistxattr(struct task *t, int32_t fd, uaddr_t list, uint64_t size)
{
    return xattr_list(t, XATTR_FD(fd), list, size);
}

int64_t sys_removexattr(struct task *t, uaddr_t path, uaddr_t name)
{
    return xattr_remove(t, XATTR_PATH(path), name);
}
int64_t sys_lremovexattr(struct task *t, uaddr_t path, uaddr_t name)
{
    return xattr_remove(t, XATTR_LINK(path), name);
}
int64_t sys_fremovexattr(struct task *t, int32_t fd, uaddr_t name)
{
    return xattr_remove(t, XATTR_FD(fd), name);
}
