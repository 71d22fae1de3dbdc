/* SPDX-License-Identifier: Apache-2.0 */
/* Mount options: flags, order, propagation, recursive attributes and what is left as data. */
#include "oci/mount_options.h"

#include <criterion/criterion.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>

#define PARSE(o, ...)                           \
    const char *const words_[] = {__VA_ARGS__}; \
    struct arena arena_ = {0};                  \
    struct mount_options o;                     \
    cr_assert_eq(mount_options_parse(&arena_, words_, ARRAY_SIZE(words_), &o), 0)

Test(mount_options, flags_and_data)
{
    PARSE(o, "nosuid", "noexec", "nodev", "mode=1777", "", "size=65536k", "sync", "strictatime");
    cr_assert_eq(o.set, MS_NOSUID | MS_NOEXEC | MS_NODEV | MS_SYNCHRONOUS | MS_STRICTATIME);
    cr_assert_eq(o.cleared, 0);
    cr_assert_str_eq(o.data, "mode=1777,size=65536k");
    cr_assert_eq(o.propagation_len, 0);
    arena_free(&arena_);
}

Test(mount_options, later_wins)
{
    PARSE(o, "ro", "rw", "suid", "nosuid", "async", "defaults", "exec");
    cr_assert_eq(o.set, MS_NOSUID);
    cr_assert_eq(o.cleared, MS_RDONLY | MS_SYNCHRONOUS | MS_NOEXEC);
    cr_assert_str_eq(o.data, "");
    arena_free(&arena_);
}

Test(mount_options, bind_and_propagation)
{
    PARSE(o, "rbind", "rprivate", "shared", "runbindable", "rslave");
    cr_assert_eq(o.set, MS_BIND | MS_REC);
    cr_assert_eq(o.propagation_len, 4);
    cr_assert_eq(o.propagation[0], MS_PRIVATE | MS_REC);
    cr_assert_eq(o.propagation[1], MS_SHARED);
    cr_assert_eq(o.propagation[2], MS_UNBINDABLE | MS_REC);
    cr_assert_eq(o.propagation[3], MS_SLAVE | MS_REC);
    arena_free(&arena_);
}

Test(mount_options, recursive_attributes)
{
    PARSE(o, "rro", "rnosuid", "rsuid", "rnodev", "rexec");
    cr_assert_eq(o.rec_set, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV);
    cr_assert_eq(o.rec_cleared, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    cr_assert_eq(o.set | o.cleared, 0);
    arena_free(&arena_);
}

Test(mount_options, access_time_is_one_field)
{
    PARSE(o, "rnoatime", "rstrictatime");
    cr_assert_eq(o.rec_set, MOUNT_ATTR_STRICTATIME);
    cr_assert_eq(o.rec_cleared, MOUNT_ATTR__ATIME);
    arena_free(&arena_);
}

Test(mount_options, relative_access_time_clears_the_field)
{
    PARSE(o, "rnoatime", "rrelatime");
    cr_assert_eq(o.rec_set, 0);
    cr_assert_eq(o.rec_cleared, MOUNT_ATTR__ATIME);
    arena_free(&arena_);
}

Test(mount_options, extensions)
{
    PARSE(o, "tmpcopyup", "idmap", "ridmap", "unknown", "nosymfollow");
    cr_assert(o.tmpcopyup);
    cr_assert(o.idmap);
    cr_assert(o.idmap_recursive);
    cr_assert_str_eq(o.data, "unknown");
    cr_assert_eq(o.set, 256);
    arena_free(&arena_);
}

Test(mount_options, names_are_sorted)
{
    unsigned len = 0;
    for (; mount_options_name(len); len++) {
        if (len)
            cr_assert_lt(strcmp(mount_options_name(len - 1), mount_options_name(len)), 0, "%s",
                         mount_options_name(len));
    }
    cr_assert_gt(len, 60);
}

Test(mount_options, rootfs_propagation)
{
    cr_assert_eq(mount_options_propagation("rslave"), MS_SLAVE | MS_REC);
    cr_assert_eq(mount_options_propagation("unbindable"), MS_UNBINDABLE);
    cr_assert_eq(mount_options_propagation("ro"), 0);
    cr_assert_eq(mount_options_propagation("x"), 0);
}
