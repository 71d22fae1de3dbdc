/* SPDX-License-Identifier: Apache-2.0 */
/* Someone else swaps directories with symbolic links to the outside while the sentry walks and
 * makes files: nothing outside may ever be seen or changed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/base/host.h"
#include "tests/unit/gofer/gofer_harness.h"

enum { RACE_NS = 1500 * 1000 * 1000 };

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void make_dir(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    CHECK(mkdir(path, 0755) == 0);
}

static void swap_for_ever(const char *root)
{
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    /* Not to outlive a test that fails. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int d = openat(fd, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0 && d >= 0);
    for (;;) {
        renameat2(fd, "d", fd, "evil", RENAME_EXCHANGE);
        renameat2(d, "sub", fd, "evil2", RENAME_EXCHANGE);
        renameat2(fd, "f", fd, "evil3", RENAME_EXCHANGE);
    }
}

static void check_inside(struct gofer_harness *h, const struct stat *outside, unsigned n,
                         const struct wire_entry *e, unsigned count)
{
    char text[16] = "";
    for (unsigned i = 0; i < n && i < count; i++) {
        for (unsigned k = 0; k < 3; k++)
            CHECK(e[i].attr.ino != outside[k].st_ino);
    }
    if (h->fds_len) {
        CHECK(read(h->fds[0], text, 6) == 6);
        CHECK(strcmp(text, "INSIDE") == 0);
    }
}

static unsigned try_create(struct gofer_harness *h, uint64_t dir)
{
    struct wire_make make = {.dir = dir, .mode = 0600, .open_flags = O_RDWR};
    struct wire_unlink unlink = {.dir = dir};
    if (harness_call(h, WIRE_OP_CREATE, &make, sizeof(make), "created", NULL))
        return 0;
    CHECK_EQ(harness_call(h, WIRE_OP_UNLINK, &unlink, sizeof(unlink), "created", NULL), 0);
    return 1;
}

int main(void)
{
    struct gofer_harness h;
    char root[128], outside[128], path[256];
    struct stat st[3];
    static const char *const paths[] = {"d/secret", "d/sub/secret", "f", "d/sub", "d"};
    unsigned complete = 0, links = 0, created = 0;
    struct wire_entry e[4];
    signal(SIGPIPE, SIG_IGN);
    harness_start(&h, 1);
    snprintf(root, sizeof(root), "%s/root", h.dir);
    snprintf(outside, sizeof(outside), "%s/outside", h.dir);
    make_dir(root, "d");
    make_dir(root, "d/sub");
    make_dir(outside, "sub");
    write_file(root, "d/secret", "INSIDE");
    write_file(root, "d/sub/secret", "INSIDE");
    write_file(root, "f", "INSIDE");
    write_file(outside, "secret", "OUTSID");
    write_file(outside, "sub/secret", "OUTSID");
    snprintf(path, sizeof(path), "%s/evil", root);
    CHECK(symlink("../outside", path) == 0);
    snprintf(path, sizeof(path), "%s/evil2", root);
    CHECK(symlink(outside, path) == 0);
    snprintf(path, sizeof(path), "%s/evil3", root);
    CHECK(symlink("../outside/secret", path) == 0);
    CHECK(stat(outside, &st[0]) == 0);
    snprintf(path, sizeof(path), "%s/sub", outside);
    CHECK(stat(path, &st[1]) == 0);
    snprintf(path, sizeof(path), "%s/secret", outside);
    CHECK(stat(path, &st[2]) == 0);

    harness_open(&h);
    uint64_t node = harness_attach(&h, 0).node;
    pid_t swapper = fork();
    if (swapper == 0)
        swap_for_ever(root);
    uint64_t end = host_monotonic_ns() + RACE_NS;
    unsigned n = 0;
    for (; host_monotonic_ns() < end; n++) {
        const char *p = paths[n % ARRAY_SIZE(paths)];
        uint32_t flags = n & 8 ? WIRE_WALK_OPEN : n & 16 ? WIRE_WALK_NODES : 0;
        struct wire_walk_result r = harness_walk(&h, node, p, flags, O_RDONLY, e, 4);
        CHECK(r.count <= 3);
        check_inside(&h, st, r.count, e, 4);
        complete += r.end == WIRE_WALK_COMPLETE;
        links += r.end == WIRE_WALK_STOPPED;
        if (r.end == WIRE_WALK_COMPLETE && S_ISDIR(e[r.count - 1].attr.mode))
            created += try_create(&h, e[r.count - 1].node);
        for (unsigned i = 0; i < r.count; i++) {
            struct {
                struct wire_release fixed;
                uint64_t id;
            } release = {{.count = 1}, e[i].node};
            CHECK_EQ(harness_call(&h, WIRE_OP_RELEASE, &release, sizeof(release), NULL), 0);
        }
    }
    kill(swapper, SIGKILL);
    waitpid(swapper, NULL, 0);
    struct stat after;
    CHECK(stat(outside, &after) == 0 && after.st_mtim.tv_nsec == st[0].st_mtim.tv_nsec);
    printf("%u walks, %u complete, %u stopped at a link, %u files made\n", n, complete, links,
           created);
    CHECK(complete && links && created);
    CHECK_EQ(harness_stop(&h), SIGKILL);
    harness_clean(&h);
    printf("ok\n");
    return 0;
}
