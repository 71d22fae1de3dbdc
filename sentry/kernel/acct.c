/* SPDX-License-Identifier: Apache-2.0 */
/* Process accounting, records of version 3. */
#include "sentry/kernel/acct.h"

#include <string.h>
#include <sys/acct.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/file.h"

enum { ACCT_VERSION = 3, ACCT_TICK_NS = 10000000, ACCT_FREE_PERCENT = 2 };
enum { FLAG_FORK = 1, FLAG_CORE = 8, FLAG_SIGNAL = 16 };

/* A number as 13 bits and 3 bits of an exponent of 8. */
static comp_t pack(uint64_t value)
{
    unsigned exponent = 0;

    while (value > 0x1fff && exponent < 7) {
        value = (value + 4) >> 3;
        exponent++;
    }
    return (comp_t)(value > 0x1fff ? 0xffff : exponent << 13 | value);
}

void acct_set(struct container *c, OWNS struct file *f)
{
    struct file *old = c->acct_file;

    c->acct_file = f;
    file_unref(old);
}

/* Whether t is the last thread that comes here. */
static bool is_last(struct task *t)
{
    t->acct_passed = true;
    for (struct task *o = tgroup_first(t->group); o; o = tgroup_next(t->group, o)) {
        if (!o->acct_passed && o->state < TASK_ZOMBIE)
            return false;
    }
    return true;
}

static void fill(struct task *t, struct acct_v3 *a)
{
    struct tgroup *g = t->group;
    uint64_t elapsed = host_monotonic_ns() - g->start_ns;
    int status = g->group_exiting ? g->exit_status : g->leader == t ? t->exit_code : g->leader->exit_code;
    struct mm_usage usage;

    _Static_assert(sizeof(*a) == 64, "struct acct_v3");
    a->ac_version = ACCT_VERSION;
    a->ac_flag = (char)((g->did_exec ? 0 : FLAG_FORK) | (WIFSIGNALED(status) ? FLAG_SIGNAL : 0) |
                        (WCOREDUMP(status) ? FLAG_CORE : 0));
    a->ac_exitcode = (uint32_t)status;
    a->ac_uid = t->ctx.cred->uid;
    a->ac_gid = t->ctx.cred->gid;
    a->ac_pid = (uint32_t)tgroup_pid_for(g, t);
    a->ac_ppid = g->parent ? (uint32_t)tgroup_pid_for(g->parent, t) : 0;
    a->ac_btime = (uint32_t)((host_realtime_ns() - elapsed) / 1000000000U);
    a->ac_etime = (float)(elapsed / ACCT_TICK_NS);
    a->ac_utime = pack(tgroup_cpu_ns(g) / ACCT_TICK_NS);
    a->ac_stime = pack(g->stime_ns / ACCT_TICK_NS);
    a->ac_minflt = pack(g->min_flt);
    a->ac_majflt = pack(g->maj_flt);
    memcpy(a->ac_comm, g->leader->comm, sizeof(a->ac_comm));
    if (t->mm && !t->mm->aspace->dead && !mm_get_usage(&t->ctx, t->mm, &usage))
        a->ac_mem = pack(usage.size / 1024);
}

/* Records stop while the disk is nearly full, whoever it is that fills it. */
static bool has_room(struct task *t, struct file *f)
{
    struct statfs st;

    return superblock_statfs(&t->ctx, f->inode->sb, &st) || !st.f_blocks ||
           st.f_bavail > st.f_blocks / 100 * ACCT_FREE_PERCENT;
}

void acct_thread_exit(struct task *t)
{
    struct container *c = t->group->container;
    struct acct_v3 a = {0};
    struct file *f;
    struct uio u;
    int64_t pos = 0;

    if (!is_last(t) || !c->acct_file)
        return;
    f = file_ref(c->acct_file);
    fill(t, &a);
    if (has_room(t, f)) {
        uio_init_kernel(&u, &a, sizeof(a));
        u.ctx = &t->ctx;
        (void)!file_write(f, &u, &pos); /* it appends */
    }
    file_unref(f);
    if (t->group->unkillable && t->pidns == c->pidns)
        acct_set(c, NULL);
}
