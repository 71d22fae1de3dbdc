/* SPDX-License-Identifier: Apache-2.0 */
/* Every gofer operation, against a server in a process of its own with its seccomp list on. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "platform/base/compiler.h"
#include "tests/unit/gofer/gofer_harness.h"

static struct gofer_harness h;
static uint64_t root;

static int make(enum wire_op op, uint64_t dir, const char *name, uint32_t mode, uint32_t flags,
                struct wire_entry *ret)
{
    struct wire_make req = {
        .dir = dir, .mode = mode, .uid = 1000, .gid = 1001, .open_flags = O_RDWR, .flags = flags};
    if (op == WIRE_OP_MKDIR || op == WIRE_OP_MKNOD || op == WIRE_OP_SYMLINK)
        req.open_flags = 0;
    int err = op == WIRE_OP_SYMLINK
                  ? harness_call(&h, op, &req, sizeof(req), name, "../outside", NULL)
                  : harness_call(&h, op, &req, sizeof(req), name, NULL);
    if (err)
        return err;
    codec_get(&h.in, ret, sizeof(*ret));
    CHECK(codec_reader_done(&h.in));
    CHECK_EQ(ret->attr.uid, 1000);
    CHECK_EQ(ret->attr.gid, 1001);
    return 0;
}

static void test_make_and_walk(void)
{
    struct wire_entry e[8], f;
    CHECK_EQ(make(WIRE_OP_MKDIR, root, "a", 02751, 0, &e[0]), 0);
    CHECK_EQ(e[0].attr.mode, S_IFDIR | 02751);
    CHECK(e[0].node != 0);
    CHECK_EQ(make(WIRE_OP_MKDIR, root, "a", 0755, 0, &f), -EEXIST);
    CHECK_EQ(make(WIRE_OP_MKDIR, e[0].node, "b", 0700, 0, &e[1]), 0);
    CHECK_EQ(make(WIRE_OP_CREATE, e[1].node, "file", 06755, 0, &f), 0);
    CHECK_EQ(f.attr.mode, S_IFREG | 06755);
    CHECK_EQ(f.node, 0);
    CHECK_EQ(h.fds_len, 1);
    CHECK_EQ(write(h.fds[0], "hello", 5), 5);
    CHECK_EQ(make(WIRE_OP_CREATE, e[1].node, "file", 0644, 0, &f), -EEXIST);
    CHECK_EQ(make(WIRE_OP_SYMLINK, e[1].node, "link", 0777, 0, &f), 0);
    CHECK_EQ(make(WIRE_OP_MKNOD, e[1].node, "fifo", S_IFIFO | 0640, WIRE_MAKE_NODE, &f), 0);
    CHECK_EQ(f.attr.mode, S_IFIFO | 0640);
    CHECK(f.node != 0);
    CHECK_EQ(make(WIRE_OP_MKNOD, e[1].node, "sock", S_IFSOCK | 0640, 0, &f), 0);
    CHECK_EQ(make(WIRE_OP_MKNOD, e[1].node, "whiteout", S_IFCHR, 0, &f), 0);
    CHECK_EQ(make(WIRE_OP_MKNOD, e[1].node, "disk", S_IFBLK | 0600, 0, &f), -EPERM);
    CHECK_EQ(make(WIRE_OP_MKNOD, e[1].node, "dir", S_IFDIR | 0600, 0, &f), -EINVAL);

    struct wire_walk_result r = harness_walk(&h, root, "a/b/file", 0, 0, e, 8);
    CHECK(r.end == WIRE_WALK_COMPLETE && r.count == 3);
    CHECK(e[0].node && e[1].node && !e[2].node);
    CHECK_EQ(e[2].attr.size, 5);
    r = harness_walk(&h, root, "a/b/file/x", WIRE_WALK_NODES, 0, e, 8);
    CHECK(r.end == WIRE_WALK_STOPPED && r.count == 3 && e[2].node);
    r = harness_walk(&h, root, "a/no/file", 0, 0, e, 8);
    CHECK(r.end == WIRE_WALK_MISSING && r.count == 1);
    r = harness_walk(&h, root, "nothing", 0, 0, e, 8);
    CHECK(r.end == WIRE_WALK_MISSING && r.count == 0);
    r = harness_walk(&h, root, "a/b/link/x", 0, 0, e, 8);
    CHECK(r.end == WIRE_WALK_STOPPED && r.count == 3 && S_ISLNK(e[2].attr.mode));
    struct codec_str s = codec_get_str(&h.in, WIRE_PATH_MAX);
    CHECK(s.size == 10 && memcmp(s.data, "../outside", 10) == 0);

    char text[8] = "";
    r = harness_walk(&h, root, "a/b/file", WIRE_WALK_OPEN, O_RDONLY, e, 8);
    CHECK(r.end == WIRE_WALK_COMPLETE && r.open_error == 0 && h.fds_len == 1);
    CHECK_EQ(read(h.fds[0], text, 8), 5);
    CHECK(write(h.fds[0], "x", 1) == -1);
    CHECK_EQ(fcntl(h.fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
    r = harness_walk(&h, root, "a/b/fifo", WIRE_WALK_OPEN, O_RDONLY, e, 8);
    CHECK(r.end == WIRE_WALK_COMPLETE && r.open_error == -EINVAL && h.fds_len == 0);
}

static void test_bad_names(void)
{
    static const char *const bad[] = {"",   ".",    "..",    "a/..", "../x",           "/a",
                                      "a/", "a//b", "a/./b", "/",    "a/../../outside"};
    struct wire_entry e;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct wire_unlink req = {.dir = root};
        struct wire_rename rename = {.old_dir = root, .new_dir = root};
        CHECK_EQ(harness_walk(&h, root, bad[i], 0, 0, &e, 1).error, -EINVAL);
        CHECK_EQ(make(WIRE_OP_CREATE, root, bad[i], 0644, 0, &e), -EINVAL);
        CHECK_EQ(harness_call(&h, WIRE_OP_UNLINK, &req, sizeof(req), bad[i], NULL), -EINVAL);
        CHECK_EQ(harness_call(&h, WIRE_OP_RENAME, &rename, sizeof(rename), "a", bad[i], NULL),
                 -EINVAL);
    }
    char longer[300];
    memset(longer, 'n', sizeof(longer) - 1);
    longer[299] = '\0';
    CHECK_EQ(make(WIRE_OP_MKDIR, root, longer, 0755, 0, &e), -EINVAL);
    longer[255] = '\0';
    CHECK_EQ(make(WIRE_OP_MKDIR, root, longer, 0755, 0, &e), 0);
}

static int set(uint64_t node, struct wire_setattr *req, struct wire_attr *ret)
{
    req->node = node;
    int err = harness_call(&h, WIRE_OP_SETATTR, req, sizeof(*req), NULL);
    if (err == 0)
        codec_get(&h.in, ret, sizeof(*ret));
    return err;
}

static void test_attributes(void)
{
    struct wire_entry e[3];
    struct wire_attr attr;
    harness_walk(&h, root, "a/b/file", WIRE_WALK_NODES, 0, e, 3);
    struct wire_setattr req = {.mask = WIRE_SET_SIZE | WIRE_SET_MODE | WIRE_SET_UID |
                                       WIRE_SET_MTIME | WIRE_SET_ATIME_NOW,
                               .size = 3,
                               .mode = 04711,
                               .uid = 7,
                               .mtime_sec = 1000,
                               .mtime_nsec = 5};
    CHECK_EQ(set(e[2].node, &req, &attr), 0);
    CHECK(attr.size == 3 && attr.mode == (S_IFREG | 04711) && attr.uid == 7 && attr.gid == 1001);
    CHECK(attr.mtime_sec == 1000 && attr.mtime_nsec == 5 && attr.atime_sec > 1000000);
    CHECK(attr.flags & WIRE_ATTR_BTIME);
    struct wire_node_only only = {.node = e[2].node};
    CHECK_EQ(harness_call(&h, WIRE_OP_GETATTR, &only, sizeof(only), NULL), 0);
    codec_get(&h.in, &attr, sizeof(attr));
    CHECK(codec_reader_done(&h.in) && attr.size == 3);
    req = (struct wire_setattr){.mask = WIRE_SET_SIZE};
    CHECK_EQ(set(e[1].node, &req, &attr), -EISDIR);
    /* A link's own owner and times change, its target's do not. */
    harness_walk(&h, root, "a/b/link", WIRE_WALK_NODES, 0, e, 3);
    req = (struct wire_setattr){.mask = WIRE_SET_UID | WIRE_SET_MTIME, .uid = 9, .mtime_sec = 77};
    CHECK_EQ(set(e[2].node, &req, &attr), 0);
    CHECK(S_ISLNK(attr.mode) && attr.uid == 9 && attr.mtime_sec == 77);
    char path[128];
    struct stat st;
    snprintf(path, sizeof(path), "%s/outside", h.dir);
    CHECK(stat(path, &st) == 0 && st.st_uid == 0 && st.st_mtime != 77);
    req = (struct wire_setattr){.mask = WIRE_SET_MODE, .mode = 0};
    CHECK_EQ(set(e[2].node, &req, &attr), -EOPNOTSUPP);
    only.node = e[2].node;
    CHECK_EQ(harness_call(&h, WIRE_OP_READLINK, &only, sizeof(only), NULL), 0);
    struct codec_str s = codec_get_str(&h.in, WIRE_PATH_MAX);
    CHECK(codec_reader_done(&h.in) && s.size == 10 && memcmp(s.data, "../outside", 10) == 0);
    only.node = root;
    CHECK_EQ(harness_call(&h, WIRE_OP_READLINK, &only, sizeof(only), NULL), -EINVAL);
    CHECK_EQ(harness_call(&h, WIRE_OP_FSYNC, &only, sizeof(only), NULL), 0);
    CHECK_EQ(harness_call(&h, WIRE_OP_STATFS, &only, sizeof(only), NULL), 0);
    struct wire_statfs st2;
    codec_get(&h.in, &st2, sizeof(st2));
    CHECK(codec_reader_done(&h.in) && st2.bsize > 0 && st2.namelen >= 255);
}

static void test_xattr(void)
{
    struct wire_entry e[3];
    harness_walk(&h, root, "a/b/file", WIRE_WALK_NODES, 0, e, 3);
    struct {
        struct wire_xattr fixed;
        uint16_t name_size;
        char name[8];
        char value[5];
    } PACKED req = {{.node = e[2].node, .value_size = 5}, 8, "user.key", "value"};
    int err = harness_call(&h, WIRE_OP_SETXATTR, &req, sizeof(req), NULL);
    if (err == -EOPNOTSUPP)
        return;
    CHECK_EQ(err, 0);
    req.fixed.flags = XATTR_CREATE;
    CHECK_EQ(harness_call(&h, WIRE_OP_SETXATTR, &req, sizeof(req), NULL), -EEXIST);
    struct wire_xattr get = {.node = e[2].node};
    CHECK_EQ(harness_call(&h, WIRE_OP_GETXATTR, &get, sizeof(get), "user.key", NULL), 0);
    CHECK(h.in.size == 5 && memcmp(h.reply, "value", 5) == 0);
    struct wire_node_only only = {.node = e[2].node};
    CHECK_EQ(harness_call(&h, WIRE_OP_LISTXATTR, &only, sizeof(only), NULL), 0);
    CHECK(h.in.size == 9 && memcmp(h.reply, "user.key", 9) == 0);
    CHECK_EQ(harness_call(&h, WIRE_OP_REMOVEXATTR, &get, sizeof(get), "user.key", NULL), 0);
    CHECK_EQ(harness_call(&h, WIRE_OP_GETXATTR, &get, sizeof(get), "user.key", NULL), -ENODATA);
}

static int unlink_at(uint64_t dir, const char *name, uint32_t flags)
{
    struct wire_unlink req = {.dir = dir, .flags = flags};
    return harness_call(&h, WIRE_OP_UNLINK, &req, sizeof(req), name, NULL);
}

static int rename_at(uint64_t dir, const char *from, const char *to, uint32_t flags)
{
    struct wire_rename req = {.old_dir = dir, .new_dir = dir, .flags = flags};
    return harness_call(&h, WIRE_OP_RENAME, &req, sizeof(req), from, to, NULL);
}

static void test_link_rename_unlink(void)
{
    struct wire_entry e[3], f;
    struct wire_attr attr;
    harness_walk(&h, root, "a/b/file", WIRE_WALK_NODES, 0, e, 3);
    uint64_t dir = e[1].node, file = e[2].node;
    struct wire_link link = {.node = file, .dir = dir};
    CHECK_EQ(harness_call(&h, WIRE_OP_LINK, &link, sizeof(link), "hard", NULL), 0);
    codec_get(&h.in, &attr, sizeof(attr));
    CHECK_EQ(attr.nlink, 2);
    harness_walk(&h, root, "a/b/link", WIRE_WALK_NODES, 0, e, 3);
    link.node = e[2].node;
    CHECK_EQ(harness_call(&h, WIRE_OP_LINK, &link, sizeof(link), "hardlink", NULL), 0);
    codec_get(&h.in, &attr, sizeof(attr));
    CHECK(S_ISLNK(attr.mode));
    CHECK_EQ(rename_at(dir, "hard", "file", RENAME_NOREPLACE), -EEXIST);
    CHECK_EQ(rename_at(dir, "fifo", "link", RENAME_EXCHANGE), 0);
    CHECK_EQ(rename_at(dir, "sock", "moved", 0), 0);
    CHECK_EQ(rename_at(dir, "absent", "moved", 0), -ENOENT);
    CHECK_EQ(unlink_at(dir, "link", 0), 0);
    CHECK_EQ(unlink_at(dir, "file", AT_REMOVEDIR), -ENOTDIR);
    CHECK_EQ(unlink_at(root, "a", AT_REMOVEDIR), -ENOTEMPTY);
    CHECK_EQ(unlink_at(root, "a", 0), -EISDIR);
    /* The inode lives on through its node when its names are gone. */
    CHECK_EQ(unlink_at(dir, "file", 0), 0);
    CHECK_EQ(unlink_at(dir, "hard", 0), 0);
    struct wire_open open = {.node = file, .flags = O_RDWR};
    CHECK_EQ(harness_call(&h, WIRE_OP_OPEN, &open, sizeof(open), NULL), 0);
    CHECK_EQ(h.fds_len, 1);
    char text[4] = "";
    CHECK(read(h.fds[0], text, 3) == 3 && strcmp(text, "hel") == 0);
    struct wire_setattr req = {.mask = WIRE_SET_SIZE, .size = 1};
    CHECK_EQ(set(file, &req, &attr), 0);
    CHECK(attr.size == 1 && attr.nlink == 0);

    CHECK_EQ(make(WIRE_OP_TMPFILE, dir, "", 0600, WIRE_MAKE_NODE, &f), 0);
    CHECK(f.node != 0 && h.fds_len == 1 && write(h.fds[0], "tmp", 3) == 3);
    link.node = f.node;
    CHECK_EQ(harness_call(&h, WIRE_OP_LINK, &link, sizeof(link), "named", NULL), 0);
    codec_get(&h.in, &attr, sizeof(attr));
    CHECK(attr.nlink == 1 && attr.size == 3);

    struct {
        struct wire_release fixed;
        uint64_t ids[3];
    } release = {{.count = 3}, {file, f.node, 0xdeadbeefcafe}};
    CHECK_EQ(harness_call(&h, WIRE_OP_RELEASE, &release, sizeof(release), NULL), 0);
    CHECK_EQ(harness_call(&h, WIRE_OP_OPEN, &open, sizeof(open), NULL), -EBADF);
}

static void test_read_only_and_single(void)
{
    struct wire_entry ro = harness_attach(&h, 1), single = harness_attach(&h, 2), e[2], f;
    struct wire_attr attr;
    harness_walk(&h, ro.node, "a/b", WIRE_WALK_NODES, 0, e, 2);
    CHECK_EQ(make(WIRE_OP_CREATE, e[1].node, "new", 0644, 0, &f), -EROFS);
    CHECK_EQ(make(WIRE_OP_MKDIR, e[1].node, "new", 0644, 0, &f), -EROFS);
    CHECK_EQ(make(WIRE_OP_TMPFILE, e[1].node, "", 0644, 0, &f), -EROFS);
    CHECK_EQ(unlink_at(e[1].node, "moved", 0), -EROFS);
    CHECK_EQ(rename_at(e[1].node, "moved", "x", 0), -EROFS);
    struct wire_setattr req = {.mask = WIRE_SET_MODE, .mode = 0777};
    CHECK_EQ(set(e[1].node, &req, &attr), -EROFS);
    struct wire_link link = {.node = e[1].node, .dir = root};
    CHECK_EQ(harness_call(&h, WIRE_OP_LINK, &link, sizeof(link), "cross", NULL), -EXDEV);
    struct wire_walk_result r = harness_walk(&h, e[1].node, "named", WIRE_WALK_OPEN, O_RDWR, &f, 1);
    CHECK(r.end == WIRE_WALK_COMPLETE && r.open_error == -EROFS && h.fds_len == 0);
    r = harness_walk(&h, e[1].node, "named", WIRE_WALK_OPEN, O_RDONLY, &f, 1);
    CHECK(r.open_error == 0 && h.fds_len == 1);

    CHECK(S_ISREG(single.attr.mode));
    CHECK_EQ(harness_walk(&h, single.node, "x", 0, 0, &f, 1).error, -ENOTDIR);
    struct wire_open open = {.node = single.node, .flags = O_RDONLY};
    CHECK_EQ(harness_call(&h, WIRE_OP_OPEN, &open, sizeof(open), NULL), 0);
    CHECK_EQ(h.fds_len, 1);
    open.node = root;
    CHECK_EQ(harness_call(&h, WIRE_OP_OPEN, &open, sizeof(open), NULL), -EINVAL);
}

static int open_many(uint64_t dir, uint32_t flags, uint32_t count, const char *a, const char *b, const char *c)
{
    struct wire_open_many req = {.dir = dir, .count = count, .flags = flags};
    return harness_call(&h, WIRE_OP_OPEN_MANY, &req, sizeof(req), a, b, c, NULL);
}

static void test_open_many(void)
{
    struct wire_entry ro = harness_attach(&h, 1), e[3];
    struct wire_opened o[3];
    char text[4] = "";
    harness_walk(&h, root, "a/b", WIRE_WALK_NODES, 0, e, 2);
    uint64_t dir = e[1].node;
    CHECK_EQ(open_many(dir, WIRE_OPEN_MANY_NODES, 3, "named", "absent", "sock"), 0);
    codec_get(&h.in, o, sizeof(o));
    CHECK(codec_reader_done(&h.in) && h.fds_len == 1);
    CHECK(o[0].error == 0 && o[0].entry.node != 0 && S_ISREG(o[0].entry.attr.mode) && o[0].entry.attr.size == 3);
    CHECK(read(h.fds[0], text, 3) == 3 && strcmp(text, "tmp") == 0);
    CHECK((fcntl(h.fds[0], F_GETFL) & O_ACCMODE) == O_RDONLY);
    CHECK_EQ(o[1].error, -ENOENT);
    CHECK_EQ(o[2].error, -ENOENT);
    /* Links are not followed, nothing but regular files is opened. */
    CHECK_EQ(open_many(dir, 0, 3, "fifo", "hardlink", "named"), 0);
    codec_get(&h.in, o, sizeof(o));
    CHECK(o[0].error == -EINVAL && o[1].error == -EINVAL && o[2].error == 0 && o[2].entry.node == 0);
    CHECK_EQ(h.fds_len, 1);
    CHECK_EQ(o[0].entry.node | o[0].entry.attr.ino, 0);
    /* For reading it works on a read-only tree as well. */
    harness_walk(&h, ro.node, "a/b", WIRE_WALK_NODES, 0, e, 2);
    CHECK_EQ(open_many(e[1].node, 0, 1, "named", NULL, NULL), 0);
    CHECK_EQ(h.fds_len, 1);
    harness_walk(&h, dir, "named", WIRE_WALK_NODES, 0, e, 1);
    CHECK_EQ(open_many(e[0].node, 0, 1, "x", NULL, NULL), -ENOTDIR);
    CHECK_EQ(open_many(0xdeadbeefcafe, 0, 1, "x", NULL, NULL), -EBADF);
}

/* Lists a directory of many entries in small pieces. Return: how many names it has. */
static unsigned list(uint64_t dir, uint32_t flags, uint32_t max_size, unsigned *ret_calls)
{
    static unsigned char seen[4096];
    uint64_t cookie = 0;
    unsigned total = 0, calls = 0;
    struct wire_readdir_result result = {0};
    memset(seen, 0, sizeof(seen));
    while (!result.end) {
        struct wire_readdir req = {
            .node = dir, .cookie = cookie, .flags = flags, .max_size = max_size};
        CHECK_EQ(harness_call(&h, WIRE_OP_READDIR, &req, sizeof(req), NULL), 0);
        codec_get(&h.in, &result, sizeof(result));
        CHECK(result.count || result.end);
        for (uint32_t i = 0; i < result.count; i++) {
            struct wire_dirent d;
            struct wire_attr attr;
            codec_get(&h.in, &d, sizeof(d));
            struct codec_str name = codec_get_str(&h.in, WIRE_NAME_MAX);
            CHECK(name.data && name.size > 1 && name.data[0] == 'f');
            unsigned number = (unsigned)strtoul(name.data + 1, NULL, 10);
            CHECK(number < sizeof(seen) && !seen[number]);
            seen[number] = 1;
            cookie = d.cookie;
            total++;
            CHECK_EQ(!!(d.flags & WIRE_DIRENT_ATTR), !!(flags & WIRE_READDIR_ATTRS));
            if (d.flags & WIRE_DIRENT_ATTR) {
                codec_get(&h.in, &attr, sizeof(attr));
                CHECK(attr.ino == d.ino);
                CHECK_EQ(S_ISLNK(attr.mode), !!(d.flags & WIRE_DIRENT_TARGET));
            }
            if (d.flags & WIRE_DIRENT_TARGET) {
                struct codec_str target = codec_get_str(&h.in, WIRE_PATH_MAX);
                CHECK(target.size == 7 && memcmp(target.data, "target/", 7) == 0);
            }
        }
        CHECK(codec_reader_done(&h.in));
        calls++;
    }
    *ret_calls = calls;
    return total;
}

static void test_readdir(void)
{
    char path[160];
    struct wire_entry e;
    unsigned calls, tried[3];
    snprintf(path, sizeof(path), "%s/root/many", h.dir);
    CHECK(mkdir(path, 0755) == 0);
    for (int i = 0; i < 2000; i++) {
        snprintf(path, sizeof(path), "%s/root/many/f%d.x", h.dir, i);
        if (i % 10 == 0)
            CHECK(symlink("target/", path) == 0);
        else
            close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    }
    harness_walk(&h, root, "many", 0, 0, &e, 1);
    CHECK_EQ(list(e.node, 0, WIRE_SLOT_SIZE, &tried[0]), 2000);
    CHECK_EQ(list(e.node, WIRE_READDIR_ATTRS, WIRE_SLOT_SIZE, &tried[1]), 2000);
    CHECK_EQ(list(e.node, WIRE_READDIR_ATTRS, 0, &tried[2]), 2000);
    printf("2000 entries: %u calls, with attributes %u, small replies %u\n", tried[0], tried[1],
           tried[2]);
    struct wire_readdir req = {.node = e.node, .cookie = UINT64_MAX, .max_size = 4096};
    CHECK_EQ(harness_call(&h, WIRE_OP_READDIR, &req, sizeof(req), NULL), -EINVAL);
    req = (struct wire_readdir){.node = e.node, .cookie = 0, .max_size = 4096};
    /* More directories under way than readers are kept. */
    for (int i = 0; i < 100; i++) {
        struct wire_entry again;
        harness_walk(&h, root, "many", 0, 0, &again, 1);
        req.node = again.node;
        CHECK_EQ(harness_call(&h, WIRE_OP_READDIR, &req, sizeof(req), NULL), 0);
    }
    CHECK_EQ(list(e.node, 0, 0, &calls), 2000);
}

static void test_exit(int wait_status)
{
    struct gofer_harness x;
    struct wire_exit req = {.wait_status = wait_status};
    harness_start(&x, 2);
    harness_open(&x);
    harness_attach(&x, 0);
    CHECK_EQ(harness_call(&x, WIRE_OP_EXIT, &req, sizeof(req), NULL), 1);
    CHECK_EQ(harness_stop(&x), wait_status);
    harness_clean(&x);
}

/* The sentry sends the status and hangs up: another worker must not take the second for the first. */
static void test_exit_and_hang_up(void)
{
    struct wire_exit req = {.wait_status = 42 << 8};
    for (unsigned i = 0; i < 50; i++) {
        struct gofer_harness x;
        harness_start(&x, 3);
        harness_open(&x);
        harness_attach(&x, 0);
        CHECK_EQ(channel_send_request(&x.channel, 1 << 8 | 1, WIRE_OP_EXIT, &req, sizeof(req)), 0);
        CHECK_EQ(harness_stop(&x), 42 << 8);
        harness_clean(&x);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (unsigned workers = 1; workers <= 3; workers += 2) {
        harness_start(&h, workers);
        harness_open(&h);
        root = harness_attach(&h, 0).node;
        test_make_and_walk();
        test_bad_names();
        test_attributes();
        test_xattr();
        test_link_rename_unlink();
        test_read_only_and_single();
        test_open_many();
        test_readdir();
        /* The sentry vanishes. */
        CHECK_EQ(harness_stop(&h), SIGKILL);
        harness_clean(&h);
    }
    test_exit(0);
    test_exit(42 << 8);
    test_exit(SIGSEGV);
    test_exit(SIGKILL);
    test_exit(SIGTERM);
    test_exit_and_hang_up();
    printf("ok\n");
    return 0;
}
