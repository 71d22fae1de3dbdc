/* SPDX-License-Identifier: Apache-2.0 */
/* Many fibers change and look up the same few names in a file system whose every operation parks: afterwards the cache and the
 * file system tell the same story. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <linux/fs.h>
#include <stdlib.h>

#include "sentry/core/fiber.h"
#include "sentry/fs/tmpfs/tmpfs_priv.h"
#include "sentry/vfs/dentry_priv.h"

TestSuite(vfs_race, .init = world_up, .fini = world_down);

enum { FIBERS = 12, STEPS = 4000, NAMES = 5 };

static unsigned long calls, compared;
static struct inode_ops slow_ops;

static void pause_a_while(void)
{
    calls++;
    for (int n = fiber_current() ? rand() % 4 : 0; n > 0; n--)
        fiber_yield();
}

/* Directories of the tmpfs below are handed out with the slow operations. */
static int slow_out(int ret, struct inode **inode)
{
    if (ret == 0 && inode_is_dir(*inode))
        (*inode)->ops = &slow_ops;
    pause_a_while();
    return ret;
}

static int slow_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    pause_a_while();
    return slow_out(tmpfs_dir_iops.lookup(ctx, dir, name, ret_inode), ret_inode);
}
static int slow_create(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                       struct inode **ret_inode)
{
    pause_a_while();
    return slow_out(tmpfs_dir_iops.create(ctx, dir, name, attr, ret_inode), ret_inode);
}
static int slow_symlink(struct ctx *ctx, struct inode *dir, const char *name, const char *target,
                        const struct newattr *attr, struct inode **ret_inode)
{
    pause_a_while();
    return slow_out(tmpfs_dir_iops.symlink(ctx, dir, name, target, attr, ret_inode), ret_inode);
}
static int slow_link(struct ctx *ctx, struct inode *inode, struct inode *dir, const char *name)
{
    pause_a_while();
    int ret = tmpfs_dir_iops.link(ctx, inode, dir, name);
    pause_a_while();
    return ret;
}
static int slow_unlink(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    pause_a_while();
    int ret = tmpfs_dir_iops.unlink(ctx, dir, name, inode);
    pause_a_while();
    return ret;
}
static int slow_rmdir(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    pause_a_while();
    int ret = tmpfs_dir_iops.rmdir(ctx, dir, name, inode);
    pause_a_while();
    return ret;
}
static int slow_rename(struct ctx *ctx, struct inode *old_dir, const char *old_name, struct inode *inode,
                       struct inode *new_dir, const char *new_name, struct inode *target, unsigned flags)
{
    pause_a_while();
    int ret = tmpfs_dir_iops.rename(ctx, old_dir, old_name, inode, new_dir, new_name, target, flags);
    pause_a_while();
    return ret;
}

static void slow_root(void)
{
    slow_ops = tmpfs_dir_iops;
    slow_ops.lookup = slow_lookup;
    slow_ops.create = slow_ops.mkdir = slow_ops.mknod = slow_create;
    slow_ops.symlink = slow_symlink;
    slow_ops.link = slow_link;
    slow_ops.unlink = slow_unlink;
    slow_ops.rmdir = slow_rmdir;
    slow_ops.rename = slow_rename;
    w.root.dentry->inode->ops = &slow_ops;
}

static void random_path(char *path, size_t size)
{
    static const char *const dirs[] = {"", "/d0", "/d1", "/d0/e"};
    snprintf(path, size, "%s/n%d", dirs[rand() % 4], rand() % NAMES);
}

/* Errors that an operation among others may meet. Anything else is a defect. */
static void check(const char *what, int ret)
{
    static const int fine[] = {0, -ENOENT, -EEXIST, -ENOTDIR, -EISDIR, -ENOTEMPTY, -ELOOP, -EINVAL, -EPERM, -EBUSY};
    for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
        if (ret == fine[i])
            return;
    }
    cr_assert(false, "%s: %d", what, ret);
}

/* Every cached entry of the tree below dir that nobody works on agrees with what the file system says. */
static void compare(struct dentry *dir)
{
    struct dentry *d;
    list_for_each_entry(d, &dir->children, sibling) {
        bool has_children = !list_empty(&d->children);
        if (d->ref.count == 1) {
            struct inode *inode = NULL;
            int ret = tmpfs_dir_iops.lookup(&w.ctx, dir->inode, d->name, &inode);
            cr_assert_eq(ret, d->inode ? 0 : -ENOENT, "%s", d->name);
            cr_assert_eq(inode, d->inode, "%s", d->name);
            cr_assert_eq(d->parent, dir);
            inode_unref(inode);
            compared++;
        }
        if (has_children)
            compare(d);
    }
}

static void worker(void *arg)
{
    struct ctx ctx = {.cred = w.root_cred};
    char a[64], b[64];
    for (int i = 0; i < STEPS; i++) {
        struct file *f;
        struct path p;
        int ret;
        random_path(a, sizeof(a));
        random_path(b, sizeof(b));
        switch (rand() % 9) {
        case 0:
        case 1:
            ret = vfs_open(&ctx, &w.base, a, O_RDWR | O_CREAT | (rand() & 1 ? O_EXCL : 0), 0644, &f);
            check("open", ret);
            if (ret == 0)
                file_unref(f);
            break;
        case 2:
            check("unlink", vfs_unlink(&ctx, &w.base, a));
            break;
        case 3:
            check("mkdir", vfs_mkdir(&ctx, &w.base, a, 0755));
            break;
        case 4:
            check("rmdir", vfs_rmdir(&ctx, &w.base, a));
            break;
        case 5:
            check("rename", vfs_rename(&ctx, &w.base, a, &w.base, b, rand() % 3 == 0 ? RENAME_EXCHANGE : 0));
            break;
        case 6:
            ret = walk_path(&ctx, &w.base, a, 0, &p);
            check("walk", ret);
            if (ret == 0) {
                check("link", vfs_link(&ctx, &p, &w.base, b));
                path_unref(&p);
            }
            break;
        case 7:
            check("symlink", vfs_symlink(&ctx, &w.base, a, "/d0/n1"));
            break;
        default:
            ret = walk_path(&ctx, &w.base, a, WALK_FOLLOW, &p);
            check("walk", ret);
            if (ret == 0)
                path_unref(&p);
            if (rand() % 2 == 0) {
                compare(w.root.dentry);
                dentry_shrink(0);
            }
        }
    }
}

Test(vfs_race, cache_and_file_system_agree)
{
    srand(42);
    slow_root();
    for (int round = 0; round < 3; round++) {
        (void)w_mkdir("/d0", 0755);
        (void)w_mkdir("/d0/e", 0755);
        (void)w_mkdir("/d1", 0755);
        for (int i = 0; i < FIBERS; i++)
            cr_assert_eq(fiber_spawn(worker, NULL), 0);
        while (fiber_any_ready())
            fiber_run_ready();
        compare(w.root.dentry);
    }
    cr_log_info("%lu operations reached the file system, %lu entries compared", calls, compared);
    cr_assert_gt(calls, 10000);
    cr_assert_gt(compared, 10000);
}
