/* SPDX-License-Identifier: Apache-2.0 */
/* tmpfs instances: options, limits, inodes. */
#include "sentry/fs/tmpfs/tmpfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "platform/base/alloc.h"
#include "platform/base/host.h"
#include "sentry/core/cred.h"
#include "sentry/core/limits.h"
#include "sentry/fs/fs_options.h"
#include "sentry/fs/tmpfs/tmpfs_priv.h"

enum { TMPFS_SUPER_MAGIC = 0x01021994 };

static uint64_t tmpfs_default_pages;

uint64_t tmpfs_room(const struct tmpfs_sb *s)
{
    if (!s->max_pages)
        return UINT64_MAX;
    return s->max_pages > s->used_pages ? s->max_pages - s->used_pages : 0;
}

/* ---- inodes ---- */

static const struct inode_ops *tmpfs_iops(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return &tmpfs_dir_iops;
    case S_IFREG:
        return &tmpfs_reg_iops;
    case S_IFLNK:
        return &tmpfs_symlink_iops;
    default:
        return &tmpfs_special_iops;
    }
}

int tmpfs_inode_new(struct superblock *sb, const struct newattr *attr, struct inode **ret_inode)
{
    struct tmpfs_sb *s = sb->priv;
    if (s->max_inodes && s->used_inodes >= s->max_inodes)
        return -ENOSPC;
    if (limit_charge(LIMIT_KIND_TMPFS_INODES, 1) < 0)
        return -ENOSPC;
    struct inode *inode = inode_alloc(sb, tmpfs_iops(attr->mode), sizeof(struct tmpfs_inode), attr->mode);
    if (!inode) {
        limit_uncharge(LIMIT_KIND_TMPFS_INODES, 1);
        return -ENOMEM;
    }
    s->used_inodes++;
    inode->ino = ++s->last_ino;
    inode->uid = attr->uid;
    inode->gid = attr->gid;
    inode->rdev = attr->rdev;
    inode->has_btime = true;
    if (S_ISDIR(attr->mode)) {
        inode->nlink = 2;
        inode->size = 2 * TMPFS_DIRENT_SIZE;
        to_tmpfs(inode)->dir.free_slot = UINT32_MAX;
    } else if (S_ISREG(attr->mode)) {
        to_tmpfs(inode)->reg.fd = to_tmpfs(inode)->reg.ro_fd = -1;
        to_tmpfs(inode)->reg.seals = F_SEAL_SEAL;
    }
    int ret = tmpfs_xattr_inherit(inode, attr);
    if (ret < 0) {
        inode_unref(inode);
        return ret;
    }
    *ret_inode = inode;
    return 0;
}

int tmpfs_fileattr_get(struct ctx *ctx, struct inode *inode, uint32_t *ret_flags)
{
    *ret_flags = inode->flags;
    return 0;
}

int tmpfs_fileattr_set(struct ctx *ctx, struct inode *inode, uint32_t flags)
{
    if (flags & ~(uint32_t)(INODE_FL_IMMUTABLE | INODE_FL_APPEND | INODE_FL_NODUMP | INODE_FL_NOATIME))
        return -EOPNOTSUPP;
    inode->flags = flags;
    inode_touch(inode, IATTR_CTIME);
    return 0;
}

void tmpfs_evict(struct inode *inode)
{
    struct tmpfs_inode *ti = to_tmpfs(inode);
    if (S_ISDIR(inode->mode))
        tmpfs_dir_free(ti);
    else if (S_ISREG(inode->mode))
        tmpfs_reg_free(ti);
    tmpfs_xattr_free(ti);
    tmpfs_sb(inode)->used_inodes--;
    limit_uncharge(LIMIT_KIND_TMPFS_INODES, 1);
}

const struct inode_ops tmpfs_symlink_iops = {
    .getxattr = tmpfs_getxattr,
    .setxattr = tmpfs_setxattr,
    .listxattr = tmpfs_listxattr,
    .removexattr = tmpfs_removexattr,
    .evict = tmpfs_evict,
};

const struct inode_ops tmpfs_special_iops = {
    .open = vfs_special_open,
    .getxattr = tmpfs_getxattr,
    .setxattr = tmpfs_setxattr,
    .listxattr = tmpfs_listxattr,
    .removexattr = tmpfs_removexattr,
    .evict = tmpfs_evict,
};

/* ---- options ---- */

struct tmpfs_options {
    bool has_pages, has_inodes;
    uint64_t pages, inodes;
    bool has_mode, has_uid, has_gid;
    uint32_t mode, uid, gid;
};

/* A number with k, m, g or (percent allowed) % behind it. */
static int tmpfs_parse_size(const struct fs_option *o, bool percent, uint64_t *ret_value)
{
    char text[32], *end;
    if (!o->value || !o->value_len || o->value_len >= sizeof(text))
        return -EINVAL;
    memcpy(text, o->value, o->value_len);
    text[o->value_len] = '\0';
    if (text[0] < '0' || text[0] > '9')
        return -EINVAL;
    uint64_t v = strtoull(text, &end, 0);
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case 't':
    case 'T':
        shift = 40;
        break;
    case '%':
        if (!percent || end[1])
            return -EINVAL;
        *ret_value = tmpfs_default_pages * 2 * PAGE_SIZE / 100 * MIN(v, (uint64_t)100);
        return 0;
    case '\0':
        break;
    default:
        return -EINVAL;
    }
    if (shift && end[1])
        return -EINVAL;
    if (v > (UINT64_MAX >> 1) >> shift)
        return -EINVAL;
    *ret_value = v << shift;
    return 0;
}

static int tmpfs_parse_one(const struct ctx *ctx, const struct fs_option *o, struct tmpfs_options *opts)
{
    uint64_t v;
    int ret;
    if (fs_option_is(o, "size")) {
        ret = tmpfs_parse_size(o, true, &v);
        opts->pages = ret < 0 ? 0 : (v + PAGE_SIZE - 1) >> PAGE_SHIFT;
        opts->has_pages = true;
        return ret;
    }
    if (fs_option_is(o, "nr_blocks")) {
        ret = tmpfs_parse_size(o, false, &opts->pages);
        opts->has_pages = true;
        return ret;
    }
    if (fs_option_is(o, "nr_inodes")) {
        ret = tmpfs_parse_size(o, false, &opts->inodes);
        opts->has_inodes = true;
        return ret;
    }
    if (fs_option_is(o, "mode")) {
        opts->has_mode = true;
        ret = fs_option_u32(o, 8, &opts->mode);
        opts->mode &= 07777;
        return ret;
    }
    if (fs_option_is(o, "uid")) {
        opts->has_uid = true;
        return fs_option_uid(ctx, o, &opts->uid);
    }
    if (fs_option_is(o, "gid")) {
        opts->has_gid = true;
        return fs_option_gid(ctx, o, &opts->gid);
    }
    /* About placement in memory, which is the host's affair here. */
    static const char *const ignored[] = {"huge", "mpol", "inode32", "inode64", "noswap"};
    for (size_t i = 0; i < ARRAY_SIZE(ignored); i++) {
        if (fs_option_is(o, ignored[i]))
            return 0;
    }
    return -EINVAL;
}

static int tmpfs_parse(const struct ctx *ctx, const char *data, struct tmpfs_options *ret_opts)
{
    struct fs_option o;
    struct tmpfs_options opts = {0};
    while (fs_option_next(&data, &o)) {
        int ret = tmpfs_parse_one(ctx, &o, &opts);
        if (ret < 0)
            return ret;
    }
    *ret_opts = opts;
    return 0;
}

/* ---- superblock ---- */

static int tmpfs_statfs(struct ctx *ctx, struct superblock *sb, struct statfs *ret_st)
{
    const struct tmpfs_sb *s = sb->priv;
    if (s->max_pages) {
        ret_st->f_blocks = s->max_pages;
        ret_st->f_bfree = ret_st->f_bavail = tmpfs_room(s);
    }
    if (s->max_inodes) {
        ret_st->f_files = s->max_inodes;
        ret_st->f_ffree = s->max_inodes - MIN(s->used_inodes, s->max_inodes);
    }
    return 0;
}

static int tmpfs_remount(struct ctx *ctx, struct superblock *sb, unsigned long flags, const char *data)
{
    struct tmpfs_sb *s = sb->priv;
    struct tmpfs_options opts;
    int ret = tmpfs_parse(ctx, data, &opts);
    if (ret < 0)
        return ret;
    if (opts.has_pages && opts.pages && opts.pages < s->used_pages)
        return -EINVAL;
    if (opts.has_inodes && opts.inodes && opts.inodes < s->used_inodes)
        return -EINVAL;
    /* From "no limit" to a limit: not allowed, as the use so far was not counted for it. */
    if ((opts.has_pages && opts.pages && !s->max_pages) || (opts.has_inodes && opts.inodes && !s->max_inodes))
        return -EINVAL;
    if (opts.has_pages)
        s->max_pages = opts.pages;
    if (opts.has_inodes)
        s->max_inodes = opts.inodes;
    return 0;
}

static int tmpfs_show_options(struct superblock *sb, char *dst, size_t size)
{
    const struct tmpfs_sb *s = sb->priv;
    struct buf out = {0};
    if (s->max_pages != tmpfs_default_pages)
        buf_printf(&out, ",size=%lluk", (unsigned long long)s->max_pages << (PAGE_SHIFT - 10));
    if (s->max_inodes != tmpfs_default_pages)
        buf_printf(&out, ",nr_inodes=%llu", (unsigned long long)s->max_inodes);
    if (s->mode != 01777)
        buf_printf(&out, ",mode=%03o", s->mode);
    if (s->uid)
        buf_printf(&out, ",uid=%u", s->uid);
    if (s->gid)
        buf_printf(&out, ",gid=%u", s->gid);
    buf_puts(&out, ",inode64");
    int ret = buf_error(&out);
    if (ret == 0)
        snprintf(dst, size, "%s", out.data);
    buf_free(&out);
    return ret;
}

static void tmpfs_sb_free(struct superblock *sb)
{
    mem_free(sb->priv);
}

static const struct sb_ops tmpfs_sb_ops = {
    .statfs = tmpfs_statfs,
    .remount = tmpfs_remount,
    .show_options = tmpfs_show_options,
    .free = tmpfs_sb_free,
};

static int tmpfs_sb_new(const struct tmpfs_options *opts, struct dentry **ret_root)
{
    struct tmpfs_sb *s = NEW(struct tmpfs_sb);
    struct superblock *sb = s ? superblock_new("tmpfs", TMPFS_SUPER_MAGIC, &tmpfs_sb_ops, s) : NULL;
    if (!sb) {
        mem_free(s);
        return -ENOMEM;
    }
    sb->has_handles = true;
    sb->acls = SB_ACLS_HERE;
    s->max_pages = opts->pages;
    s->max_inodes = opts->inodes;
    s->mode = opts->mode;
    s->uid = opts->uid;
    s->gid = opts->gid;
    struct newattr attr = {.mode = S_IFDIR | opts->mode, .uid = opts->uid, .gid = opts->gid};
    struct inode *inode;
    int ret = tmpfs_inode_new(sb, &attr, &inode);
    if (ret == 0) {
        *ret_root = dentry_new_root(inode);
        ret = *ret_root ? 0 : -ENOMEM;
    }
    superblock_unref(sb);
    return ret;
}

int tmpfs_new(struct ctx *ctx, unsigned long flags, const char *data, struct dentry **ret_root)
{
    struct tmpfs_options opts;
    int ret = tmpfs_parse(ctx, data, &opts);
    if (ret < 0)
        return ret;
    if (!opts.has_pages)
        opts.pages = tmpfs_default_pages;
    if (!opts.has_inodes)
        opts.inodes = tmpfs_default_pages;
    if (!opts.has_mode)
        opts.mode = 01777;
    if (!opts.has_uid)
        opts.uid = ctx->cred ? ctx->cred->fsuid : 0;
    if (!opts.has_gid)
        opts.gid = ctx->cred ? ctx->cred->fsgid : 0;
    return tmpfs_sb_new(&opts, ret_root);
}

static int tmpfs_mount(struct ctx *ctx, unsigned long flags, const char *source, const char *data,
                       struct dentry **ret_root)
{
    return tmpfs_new(ctx, flags, data, ret_root);
}

void tmpfs_register(uint64_t memory_bytes)
{
    static const struct fs_type type = {
        .name = "tmpfs",
        .userns_mount = true,
        .nodev = true,
        .mount = tmpfs_mount,
    };
    tmpfs_default_pages = memory_bytes / PAGE_SIZE / 2;
    fs_type_register(&type);
}

/* ---- files without a name ---- */

int tmpfs_file_new_unlinked(struct ctx *ctx, const char *name, uint32_t mode, uint32_t flags, uint32_t seals,
                            uint64_t size, struct file **ret_file)
{
    static struct mount *internal;
    if (!internal) {
        const struct tmpfs_options opts = {.mode = 01777};
        struct dentry *root;
        int ret = tmpfs_sb_new(&opts, &root);
        if (ret < 0)
            return ret;
        internal = mount_new_internal(root);
        if (!internal)
            return -ENOMEM;
    }
    struct newattr attr = {.mode = S_IFREG | (mode & 07777)};
    if (ctx->cred) {
        attr.uid = ctx->cred->fsuid;
        attr.gid = ctx->cred->fsgid;
    }
    struct inode *inode;
    int ret = tmpfs_inode_new(internal->sb, &attr, &inode);
    if (ret < 0)
        return ret;
    inode->nlink = 0;
    inode->size = size;
    inode->no_sec = true;
    to_tmpfs(inode)->reg.seals = seals;
    struct path path = {.mount = internal, .dentry = dentry_new_detached(inode, name)};
    if (!path.dentry)
        return -ENOMEM;
    path.dentry->deleted = true;
    ret = file_open_inode(ctx, &path, flags, ret_file);
    dentry_unref(path.dentry);
    return ret;
}
