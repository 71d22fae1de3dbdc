/* SPDX-License-Identifier: Apache-2.0 */
/* Files opened ahead, against the real server: how many round trips reading a directory's files costs, that a wrong guess
 * stays cheap, and that what others change in between is seen. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "sentry/core/evloop.h"
#include "sentry/vfs/file.h"
#include "tests/unit/gofer/vfs_harness.h"

enum { FILES = 60 };

static char name_of[FILES][32]; /* in the order of the listing */
static unsigned names_len;

static bool take_name(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned type, int64_t next_pos)
{
    if (name[0] != '.' && names_len < FILES)
        snprintf(name_of[names_len++], sizeof(name_of[0]), "%.*s", (int)len, name);
    return true;
}

static void host_make(const char *path, const char *text)
{
    int fd = open(host_path(path), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* A directory of FILES files, each holding its name, is made on the host and listed. */
static void make_dir(const char *dir)
{
    char path[128];
    CHECK(mkdir(host_path(dir), 0755) == 0);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(path, sizeof(path), "%s/f%u", dir, i);
        host_make(path, path + strlen(dir) + 1);
    }
    snprintf(path, sizeof(path), "/%s", dir);
    struct file *f = open_file(path, O_RDONLY | O_DIRECTORY);
    struct dir_sink sink = {.emit = take_name};
    names_len = 0;
    for (int64_t before = -1; f->pos != before;) {
        before = f->pos;
        CHECK_EQ(file_readdir(&ctx, f, &sink), 0);
    }
    CHECK_EQ(names_len, FILES);
    file_unref(f);
}

static bool holds_its_name(const char *dir, unsigned i)
{
    char path[128];
    snprintf(path, sizeof(path), "/%s/%.31s", dir, name_of[i]);
    return file_is(path, name_of[i]);
}

/* On a busy machine the gofer may find that opening takes long, and send fewer files at once. */
static bool about(unsigned calls, unsigned ideal)
{
    return calls >= ideal && calls <= ideal + 4;
}

static void test_in_order(void)
{
    make_dir("there");
    count_calls();
    for (unsigned i = 0; i < FILES; i++)
        CHECK(holds_its_name("there", i));
    unsigned first = calls();
    CHECK(about(first, FILES / 15));
    for (unsigned i = 0; i < FILES; i++)
        CHECK(holds_its_name("there", i));
    CHECK_EQ(calls(), first); /* what was closed is kept a while */
    make_dir("back");
    count_calls();
    for (unsigned i = FILES; i-- > 0;)
        CHECK(holds_its_name("back", i));
    CHECK(about(calls(), FILES / 15));
    /* Begun in the middle: the second file shows the order. */
    make_dir("middle");
    count_calls();
    for (unsigned i = 20; i < FILES; i++)
        CHECK(holds_its_name("middle", i));
    CHECK(about(calls(), 1 + 3));
}

/* Reading one file, or a few here and there, opens no others; a wrong guess is not made again and again. */
static void test_out_of_order(void)
{
    static const unsigned here_and_there[] = {40, 5, 59, 25};
    make_dir("single");
    count_calls();
    CHECK(holds_its_name("single", 30));
    CHECK_EQ(calls(), 1);
    CHECK_EQ(stat_path("/single", &(struct kstat){0}), 0);
    make_dir("few");
    count_calls();
    for (unsigned i = 0; i < 4; i++)
        CHECK(holds_its_name("few", here_and_there[i]));
    CHECK_EQ(calls(), 4);
    make_dir("guess");
    count_calls();
    CHECK(holds_its_name("guess", 0)); /* 1 to 14 come along … */
    CHECK(holds_its_name("guess", 16));
    CHECK(holds_its_name("guess", 18)); /* … and after two in order 19 to 32 … */
    CHECK(holds_its_name("guess", 34));
    CHECK(holds_its_name("guess", 36)); /* … but then it is known not to pay … */
    CHECK(holds_its_name("guess", 37));
    CHECK(holds_its_name("guess", 38));
    CHECK(calls() >= 6);
    struct file *f = open_file("/guess", O_RDONLY | O_DIRECTORY);
    file_unref(f);
    count_calls(); /* … until the directory is listed again. */
    for (unsigned i = 39; i < 54; i++)
        CHECK(holds_its_name("guess", i));
    CHECK(about(calls(), 2));
}

/* A descriptor is the file: what happens to the file or its name between fetching and use is seen. */
static void test_changes(enum gofer_share share)
{
    char path[128], to[600];
    make_dir("change");
    CHECK(holds_its_name("change", 0)); /* 1 to 14 are open now */
    snprintf(path, sizeof(path), "/change/%.31s", name_of[1]);
    write_file(path, "of our own");
    CHECK(file_is(path, "of our own"));
    snprintf(path, sizeof(path), "/change/%.31s", name_of[2]);
    CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    CHECK_EQ(try_open(path, O_RDONLY), -ENOENT);
    write_file(path, "another file");
    CHECK(file_is(path, "another file"));
    snprintf(to, sizeof(to), "/change/%.31s", name_of[3]);
    snprintf(path, sizeof(path), "/change/%.31s", name_of[4]);
    CHECK_EQ(vfs_rename(&ctx, &base, path, &base, to, 0), 0);
    CHECK(file_is(to, name_of[4]));
    if (share == GOFER_EXCLUSIVE)
        return;
    snprintf(path, sizeof(path), "change/%.31s", name_of[5]);
    host_make(path, "changed by others");
    snprintf(path, sizeof(path), "/change/%.31s", name_of[5]);
    CHECK(file_is(path, "changed by others"));
    host_make("change/new", "replaced by others");
    snprintf(path, sizeof(path), "change/%.31s", name_of[6]);
    strcpy(to, host_path("change/new"));
    CHECK(rename(to, host_path(path)) == 0);
    snprintf(path, sizeof(path), "/change/%.31s", name_of[6]);
    CHECK(file_is(path, "replaced by others"));
    snprintf(path, sizeof(path), "change/%.31s", name_of[7]);
    CHECK(unlink(host_path(path)) == 0);
    snprintf(path, sizeof(path), "/change/%.31s", name_of[7]);
    CHECK_EQ(try_open(path, O_RDONLY), -ENOENT);
    /* Others that make a file something else before it is opened ahead. */
    snprintf(path, sizeof(path), "change/%.31s", name_of[20]);
    CHECK(unlink(host_path(path)) == 0 && mkfifo(host_path(path), 0644) == 0);
    for (unsigned i = 8; i < FILES; i++)
        CHECK(i == 20 || holds_its_name("change", i));
}

static unsigned open_fds(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count;
}

/* Files that are removed give their descriptors back, read or not. */
static void test_given_back(void)
{
    char path[128];
    make_dir("gone");
    unsigned before = open_fds();
    CHECK(holds_its_name("gone", 0));
    CHECK(open_fds() > before);
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(path, sizeof(path), "/gone/%.31s", name_of[i]);
        CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    }
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/gone"), 0);
    dentry_shrink(0);
    CHECK_EQ(open_fds(), before);
}

/* However many files are read, descriptors are bounded: gofer_cache.c keeps those of 4096 idle files. */
static void test_bounded(void)
{
    enum { MANY = 6000, KEPT = 4096 };
    char path[128];
    unsigned before = open_fds();
    CHECK(mkdir(host_path("bound"), 0755) == 0);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "bound/%u", i);
        host_make(path, "x");
    }
    struct file *f = open_file("/bound", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(list_all(f, 100000), MANY + 2);
    file_unref(f);
    for (unsigned i = 0; i < 2 * MANY; i++) {
        snprintf(path, sizeof(path), "/bound/%u", i % MANY);
        CHECK(file_is(path, "x"));
        if (i % 1000 == 0)
            CHECK(open_fds() < before + KEPT + 100);
    }
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "/bound/%u", i);
        CHECK_EQ(vfs_unlink(&ctx, &base, path), 0);
    }
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/bound"), 0);
    dentry_shrink(0);
    CHECK(open_fds() <= before + 1);
}

static void run(void *arg)
{
    enum gofer_share share = (enum gofer_share)(uintptr_t)arg;
    mount_root(0, share);
    test_given_back();
    test_in_order();
    test_out_of_order();
    test_changes(share);
    test_bounded();
    path_unref(&root);
    evloop_stop();
}

int main(void)
{
    struct rlimit limit = {20000, 20000};
    struct rlimit now;
    CHECK(getrlimit(RLIMIT_NOFILE, &now) == 0);
    limit.rlim_cur = limit.rlim_max = MIN(limit.rlim_max, now.rlim_max);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    vfs_harness_init();
    with_server(run, GOFER_EXCLUSIVE);
    with_server(run, GOFER_SHARED);
    printf("ok\n");
    return 0;
}
