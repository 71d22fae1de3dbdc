/* SPDX-License-Identifier: Apache-2.0 */
/* mount, umount2, pivot_root, sync. */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/userns.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/pidns.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/mount_right.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/mount.h"

#define MOUNT_MAGIC 0xc0ed0000UL
#define MOUNT_MAGIC_MASK 0xffff0000UL
#define MOUNT_TYPES (MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE)
#define MOUNT_SB_FLAGS (MS_RDONLY | MS_SYNCHRONOUS | MS_MANDLOCK | MS_DIRSYNC | MS_LAZYTIME)

bool mount_right(struct task *t)
{
    return cred_ns_cap(t->ctx.cred, mntns_owner(t->ns->mnt), CAP_SYS_ADMIN);
}

/* What of the call's flags is a matter of the mount. */
static unsigned long mount_own_flags(unsigned long flags)
{
    unsigned long own = flags & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NODIRATIME | MS_NOSYMFOLLOW);
    if (flags & MS_NOATIME)
        own |= MS_NOATIME;
    else if (!(flags & MS_STRICTATIME))
        own |= MS_RELATIME;
    return own;
}

static int mount_change_type(struct path *at, unsigned long flags)
{
    unsigned long type = flags & ~(unsigned long)(MS_REC | MS_SILENT);
    if (type != MS_SHARED && type != MS_PRIVATE && type != MS_SLAVE && type != MS_UNBINDABLE)
        return -EINVAL;
    return mount_set_propagation(at, type, flags & MS_REC);
}

static int mount_from(struct task *t, struct path *at, uaddr_t source, unsigned long flags)
{
    struct path from;
    if (uaddr_is_null(source))
        return -EINVAL;
    int ret = pathname_walk(t, AT_FDCWD, source, WALK_FOLLOW, &from);
    if (ret < 0)
        return ret;
    if (!from.mount || from.mount->ns != t->ns->mnt)
        ret = -EINVAL;
    else if (flags & MS_BIND)
        ret = mount_bind(&t->ctx, &from, at, flags & MS_REC);
    else
        ret = mount_move(&t->ctx, &from, at);
    path_unref(&from);
    return ret;
}

static int mount_fs(struct task *t, struct path *at, const char *source, const char *type_name,
                    unsigned long flags, const char *data)
{
    const struct fs_type *type = fs_type_find(type_name);
    if (!type)
        return -ENODEV;
    unsigned long own = mount_own_flags(flags);
    struct dentry *root;
    int ret = fs_type_make(&t->ctx, type, flags, source, data, &root);
    if (ret < 0)
        return ret;
    return mount_attach(&t->ctx, root, at, own, source);
}

static int mount_again(struct task *t, struct path *at, unsigned long flags, const char *data)
{
    unsigned long own = mount_own_flags(flags);
    if (!(flags & MS_BIND) && at->mount && !fs_type_may_change(&t->ctx, at->mount->sb))
        return -EPERM;
    if (!(flags & (MS_NOATIME | MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME)) && at->mount) {
        /* Not a word about access times: they stay as they are. */
        const unsigned long atime = MS_NOATIME | MS_NODIRATIME | MS_RELATIME;
        own = (own & ~atime) | (at->mount->flags & atime);
    }
    return mount_remount(&t->ctx, at, own | (flags & MOUNT_SB_FLAGS), data, flags & MS_BIND);
}

/* Strings of the call; each may be NULL. */
struct mount_strings {
    char *source, *type, *data;
};

static int mount_strings_in(struct task *t, uaddr_t source, uaddr_t type, uaddr_t data,
                            struct mount_strings *s)
{
    int ret = 0;
    if (!uaddr_is_null(source))
        ret = pathname_in(t, source, &s->source);
    if (ret == 0 && !uaddr_is_null(type))
        ret = pathname_in(t, type, &s->type);
    if (ret == 0 && !uaddr_is_null(data))
        ret = pathname_in(t, data, &s->data);
    return ret == -ENAMETOOLONG ? -EINVAL : ret;
}

static int mount_act(struct task *t, struct path *at, uaddr_t source_addr, unsigned long flags,
                     const struct mount_strings *s)
{
    int ret = landlock_fs_topology(&t->ctx);
    if (ret < 0)
        return ret;
    if (!at->mount || at->mount->ns != t->ns->mnt)
        return -EINVAL;
    if (flags & MS_REMOUNT)
        return mount_again(t, at, flags, s->data);
    if (flags & (MS_BIND | MS_MOVE))
        return mount_from(t, at, source_addr, flags);
    if (flags & MOUNT_TYPES)
        return mount_change_type(at, flags);
    if (!s->type)
        return -EINVAL;
    return mount_fs(t, at, s->source, s->type, flags, s->data);
}

int64_t sys_mount(struct task *t, uaddr_t source, uaddr_t target, uaddr_t type, uint64_t flags, uaddr_t data)
{
    if ((flags & MOUNT_MAGIC_MASK) == MOUNT_MAGIC)
        flags &= ~MOUNT_MAGIC_MASK;
    struct mount_strings s = {0};
    bool plain = !(flags & (MS_BIND | MS_MOVE | MOUNT_TYPES)) || (flags & MS_REMOUNT);
    /* Binds and moves walk their source and ignore type and data. */
    int ret = plain ? mount_strings_in(t, source, type, data, &s) : 0;
    struct path at;
    if (ret == 0)
        ret = pathname_walk(t, AT_FDCWD, target, WALK_FOLLOW, &at);
    if (ret == 0) {
        ret = mount_right(t) ? mount_act(t, &at, source, flags, &s) : -EPERM;
        path_unref(&at);
    }
    pathname_free(s.source);
    pathname_free(s.type);
    pathname_free(s.data);
    return ret;
}

/* The sentry is not told of munmap: has every process forget what it has no longer mapped of the mount. */
static void forget_unmapped(struct task *t, const struct mount *m)
{
    struct pidns *ns = t->group->container->pidns;
    int number = 1;
    struct tgroup *g;

    for (; (g = pidns_next_tgroup(ns, number, &number)); number++) {
        struct task *any = tgroup_first(g);
        struct mm *mm = any && any->mm ? mm_ref(any->mm) : NULL;
        /* Of a process that is gone, or can't be looked at, the mount stays busy as before. */
        if (mm && mm_forget_unmapped(mm, m))
            log_debug("umount: the maps of process %d can't be read", number);
        if (mm)
            mm_unref(mm);
        tgroup_unref(g);
    }
}

int64_t sys_umount2(struct task *t, uaddr_t target, int32_t flags)
{
    if (flags & ~(MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW))
        return -EINVAL;
    struct path at;
    int ret = pathname_walk(t, AT_FDCWD, target, flags & UMOUNT_NOFOLLOW ? 0 : WALK_FOLLOW, &at);
    if (ret < 0)
        return ret;
    mount_follow_down(&at); /* what covers "/" or "." */
    if (!mount_right(t))
        ret = -EPERM;
    else if (!at.mount || at.mount->ns != t->ns->mnt)
        ret = -EINVAL;
    else if ((flags & MNT_FORCE) && !at.mount->locked && !fs_type_may_change(&t->ctx, at.mount->sb))
        ret = -EPERM;
    else if ((ret = landlock_fs_topology(&t->ctx)) == 0)
        ret = mount_umount(&t->ctx, &at, flags);
    if (ret == -EBUSY) {
        forget_unmapped(t, at.mount);
        ret = mount_umount(&t->ctx, &at, flags);
    }
    dentry_unref(at.dentry);
    mount_unref_unused(at.mount);
    return ret;
}

static void mount_switch(struct path *p, const struct path *from, const struct path *to)
{
    if (!path_equal(p, from))
        return;
    struct path old = *p;
    *p = path_ref(*to);
    path_unref(&old);
}

/* Every task that has the old root as its root or working directory goes on in the new one. */
static void mount_switch_tasks(struct kernel *k, const struct path *from, const struct path *to)
{
    struct container *c;
    list_for_each_entry(c, &k->containers, link) {
        struct tgroup *g;
        list_for_each_entry(g, &c->groups, container_link) {
            for (struct task *t = tgroup_first(g); t; t = tgroup_next(g, t)) {
                if (!t->fs)
                    continue;
                mount_switch(&t->fs->root, from, to);
                mount_switch(&t->fs->cwd, from, to);
            }
        }
    }
}

int64_t sys_pivot_root(struct task *t, uaddr_t new_root, uaddr_t put_old)
{
    if (!mount_right(t))
        return -EPERM;
    struct path to, old;
    int ret = pathname_walk(t, AT_FDCWD, new_root, WALK_FOLLOW | WALK_DIRECTORY, &to);
    if (ret < 0)
        return ret;
    ret = pathname_walk(t, AT_FDCWD, put_old, WALK_FOLLOW | WALK_DIRECTORY, &old);
    if (ret == 0) {
        struct path root = path_ref(t->fs->root);
        ret = landlock_fs_topology(&t->ctx);
        if (ret == 0)
            ret = to.mount->ns != t->ns->mnt ? -EINVAL : mount_pivot_root(&t->ctx, &to, &old, &root);
        if (ret == 0)
            mount_switch_tasks(t->kernel, &root, &to);
        path_unref(&root);
        path_unref(&old);
    }
    path_unref(&to);
    return ret;
}

int64_t sys_sync(struct task *t)
{
    mntns_sync(&t->ctx, t->ns->mnt);
    return 0;
}
