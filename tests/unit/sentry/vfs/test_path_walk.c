/* SPDX-License-Identifier: Apache-2.0 */
/* Path resolution over a tmpfs. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <linux/openat2.h>
#include <time.h>

#include "sentry/vfs/dentry_priv.h"

TestSuite(path_walk, .init = world_up, .fini = world_down);

static int resolve_open(const char *path, unsigned resolve, const struct path *cwd)
{
    struct walk_base base = w.base;
    base.resolve = resolve;
    if (cwd)
        base.cwd = cwd;
    struct path p;
    int ret = walk_path(&w.ctx, &base, path, WALK_FOLLOW, &p);
    if (ret == 0)
        path_unref(&p);
    return ret;
}

Test(path_walk, components)
{
    cr_assert_eq(w_mkdir("/a", 0755), 0);
    cr_assert_eq(w_mkdir("a/b/", 0755), 0);
    cr_assert_eq(w_mkdir("/a/b/c", 0755), 0);
    cr_assert_eq(w_mkdir("/a", 0755), -EEXIST);
    cr_assert_eq(w_mkdir("/", 0755), -EEXIST);
    cr_assert_eq(w_mkdir("/x/y", 0755), -ENOENT);
    cr_assert_eq(w_touch("/a/b/f", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_there("//a//./b/../b/c/.."), 0);
    cr_assert_eq(w_there("/../../a"), 0);
    cr_assert_eq(w_there("/a/b/f/"), -ENOTDIR);
    cr_assert_eq(w_there("/a/b/f/."), -ENOTDIR);
    cr_assert_eq(w_there("/a/b/f/x"), -ENOTDIR);
    cr_assert_eq(w_there("/a/b/c/"), 0);
    cr_assert_eq(w_there(""), -ENOENT);
    cr_assert_eq(w_there("/a/nope"), -ENOENT);
    cr_assert_eq(w_there("/a/nope/x"), -ENOENT);
    char longname[400];
    memset(longname, 'n', sizeof(longname));
    longname[256] = '\0';
    cr_assert_eq(w_there(longname), -ENAMETOOLONG);
    cr_assert_eq(w_mkdir(longname, 0755), -ENAMETOOLONG);
    longname[255] = '\0';
    cr_assert_eq(w_mkdir(longname, 0755), 0);
    cr_assert_eq(w_there(longname), 0);
}

Test(path_walk, symlinks)
{
    cr_assert_eq(w_mkdir("/a", 0755), 0);
    cr_assert_eq(w_mkdir("/a/b", 0755), 0);
    cr_assert_eq(w_touch("/a/b/f", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_symlink("b", "/a/l"), 0);
    cr_assert_eq(w_symlink("/a/l/f", "/abs"), 0);
    cr_assert_eq(w_symlink("a/l/../b/", "/rel"), 0);
    cr_assert_eq(w_symlink("/", "/rootlink"), 0);
    cr_assert_eq(w_symlink("nowhere", "/dangling"), 0);
    cr_assert_eq(w_ino("/abs") == w_ino("/a/b/f"), false);
    cr_assert_eq(w_there("/abs"), 0);
    cr_assert_eq(w_there("/rel/f"), 0);
    cr_assert_eq(w_there("/rootlink/rel/../l/f"), 0);
    cr_assert_eq(w_there("/rootlink"), 0);
    cr_assert_eq(w_there("/dangling"), -ENOENT);
    struct path p;
    cr_assert_eq(w_walk("/dangling", 0, &p), 0);
    cr_assert(S_ISLNK(p.dentry->inode->mode));
    path_unref(&p);
    cr_assert_eq(w_walk("/dangling/", 0, &p), -ENOENT);
    cr_assert_eq(w_walk("/abs/", 0, &p), -ENOTDIR);
    /* Created through a dangling link; not with O_EXCL, not without following. */
    cr_assert_eq(w_touch("/dangling", O_CREAT | O_EXCL | O_RDWR, 0644), -EEXIST);
    cr_assert_eq(w_touch("/dangling", O_CREAT | O_NOFOLLOW | O_RDWR, 0644), -ELOOP);
    cr_assert_eq(w_touch("/dangling", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_there("/nowhere"), 0);
    cr_assert_eq(w_symlink("", "/empty"), -ENOENT);
}

Test(path_walk, symlink_loops)
{
    cr_assert_eq(w_symlink("loop2", "/loop1"), 0);
    cr_assert_eq(w_symlink("loop1", "/loop2"), 0);
    cr_assert_eq(w_there("/loop1"), -ELOOP);
    cr_assert_eq(w_touch("/loop1", O_CREAT | O_RDWR, 0644), -ELOOP);
    cr_assert_eq(w_there("/loop1/x"), -ELOOP);
    /* 40 links in a row are fine, 41 are not. */
    cr_assert_eq(w_touch("/n0", O_CREAT | O_RDWR, 0644), 0);
    char from[16], to[16];
    for (int i = 1; i <= 41; i++) {
        snprintf(to, sizeof(to), "n%d", i - 1);
        snprintf(from, sizeof(from), "/n%d", i);
        cr_assert_eq(w_symlink(to, from), 0);
    }
    cr_assert_eq(w_there("/n40"), 0);
    cr_assert_eq(w_there("/n41"), -ELOOP);
    /* Nested in the middle of texts. */
    cr_assert_eq(w_mkdir("/d", 0755), 0);
    cr_assert_eq(w_symlink("d", "/m0"), 0);
    for (int i = 1; i <= 20; i++) {
        snprintf(to, sizeof(to), "m%d/.", i - 1);
        snprintf(from, sizeof(from), "/m%d", i);
        cr_assert_eq(w_symlink(to, from), 0);
    }
    cr_assert_eq(w_there("/m19/../m19"), 0);
    cr_assert_eq(w_there("/m20/../m20"), -ELOOP);
}

Test(path_walk, open_flags)
{
    cr_assert_eq(w_mkdir("/d", 0755), 0);
    cr_assert_eq(w_touch("/f", O_CREAT | O_EXCL | O_WRONLY, 0644), 0);
    cr_assert_eq(w_touch("/f", O_CREAT | O_EXCL | O_WRONLY, 0644), -EEXIST);
    cr_assert_eq(w_touch("/f", O_DIRECTORY, 0), -ENOTDIR);
    cr_assert_eq(w_touch("/d", O_WRONLY, 0), -EISDIR);
    cr_assert_eq(w_touch("/d", O_CREAT | O_RDONLY, 0), -EISDIR);
    cr_assert_eq(w_touch("/d/", O_CREAT | O_RDONLY, 0), -EISDIR);
    cr_assert_eq(w_touch("/new/", O_CREAT | O_RDONLY, 0), -EISDIR);
    cr_assert_eq(w_touch("/d/.", O_CREAT | O_RDONLY, 0), -EISDIR);
    cr_assert_eq(w_touch("/f/", O_RDONLY, 0), -ENOTDIR);
    cr_assert_eq(w_symlink("f", "/l"), 0);
    cr_assert_eq(w_touch("/l", O_NOFOLLOW, 0), -ELOOP);
    cr_assert_eq(w_touch("/l", O_NOFOLLOW | O_DIRECTORY, 0), -ENOTDIR);
    cr_assert_eq(w_touch("/l", O_NOFOLLOW | O_PATH, 0), 0);
    struct file *f;
    cr_assert_eq(w_open("/d", O_TMPFILE | O_RDWR, 0600, &f), 0);
    cr_assert_eq(f->inode->nlink, 0);
    cr_assert_eq(vfs_link(&w.ctx, &f->path, &w.base, "/linked"), 0);
    cr_assert_eq(f->inode->nlink, 1);
    file_unref(f);
    cr_assert_eq(w_there("/linked"), 0);
    cr_assert_eq(w_open("/d", O_TMPFILE | O_EXCL | O_RDWR, 0600, &f), 0);
    cr_assert_eq(vfs_link(&w.ctx, &f->path, &w.base, "/linked2"), -ENOENT);
    file_unref(f);
}

Test(path_walk, resolve)
{
    cr_assert_eq(w_mkdir("/d", 0755), 0);
    cr_assert_eq(w_mkdir("/d/e", 0755), 0);
    cr_assert_eq(w_touch("/d/e/f", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_symlink("/e/f", "/d/abs"), 0);
    cr_assert_eq(w_symlink("../d/e", "/d/up"), 0);
    cr_assert_eq(w_symlink("e", "/d/in"), 0);
    struct path d;
    cr_assert_eq(w_walk("/d", 0, &d), 0);
    cr_assert_eq(resolve_open("e/../e/f", RESOLVE_BENEATH, &d), 0);
    cr_assert_eq(resolve_open("..", RESOLVE_BENEATH, &d), -EXDEV);
    cr_assert_eq(resolve_open("e/../../d", RESOLVE_BENEATH, &d), -EXDEV);
    cr_assert_eq(resolve_open("/d", RESOLVE_BENEATH, &d), -EXDEV);
    cr_assert_eq(resolve_open("abs", RESOLVE_BENEATH, &d), -EXDEV);
    cr_assert_eq(resolve_open("up", RESOLVE_BENEATH, &d), -EXDEV);
    cr_assert_eq(resolve_open("in/f", RESOLVE_BENEATH, &d), 0);
    cr_assert_eq(resolve_open("abs", RESOLVE_IN_ROOT, &d), 0);
    cr_assert_eq(resolve_open("/e/f", RESOLVE_IN_ROOT, &d), 0);
    cr_assert_eq(resolve_open("../../e", RESOLVE_IN_ROOT, &d), 0);
    cr_assert_eq(resolve_open("in/f", RESOLVE_NO_SYMLINKS, &d), -ELOOP);
    cr_assert_eq(resolve_open("e/f", RESOLVE_NO_SYMLINKS, &d), 0);
    cr_assert_eq(resolve_open("e/f", RESOLVE_CACHED, &d), 0);
    dentry_shrink(0);
    cr_assert_eq(resolve_open("e/f", RESOLVE_CACHED, &d), -EAGAIN);
    struct dentry *other;
    cr_assert_eq(tmpfs_new(&w.ctx, 0, NULL, &other), 0);
    struct path at;
    cr_assert_eq(w_walk("/d/e", 0, &at), 0);
    cr_assert_eq(mount_attach(&w.ctx, other, &at, 0, "t"), 0);
    path_unref(&at);
    cr_assert_eq(resolve_open("e", RESOLVE_NO_XDEV, &d), -EXDEV);
    cr_assert_eq(resolve_open("e", 0, &d), 0);
    path_unref(&d);
}

Test(path_walk, deleted_paths)
{
    cr_assert_eq(w_mkdir("/a", 0755), 0);
    struct file *f;
    cr_assert_eq(w_open("/a/f", O_CREAT | O_RDWR, 0644, &f), 0);
    char name[64];
    w_name(&f->path, name, sizeof(name));
    cr_assert_str_eq(name, "/a/f");
    cr_assert_eq(w_rename("/a/f", "/a/a-longer-name-than-fits-inline", 0), 0);
    w_name(&f->path, name, sizeof(name));
    cr_assert_str_eq(name, "/a/a-longer-name-than-fits-inline");
    cr_assert_eq(w_unlink("/a/a-longer-name-than-fits-inline"), 0);
    w_name(&f->path, name, sizeof(name));
    cr_assert_str_eq(name, "/a/a-longer-name-than-fits-inline (deleted)");
    cr_assert_eq(w_touch("/a/a-longer-name-than-fits-inline", O_CREAT | O_RDWR, 0644), 0);
    file_unref(f);
    /* A removed working directory: nothing can be found or made in it. */
    cr_assert_eq(w_mkdir("/gone", 0755), 0);
    struct path gone;
    cr_assert_eq(w_walk("/gone", 0, &gone), 0);
    cr_assert_eq(w_rmdir("/gone"), 0);
    struct walk_base base = w.base;
    base.cwd = &gone;
    cr_assert_eq(vfs_mkdir(&w.ctx, &base, "x", 0755), -ENOENT);
    cr_assert_eq(vfs_open(&w.ctx, &base, "x", O_CREAT | O_RDWR, 0644, &f), -ENOENT);
    struct path up;
    cr_assert_eq(walk_path(&w.ctx, &base, "..", 0, &up), 0);
    path_unref(&up);
    path_unref(&gone);
}

Test(path_walk, cached_walks_are_fast)
{
    cr_assert_eq(w_mkdir("/one", 0755), 0);
    cr_assert_eq(w_mkdir("/one/two22", 0755), 0);
    cr_assert_eq(w_mkdir("/one/two22/three333", 0755), 0);
    cr_assert_eq(w_mkdir("/one/two22/three333/four4", 0755), 0);
    cr_assert_eq(w_touch("/one/two22/three333/four4/five.txt", O_CREAT | O_RDWR, 0644), 0);
    enum { ROUNDS = 200000 };
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < ROUNDS; i++) {
        struct path p;
        cr_assert_eq(w_walk("/one/two22/three333/four4/five.txt", WALK_FOLLOW, &p), 0);
        path_unref(&p);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ns = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / ROUNDS;
    cr_log_info("walk of five cached components: %.0f ns", ns);
    cr_expect_lt(ns, 5000); /* far above the usual, for sanitized builds and busy machines */
}

Test(path_walk, cache_is_bounded)
{
    dentry_set_limit(500);
    char name[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "/file-with-number-%d", i);
        cr_assert_eq(w_touch(name, O_CREAT | O_RDWR, 0644), 0);
        cr_assert_eq(w_unlink(name), 0);
        cr_assert_leq(dentry_unused_count(), 500);
    }
    cr_assert_leq(dentry_count(), 520);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "/d%d", i);
        cr_assert_eq(w_mkdir(name, 0755), 0);
    }
    cr_assert_leq(dentry_count(), 520);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "/d%d", i);
        cr_assert_eq(w_there(name), 0);
    }
    cr_assert_leq(dentry_count(), 520);
}

Test(path_walk, deep_trees_go_without_recursion)
{
    /* 20 000 levels, made relative to a moving base; freed by the fixture. */
    struct path at = path_ref(w.root);
    for (int i = 0; i < 20000; i++) {
        struct walk_base base = w.base;
        base.cwd = &at;
        cr_assert_eq(vfs_mkdir(&w.ctx, &base, "d", 0755), 0);
        struct path next;
        cr_assert_eq(walk_path(&w.ctx, &base, "d", 0, &next), 0);
        path_unref(&at);
        at = next;
    }
    path_unref(&at);
    dentry_shrink(0);
    cr_assert_leq(dentry_count(), 4);
}
