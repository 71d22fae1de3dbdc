/* SPDX-License-Identifier: Apache-2.0 */
/* A shared tree under the real VFS: what others change shows at once, what we change is not taken
 * for theirs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "tests/unit/gofer/vfs_harness.h"

static void host_write(const char *path, const char *text, int flags)
{
    int fd = open(host_path(path), O_CREAT | O_WRONLY | O_CLOEXEC | flags, 0644);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* Everything that others do to names and attributes shows at once. */
static void test_others(void)
{
    struct kstat st;
    char from[512];
    CHECK_EQ(stat_path("/x", &st), -ENOENT);
    host_write("x", "abc", 0);
    CHECK_EQ(stat_path("/x", &st), 0);
    CHECK_EQ(st.size, 3);
    host_write("x", "defg", O_APPEND);
    CHECK_EQ(stat_path("/x", &st), 0);
    CHECK_EQ(st.size, 7);
    CHECK(chmod(host_path("x"), 0600) == 0);
    CHECK_EQ(stat_path("/x", &st), 0);
    CHECK_EQ(st.mode, S_IFREG | 0600);
    CHECK(file_is("/x", "abcdefg"));
    CHECK(truncate(host_path("x"), 2) == 0);
    CHECK(file_is("/x", "ab"));
    CHECK(unlink(host_path("x")) == 0);
    CHECK_EQ(stat_path("/x", &st), -ENOENT);
    CHECK(mkdir(host_path("x"), 0755) == 0);
    CHECK_EQ(stat_path("/x", &st), 0);
    CHECK(S_ISDIR(st.mode));
    /* Below a directory that was seen before anything was in it. */
    CHECK_EQ(stat_path("/x/y/z", &st), -ENOENT);
    CHECK(mkdir(host_path("x/y"), 0755) == 0);
    host_write("x/y/z", "1", 0);
    CHECK(file_is("/x/y/z", "1"));
    /* Renamed over, and a directory that moves. */
    host_write("x/y/new", "22", 0);
    strcpy(from, host_path("x/y/new"));
    CHECK(rename(from, host_path("x/y/z")) == 0);
    CHECK(file_is("/x/y/z", "22"));
    CHECK_EQ(stat_path("/x/y/new", &st), -ENOENT);
    strcpy(from, host_path("x/y"));
    CHECK(rename(from, host_path("x/w")) == 0);
    CHECK_EQ(stat_path("/x/y/z", &st), -ENOENT);
    CHECK(file_is("/x/w/z", "22"));
    /* A listed directory is known as a whole until somebody adds to it. */
    struct file *f = open_file("/x/w", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(list_all(f, 100), 3);
    count_calls();
    CHECK_EQ(stat_path("/x/w/q", &st), -ENOENT);
    CHECK_EQ(calls(), 0);
    host_write("x/w/q", "q", 0);
    CHECK(file_is("/x/w/q", "q"));
    CHECK_EQ(file_llseek(&ctx, f, 0, SEEK_SET), 0);
    CHECK_EQ(list_all(f, 100), 4);
    file_unref(f);
    /* Removed and made again with the same names. */
    strcpy(from, host_path("x/w"));
    char command[700];
    snprintf(command, sizeof(command), "rm -r %s && mkdir %s && echo again > %s/z", from, from,
             from);
    CHECK(system(command) == 0);
    CHECK(file_is("/x/w/z", "again\n"));
    CHECK_EQ(stat_path("/x/w/q", &st), -ENOENT);
    /* Another name of a file is not watched: it is asked anew after a while. */
    host_write("hard1", "1", 0);
    strcpy(from, host_path("hard1"));
    CHECK(mkdir(host_path("unwatched"), 0755) == 0);
    CHECK(link(from, host_path("unwatched/hard2")) == 0);
    CHECK_EQ(stat_path("/hard1", &st), 0);
    CHECK_EQ(st.nlink, 2);
    host_write("unwatched/hard2", "23", O_APPEND);
    usleep(GOFER_SHARED_TRUST_NS / 1000 + 1000);
    CHECK_EQ(stat_path("/hard1", &st), 0);
    CHECK_EQ(st.size, 3);
}

/* Our own changes are not mistaken for somebody else's. */
static void test_own(void)
{
    struct kstat st;
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/own", 0755), 0);
    write_file("/own/a", "12345");
    count_calls();
    CHECK_EQ(stat_path("/own/a", &st), 0);
    CHECK_EQ(st.size, 5);
    CHECK(file_is("/own/a", "12345"));
    CHECK_EQ(stat_path("/own/b", &st), -ENOENT);
    CHECK_EQ(calls(), 0);
    CHECK_EQ(vfs_rename(&ctx, &base, "/own/a", &base, "/own/b", 0), 0);
    CHECK_EQ(calls(), 1);
    CHECK(file_is("/own/b", "12345"));
    CHECK_EQ(stat_path("/own/a", &st), -ENOENT);
    CHECK_EQ(calls(), 1);
    CHECK_EQ(vfs_symlink(&ctx, &base, "/own/l", "b"), 0);
    CHECK_EQ(calls(), 2);
    CHECK(file_is("/own/l", "12345"));
    CHECK_EQ(set_attr("/own/b", (struct iattr){.valid = IATTR_MODE, .mode = 0600}), 0);
    CHECK_EQ(calls(), 3);
    CHECK_EQ(stat_path("/own/b", &st), 0);
    CHECK_EQ(st.mode, S_IFREG | 0600);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/own/b"), 0);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/own/l"), 0);
    CHECK_EQ(stat_path("/own/b", &st), -ENOENT);
    CHECK_EQ(calls(), 3);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/own"), 0);
    CHECK_EQ(stat_path("/own", &st), -ENOENT);
    CHECK_EQ(calls(), 4);
}

/* More events than the host keeps. */
static void test_overflow(void)
{
    struct kstat st;
    char path[64];
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/flood", 0755), 0);
    write_file("/flood/keep", "mine");
    host_write("flood/f0", "0", 0);
    CHECK(file_is("/flood/f0", "0"));
    CHECK_EQ(stat_path("/flood/late", &st), -ENOENT);
    for (int i = 0; i < 20000; i++) {
        snprintf(path, sizeof(path), "flood/f%d", i & 1);
        close(open(host_path(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        CHECK(unlink(host_path(path)) == 0);
    }
    host_write("flood/late", "late", 0);
    host_write("flood/keep", " and theirs", O_APPEND);
    CHECK(file_is("/flood/late", "late"));
    CHECK(file_is("/flood/keep", "mine and theirs"));
    CHECK_EQ(stat_path("/flood/f0", &st), -ENOENT);
}

/* Two that append to one file. */
static void test_append(void)
{
    int fd = open(host_path("log"), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    struct file *f = open_file("/log", O_WRONLY | O_APPEND);
    for (int i = 0; i < 10; i++) {
        CHECK(write(fd, "h", 1) == 1);
        CHECK_EQ(write_at(f, "s", 1, 0), 1);
    }
    file_unref(f);
    close(fd);
    CHECK(file_is("/log", "hshshshshshshshshshs"));
}

static void run_shared(void *arg)
{
    mount_root(0, GOFER_SHARED);
    CHECK(client->tree_watch != NULL);
    test_others();
    test_own();
    test_append();
    test_overflow();
    path_unref(&root);
    evloop_stop();
}

/* A tree that is one file. */
static void run_single(void *arg)
{
    struct dentry *d;
    char text[32] = "", path[128];
    struct kstat st;
    CHECK_EQ(gofer_fs_mount(client, 2, GOFER_SHARED, &d), 0);
    CHECK(S_ISREG(d->inode->mode));
    struct path p = {.dentry = d};
    struct file *f;
    CHECK_EQ(file_open_inode(&ctx, &p, O_RDWR, &f), 0);
    CHECK_EQ(read_at(f, text, sizeof(text), 0), 6);
    CHECK_EQ(write_at(f, "S", 1, 0), 1);
    snprintf(path, sizeof(path), "%s/single", h.dir);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK(fd >= 0 && write(fd, "more", 4) == 4);
    close(fd);
    CHECK_EQ(inode_getattr(&ctx, d->inode, &st), 0);
    CHECK_EQ(st.size, 10);
    CHECK_EQ(read_at(f, text, sizeof(text), 0), 10);
    CHECK(strcmp(text, "Singlemore") == 0);
    file_unref(f);
    dentry_unref(d);
    evloop_stop();
}

int main(void)
{
    vfs_harness_init();
    with_server(run_shared, 0);
    with_server(run_single, 0);
    printf("ok\n");
    return 0;
}
