/* SPDX-License-Identifier: Apache-2.0 */
/* Whether there is a core dump, where it goes, and what the other threads do meanwhile. */
#include "sentry/kernel/coredump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/utsns.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/path_walk.h"

enum { CORE_FLAG = 0x80, CORE_NAME_SIZE = 256 };
#define CORE_GATHER_NS 500000000ULL /* as long as a process may take to end */

struct core_settings core_settings = {.pattern = "core"};

/* ---- the name ---- */

/* A name that goes into a path must not be one. */
static void put_name(char *name, size_t size, const char *text)
{
    size_t at = strlen(name);

    for (; *text && at + 1 < size; text++)
        name[at++] = *text == '/' ? '!' : *text;
    name[at] = '\0';
}

static void put_number(char *name, size_t size, unsigned long long n)
{
    size_t at = strlen(name);

    snprintf(name + at, size - at, "%llu", n);
}

/* One %-specifier. */
static void put_spec(const struct task *t, char spec, int signo, char *name, size_t size)
{
    const struct tgroup *g = t->group;
    char one[2] = {spec, '\0'};

    switch (spec) {
    case 'p':
    case 'P':
        put_number(name, size, (unsigned)tgroup_pid_for(g, t));
        break;
    case 'i':
    case 'I':
        put_number(name, size, (unsigned)task_tid_for(t, t));
        break;
    case 'u':
        put_number(name, size, t->ctx.cred->uid);
        break;
    case 'g':
        put_number(name, size, t->ctx.cred->gid);
        break;
    case 's':
        put_number(name, size, (unsigned)signo);
        break;
    case 'c':
        put_number(name, size, g->rlimits[RLIMIT_CORE].rlim_cur);
        break;
    case 'd':
        put_number(name, size, (unsigned)t->mm->dumpable);
        break;
    case 't':
        put_number(name, size, host_realtime_ns() / 1000000000U);
        break;
    case 'h':
        put_name(name, size, t->ns->uts->hostname);
        break;
    case 'e':
        put_name(name, size, t->comm);
        break;
    case '%':
        put_name(name, size, one);
        break;
    default:
        break;
    }
}

static void make_name(const struct task *t, int signo, char *name, size_t size)
{
    bool has_pid = false;

    name[0] = '\0';
    for (const char *p = core_settings.pattern; *p; p++) {
        size_t at = strlen(name);

        if (*p == '%' && p[1]) {
            has_pid = has_pid || p[1] == 'p';
            put_spec(t, *++p, signo, name, size);
        } else if (*p != '%' && at + 1 < size) {
            name[at] = *p;
            name[at + 1] = '\0';
        }
    }
    if (core_settings.uses_pid && !has_pid) {
        put_name(name, size, ".");
        put_number(name, size, (unsigned)tgroup_pid_for(t->group, t));
    }
}

/* ---- the file ---- */

static int open_file(struct task *t, int signo, struct file **ret_file)
{
    char name[CORE_NAME_SIZE];
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->cwd, .umask = t->fs->umask};
    struct inode *inode;
    struct file *f;
    int r;

    make_name(t, signo, name, sizeof(name));
    (void)!vfs_unlink(&t->ctx, &base, name);
    r = vfs_open(&t->ctx, &base, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_LARGEFILE, 0600, &f);
    if (r)
        return r;
    /* Only a file that nobody else has a hand in. */
    inode = f->inode;
    if (!S_ISREG(inode->mode) || inode->nlink > 1 || inode->uid != t->ctx.cred->fsuid || (inode->mode & 0677) != 0600)
        r = -EPERM;
    if (r) {
        file_unref(f);
        return r;
    }
    *ret_file = f;
    return 0;
}

int coredump_emit(struct coredump *d, const void *p, uint64_t size)
{
    uint64_t n = MIN(size, d->limit - d->written), done = 0;

    while (p && done < n) {
        struct uio u;
        int64_t pos = (int64_t)(d->written + done);
        ssize_t w;

        if (d->abort)
            return -EINTR;
        uio_init_kernel(&u, (char *)(uintptr_t)p + done, n - done);
        u.ctx = &d->dumper->ctx;
        w = file_write(d->file, &u, &pos);
        if (w <= 0)
            return w ? (int)w : -EIO;
        done += (uint64_t)w;
    }
    d->written += n;
    return d->abort ? -EINTR : n < size ? -EFBIG : 0;
}

/* ---- the threads ---- */

static bool all_here(const struct coredump *d)
{
    return d->abort || d->arrived + 1 >= d->dumper->group->thread_count;
}

void coredump_join(struct task *t)
{
    struct tgroup *g = t->group;
    struct coredump *d = g->coredump;

    if (!d || d->dumper == t)
        return;
    d->arrived++;
    waitq_wake_all(&d->arrival);
    (void)!WAIT_EVENT_STATE(&t->ctx, &g->exec_wait, g->coredump != d, CTX_WAIT_UNINTERRUPTIBLE, WAIT_FOREVER);
}

void coredump_left(struct tgroup *g)
{
    waitq_wake_all(&g->coredump->arrival);
}

void coredump_abort(struct tgroup *g)
{
    g->coredump->abort = true;
    waitq_wake_all(&g->coredump->arrival);
}

static bool wanted(const struct task *t)
{
    const struct tgroup *g = t->group;

    return g->rlimits[RLIMIT_CORE].rlim_cur >= PAGE_SIZE && t->mm && t->mm->dumpable == 1 && t->thread && t->fs &&
           !t->thread->aspace->dead && core_settings.pattern[0];
}

/* Return: whether there is a core. */
static bool dump(struct task *t, struct coredump *d)
{
    struct tgroup *g = t->group;
    bool dumped = false;

    (void)!WAIT_EVENT_STATE(&t->ctx, &d->arrival, all_here(d), CTX_WAIT_UNINTERRUPTIBLE,
                            host_monotonic_ns() + CORE_GATHER_NS);
    if (!d->abort && !open_file(t, d->info->si_signo, &d->file)) {
        int r = core_elf_write(d);

        /* Cut short by its limit it is a core as well. */
        dumped = !r || r == -EFBIG;
        if (dumped)
            (void)!vfs_truncate(&t->ctx, &d->file->path, d->written); /* a hole at the end */
        file_unref(d->file);
    }
    g->coredump = NULL;
    waitq_wake_all(&g->exec_wait);
    return dumped;
}

void coredump(struct task *t, const siginfo_t *info)
{
    struct tgroup *g = t->group;
    struct coredump d = {.dumper = t, .info = info, .limit = g->rlimits[RLIMIT_CORE].rlim_cur};
    int signo = info->si_signo;

    if (g->group_exiting || g->zombie || !wanted(t)) {
        tgroup_exit(g, signo);
        return;
    }
    waitq_init(&d.arrival);
    g->coredump = &d;
    tgroup_begin_exit(g, signo, t);
    if (dump(t, &d))
        g->exit_status = signo | CORE_FLAG;
    signal_recalc(t);
    tgroup_force_exit(g);
}
