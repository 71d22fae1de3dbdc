/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify_init, fanotify_mark. */
#include "syscalls_gen.h"

#include <fcntl.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/abi/abi_fanotify.h"
#include "sentry/fs/fan_group.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"

int64_t sys_fanotify_init(struct task *t, uint32_t flags, uint32_t event_flags)
{
    struct file *f;
    int r = fan_group_new(t, flags, event_flags, &f);
    return r ? r : fdtable_add(t, f, 0, flags & FAN_CLOEXEC);
}

static int check_flags(const struct fan_request *req)
{
    uint32_t flags = req->flags, type = flags & FAN_ABI_MARK_TYPES;
    if ((flags & ~FAN_ABI_MARK) || type == FAN_ABI_MARK_TYPES)
        return -EINVAL;
    switch (flags & FAN_ABI_MARK_COMMANDS) {
    case FAN_MARK_ADD:
    case FAN_MARK_REMOVE:
        if (!req->mask)
            return -EINVAL;
        break;
    case FAN_MARK_FLUSH:
        if (flags & ~(FAN_ABI_MARK_TYPES | FAN_MARK_FLUSH))
            return -EINVAL;
        break;
    default:
        return -EINVAL;
    }
    if (req->mask & ~(FAN_ABI_EVENTS | FAN_ABI_PERM_EVENTS | FAN_ABI_EVENT_FLAGS))
        return -EINVAL;
    return (flags & FAN_ABI_MARK_IGNORES) == FAN_ABI_MARK_IGNORES ? -EINVAL : 0;
}

/* Without a name it is the descriptor's own file. */
static int find(struct task *t, int dirfd, uaddr_t name, uint32_t flags, struct path *ret_path)
{
    if (!uaddr_is_null(name)) {
        unsigned walk = (flags & FAN_MARK_DONT_FOLLOW ? 0U : WALK_FOLLOW) |
                        (flags & FAN_MARK_ONLYDIR ? WALK_DIRECTORY : 0U);
        return pathname_walk(t, dirfd, name, walk, ret_path);
    }
    struct file *f = fdtable_get(t, dirfd);
    if (!f)
        return -EBADF;
    int r = (flags & FAN_MARK_ONLYDIR) && !inode_is_dir(f->inode) ? -ENOTDIR : 0;
    if (r == 0)
        *ret_path = path_ref(f->path);
    file_unref(f);
    return r;
}

int64_t sys_fanotify_mark(struct task *t, int32_t fd, uint32_t flags, uint64_t mask, int32_t dirfd, uaddr_t path)
{
    struct fan_request req = {.flags = flags, .mask = (uint32_t)mask};
    CLEANUP_PATH struct path p = {0};
    int r = mask >> 32 ? -EINVAL : check_flags(&req);
    if (r)
        return r;
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    r = fan_group_is(f) ? fan_mark_check(t, f, &req) : -EINVAL;
    if (r == 0 && (flags & FAN_MARK_FLUSH))
        fan_mark_flush(f, flags);
    else if (r == 0 && (r = find(t, dirfd, path, flags, &p)) == 0)
        r = fan_mark_change(t, f, &req, &p);
    file_unref(f);
    return r;
}
