/* SPDX-License-Identifier: Apache-2.0 */
/* Test support: a gofer file system under the real VFS. */
#include "tests/unit/gofer/vfs_harness.h"

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
#include "platform/platform.h"
#include "sentry/core/cred.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"

struct gofer_harness h;
struct gofer_client *client;
struct ctx ctx;
struct path root;
struct walk_base base = {.root = &root, .cwd = &root, .umask = 022};

/* No guests here: all data is the test's own. */
int plat_copy_in(struct plat_thread *t, void *dst, uint64_t src, uint64_t size)
{
    return -EFAULT;
}

int plat_copy_out(struct plat_thread *t, uint64_t dst, const void *src, uint64_t size)
{
    return -EFAULT;
}

/* ---- short forms ---- */

static unsigned calls_before;

void count_calls(void)
{
    /* What is given back is sent when its timer says so: not while calls are counted. */
    struct ktimer *t = &client->release_timer;
    if (ktimer_armed(t))
        CHECK_EQ(ktimer_set(t, host_monotonic_ns() + 1000000000, t->fn), 0);
    calls_before = client->sequence;
}

unsigned calls(void)
{
    return client->sequence - calls_before;
}

struct file *open_file(const char *path, uint32_t flags)
{
    struct file *f = NULL;
    int err = vfs_open(&ctx, &base, path, flags, 0666, &f);
    if (err)
        fprintf(stderr, "open %s: %d\n", path, err);
    CHECK_EQ(err, 0);
    return f;
}

int try_open(const char *path, uint32_t flags)
{
    struct file *f = NULL;
    int err = vfs_open(&ctx, &base, path, flags, 0666, &f);
    file_unref(f);
    return err;
}

ssize_t write_at(struct file *f, const void *p, size_t size, int64_t pos)
{
    struct uio u;
    uio_init_kernel(&u, (void *)p, size);
    u.ctx = &ctx;
    ssize_t n = file_write(f, &u, &pos);
    uio_free(&u);
    return n;
}

ssize_t read_at(struct file *f, void *p, size_t size, int64_t pos)
{
    struct uio u;
    uio_init_kernel(&u, p, size);
    u.ctx = &ctx;
    ssize_t n = file_read(f, &u, &pos);
    uio_free(&u);
    return n;
}

int stat_path(const char *path, struct kstat *st)
{
    struct path p;
    int err = walk_path(&ctx, &base, path, 0, &p);
    if (err)
        return err;
    err = inode_getattr(&ctx, p.dentry->inode, st);
    path_unref(&p);
    return err;
}

void write_file(const char *path, const char *text)
{
    struct file *f = open_file(path, O_CREAT | O_TRUNC | O_WRONLY);
    CHECK_EQ(write_at(f, text, strlen(text), 0), strlen(text));
    file_unref(f);
}

bool file_is(const char *path, const char *text)
{
    char back[256] = "";
    struct file *f = open_file(path, O_RDONLY);
    ssize_t n = read_at(f, back, sizeof(back) - 1, 0);
    file_unref(f);
    return n == (ssize_t)strlen(text) && strcmp(back, text) == 0;
}

/* The same file as the host sees it. */
const char *host_path(const char *path)
{
    static char full[512];
    snprintf(full, sizeof(full), "%s/root/%s", h.dir, path);
    return full;
}

int set_attr(const char *path, struct iattr a)
{
    struct path p;
    CHECK_EQ(walk_path(&ctx, &base, path, 0, &p), 0);
    int err = vfs_setattr(&ctx, &p, &a);
    path_unref(&p);
    return err;
}

bool count_entry(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned type,
                 int64_t next_pos)
{
    struct counting_sink *c = container_of(sink, struct counting_sink, sink);
    if (c->count == c->max)
        return false;
    CHECK(len && ino && next_pos > 0);
    c->count++;
    c->last_pos = next_pos;
    return true;
}

unsigned list_all(struct file *f, unsigned piece)
{
    unsigned total = 0;
    for (;;) {
        struct counting_sink c = {.sink = {.emit = count_entry}, .max = piece};
        CHECK_EQ(file_readdir(&ctx, f, &c.sink), 0);
        if (!c.count)
            return total;
        total += c.count;
    }
}

void mount_root(uint32_t tree, enum gofer_share share)
{
    struct dentry *d;
    struct mntns *ns;
    int err = gofer_fs_mount(client, tree, share, &d);
    CHECK_EQ(err, 0);
    CHECK_EQ(mntns_new(d, 0, "root", &ns), 0);
    root = mntns_root(ns);
    mntns_unref(ns);
}

void with_server(void (*fn)(void *), uintptr_t arg)
{
    int status;
    harness_start(&h, 0);
    CHECK_EQ(gofer_client_new(h.sock, h.shm, &client), 0);
    CHECK_EQ(fiber_spawn(fn, (void *)arg), 0);
    evloop_run();
    CHECK(!gofer_client_dead(client));
    dentry_shrink(0);
    CHECK_EQ(dentry_count(), 0);
    gofer_client_exit(client, 0);
    /* The superblocks are gone, so this is the last reference. */
    CHECK_EQ(client->ref.count, 1);
    gofer_client_unref(client);
    CHECK_EQ(waitpid(h.pid, &status, 0), h.pid);
    CHECK_EQ(status, 0);
    harness_clean(&h);
}

void vfs_harness_init(void)
{
    struct cred *made;
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(evloop_init(), 0);
    CHECK_EQ(cred_new_root(&made), 0);
    ctx.cred = made;
}
