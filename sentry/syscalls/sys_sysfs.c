/* SPDX-License-Identifier: Apache-2.0 */
/* Old calls about the system's parts: names of file systems, space by device, hanging up one's terminal. */
#include "syscalls_gen.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/vfs.h>

#include "sentry/core/cred.h"
#include "sentry/fs/tty.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/mount.h"

enum { SYSFS_INDEX = 1, SYSFS_NAME = 2, SYSFS_COUNT = 3, FS_NAME_MAX = 256 };

int64_t sys_sysfs(struct task *t, int32_t option, uint64_t arg1, uint64_t arg2)
{
    char name[FS_NAME_MAX];
    ssize_t n;

    switch (option) {
    case SYSFS_INDEX:
        n = copy_in_str(&t->ctx, name, UADDR(arg1), sizeof(name));
        if (n < 0)
            return n == -ENAMETOOLONG ? -EINVAL : n;
        return fs_type_index(name);
    case SYSFS_NAME: {
        const struct fs_type *type = fs_type_at((uint32_t)arg1);

        return type ? copy_out(&t->ctx, UADDR(arg2), type->name, strlen(type->name) + 1) : -EINVAL;
    }
    case SYSFS_COUNT:
        return fs_type_count();
    default:
        return -EINVAL;
    }
}

struct ustat_k {
    int32_t free_blocks;
    uint64_t free_inodes;
    char fname[6], fpack[6];
};

int64_t sys_ustat(struct task *t, uint32_t dev, uaddr_t buf)
{
    struct superblock *sb = mntns_find_dev(t->ns->mnt, dev);
    struct ustat_k u;
    struct statfs st;
    int r;

    _Static_assert(sizeof(u) == 32, "struct ustat");
    if (!sb)
        return -EINVAL;
    r = superblock_statfs(&t->ctx, sb, &st);
    superblock_unref(sb);
    if (r)
        return r;
    memset(&u, 0, sizeof(u));
    u.free_blocks = (int32_t)st.f_bfree;
    u.free_inodes = st.f_ffree;
    return COPY_OUT(&t->ctx, buf, &u);
}

int64_t sys_vhangup(struct task *t)
{
    struct tty *tty;

    if (!cred_has_cap(t->ctx.cred, CAP_SYS_TTY_CONFIG))
        return -EPERM;
    tty = tty_current(t);
    if (tty)
        tty_hangup(tty);
    return 0;
}
