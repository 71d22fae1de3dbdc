/* SPDX-License-Identifier: Apache-2.0 */
/* Changes that nobody waits for: order, bounds, late failures, the gofer's death. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/gofer/gofer_lane.h"
#include "sentry/vfs/dentry.h"
#include "sentry/vfs/file.h"
#include "tests/unit/gofer/vfs_harness.h"

enum { MANY = 500 };

static char name_buffer[64];

static const char *numbered(const char *stem, int i)
{
    snprintf(name_buffer, sizeof(name_buffer), "%s%d", stem, i);
    return name_buffer;
}

static unsigned on_host(const char *dir)
{
    char command[600];
    snprintf(command, sizeof(command), "ls -A %s | wc -l", host_path(dir));
    FILE *f = popen(command, "r");
    unsigned count = 0;
    CHECK(f && fscanf(f, "%u", &count) == 1);
    pclose(f);
    return count;
}

static unsigned listed(const char *path)
{
    struct file *f = open_file(path, O_RDONLY | O_DIRECTORY);
    unsigned count = list_all(f, 100);
    file_unref(f);
    return count;
}

/* What is removed is gone for everybody who asks, and on the host once it is waited for. */
static void test_order(void)
{
    struct kstat st;
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/order", 0755), 0);
    for (int i = 0; i < MANY; i++)
        write_file(numbered("/order/f", i), "x");
    count_calls();
    for (int i = 0; i < 20; i++)
        CHECK_EQ(vfs_unlink(&ctx, &base, numbered("/order/f", i)), 0);
    CHECK_EQ(calls(), 0);
    CHECK_EQ(stat_path("/order/f3", &st), -ENOENT);
    for (int i = 20; i < MANY; i++)
        CHECK_EQ(vfs_unlink(&ctx, &base, numbered("/order/f", i)), 0);
    /* Asked of the gofer, as the directory is not known any more: it comes after what was sent before. */
    dentry_shrink(0);
    CHECK_EQ(listed("/order"), 2);
    CHECK_EQ(on_host("order"), 0);
    for (int i = 0; i < MANY; i++) {
        write_file("/order/again", "1");
        CHECK_EQ(vfs_unlink(&ctx, &base, "/order/again"), 0);
    }
    write_file("/order/again", "2");
    CHECK_EQ(vfs_rename(&ctx, &base, "/order/again", &base, "/order/kept", 0), 0);
    CHECK_EQ(gofer_lane_settle(client), 0);
    CHECK_EQ(on_host("order"), 1);
    CHECK(file_is("/order/kept", "2"));
    CHECK_EQ(vfs_unlink(&ctx, &base, "/order/kept"), 0);
    CHECK_EQ(vfs_rmdir(&ctx, &base, "/order"), 0);
    CHECK_EQ(stat_path("/order", &st), -ENOENT);
}

/* A file in use when its name goes is still there for its users. */
static void test_in_use(void)
{
    struct kstat st;
    char text[8] = "";
    write_file("/used", "text");
    struct file *f = open_file("/used", O_RDWR);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/used"), 0);
    CHECK_EQ(inode_getattr(&ctx, f->inode, &st), 0);
    CHECK_EQ(st.nlink, 0);
    CHECK_EQ(read_at(f, text, sizeof(text), 0), 4);
    CHECK_EQ(write_at(f, "more", 4, 4), 4);
    file_unref(f);
    write_file("/one", "1");
    struct walk_base *b = &base;
    struct path p;
    CHECK_EQ(walk_path(&ctx, b, "/one", 0, &p), 0);
    CHECK_EQ(vfs_link(&ctx, &p, b, "/two"), 0);
    path_unref(&p);
    CHECK_EQ(vfs_unlink(&ctx, b, "/one"), 0);
    CHECK_EQ(stat_path("/two", &st), 0);
    CHECK_EQ(st.nlink, 1);
    CHECK(file_is("/two", "1"));
    CHECK_EQ(vfs_unlink(&ctx, b, "/two"), 0);
}

/* A change that the host refuses is told by the next sync, once. */
static void test_late_failure(void)
{
    struct kstat st;
    write_file("/late", "x");
    write_file("/synced", "x");
    CHECK(unlink(host_path("late")) == 0 && mkdir(host_path("late"), 0755) == 0);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/late"), 0);
    struct file *f = open_file("/synced", O_RDWR);
    CHECK_EQ(f->ops->fsync(&ctx, f, false), -EISDIR);
    CHECK_EQ(f->ops->fsync(&ctx, f, false), 0);
    file_unref(f);
    /* What is cached of the directory is not believed any more. */
    CHECK_EQ(stat_path("/late", &st), 0);
    CHECK(S_ISDIR(st.mode));
    CHECK(rmdir(host_path("late")) == 0);
    /* What somebody else has removed first is as it should be. */
    write_file("/late2", "x");
    CHECK(unlink(host_path("late2")) == 0);
    CHECK_EQ(vfs_unlink(&ctx, &base, "/late2"), 0);
    CHECK_EQ(gofer_lane_settle(client), 0);
    CHECK(!gofer_client_dead(client));
}

/* The gofer goes on in a while. */
static pid_t wake_later(void)
{
    CHECK(kill(h.pid, SIGSTOP) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(30000);
        kill(h.pid, SIGCONT);
        _exit(0);
    }
    return child;
}

/* A gofer that does not keep up is waited for. */
static void test_bound(void)
{
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/bound", 0755), 0);
    for (int i = 0; i < MANY; i++)
        write_file(numbered("/bound/f", i), "x");
    pid_t child = wake_later();
    uint64_t start = host_monotonic_ns();
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(vfs_unlink(&ctx, &base, numbered("/bound/f", i)), 0);
        CHECK(client->lane_ops <= 130);
    }
    CHECK(host_monotonic_ns() - start >= 20000000);
    CHECK_EQ(gofer_lane_settle(client), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(on_host("bound"), 0);
    CHECK_EQ(client->lane_ops, 0);
    CHECK_EQ(client->lane_bytes, 0);
}

/* Where others change names, removals are waited for. */
static void test_others(void)
{
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/theirs", 0755), 0);
    write_file("/theirs/a", "x");
    write_file("/theirs/b", "x");
    count_calls();
    CHECK_EQ(vfs_unlink(&ctx, &base, "/theirs/a"), 0);
    CHECK_EQ(calls(), 0);
    close(open(host_path("theirs/c"), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    count_calls();
    CHECK_EQ(vfs_unlink(&ctx, &base, "/theirs/b"), 0);
    CHECK(calls() >= 1);
    CHECK_EQ(on_host("theirs"), 1);
}

static void run(void *arg)
{
    enum gofer_share share = (enum gofer_share)(uintptr_t)arg;
    mount_root(0, share);
    CHECK(client->lane.sock >= 0);
    test_order();
    test_in_use();
    test_bound();
    if (share == GOFER_EXCLUSIVE)
        test_late_failure();
    else
        test_others();
    path_unref(&root);
    evloop_stop();
}

static unsigned deaths;

static void count_death(void *arg)
{
    deaths++;
}

/* The gofer dies with changes under way: nobody waits for ever. */
static void run_death(void *arg)
{
    mount_root(0, GOFER_EXCLUSIVE);
    gofer_client_on_death(client, count_death, NULL);
    for (int i = 0; i < 100; i++)
        write_file(numbered("/f", i), "x");
    CHECK(kill(h.pid, SIGSTOP) == 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(vfs_unlink(&ctx, &base, numbered("/f", i)), 0);
    CHECK(client->lane_ops > 0);
    CHECK(kill(h.pid, SIGKILL) == 0);
    CHECK_EQ(gofer_lane_settle(client), -EIO);
    CHECK_EQ(deaths, 1);
    CHECK_EQ(client->lane_ops, 0);
    CHECK_EQ(vfs_mkdir(&ctx, &base, "/dead", 0755), -EIO);
    path_unref(&root);
    evloop_stop();
}

static void with_death(void)
{
    harness_start(&h, 0);
    CHECK_EQ(gofer_client_new(h.sock, h.shm, &client), 0);
    CHECK_EQ(fiber_spawn(run_death, NULL), 0);
    evloop_run();
    dentry_shrink(0);
    CHECK(gofer_client_dead(client));
    gofer_client_unref(client);
    CHECK_EQ(waitpid(h.pid, NULL, 0), h.pid);
    harness_clean(&h);
}

int main(void)
{
    vfs_harness_init();
    with_server(run, GOFER_EXCLUSIVE);
    with_server(run, GOFER_SHARED);
    with_death();
    printf("ok\n");
    return 0;
}
