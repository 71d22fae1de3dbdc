/* SPDX-License-Identifier: Apache-2.0 */
/* Overlays over a container's trees. */
#include "sentry/container_overlay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/fs/gofer/gofer_fs.h"
#include "sentry/fs/overlay/overlay.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/sentry.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"
#include "sentry/vfs/path_walk.h"

struct container_overlay {
    struct path top; /* referenced; a mount of no name space */
    bool memory;     /* nothing is there yet, and nothing outlives the sandbox */
};

/* In memory: a tmpfs. */
static int overlay_memory(struct ctx *ctx, uint64_t size, struct dentry **ret_root)
{
    char options[64] = "mode=755";
    if (size)
        snprintf(options, sizeof(options), "mode=755,size=%" PRIu64, size);
    return tmpfs_new(ctx, 0, options, ret_root);
}

int container_overlay_new(struct ctx *ctx, struct gofer_client *gofer, const struct sentry_overlay *how,
                          struct container_overlay **ret_overlay)
{
    struct container_overlay *o = NEW(struct container_overlay);
    struct dentry *root;
    if (!o)
        return -ENOMEM;
    o->memory = how->tree < 0;
    int err = o->memory ? overlay_memory(ctx, how->size, &root)
                        : gofer_fs_mount(gofer, (uint32_t)how->tree, GOFER_EXCLUSIVE, &root);
    if (!err && how->size && !o->memory) {
        err = gofer_fs_limit(root, how->size, how->used, how->names);
        if (err)
            dentry_unref(root);
    }
    if (!err)
        err = mount_float_new(root, 0, o->memory ? "tmpfs" : "layer", &o->top);
    if (err) {
        mem_free(o);
        return err;
    }
    *ret_overlay = o;
    return 0;
}

/* A directory of the layers' place, made when that is new. */
static int overlay_dir(const struct container_overlay *o, struct ctx *ctx, const char *path, struct path *ret_path)
{
    struct path top = o->top;
    struct walk_base base = {.root = &top, .cwd = &top, .umask = 0};
    int err = o->memory ? vfs_mkdir(ctx, &base, path, 0755) : 0;
    return err ? err : walk_path(ctx, &base, path, WALK_DIRECTORY, ret_path);
}

/* The root shows the attributes of the uppermost layer. */
static int overlay_take_attrs(struct ctx *ctx, const struct path *from, struct path *to)
{
    const struct inode *inode = from->dentry->inode;
    struct iattr a = {
        .valid = IATTR_MODE | IATTR_UID | IATTR_GID, .mode = inode->mode & 07777, .uid = inode->uid, .gid = inode->gid};
    return vfs_setattr(ctx, to, &a);
}

int container_overlay_over(struct container_overlay *o, struct ctx *ctx, struct dentry *lower_root, uint32_t tree,
                           struct dentry **ret_root)
{
    CLEANUP_PATH struct path lower = {0}, layer = {0}, upper = {0}, work = {0};
    char name[48];
    int err = mount_float_new(lower_root, MS_RDONLY, "lower", &lower);
    snprintf(name, sizeof(name), "/%" PRIu32, tree);
    if (!err)
        err = overlay_dir(o, ctx, name, &layer);
    snprintf(name, sizeof(name), "/%" PRIu32 "/upper", tree);
    if (!err)
        err = overlay_dir(o, ctx, name, &upper);
    snprintf(name, sizeof(name), "/%" PRIu32 "/work", tree);
    if (!err)
        err = overlay_dir(o, ctx, name, &work);
    if (!err && o->memory)
        err = overlay_take_attrs(ctx, &lower, &upper);
    if (!err) {
        const struct overlay_config config = {
            .lowers = &lower,
            .lowers_len = 1,
            .upper = upper,
            .work = work,
            .prefix = OVERLAY_PREFIX_PRIVATE,
            .handles = true,
            .volatile_ = o->memory,
        };
        err = overlay_new(ctx, &config, ret_root);
    }
    /* The overlay has references of its own. */
    if (lower.mount)
        mount_sink(lower.mount);
    return err;
}

void container_overlay_built(struct container_overlay *o)
{
    if (o && !o->memory)
        gofer_fs_enforce_limit(o->top.dentry);
}

void container_overlay_free(struct container_overlay *o)
{
    if (!o)
        return;
    mount_sink(o->top.mount);
    path_unref(&o->top);
    mem_free(o);
}
