/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/sysvipc: the heads of the tables. */
#include "sentry/fs/proc/proc_global.h"

static int show_text(struct proc_call *c, struct buf *out)
{
    buf_puts(out, c->node->arg);
    return buf_error(out);
}

static const struct proc_node sysvipc_nodes[] = {
    {.name = "msg", .mode = S_IFREG | 0444, .show = show_text,
     .arg = "       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      "
            "rtime      ctime\n"},
    {.name = "sem", .mode = S_IFREG | 0444, .show = show_text,
     .arg = "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n"},
    {.name = "shm", .mode = S_IFREG | 0444, .show = show_text,
     .arg = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime "
            "     dtime      ctime                   rss                  swap\n"},
};

const struct proc_dir proc_sysvipc_dir = PROC_DIR_OF(sysvipc_nodes);
