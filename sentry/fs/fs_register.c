/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the synthetic file systems and devices known. */
#include "sentry/fs/fs_register.h"

#include <sys/stat.h>

#include "sentry/fs/cgroupfs.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/devpts.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/fs/sysfs.h"
#include "sentry/fs/tty.h"
#include "sentry/vfs/inode.h"

/* A place to mount; queues show up in it with their implementation. */
static const struct proc_dir mqueue_dir;
static const struct proc_node mqueue_root = {.name = "/", .mode = S_IFDIR | 01777, .dir = &mqueue_dir};

static int mqueue_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                        struct dentry **ret_root)
{
    return proc_mount_tree("mqueue", 0x19800202, &mqueue_root, ret_root);
}

static const struct fs_type mqueue_fs_type = {
    .name = "mqueue", .userns_mount = true, .nodev = true, .mount = mqueue_mount};

void fs_register_all(void)
{
    vfs_set_special_open(S_IFCHR, chrdev_open);
    devfs_register();
    tty_register();
    devpts_register();
    fs_type_register(&proc_fs_type);
    fs_type_register(&devpts_fs_type);
    fs_type_register(&sysfs_fs_type);
    fs_type_register(&cgroup_fs_type);
    fs_type_register(&cgroup2_fs_type);
    fs_type_register(&mqueue_fs_type);
}
