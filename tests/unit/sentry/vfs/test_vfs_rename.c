/* SPDX-License-Identifier: Apache-2.0 */
/* Renames, links and removals, and what the cache shows after them. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <linux/fs.h>

#include "sentry/vfs/dentry_priv.h"

TestSuite(vfs_rename, .init = world_up, .fini = world_down);

static uint64_t nlink(const char *path)
{
    struct path p;
    cr_assert_eq(w_walk(path, 0, &p), 0, "%s", path);
    uint64_t n = p.dentry->inode->nlink;
    path_unref(&p);
    return n;
}

static void tree(void)
{
    cr_assert_eq(w_mkdir("/a", 0755), 0);
    cr_assert_eq(w_mkdir("/a/d", 0755), 0);
    cr_assert_eq(w_mkdir("/b", 0755), 0);
    cr_assert_eq(w_touch("/a/f", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_touch("/b/g", O_CREAT | O_RDWR, 0644), 0);
}

Test(vfs_rename, files)
{
    tree();
    uint64_t f = w_ino("/a/f");
    cr_assert_eq(w_rename("/a/f", "/a/h", 0), 0);
    cr_assert_eq(w_there("/a/f"), -ENOENT);
    cr_assert_eq(w_ino("/a/h"), f);
    cr_assert_eq(w_rename("/a/h", "/b/g", RENAME_NOREPLACE), -EEXIST);
    cr_assert_eq(w_rename("/a/h", "/b/g", 0), 0);
    cr_assert_eq(w_ino("/b/g"), f);
    cr_assert_eq(w_there("/a/h"), -ENOENT);
    dentry_shrink(0);
    cr_assert_eq(w_ino("/b/g"), f);
    cr_assert_eq(w_there("/a/h"), -ENOENT);
    cr_assert_eq(w_rename("/b/g", "/b/g", 0), 0);
    cr_assert_eq(w_rename("/b/g/", "/b/x", 0), -ENOTDIR);
    cr_assert_eq(w_rename("/b/g", "/b/x/", 0), -ENOTDIR);
    cr_assert_eq(w_rename("/nope", "/b/x", 0), -ENOENT);
    cr_assert_eq(w_rename("/b/g", "/a", 0), -EISDIR);
    cr_assert_eq(w_rename("/a", "/b/g", 0), -ENOTDIR);
    cr_assert_eq(w_rename("/b/g", "/b/.", 0), -EBUSY);
    cr_assert_eq(w_rename("/a/..", "/b/x", 0), -EBUSY);
    /* two names of one file: nothing happens */
    cr_assert_eq(w_link("/b/g", "/b/g2"), 0);
    cr_assert_eq(nlink("/b/g"), 2);
    cr_assert_eq(w_rename("/b/g", "/b/g2", 0), 0);
    cr_assert_eq(w_there("/b/g"), 0);
}

Test(vfs_rename, directories)
{
    tree();
    cr_assert_eq(nlink("/"), 4);
    cr_assert_eq(nlink("/a"), 3);
    cr_assert_eq(w_rename("/a", "/a/d/x", 0), -EINVAL);
    cr_assert_eq(w_rename("/a/d", "/a", 0), -ENOTEMPTY);
    cr_assert_eq(w_rename("/a/d", "/b", 0), -ENOTEMPTY);
    struct path d;
    cr_assert_eq(w_walk("/a/d", 0, &d), 0);
    cr_assert_eq(w_rename("/a/d/", "/b/moved/", 0), 0);
    char name[64];
    w_name(&d, name, sizeof(name));
    cr_assert_str_eq(name, "/b/moved");
    cr_assert_eq(nlink("/a"), 2);
    cr_assert_eq(nlink("/b"), 3);
    struct walk_base base = w.base;
    base.cwd = &d;
    struct path up;
    cr_assert_eq(walk_path(&w.ctx, &base, "..", 0, &up), 0);
    cr_assert_eq(up.dentry->inode->ino, w_ino("/b"));
    path_unref(&up);
    /* over an empty one, which is gone then */
    cr_assert_eq(w_mkdir("/empty", 0755), 0);
    struct path e;
    cr_assert_eq(w_walk("/empty", 0, &e), 0);
    cr_assert_eq(w_rename("/b/moved", "/empty", 0), 0);
    w_name(&e, name, sizeof(name));
    cr_assert_str_eq(name, "/empty (deleted)");
    cr_assert_eq(e.dentry->inode->nlink, 0);
    cr_assert_eq(nlink("/"), 5);
    path_unref(&e);
    path_unref(&d);
    cr_assert_eq(w_rmdir("/a"), -ENOTEMPTY);
    cr_assert_eq(w_rmdir("/a/f"), -ENOTDIR);
    cr_assert_eq(w_unlink("/empty"), -EISDIR);
    cr_assert_eq(w_rmdir("/empty/."), -EINVAL);
    cr_assert_eq(w_rmdir("/empty/.."), -ENOTEMPTY);
    cr_assert_eq(w_rmdir("/"), -EBUSY);
    cr_assert_eq(w_rmdir("/empty"), 0);
    cr_assert_eq(nlink("/"), 4);
}

Test(vfs_rename, exchange_and_whiteout)
{
    tree();
    uint64_t f = w_ino("/a/f"), b = w_ino("/b");
    cr_assert_eq(w_rename("/a/f", "/b", RENAME_EXCHANGE), 0);
    cr_assert_eq(w_ino("/b"), f);
    cr_assert_eq(w_ino("/a/f"), b);
    cr_assert_eq(w_there("/a/f/g"), 0);
    cr_assert_eq(nlink("/a"), 4);
    cr_assert_eq(nlink("/"), 3);
    dentry_shrink(0);
    cr_assert_eq(w_ino("/b"), f);
    cr_assert_eq(w_rename("/b", "/none", RENAME_EXCHANGE), -ENOENT);
    cr_assert_eq(w_rename("/a", "/a/f", RENAME_EXCHANGE), -EINVAL);
    cr_assert_eq(w_rename("/b", "/x", RENAME_EXCHANGE | RENAME_NOREPLACE), -EINVAL);
    cr_assert_eq(w_rename("/b", "/x", RENAME_WHITEOUT), 0);
    struct path p;
    cr_assert_eq(w_walk("/b", 0, &p), 0);
    cr_assert(S_ISCHR(p.dentry->inode->mode));
    cr_assert_eq(p.dentry->inode->rdev, 0);
    path_unref(&p);
}

Test(vfs_rename, open_files_survive)
{
    struct file *f;
    cr_assert_eq(w_open("/f", O_CREAT | O_RDWR, 0644, &f), 0);
    cr_assert_eq(w_pwrite(f, "hello", 5, 0), 5);
    cr_assert_eq(w_touch("/g", O_CREAT | O_RDWR, 0644), 0);
    cr_assert_eq(w_rename("/g", "/f", 0), 0);
    char data[8] = "";
    cr_assert_eq(file_read_kernel(&w.ctx, f, data, 8, 0), 5);
    cr_assert_str_eq(data, "hello");
    cr_assert_eq(f->inode->nlink, 0);
    cr_assert(f->path.dentry->deleted);
    file_unref(f);
}

Test(vfs_rename, links)
{
    tree();
    cr_assert_eq(w_link("/a/f", "/b/l"), 0);
    cr_assert_eq(w_link("/a/f", "/b/l"), -EEXIST);
    cr_assert_eq(w_link("/a", "/b/dir"), -EPERM);
    cr_assert_eq(w_link("/a/f", "/b/l/"), -EEXIST);
    cr_assert_eq(w_link("/a/f", "/b/new/"), -ENOENT);
    cr_assert_eq(w_ino("/b/l"), w_ino("/a/f"));
    cr_assert_eq(w_unlink("/a/f"), 0);
    cr_assert_eq(nlink("/b/l"), 1);
    cr_assert_eq(w_unlink("/a/f"), -ENOENT);
    cr_assert_eq(w_symlink("/b/l", "/s"), 0);
    cr_assert_eq(w_unlink("/s/"), -ENOTDIR);
    cr_assert_eq(w_unlink("/a/"), -EISDIR);
    cr_assert_eq(w_unlink("/a/."), -EISDIR);
    cr_assert_eq(w_unlink("/s"), 0);
    cr_assert_eq(w_there("/b/l"), 0);
}
