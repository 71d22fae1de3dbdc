/* SPDX-License-Identifier: Apache-2.0 */
/* Where a container's cgroup lies, for every form of cgroupsPath. */
#include "runtime/cgroup.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Plans and returns whether every directory ends in suffix. */
static void check(const char *path, bool systemd, const char *suffix)
{
    struct cgroup cg;
    struct errmsg e = {""};
    int r = cgroup_plan(path, "the-id", systemd, &cg, &e);
    if (r == -ENOENT || access("/sys/fs/cgroup", F_OK) < 0)
        cr_skip_test("no cgroups here");
    cr_assert_eq(r, 0, "%s: %s", path ? path : "(none)", e.text);
    cr_assert_gt(cg.len, 0);
    for (unsigned i = 0; i < cg.len; i++) {
        size_t len = strlen(cg.dirs[i].path), want = strlen(suffix);
        cr_assert(len > want && strcmp(cg.dirs[i].path + len - want, suffix) == 0, "%s: %s", path ? path : "(none)",
                  cg.dirs[i].path);
        cr_assert_eq(strncmp(cg.dirs[i].path, "/sys/fs/cgroup", 14), 0, "%s", cg.dirs[i].path);
        cr_assert_null(strstr(cg.dirs[i].path, ".."), "%s", cg.dirs[i].path);
    }
    cgroup_free(&cg);
}

Test(cgroup, paths)
{
    check(NULL, false, "/the-id");
    check("", false, "/the-id");
    check("/a/b", false, "/a/b");
    check("//a/./b/", false, "/a/b");
    check("/../../a", false, "/a");
    check("x/y", false, "/x/y");
}

Test(cgroup, systemd_units)
{
    check("system.slice:pre:name", true, "/system.slice/pre-name.scope");
    check("a-b-c.slice:cri:x", true, "/a.slice/a-b.slice/a-b-c.slice/cri-x.scope");
    check(":cri:x", true, "/system.slice/cri-x.scope");
    check(NULL, true, "/system.slice/cloister-the-id.scope");
    check("-.slice:p:n", true, "/p-n.scope");
}

Test(cgroup, refused)
{
    static const char *const bad[] = {"/", "//", "/a/.."};
    struct cgroup cg;
    struct errmsg e = {""};
    if (access("/sys/fs/cgroup", F_OK) < 0)
        cr_skip_test("no cgroups here");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        cr_assert_lt(cgroup_plan(bad[i], "id", false, &cg, &e), 0, "%s", bad[i]);
    cr_assert_eq(cgroup_plan("no-colons", "id", true, &cg, &e), -EINVAL);
    cr_assert_eq(cgroup_plan("a:b:c", "id", true, &cg, &e), -EINVAL);
}

Test(cgroup, encoded)
{
    static const char *const texts[] = {"cpu,cpuacct:/sys/x", ":/sys/y"}, *const bad[] = {"cpu"}, *const bad2[] = {"cpu:x"};
    struct cgroup cg;
    cr_assert_eq(cgroup_decode(texts, 2, &cg), 0);
    for (unsigned i = 0; i < 2; i++) {
        CLEANUP_BUF struct buf b = {.data = NULL};
        cgroup_encode(&cg, i, &b);
        cr_assert_str_eq(b.data, texts[i]);
    }
    cr_assert_str_eq(cgroup_dir_peek(&cg, "cpuacct"), "/sys/x");
    cr_assert_null(cgroup_dir_peek(&cg, "cpus"));
    cgroup_free(&cg);
    cr_assert_eq(cgroup_decode(bad, 1, &cg), -EINVAL);
    cr_assert_eq(cgroup_decode(bad2, 1, &cg), -EINVAL);
}
