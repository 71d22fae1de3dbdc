/* SPDX-License-Identifier: Apache-2.0 */
/* name_to_handle_at, open_by_handle_at. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>

#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/userns.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/vfs/handle.h"
#include "sentry/vfs/mount.h"

enum {
    HANDLE_AT_MNT_ID_UNIQUE = 1,
    HANDLE_AT_FID = 0x200, /* AT_HANDLE_FID */
    HANDLE_TYPE_INVALID = 255,
};

/* struct file_handle without its bytes. */
struct handle_head {
    uint32_t size;
    int32_t type;
};

static int handle_mount_id_out(struct task *t, const struct mount *m, uaddr_t addr, bool unique)
{
    uint64_t unique_id = m ? m->unique_id : 0;
    uint32_t id = m ? m->id : 0;
    return unique ? COPY_OUT(&t->ctx, addr, &unique_id) : COPY_OUT(&t->ctx, addr, &id);
}

int64_t sys_name_to_handle_at(struct task *t, int32_t dirfd, uaddr_t path, uaddr_t handle,
                              uaddr_t mount_id, int32_t flags)
{
    if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH | HANDLE_AT_FID | HANDLE_AT_MNT_ID_UNIQUE))
        return -EINVAL;
    CLEANUP_PATH struct path p = {0};
    struct handle_head head;
    struct handle h;
    int ret = pathname_walk(t, dirfd, path,
                            (flags & AT_SYMLINK_FOLLOW ? WALK_FOLLOW : 0) |
                                (flags & AT_EMPTY_PATH ? WALK_EMPTY : 0),
                            &p);
    if (ret == 0 && !p.dentry->sb->has_handles && !(flags & HANDLE_AT_FID))
        ret = -EOPNOTSUPP;
    if (ret == 0)
        ret = COPY_IN(&t->ctx, &head, handle);
    if (ret == 0 && head.size > HANDLE_SIZE_MAX)
        ret = -EINVAL;
    if (ret < 0)
        return ret;
    bool fits = head.size >= HANDLE_SIZE;
    /* One that does not get its handle need not have anything kept for it. */
    ret = handle_encode(p.dentry, !fits || (flags & HANDLE_AT_FID), &h);
    if (ret < 0)
        return ret;
    head.size = h.size;
    head.type = fits ? h.type : HANDLE_TYPE_INVALID;
    ret = handle_mount_id_out(t, p.mount, mount_id, flags & HANDLE_AT_MNT_ID_UNIQUE);
    if (ret == 0)
        ret = COPY_OUT(&t->ctx, handle, &head);
    if (ret == 0 && fits)
        ret = copy_out(&t->ctx, uaddr_add(handle, sizeof(head)), h.data, h.size);
    return ret < 0 ? ret : fits ? 0 : -EOVERFLOW;
}

/* What the descriptor says is a place of: its mount's file system is the one to look in. */
static int handle_place(struct task *t, int dirfd, struct path *ret_path)
{
    struct walk_base base;
    struct path hold = {0};
    int ret = 0;
    if (dirfd == AT_FDCWD) {
        ret = fsctx_base(t, dirfd, ".", &hold, &base);
        if (ret == 0)
            *ret_path = path_ref(*base.cwd);
        path_unref(&hold);
        return ret;
    }
    struct file *f = fdtable_get(t, dirfd);
    if (!f)
        return -EBADF;
    *ret_path = path_ref(f->path);
    file_unref(f);
    return 0;
}

int64_t sys_open_by_handle_at(struct task *t, int32_t mountdirfd, uaddr_t handle, int32_t flags)
{
    struct handle_head head;
    uint8_t data[HANDLE_SIZE_MAX];
    int ret = COPY_IN(&t->ctx, &head, handle);
    if (ret == 0 && (!head.size || head.size > HANDLE_SIZE_MAX))
        ret = -EINVAL;
    CLEANUP_PATH struct path p = {0};
    if (ret == 0)
        ret = handle_place(t, mountdirfd, &p);
    /* It goes round every directory's permissions: a right over the whole file system, not of a
     * namespace. */
    if (ret == 0 && (!userns_is_initial(t->ctx.cred->userns) ||
                     !cred_has_cap(t->ctx.cred, CAP_DAC_READ_SEARCH)))
        ret = -EPERM;
    if (ret == 0)
        ret = copy_in(&t->ctx, data, uaddr_add(handle, sizeof(head)), head.size);
    struct dentry *d;
    if (ret == 0)
        ret = p.mount ? handle_decode(p.mount->sb, data, head.size, head.type, &d) : -ESTALE;
    if (ret < 0)
        return ret;
    dentry_unref(p.dentry);
    p.dentry = d;
    uint32_t open_flags = (uint32_t)flags & ~(uint32_t)(O_CREAT | O_EXCL | O_CLOEXEC);
    struct file *f;
    ret = vfs_open_path(&t->ctx, &p, open_flags, &f);
    return ret < 0 ? ret : fdtable_add(t, f, 0, flags & O_CLOEXEC);
}
