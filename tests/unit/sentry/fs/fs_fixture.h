/* SPDX-License-Identifier: Apache-2.0 */
/* A small system for tests of devices, terminals and proc: processes that never run, and a tmpfs root with /dev, /dev/pts and
 * /proc as a container has them. "Guest" addresses are the test's own. */
#pragma once

#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "sentry/fs/devfs.h"
#include "sentry/fs/fs_register.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/fs/tmpfs/tmpfs.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/utsns.h"
#include "sentry/vfs/path_walk.h"
#include "tests/unit/sentry/ipc_fixture.h"
#include "tests/unit/sentry/kernel/kernel_fixture.h"

static struct path s_root;
static struct walk_base s_base;
static struct task *s_init;

static inline void s_mount(const char *type, const char *at, const char *data)
{
    struct path p;
    struct dentry *root;
    int r = vfs_mkdir(&s_init->ctx, &s_base, at, 0755);

    cr_assert(r == 0 || r == -EEXIST, "%s: %d", at, r);
    cr_assert_eq(walk_path(&s_init->ctx, &s_base, at, WALK_FOLLOW, &p), 0);
    cr_assert_eq(fs_type_find(type)->mount(&s_init->ctx, 0, type, data, &root), 0, "%s", type);
    cr_assert_eq(mount_attach(&s_init->ctx, root, &p, 0, type), 0);
    path_unref(&p);
}

/* Gives t files, directories and namespaces, and the test's memory. */
static inline void s_equip(struct task *t)
{
    struct nsproxy like = {.mnt = w.c.mntns, .uts = w.c.utsns, .pid_for_children = w.c.pidns};

    t->ctx.thread = &fx_thread;
    cr_assert_eq(fdtable_new(&t->files), 0);
    cr_assert_eq(fsctx_new(&s_root, &s_root, 022, &t->fs), 0);
    cr_assert_eq(nsproxy_dup(&like, &t->ns), 0);
}

static inline void s_up(void)
{
    struct dentry *root;
    struct ctx ctx = {0};
    const char *at = "";

    fx_up();
    world_up();
    w.c.init = w.init;
    s_init = w.init->leader;
    tmpfs_register(1ULL << 30);
    fs_register_all();
    ctx.cred = w.root;
    cr_assert_eq(tmpfs_new(&ctx, 0, "mode=755", &root), 0);
    cr_assert_eq(mntns_new(root, 0, "root", &w.c.mntns), 0);
    cr_assert_eq(utsns_new(NULL, "box", NULL, &w.c.utsns), 0);
    s_root = mntns_root(w.c.mntns);
    s_base = (struct walk_base){.root = &s_root, .cwd = &s_root};
    s_equip(s_init);
    s_mount("proc", "/proc", "");
    s_mount("sysfs", "/sys", "");
    s_mount("tmpfs", "/dev", "mode=755");
    s_mount("devpts", "/dev/pts", "mode=620,ptmxmode=666,gid=5");
    cr_assert_eq(devfs_populate(&s_init->ctx, &s_base, NULL, NULL, &at), 0, "%s", at);
}

static inline struct task *s_fork(struct tgroup *parent)
{
    struct tgroup *g = w_process(parent, w.c.pidns);

    s_equip(g->leader);
    return g->leader;
}

static inline int s_try_open(struct task *t, const char *path, uint32_t flags, struct file **ret_file)
{
    return vfs_open(&t->ctx, &s_base, path, flags, 0, ret_file);
}

static inline struct file *s_open(struct task *t, const char *path, uint32_t flags)
{
    struct file *f;
    int r = s_try_open(t, path, flags, &f);

    cr_assert_eq(r, 0, "%s: %d", path, r);
    return f;
}

static inline ssize_t s_read(struct task *t, struct file *f, void *p, size_t size)
{
    struct uio u;

    uio_init_user(&u, &t->ctx, UADDR((uintptr_t)p), size);
    return file_read(f, &u, &f->pos);
}

static inline ssize_t s_write(struct task *t, struct file *f, const char *text)
{
    struct uio u;

    uio_init_user(&u, &t->ctx, UADDR((uintptr_t)text), strlen(text));
    return file_write(f, &u, &f->pos);
}

static inline int64_t s_ioctl(struct task *t, struct file *f, uint32_t cmd, const void *arg)
{
    return file_ioctl(&t->ctx, f, cmd, (uint64_t)(uintptr_t)arg);
}

/* Reads what is there without waiting; compares. */
static inline void s_expect(struct task *t, struct file *f, const char *text)
{
    char got[4096] = {0};
    uint32_t flags = f->flags;
    ssize_t n;

    f->flags |= O_NONBLOCK;
    n = s_read(t, f, got, sizeof(got) - 1);
    f->flags = flags;
    cr_assert_eq(n, (ssize_t)strlen(text), "%zd: %s", n, got);
    cr_assert_str_eq(got, text);
}

/* The whole text of a file. */
static inline char *s_cat(struct task *t, const char *path)
{
    static char text[65536];
    struct file *f = s_open(t, path, O_RDONLY);
    size_t size = 0;
    ssize_t n;

    while ((n = s_read(t, f, text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)n;
    cr_assert_eq(n, 0, "%s: %zd", path, n);
    text[size] = '\0';
    file_unref(f);
    return text;
}
