/* SPDX-License-Identifier: Apache-2.0 */
/* Test server process and synchronous client. */
#include "tests/unit/gofer/gofer_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gofer/server/srv_main.h"
#include "platform/base/host.h"
#include "platform/base/log.h"

#ifdef __SANITIZE_ADDRESS__
enum { HARNESS_NO_FILTER = 1 };
#else
enum { HARNESS_NO_FILTER = 0 };
#endif

static NORETURN void harness_serve(const struct gofer_harness *h, int sock, unsigned workers)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/root", h->dir);
    int root = open(path, O_PATH | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/single", h->dir);
    int single = open(path, O_PATH | O_CLOEXEC);
    int self = (int)syscall(SYS_open_tree, AT_FDCWD, "/proc/self/fd", OPEN_TREE_CLONE | O_CLOEXEC);
    if (self < 0)
        self = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(root >= 0 && single >= 0 && self >= 0);
    CHECK(chdir("/proc/self/fdinfo") == 0);
    struct gofer_tree trees[] = {{root, false}, {root, true}, {single, false}};
    struct gofer_server_config config = {
        .sock = sock,
        .shm = h->shm,
        .proc_self_fd = self,
        .trees = trees,
        .trees_len = ARRAY_SIZE(trees),
        .workers = workers,
        .filter_default = HOSTFILTER_REPORT,
        .no_filter = HARNESS_NO_FILTER,
    };
    close(h->sock);
    srv_main(&config, -1);
}

void harness_start(struct gofer_harness *h, unsigned workers)
{
    int socks[2];
    char path[128];
    memset(h, 0, sizeof(*h));
    const char *tmp = getenv("TMPDIR");
    snprintf(h->dir, sizeof(h->dir), "%s/gofer-test-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(h->dir));
    snprintf(path, sizeof(path), "%s/root", h->dir);
    CHECK(mkdir(path, 0755) == 0);
    snprintf(path, sizeof(path), "%s/outside", h->dir);
    CHECK(mkdir(path, 0755) == 0);
    snprintf(path, sizeof(path), "%s/single", h->dir);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0640);
    CHECK(fd >= 0 && write(fd, "single", 6) == 6);
    close(fd);
    CHECK(channel_socketpair(socks) == 0);
    h->sock = socks[0];
    h->shm = channel_shm_new();
    CHECK(h->shm >= 0);
    fflush(stdout);
    fflush(stderr);
    h->pid = fork();
    CHECK(h->pid >= 0);
    if (h->pid == 0)
        harness_serve(h, socks[1], workers);
    close(socks[1]);
}

void harness_open(struct gofer_harness *h)
{
    CHECK_EQ(channel_open(&h->channel, h->sock, h->shm), 0);
    close(h->shm);
}

static void harness_drop_fds(struct gofer_harness *h)
{
    for (size_t i = 0; i < h->fds_len; i++)
        close(h->fds[i]);
    h->fds_len = 0;
}

int harness_call(struct gofer_harness *h, enum wire_op op, const void *fixed, size_t size, ...)
{
    static unsigned char buffer[WIRE_SLOT_SIZE];
    static struct channel_reply reply;
    struct codec_writer w;
    const char *s;
    va_list ap;
    harness_drop_fds(h);
    codec_writer_init(&w, buffer, sizeof(buffer));
    codec_put(&w, fixed, size);
    va_start(ap, size);
    while ((s = va_arg(ap, const char *)))
        codec_put_str(&w, s, strlen(s));
    va_end(ap);
    CHECK(!w.bad);
    h->sequence++;
    uint32_t tag = h->sequence << 8 | h->sequence % WIRE_SLOTS;
    int err = channel_send_request(&h->channel, tag, op, buffer, w.size);
    if (err == -EPIPE || err == -ECONNRESET)
        return 1;
    CHECK_EQ(err, 0);
    err = channel_recv_reply(&h->channel, &reply, 0);
    if (err == 0)
        return 1;
    CHECK_EQ(err, 1);
    CHECK_EQ(reply.tag, tag);
    memcpy(h->reply, reply.payload, reply.size);
    memcpy(h->fds, reply.fds, sizeof(h->fds));
    h->fds_len = reply.fds_len;
    codec_reader_init(&h->in, h->reply, reply.size);
    return reply.error;
}

int harness_stop(struct gofer_harness *h)
{
    int status = -1;
    harness_drop_fds(h);
    channel_close(&h->channel);
    CHECK_EQ(waitpid(h->pid, &status, 0), h->pid);
    return status;
}

void harness_clean(struct gofer_harness *h)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", h->dir);
    CHECK(system(command) == 0);
}

struct wire_entry harness_attach(struct gofer_harness *h, uint32_t tree)
{
    struct wire_attach req = {.tree = tree};
    struct wire_entry entry;
    uint32_t flags;
    CHECK_EQ(harness_call(h, WIRE_OP_ATTACH, &req, sizeof(req), NULL), 0);
    codec_get(&h->in, &entry, sizeof(entry));
    codec_get(&h->in, &flags, sizeof(flags));
    CHECK(codec_reader_done(&h->in));
    CHECK_EQ(flags & ~(uint32_t)WIRE_TREE_LOCAL, tree == 1 ? WIRE_TREE_READ_ONLY : 0);
    return entry;
}

struct wire_walk_result harness_walk(struct gofer_harness *h, uint64_t node, const char *path,
                                     uint32_t flags, uint32_t open_flags, struct wire_entry *ret,
                                     size_t len)
{
    struct wire_walk req = {.node = node, .flags = flags, .open_flags = open_flags};
    struct wire_walk_result result = {0};
    int err = harness_call(h, WIRE_OP_WALK, &req, sizeof(req), path, NULL);
    if (err) {
        result.end = WIRE_WALK_FAILED;
        result.error = err;
        return result;
    }
    codec_get(&h->in, &result, sizeof(result));
    for (uint32_t i = 0; i < result.count; i++) {
        struct wire_entry entry;
        codec_get(&h->in, &entry, sizeof(entry));
        if (i < len)
            ret[i] = entry;
    }
    CHECK(!h->in.bad);
    return result;
}
