/* SPDX-License-Identifier: Apache-2.0 */
/* fanotify marks: what a group wants to hear about an inode, a mount or a file system. A mark on an inode keeps it, unless it
 * is evictable; mounts and file systems are not kept, and end their marks. */
#include "sentry/fs/fan_priv.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/statfs.h>

#include "platform/base/alloc.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/kernel/task.h"
#include "sentry/vfs/file.h"
#include "sentry/vfs/inode.h"
#include "sentry/vfs/path_walk.h"

/* ---- sets ---- */

struct target {
    enum fan_role kind;
    struct superblock *sb;
    struct mount *mount;
    struct inode *inode;
};

static struct fan_set **set_place(const struct target *t)
{
    switch (t->kind) {
    case FAN_BY_SB:
        return &t->sb->fan_set;
    case FAN_BY_MOUNT:
        return &t->mount->fan_set;
    default:
        return &t->inode->fan_set;
    }
}

static struct target target_of(const struct fan_set *s)
{
    return (struct target){.kind = s->kind, .sb = s->sb, .mount = s->mount, .inode = s->inode};
}

static struct fan_set *set_get(const struct target *t)
{
    struct fan_set **at = set_place(t);
    if (!*at && (*at = NEW(struct fan_set))) {
        **at = (struct fan_set){.kind = t->kind, .sb = t->sb, .mount = t->mount, .inode = t->inode};
        list_init(&(*at)->marks);
    }
    return *at;
}

/* What a mark has to see: what it tells, and what changes or makes up what it ignores. */
static uint32_t mark_interest(const struct fan_mark *m)
{
    if (!(m->ignore & FAN_ABI_EVENTS) && !(m->ignore & FAN_ABI_PERM_EVENTS))
        return m->mask;
    return m->mask | m->ignore | (m->survives_modify ? 0U : (uint32_t)FAN_MODIFY);
}

void fan_mark_recalc(struct fan_set *s)
{
    struct fan_mark *m;
    s->mask = 0;
    list_for_each_entry (m, &s->marks, set_link)
        s->mask |= mark_interest(m);
}

/* ---- marks ---- */

static struct fan_mark *mark_find(const struct fan_group *g, const struct target *t)
{
    const struct fan_set *s = *set_place(t);
    struct fan_mark *m;
    if (!s)
        return NULL;
    list_for_each_entry (m, &s->marks, set_link) {
        if (m->group == g)
            return m;
    }
    return NULL;
}

static void count(const struct fan_group *g, struct superblock *sb, int delta)
{
    sb->fan_marks += (uint32_t)delta;
    if (g->priority)
        sb->fan_judges += (uint32_t)delta;
    notify_watches_changed(delta);
}

static void uncharge(const struct fan_group *g)
{
    limit_uncharge(LIMIT_KIND_WATCHES, 1);
    if (!(g->flags & FAN_UNLIMITED_MARKS))
        ucharge_less(&g->charge, UCOUNT_FANOTIFY_MARKS);
}

static int charge(const struct fan_group *g)
{
    if (!(g->flags & FAN_UNLIMITED_MARKS)) {
        int r = ucharge_more(&g->charge, UCOUNT_FANOTIFY_MARKS);
        if (r)
            return r;
    }
    if (limit_charge(LIMIT_KIND_WATCHES, 1) == 0)
        return 0;
    if (!(g->flags & FAN_UNLIMITED_MARKS))
        ucharge_less(&g->charge, UCOUNT_FANOTIFY_MARKS);
    return -ENOSPC;
}

void fan_mark_free(struct fan_mark *m)
{
    struct fan_group *g = m->group;
    struct fan_set *s = m->set;
    struct target t = target_of(s);
    struct inode *inode = t.kind == FAN_BY_INODE && !m->evictable ? t.inode : NULL;
    list_del(&m->set_link);
    list_del(&m->group_link);
    count(g, t.sb, -1);
    uncharge(g);
    mem_free(m);
    if (list_empty(&s->marks)) {
        *set_place(&t) = NULL;
        mem_free(s);
    } else {
        fan_mark_recalc(s);
    }
    inode_unref(inode);
}

static void set_end(struct fan_set *s)
{
    bool last;
    do {
        struct fan_mark *m = list_first(&s->marks, struct fan_mark, set_link);
        last = m->set_link.next == &s->marks;
        fan_mark_free(m);
    } while (!last);
}

void fan_mark_inode_gone(struct inode *inode)
{
    set_end(inode->fan_set);
}

void fan_mark_mount_gone(struct mount *m)
{
    set_end(m->fan_set);
}

void fan_mark_sb_gone(struct superblock *sb)
{
    struct fan_group *g;
    struct fan_mark *m, *tmp;
    list_for_each_entry (g, &fan_groups, all_link) {
        list_for_each_entry_safe (m, tmp, &g->marks, group_link) {
            if (m->set->sb == sb)
                fan_mark_free(m);
        }
    }
}

uint32_t fan_mark_user_flags(const struct fan_mark *m)
{
    return (m->survives_modify ? (uint32_t)FAN_MARK_IGNORED_SURV_MODIFY : 0U) |
           (m->evictable ? (uint32_t)FAN_MARK_EVICTABLE : 0U) |
           (m->ignore_has_flags ? (uint32_t)FAN_MARK_IGNORE : 0U);
}

/* ---- the call ---- */

int fan_mark_check(struct task *t, struct file *f, const struct fan_request *req)
{
    const struct fan_group *g = fan_group_of(f);
    uint32_t type = req->flags & FAN_ABI_MARK_TYPES, mask = req->mask, fid = g->flags & FAN_ABI_FID;
    if (type && (g->unprivileged || !cred_has_cap(t->ctx.cred, CAP_SYS_ADMIN)))
        return -EPERM;
    if ((mask & FAN_ABI_PERM_EVENTS) && !g->priority)
        return -EINVAL;
    if ((mask & FAN_FS_ERROR) && type != FAN_MARK_FILESYSTEM)
        return -EINVAL;
    if ((req->flags & FAN_MARK_EVICTABLE) && type)
        return -EINVAL;
    if ((mask & ~(FAN_ABI_PATH_EVENTS | FAN_ABI_PERM_EVENTS | FAN_ABI_EVENT_FLAGS)) && (!fid || type == FAN_MARK_MOUNT))
        return -EINVAL;
    return (mask & FAN_RENAME) && !(fid & FAN_REPORT_NAME) ? -EINVAL : 0;
}

void fan_mark_flush(struct file *f, uint32_t flags)
{
    uint32_t type = flags & FAN_ABI_MARK_TYPES;
    enum fan_role kind = type == FAN_MARK_MOUNT ? FAN_BY_MOUNT : type ? FAN_BY_SB : FAN_BY_INODE;
    struct fan_mark *m, *tmp;
    list_for_each_entry_safe (m, tmp, &fan_group_of(f)->marks, group_link) {
        if (m->set->kind == kind)
            fan_mark_free(m);
    }
}

/* Whether the object's kind has such events. */
static int check_events(const struct fan_group *g, const struct fan_request *req, const struct path *path)
{
    uint32_t type = req->flags & FAN_ABI_MARK_TYPES;
    bool strict = (g->flags & FAN_REPORT_TARGET_FID) || (req->mask & FAN_RENAME) || (req->flags & FAN_MARK_IGNORE);
    if ((req->mask & FAN_ABI_PERM_EVENTS) && path->dentry->sb->no_judges)
        return -EINVAL;
    if (type && path->mount->internal)
        return -EINVAL;
    if (strict && !type && !inode_is_dir(path->dentry->inode) &&
        (req->mask & (FAN_ABI_ENTRY_EVENTS | FAN_ABI_EVENT_FLAGS)))
        return -ENOTDIR;
    return 0;
}

/* Whether files of the object's file system can be named in events. Parks. */
static int check_fid(struct ctx *ctx, const struct fan_request *req, const struct path *path, int32_t ret_fsid[2])
{
    uint32_t type = req->flags & FAN_ABI_MARK_TYPES;
    struct superblock *sb = path->dentry->sb;
    struct statfs st;
    int r = superblock_statfs(ctx, sb, &st);
    if (r)
        return r;
    if (type && !st.f_fsid.__val[0] && !st.f_fsid.__val[1])
        return -ENODEV;
    if (type && !sb->has_handles)
        return -EOPNOTSUPP;
    memcpy(ret_fsid, &st.f_fsid, sizeof(st.f_fsid));
    return 0;
}

static bool fsid_is_weak(const int32_t fsid[2])
{
    return !fsid[0] && !fsid[1];
}

/* File systems that can't be told apart by their numbers go into a group alone. */
static int check_mix(const struct fan_group *g, const struct target *t, const int32_t fsid[2])
{
    if (list_empty(&g->marks))
        return 0;
    const struct fan_mark *other = list_first(&g->marks, struct fan_mark, group_link);
    if (fsid_is_weak(fsid) != fsid_is_weak(other->fsid))
        return -EXDEV;
    return fsid_is_weak(fsid) && other->set->sb != t->sb ? -EXDEV : 0;
}

static int mark_new(struct fan_group *g, const struct target *t, uint32_t flags, const int32_t fsid[2],
                    struct fan_mark **ret_mark)
{
    int r = g->flags & FAN_ABI_FID ? check_mix(g, t, fsid) : 0;
    if (r == 0)
        r = charge(g);
    if (r)
        return r;
    struct fan_mark *m = NEW(struct fan_mark);
    struct fan_set *s = m ? set_get(t) : NULL;
    if (!s) {
        mem_free(m);
        uncharge(g);
        return -ENOMEM;
    }
    *m = (struct fan_mark){.group = g, .set = s, .evictable = flags & FAN_MARK_EVICTABLE, .fsid = {fsid[0], fsid[1]}};
    if (t->kind == FAN_BY_INODE && !m->evictable)
        inode_ref(t->inode);
    list_add_tail(&s->marks, &m->set_link);
    list_add_tail(&g->marks, &m->group_link);
    count(g, t->sb, 1);
    *ret_mark = m;
    return 0;
}

/* What was once asked for in the stricter way stays so. */
static int check_update(const struct fan_mark *m, uint32_t flags)
{
    if ((flags & FAN_MARK_EVICTABLE) && !m->evictable)
        return -EEXIST;
    if ((flags & FAN_MARK_IGNORED_MASK) && m->ignore_has_flags)
        return -EEXIST;
    if ((flags & FAN_MARK_IGNORE) && !(flags & FAN_MARK_IGNORED_SURV_MODIFY) && m->survives_modify)
        return -EEXIST;
    return 0;
}

static int mark_add(struct fan_group *g, const struct target *t, uint32_t mask, uint32_t flags, const int32_t fsid[2])
{
    struct fan_mark *m = mark_find(g, t);
    int r = m ? check_update(m, flags) : mark_new(g, t, flags, fsid, &m);
    if (r)
        return r;
    uint32_t ignores = flags & FAN_ABI_MARK_IGNORES;
    if (ignores)
        m->ignore |= mask;
    else
        m->mask |= mask;
    m->ignore_has_flags |= ignores == FAN_MARK_IGNORE;
    m->survives_modify |= ignores && (flags & FAN_MARK_IGNORED_SURV_MODIFY);
    if (m->evictable && t->kind == FAN_BY_INODE && !(flags & FAN_MARK_EVICTABLE)) {
        m->evictable = false;
        inode_ref(t->inode);
    }
    fan_mark_recalc(m->set);
    return 0;
}

/* kept: bits that guests do not set, and which do not keep a mark alive. */
static int mark_remove(struct fan_group *g, const struct target *t, uint32_t mask, uint32_t flags, uint32_t kept)
{
    struct fan_mark *m = mark_find(g, t);
    if (!m)
        return -ENOENT;
    if (flags & FAN_ABI_MARK_IGNORES)
        m->ignore &= ~(mask & ~kept);
    else
        m->mask &= ~(mask & ~kept);
    if (!((m->mask | m->ignore) & ~kept))
        fan_mark_free(m);
    else
        fan_mark_recalc(m->set);
    return 0;
}

/* An ignored mask that ends with the next change makes no sense for what changes all the time. Return: 0, 1: nothing to do, −errno. */
static int check_ignore(uint32_t flags, const struct inode *inode, bool on_inode)
{
    if (!(flags & FAN_MARK_ADD) || !(flags & FAN_ABI_MARK_IGNORES) || (flags & FAN_MARK_IGNORED_SURV_MODIFY))
        return 0;
    if ((flags & FAN_MARK_IGNORE) && (!on_inode || inode_is_dir(inode)))
        return on_inode ? -EISDIR : -EINVAL;
    return on_inode && inode->writers > 0;
}

int fan_mark_change(struct task *t, struct file *f, const struct fan_request *req, const struct path *path)
{
    struct fan_group *g = fan_group_of(f);
    struct inode *inode = path->dentry->inode;
    uint32_t flags = req->flags, type = flags & FAN_ABI_MARK_TYPES, mask = req->mask, kept = 0;
    int32_t fsid[2] = {0};
    int r = flags & FAN_MARK_ADD ? check_events(g, req, path) : 0;
    if (r == 0)
        r = inode_permission(&t->ctx, inode, MAY_READ);
    if (r == 0 && (g->flags & FAN_ABI_FID))
        r = check_fid(&t->ctx, req, path, fsid);
    if (r == 0)
        r = check_ignore(flags, inode, !type);
    if (r)
        return r < 0 ? r : 0;
    if ((flags & FAN_ABI_MARK_IGNORES) == FAN_MARK_IGNORED_MASK) {
        mask &= ~FAN_ABI_EVENT_FLAGS;
        kept = FAN_ABI_EVENT_FLAGS;
    }
    if (type || !inode_is_dir(inode)) {
        mask &= ~(uint32_t)FAN_EVENT_ON_CHILD;
        kept = FAN_EVENT_ON_CHILD;
        /* Where it is told by which directory, the mark hears of files as their directories' children. */
        if ((g->flags & FAN_REPORT_DIR_FID) && (flags & FAN_MARK_ADD) && !(flags & FAN_ABI_MARK_IGNORES))
            mask |= FAN_EVENT_ON_CHILD;
    }
    struct target target = {.sb = path->dentry->sb, .mount = path->mount, .inode = inode};
    target.kind = type == FAN_MARK_MOUNT ? FAN_BY_MOUNT : type ? FAN_BY_SB : FAN_BY_INODE;
    if (flags & FAN_MARK_ADD)
        return mark_add(g, &target, mask, flags, fsid);
    return mark_remove(g, &target, mask, flags, kept);
}
