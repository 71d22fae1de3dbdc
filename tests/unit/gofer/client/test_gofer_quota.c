/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of an exclusive tree: what counts, what is refused, and that what goes is given back to the last byte. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "sentry/core/evloop.h"
#include "sentry/fs/gofer/gofer_fs_priv.h"
#include "tests/unit/gofer/vfs_harness.h"

enum { LIMIT = 1 << 20 };

static const struct gofer_quota *quota(void)
{
    return ((struct gofer_sb *)root.dentry->sb->priv)->quota;
}

static char block[256 * 1024];

static void test_writes(void)
{
    uint64_t before = quota()->used;
    struct file *f = open_file("/f", O_CREAT | O_RDWR);
    ssize_t total = 0, n;
    memset(block, 'x', sizeof(block));
    while ((n = write_at(f, block, sizeof(block), total)) > 0)
        total += n;
    CHECK_EQ(n, -ENOSPC);
    CHECK(total > LIMIT - (64 << 10) && total <= LIMIT);
    CHECK(quota()->used <= LIMIT + 4096);
    /* What is there may be written again; the end may be moved, for nothing. */
    CHECK_EQ(write_at(f, block, 4096, 0), 4096);
    CHECK_EQ(write_at(f, block, 4096, total), -ENOSPC);
    CHECK_EQ(set_attr("/f", (struct iattr){.valid = IATTR_SIZE, .size = 1ULL << 30}), 0);
    CHECK_EQ(write_at(f, block, 4096, 1 << 29), -ENOSPC);
    CHECK_EQ(file_fallocate(&ctx, f, 0, 0, LIMIT * 2), -ENOSPC);
    CHECK_EQ(file_fallocate(&ctx, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 65536), 0);
    CHECK_EQ(write_at(f, block, 8192, 1 << 29), 8192);
    CHECK_EQ(try_open("/g", O_CREAT | O_RDWR), 0);
    CHECK_EQ(set_attr("/f", (struct iattr){.valid = IATTR_SIZE, .size = 0}), 0);
    CHECK_EQ(file_fallocate(&ctx, f, 0, 0, LIMIT / 2), 0);
    CHECK(quota()->used >= LIMIT / 2);
    /* Open, it still takes its space. */
    CHECK_EQ(vfs_unlink(&ctx, &base, "/f"), 0);
    CHECK(quota()->used >= LIMIT / 2);
    file_unref(f);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/g"), 0);
    CHECK_EQ(quota()->used, before);
}

static void test_maps(void)
{
    uint64_t before = quota()->used;
    struct file_map map;
    struct file *f = open_file("/map", O_CREAT | O_RDWR);
    CHECK_EQ(set_attr("/map", (struct iattr){.valid = IATTR_SIZE, .size = LIMIT * 2}), 0);
    CHECK_EQ(file_mmap(&ctx, f, PROT_READ | PROT_WRITE, false, &map), 0);
    CHECK_EQ(file_mmap(&ctx, f, PROT_READ, true, &map), -ENOSPC);
    CHECK_EQ(set_attr("/map", (struct iattr){.valid = IATTR_SIZE, .size = LIMIT / 2}), 0);
    CHECK_EQ(file_mmap(&ctx, f, PROT_READ | PROT_WRITE, true, &map), 0);
    CHECK(quota()->used >= LIMIT / 2);
    CHECK_EQ(set_attr("/map", (struct iattr){.valid = IATTR_SIZE, .size = LIMIT * 2}), -ENOSPC);
    CHECK_EQ(set_attr("/map", (struct iattr){.valid = IATTR_SIZE, .size = LIMIT / 4 * 3}), 0);
    /* Counted already. */
    uint64_t used = quota()->used;
    CHECK_EQ(write_at(f, block, 65536, LIMIT / 2), 65536);
    CHECK_EQ(quota()->used, used);
    CHECK_EQ(write_at(f, block, sizeof(block), LIMIT / 4 * 3), MIN(sizeof(block), (LIMIT - used) & ~4095ULL));
    file_unref(f);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/map"), 0);
    CHECK_EQ(quota()->used, before);
}

static void test_names(void)
{
    struct statfs st = {.f_bsize = 4096, .f_bfree = 1 << 30, .f_bavail = 1 << 30, .f_ffree = 1 << 30};
    uint64_t before = quota()->used, names = quota()->names, max = quota()->names_max;
    char name[32];
    int err = 0;
    unsigned made = 0;
    CHECK_EQ(try_open("/one", O_CREAT | O_RDWR), 0);
    struct path one;
    CHECK_EQ(walk_path(&ctx, &base, "/one", 0, &one), 0);
    while (!err && made < 4096) {
        snprintf(name, sizeof(name), "/l%u", made);
        err = vfs_link(&ctx, &one, &base, name);
        made += !err;
    }
    path_unref(&one);
    CHECK_EQ(err, -ENOSPC);
    CHECK_EQ(quota()->names, max);
    CHECK_EQ(made, max - names - 1);
    gofer_quota_statfs(quota(), &st);
    CHECK_EQ(st.f_ffree, 0);
    CHECK_EQ(st.f_blocks, LIMIT / 4096);
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/d", 0755), -ENOSPC);
    CHECK_EQ(vfs_rename(&ctx, &base, "/l0", &base, "/a-longer-name", 0), 0);
    CHECK_EQ(vfs_rename(&ctx, &base, "/a-longer-name", &base, "/l0", 0), 0);
    /* Both are names of one file: nothing happens. */
    CHECK_EQ(vfs_rename(&ctx, &base, "/l1", &base, "/l0", 0), 0);
    while (made--) {
        snprintf(name, sizeof(name), "/l%u", made);
        CHECK_EQ(vfs_unlink(&ctx, &base, name), 0);
    }
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/d", 0755), 0);
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/d/e", 0755), 0);
    CHECK_EQ(vfs_symlink(&ctx, &base, "/d/s", "target"), 0);
    CHECK_EQ(vfs_rename(&ctx, &base, "/one", &base, "/d/s", 0), 0);
    CHECK_EQ(vfs_rename(&ctx, &base, "/d/s", &base, "/d/e", RENAME_EXCHANGE), 0);
    CHECK_EQ(quota()->names, names + 3);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/d/e"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/d/s"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/d"), 0);
    CHECK_EQ(quota()->names, names);
    CHECK_EQ(quota()->used, before);
}

/* What leaves the caches and comes back counts once. */
static void test_forgotten(void)
{
    uint64_t before = quota()->used;
    write_file("/keep", "text");
    uint64_t with = quota()->used;
    for (unsigned i = 0; i < 3; i++) {
        dentry_shrink(0);
        CHECK(file_is("/keep", "text"));
        CHECK_EQ(quota()->used, with);
    }
    CHECK_EQ(vfs_unlink(&ctx, &base, "/keep"), 0);
    CHECK_EQ(quota()->used, before);
}

static void run(void *arg)
{
    mount_root(0, GOFER_EXCLUSIVE);
    CHECK_EQ(gofer_fs_limit(root.dentry, LIMIT, 8192, 2), 0);
    /* Until it counts, nothing is refused. */
    struct file *f = open_file("/early", O_CREAT | O_RDWR);
    CHECK_EQ(file_fallocate(&ctx, f, 0, 0, LIMIT * 2), 0);
    file_unref(f);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/early"), 0);
    gofer_fs_enforce_limit(root.dentry);
    CHECK_EQ(quota()->used, 8192);
    test_writes();
    test_maps();
    test_names();
    test_forgotten();
    path_unref(&root);
    evloop_stop();
}

int main(void)
{
    vfs_harness_init();
    with_server(run, 0);
    printf("ok\n");
    return 0;
}
