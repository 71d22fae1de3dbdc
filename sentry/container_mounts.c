/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a container's first mount namespace. */
#include "sentry/container_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sentry/container_overlay.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/gofer/gofer_fs.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/kernel/kernel.h"
#include "sentry/sentry.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/path_walk.h"

/* One call's surroundings. */
struct setup {
    struct ctx *ctx;
    struct container *c;
    const struct sentry_container_config *config;
    struct errmsg *e;
    struct path root; /* referenced */
    struct walk_base base;
    struct container_overlay *overlay; /* NULL: nothing has one */
};

static int make_parents(struct setup *s, const char *path)
{
    char part[PATH_SIZE_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t n = (size_t)(slash - path);
        if (n >= sizeof(part))
            return -ENAMETOOLONG;
        memcpy(part, path, n);
        part[n] = '\0';
        int err = vfs_mkdir(s->ctx, &s->base, part, 0755);
        if (err && err != -EEXIST)
            return err;
    }
    return 0;
}

/* The place to mount on, made when missing: a directory, or a file for a file. */
static int target(struct setup *s, const char *path, bool dir, struct path *ret_path)
{
    int err = walk_path(s->ctx, &s->base, path, WALK_FOLLOW, ret_path);
    if (err != -ENOENT)
        return err;
    err = make_parents(s, path);
    if (!err && dir) {
        err = vfs_mkdir(s->ctx, &s->base, path, 0755);
    } else if (!err) {
        struct file *f;
        err = vfs_open(s->ctx, &s->base, path, O_CREAT | O_WRONLY, 0644, &f);
        if (!err)
            file_unref(f);
    }
    return err && err != -EEXIST ? err : walk_path(s->ctx, &s->base, path, WALK_FOLLOW, ret_path);
}

static int get_source(struct setup *s, const struct sentry_mount *m, struct dentry **ret_root)
{
    if (m->tree >= 0) {
        int err = gofer_fs_mount(s->c->gofer, (uint32_t)m->tree, GOFER_SHARED, ret_root);
        bool over = !err && s->config->overlay.all && !(m->flags & MS_RDONLY) && inode_is_dir((*ret_root)->inode);
        return over ? container_overlay_over(s->overlay, s->ctx, *ret_root, (uint32_t)m->tree, ret_root) : err;
    }
    if (strcmp(m->type, "proc") == 0)
        return proc_mount_for(s->c->pidns, s->c, m->data, ret_root);
    const struct fs_type *type = fs_type_find(m->type);
    return type ? type->mount(s->ctx, m->flags, m->source, m->data, ret_root) : -ENODEV;
}

static int add_mount(struct setup *s, const struct sentry_mount *m)
{
    CLEANUP_PATH struct path at = {0};
    struct dentry *root;
    int err = get_source(s, m, &root);
    if (err)
        return errmsg_set(s->e, err, "mount %s (%s) on %s: %s", m->source, m->type, m->destination,
                          strerror(-err));
    err = target(s, m->destination, inode_is_dir(root->inode), &at);
    if (err) {
        dentry_unref(root);
        return errmsg_set(s->e, err, "mount on %s: %s", m->destination, strerror(-err));
    }
    err = mount_attach(s->ctx, root, &at, m->flags & ~(unsigned long)(MS_BIND | MS_REC), m->source);
    if (!err && m->propagation) {
        mount_follow_down(&at);
        err = mount_set_propagation(&at, m->propagation & ~(unsigned long)MS_REC,
                                    m->propagation & MS_REC);
    }
    return err ? errmsg_set(s->e, err, "mount %s on %s: %s", m->source, m->destination,
                            strerror(-err))
               : 0;
}

static int make_device(struct setup *s, const struct sentry_device *d)
{
    int err = make_parents(s, d->path);
    if (!err)
        err = vfs_mknod(s->ctx, &s->base, d->path, d->mode, d->rdev);
    if (err == -EEXIST)
        return 0; /* as runc leaves it */
    if (err == -EPERM && S_ISCHR(d->mode))
        err = devfs_bind_node(s->ctx, &s->base, d->path, d->mode & 07777, d->rdev);
    if (err)
        return err;
    CLEANUP_PATH struct path node = {0};
    struct iattr attr = {.valid = IATTR_UID | IATTR_GID, .uid = d->uid, .gid = d->gid};
    err = walk_path(s->ctx, &s->base, d->path, 0, &node);
    return err ? err : vfs_setattr(s->ctx, &node, &attr);
}

static int make_devices(struct setup *s)
{
    for (unsigned i = 0; i < s->config->devices_len; i++) {
        const struct sentry_device *d = &s->config->devices[i];
        int err = make_device(s, d);
        if (err)
            return errmsg_set(s->e, err, "linux.devices[%u]: %s: %s", i, d->path, strerror(-err));
    }
    return 0;
}

static bool device_named(const void *arg, const char *path)
{
    const struct sentry_container_config *config = arg;
    for (unsigned i = 0; i < config->devices_len; i++)
        if (strcmp(config->devices[i].path, path) == 0)
            return true;
    return false;
}

static int protect_path(struct setup *s, const char *path)
{
    CLEANUP_PATH struct path p = {0};
    int err = walk_path(s->ctx, &s->base, path, WALK_FOLLOW, &p);
    if (err)
        return err == -ENOENT || err == -ENOTDIR ? 0 : err;
    CLEANUP_PATH struct path from = path_ref(p);
    unsigned long keep = p.mount->flags & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME |
                                           MS_NODIRATIME | MS_RELATIME);
    err = mount_bind(s->ctx, &from, &p, true);
    if (err)
        return err;
    mount_follow_down(&p);
    return mount_remount(s->ctx, &p, keep | MS_RDONLY, "", true);
}

static int mask_path(struct setup *s, const char *path)
{
    CLEANUP_PATH struct path p = {0};
    int err = walk_path(s->ctx, &s->base, path, WALK_FOLLOW, &p);
    if (err)
        return err == -ENOENT || err == -ENOTDIR ? 0 : err;
    if (inode_is_dir(p.dentry->inode)) {
        struct dentry *root;
        err = tmpfs_new(s->ctx, MS_RDONLY, "size=0", &root);
        return err ? err : mount_attach(s->ctx, root, &p, MS_RDONLY, "tmpfs");
    }
    CLEANUP_PATH struct path null = {0};
    err = walk_path(s->ctx, &s->base, "/dev/null", WALK_FOLLOW, &null);
    return err ? err : mount_bind(s->ctx, &null, &p, false);
}

/* "net.core.somaxconn=1024": a file below /proc/sys. */
static int set_sysctl(struct setup *s, const char *setting)
{
    char path[512] = "/proc/sys/";
    const char *value = strchr(setting, '=');
    size_t at = strlen(path);
    if (!value || (size_t)(value - setting) + at >= sizeof(path))
        return -EINVAL;
    for (const char *p = setting; p < value; p++)
        path[at++] = *p == '.' ? '/' : *p == '/' ? '.' : *p;
    struct file *f;
    int err = vfs_open(s->ctx, &s->base, path, O_WRONLY, 0, &f);
    if (err)
        return err;
    struct uio u;
    uio_init_kernel(&u, (void *)(value + 1), strlen(value + 1));
    int64_t pos = 0;
    ssize_t n = file_write(f, &u, &pos);
    file_unref(f);
    return n < 0 ? (int)n : 0;
}

static int each(struct setup *s, const char *const *list, const char *what,
                int (*fn)(struct setup *s, const char *arg))
{
    for (; list && *list; list++) {
        int err = fn(s, *list);
        if (err)
            return errmsg_set(s->e, err, "%s %s: %s", what, *list, strerror(-err));
    }
    return 0;
}

static int make_root(struct setup *s)
{
    struct dentry *root;
    int err = gofer_fs_mount(s->c->gofer, 0, GOFER_EXCLUSIVE, &root);
    if (!err && s->overlay)
        err = container_overlay_over(s->overlay, s->ctx, root, 0, &root);
    if (err)
        return errmsg_set(s->e, err, "root file system: %s", strerror(-err));
    err = mntns_new(root, 0, s->overlay ? "overlay" : "rootfs", &s->c->mntns);
    if (err)
        return errmsg_set(s->e, err, "mount namespace: %s", strerror(-err));
    s->root = mntns_root(s->c->mntns);
    s->base = (struct walk_base){.root = &s->root, .cwd = &s->root, .umask = 0};
    if (!s->config->root_propagation)
        return 0;
    unsigned long how = s->config->root_propagation;
    err = mount_set_propagation(&s->root, how & ~(unsigned long)MS_REC, how & MS_REC);
    return err ? errmsg_set(s->e, err, "linux.rootfsPropagation: %s", strerror(-err)) : 0;
}

static int fill(struct setup *s)
{
    const char *failed = "/dev";
    for (unsigned i = 0; i < s->config->mounts_len; i++) {
        int err = add_mount(s, &s->config->mounts[i]);
        if (err)
            return err;
    }
    int err = make_devices(s);
    if (err)
        return err;
    err = devfs_populate(s->ctx, &s->base, device_named, s->config, &failed);
    if (err)
        return errmsg_set(s->e, err, "%s: %s", failed, strerror(-err));
    err = each(s, s->config->sysctl, "linux.sysctl", set_sysctl);
    if (!err)
        err = each(s, s->config->readonly_paths, "read-only path", protect_path);
    if (!err)
        err = each(s, s->config->masked_paths, "masked path", mask_path);
    return err;
}

int container_mounts_make(struct ctx *ctx, struct container *c,
                          const struct sentry_container_config *config, struct errmsg *e)
{
    struct setup s = {.ctx = ctx, .c = c, .config = config, .e = e};
    int err = 0;
    if (config->overlay.root) {
        err = container_overlay_new(ctx, c->gofer, &config->overlay, &s.overlay);
        if (err)
            errmsg_set(e, err, "the layer of the container's changes: %s", strerror(-err));
    }
    if (!err)
        err = make_root(&s);
    if (!err)
        err = fill(&s);
    container_overlay_built(s.overlay);
    path_unref(&s.root);
    container_overlay_free(s.overlay);
    return err;
}
