/* SPDX-License-Identifier: Apache-2.0 */
/* acct: turns process accounting on and off. */
#include "syscalls_gen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>

#include "sentry/core/cred.h"
#include "sentry/kernel/acct.h"
#include "sentry/kernel/task.h"
#include "sentry/syscalls/pathname.h"
#include "sentry/vfs/file.h"

int64_t sys_acct(struct task *t, uaddr_t path)
{
    CLEANUP_PATHNAME char *name = NULL;
    CLEANUP_PATH struct path hold = {0};
    struct walk_base base;
    struct file *f;
    int r;

    if (!cred_has_cap(t->ctx.cred, CAP_SYS_PACCT))
        return -EPERM;
    if (uaddr_is_null(path)) {
        acct_set(t->group->container, NULL);
        return 0;
    }
    r = pathname_in(t, path, &name);
    if (!r)
        r = fsctx_base(t, AT_FDCWD, name, &hold, &base);
    if (!r)
        r = vfs_open(&t->ctx, &base, name, O_WRONLY | O_APPEND | O_LARGEFILE, 0, &f);
    if (r)
        return r;
    if (!S_ISREG(f->inode->mode)) {
        file_unref(f);
        return -EACCES;
    }
    acct_set(t->group->container, f);
    return 0;
}
