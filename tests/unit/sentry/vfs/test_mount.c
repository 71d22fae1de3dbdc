/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts: binds, propagation, pivot_root, unmounting, namespaces. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include "sentry/vfs/dentry_priv.h"

TestSuite(mount, .init = world_up, .fini = world_down);

static struct path at(const char *path)
{
    struct path p;
    cr_assert_eq(w_walk(path, WALK_FOLLOW, &p), 0, "%s", path);
    return p;
}

static int new_tmpfs(const char *path, unsigned long flags)
{
    struct dentry *root;
    cr_assert_eq(tmpfs_new(&w.ctx, 0, NULL, &root), 0);
    struct path p = at(path);
    int ret = mount_attach(&w.ctx, root, &p, flags, "tmpfs");
    path_unref(&p);
    return ret;
}

static int bind(const char *from, const char *to, bool recursive)
{
    struct path a = at(from), b = at(to);
    int ret = mount_bind(&w.ctx, &a, &b, recursive);
    path_unref(&a);
    path_unref(&b);
    return ret;
}

static int set_type(const char *path, unsigned long type)
{
    struct path p = at(path);
    int ret = mount_set_propagation(&p, type, false);
    path_unref(&p);
    return ret;
}

static int umount_at(const char *path, int flags)
{
    struct path p = at(path);
    int ret = mount_umount(&w.ctx, &p, flags);
    dentry_unref(p.dentry);
    mount_unref_unused(p.mount);
    return ret;
}

static int move(const char *from, const char *to)
{
    struct path a = at(from), b = at(to);
    int ret = mount_move(&w.ctx, &a, &b);
    path_unref(&a);
    path_unref(&b);
    return ret;
}

static unsigned mounts(void)
{
    struct buf b = {0};
    cr_assert_eq(mntns_print_mounts(w.ns, &w.root, &b), 0);
    unsigned n = 0;
    for (size_t i = 0; i < b.size; i++)
        n += b.data[i] == '\n';
    buf_free(&b);
    return n;
}

static void dirs(const char *const *names)
{
    for (; *names; names++)
        cr_assert_eq(w_mkdir(*names, 0755), 0, "%s", *names);
}

Test(mount, stacking_and_dotdot)
{
    dirs((const char *const[]){"/a", "/a/m", "/a/m/under", NULL});
    cr_assert_eq(new_tmpfs("/a/m", 0), 0);
    cr_assert_eq(w_there("/a/m/under"), -ENOENT);
    cr_assert_eq(w_touch("/a/m/top", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_there("/a/m/../m/top"), 0);
    cr_assert_eq(w_ino("/a/m/.."), w_ino("/a"));
    cr_assert_eq(w_rmdir("/a/m"), -EBUSY);
    cr_assert_eq(w_rename("/a/m", "/a/n", 0), -EBUSY);
    cr_assert_eq(w_rename("/a/m/top", "/a/top", 0), -EXDEV);
    cr_assert_eq(w_link("/a/m/top", "/a/top"), -EXDEV);
    cr_assert_eq(new_tmpfs("/a/m", 0), 0);
    cr_assert_eq(w_there("/a/m/top"), -ENOENT);
    cr_assert_eq(mounts(), 3);
    cr_assert_eq(umount_at("/a/m", 0), 0);
    cr_assert_eq(w_there("/a/m/top"), 0);
    struct file *f;
    cr_assert_eq(w_open("/a/m/top", O_RDONLY, 0, &f), 0);
    cr_assert_eq(umount_at("/a/m", 0), -EBUSY);
    cr_assert_eq(umount_at("/a/m", MNT_DETACH), 0);
    cr_assert_eq(w_there("/a/m/under"), 0);
    char name[64];
    w_name(&f->path, name, sizeof(name));
    cr_assert_str_eq(name, "/top");
    file_unref(f);
    cr_assert_eq(umount_at("/a/m", 0), -EINVAL);
    cr_assert_eq(umount_at("/", 0), -EBUSY);
    /* a file on a file, not on a directory */
    cr_assert_eq(w_touch("/f", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_touch("/g", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(bind("/f", "/a", false), -ENOTDIR);
    cr_assert_eq(bind("/a", "/f", false), -ENOTDIR);
    cr_assert_eq(bind("/f", "/g", false), 0);
    cr_assert_eq(w_ino("/g"), w_ino("/f"));
    cr_assert_eq(w_unlink("/g"), -EBUSY);
    cr_assert_eq(umount_at("/g", 0), 0);
    cr_assert_eq(w_unlink("/g"), 0);
}

Test(mount, binds)
{
    dirs((const char *const[]){"/a", "/a/s", "/a/s/t", "/b", "/c", NULL});
    cr_assert_eq(new_tmpfs("/a/s/t", 0), 0);
    cr_assert_eq(w_touch("/a/s/t/inner", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(bind("/a", "/b", false), 0);
    cr_assert_eq(bind("/a/s", "/c", true), 0);
    cr_assert_eq(w_there("/b/s/t/inner"), -ENOENT);
    cr_assert_eq(w_there("/c/t/inner"), 0);
    cr_assert_eq(w_rename("/b/s", "/a/s2", 0), -EXDEV);
    /* read-only bind: the other view stays writable */
    struct path p = at("/b");
    cr_assert_eq(mount_remount(&w.ctx, &p, MS_RDONLY | MS_NOEXEC, NULL, true), 0);
    path_unref(&p);
    cr_assert_eq(w_touch("/b/new", O_CREAT | O_RDWR, 0644), -EROFS);
    cr_assert_eq(w_mkdir("/b/new", 0755), -EROFS);
    cr_assert_eq(w_touch("/a/new", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_touch("/b/new", O_RDWR, 0), -EROFS);
    cr_assert_eq(w_touch("/b/new", O_RDONLY, 0), 0);
    cr_assert_eq(w_unlink("/b/new"), -EROFS);
    /* writers stop a remount */
    struct file *f;
    cr_assert_eq(w_open("/c/wfile", O_CREAT | O_RDWR, 0644, &f), 0);
    p = at("/c");
    cr_assert_eq(mount_remount(&w.ctx, &p, MS_RDONLY, NULL, true), -EBUSY);
    file_unref(f);
    cr_assert_eq(mount_remount(&w.ctx, &p, MS_RDONLY, NULL, true), 0);
    path_unref(&p);
    cr_assert_eq(set_type("/b", MS_UNBINDABLE), 0);
    cr_assert_eq(bind("/b", "/c", false), -EINVAL);
    cr_assert_eq(umount_at("/c", 0), -EBUSY); /* a child */
    cr_assert_eq(umount_at("/c", MNT_DETACH), 0);
    cr_assert_eq(mounts(), 3);
}

Test(mount, propagation)
{
    dirs((const char *const[]){"/src", "/src/m", "/peer", "/slave", "/priv", NULL});
    cr_assert_eq(new_tmpfs("/src", 0), 0);
    dirs((const char *const[]){"/src/m", NULL});
    cr_assert_eq(set_type("/src", MS_SHARED), 0);
    cr_assert_eq(bind("/src", "/peer", false), 0);
    cr_assert_eq(bind("/src", "/slave", false), 0);
    cr_assert_eq(bind("/src", "/priv", false), 0);
    cr_assert_eq(set_type("/slave", MS_SLAVE), 0);
    cr_assert_eq(set_type("/priv", MS_PRIVATE), 0);
    cr_assert_eq(mounts(), 5);
    cr_assert_eq(new_tmpfs("/src/m", 0), 0);
    cr_assert_eq(mounts(), 8);
    cr_assert_eq(w_touch("/src/m/x", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_there("/peer/m/x"), 0);
    cr_assert_eq(w_there("/slave/m/x"), 0);
    cr_assert_eq(w_there("/priv/m/x"), -ENOENT);
    /* from the peer back, from the slave not */
    cr_assert_eq(umount_at("/peer/m", 0), 0);
    cr_assert_eq(mounts(), 5);
    cr_assert_eq(new_tmpfs("/slave/m", 0), 0);
    cr_assert_eq(mounts(), 6);
    cr_assert_eq(umount_at("/slave/m", 0), 0);
    /* a slave that shares on: its own peers get it, too */
    dirs((const char *const[]){"/slave2", NULL});
    cr_assert_eq(set_type("/slave", MS_SHARED), 0);
    cr_assert_eq(bind("/slave", "/slave2", false), 0);
    cr_assert_eq(new_tmpfs("/peer/m", 0), 0);
    cr_assert_eq(w_touch("/peer/m/y", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_there("/src/m/y"), 0);
    cr_assert_eq(w_there("/slave/m/y"), 0);
    cr_assert_eq(w_there("/slave2/m/y"), 0);
    cr_assert_eq(mounts(), 10);
    cr_assert_eq(umount_at("/src/m", 0), 0);
    cr_assert_eq(mounts(), 6);
    cr_assert_eq(move("/src", "/priv"), 0);
    struct buf b = {0};
    cr_assert_eq(mntns_print_mountinfo(w.ns, &w.root, &b), 0);
    cr_assert(strstr(b.data, "shared:") && strstr(b.data, "master:"));
    buf_free(&b);
}

Test(mount, move_refuses)
{
    dirs((const char *const[]){"/a", "/b", NULL});
    cr_assert_eq(new_tmpfs("/a", 0), 0);
    dirs((const char *const[]){"/a/in", NULL});
    cr_assert_eq(move("/a", "/a/in"), -ELOOP);
    cr_assert_eq(move("/a/in", "/b"), -EINVAL);
    cr_assert_eq(move("/", "/b"), -EINVAL);
    cr_assert_eq(move("/a", "/b"), 0);
    cr_assert_eq(w_there("/b/in"), 0);
    cr_assert_eq(w_there("/a/in"), -ENOENT);
}

Test(mount, pivot_root)
{
    dirs((const char *const[]){"/new", NULL});
    cr_assert_eq(new_tmpfs("/new", 0), 0);
    dirs((const char *const[]){"/new/old", "/stay", NULL});
    struct path n = at("/new"), old = at("/new/old"), plain = at("/stay");
    cr_assert_eq(mount_pivot_root(&w.ctx, &plain, &old, &w.root), -EBUSY);
    cr_assert_eq(mount_pivot_root(&w.ctx, &n, &plain, &w.root), -EBUSY);
    cr_assert_eq(mount_pivot_root(&w.ctx, &n, &old, &w.root), 0);
    path_unref(&plain);
    path_unref(&w.root);
    w.root = path_ref(n);
    cr_assert_eq(w_there("/old/stay"), 0);
    cr_assert_eq(w_there("/stay"), -ENOENT);
    cr_assert_eq(w_ino("/old/.."), w_ino("/"));
    path_unref(&n);
    path_unref(&old);
    cr_assert_eq(umount_at("/old", MNT_DETACH), 0);
    cr_assert_eq(mounts(), 1);
}

Test(mount, pivot_root_onto_itself)
{
    /* What runc does: pivot_root(".", "."), then lazily unmount what lies on top. */
    dirs((const char *const[]){"/new", NULL});
    cr_assert_eq(new_tmpfs("/new", 0), 0);
    dirs((const char *const[]){"/new/proof", NULL});
    struct path n = at("/new"), same = path_ref(n), old_root = path_ref(w.root);
    cr_assert_eq(mount_pivot_root(&w.ctx, &n, &same, &w.root), 0);
    path_unref(&w.root);
    w.root = path_ref(n);
    cr_assert_eq(mount_umount(&w.ctx, &old_root, MNT_DETACH), 0);
    cr_assert_eq(w_there("/proof"), 0);
    cr_assert_eq(mounts(), 1);
    path_unref(&n);
    path_unref(&same);
    path_unref(&old_root);
}

Test(mount, namespaces)
{
    dirs((const char *const[]){"/m", "/shared", NULL});
    cr_assert_eq(new_tmpfs("/shared", 0), 0);
    cr_assert_eq(set_type("/shared", MS_SHARED), 0);
    dirs((const char *const[]){"/shared/sub", NULL});
    struct path root = path_ref(w.root);
    struct path *paths[] = {&root};
    struct mntns *copy;
    cr_assert_eq(mntns_clone(w.ns, NULL, 0, paths, 1, &copy), 0);
    cr_assert_neq(root.mount, w.root.mount);
    cr_assert_eq(new_tmpfs("/m", 0), 0);          /* private: here only */
    cr_assert_eq(new_tmpfs("/shared/sub", 0), 0); /* shared: there as well */
    struct buf b = {0};
    cr_assert_eq(mntns_print_mounts(copy, &root, &b), 0);
    cr_assert(!strstr(b.data, " /m "));
    cr_assert(strstr(b.data, " /shared/sub "));
    buf_free(&b);
    path_unref(&root);
    mntns_unref(copy);
    cr_assert_eq(mounts(), 4);
    /* A directory that is a mountpoint only elsewhere may go. */
    root = path_ref(w.root);
    cr_assert_eq(mntns_clone(w.ns, NULL, 0, paths, 1, &copy), 0);
    cr_assert_eq(umount_at("/m", 0), 0);
    cr_assert_eq(w_rmdir("/m"), 0);
    path_unref(&root);
    mntns_unref(copy);
}

Test(mount, expire)
{
    dirs((const char *const[]){"/m", NULL});
    cr_assert_eq(new_tmpfs("/m", 0), 0);
    cr_assert_eq(umount_at("/m", MNT_EXPIRE | MNT_DETACH), -EINVAL);
    cr_assert_eq(umount_at("/m", MNT_EXPIRE), -EAGAIN);
    struct path used = at("/m");
    path_unref(&used);
    cr_assert_eq(umount_at("/m", MNT_EXPIRE), -EAGAIN);
    cr_assert_eq(umount_at("/m", MNT_EXPIRE), 0);
}

Test(mount, everything_is_given_back)
{
    dirs((const char *const[]){"/m", NULL});
    uint32_t before = dentry_count();
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(new_tmpfs("/m", 0), 0);
        dirs((const char *const[]){"/m/a", "/m/a/b", NULL});
        cr_assert_eq(w_touch("/m/a/b/f", O_CREAT | O_RDWR, 0644), 0);
        cr_assert_eq(umount_at("/m", 0), 0);
    }
    cr_assert_eq(dentry_count(), before);
}
