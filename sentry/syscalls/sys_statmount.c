/* SPDX-License-Identifier: Apache-2.0 */
/* statmount, listmount. */
#include "syscalls_gen.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/abi/abi_errno.h"
#include "sentry/core/cred.h"
#include "sentry/core/userns.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/mount.h"

/* Newer than the headers that we build with. */
enum {
    STATMOUNT_SB_BASIC_ = 0x1,
    STATMOUNT_MNT_BASIC_ = 0x2,
    STATMOUNT_PROPAGATE_FROM_ = 0x4,
    STATMOUNT_MNT_ROOT_ = 0x8,
    STATMOUNT_MNT_POINT_ = 0x10,
    STATMOUNT_FS_TYPE_ = 0x20,
    STATMOUNT_MNT_NS_ID_ = 0x40,
    STATMOUNT_MNT_OPTS_ = 0x80,
    STATMOUNT_STRINGS = STATMOUNT_MNT_ROOT_ | STATMOUNT_MNT_POINT_ | STATMOUNT_FS_TYPE_ | STATMOUNT_MNT_OPTS_,
    STATMOUNT_REQ_SIZE_MIN = 24,
    LISTMOUNT_REVERSE_ = 1,
    LISTMOUNT_MAX = 1000000,
};
#define LISTMOUNT_ROOT UINT64_MAX
#define STATMOUNT_ID_FIRST ((1ULL << 31) + 1)

struct statmount_req {
    uint32_t size, spare;
    uint64_t mnt_id, param, mnt_ns_id;
};

/* As of Linux 6.12; the strings come behind it. */
struct statmount_out {
    uint32_t size, mnt_opts;
    uint64_t mask;
    uint32_t sb_dev_major, sb_dev_minor;
    uint64_t sb_magic;
    uint32_t sb_flags, fs_type;
    uint64_t mnt_id, mnt_parent_id;
    uint32_t mnt_id_old, mnt_parent_id_old;
    uint64_t mnt_attr, mnt_propagation, mnt_peer_group, mnt_master, propagate_from;
    uint32_t mnt_root, mnt_point;
    uint64_t mnt_ns_id;
    uint64_t spare[49];
};
_Static_assert(sizeof(struct statmount_out) == 512, "struct statmount");

static int statmount_req_in(struct task *t, uaddr_t addr, struct statmount_req *req)
{
    uint32_t size;
    int ret = COPY_IN(&t->ctx, &size, addr);
    if (ret < 0)
        return ret;
    if (size > PAGE_SIZE)
        return -E2BIG;
    if (size < STATMOUNT_REQ_SIZE_MIN)
        return -EINVAL;
    ret = copy_in_struct(&t->ctx, req, sizeof(*req), addr, size);
    if (ret < 0)
        return ret;
    return req->spare || req->mnt_id < STATMOUNT_ID_FIRST ? -EINVAL : 0;
}

static bool statmount_admin(struct task *t, const struct mntns *ns)
{
    return cred_ns_cap(t->ctx.cred, mntns_owner(ns), CAP_SYS_ADMIN);
}

/* The namespace that is asked about, borrowed, and what is its root for the caller (referenced). Return: 0 or −ENOENT. */
static int statmount_ns(struct task *t, const struct statmount_req *req, struct mntns **ret_ns,
                        struct path *ret_root)
{
    struct mntns *ns = t->ns->mnt;
    if (!req->mnt_ns_id || req->mnt_ns_id == mntns_id(ns)) {
        *ret_root = path_ref(t->fs->root);
    } else {
        ns = mntns_find_peek(req->mnt_ns_id);
        if (!ns || !statmount_admin(t, ns))
            return -ENOENT;
        *ret_root = mntns_root(ns);
    }
    *ret_ns = ns;
    return 0;
}

/* ---- statmount ---- */

static uint64_t statmount_attr(unsigned long flags)
{
    static const struct {
        unsigned long flag;
        uint64_t attr;
    } map[] = {{MS_RDONLY, MOUNT_ATTR_RDONLY},
               {MS_NOSUID, MOUNT_ATTR_NOSUID},
               {MS_NODEV, MOUNT_ATTR_NODEV},
               {MS_NOEXEC, MOUNT_ATTR_NOEXEC},
               {MS_NODIRATIME, MOUNT_ATTR_NODIRATIME},
               {MS_NOSYMFOLLOW, MOUNT_ATTR_NOSYMFOLLOW}};
    uint64_t attr = 0;
    for (size_t i = 0; i < ARRAY_SIZE(map); i++)
        attr |= flags & map[i].flag ? map[i].attr : 0;
    if (flags & MS_NOATIME)
        return attr | MOUNT_ATTR_NOATIME;
    return flags & MS_RELATIME ? attr : attr | MOUNT_ATTR_STRICTATIME;
}

static void statmount_basic(const struct mount *m, struct statmount_out *out)
{
    const struct mount *parent = m->parent ? m->parent : m;
    out->mnt_id = m->unique_id;
    out->mnt_id_old = m->id;
    out->mnt_parent_id = parent->unique_id;
    out->mnt_parent_id_old = parent->id;
    out->mnt_attr = statmount_attr(m->flags);
    out->mnt_peer_group = m->peer_group;
    out->mnt_master = m->master_group;
    out->mnt_propagation = m->peer_group ? MS_SHARED : 0;
    if (m->master_group)
        out->mnt_propagation |= MS_SLAVE;
    if (m->unbindable)
        out->mnt_propagation |= MS_UNBINDABLE;
    if (!out->mnt_propagation)
        out->mnt_propagation = MS_PRIVATE;
}

static int statmount_print(const struct mount *m, const struct path *root, uint32_t what, struct buf *text)
{
    const struct path inner = {NULL, m->root}, place = {(struct mount *)m, m->root};
    bool reachable;
    switch (what) {
    case STATMOUNT_FS_TYPE_:
        buf_puts(text, m->sb->type);
        return buf_error(text);
    case STATMOUNT_MNT_ROOT_:
        return path_print_reach(&inner, NULL, text, &reachable);
    case STATMOUNT_MNT_POINT_: {
        struct buf path = {0};
        int ret = path_print_reach(&place, root, &path, &reachable);
        if (ret == 0 && reachable)
            buf_puts(text, path.data);
        buf_free(&path);
        return ret < 0 ? ret : buf_error(text);
    }
    default:
        return mount_print_options(m->sb, text);
    }
}

/* One of the strings, which is left out when it is empty. */
static int statmount_string(const struct mount *m, const struct path *root, uint32_t what, uint32_t *field,
                            struct statmount_out *out, struct buf *text)
{
    size_t start = text->size;
    int ret = statmount_print(m, root, what, text);
    if (ret < 0 || text->size == start)
        return ret;
    buf_putc(text, '\0');
    *field = (uint32_t)start;
    out->mask |= what;
    return buf_error(text);
}

static int statmount_fill(const struct mount *m, const struct path *root, uint64_t mask,
                          struct statmount_out *out, struct buf *text)
{
    if (mask & STATMOUNT_SB_BASIC_) {
        out->sb_dev_major = major(m->sb->dev);
        out->sb_dev_minor = minor(m->sb->dev);
        out->sb_magic = m->sb->magic;
        out->sb_flags = (uint32_t)(m->sb->flags & (MS_RDONLY | MS_SYNCHRONOUS | MS_DIRSYNC | MS_LAZYTIME));
    }
    if (mask & STATMOUNT_MNT_BASIC_)
        statmount_basic(m, out);
    if (mask & STATMOUNT_PROPAGATE_FROM_)
        out->propagate_from = mount_propagates_from(m, root);
    if (mask & STATMOUNT_MNT_NS_ID_)
        out->mnt_ns_id = mntns_id(m->ns);
    out->mask = mask & (STATMOUNT_SB_BASIC_ | STATMOUNT_MNT_BASIC_ | STATMOUNT_PROPAGATE_FROM_ | STATMOUNT_MNT_NS_ID_);
    const struct {
        uint32_t what, *field;
    } strings[] = {{STATMOUNT_FS_TYPE_, &out->fs_type},
                   {STATMOUNT_MNT_ROOT_, &out->mnt_root},
                   {STATMOUNT_MNT_POINT_, &out->mnt_point},
                   {STATMOUNT_MNT_OPTS_, &out->mnt_opts}};
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        if (!(mask & strings[i].what))
            continue;
        int ret = statmount_string(m, root, strings[i].what, strings[i].field, out, text);
        if (ret < 0)
            return ret;
    }
    return 0;
}

int64_t sys_statmount(struct task *t, uaddr_t req_addr, uaddr_t buf, uint64_t bufsize, uint32_t flags)
{
    struct statmount_req req = {0};
    struct statmount_out out = {0};
    CLEANUP_BUF struct buf text = {0};
    CLEANUP_PATH struct path root = {0};
    struct mntns *ns;
    if (flags)
        return -EINVAL;
    int ret = statmount_req_in(t, req_addr, &req);
    if (ret == 0 && (req.param & STATMOUNT_STRINGS) && bufsize == sizeof(out))
        ret = -EOVERFLOW;
    if (ret == 0)
        ret = statmount_ns(t, &req, &ns, &root);
    if (ret < 0)
        return ret;
    struct mount *m = mntns_mount_peek(ns, req.mnt_id);
    if (!m)
        return -ENOENT;
    if (!mount_reachable(m, &root) && !statmount_admin(t, ns))
        return -EPERM;
    ret = statmount_fill(m, &root, req.param, &out, &text);
    if (ret < 0)
        return ret;
    /* Nothing of the mount is looked at from here on. */
    size_t head = MIN(bufsize, sizeof(out));
    if (text.size && text.size > bufsize - head)
        return -EOVERFLOW;
    out.size = (uint32_t)(head + text.size);
    if (text.size)
        ret = copy_out(&t->ctx, uaddr_add(buf, sizeof(out)), text.data, text.size);
    return ret < 0 ? ret : copy_out(&t->ctx, buf, &out, head);
}

/* ---- listmount ---- */

static int64_t listmount_out(struct task *t, const uint64_t *ids, unsigned len, uint64_t after, bool reverse,
                             uaddr_t dst, uint64_t nr)
{
    enum { CHUNK = 64 };
    uint64_t chunk[CHUNK], done = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < len && done + n < nr; i++) {
        uint64_t id = ids[reverse ? len - 1 - i : i];
        if (after && (reverse ? id >= after : id <= after))
            continue;
        chunk[n++] = id;
        if (n < CHUNK)
            continue;
        int ret = copy_out(&t->ctx, uaddr_add(dst, done * 8), chunk, sizeof(chunk));
        if (ret < 0)
            return ret;
        done += n;
        n = 0;
    }
    int ret = n ? copy_out(&t->ctx, uaddr_add(dst, done * 8), chunk, n * sizeof(*chunk)) : 0;
    return ret < 0 ? ret : (int64_t)(done + n);
}

int64_t sys_listmount(struct task *t, uaddr_t req_addr, uaddr_t dst, uint64_t nr, uint32_t flags)
{
    struct statmount_req req = {0};
    CLEANUP_PATH struct path root = {0};
    struct mntns *ns;
    if (flags & ~(uint32_t)LISTMOUNT_REVERSE_)
        return -EINVAL;
    if (nr > LISTMOUNT_MAX)
        return -EOVERFLOW;
    int ret = statmount_req_in(t, req_addr, &req);
    if (ret == 0 && req.param && req.param < STATMOUNT_ID_FIRST)
        ret = -EINVAL;
    if (ret == 0)
        ret = statmount_ns(t, &req, &ns, &root);
    if (ret < 0)
        return ret;
    struct path top = root;
    if (req.mnt_id != LISTMOUNT_ROOT) {
        top.mount = mntns_mount_peek(ns, req.mnt_id);
        if (!top.mount)
            return -ENOENT;
        top.dentry = top.mount->root;
    }
    if (req.mnt_id != LISTMOUNT_ROOT && !mount_reachable(top.mount, &root) && !statmount_admin(t, ns))
        return -EPERM;
    CLEANUP_FREE uint64_t *ids = NULL;
    unsigned len;
    ret = mntns_list_below(ns, &top, req.mnt_id, &ids, &len);
    if (ret < 0)
        return ret;
    return listmount_out(t, ids, len, req.param, flags & LISTMOUNT_REVERSE_, dst, nr);
}
