/* SPDX-License-Identifier: Apache-2.0 */
/* The proc file system: inodes, directories and generated files over the tables of its parts. */
#include "sentry/fs/proc/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/vfs.h>

#include "platform/base/alloc.h"
#include "sentry/fs/fs_options.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/kernel/task.h"
#include "sentry/kernel/ptrace_access.h"
#include "sentry/mm/mm.h"
#include "sentry/vfs/path_walk.h"

struct proc_inode {
    struct inode inode;
    const struct proc_node *node; /* (i) static */
    struct pid *pid;              /* (i) referenced; NULL in global entries */
    bool whole;                   /* (i) */
    int fd;                       /* (i) */
};

static const struct inode_ops proc_dir_iops, proc_file_iops, proc_link_iops, proc_magic_iops;
static const struct file_ops proc_dir_fops, proc_file_fops, proc_poll_fops;

static struct proc_inode *to_proc(const struct inode *inode)
{
    return container_of(inode, struct proc_inode, inode);
}

/* ---- calls ---- */

static struct container *proc_container(const struct proc_call *c)
{
    if (c->viewer)
        return c->viewer->group->container;
    return proc_sb_of(c->inode->sb)->container;
}

static int proc_call_begin(struct proc_call *c, struct ctx *ctx, struct inode *inode)
{
    struct proc_inode *pi = to_proc(inode);

    *c = (struct proc_call){
        .ctx = ctx,
        .viewer = ctx_task_or_null(ctx),
        .ns = proc_sb_of(inode->sb)->ns,
        .node = pi->node,
        .inode = inode,
        .whole = pi->whole,
        .fd = pi->fd,
    };
    c->container = proc_container(c);
    if (!pi->pid)
        return 0;
    if (!pi->pid->task)
        return -ESRCH;
    c->task = task_ref(pi->pid->task);
    return 0;
}

static void proc_call_end(struct proc_call *c)
{
    task_unref(c->task);
}
#define PROC_CALL __attribute__((cleanup(proc_call_end))) struct proc_call

bool proc_may_access(const struct proc_call *c, const struct task *task)
{
    return !c->viewer || !ptrace_may_access(c->viewer, task, PTRACE_READ_FS);
}

int proc_parse_number(const char *name)
{
    int n = 0;

    if (!*name || (name[0] == '0' && name[1]))
        return -1;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || n > 100000000)
            return -1;
        n = n * 10 + (*name - '0');
    }
    return n;
}

/* ---- inodes ---- */

/* Numbers that stay the same as long as the name does, so that readdir and stat agree. */
static uint64_t proc_ino(uint64_t parent, const char *name)
{
    uint64_t h = 0xcbf29ce484222325ULL ^ parent;

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3ULL;
    h ^= h >> 32;
    return 0x100000000ULL | (uint32_t)h;
}

static const struct inode_ops *proc_iops_of(const struct proc_node *node)
{
    if (S_ISDIR(node->mode))
        return &proc_dir_iops;
    if (S_ISLNK(node->mode))
        return node->follow ? &proc_magic_iops : &proc_link_iops;
    return &proc_file_iops;
}

static unsigned proc_subdirs(const struct proc_dir *dir)
{
    unsigned n = 0;

    for (unsigned i = 0; i < dir->nodes_len; i++)
        n += S_ISDIR(dir->nodes[i].mode);
    return n;
}

static int proc_refresh(struct ctx *ctx, struct inode *inode)
{
    struct proc_inode *pi = to_proc(inode);
    struct task *t = pi->pid ? pi->pid->task : NULL;

    if (inode->ino == PROC_SUPER_INO && proc_sb_of(inode->sb)->ns)
        inode->nlink = 2 + proc_subdirs(pi->node->dir) + proc_sb_of(inode->sb)->ns->live;
    if (!t)
        return 0;
    if (pi->node->flags & PROC_THREADS)
        inode->nlink = 2 + t->group->thread_count;
    if (!(pi->node->flags & PROC_NO_DUMP_OWNER) && t->mm && t->mm->dumpable != 1) {
        inode->uid = userns_uid_in(t->mm->userns, 0);
        inode->gid = userns_gid_in(t->mm->userns, 0);
        inode->uid = inode->uid == USERNS_NO_ID ? 0 : inode->uid;
        inode->gid = inode->gid == USERNS_NO_ID ? 0 : inode->gid;
        return 0;
    }
    inode->uid = t->ctx.cred->euid;
    inode->gid = t->ctx.cred->egid;
    return 0;
}

static struct inode *proc_inode_alloc(struct superblock *sb, uint64_t ino, const struct proc_key *key)
{
    struct proc_inode *pi =
        (struct proc_inode *)inode_alloc(sb, proc_iops_of(key->node), sizeof(*pi), key->node->mode);

    if (!pi)
        return NULL;
    pi->node = key->node;
    pi->pid = key->pid ? pid_ref(key->pid) : NULL;
    pi->whole = key->whole;
    pi->fd = key->fd;
    pi->inode.ino = ino;
    if (key->fd >= 0 && S_ISLNK(key->node->mode))
        pi->inode.size = 64; /* what Linux says of descriptor links */
    else if (S_ISLNK(key->node->mode) && key->node->flags & PROC_FIXED_TEXT)
        pi->inode.size = strlen(key->node->arg);
    if (S_ISREG(key->node->mode) && sb->magic == SYSFS_MAGIC)
        pi->inode.size = PAGE_SIZE;
    if (S_ISDIR(key->node->mode))
        pi->inode.nlink = 2 + proc_subdirs(key->node->dir);
    (void)proc_refresh(NULL, &pi->inode);
    return &pi->inode;
}

struct inode *proc_inode_new(struct inode *parent, const char *name, const struct proc_key *key)
{
    return proc_inode_alloc(parent->sb, proc_ino(parent->ino, name), key);
}

static void proc_evict(struct inode *inode)
{
    pid_unref(to_proc(inode)->pid);
}

static int proc_setattr(struct ctx *ctx, struct inode *inode, const struct iattr *attr)
{
    if (attr->valid & (IATTR_MODE | IATTR_UID | IATTR_GID))
        return -EPERM;
    return 0; /* a truncation by open means nothing here */
}

/* Process directories that hidepid closes to others. */
static bool proc_hidden(const struct proc_call *c, const struct task *task, int level)
{
    const struct proc_sb *ps = proc_sb_of(c->inode->sb);

    if (ps->hidepid < level)
        return false;
    if (ps->hidepid < 4 && cred_in_group(c->ctx->cred, ps->gid))
        return false;
    return !proc_may_access(c, task);
}

static int proc_permission(struct ctx *ctx, struct inode *inode, unsigned mask)
{
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, inode);

    if (r)
        return r;
    (void)proc_refresh(ctx, inode);
    if (c.task && c.node == &proc_pid_node && proc_hidden(&c, c.task, 1))
        return proc_hidden(&c, c.task, 2) ? -ENOENT : -EPERM;
    if ((c.node->flags & PROC_FD_ACCESS) && c.viewer && c.viewer->group == c.task->group)
        return 0;
    if (c.node->flags & PROC_OWN_RESOURCE)
        return (mask & MAY_EXEC) || ((mask & MAY_WRITE) && !cred_own_cap(ctx->cred, CAP_SYS_RESOURCE)) ? -EACCES : 0;
    return inode_permission_generic(ctx, inode, mask);
}

static int proc_check_ptrace(const struct proc_call *c)
{
    return !(c->node->flags & PROC_PTRACE) || proc_may_access(c, c->task) ? 0 : -EACCES;
}

/* ---- directories ---- */

static int proc_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    struct proc_inode *pi = to_proc(dir);
    const struct proc_dir *d = pi->node->dir;
    struct proc_key key = {.pid = pi->pid, .whole = pi->whole, .fd = pi->fd};
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, dir);

    if (r)
        return r == -ESRCH ? -ENOENT : r;
    for (unsigned i = 0; i < d->nodes_len && !key.node; i++) {
        if (strcmp(d->nodes[i].name, name) == 0)
            key.node = &d->nodes[i];
    }
    if (key.node && dir->ino == PROC_SUPER_INO && proc_sb_of(dir->sb)->subset_pid && !S_ISLNK(key.node->mode))
        return -ENOENT;
    if (!key.node) {
        r = d->lookup ? d->lookup(&c, name, &key) : -ENOENT;
        if (r)
            return r;
        if (key.node == &proc_pid_node && proc_hidden(&c, key.pid->task, 2))
            return -ENOENT;
    }
    *ret_inode = proc_inode_new(dir, name, &key);
    return *ret_inode ? 0 : -ENOMEM;
}

/* A process that is gone does not live on under its old number, and descriptors change under their numbers. */
static int proc_revalidate(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    struct proc_inode *pi;

    if (!inode)
        return 0;
    pi = to_proc(inode);
    if (inode->ops != &proc_dir_iops && inode->ops != &proc_file_iops && inode->ops != &proc_link_iops &&
        inode->ops != &proc_magic_iops)
        return 1;
    return (!pi->pid || pi->pid->task) && pi->fd < 0;
}

/* Fixed entries have positions from 2 on, computed ones follow them by number. */
static int proc_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink)
{
    const struct proc_dir *d = to_proc(f->inode)->node->dir;
    bool pids_only = f->inode->ino == PROC_SUPER_INO && proc_sb_of(f->inode->sb)->subset_pid;
    int64_t first = 2 + (int64_t)d->nodes_len;
    struct proc_entry e;
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, f->inode);

    if (r)
        return r == -ESRCH ? -ENOENT : r;
    if (!dir_emit_dots(f, sink))
        return 0;
    for (; f->pos < first; f->pos++) {
        const struct proc_node *n = &d->nodes[f->pos - 2];

        if (pids_only && !S_ISLNK(n->mode))
            continue;
        if (!sink->emit(sink, n->name, strlen(n->name), proc_ino(f->inode->ino, n->name),
                        IFTODT(n->mode), f->pos + 1))
            return 0;
    }
    while (d->next && (r = d->next(&c, f->pos - first, &e)) > 0) {
        if (!sink->emit(sink, e.name, strlen(e.name), proc_ino(f->inode->ino, e.name), e.d_type,
                        first + e.number + 1))
            return 0;
        f->pos = first + e.number + 1;
    }
    return MIN(r, 0);
}

static int proc_dir_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, inode);

    if (r == 0)
        r = proc_check_ptrace(&c);
    if (r == 0)
        file->ops = &proc_dir_fops;
    return r;
}

/* ---- links ---- */

static ssize_t proc_readlink(struct ctx *ctx, struct inode *inode, char *dst, size_t size)
{
    CLEANUP_BUF struct buf text = {0};
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, inode);
    size_t len;

    if (r == 0)
        r = proc_check_ptrace(&c);
    if (r == 0)
        r = c.node->show(&c, &text);
    if (r == 0)
        r = buf_error(&text);
    if (r)
        return r;
    len = MIN(text.size, size - 1);
    if (len)
        memcpy(dst, text.data, len);
    dst[len] = '\0';
    return (ssize_t)len;
}

static int proc_follow(struct ctx *ctx, struct inode *inode, struct path *ret_path)
{
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, inode);

    if (r == 0)
        r = proc_check_ptrace(&c);
    return r ? r : c.node->follow(&c, ret_path);
}

/* ---- generated files ---- */

struct proc_text {
    struct buf text;
    bool filled;
    uint64_t seen; /* (k) of a poll op */
};

static int proc_fill(struct file *f, struct ctx *ctx, struct proc_text *t)
{
    struct buf fresh = {0};
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, f->inode);

    c.opener = f->cred;
    if (r == 0)
        r = c.node->show(&c, &fresh);
    if (r == 0)
        r = buf_error(&fresh);
    if (r) {
        buf_free(&fresh);
        return r;
    }
    buf_free(&t->text);
    t->text = fresh;
    t->filled = true;
    return 0;
}

static ssize_t proc_file_read(struct file *f, struct uio *u, int64_t *pos)
{
    struct proc_text *t = f->priv;
    ssize_t n;

    if (to_proc(f->inode)->node->show == NULL)
        return -EINVAL;
    if (*pos == 0 || !t->filled) {
        int r = proc_fill(f, u->ctx, t);

        if (r)
            return r;
    }
    if (*pos < 0 || (uint64_t)*pos >= t->text.size)
        return 0;
    n = uio_put(u, t->text.data + *pos, MIN(t->text.size - (size_t)*pos, u->left));
    if (n > 0)
        *pos += n;
    return n;
}

static ssize_t proc_file_write(struct file *f, struct uio *u, int64_t *pos)
{
    CLEANUP_FREE char *data = NULL;
    PROC_CALL c;
    size_t size = MIN(u->left, (uint64_t)PROC_WRITE_MAX);
    int64_t n;
    int r = proc_call_begin(&c, u->ctx, f->inode);

    if (r)
        return r;
    c.opener = f->cred;
    c.pos = *pos;
    if (!c.node->write)
        return -EIO;
    data = mem_zalloc(size + 1);
    if (!data)
        return -ENOMEM;
    n = uio_get(u, data, size);
    if (n < 0)
        return n;
    n = c.node->write(&c, data, (size_t)n);
    if (n > 0)
        *pos += n;
    return n;
}

static uint32_t proc_file_poll(struct file *f, struct poll_table *pt)
{
    const struct proc_node *node = to_proc(f->inode)->node;
    struct proc_text *t = f->priv;
    uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM;
    PROC_CALL c;

    if (node->poll && proc_call_begin(&c, pt ? pt->ctx : NULL, f->inode) == 0) {
        c.seen = &t->seen;
        events = node->poll(&c, pt);
    }
    return events;
}

static int64_t proc_file_ioctl(struct ctx *ctx, struct file *f, uint32_t cmd, uint64_t arg)
{
    const struct proc_node *node = to_proc(f->inode)->node;
    PROC_CALL c;
    int r;

    if (!node->ioctl)
        return -ENOTTY;
    r = proc_call_begin(&c, ctx, f->inode);
    c.opener = f->cred;
    return r ? r : node->ioctl(&c, cmd, arg);
}

static void proc_file_release(struct file *f)
{
    struct proc_text *t = f->priv;

    buf_free(&t->text);
    mem_free(t);
}

static int proc_file_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    struct proc_text *t;
    PROC_CALL c;
    int r = proc_call_begin(&c, ctx, inode);

    if (r == 0)
        r = proc_check_ptrace(&c);
    if (r)
        return r;
    if (c.node->open)
        return c.node->open(&c, file);
    t = NEW(struct proc_text);
    if (!t)
        return -ENOMEM;
    file->priv = t;
    c.seen = &t->seen;
    if (c.node->poll)
        (void)c.node->poll(&c, NULL); /* what is there now is not news */
    file->ops = c.node->poll ? &proc_poll_fops : &proc_file_fops; /* epoll takes only what can be polled */
    return 0;
}

static const struct file_ops proc_dir_fops = {.readdir = proc_readdir};
static const struct file_ops proc_file_fops = {
    .read = proc_file_read,
    .write = proc_file_write,
    .ioctl = proc_file_ioctl,
    .release = proc_file_release,
};
static const struct file_ops proc_poll_fops = {
    .read = proc_file_read,
    .write = proc_file_write,
    .poll = proc_file_poll,
    .release = proc_file_release,
};
/* A name that is not there is not there, whatever somebody wants to make of it: not a matter of permission. */
static int proc_make(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                     struct inode **ret_inode)
{
    return -ENOENT;
}

static int proc_make_symlink(struct ctx *ctx, struct inode *dir, const char *name, const char *target,
                             const struct newattr *attr, struct inode **ret_inode)
{
    return -ENOENT;
}

static const struct inode_ops proc_dir_iops = {
    .lookup = proc_lookup,
    .create = proc_make,
    .mkdir = proc_make,
    .mknod = proc_make,
    .symlink = proc_make_symlink,
    .refresh = proc_refresh,
    .setattr = proc_setattr,
    .open = proc_dir_open,
    .permission = proc_permission,
    .revalidate = proc_revalidate,
    .evict = proc_evict,
};
static const struct inode_ops proc_file_iops = {
    .refresh = proc_refresh,
    .setattr = proc_setattr,
    .open = proc_file_open,
    .permission = proc_permission,
    .evict = proc_evict,
};
static const struct inode_ops proc_link_iops = {
    .readlink = proc_readlink,
    .refresh = proc_refresh,
    .setattr = proc_setattr,
    .permission = proc_permission,
    .evict = proc_evict,
};
static const struct inode_ops proc_magic_iops = {
    .readlink = proc_readlink,
    .follow = proc_follow,
    .refresh = proc_refresh,
    .setattr = proc_setattr,
    .permission = proc_permission,
    .evict = proc_evict,
};

/* ---- mounts ---- */

static int proc_parse_hidepid(const struct fs_option *o, int *ret_level)
{
    static const struct {
        const char *name;
        int level;
    } names[] = {{"off", 0}, {"noaccess", 1}, {"invisible", 2}, {"ptraceable", 4},
                 {"0", 0},   {"1", 1},        {"2", 2},         {"4", 4}};

    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        if (o->value && strlen(names[i].name) == o->value_len &&
            memcmp(names[i].name, o->value, o->value_len) == 0) {
            *ret_level = names[i].level;
            return 0;
        }
    }
    return -EINVAL;
}

static int proc_parse(struct ctx *ctx, struct proc_sb *ps, const char *data)
{
    struct proc_sb parsed = *ps;
    struct fs_option o;
    int r;

    while ((r = fs_option_next(&data, &o)) > 0) {
        if (fs_option_is(&o, "hidepid"))
            r = proc_parse_hidepid(&o, &parsed.hidepid);
        else if (fs_option_is(&o, "gid"))
            r = fs_option_gid(ctx, &o, &parsed.gid);
        else if (fs_option_is(&o, "subset") && o.value_len == 3 && memcmp(o.value, "pid", 3) == 0)
            parsed.subset_pid = true, r = 0;
        else
            r = -EINVAL;
        if (r)
            return r;
    }
    *ps = parsed;
    return 0;
}

static int proc_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st)
{
    ret_st->f_type = (__typeof__(ret_st->f_type))sb->magic;
    ret_st->f_bsize = ret_st->f_frsize = PAGE_SIZE;
    ret_st->f_namelen = 255;
    return 0;
}

static int proc_remount(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data)
{
    struct proc_sb *ps = proc_sb_of(sb);

    if (!ps->ns)
        return data && *data ? -EINVAL : 0;
    return proc_parse(ctx, ps, data);
}

static int proc_show_options(struct superblock *sb, char *dst, size_t size)
{
    static const char *const levels[] = {"off", "noaccess", "invisible", "", "ptraceable"};
    const struct proc_sb *ps = proc_sb_of(sb);
    size_t used = 0;

    dst[0] = '\0';
    if (!ps->ns)
        return 0;
    if (ps->gid)
        used += (size_t)snprintf(dst, size, ",gid=%u", ps->gid);
    if (ps->hidepid)
        used += (size_t)snprintf(dst + used, size - used, ",hidepid=%s", levels[ps->hidepid]);
    if (ps->subset_pid)
        snprintf(dst + used, size - used, ",subset=pid");
    return 0;
}

static void proc_sb_free(struct superblock *sb)
{
    struct proc_sb *ps = proc_sb_of(sb);

    pidns_unref(ps->ns);
    mem_free(ps);
}

static const struct sb_ops proc_sb_ops = {
    .statfs = proc_statfs,
    .remount = proc_remount,
    .show_options = proc_show_options,
    .free = proc_sb_free,
};

static const struct proc_node proc_root_node = {.name = "/", .mode = S_IFDIR | 0555, .dir = &proc_root_dir};

static int proc_mount_sb(const char *type, uint64_t magic, const struct proc_node *node, OWNS struct proc_sb *ps,
                         struct dentry **ret_root)
{
    struct proc_key key = {.node = node, .fd = -1};
    struct superblock *sb = superblock_new(type, magic, &proc_sb_ops, ps);
    struct inode *root;

    if (!sb) {
        pidns_unref(ps->ns);
        mem_free(ps);
        return -ENOMEM;
    }
    sb->no_dcache = sb->no_dcache_negative = true;
    sb->no_judges = node == &proc_root_node; /* as Linux has it: opens of proc wait for what other processes do */
    root = proc_inode_alloc(sb, PROC_SUPER_INO, &key);
    superblock_unref(sb);
    if (!root)
        return -ENOMEM;
    *ret_root = dentry_new_root(root);
    return *ret_root ? 0 : -ENOMEM;
}

static int proc_mount_in(struct ctx *ctx, struct pidns *ns, struct container *c, const char *data,
                         struct dentry **ret_root)
{
    struct proc_sb *ps = NEW(struct proc_sb);
    int r = ps ? proc_parse(ctx, ps, data) : -ENOMEM;

    if (r) {
        mem_free(ps);
        return r;
    }
    ps->ns = pidns_ref(ns);
    ps->container = c;
    return proc_mount_sb("proc", PROC_SUPER_MAGIC, &proc_root_node, ps, ret_root);
}

int proc_mount_for(struct pidns *ns, struct container *c, const char *data, struct dentry **ret_root)
{
    return proc_mount_in(NULL, ns, c, data, ret_root);
}

int proc_mount_tree(const char *type, uint64_t magic, const struct proc_node *root, struct dentry **ret_root)
{
    struct proc_sb *ps = NEW(struct proc_sb);

    return ps ? proc_mount_sb(type, magic, root, ps, ret_root) : -ENOMEM;
}

static int proc_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                      struct dentry **ret_root)
{
    struct task *t = ctx_task_or_null(ctx);

    return t ? proc_mount_in(ctx, t->pidns, NULL, data, ret_root) : -EINVAL;
}

static struct userns *proc_owner(const struct ctx *ctx)
{
    return ctx->is_task ? container_of(ctx, const struct task, ctx)->pidns->userns : ctx->cred->userns;
}

const struct fs_type proc_fs_type = {
    .name = "proc", .userns_mount = true, .nodev = true, .owner = proc_owner, .mount = proc_mount};

struct tgroup *procfs_dir_group(const struct file *f, bool *ret_gone)
{
    const struct proc_inode *pi;

    *ret_gone = false;
    if (f->inode->ops != &proc_dir_iops)
        return NULL;
    pi = to_proc(f->inode);
    if (!pi->pid || !pi->whole || pi->node->dir != &proc_pid_dir)
        return NULL;
    *ret_gone = !pi->pid->task;
    return pi->pid->task ? tgroup_ref(pi->pid->task->group) : NULL;
}
