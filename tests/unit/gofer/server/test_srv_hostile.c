/* SPDX-License-Identifier: Apache-2.0 */
/* A sentry that was taken over: random and malformed requests. The server may drop the session (it
 * then ends by SIGKILL) but must not crash, hang, break its seccomp list or touch what is outside.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "platform/base/host.h"
#include "tests/unit/gofer/gofer_harness.h"

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t rnd(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % below;
}

static void rnd_fill(unsigned char *p, size_t size)
{
    static const unsigned char nice[] = {0, 0, 0, 1, 2, 3, '.', '/', 'a', 'd', 255, 128};
    for (size_t i = 0; i < size; i++)
        p[i] = rnd(4) ? nice[rnd(sizeof(nice))] : (unsigned char)rnd(256);
}

/* A request of the right shape with random contents. Return: its size. */
static size_t shape(unsigned char *p, uint16_t op, uint64_t root)
{
    static const unsigned char sizes[WIRE_OP_COUNT] = {
        [WIRE_OP_ATTACH] = sizeof(struct wire_attach),
        [WIRE_OP_WALK] = sizeof(struct wire_walk),
        [WIRE_OP_OPEN] = sizeof(struct wire_open),
        [WIRE_OP_CREATE] = sizeof(struct wire_make),
        [WIRE_OP_MKDIR] = sizeof(struct wire_make),
        [WIRE_OP_SYMLINK] = sizeof(struct wire_make),
        [WIRE_OP_MKNOD] = sizeof(struct wire_make),
        [WIRE_OP_TMPFILE] = sizeof(struct wire_make),
        [WIRE_OP_LINK] = sizeof(struct wire_link),
        [WIRE_OP_UNLINK] = sizeof(struct wire_unlink),
        [WIRE_OP_RENAME] = sizeof(struct wire_rename),
        [WIRE_OP_READLINK] = 8,
        [WIRE_OP_GETATTR] = 8,
        [WIRE_OP_SETATTR] = sizeof(struct wire_setattr),
        [WIRE_OP_GETXATTR] = sizeof(struct wire_xattr),
        [WIRE_OP_SETXATTR] = sizeof(struct wire_xattr),
        [WIRE_OP_FLAGS] = sizeof(struct wire_flags),
        [WIRE_OP_CACHESTAT] = sizeof(struct wire_cachestat),
        [WIRE_OP_LISTXATTR] = 8,
        [WIRE_OP_REMOVEXATTR] = sizeof(struct wire_xattr),
        [WIRE_OP_READDIR] = sizeof(struct wire_readdir),
        [WIRE_OP_STATFS] = 8,
        [WIRE_OP_FSYNC] = 8,
        [WIRE_OP_RELEASE] = sizeof(struct wire_release),
        [WIRE_OP_OPEN_MANY] = sizeof(struct wire_open_many),
    };
    static const uint8_t names[WIRE_OP_COUNT] = {
        [WIRE_OP_WALK] = 1,     [WIRE_OP_CREATE] = 1,   [WIRE_OP_MKDIR] = 1,
        [WIRE_OP_SYMLINK] = 2,  [WIRE_OP_MKNOD] = 1,    [WIRE_OP_TMPFILE] = 1,
        [WIRE_OP_LINK] = 1,     [WIRE_OP_UNLINK] = 1,   [WIRE_OP_RENAME] = 2,
        [WIRE_OP_GETXATTR] = 1, [WIRE_OP_SETXATTR] = 1, [WIRE_OP_REMOVEXATTR] = 1,
        [WIRE_OP_OPEN_MANY] = 3};
    size_t size = sizes[op];
    memset(p, 0, size);
    /* The node, and small numbers here and there. */
    uint64_t node = rnd(8) ? root : root + (uint64_t)rnd(3) + ((uint64_t)rnd(3) << 32);
    memcpy(p, &node, sizeof(node));
    if (size >= 16 && rnd(2))
        memcpy(p + 8, &node, sizeof(node));
    if (size > 12 && rnd(12) == 0)
        p[8 + rnd((uint32_t)size - 8)] = (unsigned char)rnd(4);
    if (op == WIRE_OP_ATTACH)
        memset(p, 0, 8);
    if (op == WIRE_OP_OPEN_MANY)
        memcpy(p + 8, (uint32_t[]){rnd(50) ? 3 : rnd(20), rnd(50) ? rnd(2) : 7}, 8);
    for (unsigned i = 0; i < names[op]; i++) {
        uint16_t n = op == WIRE_OP_TMPFILE ? 0 : (uint16_t)rnd(rnd(3) ? 4 : 300);
        memcpy(p + size, &n, 2);
        for (uint16_t k = 0; k < n; k++)
            p[size + 2 + k] = (unsigned char)"abcd./"[rnd(rnd(2) ? 4 : 6)];
        size += 2 + n;
    }
    return size;
}

/* Sends one random message. Return: false when the server is gone. */
static bool send_random(struct gofer_harness *h, uint64_t root)
{
    unsigned char msg[sizeof(struct wire_request) + 2600];
    struct wire_request head = {.tag = rnd(WIRE_SLOTS),
                                .op = (uint16_t)(1 + rnd(WIRE_OP_COUNT - 1))};
    if (head.op == WIRE_OP_EXIT)
        head.op = WIRE_OP_READDIR;
    size_t size = shape(msg + sizeof(head), head.op, root);
    head.inline_size = (uint16_t)size;
    switch (rnd(1000)) {
    case 0: /* pure garbage */
        size = rnd(sizeof(msg) - sizeof(head));
        rnd_fill(msg, sizeof(msg));
        memcpy(&head, msg, sizeof(head));
        break;
    case 1: /* sizes that do not agree */
        head.inline_size = (uint16_t)rnd(65536);
        head.slot_size = rnd(2) ? 0 : rnd(1 << 20);
        break;
    case 2: /* a slot that is none */
        head.tag = rnd(256);
        break;
    case 3: /* garbage as payload */
        rnd_fill(msg + sizeof(head), size);
        break;
    case 4: /* garbage payload in the slot */
        head.slot_size = 1 + rnd(WIRE_SLOT_SIZE);
        head.inline_size = 0;
        rnd_fill(h->channel.shm + (size_t)head.tag * WIRE_SLOT_SIZE, 256);
        size = 0;
        break;
    }
    memcpy(msg, &head, sizeof(head));
    return send(h->channel.sock, msg, sizeof(head) + size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
           errno == EAGAIN;
}

static void drain(struct gofer_harness *h)
{
    struct channel_reply reply;
    while (channel_recv_reply(&h->channel, &reply, MSG_DONTWAIT) == 1) {
        for (size_t i = 0; i < reply.fds_len; i++)
            close(reply.fds[i]);
    }
}

static void test_random(unsigned rounds)
{
    unsigned sent = 0, dropped = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct gofer_harness h;
        char path[128];
        harness_start(&h, 1 + i % 2);
        harness_open(&h);
        uint64_t root = harness_attach(&h, 0).node;
        for (unsigned n = 0; n < 1000; n++) {
            if (!send_random(&h, root)) {
                dropped++;
                break;
            }
            sent++;
            if (n % 4 == 0) {
                usleep(rnd(30));
                drain(&h);
            }
        }
        drain(&h);
        CHECK_EQ(harness_stop(&h), SIGKILL);
        snprintf(path, sizeof(path), "%s/outside", h.dir);
        CHECK_EQ(rmdir(path), 0); /* still there, still empty */
        harness_clean(&h);
    }
    printf("%u random messages, %u of %u sessions dropped\n", sent, dropped, rounds);
}

/* Each of these must end the session at once. */
static void test_drops(void)
{
    struct {
        struct wire_request head;
        unsigned char payload[64];
    } m;
    for (unsigned i = 0; i < 9; i++) {
        struct gofer_harness h;
        size_t size = sizeof(m.head) + 16;
        harness_start(&h, 1);
        harness_open(&h);
        harness_attach(&h, 0);
        memset(&m, 0, sizeof(m));
        m.head = (struct wire_request){.tag = 3, .op = WIRE_OP_GETATTR, .inline_size = 16};
        switch (i) {
        case 0: /* payload too long for the operation */
            break;
        case 1: /* too short */
            m.head.inline_size = 4;
            size = sizeof(m.head) + 4;
            break;
        case 2:
            m.head.op = WIRE_OP_COUNT;
            break;
        case 3:
            m.head.op = 0;
            break;
        case 4:
            m.head.tag = WIRE_SLOTS;
            break;
        case 5:
            m.head.slot_size = WIRE_SLOT_SIZE + 1;
            m.head.inline_size = 0;
            size = sizeof(m.head);
            break;
        case 6:
            size = 5;
            break;
        case 7: /* a tree that is none */
            m.head = (struct wire_request){.op = WIRE_OP_ATTACH, .inline_size = 8};
            m.payload[0] = 3;
            size = sizeof(m.head) + 8;
            break;
        case 8: /* more release ids than the payload has */
            m.head.op = WIRE_OP_RELEASE;
            m.payload[0] = 7;
            break;
        }
        CHECK(send(h.channel.sock, &m, size, MSG_NOSIGNAL) > 0);
        struct channel_reply reply;
        CHECK_EQ(channel_recv_reply(&h.channel, &reply, 0), 0);
        CHECK_EQ(harness_stop(&h), SIGKILL);
        harness_clean(&h);
    }
}

static unsigned count_fds(pid_t pid)
{
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *d = opendir(path);
    CHECK(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Descriptors that come with requests must not stay in the server. */
static void test_sent_fds(void)
{
    struct gofer_harness h;
    harness_start(&h, 1);
    harness_open(&h);
    uint64_t root = harness_attach(&h, 0).node;
    unsigned before = count_fds(h.pid);
    struct {
        struct wire_request head;
        struct wire_node_only payload;
    } PACKED m = {{.op = WIRE_OP_GETATTR, .inline_size = 8}, {root}};
    int fds[8] = {0, 1, 2, 0, 1, 2, 0, 1};
    for (int i = 0; i < 100; i++) {
        struct channel_reply reply;
        CHECK(host_send_fds(h.channel.sock, &m, sizeof(m), fds, 8) > 0);
        CHECK_EQ(channel_recv_reply(&h.channel, &reply, 0), 1);
        CHECK_EQ(reply.error, 0);
    }
    CHECK_EQ(count_fds(h.pid), before);
    CHECK_EQ(harness_stop(&h), SIGKILL);
    harness_clean(&h);
}

/* The table of nodes is bounded, and giving nodes back makes room again. */
static void test_node_limit(void)
{
    struct gofer_harness h;
    struct wire_entry e;
    unsigned got = 0;
    harness_start(&h, 1);
    harness_open(&h);
    uint64_t root = harness_attach(&h, 0).node, last = 0;
    char path[128];
    snprintf(path, sizeof(path), "%s/root/d", h.dir);
    CHECK(mkdir(path, 0755) == 0);
    for (;;) {
        struct wire_walk_result r = harness_walk(&h, root, "d", 0, 0, &e, 1);
        if (r.end != WIRE_WALK_COMPLETE) {
            CHECK_EQ(r.error, -ENFILE);
            break;
        }
        last = e.node;
        CHECK(++got < 2000000);
    }
    struct {
        struct wire_release fixed;
        uint64_t id;
    } release = {{.count = 1}, last};
    CHECK_EQ(harness_call(&h, WIRE_OP_RELEASE, &release, sizeof(release), NULL), 0);
    CHECK_EQ(harness_walk(&h, root, "d", 0, 0, &e, 1).end, WIRE_WALK_COMPLETE);
    CHECK(e.node != last);
    printf("%u nodes at most\n", got);
    CHECK_EQ(harness_stop(&h), SIGKILL);
    harness_clean(&h);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 0);
    test_drops();
    test_sent_fds();
    test_node_limit();
    test_random(argc > 1 ? (unsigned)atoi(argv[1]) : 60);
    printf("ok\n");
    return 0;
}
