/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts by descriptor: open_tree, move_mount, mount_setattr, and file-system contexts (fsopen, fspick, fsconfig, fsmount). */
#include "syscalls_gen.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/syscalls/mount_right.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/vfs/landlock_fs.h"
#include "sentry/vfs/mount.h"

#define MOUNT_FD_AT_RECURSIVE 0x8000
#define MOUNT_FD_SET_GROUP 0x100U
#define MOUNT_FD_BENEATH 0x200U /* newer than the headers */

enum { MOUNT_FD_KEY_SIZE = 256, MOUNT_FD_OPTIONS_MAX = 4096 };

/* ---- descriptors of trees ---- */

/* The descriptor goes: a tree that was never mounted goes with it. */
static void mount_fd_release(struct file *f)
{
    mount_sink(f->path.mount);
}

static const struct file_ops mount_fd_tree_ops = {.release = mount_fd_release};

/* Puts a floating tree into a descriptor. Consumes the references of *p. */
static int64_t mount_fd_install(struct task *t, struct path *p, bool cloexec)
{
    struct file *f = file_new(p, O_PATH, &mount_fd_tree_ops, t->ctx.cred);
    if (!f)
        mount_sink(p->mount);
    path_unref(p);
    return f ? fdtable_add(t, f, 0, cloexec) : -ENFILE;
}

/* A place given as descriptor and path, with AT_* flags. */
static int mount_fd_walk(struct task *t, int dirfd, uaddr_t path, unsigned at_flags, struct path *ret_path)
{
    return pathname_walk(t, dirfd, path,
                         (at_flags & AT_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW) |
                             (at_flags & AT_EMPTY_PATH ? WALK_EMPTY : 0),
                         ret_path);
}

int64_t sys_open_tree(struct task *t, int32_t dirfd, uaddr_t path, uint32_t flags)
{
    if (flags & ~(uint32_t)(OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_NO_AUTOMOUNT |
                            AT_SYMLINK_NOFOLLOW | MOUNT_FD_AT_RECURSIVE))
        return -EINVAL;
    if ((flags & (MOUNT_FD_AT_RECURSIVE | OPEN_TREE_CLONE)) == MOUNT_FD_AT_RECURSIVE)
        return -EINVAL;
    if ((flags & OPEN_TREE_CLONE) && !mount_right(t))
        return -EPERM;
    struct path p, copy;
    int ret = mount_fd_walk(t, dirfd, path, flags, &p);
    if (ret < 0)
        return ret;
    if (!(flags & OPEN_TREE_CLONE)) {
        struct file *f;
        ret = file_open_inode(&t->ctx, &p, O_PATH, &f);
        path_unref(&p);
        return ret < 0 ? ret : fdtable_add(t, f, 0, flags & OPEN_TREE_CLOEXEC);
    }
    if (!p.mount || p.mount->ns != t->ns->mnt)
        ret = -EINVAL;
    else
        ret = mount_float_copy(&t->ctx, &p, flags & MOUNT_FD_AT_RECURSIVE, &copy);
    path_unref(&p);
    return ret < 0 ? ret : mount_fd_install(t, &copy, flags & OPEN_TREE_CLOEXEC);
}

int64_t sys_move_mount(struct task *t, int32_t from_dirfd, uaddr_t from_path, int32_t to_dirfd, uaddr_t to_path,
                       uint32_t flags)
{
    if (!mount_right(t))
        return -EPERM;
    if (flags & ~(uint32_t)(MOVE_MOUNT_F_SYMLINKS | MOVE_MOUNT_F_AUTOMOUNTS | MOVE_MOUNT_F_EMPTY_PATH |
                            MOVE_MOUNT_T_SYMLINKS | MOVE_MOUNT_T_AUTOMOUNTS | MOVE_MOUNT_T_EMPTY_PATH |
                            MOUNT_FD_SET_GROUP | MOUNT_FD_BENEATH))
        return -EINVAL;
    if ((flags & MOUNT_FD_SET_GROUP) && (flags & MOUNT_FD_BENEATH))
        return -EINVAL;
    struct path from, to;
    int ret = pathname_walk(t, from_dirfd, from_path,
                            (flags & MOVE_MOUNT_F_SYMLINKS ? WALK_FOLLOW : 0) |
                                (flags & MOVE_MOUNT_F_EMPTY_PATH ? WALK_EMPTY : 0),
                            &from);
    if (ret < 0)
        return ret;
    ret = pathname_walk(t, to_dirfd, to_path,
                        (flags & MOVE_MOUNT_T_SYMLINKS ? WALK_FOLLOW : 0) |
                            (flags & MOVE_MOUNT_T_EMPTY_PATH ? WALK_EMPTY : 0),
                        &to);
    if (ret == 0) {
        bool ours = from.mount && (from.mount->floating || from.mount->ns == t->ns->mnt);
        ret = !ours || !to.mount || to.mount->ns != t->ns->mnt ? -EINVAL : landlock_fs_topology(&t->ctx);
        if (ret == 0 && (flags & MOUNT_FD_SET_GROUP)) {
            ret = mount_copy_group(&from, &to);
        } else if (ret == 0 && (flags & MOUNT_FD_BENEATH)) {
            mount_follow_down(&to);
            ret = mount_move_beneath(&from, &to);
        } else if (ret == 0) {
            ret = mount_move(&t->ctx, &from, &to);
        }
        path_unref(&to);
    }
    path_unref(&from);
    return ret;
}

/* ---- attributes ---- */

struct mount_fd_attr {
    uint64_t set, clear, propagation, userns_fd;
};

/* MOUNT_ATTR_* as MS_*. Access times are a field of three values, not flags. Return: 0 or −EINVAL. */
static int mount_fd_flags(uint64_t attr, unsigned long *ret_flags)
{
    const uint64_t known = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                           MOUNT_ATTR__ATIME | MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW;
    if (attr & ~known)
        return -EINVAL;
    unsigned long f = 0;
    f |= attr & MOUNT_ATTR_RDONLY ? MS_RDONLY : 0;
    f |= attr & MOUNT_ATTR_NOSUID ? MS_NOSUID : 0;
    f |= attr & MOUNT_ATTR_NODEV ? MS_NODEV : 0;
    f |= attr & MOUNT_ATTR_NOEXEC ? MS_NOEXEC : 0;
    f |= attr & MOUNT_ATTR_NODIRATIME ? MS_NODIRATIME : 0;
    f |= attr & MOUNT_ATTR_NOSYMFOLLOW ? MS_NOSYMFOLLOW : 0;
    *ret_flags = f;
    return 0;
}

static int mount_fd_atime(uint64_t attr, unsigned long *inout_flags)
{
    switch (attr & MOUNT_ATTR__ATIME) {
    case MOUNT_ATTR_RELATIME:
        *inout_flags |= MS_RELATIME;
        return 0;
    case MOUNT_ATTR_NOATIME:
        *inout_flags |= MS_NOATIME;
        return 0;
    case MOUNT_ATTR_STRICTATIME:
        return 0;
    }
    return -EINVAL;
}

static int mount_fd_setattr(struct path *p, const struct mount_fd_attr *a, bool recursive)
{
    unsigned long set, clear;
    int ret = mount_fd_flags(a->set, &set);
    if (ret == 0)
        ret = mount_fd_flags(a->clear, &clear);
    if (ret < 0)
        return ret;
    uint64_t clear_atime = a->clear & MOUNT_ATTR__ATIME;
    if (clear_atime) {
        /* All of the field is cleared, and then one value set. */
        if (clear_atime != MOUNT_ATTR__ATIME)
            return -EINVAL;
        clear |= MS_NOATIME | MS_RELATIME;
        ret = mount_fd_atime(a->set, &set);
    } else if (a->set & MOUNT_ATTR__ATIME) {
        ret = -EINVAL;
    }
    if (ret < 0)
        return ret;
    if (a->propagation && a->propagation != MS_SHARED && a->propagation != MS_PRIVATE &&
        a->propagation != MS_SLAVE && a->propagation != MS_UNBINDABLE)
        return -EINVAL;
    return mount_set_flags(p, clear, set, (unsigned long)a->propagation, recursive);
}

int64_t sys_mount_setattr(struct task *t, int32_t dirfd, uaddr_t path, uint32_t flags, uaddr_t attr,
                          uint64_t size)
{
    struct mount_fd_attr a;
    if (flags & ~(uint32_t)(AT_EMPTY_PATH | MOUNT_FD_AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
        return -EINVAL;
    if (size > PAGE_SIZE)
        return -E2BIG;
    if (size < sizeof(a))
        return -EINVAL;
    if (!mount_right(t))
        return -EPERM;
    int ret = copy_in_struct(&t->ctx, &a, sizeof(a), attr, size);
    if (ret < 0)
        return ret;
    if (!a.set && !a.clear && !a.propagation)
        return 0;
    struct path p;
    ret = mount_fd_walk(t, dirfd, path, flags, &p);
    if (ret < 0)
        return ret;
    if (!p.mount || (p.mount->ns != t->ns->mnt && !p.mount->floating))
        ret = -EINVAL;
    else
        ret = mount_fd_setattr(&p, &a, flags & MOUNT_FD_AT_RECURSIVE);
    path_unref(&p);
    return ret;
}

/* ---- contexts ---- */

struct fs_context {
    const struct fs_type *type; /* NULL: fspick, which can only be reconfigured */
    struct superblock *picked;  /* of fspick, referenced */
    struct buf options;         /* "a,b=c" */
    char *source;
    unsigned long flags;        /* MS_RDONLY … */
    struct dentry *root;        /* after the create command, referenced */
    bool used;                  /* root was taken, or creation failed: nothing works any more */
};

static void fs_context_release(struct file *f)
{
    struct fs_context *c = f->priv;
    superblock_unref(c->picked);
    dentry_unref(c->root);
    buf_free(&c->options);
    mem_free(c->source);
    mem_free(c);
}

/* Messages of the file system: there never are any. */
static ssize_t fs_context_read(struct file *f, struct uio *u, int64_t *pos)
{
    return -ENODATA;
}

static const struct file_ops fs_context_ops = {.read = fs_context_read, .release = fs_context_release};

static int64_t fs_context_install(struct task *t, struct fs_context *c, bool cloexec)
{
    struct file *f = file_new_anon("[fscontext]", 0600, O_RDWR, &fs_context_ops, c, t->ctx.cred);
    if (!f) {
        superblock_unref(c->picked);
        mem_free(c);
        return -ENFILE;
    }
    f->no_seek = true;
    return fdtable_add(t, f, 0, cloexec);
}

int64_t sys_fsopen(struct task *t, uaddr_t name_addr, uint32_t flags)
{
    char name[MOUNT_FD_KEY_SIZE];
    if (!mount_right(t))
        return -EPERM;
    if (flags & ~(uint32_t)FSOPEN_CLOEXEC)
        return -EINVAL;
    ssize_t len = copy_in_str(&t->ctx, name, name_addr, sizeof(name));
    if (len < 0)
        return len == -ENAMETOOLONG ? -EINVAL : len;
    const struct fs_type *type = fs_type_find(name);
    if (!type)
        return -ENODEV;
    struct fs_context *c = NEW(struct fs_context);
    if (!c)
        return -ENOMEM;
    c->type = type;
    return fs_context_install(t, c, flags & FSOPEN_CLOEXEC);
}

int64_t sys_fspick(struct task *t, int32_t dirfd, uaddr_t path, uint32_t flags)
{
    if (!mount_right(t))
        return -EPERM;
    if (flags & ~(uint32_t)(FSPICK_CLOEXEC | FSPICK_SYMLINK_NOFOLLOW | FSPICK_NO_AUTOMOUNT | FSPICK_EMPTY_PATH))
        return -EINVAL;
    struct path p;
    int ret = pathname_walk(t, dirfd, path,
                            (flags & FSPICK_SYMLINK_NOFOLLOW ? 0 : WALK_FOLLOW) |
                                (flags & FSPICK_EMPTY_PATH ? WALK_EMPTY : 0),
                            &p);
    if (ret < 0)
        return ret;
    struct fs_context *c = NULL;
    if (!p.mount || p.dentry != p.mount->root || p.mount->ns != t->ns->mnt)
        ret = -EINVAL;
    else if (!(c = NEW(struct fs_context)))
        ret = -ENOMEM;
    if (ret == 0) {
        c->picked = superblock_ref(p.mount->sb);
        c->flags = p.mount->sb->flags;
    }
    path_unref(&p);
    if (ret < 0)
        return ret;
    return fs_context_install(t, c, flags & FSPICK_CLOEXEC);
}

/* An option that every file system has. Return: whether key is one. */
static bool fs_context_common(struct fs_context *c, const char *key)
{
    static const struct {
        const char *key;
        unsigned long set, clear;
    } common[] = {{"ro", MS_RDONLY, 0},     {"rw", 0, MS_RDONLY},        {"sync", MS_SYNCHRONOUS, 0},
                  {"async", 0, MS_SYNCHRONOUS}, {"dirsync", MS_DIRSYNC, 0}, {"lazytime", MS_LAZYTIME, 0},
                  {"nolazytime", 0, MS_LAZYTIME}};
    for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
        if (!strcmp(key, common[i].key)) {
            c->flags = (c->flags & ~common[i].clear) | common[i].set;
            return true;
        }
    }
    return false;
}

static int fs_context_option(struct fs_context *c, const char *key, const char *value)
{
    if (fs_context_common(c, key)) /* whatever value it is given */
        return 0;
    if (value && !strcmp(key, "source")) {
        if (c->source)
            return -EINVAL;
        c->source = mem_strdup(value);
        return c->source ? 0 : -ENOMEM;
    }
    if (c->options.size + strlen(key) + (value ? strlen(value) : 0) + 2 > MOUNT_FD_OPTIONS_MAX ||
        (value && strchr(value, ',')))
        return -EINVAL;
    if (c->options.size)
        buf_putc(&c->options, ',');
    buf_puts(&c->options, key);
    if (value)
        buf_printf(&c->options, "=%s", value);
    return buf_error(&c->options);
}

static int fs_context_create(struct task *t, struct fs_context *c)
{
    if (c->root || c->used || !c->type)
        return -EBUSY;
    struct dentry *root;
    int ret = fs_type_make(&t->ctx, c->type, c->flags, c->source, c->options.data, &root);
    if (ret < 0) {
        c->used = true;
        return ret;
    }
    c->root = root;
    return 0;
}

static int fs_context_command(struct task *t, struct fs_context *c, uint32_t cmd)
{
    if (cmd != FSCONFIG_CMD_RECONFIGURE)
        return fs_context_create(t, c);
    if (!c->picked)
        return -EBUSY;
    if (!fs_type_may_change(&t->ctx, c->picked))
        return -EPERM;
    int ret = mount_reconfigure(&t->ctx, c->picked, c->flags, c->options.data);
    buf_reset(&c->options);
    return ret;
}

/* What a parameter's value must be besides its key. Return: 0, −EINVAL. */
static int fs_context_check(uint32_t cmd, uaddr_t key, uaddr_t value, int32_t aux)
{
    bool has_key = !uaddr_is_null(key), has_value = !uaddr_is_null(value);
    switch (cmd) {
    case FSCONFIG_SET_FLAG:
        return has_key && !has_value && !aux ? 0 : -EINVAL;
    case FSCONFIG_SET_STRING:
        return has_key && has_value && !aux ? 0 : -EINVAL;
    case FSCONFIG_SET_BINARY:
        return has_key && has_value && aux > 0 && aux <= 1024 * 1024 ? 0 : -EINVAL;
    case FSCONFIG_SET_PATH:
    case FSCONFIG_SET_PATH_EMPTY:
        return has_key && has_value && (aux == AT_FDCWD || aux >= 0) ? 0 : -EINVAL;
    case FSCONFIG_SET_FD:
        return has_key && !has_value && aux >= 0 ? 0 : -EINVAL;
    default:
        return !has_key && !has_value && !aux ? 0 : -EINVAL;
    }
}

/* A value that is a path, a descriptor or bytes: it must be there, and then no file system here has a use for it. */
static int fs_context_object(struct task *t, struct fs_context *c, uint32_t cmd, const char *key, uaddr_t value,
                             int32_t aux)
{
    int ret = 0;
    if (cmd == FSCONFIG_SET_FD) {
        struct file *f = fdtable_get_any(t, aux);
        ret = f ? 0 : -EBADF;
        file_unref(f);
    } else if (cmd != FSCONFIG_SET_BINARY) {
        CLEANUP_PATHNAME char *path = NULL;
        ret = pathname_in(t, value, &path);
        if (ret == 0 && !*path && cmd == FSCONFIG_SET_PATH)
            ret = -ENOENT;
    }
    if (ret < 0)
        return ret;
    return cmd != FSCONFIG_SET_BINARY && fs_context_common(c, key) ? 0 : -EINVAL;
}

static int64_t fs_context_config(struct task *t, struct fs_context *c, uint32_t cmd, uaddr_t key_addr,
                                 uaddr_t value_addr, int32_t aux)
{
    int ret = fs_context_check(cmd, key_addr, value_addr, aux);
    if (ret < 0)
        return ret;
    if (uaddr_is_null(key_addr))
        return fs_context_command(t, c, cmd);
    char key[MOUNT_FD_KEY_SIZE], value[MOUNT_FD_KEY_SIZE];
    ssize_t len = copy_in_str(&t->ctx, key, key_addr, sizeof(key));
    if (len >= 0 && cmd == FSCONFIG_SET_STRING)
        len = copy_in_str(&t->ctx, value, value_addr, sizeof(value));
    if (len < 0)
        return len == -ENAMETOOLONG ? -EINVAL : len;
    if (cmd != FSCONFIG_SET_FLAG && cmd != FSCONFIG_SET_STRING)
        return fs_context_object(t, c, cmd, key, value_addr, aux);
    return fs_context_option(c, key, cmd == FSCONFIG_SET_STRING ? value : NULL);
}

static int fs_context_get(struct task *t, int fd, struct file **ret_file)
{
    struct file *f = fdtable_get(t, fd);
    if (!f)
        return -EBADF;
    if (f->ops != &fs_context_ops) {
        file_unref(f);
        return -EINVAL;
    }
    *ret_file = f;
    return 0;
}

int64_t sys_fsconfig(struct task *t, int32_t fd, uint32_t cmd, uaddr_t key, uaddr_t value, int32_t aux)
{
    struct file *f;
    if (fd < 0)
        return -EINVAL;
    if (cmd > FSCONFIG_CMD_RECONFIGURE)
        return -EOPNOTSUPP;
    int64_t ret = fs_context_get(t, fd, &f);
    if (ret < 0)
        return ret;
    ret = fs_context_config(t, f->priv, cmd, key, value, aux);
    file_unref(f);
    return ret;
}

int64_t sys_fsmount(struct task *t, int32_t fd, uint32_t flags, uint32_t attr_flags)
{
    if (!mount_right(t))
        return -EPERM;
    unsigned long own;
    if (flags & ~(uint32_t)FSMOUNT_CLOEXEC)
        return -EINVAL;
    int64_t ret = mount_fd_flags(attr_flags, &own);
    if (ret == 0)
        ret = mount_fd_atime(attr_flags, &own);
    struct file *f;
    if (ret == 0)
        ret = fs_context_get(t, fd, &f);
    if (ret < 0)
        return ret;
    struct fs_context *c = f->priv;
    struct path p;
    if (!c->root) {
        ret = c->used ? -EBUSY : -EINVAL;
    } else {
        c->used = true;
        ret = mount_float_new(TAKE_PTR(c->root), own, c->source, &p);
    }
    file_unref(f);
    return ret < 0 ? ret : mount_fd_install(t, &p, flags & FSMOUNT_CLOEXEC);
}
