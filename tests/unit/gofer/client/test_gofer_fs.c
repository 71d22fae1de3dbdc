/* SPDX-License-Identifier: Apache-2.0 */
/* The gofer file system under the real VFS, against the real server: contents, attributes, names,
 * and how many round trips the caches leave. With a directory as argument it measures a walk over
 * that. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "tests/unit/gofer/vfs_harness.h"

/* ---- tests ---- */

static void test_contents(void)
{
    struct kstat st;
    static char big[300000], back[300000];
    for (size_t i = 0; i < sizeof(big); i++)
        big[i] = (char)(i * 7 + i / 1000);
    count_calls();
    struct file *f = open_file("/new", O_CREAT | O_RDWR);
    CHECK_EQ(calls(), 2); /* the name is absent, the file is made and opened */
    CHECK_EQ(write_at(f, "hello", 5, 0), 5);
    CHECK_EQ(f->inode->size, 5);
    CHECK_EQ(read_at(f, back, 10, 0), 5);
    CHECK_EQ(read_at(f, back, 10, 5), 0);
    CHECK_EQ(write_at(f, big, sizeof(big), 100), sizeof(big));
    CHECK_EQ(read_at(f, back, sizeof(back), 100), sizeof(back));
    CHECK(memcmp(big, back, sizeof(big)) == 0);
    CHECK_EQ(stat_path("/new", &st), 0);
    CHECK_EQ(st.size, sizeof(big) + 100);
    CHECK(st.blocks * 512 >= sizeof(big));
    file_unref(f);
    f = open_file("/new", O_WRONLY | O_APPEND);
    CHECK_EQ(write_at(f, "tail", 4, 0), 4);
    file_unref(f);
    CHECK_EQ(stat_path("/new", &st), 0);
    CHECK_EQ(st.size, sizeof(big) + 104);
    struct file_map map;
    f = open_file("/new", O_RDONLY);
    CHECK_EQ(file_mmap(&ctx, f, PROT_READ, true, &map), 0);
    CHECK_EQ(fcntl(map.host_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    CHECK_EQ(file_fsync(&ctx, f, false), 0);
    CHECK_EQ(file_llseek(&ctx, f, 0, SEEK_HOLE), sizeof(big) + 104);
    file_unref(f);
    f = open_file("/new", O_RDWR);
    CHECK_EQ(file_mmap(&ctx, f, PROT_READ, true, &map), 0);
    CHECK_EQ(fcntl(map.host_fd, F_GETFL) & O_ACCMODE, O_RDWR);
    CHECK_EQ(file_mmap(&ctx, f, PROT_READ | PROT_WRITE, false, &map), 0);
    CHECK_EQ(fcntl(map.host_fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    CHECK_EQ(file_fallocate(&ctx, f, 0, 0, 1 << 20), 0);
    CHECK_EQ(f->inode->size, 1 << 20);
    file_unref(f);
    /* Everything is cached by now. */
    count_calls();
    f = open_file("/new", O_RDWR | O_TRUNC);
    CHECK_EQ(f->inode->size, 0);
    CHECK_EQ(stat_path("/new", &st), 0);
    CHECK_EQ(st.size, 0);
    file_unref(f);
    CHECK_EQ(calls(), 0);
    CHECK_EQ(try_open("/new", O_CREAT | O_EXCL | O_RDWR), -EEXIST);
    CHECK_EQ(try_open("/new/x", O_RDONLY), -ENOTDIR);
}

static void test_names_and_caching(void)
{
    struct kstat st, st2;
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/a", 0755), 0);
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/a/b", 0755), 0);
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/a/b/c", 0750), 0);
    write_file("/a/b/c/f", "text");
    CHECK_EQ(vfs_symlink(&ctx, &base, "/a/link", "b/c/f"), 0);
    CHECK_EQ(vfs_mknod(&ctx, &base, "/a/fifo", S_IFIFO | 0600, 0), 0);
    CHECK_EQ(vfs_mknod(&ctx, &base, "/a/whiteout", S_IFCHR, 0), 0);
    CHECK_EQ(vfs_mknod(&ctx, &base, "/a/null", S_IFCHR | 0666, 0x103), -EPERM);
    CHECK(file_is("/a/link", "text"));
    /* Cold: the whole path in one round trip, then none at all. */
    dentry_shrink(0);
    count_calls();
    CHECK_EQ(stat_path("/a/b/c/f", &st), 0);
    CHECK_EQ(calls(), 1);
    CHECK_EQ(stat_path("/a/b/c/f", &st2), 0);
    CHECK(st.ino == st2.ino && st.size == 4 && S_ISREG(st.mode));
    CHECK_EQ(calls(), 1);
    dentry_shrink(0);
    count_calls();
    CHECK_EQ(stat_path("/a/b/absent/f", &st), -ENOENT);
    CHECK_EQ(stat_path("/a/b/absent", &st), -ENOENT);
    CHECK_EQ(stat_path("/a/b/absent/g/h", &st), -ENOENT);
    CHECK_EQ(calls(), 1);
    dentry_shrink(0);
    count_calls();
    CHECK(file_is("/a/link", "text"));
    /* a/link with the link's text; b/c/f with the open file. */
    CHECK_EQ(calls(), 2);
    CHECK(file_is("/a/link", "text"));
    CHECK_EQ(calls(), 2);
    /* All names of a directory made here are known. */
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/a/fresh", 0755), 0);
    count_calls();
    CHECK_EQ(stat_path("/a/fresh/absent", &st), -ENOENT);
    CHECK_EQ(calls(), 0);
    write_file("/a/fresh/f", "1");
    CHECK_EQ(calls(), 1);
    CHECK_EQ(vfs_rename(&ctx, &base, "/a/fresh/f", &base, "/a/fresh/g", 0), 0);
    CHECK_EQ(stat_path("/a/fresh/f", &st), -ENOENT);
    CHECK(file_is("/a/fresh/g", "1"));
    CHECK_EQ(calls(), 2);
    dentry_shrink(0);
    CHECK_EQ(stat_path("/a/fresh/f", &st), -ENOENT);
    CHECK(file_is("/a/fresh/g", "1"));
    CHECK_EQ(vfs_unlink(&ctx, &base, "/a/fresh/g"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/a/fresh"), 0);

    struct path from;
    CHECK_EQ(walk_path(&ctx, &base, "/a/b/c/f", 0, &from), 0);
    CHECK_EQ(vfs_link(&ctx, &from, &base, "/a/hard"), 0);
    path_unref(&from);
    CHECK_EQ(stat_path("/a/hard", &st), 0);
    CHECK_EQ(st.nlink, 2);
    dentry_shrink(0);
    CHECK_EQ(stat_path("/a/hard", &st), 0);
    CHECK_EQ(stat_path("/a/b/c/f", &st2), 0);
    CHECK(st.ino == st2.ino && st2.nlink == 2);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/a/hard"), 0);
    CHECK_EQ(stat_path("/a/b/c/f", &st2), 0);
    CHECK_EQ(st2.nlink, 1);

    CHECK_EQ(vfs_rename(&ctx, &base, "/a/b/c", &base, "/a/d", 0), 0);
    CHECK(file_is("/a/d/f", "text"));
    CHECK_EQ(stat_path("/a/b/c", &st), -ENOENT);
    write_file("/a/other", "other");
    CHECK_EQ(vfs_rename(&ctx, &base, "/a/other", &base, "/a/d/f", RENAME_NOREPLACE), -EEXIST);
    CHECK_EQ(vfs_rename(&ctx, &base, "/a/other", &base, "/a/d/f", RENAME_EXCHANGE), 0);
    CHECK(file_is("/a/d/f", "other") && file_is("/a/other", "text"));
    CHECK_EQ(vfs_rename(&ctx, &base, "/a/other", &base, "/a/d/f", 0), 0);
    CHECK(file_is("/a/d/f", "text"));
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/a/d"), -ENOTEMPTY);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/a/d/f"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/a/d"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/a/b"), 0);
    CHECK_EQ(stat_path("/a", &st), 0);
    CHECK_EQ(st.nlink, 2);
    CHECK(access(host_path("a/d"), F_OK) != 0 && access(host_path("a/fifo"), F_OK) == 0);
}

static void test_attributes(void)
{
    struct kstat st;
    struct stat host;
    write_file("/attr", "12345");
    CHECK_EQ(set_attr("/attr", (struct iattr){.valid = IATTR_UID | IATTR_GID, .uid = 7, .gid = 8}),
             0);
    CHECK_EQ(set_attr("/attr", (struct iattr){.valid = IATTR_MODE, .mode = 04755}), 0);
    CHECK_EQ(set_attr("/attr", (struct iattr){.valid = IATTR_ATIME | IATTR_MTIME,
                                              .atime = {100, 1},
                                              .mtime = {200, 2}}),
             0);
    CHECK_EQ(stat_path("/attr", &st), 0);
    CHECK(stat(host_path("attr"), &host) == 0);
    CHECK(st.uid == 7 && st.gid == 8 && st.mode == (S_IFREG | 04755) && st.mtime.tv_sec == 200);
    CHECK(host.st_uid == 7 && host.st_gid == 8 && host.st_mode == st.mode);
    CHECK(host.st_mtim.tv_sec == 200 && host.st_mtim.tv_nsec == 2 && host.st_atim.tv_sec == 100);
    CHECK(st.ctime.tv_sec == host.st_ctim.tv_sec && st.ctime.tv_nsec == host.st_ctim.tv_nsec);
    CHECK(st.has_btime && st.ino == host.st_ino && st.nlink == 1);
    struct path p;
    CHECK_EQ(walk_path(&ctx, &base, "/attr", 0, &p), 0);
    CHECK_EQ(vfs_truncate(&ctx, &p, 2), 0);
    path_unref(&p);
    CHECK_EQ(stat_path("/attr", &st), 0);
    CHECK_EQ(st.size, 2);
    /* Written bytes show in the times and blocks that the host keeps. */
    struct file *f = open_file("/attr", O_RDWR);
    CHECK_EQ(write_at(f, "zz", 2, 8000), 2);
    CHECK_EQ(stat_path("/attr", &st), 0);
    CHECK(stat(host_path("attr"), &host) == 0);
    CHECK(st.size == 8002 && st.mtime.tv_nsec == host.st_mtim.tv_nsec &&
          st.blocks == (uint64_t)host.st_blocks);
    file_unref(f);
    struct path x;
    char value[16];
    CHECK_EQ(walk_path(&ctx, &base, "/attr", 0, &x), 0);
    if (x.dentry->inode->ops->setxattr(&ctx, x.dentry->inode, "user.k", "v", 1, 0) == 0) {
        CHECK_EQ(x.dentry->inode->ops->getxattr(&ctx, x.dentry->inode, "user.k", value, 16), 1);
        CHECK_EQ(x.dentry->inode->ops->listxattr(&ctx, x.dentry->inode, NULL, 0), 7);
        CHECK_EQ(x.dentry->inode->ops->listxattr(&ctx, x.dentry->inode, value, 16), 7);
        CHECK_EQ(x.dentry->inode->ops->listxattr(&ctx, x.dentry->inode, value, 3), -ERANGE);
        CHECK_EQ(x.dentry->inode->ops->removexattr(&ctx, x.dentry->inode, "user.k"), 0);
    }
    CHECK_EQ(inode_getxattr(&ctx, x.dentry->inode, "security.selinux", value, 16), -ENODATA);
    path_unref(&x);
}

/* A file without a name works on, whatever was known of it before. */
static void test_unlinked(void)
{
    struct kstat st;
    char text[16] = "";
    write_file("/gone", "still here");
    dentry_shrink(0);
    struct file *f = open_file("/gone", O_RDWR);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/gone"), 0);
    CHECK_EQ(stat_path("/gone", &st), -ENOENT);
    CHECK_EQ(read_at(f, text, 10, 0), 10);
    CHECK_EQ(write_at(f, "STILL", 5, 0), 5);
    struct iattr a = {.valid = IATTR_MODE, .mode = 0600};
    CHECK_EQ(vfs_setattr(&ctx, &f->path, &a), 0);
    CHECK_EQ(inode_getattr(&ctx, f->inode, &st), 0);
    CHECK(st.nlink == 0 && st.mode == (S_IFREG | 0600) && st.size == 10);
    write_file("/gone", "another");
    CHECK_EQ(read_at(f, text, 10, 0), 10);
    CHECK(strcmp(text, "STILL here") == 0);
    file_unref(f);
    CHECK(file_is("/gone", "another"));
    /* Renamed over while open. */
    write_file("/over", "new text");
    f = open_file("/gone", O_RDONLY);
    CHECK_EQ(vfs_rename(&ctx, &base, "/over", &base, "/gone", 0), 0);
    memset(text, 0, sizeof(text));
    CHECK_EQ(read_at(f, text, 10, 0), 7);
    CHECK(strcmp(text, "another") == 0);
    file_unref(f);
    CHECK(file_is("/gone", "new text"));
    f = open_file("/", O_TMPFILE | O_RDWR);
    CHECK_EQ(write_at(f, "tmp", 3, 0), 3);
    CHECK_EQ(vfs_link(&ctx, &f->path, &base, "/named"), 0);
    file_unref(f);
    CHECK(file_is("/named", "tmp"));
    /* A directory that is in use. */
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/dir", 0755), 0);
    dentry_shrink(0);
    f = open_file("/dir", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/dir"), 0);
    CHECK_EQ(inode_getattr(&ctx, f->inode, &st), 0);
    CHECK_EQ(st.nlink, 0);
    file_unref(f);
}

static void test_readdir(void)
{
    struct kstat st;
    char path[64];
    CHECK(mkdir(host_path("many"), 0755) == 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof(path), "many/f%d", i);
        if (i % 10 == 0)
            CHECK(symlink("f1", host_path(path)) == 0);
        else
            close(open(host_path(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    }
    struct file *f = open_file("/many", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(list_all(f, 1000000), 1002);
    CHECK_EQ(file_llseek(&ctx, f, 0, SEEK_SET), 0);
    CHECK_EQ(list_all(f, 7), 1002);
    /* A position that was handed out leads back to the same place. */
    CHECK_EQ(file_llseek(&ctx, f, 0, SEEK_SET), 0);
    struct counting_sink c = {.sink = {.emit = count_entry}, .max = 500};
    while (c.count < c.max)
        CHECK_EQ(file_readdir(&ctx, f, &c.sink), 0);
    int64_t middle = c.last_pos;
    CHECK_EQ(list_all(f, 100), 502);
    CHECK_EQ(file_llseek(&ctx, f, middle, SEEK_SET), middle);
    CHECK_EQ(list_all(f, 100), 502);
    file_unref(f);
    /* What a listing has brought is not asked for again: ls -l, find. */
    count_calls();
    for (int i = 0; i < 1000; i++) {
        snprintf(path, sizeof(path), "/many/f%d", i);
        CHECK_EQ(stat_path(path, &st), 0);
        CHECK_EQ(S_ISLNK(st.mode), i % 10 == 0);
    }
    CHECK_EQ(stat_path("/many/f10/", &st), -ENOTDIR); /* through the link's text */
    CHECK_EQ(stat_path("/many/absent", &st), -ENOENT);
    CHECK_EQ(calls(), 0);
    count_calls();
    f = open_file("/many", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(list_all(f, 1000000), 1002);
    file_unref(f);
    unsigned again = calls();
    CHECK_EQ(vfs_unlink(&ctx, &base, "/many/f1"), 0);
    f = open_file("/many", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(list_all(f, 1000000), 1001);
    file_unref(f);
    printf("listing 1000 entries again: %u calls\n", again);
    /* Removing them all. */
    count_calls();
    for (int i = 2; i < 1000; i++) {
        snprintf(path, sizeof(path), "/many/f%d", i);
        CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    }
    CHECK_EQ(vfs_unlink(&ctx, &base, "/many/f0"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/many"), 0);
    CHECK(calls() <= 1000 + 50);
}

/* More files open and known than descriptors or nodes are kept. */
static void test_many(void)
{
    enum { MANY = 3000 };
    static struct file *files[MANY];
    char path[64], text[32];
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/pile", 0755), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/pile/%d", i);
        files[i] = open_file(path, O_CREAT | O_RDWR);
        CHECK_EQ(write_at(files[i], path, strlen(path), 0), strlen(path));
    }
    for (int i = 0; i < MANY; i += 2) {
        snprintf(path, sizeof(path), "/pile/%d", i);
        CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/pile/%d", i);
        memset(text, 0, sizeof(text));
        CHECK_EQ(read_at(files[i], text, sizeof(text), 0), strlen(path));
        CHECK(strcmp(text, path) == 0);
        file_unref(files[i]);
    }
    for (int i = 1; i < MANY; i += 2) {
        snprintf(path, sizeof(path), "/pile/%d", i);
        CHECK(file_is(path, path));
        CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    }
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/pile"), 0);
}

/* ---- running ---- */

static double us_per(uint64_t start, unsigned n)
{
    return (double)(host_monotonic_ns() - start) / 1000 / n;
}

static void measure(void)
{
    enum { N = 2000 };
    struct kstat st;
    char path[64], text[64];
    uint64_t start;
    write_file("/m", "some text");
    start = host_monotonic_ns();
    for (int i = 0; i < N; i++)
        CHECK_EQ(stat_path("/m", &st), 0);
    printf("stat, cached           %7.2f us\n", us_per(start, N));
    start = host_monotonic_ns();
    for (int i = 0; i < N; i++) {
        struct file *f = open_file("/m", O_RDONLY);
        CHECK_EQ(read_at(f, text, 64, 0), 9);
        file_unref(f);
    }
    printf("open read close cached %7.2f us\n", us_per(start, N));
    start = host_monotonic_ns();
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/m%d", i);
        write_file(path, "some text");
    }
    printf("create write close     %7.2f us\n", us_per(start, N));
    dentry_shrink(0);
    start = host_monotonic_ns();
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/m%d", i);
        CHECK_EQ(stat_path(path, &st), 0);
    }
    printf("stat, cold             %7.2f us\n", us_per(start, N));
    dentry_shrink(0);
    start = host_monotonic_ns();
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/m%d", i);
        struct file *f = open_file(path, O_RDONLY);
        CHECK_EQ(read_at(f, text, 64, 0), 9);
        file_unref(f);
    }
    printf("open read close cold   %7.2f us\n", us_per(start, N));
    start = host_monotonic_ns();
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/m%d", i);
        CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    }
    printf("unlink                 %7.2f us\n", us_per(start, N));
}

static void run_tests(void *arg)
{
    mount_root(0, (enum gofer_share)(uintptr_t)arg);
    test_attributes();
    test_unlinked();
    test_many();
    if ((uintptr_t)arg == GOFER_EXCLUSIVE) {
        test_contents();
        test_names_and_caching();
        test_readdir();
    }
    measure();
    path_unref(&root);
    evloop_stop();
}

static void run_read_only(void *arg)
{
    struct kstat st;
    mount_root(1, GOFER_EXCLUSIVE);
    close(open(host_path("ro"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    CHECK_EQ(stat_path("/ro", &st), 0);
    CHECK_EQ(try_open("/ro", O_RDWR), -EROFS);
    CHECK_EQ(try_open("/ro2", O_CREAT | O_RDWR), -EROFS);
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/d", 0755), -EROFS);
    CHECK_EQ(try_open("/ro", O_RDONLY), 0);
    path_unref(&root);
    evloop_stop();
}

int main(int argc, char **argv)
{
    /* With an argument: the same with few descriptors, so that caches and the gofer's table
     * overflow. */
    if (argc > 1) {
        struct rlimit limit = {(rlim_t)atoi(argv[1]), (rlim_t)atoi(argv[1])};
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    vfs_harness_init();
    with_server(run_tests, GOFER_EXCLUSIVE);
    with_server(run_tests, GOFER_SHARED);
    with_server(run_read_only, 0);
    printf("ok\n");
    return 0;
}
