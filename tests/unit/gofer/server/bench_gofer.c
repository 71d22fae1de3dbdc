/* SPDX-License-Identifier: Apache-2.0 */
/* What the gofer's operations cost, one at a time: run by hand (bench_gofer [workers]), not a test.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "tests/unit/gofer/gofer_harness.h"

enum { BENCH_ROUNDS = 20000 };

static struct gofer_harness h;
static uint64_t root, dir;
static int epoll_fd = -1; /* wait for replies as the sentry's event loop does */

static void call(enum wire_op op, const void *fixed, size_t size, const char *s1)
{
    static unsigned char buffer[WIRE_SLOT_SIZE];
    static struct channel_reply reply;
    struct codec_writer w;
    codec_writer_init(&w, buffer, sizeof(buffer));
    codec_put(&w, fixed, size);
    if (s1)
        codec_put_str(&w, s1, strlen(s1));
    CHECK_EQ(channel_send_request(&h.channel, 1, op, buffer, w.size), 0);
    if (epoll_fd >= 0) {
        struct epoll_event ev;
        CHECK_EQ(epoll_wait(epoll_fd, &ev, 1, -1), 1);
    }
    CHECK_EQ(channel_recv_reply(&h.channel, &reply, epoll_fd >= 0 ? MSG_DONTWAIT : 0), 1);
    CHECK_EQ(reply.error, 0);
    for (size_t i = 0; i < reply.fds_len; i++)
        close(reply.fds[i]);
}

static void walk(const char *path, uint32_t flags)
{
    struct wire_walk req = {.node = root, .flags = flags, .open_flags = O_RDONLY};
    call(WIRE_OP_WALK, &req, sizeof(req), path);
}
static void bench_walk1(void)
{
    walk("file", 0);
}
static void bench_missing(void)
{
    walk("absent", 0);
}
static void bench_open(void)
{
    walk("file", WIRE_WALK_OPEN);
}
static void bench_getattr(void)
{
    struct wire_node_only req = {.node = dir};
    call(WIRE_OP_GETATTR, &req, sizeof(req), NULL);
}
static void bench_release(void)
{
    struct wire_release req = {0};
    call(WIRE_OP_RELEASE, &req, sizeof(req), NULL);
}
static void bench_create(void)
{
    struct wire_make make = {.dir = dir, .mode = 0644, .open_flags = O_RDWR};
    struct wire_unlink unlink = {.dir = dir};
    call(WIRE_OP_CREATE, &make, sizeof(make), "new");
    call(WIRE_OP_UNLINK, &unlink, sizeof(unlink), "new");
}
static void bench_readdir(void)
{
    struct wire_readdir req = {.node = dir, .flags = WIRE_READDIR_ATTRS, .max_size = 65536};
    call(WIRE_OP_READDIR, &req, sizeof(req), NULL);
}

static void bench_walk4(void)
{
    /* Nodes of directories pile up: give them back through a fresh session at the end. */
    walk("d1/d2/d3/file", 0);
}

/* The best of many short batches: other work on the machine only ever adds. */
static void run(const char *name, void (*fn)(void), unsigned rounds)
{
    double best = 1e9;
    for (unsigned batch = 0; batch < 40; batch++) {
        uint64_t start = host_monotonic_ns();
        for (unsigned i = 0; i < rounds / 40; i++)
            fn();
        double us = (double)(host_monotonic_ns() - start) / 1000 / (rounds / 40);
        best = MIN(best, us);
    }
    printf("%-28s %8.2f us\n", name, best);
}

static void run_all(const char *title)
{
    printf("-- %s\n", title);
    run("empty call (RELEASE of none)", bench_release, BENCH_ROUNDS);
    run("GETATTR", bench_getattr, BENCH_ROUNDS);
    run("WALK file", bench_walk1, BENCH_ROUNDS);
    run("WALK absent", bench_missing, BENCH_ROUNDS);
    run("WALK d1/d2/d3/file", bench_walk4, 1500);
    run("WALK+OPEN file", bench_open, BENCH_ROUNDS);
    run("CREATE + UNLINK", bench_create, BENCH_ROUNDS / 4);
    run("READDIR 100 with attributes", bench_readdir, BENCH_ROUNDS / 10);
}

int main(int argc, char **argv)
{
    char path[320];
    signal(SIGPIPE, SIG_IGN);
    harness_start(&h, argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    harness_open(&h);
    snprintf(path, sizeof(path),
             "cd %s/root && mkdir -p d1/d2/d3 dir && touch file d1/d2/d3/file && "
             "for i in $(seq 100); do : > dir/f$i; done",
             h.dir);
    CHECK(system(path) == 0);
    root = harness_attach(&h, 0).node;
    struct wire_entry e;
    harness_walk(&h, root, "dir", 0, 0, &e, 1);
    dir = e.node;
    run_all("blocking receive");
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN};
    CHECK(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, h.channel.sock, &ev) == 0);
    run_all("epoll");
    harness_stop(&h);
    harness_clean(&h);
    return 0;
}
