/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the synthetic file systems and devices known. */
#include "sentry/fs/fs_register.h"

#include <sys/stat.h>

#include "sentry/fs/cgroupfs.h"
#include "sentry/fs/devfs.h"
#include "sentry/fs/devpts.h"
#include "sentry/fs/mqueuefs.h"
#include "sentry/fs/overlay/overlay.h"
#include "sentry/fs/proc/procfs.h"
#include "sentry/fs/sysfs.h"
#include "sentry/fs/tty.h"
#include "sentry/vfs/inode.h"

void fs_register_all(void)
{
    vfs_set_special_open(S_IFCHR, chrdev_open);
    vfs_set_special_open(S_IFBLK, blkdev_open);
    devfs_register();
    tty_register();
    devpts_register();
    fs_type_register(&proc_fs_type);
    fs_type_register(&devpts_fs_type);
    fs_type_register(&sysfs_fs_type);
    fs_type_register(&cgroup_fs_type);
    fs_type_register(&cgroup2_fs_type);
    fs_type_register(&mqueue_fs_type);
    overlay_register();
}
