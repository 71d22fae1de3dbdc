/* SPDX-License-Identifier: Apache-2.0 */
/* Links of the process directories into the file tree: fd, fdinfo, exe, cwd, root, ns. */
#include "sentry/fs/proc/proc_pid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sentry/fs/nsfs.h"
#include "sentry/kernel/fdtable.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"

const struct path *proc_viewer_root(const struct proc_call *c)
{
    if (c->viewer && c->viewer->fs)
        return &c->viewer->fs->root;
    return c->task && c->task->fs ? &c->task->fs->root : NULL;
}

static int print_path(const struct proc_call *c, const struct path *p, struct buf *out)
{
    return path_print(p, proc_viewer_root(c), out);
}

/* ---- exe, cwd, root ---- */

int proc_show_exe(struct proc_call *c, struct buf *out)
{
    struct mm *mm = c->task->mm;

    return mm && mm->exe ? print_path(c, &mm->exe->path, out) : -ENOENT;
}

int proc_follow_exe(struct proc_call *c, struct path *ret_path)
{
    struct mm *mm = c->task->mm;

    if (!mm || !mm->exe)
        return -ENOENT;
    *ret_path = path_ref(mm->exe->path);
    return 0;
}

int proc_show_cwd(struct proc_call *c, struct buf *out)
{
    return c->task->fs ? print_path(c, &c->task->fs->cwd, out) : -ENOENT;
}

int proc_follow_cwd(struct proc_call *c, struct path *ret_path)
{
    if (!c->task->fs)
        return -ENOENT;
    *ret_path = path_ref(c->task->fs->cwd);
    return 0;
}

int proc_show_root(struct proc_call *c, struct buf *out)
{
    return c->task->fs ? print_path(c, &c->task->fs->root, out) : -ENOENT;
}

int proc_follow_root(struct proc_call *c, struct path *ret_path)
{
    if (!c->task->fs)
        return -ENOENT;
    *ret_path = path_ref(c->task->fs->root);
    return 0;
}

/* ---- fd ---- */

static struct file *call_file(const struct proc_call *c)
{
    return c->task->files ? fdtable_peek(c->task->files, c->fd) : NULL;
}

static int show_fd(struct proc_call *c, struct buf *out)
{
    struct file *f = call_file(c);

    return f ? print_path(c, &f->path, out) : -ENOENT;
}

static int follow_fd(struct proc_call *c, struct path *ret_path)
{
    struct file *f = call_file(c);

    if (!f)
        return -ENOENT;
    *ret_path = path_ref(f->path);
    return 0;
}

#define FD_LINK(m) {.name = "fd", .mode = S_IFLNK | (m), .flags = PROC_PTRACE, .show = show_fd, .follow = follow_fd}
/* By what the descriptor allows. */
static const struct proc_node fd_links[4] = {FD_LINK(0), FD_LINK(0500), FD_LINK(0300), FD_LINK(0700)};

static int fd_number(struct proc_call *c, const char *name)
{
    int fd = proc_parse_number(name);

    if (fd < 0 || !c->task->files || !fdtable_peek(c->task->files, fd))
        return -ENOENT;
    return proc_may_access(c, c->task) ? fd : -EACCES;
}

static int fd_lookup(struct proc_call *c, const char *name, struct proc_key *ret_key)
{
    int fd = fd_number(c, name);
    struct file *f;

    if (fd < 0)
        return fd;
    f = fdtable_peek(c->task->files, fd);
    ret_key->fd = fd;
    ret_key->node = &fd_links[(f->flags & O_PATH) ? 0 : file_readable(f) | file_writable(f) << 1];
    return 0;
}

static int fd_next_of(struct proc_call *c, int64_t from, unsigned d_type, struct proc_entry *ret_entry)
{
    int fd = -1;

    if (c->task->files && from <= INT32_MAX)
        fd = fdtable_next(c->task->files, (int)from);
    if (fd < 0)
        return 0;
    ret_entry->number = fd;
    ret_entry->d_type = d_type;
    snprintf(ret_entry->name, sizeof(ret_entry->name), "%d", fd);
    return 1;
}

static int fd_next(struct proc_call *c, int64_t from, struct proc_entry *ret_entry)
{
    return fd_next_of(c, from, DT_LNK, ret_entry);
}

const struct proc_dir proc_fd_dir = {.lookup = fd_lookup, .next = fd_next};

/* ---- fdinfo ---- */

static int show_fdinfo(struct proc_call *c, struct buf *out)
{
    struct file *f = call_file(c);
    uint32_t flags;

    if (!f)
        return -ENOENT;
    flags = f->flags & ~(uint32_t)O_CLOEXEC;
    if (S_ISREG(f->inode->mode) || S_ISDIR(f->inode->mode) || S_ISCHR(f->inode->mode))
        flags |= 0100000; /* O_LARGEFILE, which open sets for 64-bit programs */
    if (fdtable_cloexec(c->task->files, c->fd))
        flags |= O_CLOEXEC;
    buf_printf(out, "pos:\t%lld\nflags:\t0%o\nmnt_id:\t%u\nino:\t%llu\n", (long long)f->pos, flags,
               f->path.mount ? f->path.mount->id : 0, (unsigned long long)f->inode->ino);
    if (f->ops && f->ops->show_fdinfo)
        f->ops->show_fdinfo(f, out);
    return buf_error(out);
}

static const struct proc_node fdinfo_node = {
    .name = "fdinfo", .mode = S_IFREG | 0444, .flags = PROC_PTRACE, .show = show_fdinfo};

static int fdinfo_lookup(struct proc_call *c, const char *name, struct proc_key *ret_key)
{
    int fd = fd_number(c, name);

    if (fd < 0)
        return fd;
    ret_key->fd = fd;
    ret_key->node = &fdinfo_node;
    return 0;
}

static int fdinfo_next(struct proc_call *c, int64_t from, struct proc_entry *ret_entry)
{
    return fd_next_of(c, from, DT_REG, ret_entry);
}

const struct proc_dir proc_fdinfo_dir = {.lookup = fdinfo_lookup, .next = fdinfo_next};

/* ---- ns ---- */

static int show_ns(struct proc_call *c, struct buf *out)
{
    return nsfs_print((enum nsfs_kind)(uintptr_t)c->node->arg, c->task, out);
}

static int follow_ns(struct proc_call *c, struct path *ret_path)
{
    return nsfs_path((enum nsfs_kind)(uintptr_t)c->node->arg, c->task, ret_path);
}

#define NS_LINK(n, kind)                                                                           \
    {.name = n, .mode = S_IFLNK | 0777, .flags = PROC_PTRACE, .show = show_ns, .follow = follow_ns, \
     .arg = (const void *)(uintptr_t)(kind)}
static const struct proc_node ns_nodes[] = {
    NS_LINK("cgroup", NSFS_CGROUP),
    NS_LINK("ipc", NSFS_IPC),
    NS_LINK("mnt", NSFS_MNT),
    NS_LINK("net", NSFS_NET),
    NS_LINK("pid", NSFS_PID),
    NS_LINK("pid_for_children", NSFS_PID_CHILDREN),
    NS_LINK("time", NSFS_TIME),
    NS_LINK("time_for_children", NSFS_TIME_CHILDREN),
    NS_LINK("user", NSFS_USER),
    NS_LINK("uts", NSFS_UTS),
};

const struct proc_dir proc_ns_dir = PROC_DIR_OF(ns_nodes);
