/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptor tables: numbers, limits, growth, sharing. */
#include "tests/unit/sentry/vfs/vfs_fixture.h"

#include <sys/resource.h>

#include "sentry/core/limits.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/task.h"

static struct tgroup group;
static struct task task;

static void table_up(void)
{
    world_up();
    memset(&group, 0, sizeof(group));
    memset(&task, 0, sizeof(task));
    group.rlimits[RLIMIT_NOFILE] = (struct rlimit){100, 100};
    task.group = &group;
    task.ctx.cred = w.root_cred;
    cr_assert_eq(fdtable_new(&task.files), 0);
}

static void table_down(void)
{
    fdtable_unref(&task.ctx, task.files);
    cr_assert_eq(limit_used(LIMIT_KIND_FILES), 0);
    world_down();
}

TestSuite(fdtable, .init = table_up, .fini = table_down);

static struct file *any_file(void)
{
    struct file *f;
    cr_assert_eq(w_open("/", O_RDONLY | O_DIRECTORY, 0, &f), 0);
    return f;
}

Test(fdtable, lowest_number)
{
    for (int i = 0; i < 5; i++)
        cr_assert_eq(fdtable_add(&task, any_file(), 0, false), i);
    cr_assert_eq(fdtable_close(&task, 1), 0);
    cr_assert_eq(fdtable_close(&task, 3), 0);
    cr_assert_eq(fdtable_close(&task, 3), -EBADF);
    cr_assert_eq(fdtable_close(&task, -1), -EBADF);
    cr_assert_eq(fdtable_close(&task, 1 << 30), -EBADF);
    cr_assert_eq(fdtable_reserve(&task, 0), 1);
    /* reserved: taken, but nothing is there */
    cr_assert_null(fdtable_get(&task, 1));
    cr_assert_eq(fdtable_close(&task, 1), -EBADF);
    cr_assert_eq(fdtable_replace(&task, 1, any_file(), false), -EBUSY);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, true), 3);
    cr_assert(fdtable_cloexec(task.files, 3));
    fdtable_unreserve(&task, 1);
    cr_assert_eq(fdtable_add(&task, any_file(), 50, false), 50);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, false), 1);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, false), 5);
    cr_assert_eq(fdtable_next(task.files, 6), 50);
    cr_assert_eq(fdtable_next(task.files, 51), -1);
}

Test(fdtable, limit_and_growth)
{
    for (int i = 0; i < 100; i++)
        cr_assert_eq(fdtable_add(&task, any_file(), 0, false), i);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, false), -EMFILE);
    cr_assert_eq(fdtable_replace(&task, 100, any_file(), false), -EBADF);
    group.rlimits[RLIMIT_NOFILE].rlim_cur = 100000;
    cr_assert_eq(fdtable_replace(&task, 99999, any_file(), true), 99999);
    cr_assert_eq(fdtable_next(task.files, 100), 99999);
    for (int i = 100; i < 5000; i++)
        cr_assert_eq(fdtable_add(&task, any_file(), 0, false), i);
    fdtable_close_range(&task, 64, UINT32_MAX);
    cr_assert_eq(fdtable_next(task.files, 64), -1);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, false), 64);
    /* a copy has room for what is open, not for what once was */
    struct fdtable *copy;
    cr_assert_eq(fdtable_dup(task.files, &copy), 0);
    cr_assert_leq(copy->capacity, 128);
    cr_assert_eq(fdtable_peek(copy, 64), fdtable_peek(task.files, 64));
    fdtable_unref(&task.ctx, copy);
}

Test(fdtable, replace_and_exec)
{
    cr_assert_eq(fdtable_add(&task, any_file(), 0, false), 0);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, true), 1);
    cr_assert_eq(fdtable_add(&task, any_file(), 0, false), 2);
    struct file *f = any_file();
    cr_assert_eq(fdtable_replace(&task, 0, file_ref(f), true), 0);
    cr_assert_eq(fdtable_peek(task.files, 0), f);
    file_unref(f);
    fdtable_cloexec_range(&task, 2, 2);
    cr_assert_eq(fdtable_set_cloexec(&task, 2, false), 0);
    cr_assert_eq(fdtable_set_cloexec(&task, 7, false), -EBADF);
    fdtable_close_on_exec(&task);
    cr_assert_eq(fdtable_next(task.files, 0), 2);
    cr_assert_eq(fdtable_next(task.files, 3), -1);
}

Test(fdtable, path_descriptors)
{
    struct file *f;
    cr_assert_eq(w_open("/", O_PATH, 0, &f), 0);
    cr_assert_eq(fdtable_add(&task, f, 0, false), 0);
    cr_assert_null(fdtable_get(&task, 0));
    struct file *any = fdtable_get_any(&task, 0);
    cr_assert_eq(any, f);
    file_unref(any);
}
