/* SPDX-License-Identifier: Apache-2.0 */
/* What mount(2), umount2(2) and pivot_root(2) do to the tree. */
#include "sentry/vfs/mount.h"

#include <errno.h>
#include <sys/mount.h>

#include "platform/base/alloc.h"
#include "sentry/core/limits.h"
#include "sentry/vfs/mount_priv.h"

static bool mount_same_kind(const struct dentry *a, const struct dentry *b)
{
    return inode_is_dir(a->inode) == inode_is_dir(b->inode);
}

static bool mount_is_root_of(const struct path *p)
{
    return p->mount && p->dentry == p->mount->root;
}

/* Common checks of a place to mount on. Return: 0, −EINVAL, −ENOENT, −ENOSPC. */
static int mount_check_place(const struct path *at, unsigned more)
{
    if (!at->mount || !at->mount->attached)
        return -EINVAL;
    if (at->dentry->deleted || !at->dentry->inode)
        return -ENOENT;
    if (at->dentry->inode->ops->follow)
        return -ENOENT; /* magic links come and go with what they lead to */
    if (at->mount->ns && at->mount->ns->count + more > LIMIT_MOUNTS)
        return -ENOSPC;
    return 0;
}

int mount_attach(struct ctx *ctx, OWNS struct dentry *root, struct path *at, unsigned long flags,
                 const char *source)
{
    mount_follow_down(at);
    int ret = mount_check_place(at, 1);
    if (ret == 0 && !mount_same_kind(root, at->dentry))
        ret = -ENOTDIR;
    if (ret == 0 && mount_is_root_of(at) && at->mount->sb == root->sb && at->mount->root == root)
        ret = -EBUSY;
    if (ret < 0) {
        dentry_unref(root);
        return ret;
    }
    struct mount *m = mount_new(root, flags, source);
    if (!m)
        return -ENOMEM;
    ret = propagate_attach(m, at->mount, at->dentry);
    if (ret < 0)
        mount_tree_free(m);
    return ret;
}

/* Whether a child mount that hides part of the tree at from was locked there. */
static bool mount_hides_locked(const struct path *from)
{
    struct mount *m;
    list_for_each_entry(m, &from->mount->children, sibling) {
        if (m->locked && dentry_is_ancestor(from->dentry, m->mountpoint))
            return true;
    }
    return false;
}

int mount_float_copy(struct ctx *ctx, struct path *from, bool recursive, struct path *ret_path)
{
    if (!from->mount || !from->mount->attached || from->mount->unbindable)
        return -EINVAL;
    if (!recursive && mount_hides_locked(from))
        return -EINVAL;
    struct mount *tree;
    int ret = mount_tree_copy(from->mount, from->dentry, recursive, true, MOUNT_COPY_PEER, &tree);
    mount_tree_forget_copies(from->mount);
    if (ret < 0)
        return ret;
    tree->floating = true;
    *ret_path = (struct path){mount_ref(tree), dentry_ref(tree->root)};
    return 0;
}

int mount_float_new(OWNS struct dentry *root, unsigned long flags, const char *source, struct path *ret_path)
{
    struct mount *m = mount_new(root, flags, source);
    if (!m)
        return -ENOMEM;
    m->floating = true;
    *ret_path = (struct path){mount_ref(m), dentry_ref(m->root)};
    return 0;
}

void mount_sink(struct mount *m)
{
    if (!m->floating)
        return;
    m->floating = false;
    mount_tree_dissolve(m);
}

/* Gives a floating tree a place. */
static int mount_settle(struct path *from, struct path *at)
{
    struct mount *m = from->mount;
    if (!mount_same_kind(from->dentry, at->dentry))
        return -EINVAL;
    int ret = mount_check_place(at, mount_tree_len(m));
    if (ret == 0)
        ret = propagate_attach(m, at->mount, at->dentry);
    if (ret == 0)
        m->floating = false;
    return ret;
}

int mount_bind(struct ctx *ctx, struct path *from, struct path *at, bool recursive)
{
    mount_follow_down(at);
    int ret = mount_check_place(at, 1);
    if (ret < 0)
        return ret;
    if (!from->mount || !from->mount->attached || from->mount->unbindable)
        return -EINVAL;
    if (!recursive && mount_hides_locked(from))
        return -EINVAL;
    if (!mount_same_kind(from->dentry, at->dentry))
        return -ENOTDIR;
    struct mount *tree;
    ret = mount_tree_copy(from->mount, from->dentry, recursive, true, MOUNT_COPY_PEER, &tree);
    mount_tree_forget_copies(from->mount);
    if (ret < 0)
        return ret;
    ret = mount_check_place(at, mount_tree_len(tree));
    if (ret == 0)
        ret = propagate_attach(tree, at->mount, at->dentry);
    if (ret < 0)
        mount_tree_free(tree);
    return ret;
}

static bool mount_tree_has_unbindable(struct mount *tree)
{
    for (struct mount *m = tree; m; m = mount_tree_next(m, tree)) {
        if (m->unbindable)
            return true;
    }
    return false;
}

static bool mount_is_below(const struct mount *m, const struct mount *top)
{
    for (; m; m = m->parent) {
        if (m == top)
            return true;
    }
    return false;
}

int mount_move(struct ctx *ctx, struct path *from, struct path *at)
{
    mount_follow_down(at);
    int ret = mount_check_place(at, 0);
    if (ret < 0)
        return ret;
    struct mount *m = from->mount;
    if (mount_is_root_of(from) && m->floating)
        return mount_settle(from, at);
    if (!mount_is_root_of(from) || !m->attached || !m->parent || m->locked || m->ns != at->mount->ns)
        return -EINVAL;
    if (!mount_same_kind(from->dentry, at->dentry))
        return -EINVAL;
    if (m->parent->peer_group || (at->mount->peer_group && mount_tree_has_unbindable(m)))
        return -EINVAL;
    if (mount_is_below(at->mount, m))
        return -ELOOP;
    struct mount *parent = m->parent;
    struct dentry *mp = dentry_ref(m->mountpoint);
    mount_unplug(m);
    ret = propagate_attach(m, at->mount, at->dentry);
    if (ret < 0)
        mount_tree_attach(m, parent, mp);
    dentry_unref(mp);
    return ret;
}

int mount_move_beneath(struct path *from, struct path *to)
{
    struct mount *m = from->mount, *above = to->mount, *parent = above ? above->parent : NULL;
    if (!m || !mount_is_root_of(from) || !mount_is_root_of(to) || !above->attached || !parent || above->locked)
        return -EINVAL;
    struct dentry *mp = above->mountpoint;
    if (!m->floating && (!m->attached || !m->parent || m->locked || m->ns != above->ns || m->parent->peer_group))
        return -EINVAL;
    if (!mount_same_kind(from->dentry, mp) || mount_is_below(m, above) || mount_is_below(parent, m))
        return -EINVAL;
    if (parent->peer_group) {
        if (mount_tree_has_unbindable(m))
            return -EINVAL;
        /* Its own copy would come to lie over it. */
        if ((above->peer_group == parent->peer_group && dentry_is_ancestor(above->root, mp)) ||
            (m->peer_group == parent->peer_group && dentry_is_ancestor(m->root, mp)))
            return -EINVAL;
    }
    struct path place = {parent, mp};
    int ret = mount_check_place(&place, m->floating ? mount_tree_len(m) : 0);
    if (ret < 0)
        return ret;
    struct mount *old_parent = m->parent;
    struct dentry *old_mp = old_parent ? dentry_ref(m->mountpoint) : NULL;
    mount_unplug(m);
    ret = propagate_attach(m, parent, mp);
    if (ret == 0)
        m->floating = false;
    else if (old_parent)
        mount_tree_attach(m, old_parent, old_mp);
    dentry_unref(old_mp);
    return ret;
}

int mount_copy_group(struct path *from, struct path *to)
{
    struct mount *f = from->mount, *m = to->mount;
    if (!mount_is_root_of(from) || !mount_is_root_of(to) || f->sb != m->sb ||
        (!f->peer_group && !f->master_group) || m->peer_group || m->master_group ||
        !dentry_is_ancestor(f->root, m->root))
        return -EINVAL;
    const struct path whole = {f, m->root};
    if (mount_hides_locked(&whole))
        return -EINVAL;
    m->peer_group = f->peer_group;
    m->master_group = f->master_group;
    m->unbindable = false;
    if (m->ns)
        mntns_touch(m->ns);
    return 0;
}

static uint64_t mount_sb_writers(const struct superblock *sb)
{
    uint64_t writers = 0;
    struct mount *m;
    list_for_each_entry(m, &mount_all, all_link) {
        if (m->sb == sb)
            writers += m->writers;
    }
    return writers;
}

/* Whether flags leave alone what is locked of m's. */
static bool mount_may_have_flags(const struct mount *m, unsigned long flags)
{
    if (m->locked_flags & MOUNT_LOCKABLE & ~flags)
        return false;
    return !(m->locked_flags & MOUNT_ATIME) || !((m->flags ^ flags) & MOUNT_ATIME);
}

enum {
    MOUNT_FLAGS = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME |
                  256 /* nosymfollow */,
    MOUNT_SB_FLAGS = MS_RDONLY | MS_SYNCHRONOUS | MS_MANDLOCK | MS_DIRSYNC | MS_LAZYTIME,
};

int mount_reconfigure(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data)
{
    if ((flags & MS_RDONLY) && !(sb->flags & MS_RDONLY) && mount_sb_writers(sb))
        return -EBUSY;
    if (sb->ops && sb->ops->remount) {
        int ret = sb->ops->remount(ctx, sb, flags, data ? data : "");
        if (ret < 0)
            return ret;
    } else if (data && *data) {
        return -EINVAL;
    }
    sb->flags = (sb->flags & ~(unsigned long)MOUNT_SB_FLAGS) | (flags & MOUNT_SB_FLAGS);
    return 0;
}

int mount_remount(struct ctx *ctx, struct path *at, unsigned long flags, const char *data, bool bind_only)
{
    struct mount *m = at->mount;
    if (!mount_is_root_of(at) || !m->attached)
        return -EINVAL;
    if (!mount_may_have_flags(m, flags))
        return -EPERM;
    bool to_ro = (flags & MS_RDONLY) && !(m->flags & MS_RDONLY);
    if (bind_only) {
        if (to_ro && m->writers)
            return -EBUSY;
    } else {
        int ret = mount_reconfigure(ctx, m->sb, flags, data);
        if (ret < 0)
            return ret;
    }
    m->flags = flags & MOUNT_FLAGS;
    if (m->ns)
        mntns_touch(m->ns);
    return 0;
}

int mount_set_flags(struct path *at, unsigned long clear, unsigned long set, unsigned long type, bool recursive)
{
    struct mount *top = at->mount;
    if (!mount_is_root_of(at) || !(top->attached || top->floating))
        return -EINVAL;
    for (struct mount *m = top; m; m = recursive ? mount_tree_next(m, top) : NULL) {
        if (!mount_may_have_flags(m, (m->flags & ~clear) | set))
            return -EPERM;
        if ((set & MS_RDONLY) && !(m->flags & MS_RDONLY) && m->writers)
            return -EBUSY;
    }
    for (struct mount *m = top; m; m = recursive ? mount_tree_next(m, top) : NULL) {
        m->flags = (m->flags & ~clear) | (set & MOUNT_FLAGS);
        if (type)
            propagate_set_type(m, type);
    }
    if (top->ns)
        mntns_touch(top->ns);
    return 0;
}

int mount_set_propagation(struct path *at, unsigned long type, bool recursive)
{
    if (!mount_is_root_of(at) || !at->mount->attached)
        return -EINVAL;
    for (struct mount *m = at->mount; m; m = recursive ? mount_tree_next(m, at->mount) : NULL)
        propagate_set_type(m, type);
    mntns_touch(at->mount->ns);
    return 0;
}

int mount_umount(struct ctx *ctx, struct path *at, int flags)
{
    struct mount *m = at->mount;
    if (!mount_is_root_of(at) || !m->attached || m->locked)
        return -EINVAL;
    if (!m->parent)
        return flags & MNT_DETACH ? -EINVAL : -EBUSY;
    /* One reference is the tree's, one the caller's. */
    bool busy = m->ref.count > 2 || !list_empty(&m->children);
    if (flags & MNT_EXPIRE) {
        if (flags & (MNT_FORCE | MNT_DETACH))
            return -EINVAL;
        if (busy)
            return -EBUSY;
        if (!m->expire_mark) {
            m->expire_mark = true;
            return -EAGAIN;
        }
    }
    if (!(flags & MNT_DETACH)) {
        if (busy)
            return -EBUSY;
        if (m->sb->mount_count == 1 && m->sb->ops && m->sb->ops->sync) {
            int ret = m->sb->ops->sync(ctx, m->sb);
            if (ret < 0 && ret != -EROFS)
                return ret;
            if (!m->attached)
                return -EINVAL; /* somebody was faster while the sync parked */
        }
    }
    propagate_umount(m);
    return 0;
}

void mount_detach_dentry(struct dentry *d)
{
    while (d->mounted) {
        struct mount *m, *found = NULL;
        list_for_each_entry(m, &mount_all, all_link) {
            if (m->parent && m->mountpoint == d) {
                found = m;
                break;
            }
        }
        if (!found)
            return;
        mount_tree_dissolve(found);
    }
}

bool mount_is_local_mountpoint(const struct mount *at, const struct dentry *d)
{
    if (!d->mounted)
        return false;
    struct mount *m;
    list_for_each_entry(m, &mount_all, all_link) {
        if (m->parent && m->mountpoint == d && m->ns == at->ns)
            return true;
    }
    return false;
}

/* Checks of pivot_root(2) on three mounts that are attached in one namespace. */
static int mount_pivot_check(struct path *new_root, struct path *put_old, struct path *cur_root)
{
    struct mount *new_m = new_root->mount, *old_m = put_old->mount, *root_m = cur_root->mount;
    if (!inode_is_dir(new_root->dentry->inode) || !inode_is_dir(put_old->dentry->inode))
        return -ENOTDIR;
    if (!new_m->attached || !old_m->attached || !root_m->attached || new_m->ns != old_m->ns ||
        new_m->ns != root_m->ns)
        return -EINVAL;
    if (new_m->locked)
        return -EINVAL;
    if (new_root->dentry->deleted)
        return -ENOENT;
    if (new_m == root_m || old_m == root_m)
        return -EBUSY;
    if (!mount_is_root_of(cur_root) || !mount_is_root_of(new_root) || !new_m->parent)
        return -EINVAL;
    if (new_m->parent->peer_group || old_m->peer_group || (root_m->parent && root_m->parent->peer_group))
        return -EINVAL;
    /* put_old at or below new_root */
    struct path p = path_ref(*put_old);
    bool below = false;
    do {
        if (p.mount == new_m) {
            below = dentry_is_ancestor(new_root->dentry, p.dentry);
            break;
        }
    } while (mount_follow_up(&p));
    path_unref(&p);
    if (!below)
        return -EINVAL;
    /* new_root below the current root */
    return mount_is_below(new_m, root_m) ? 0 : -EINVAL;
}

int mount_pivot_root(struct ctx *ctx, struct path *new_root, struct path *put_old, struct path *cur_root)
{
    int ret = mount_pivot_check(new_root, put_old, cur_root);
    if (ret < 0)
        return ret;
    struct mount *new_m = new_root->mount, *root_m = cur_root->mount;
    struct mntns *ns = root_m->ns;
    struct mount *root_parent = root_m->parent;
    struct dentry *root_mp = root_m->mountpoint ? dentry_ref(root_m->mountpoint) : NULL;
    mount_unplug(new_m);
    if (root_parent)
        mount_unplug(root_m);
    if (root_m->locked) {
        new_m->locked = true;
        root_m->locked = false;
    }
    /* Onto put_old first: with put_old == new_root the old root then covers the new one, as Linux leaves it. */
    mount_tree_attach(root_m, put_old->mount, put_old->dentry);
    if (root_parent)
        mount_tree_attach(new_m, root_parent, root_mp);
    else
        ns->root = new_m;
    dentry_unref(root_mp);
    mntns_touch(ns);
    return 0;
}
