/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock's checks of files: rights are collected from a file upwards to the root of the namespace. Source: Linux's
 * userspace-api/landlock.rst. */
#include "sentry/vfs/landlock_fs.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "sentry/vfs/file.h"
#include "sentry/vfs/mount.h"

#ifndef FIOQSIZE
#define FIOQSIZE 0x5460
#endif
#define FS_IOC_GETFSUUID_K 0x80111500U
#define FS_IOC_GETFSSYSFSPATH_K 0x80811501U

static void key_ref(const void *key)
{
    inode_ref((struct inode *)key);
}

static void key_unref(const void *key)
{
    inode_unref((struct inode *)key);
}

const struct landlock_key_ops landlock_fs_keys = {.ref = key_ref, .unref = key_unref};

/* Pipes, sockets, memfds, namespaces: they are in no tree that a rule could be about. */
static bool is_internal(const struct mount *m)
{
    return !m || m->internal;
}

/* ---- walks upwards ---- */

/* The next directory above (*m, *d). Return: false at the top. */
static bool step_up(const struct mount **m, const struct dentry **d)
{
    while (*d == (*m)->root) {
        if (!(*m)->parent)
            return false;
        *d = (*m)->mountpoint;
        *m = (*m)->parent;
    }
    if ((*d)->parent == *d)
        return false; /* cut off from its mount's root */
    *d = (*d)->parent;
    return true;
}

/* One place whose rights are asked for, and what is missing there. */
struct side {
    uint32_t access;  /* asked for */
    uint32_t handled; /* what is still collected: access, or all handled rights while places are compared */
    struct landlock_masks masks;
};

static bool side_collect(const struct landlock_set *d, const struct inode *inode, struct side *s)
{
    return landlock_masks_grant(d, inode, s->handled, &s->masks);
}

int landlock_fs_check_slow(const struct landlock_set *d, const struct path *path, uint32_t access)
{
    struct side s;
    if (is_internal(path->mount))
        return 0;
    s.access = s.handled = landlock_masks_init(d, access, &s.masks);
    if (!s.handled)
        return 0;
    const struct mount *m = path->mount;
    const struct dentry *at = path->dentry;
    do {
        if (side_collect(d, at->inode, &s))
            return 0;
    } while (step_up(&m, &at));
    return -EACCES;
}

/* ---- links and renames ---- */

uint32_t landlock_fs_make_right(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFLNK:
        return LANDLOCK_MAKE_SYM;
    case S_IFDIR:
        return LANDLOCK_MAKE_DIR;
    case S_IFCHR:
        return LANDLOCK_MAKE_CHAR;
    case S_IFBLK:
        return LANDLOCK_MAKE_BLOCK;
    case S_IFIFO:
        return LANDLOCK_MAKE_FIFO;
    case S_IFSOCK:
        return LANDLOCK_MAKE_SOCK;
    default:
        return LANDLOCK_MAKE_REG;
    }
}

static uint32_t remove_right(const struct dentry *d)
{
    if (!d->inode)
        return 0;
    return inode_is_dir(d->inode) ? LANDLOCK_REMOVE_DIR : LANDLOCK_REMOVE_FILE;
}

/* A file and what rules on it alone leave missing. */
struct moved {
    bool present, is_dir;
    struct landlock_masks masks;
};

static void moved_init(const struct landlock_set *d, const struct dentry *file, struct moved *ret)
{
    ret->present = file && file->inode;
    if (!ret->present)
        return;
    ret->is_dir = inode_is_dir(file->inode);
    uint32_t handled = landlock_masks_init(d, LANDLOCK_FS_ALL, &ret->masks);
    landlock_masks_grant(d, file->inode, handled, &ret->masks);
}

/* Whether what file lacks in from, after its own rules, it also lacks in to. */
static bool keeps_limits(const struct landlock_masks *from, const struct moved *file,
                         const struct landlock_masks *to)
{
    for (unsigned bit = 0; file->present && bit < LANDLOCK_FS_RIGHTS; bit++) {
        if (!file->is_dir && !(LANDLOCK_FS_FILE >> bit & 1))
            continue;
        if (from->layers[bit] & file->masks.layers[bit] & (uint16_t)~to->layers[bit])
            return false;
    }
    return true;
}

/* From here on only what was asked for counts. Return: whether it is granted already. */
static bool side_narrow(struct side *s)
{
    for (unsigned bit = 0; bit < LANDLOCK_FS_RIGHTS; bit++) {
        if (!(s->access >> bit & 1))
            s->masks.layers[bit] = 0;
    }
    s->handled = s->access;
    return !landlock_masks_denied(&s->masks, s->access);
}

/* Collects all that is granted from dir up to top. Return: whether nothing is left to grant. */
static bool side_collect_below(const struct landlock_set *d, const struct dentry *top, const struct dentry *dir,
                               struct side *s)
{
    s->handled = landlock_masks_init(d, LANDLOCK_FS_ALL, &s->masks);
    for (;; dir = dir->parent) {
        if (side_collect(d, dir->inode, s))
            return true;
        if (dir == top || dir->parent == dir)
            return false;
    }
}

/* Both places are below top: goes on upwards from there. */
static bool refer_allowed(const struct landlock_set *d, const struct path *top, struct side *from, struct side *to,
                          const struct dentry *old, const struct dentry *new)
{
    struct moved there, back;
    moved_init(d, old, &there);
    moved_init(d, new, &back);
    bool from_ok = false, to_ok = false, comparing = true;
    const struct mount *m = top->mount;
    const struct dentry *at = top->dentry;
    from->handled = to->handled = d->fs_any | LANDLOCK_REFER;
    do {
        if (comparing && keeps_limits(&from->masks, &there, &to->masks) &&
            keeps_limits(&to->masks, &back, &from->masks)) {
            from_ok = side_narrow(from);
            to_ok = side_narrow(to);
            if (from_ok && to_ok)
                return true;
            comparing = false;
        }
        from_ok = from_ok || side_collect(d, at->inode, from);
        to_ok = to_ok || side_collect(d, at->inode, to);
        if (from_ok && to_ok)
            return true;
    } while (step_up(&m, &at));
    return false;
}

int landlock_fs_refer_slow(const struct landlock_set *d, const struct path *new_dir, const struct dentry *old,
                           const struct dentry *new, bool moves, bool exchange)
{
    struct side from = {0}, to = {0};
    const struct mount *m = new_dir->mount;
    if (is_internal(m))
        return 0;
    if (exchange)
        from.access = landlock_fs_make_right(new->inode->mode);
    to.access = landlock_fs_make_right(old->inode->mode);
    if (moves) {
        from.access |= remove_right(old);
        to.access |= remove_right(new);
    }
    const struct dentry *old_dir = old == m->root ? old : old->parent;
    if (old->parent == new_dir->dentry)
        return landlock_fs_check_slow(d, new_dir, from.access | to.access);
    from.access |= LANDLOCK_REFER;
    to.access |= LANDLOCK_REFER;
    bool from_free = side_collect_below(d, m->root, old_dir, &from);
    bool to_free = side_collect_below(d, m->root, new_dir->dentry, &to);
    if (from_free && to_free)
        return 0;
    struct path top = {(struct mount *)m, m->root};
    if (refer_allowed(d, &top, &from, &to, old, exchange ? new : NULL))
        return 0;
    if (landlock_masks_denied(&from.masks, from.access & ~(uint32_t)LANDLOCK_REFER) ||
        landlock_masks_denied(&to.masks, to.access & ~(uint32_t)LANDLOCK_REFER))
        return -EACCES;
    return -EXDEV;
}

/* ---- open files ---- */

static bool is_device(const struct inode *inode)
{
    return S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
}

int landlock_fs_open_slow(const struct landlock_set *d, struct file *f, bool exec)
{
    uint32_t need = 0, later = LANDLOCK_TRUNCATE;
    if (is_internal(f->path.mount))
        return 0;
    if (file_readable(f))
        need |= inode_is_dir(f->inode) ? LANDLOCK_READ_DIR : LANDLOCK_READ_FILE;
    if (file_writable(f))
        need |= LANDLOCK_WRITE_FILE;
    if (exec)
        need |= LANDLOCK_EXECUTE;
    if (is_device(f->inode))
        later |= LANDLOCK_IOCTL_DEV;
    struct side s;
    s.handled = landlock_masks_init(d, need | later, &s.masks);
    if (!s.handled)
        return 0;
    const struct mount *m = f->path.mount;
    const struct dentry *at = f->path.dentry;
    do {
        if (side_collect(d, at->inode, &s))
            break;
    } while (step_up(&m, &at));
    f->landlock_denied = landlock_masks_denied(&s.masks, s.handled);
    return f->landlock_denied & need ? -EACCES : 0;
}

int landlock_fs_file(const struct file *f, uint32_t access)
{
    return unlikely(f->landlock_denied & access) ? -EACCES : 0;
}

int landlock_fs_ioctl(const struct file *f, uint32_t cmd)
{
    if (likely(!(f->landlock_denied & LANDLOCK_IOCTL_DEV)) || !is_device(f->inode))
        return 0;
    switch (cmd) {
    case FIOCLEX:
    case FIONCLEX:
    case FIONBIO:
    case FIOASYNC:
    case FIOQSIZE:
    case FIFREEZE:
    case FITHAW:
    case FS_IOC_FIEMAP:
    case FIGETBSZ:
    case FICLONE:
    case FICLONERANGE:
    case FIDEDUPERANGE:
    case FS_IOC_GETFSUUID_K:
    case FS_IOC_GETFSSYSFSPATH_K:
        return 0;
    default:
        return -EACCES;
    }
}

int landlock_fs_add_rule(struct landlock_set *ruleset, const struct path *path, uint32_t access)
{
    struct inode *inode = path->dentry->inode;
    if (is_internal(path->mount) || !inode)
        return -EBADFD;
    if (!inode_is_dir(inode) && (access & ~(uint32_t)LANDLOCK_FS_FILE))
        return -EINVAL;
    return landlock_add_file(ruleset, inode, access);
}
