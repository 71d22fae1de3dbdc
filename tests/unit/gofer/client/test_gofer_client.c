/* SPDX-License-Identifier: Apache-2.0 */
/* The sentry's gofer client on the real event loop and fibers: against the real server, against
 * servers that send nonsense, and against one that dies. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "platform/base/host.h"
#include "sentry/core/evloop.h"
#include "sentry/core/fiber.h"
#include "sentry/fs/gofer/gofer_client.h"
#include "tests/unit/gofer/gofer_harness.h"

static struct gofer_harness h;
static struct gofer_client *client;
static unsigned running, deaths;

static void died(void *arg)
{
    deaths++;
    CHECK(gofer_client_dead(arg));
}

static void leave(void)
{
    if (--running == 0)
        evloop_stop();
}

static void run(void (*fn)(void *), unsigned fibers)
{
    running = fibers;
    for (unsigned i = 0; i < fibers; i++)
        CHECK_EQ(fiber_spawn(fn, (void *)(uintptr_t)i), 0);
    evloop_run();
}

static struct wire_entry attach(uint32_t tree)
{
    struct wire_entry e;
    uint32_t tree_flags;
    int watch;
    CHECK_EQ(gofer_client_attach(client, tree, false, &e, &tree_flags, &watch), 0);
    CHECK_EQ(watch, -1);
    CHECK_EQ(tree_flags & WIRE_TREE_READ_ONLY, tree == 1 ? WIRE_TREE_READ_ONLY : 0);
    return e;
}

static struct gofer_walk walk(uint64_t node, const char *path, uint32_t flags,
                              struct wire_entry *entries, unsigned max)
{
    struct gofer_walk w = {.entries = entries, .max = max};
    CHECK_EQ(gofer_client_walk(client, node, path, strlen(path), flags, O_RDONLY, &w), 0);
    return w;
}

struct listing {
    unsigned count, attrs, links;
    uint64_t cookie;
};

static void list(void *arg, const struct gofer_dirent *d)
{
    struct listing *l = arg;
    l->count++;
    l->attrs += d->attr != NULL;
    l->links += d->target.data != NULL;
    l->cookie = d->head.cookie;
}

static void all_calls(void *arg)
{
    struct gofer_make make = {.mode = 0640, .uid = 5, .gid = 6, .want_node = true};
    struct wire_entry root = attach(0), ro = attach(1), dir, e, path[4];
    struct wire_attr attr;
    struct wire_statfs st;
    char text[64];
    int fd;
    CHECK_EQ(gofer_client_mkdir(client, root.node, "dir", &make, &dir), 0);
    CHECK_EQ(gofer_client_mkdir(client, root.node, "dir", &make, &e), -EEXIST);
    CHECK_EQ(gofer_client_create(client, dir.node, "file", &make, O_RDWR, &e, &fd), 0);
    CHECK(e.node && write(fd, "hello", 5) == 5);
    close(fd);
    CHECK_EQ(gofer_client_getattr(client, e.node, &attr), 0);
    CHECK(attr.size == 5 && attr.uid == 5 && attr.gid == 6);
    struct wire_setattr set = {.node = e.node, .mask = WIRE_SET_MODE, .mode = 0600};
    CHECK_EQ(gofer_client_setattr(client, &set, &attr), 0);
    CHECK_EQ(attr.mode, S_IFREG | 0600);
    fd = gofer_client_open(client, e.node, O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, 9) == 5);
    close(fd);
    CHECK_EQ(gofer_client_open(client, dir.node, O_RDONLY), -EINVAL);
    CHECK_EQ(gofer_client_link(client, e.node, dir.node, "hard", &attr), 0);
    CHECK_EQ(attr.nlink, 2);
    make.want_node = false;
    CHECK_EQ(gofer_client_symlink(client, dir.node, "link", "target/of/link", &make, &e), 0);
    make.mode = S_IFIFO | 0600;
    CHECK_EQ(gofer_client_mknod(client, dir.node, "fifo", &make, &e), 0);
    CHECK_EQ(gofer_client_tmpfile(client, dir.node, &make, O_RDWR, &e, &fd), 0);
    close(fd);
    CHECK_EQ(gofer_client_mkdir(client, ro.node, "no", &make, &e), -EROFS);

    struct gofer_walk w = walk(root.node, "dir/link/x", WIRE_WALK_NODES, path, 4);
    CHECK(w.end == WIRE_WALK_STOPPED && w.count == 2 && w.target);
    CHECK(strcmp(w.target, "target/of/link") == 0);
    CHECK_EQ(gofer_client_readlink(client, path[1].node, text, sizeof(text)), 14);
    CHECK(strcmp(text, w.target) == 0);
    gofer_walk_done(&w);
    w = walk(root.node, "dir/file", WIRE_WALK_OPEN, path, 4);
    CHECK(w.end == WIRE_WALK_COMPLETE && w.fd >= 0 && read(w.fd, text, 9) == 5);
    gofer_walk_done(&w);
    w = walk(root.node, "dir/gone", 0, path, 4);
    CHECK(w.end == WIRE_WALK_MISSING && w.count == 1);

    struct listing l = {0};
    CHECK_EQ(gofer_client_readdir(client, dir.node, 0, WIRE_READDIR_ATTRS, 65536, list, &l), 1);
    CHECK(l.count == 4 && l.attrs == 4 && l.links == 1);
    CHECK_EQ(gofer_client_rename(client, dir.node, "fifo", root.node, "fifo2", 0), 0);
    CHECK_EQ(gofer_client_unlink(client, root.node, "fifo2", false), 0);
    CHECK_EQ(gofer_client_unlink(client, root.node, "dir", true), -ENOTEMPTY);
    CHECK_EQ(gofer_client_statfs(client, root.node, &st), 0);
    CHECK_EQ(gofer_client_fsync(client, root.node), 0);
    CHECK_EQ(gofer_client_syncfs(client, root.node), 0);
    w = walk(dir.node, "file", WIRE_WALK_NODES, path, 4);
    if (gofer_client_setxattr(client, path[0].node, "user.k", "value", 5, 0) == 0) {
        CHECK_EQ(gofer_client_getxattr(client, path[0].node, "user.k", NULL, 0), 5);
        CHECK_EQ(gofer_client_getxattr(client, path[0].node, "user.k", text, 3), -ERANGE);
        CHECK_EQ(gofer_client_getxattr(client, path[0].node, "user.k", text, 9), 5);
        CHECK_EQ(gofer_client_listxattr(client, path[0].node, text, sizeof(text)), 7);
        CHECK_EQ(gofer_client_removexattr(client, path[0].node, "user.k"), 0);
    }
    /* A large value travels through shared memory. */
    static char big[3000];
    memset(big, 'b', sizeof(big));
    if (gofer_client_setxattr(client, path[0].node, "user.big", big, sizeof(big), 0) == 0) {
        static char back[4000];
        CHECK_EQ(gofer_client_getxattr(client, path[0].node, "user.big", back, sizeof(back)), 3000);
        CHECK(memcmp(back, big, sizeof(big)) == 0);
    }
    for (unsigned i = 0; i < 300; i++) {
        w = walk(root.node, "dir", 0, path, 4);
        gofer_client_release(client, path[0].node);
    }
    gofer_client_flush(client);
    leave();
}

/* With no descriptor left, an open fails and the channel goes on. */
static void no_descriptors(void *arg)
{
    struct wire_entry root = attach(0), e[1];
    struct gofer_make make = {.mode = 0600, .want_node = true};
    struct rlimit old, low;
    struct wire_attr attr;
    int fd;
    CHECK_EQ(gofer_client_create(client, root.node, "last", &make, O_RDWR, &e[0], &fd), 0);
    close(fd);
    CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
    low = old;
    low.rlim_cur = (rlim_t)dup(0);
    close((int)low.rlim_cur);
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    CHECK_EQ(gofer_client_open(client, e[0].node, O_RDONLY), -EMFILE);
    CHECK_EQ(gofer_client_getattr(client, e[0].node, &attr), 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
    fd = gofer_client_open(client, e[0].node, O_RDONLY);
    CHECK(fd >= 0);
    close(fd);
    leave();
}

/* Many fibers at once, more than there are slots. */
static void one_of_many(void *arg)
{
    struct gofer_make make = {.mode = 0600};
    struct wire_entry root = attach(0), e[2];
    char name[32];
    int fd;
    snprintf(name, sizeof(name), "many%u", (unsigned)(uintptr_t)arg);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(gofer_client_create(client, root.node, name, &make, O_WRONLY, &e[0], &fd), 0);
        close(fd);
        struct gofer_walk w = walk(root.node, name, 0, e, 2);
        CHECK(w.end == WIRE_WALK_COMPLETE && w.count == 1);
        CHECK_EQ(gofer_client_unlink(client, root.node, name, false), 0);
        w = walk(root.node, name, 0, e, 2);
        CHECK(w.end == WIRE_WALK_MISSING && w.count == 0);
    }
    gofer_client_release(client, root.node);
    leave();
}

static void until_death(void *arg)
{
    struct wire_attr attr;
    struct wire_entry e;
    uint32_t tree_flags;
    int watch, err = gofer_client_attach(client, 0, false, &e, &tree_flags, &watch);
    for (unsigned n = 0; err >= 0; n++) {
        /* The server is killed in the middle of it. */
        if ((uintptr_t)arg == 50 && n == 10)
            kill(h.pid, SIGKILL);
        err = gofer_client_getattr(client, e.node, &attr);
    }
    CHECK_EQ(err, -EIO);
    CHECK_EQ(gofer_client_getattr(client, e.node, &attr), -EIO);
    leave();
}

static double best_us;

static void measure(void *arg)
{
    struct wire_entry root = attach(0), e[1];
    best_us = 1e9;
    for (unsigned batch = 0; batch < 20; batch++) {
        uint64_t start = host_monotonic_ns();
        for (unsigned i = 0; i < 200; i++)
            (void)!walk(root.node, "single", 0, e, 1).count;
        double us = (double)(host_monotonic_ns() - start) / 200 / 1000;
        best_us = MIN(best_us, us);
    }
    leave();
}

static void start_client(void)
{
    harness_start(&h, 0);
    CHECK_EQ(gofer_client_new(h.sock, h.shm, &client), 0);
    deaths = 0;
    gofer_client_on_death(client, died, client);
}

static int stop_client(void)
{
    int status;
    gofer_client_unref(client);
    CHECK_EQ(waitpid(h.pid, &status, 0), h.pid);
    harness_clean(&h);
    return status;
}

/* ---- servers that lie ---- */

static unsigned lie;
enum { LIES = 12 };

/* Answers each request in some wrong way. */
static NORETURN void liar(struct channel *ch)
{
    static unsigned char in[CHANNEL_BUFFER_SIZE];
    struct channel_request q;
    while (channel_recv_request(ch, in, &q) == 1) {
        struct {
            struct wire_reply head;
            struct wire_entry entry;
            uint32_t flags;
        } PACKED m = {.head = {.tag = q.tag, .inline_size = sizeof(m) - sizeof(m.head)}};
        struct wire_entry entry = {.node = 1, .attr = {.mode = S_IFDIR}};
        size_t size = sizeof(m);
        int fds[2] = {0, 1}, fds_len = 0;
        switch (lie) {
        case 0:
            m.head.tag ^= 0x100;
            break;
        case 1:
            m.head.tag = 0xff;
            break;
        case 2:
            m.head.error = 5;
            break;
        case 3:
            m.head.error = -5;
            break;
        case 4:
            m.head.inline_size++;
            break;
        case 5:
            m.head.inline_size = 0;
            m.head.slot_size = WIRE_SLOT_SIZE + 1;
            size = sizeof(m.head);
            break;
        case 6:
            size = 7;
            break;
        case 7:
            entry.attr.mode = 0;
            break;
        case 8:
            entry.node = 0;
            break;
        case 9:
            fds_len = 2;
            m.head.fds_len = 2;
            break;
        case 10:
            fds_len = 1;
            break;
        case 11:
            entry.attr.mtime_nsec = 1000000000;
            break;
        }
        memcpy(&m.entry, &entry, sizeof(entry));
        (void)!host_send_fds(ch->sock, &m, size, fds, (size_t)fds_len);
    }
    _exit(0);
}

static void believe(void *arg)
{
    struct wire_entry e;
    uint32_t tree_flags;
    int watch;
    CHECK_EQ(gofer_client_attach(client, 0, false, &e, &tree_flags, &watch), -EIO);
    CHECK(gofer_client_dead(client));
    CHECK_EQ(deaths, 1);
    leave();
}

static void test_lies(void)
{
    for (lie = 0; lie < LIES; lie++) {
        int socks[2], shm = channel_shm_new();
        CHECK(channel_socketpair(socks) == 0 && shm >= 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct channel ch;
            close(socks[0]);
            CHECK_EQ(channel_open(&ch, socks[1], shm), 0);
            liar(&ch);
        }
        close(socks[1]);
        CHECK_EQ(gofer_client_new(socks[0], shm, &client), 0);
        deaths = 0;
        gofer_client_on_death(client, died, client);
        run(believe, 1);
        gofer_client_unref(client);
        CHECK_EQ(waitpid(pid, NULL, 0), pid);
    }
    /* Shared memory that the peer could shrink is refused. */
    int socks[2], shm = memfd_create("bad", MFD_CLOEXEC);
    CHECK(channel_socketpair(socks) == 0 && ftruncate(shm, CHANNEL_SHM_SIZE) == 0);
    CHECK_EQ(gofer_client_new(socks[0], shm, &client), -EINVAL);
    close(socks[1]);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(evloop_init(), 0);
    start_client();
    run(all_calls, 1);
    run(no_descriptors, 1);
    run(one_of_many, 100);
    CHECK_EQ(deaths, 0);
    gofer_client_exit(client, 42 << 8);
    CHECK(gofer_client_dead(client));
    CHECK_EQ(stop_client(), 42 << 8);

    start_client();
    run(until_death, 100);
    CHECK_EQ(deaths, 1);
    CHECK_EQ(stop_client(), SIGKILL);

    start_client();
    run(measure, 1);
    printf("WALK from a fiber: %.2f us\n", best_us);
    CHECK_EQ(stop_client(), SIGKILL);
    test_lies();
    printf("ok\n");
    return 0;
}
