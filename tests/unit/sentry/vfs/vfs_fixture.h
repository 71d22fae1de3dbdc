/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel-less world for VFS tests: credentials, one tmpfs as root, and short names for the usual calls. */
#pragma once

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "platform/platform.h"
#include "sentry/core/cred.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/vfs/path_walk.h"

/* There is no guest: nothing may be copied from or to one. */
int plat_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size)
{
    return -EFAULT;
}
int plat_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size)
{
    return -EFAULT;
}

struct world {
    struct ctx ctx;
    struct cred *root_cred, *user_cred;
    struct mntns *ns;
    struct path root;
    struct walk_base base;
};

static struct world w;

static inline void world_up(void)
{
    cr_assert_eq(cred_new_root(&w.root_cred), 0);
    cr_assert_eq(cred_dup(w.root_cred, 0, &w.user_cred), 0);
    struct cred *u = w.user_cred;
    u->uid = u->euid = u->suid = u->fsuid = 1000;
    u->gid = u->egid = u->sgid = u->fsgid = 1000;
    u->cap_effective = u->cap_permitted = 0;
    w.ctx.cred = w.root_cred;
    tmpfs_register(1ULL << 30);
    struct dentry *root;
    cr_assert_eq(tmpfs_new(&w.ctx, 0, "mode=755", &root), 0);
    cr_assert_eq(mntns_new(root, MS_RELATIME, "root", &w.ns), 0);
    w.root = mntns_root(w.ns);
    w.base = (struct walk_base){.root = &w.root, .cwd = &w.root, .umask = 022};
}

/* Everything is given back: no dentry is left but those of internal mounts, which callers say. */
static inline void world_down(void)
{
    path_unref(&w.root);
    mntns_unref(w.ns);
    cred_unref(w.root_cred);
    cred_unref(w.user_cred);
}

static inline int w_open(const char *path, uint32_t flags, uint32_t mode, struct file **ret_file)
{
    return vfs_open(&w.ctx, &w.base, path, flags, mode, ret_file);
}

/* Makes (or opens) and closes. Return: as vfs_open. */
static inline int w_touch(const char *path, uint32_t flags, uint32_t mode)
{
    struct file *f;
    int ret = w_open(path, flags, mode, &f);
    if (ret == 0)
        file_unref(f);
    return ret;
}

static inline int w_mkdir(const char *path, uint32_t mode)
{
    return vfs_mkdir(&w.ctx, &w.base, path, mode);
}
static inline int w_symlink(const char *target, const char *path)
{
    return vfs_symlink(&w.ctx, &w.base, path, target);
}
static inline int w_unlink(const char *path)
{
    return vfs_unlink(&w.ctx, &w.base, path);
}
static inline int w_rmdir(const char *path)
{
    return vfs_rmdir(&w.ctx, &w.base, path);
}
static inline int w_rename(const char *from, const char *to, unsigned flags)
{
    return vfs_rename(&w.ctx, &w.base, from, &w.base, to, flags);
}
static inline int w_walk(const char *path, unsigned flags, struct path *ret_path)
{
    return walk_path(&w.ctx, &w.base, path, flags, ret_path);
}
/* Return: error of a following walk, 0 when path is there. */
static inline int w_there(const char *path)
{
    struct path p;
    int ret = w_walk(path, WALK_FOLLOW, &p);
    if (ret == 0)
        path_unref(&p);
    return ret;
}
static inline uint64_t w_ino(const char *path)
{
    struct path p;
    cr_assert_eq(w_walk(path, 0, &p), 0, "%s", path);
    uint64_t ino = p.dentry->inode->ino;
    path_unref(&p);
    return ino;
}
static inline int w_link(const char *from, const char *to)
{
    struct path p;
    int ret = w_walk(from, 0, &p);
    if (ret == 0) {
        ret = vfs_link(&w.ctx, &p, &w.base, to);
        path_unref(&p);
    }
    return ret;
}
static inline void w_as_user(void)
{
    w.ctx.cred = w.user_cred;
}
static inline void w_as_root(void)
{
    w.ctx.cred = w.root_cred;
}
static inline ssize_t w_pwrite(struct file *f, const void *p, size_t size, int64_t pos)
{
    struct uio u;
    uio_init_kernel(&u, (void *)(uintptr_t)p, size);
    u.ctx = &w.ctx;
    ssize_t n = file_write(f, &u, &pos);
    uio_free(&u);
    return n;
}
/* The path of p as seen from the world's root. */
static inline void w_name(const struct path *p, char *dst, size_t size)
{
    struct buf b = {0};
    cr_assert_eq(path_print(p, &w.root, &b), 0);
    snprintf(dst, size, "%s", b.data);
    buf_free(&b);
}
