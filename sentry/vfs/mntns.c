/* SPDX-License-Identifier: Apache-2.0 */
/* Mount namespaces and what /proc shows of them. */
#include "sentry/vfs/mount_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/core/userns.h"
#include "sentry/vfs/path_walk.h"

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif

static uint64_t mntns_sync_pass, mntns_last_id;

static struct mntns *mntns_alloc(struct userns *owner)
{
    struct mntns *ns = NEW(struct mntns);
    if (!ns)
        return NULL;
    ref_init(&ns->ref);
    list_init(&ns->mounts);
    waitq_init(&ns->changed);
    ns->owner = userns_ref(owner);
    ns->id = ++mntns_last_id;
    ns->ino = userns_next_ino();
    return ns;
}

static void mntns_take_tree(struct mntns *ns, struct mount *tree)
{
    ns->root = tree;
    for (struct mount *m = tree; m; m = mount_tree_next(m, tree)) {
        m->ns = ns;
        m->attached = true;
        list_add_tail(&ns->mounts, &m->ns_link);
        ns->count++;
    }
}

int mntns_new(OWNS struct dentry *root_dentry, unsigned long flags, const char *source,
              struct mntns **ret_ns)
{
    struct mount *m = mount_new(root_dentry, flags, source);
    struct mntns *ns = m ? mntns_alloc(NULL) : NULL;
    if (!ns) {
        mount_unref(m);
        return -ENOMEM;
    }
    mntns_take_tree(ns, m);
    *ret_ns = ns;
    return 0;
}

int mntns_clone(struct mntns *ns, struct userns *owner, uint32_t uid, struct path **inout_paths, unsigned len,
                struct mntns **ret_ns)
{
    bool less_privileged = !userns_same(owner, ns->owner);
    struct mntns *copy = mntns_alloc(owner);
    if (!copy)
        return -ENOMEM;
    struct mount *tree;
    int ret = ucharge_take(&copy->charge, UCOUNT_MNT_NS, owner, uid);
    if (ret == 0)
        ret = mount_tree_copy(ns->root, ns->root->root, true, false,
                              less_privileged ? MOUNT_COPY_SLAVE : MOUNT_COPY_PEER, &tree);
    if (ret < 0) {
        ucharge_drop(&copy->charge);
        userns_unref(copy->owner);
        mem_free(copy);
        return ret;
    }
    mntns_take_tree(copy, tree);
    if (less_privileged)
        mount_tree_lock(tree);
    for (unsigned i = 0; i < len; i++) {
        struct mount *old = inout_paths[i]->mount;
        if (old && old->ns == ns && old->copy) {
            inout_paths[i]->mount = mount_ref(old->copy);
            mount_unref(old);
        }
    }
    mount_tree_forget_copies(ns->root);
    *ret_ns = copy;
    return 0;
}

struct mntns *mntns_ref(struct mntns *ns)
{
    ref_get(&ns->ref);
    return ns;
}

void mntns_unref(struct mntns *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    mount_tree_dissolve(TAKE_PTR(ns->root));
    waitq_wake_all(&ns->changed);
    userns_unref(ns->owner);
    ucharge_drop(&ns->charge);
    mem_free(ns);
}

void mntns_sync(struct ctx *ctx, struct mntns *ns)
{
    /* The list may change while a sync is parked: go by rounds, each over the first mount not seen in this one. */
    uint64_t pass = ++mntns_sync_pass;
    struct mount *m;
restart:
    list_for_each_entry(m, &ns->mounts, ns_link) {
        struct superblock *sb = m->sb;
        if (sb->sync_pass >= pass || !sb->ops || !sb->ops->sync)
            continue;
        sb->sync_pass = pass;
        superblock_ref(sb);
        (void)sb->ops->sync(ctx, sb); /* sync(2) reports nothing */
        superblock_unref(sb);
        goto restart;
    }
}

struct path mntns_root(struct mntns *ns)
{
    struct path p = {mount_ref(ns->root), dentry_ref(ns->root->root)};
    mount_follow_down(&p);
    return p;
}

bool mount_in_ns(const struct mount *m, const struct mntns *ns)
{
    return m->ns == ns;
}

uint64_t mntns_ino(const struct mntns *ns)
{
    return ns->ino;
}

struct userns *mntns_owner(const struct mntns *ns)
{
    return ns->owner;
}

struct waitq *mntns_changed(struct mntns *ns)
{
    return &ns->changed;
}

uint64_t mntns_seq(const struct mntns *ns)
{
    return ns->seq;
}

void mntns_touch(struct mntns *ns)
{
    ns->seq++;
    waitq_wake_all(&ns->changed);
}

/* ---- paths ---- */

/* Names are written from the end of a page-sized buffer towards its start. Nothing parks here. */
struct mntns_path_buf {
    char data[PATH_SIZE_MAX];
    size_t at;
};

static bool mntns_prepend(struct mntns_path_buf *b, const char *name, size_t len)
{
    if (b->at < len + 1)
        return false;
    b->at -= len;
    memcpy(b->data + b->at, name, len);
    b->data[--b->at] = '/';
    return true;
}

int path_print_reach(const struct path *p, const struct path *root, struct buf *out, bool *ret_reachable)
{
    static struct mntns_path_buf b;
    b.at = sizeof(b.data);
    const struct mount *m = p->mount;
    const struct dentry *d = p->dentry;
    *ret_reachable = false;
    if (d->detached) {
        buf_append(out, d->name, d->name_len);
        return buf_error(out);
    }
    for (;;) {
        if (root && d == root->dentry && m == root->mount) {
            *ret_reachable = true;
            break;
        }
        if (m && d == m->root) {
            if (!m->parent)
                break;
            d = m->mountpoint;
            m = m->parent;
            continue;
        }
        if (d->parent == d)
            break;
        if (!mntns_prepend(&b, d->name, d->name_len))
            return -ENAMETOOLONG;
        d = d->parent;
    }
    if (b.at == sizeof(b.data))
        buf_putc(out, '/');
    else
        buf_append(out, b.data + b.at, sizeof(b.data) - b.at);
    return buf_error(out);
}

int path_print(const struct path *p, const struct path *root, struct buf *out)
{
    bool reachable;
    if (p->dentry->detached && p->dentry->deleted)
        buf_putc(out, '/'); /* memfds and the like pose as unlinked files */
    int ret = path_print_reach(p, root, out, &reachable);
    if (ret < 0)
        return ret;
    if (p->dentry->deleted)
        buf_puts(out, " (deleted)");
    return buf_error(out);
}

/* ---- /proc/PID/mounts, mountinfo ---- */

static void mntns_put_escaped(struct buf *out, const char *s, bool hash)
{
    for (; *s; s++) {
        if (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\\' || (hash && *s == '#'))
            buf_printf(out, "\\%03o", (unsigned char)*s);
        else
            buf_putc(out, *s);
    }
}

static void mntns_put_mount_flags(struct buf *out, unsigned long flags)
{
    static const struct {
        unsigned long flag;
        const char *text;
    } names[] = {{MS_NOSUID, ",nosuid"},   {MS_NODEV, ",nodev"},         {MS_NOEXEC, ",noexec"},
                 {MS_NOATIME, ",noatime"}, {MS_NODIRATIME, ",nodiratime"}, {MS_RELATIME, ",relatime"},
                 {MS_NOSYMFOLLOW, ",nosymfollow"}};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (flags & names[i].flag)
            buf_puts(out, names[i].text);
    }
}

int mount_print_options(struct superblock *sb, struct buf *out)
{
    char options[512] = "";
    if (sb->ops && sb->ops->show_options && sb->ops->show_options(sb, options, sizeof(options)) == 0)
        buf_puts(out, *options == ',' ? options + 1 : options);
    return buf_error(out);
}

static void mntns_put_sb_flags(struct buf *out, struct superblock *sb)
{
    if (sb->flags & MS_SYNCHRONOUS)
        buf_puts(out, ",sync");
    if (sb->flags & MS_DIRSYNC)
        buf_puts(out, ",dirsync");
    if (sb->flags & MS_MANDLOCK)
        buf_puts(out, ",mand");
    if (sb->flags & MS_LAZYTIME)
        buf_puts(out, ",lazytime");
    char options[512] = "";
    if (sb->ops && sb->ops->show_options && sb->ops->show_options(sb, options, sizeof(options)) == 0)
        mntns_put_escaped(out, options, false);
}

/* The place of m as seen from root, or false when it can't be seen from there. */
static bool mntns_mountpoint(struct mount *m, const struct path *root, struct buf *ret_text)
{
    struct path p = {m, m->root};
    bool reachable;
    buf_reset(ret_text);
    return path_print_reach(&p, root, ret_text, &reachable) == 0 && reachable;
}

struct superblock *mntns_find_dev(struct mntns *ns, uint32_t dev)
{
    struct mount *m;
    list_for_each_entry(m, &ns->mounts, ns_link) {
        if ((uint32_t)m->sb->dev == dev)
            return superblock_ref(m->sb);
    }
    return NULL;
}

int mntns_print_mounts(struct mntns *ns, const struct path *root, struct buf *out)
{
    CLEANUP_BUF struct buf place = {0};
    struct mount *m;
    list_for_each_entry(m, &ns->mounts, ns_link) {
        if (!mntns_mountpoint(m, root, &place))
            continue;
        mntns_put_escaped(out, m->source && *m->source ? m->source : "none", true);
        buf_putc(out, ' ');
        mntns_put_escaped(out, place.data, false);
        buf_printf(out, " %s %s", m->sb->type, (m->flags | m->sb->flags) & MS_RDONLY ? "ro" : "rw");
        mntns_put_mount_flags(out, m->flags);
        mntns_put_sb_flags(out, m->sb);
        buf_puts(out, " 0 0\n");
    }
    return buf_error(out);
}

int mntns_print_mountinfo(struct mntns *ns, const struct path *root, struct buf *out)
{
    CLEANUP_BUF struct buf place = {0};
    CLEANUP_BUF struct buf fs_root = {0};
    struct mount *m;
    list_for_each_entry(m, &ns->mounts, ns_link) {
        if (!mntns_mountpoint(m, root, &place))
            continue;
        /* The root inside the file system: as a path of a mount that is nowhere. */
        struct path inner = {NULL, m->root};
        bool reachable;
        buf_reset(&fs_root);
        if (path_print_reach(&inner, NULL, &fs_root, &reachable) < 0)
            continue;
        uint64_t dev = m->sb->dev;
        buf_printf(out, "%u %u %u:%u ", m->id, m->parent ? m->parent->id : m->id, major(dev), minor(dev));
        mntns_put_escaped(out, fs_root.data, false);
        buf_putc(out, ' ');
        mntns_put_escaped(out, place.data, false);
        buf_printf(out, " %s", m->flags & MS_RDONLY ? "ro" : "rw");
        mntns_put_mount_flags(out, m->flags);
        if (m->peer_group)
            buf_printf(out, " shared:%u", m->peer_group);
        if (m->master_group)
            buf_printf(out, " master:%u", m->master_group);
        /* Said when the master itself is out of sight. */
        uint32_t from = mount_propagates_from(m, root);
        if (from && from != m->master_group)
            buf_printf(out, " propagate_from:%u", from);
        if (m->unbindable)
            buf_puts(out, " unbindable");
        buf_printf(out, " - %s ", m->sb->type);
        mntns_put_escaped(out, m->source && *m->source ? m->source : "none", true);
        buf_printf(out, " %s", m->sb->flags & MS_RDONLY ? "ro" : "rw");
        mntns_put_sb_flags(out, m->sb);
        buf_putc(out, '\n');
    }
    return buf_error(out);
}
