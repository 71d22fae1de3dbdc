/* SPDX-License-Identifier: Apache-2.0 */
/* State directories: ids, locks, atomic states, leftovers. */
#include "runtime/statefile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/host.h"

static char root[64];

static void make_root(void)
{
    strcpy(root, "/tmp/test_statefile.XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void remove_root(void)
{
    cr_assert_eq(rmdir(root), 0);
}

TestSuite(statefile, .init = make_root, .fini = remove_root);

Test(statefile, ids)
{
    static const char *const good[] = {"a", "0", "A-b_c.d+e", "..a", "a,b"}, *const bad[] = {
        "", ".", "..", "a b", "a/b", "/", "a\n", "\xc3\xbc", "a:b"};
    struct errmsg e;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        cr_assert_eq(statefile_check_id(good[i], &e), 0, "%s", good[i]);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        cr_assert_eq(statefile_check_id(bad[i], &e), -EINVAL, "%s", bad[i]);
}

Test(statefile, round_trip)
{
    struct errmsg e = {""};
    int lock;
    int dir = statefile_new_dir(root, "one", &lock, &e);
    cr_assert_geq(dir, 0, "%s", e.text);
    struct statefile got;
    cr_assert_eq(statefile_read(dir, &got, &e), -ENOENT);
    const char *const dirs[] = {"cpu,cpuacct:/sys/fs/cgroup/cpu/x", "name=systemd:/y"};
    const struct oci_pair notes[] = {{"a", "b \"c\"\n"}, {"d", ""}};
    const struct statefile want = {
        .oci_version = "1.0.2",
        .bundle = "/b",
        .rootfs = "/b/r",
        .owner = "root",
        .annotations = {.v = notes, .len = 2},
        .status = OCISTATE_RUNNING,
        .created = {.tv_sec = 1700000000, .tv_nsec = 5},
        .creator = {1, 2},
        .gofer = {3, 4},
        .sentry = {5, UINT64_C(1) << 50},
        .cgroup_dirs = dirs,
        .cgroup_dirs_len = 2,
        .cgroup_namespace = true,
    };
    cr_assert_eq(statefile_write(dir, &want, &e), 0, "%s", e.text);
    cr_assert_eq(statefile_read(dir, &got, &e), 0, "%s", e.text);
    cr_assert_str_eq(got.bundle, "/b");
    cr_assert_str_eq(got.rootfs, "/b/r");
    cr_assert_str_eq(got.owner, "root");
    cr_assert_eq(got.status, OCISTATE_RUNNING);
    cr_assert(got.created.tv_sec == 1700000000 && got.created.tv_nsec == 5);
    cr_assert(got.sentry.pid == 5 && got.sentry.start == UINT64_C(1) << 50);
    cr_assert_eq(got.cgroup_dirs_len, 2);
    cr_assert_str_eq(got.cgroup_dirs[1], "name=systemd:/y");
    cr_assert_eq(got.annotations.len, 2);
    cr_assert_str_eq(got.annotations.v[0].value, "b \"c\"\n");
    cr_assert(got.cgroup_namespace && !got.terminal);
    statefile_free(&got);
    cr_assert_eq(statefile_remove(root, "one", dir, &e), 0, "%s", e.text);
    close(dir);
    close(lock);
}

Test(statefile, in_use_and_leftover)
{
    struct errmsg e = {""};
    int lock, other;
    int dir = statefile_new_dir(root, "x", &lock, &e);
    cr_assert_geq(dir, 0);
    cr_assert_eq(statefile_new_dir(root, "x", &other, &e), -EEXIST);
    cr_assert_str_eq(e.text, "container with given ID already exists");
    cr_assert_eq(statefile_lock(dir, false), -EWOULDBLOCK);
    /* Its maker dies before it has written a state. */
    close(dir);
    close(lock);
    dir = statefile_new_dir(root, "x", &lock, &e);
    cr_assert_geq(dir, 0, "%s", e.text);
    cr_assert_eq(statefile_remove(root, "x", dir, &e), 0);
    /* A directory that was removed under a waiter is not taken for the one that came after it. */
    cr_assert_eq(statefile_open_dir(root, "x", &e), -ENOENT);
    cr_assert_str_eq(e.text, "container does not exist");
    close(dir);
    close(lock);
}

Test(statefile, broken)
{
    static const char *const texts[] = {"", "{", "[]", "{}", "{\"ociVersion\": 1}"};
    struct errmsg e = {""};
    int lock;
    int dir = statefile_new_dir(root, "x", &lock, &e);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct statefile got;
        CLEANUP_CLOSE int fd = openat(dir, "state.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        cr_assert_eq(host_write_all(fd, texts[i], strlen(texts[i])), 0);
        cr_assert_eq(statefile_read(dir, &got, &e), -EINVAL, "%s", texts[i]);
    }
    cr_assert_eq(statefile_remove(root, "x", dir, &e), 0);
    close(dir);
    close(lock);
}
