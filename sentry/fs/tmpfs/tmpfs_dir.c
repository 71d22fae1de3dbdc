/* SPDX-License-Identifier: Apache-2.0 */
/* tmpfs directories: a hash table for look-ups and an array of slots for readdir. Nothing here parks. */
#include "sentry/fs/tmpfs/tmpfs_priv.h"

#include <dirent.h>
#include <errno.h>
#include <linux/fs.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "sentry/vfs/acl.h"

enum { TMPFS_DIR_MIN = 8 };
#define TMPFS_NO_SLOT UINT32_MAX

static uint32_t tmpfs_hash(const char *name, size_t len)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619U;
    return h ^ (h >> 15);
}

static struct tmpfs_dirent *tmpfs_dir_find(const struct tmpfs_dir *d, const char *name)
{
    if (!d->count)
        return NULL;
    size_t len = strlen(name);
    uint32_t hash = tmpfs_hash(name, len);
    for (struct tmpfs_dirent *e = d->buckets[hash & (d->buckets_len - 1)]; e; e = e->hash_next) {
        if (e->hash == hash && e->name_len == len && !memcmp(e->name, name, len))
            return e;
    }
    return NULL;
}

static void tmpfs_dir_clear(struct tmpfs_dir *d)
{
    mem_free(d->slots);
    mem_free(d->buckets);
    *d = (struct tmpfs_dir){.free_slot = TMPFS_NO_SLOT};
}

static int tmpfs_dir_grow_buckets(struct tmpfs_dir *d)
{
    uint32_t len = d->buckets_len ? d->buckets_len * 2 : TMPFS_DIR_MIN;
    struct tmpfs_dirent **buckets = NEW_ARRAY(struct tmpfs_dirent *, len);
    if (!buckets)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->buckets_len; i++) {
        for (struct tmpfs_dirent *e = d->buckets[i], *next; e; e = next) {
            next = e->hash_next;
            e->hash_next = buckets[e->hash & (len - 1)];
            buckets[e->hash & (len - 1)] = e;
        }
    }
    mem_free(d->buckets);
    d->buckets = buckets;
    d->buckets_len = len;
    return 0;
}

static int tmpfs_dir_grow_slots(struct tmpfs_dir *d)
{
    uint32_t len = d->slots_len ? d->slots_len * 2 : TMPFS_DIR_MIN;
    if (len > UINT32_MAX / 4)
        return -ENOSPC;
    union tmpfs_slot *slots = mem_realloc(d->slots, len, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    d->slots = slots;
    /* The lowest new slot comes first, so that listings start in the order of creation. */
    for (uint32_t i = len; i-- > d->slots_len;) {
        slots[i].next_free = (uintptr_t)d->free_slot * 2 + 1;
        d->free_slot = i;
    }
    d->slots_len = len;
    return 0;
}

/* Adds an entry. Takes its own reference of inode. */
static int tmpfs_dir_insert(struct inode *dir, const char *name, struct inode *inode)
{
    struct tmpfs_dir *d = &to_tmpfs(dir)->dir;
    size_t len = strlen(name);
    int ret = 0;
    if (d->count >= d->buckets_len)
        ret = tmpfs_dir_grow_buckets(d);
    if (ret == 0 && d->free_slot == TMPFS_NO_SLOT)
        ret = tmpfs_dir_grow_slots(d);
    if (ret < 0)
        return ret;
    struct tmpfs_dirent *e = mem_zalloc(sizeof(*e) + len + 1);
    if (!e)
        return -ENOMEM;
    memcpy(e->name, name, len);
    e->name_len = (uint8_t)len;
    e->hash = tmpfs_hash(name, len);
    e->inode = inode_ref(inode);
    e->slot = d->free_slot;
    d->free_slot = (uint32_t)(d->slots[e->slot].next_free / 2);
    d->slots[e->slot].entry = e;
    struct tmpfs_dirent **bucket = &d->buckets[e->hash & (d->buckets_len - 1)];
    e->hash_next = *bucket;
    *bucket = e;
    d->count++;
    dir->size += TMPFS_DIRENT_SIZE;
    return 0;
}

static void tmpfs_dir_remove(struct inode *dir, struct tmpfs_dirent *e)
{
    struct tmpfs_dir *d = &to_tmpfs(dir)->dir;
    struct tmpfs_dirent **at = &d->buckets[e->hash & (d->buckets_len - 1)];
    while (*at != e)
        at = &(*at)->hash_next;
    *at = e->hash_next;
    d->slots[e->slot].next_free = (uintptr_t)d->free_slot * 2 + 1;
    d->free_slot = e->slot;
    inode_unref(e->inode);
    mem_free(e);
    dir->size -= TMPFS_DIRENT_SIZE;
    if (--d->count == 0)
        tmpfs_dir_clear(d);
}

/* Children that are directories wait on a list instead of being freed from within their parent's eviction: a tree can be
 * deeper than the stack. */
static struct tmpfs_inode *tmpfs_doomed;
static bool tmpfs_draining;

void tmpfs_dir_free(struct tmpfs_inode *ti)
{
    struct tmpfs_dir *d = &ti->dir;
    for (uint32_t i = 0; i < d->slots_len; i++) {
        struct tmpfs_dirent *e = d->slots[i].entry;
        if (d->slots[i].next_free & 1)
            continue;
        if (inode_is_dir(e->inode)) {
            to_tmpfs(e->inode)->doomed_next = tmpfs_doomed;
            tmpfs_doomed = to_tmpfs(e->inode);
        } else {
            inode_unref(e->inode);
        }
        mem_free(e);
    }
    tmpfs_dir_clear(d);
    if (tmpfs_draining)
        return;
    tmpfs_draining = true;
    while (tmpfs_doomed) {
        struct tmpfs_inode *next = tmpfs_doomed;
        tmpfs_doomed = next->doomed_next;
        inode_unref(&next->inode);
    }
    tmpfs_draining = false;
}

/* ---- operations ---- */

static int tmpfs_lookup(struct ctx *ctx, struct inode *dir, const char *name, struct inode **ret_inode)
{
    struct tmpfs_dirent *e = tmpfs_dir_find(&to_tmpfs(dir)->dir, name);
    if (!e)
        return -ENOENT;
    *ret_inode = inode_ref(e->inode);
    return 0;
}

/* Some flags of a directory are those of what is made in it. */
static int tmpfs_child_new(const struct inode *dir, const struct newattr *attr, struct inode **ret_inode)
{
    int ret = tmpfs_inode_new(dir->sb, attr, ret_inode);
    if (ret == 0)
        (*ret_inode)->flags = dir->flags & (INODE_FL_NODUMP | INODE_FL_NOATIME);
    return ret;
}

/* Makes an inode and its entry. */
static int tmpfs_make(struct inode *dir, const char *name, const struct newattr *attr,
                      struct inode **ret_inode)
{
    if (tmpfs_dir_find(&to_tmpfs(dir)->dir, name))
        return -EEXIST;
    struct inode *inode;
    int ret = tmpfs_child_new(dir, attr, &inode);
    if (ret < 0)
        return ret;
    ret = tmpfs_dir_insert(dir, name, inode);
    if (ret < 0) {
        inode_unref(inode);
        return ret;
    }
    if (inode_is_dir(inode))
        dir->nlink++;
    inode_touch(dir, IATTR_MTIME | IATTR_CTIME);
    *ret_inode = inode;
    return 0;
}

static int tmpfs_create(struct ctx *ctx, struct inode *dir, const char *name, const struct newattr *attr,
                        struct inode **ret_inode)
{
    return tmpfs_make(dir, name, attr, ret_inode);
}

static int tmpfs_symlink(struct ctx *ctx, struct inode *dir, const char *name, const char *target,
                         const struct newattr *attr, struct inode **ret_inode)
{
    char *text = mem_strdup(target);
    if (!text)
        return -ENOMEM;
    struct inode *inode;
    int ret = tmpfs_make(dir, name, attr, &inode);
    if (ret < 0) {
        mem_free(text);
        return ret;
    }
    inode->link_text = text;
    inode->size = strlen(text);
    *ret_inode = inode;
    return 0;
}

static int tmpfs_tmpfile(struct ctx *ctx, struct inode *dir, const struct newattr *attr,
                         struct inode **ret_inode)
{
    int ret = tmpfs_child_new(dir, attr, ret_inode);
    if (ret == 0)
        (*ret_inode)->nlink = 0;
    return ret;
}

static int tmpfs_link(struct ctx *ctx, struct inode *inode, struct inode *dir, const char *name)
{
    if (tmpfs_dir_find(&to_tmpfs(dir)->dir, name))
        return -EEXIST;
    int ret = tmpfs_dir_insert(dir, name, inode);
    if (ret < 0)
        return ret;
    inode->nlink++;
    inode_touch(inode, IATTR_CTIME);
    inode_touch(dir, IATTR_MTIME | IATTR_CTIME);
    return 0;
}

static int tmpfs_unlink(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    struct tmpfs_dirent *e = tmpfs_dir_find(&to_tmpfs(dir)->dir, name);
    if (!e || e->inode != inode)
        return -ENOENT;
    inode->nlink--;
    inode_touch(inode, IATTR_CTIME);
    tmpfs_dir_remove(dir, e);
    inode_touch(dir, IATTR_MTIME | IATTR_CTIME);
    return 0;
}

static int tmpfs_rmdir(struct ctx *ctx, struct inode *dir, const char *name, struct inode *inode)
{
    struct tmpfs_dirent *e = tmpfs_dir_find(&to_tmpfs(dir)->dir, name);
    if (!e || e->inode != inode)
        return -ENOENT;
    if (to_tmpfs(inode)->dir.count)
        return -ENOTEMPTY;
    inode->nlink = 0;
    dir->nlink--;
    inode_touch(inode, IATTR_CTIME);
    tmpfs_dir_remove(dir, e);
    inode_touch(dir, IATTR_MTIME | IATTR_CTIME);
    return 0;
}

static void tmpfs_rename_stamp(struct inode *old_dir, struct inode *new_dir, struct inode *inode)
{
    inode_touch(old_dir, IATTR_MTIME | IATTR_CTIME);
    inode_touch(new_dir, IATTR_MTIME | IATTR_CTIME);
    inode_touch(inode, IATTR_CTIME);
}

static int tmpfs_exchange(struct inode *old_dir, struct tmpfs_dirent *a, struct inode *new_dir,
                          struct tmpfs_dirent *b)
{
    struct inode *inode = a->inode;
    a->inode = b->inode;
    b->inode = inode;
    if (old_dir != new_dir && inode_is_dir(a->inode) != inode_is_dir(b->inode)) {
        old_dir->nlink += inode_is_dir(a->inode) ? 1 : -1;
        new_dir->nlink += inode_is_dir(b->inode) ? 1 : -1;
    }
    tmpfs_rename_stamp(old_dir, new_dir, a->inode);
    inode_touch(b->inode, IATTR_CTIME);
    return 0;
}

/* The inode that takes the old name's place: a character device 0:0. */
static int tmpfs_new_whiteout(struct ctx *ctx, struct inode *dir, struct inode **ret_inode)
{
    struct newattr attr = {0};
    int ret = vfs_new_owner(ctx, dir, S_IFCHR, 0, &attr);
    if (ret == 0)
        ret = tmpfs_child_new(dir, &attr, ret_inode);
    newattr_done(&attr);
    return ret;
}

static int tmpfs_rename(struct ctx *ctx, struct inode *old_dir, const char *old_name, struct inode *inode,
                        struct inode *new_dir, const char *new_name, struct inode *target, unsigned flags)
{
    struct tmpfs_dirent *old_e = tmpfs_dir_find(&to_tmpfs(old_dir)->dir, old_name);
    struct tmpfs_dirent *new_e = tmpfs_dir_find(&to_tmpfs(new_dir)->dir, new_name);
    if (!old_e || old_e->inode != inode || (new_e ? new_e->inode : NULL) != target)
        return -ENOENT;
    if (flags & RENAME_EXCHANGE)
        return tmpfs_exchange(old_dir, old_e, new_dir, new_e);
    if (target && inode_is_dir(target) && to_tmpfs(target)->dir.count)
        return -ENOTEMPTY;
    struct inode *whiteout = NULL;
    if (flags & RENAME_WHITEOUT) {
        int ret = tmpfs_new_whiteout(ctx, old_dir, &whiteout);
        if (ret < 0)
            return ret;
    }
    if (new_e) {
        new_e->inode = inode_ref(inode);
        if (inode_is_dir(target)) {
            target->nlink = 0;
            new_dir->nlink--;
        } else {
            target->nlink--;
        }
        inode_touch(target, IATTR_CTIME);
        inode_unref(target); /* the entry's; the caller has its own */
    } else {
        int ret = tmpfs_dir_insert(new_dir, new_name, inode);
        if (ret < 0) {
            inode_unref(whiteout);
            return ret;
        }
        old_e = tmpfs_dir_find(&to_tmpfs(old_dir)->dir, old_name);
    }
    if (inode_is_dir(inode)) {
        old_dir->nlink--;
        new_dir->nlink++;
    }
    if (whiteout) {
        inode_unref(old_e->inode);
        old_e->inode = whiteout;
    } else {
        tmpfs_dir_remove(old_dir, old_e);
    }
    tmpfs_rename_stamp(old_dir, new_dir, inode);
    return 0;
}

static int tmpfs_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink)
{
    struct tmpfs_dir *d = &to_tmpfs(f->inode)->dir;
    if (!dir_emit_dots(f, sink))
        return 0;
    for (uint64_t slot = (uint64_t)f->pos - 2; slot < d->slots_len; slot++) {
        f->pos = (int64_t)slot + 2;
        if (d->slots[slot].next_free & 1)
            continue;
        const struct tmpfs_dirent *e = d->slots[slot].entry;
        if (!sink->emit(sink, e->name, e->name_len, e->inode->ino, IFTODT(e->inode->mode), f->pos + 1))
            return 0;
        f->pos++;
    }
    return 0;
}

static int tmpfs_dir_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    return 0;
}

static const struct file_ops tmpfs_dir_fops = {.readdir = tmpfs_readdir, .fsync = tmpfs_dir_fsync};

static int tmpfs_dir_open(struct ctx *ctx, struct inode *inode, struct file *file)
{
    file->ops = &tmpfs_dir_fops;
    return 0;
}

const struct inode_ops tmpfs_dir_iops = {
    .lookup = tmpfs_lookup,
    .create = tmpfs_create,
    .mkdir = tmpfs_create,
    .mknod = tmpfs_create,
    .symlink = tmpfs_symlink,
    .link = tmpfs_link,
    .unlink = tmpfs_unlink,
    .rmdir = tmpfs_rmdir,
    .rename = tmpfs_rename,
    .tmpfile = tmpfs_tmpfile,
    .open = tmpfs_dir_open,
    .getxattr = tmpfs_getxattr,
    .setxattr = tmpfs_setxattr,
    .listxattr = tmpfs_listxattr,
    .removexattr = tmpfs_removexattr,
    .fileattr_get = tmpfs_fileattr_get,
    .fileattr_set = tmpfs_fileattr_set,
    .evict = tmpfs_evict,
};
