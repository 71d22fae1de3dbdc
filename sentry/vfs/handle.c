/* SPDX-License-Identifier: Apache-2.0 */
/* File handles, and the dentries that are kept for them. */
#include "sentry/vfs/handle.h"

#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"
#include "sentry/vfs/dentry_priv.h"

enum {
    HANDLE_TABLE_BITS = 12,
    HANDLE_TYPE_OPEN = 1,   /* FILEID_INO32_GEN; what tmpfs gives */
    HANDLE_TYPE_FID = 0x81, /* FILEID_INO64_GEN */
};

struct handle_kept {
    struct list link;              /* in the order of giving out */
    struct handle_kept *hash_next; /* by inode */
    struct dentry *dentry;         /* referenced; d->handled is set */
};

static struct handle_kept *handle_table[1U << HANDLE_TABLE_BITS];
static struct list handle_all = LIST_INIT(handle_all);
static unsigned handle_len;

static uint64_t handle_mix(uint64_t h)
{
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return h ^ (h >> 33);
}

/* What tells a file from an earlier one of the same number, and a handle from an invented one. */
static uint32_t handle_generation(const struct inode *inode)
{
    static uint64_t key[2];
    if (!key[0])
        host_random(key, sizeof(key));
    uint64_t h = handle_mix(key[0] ^ inode->ino);
    h = handle_mix(h ^ inode->sb->dev);
    if (inode->has_btime)
        h = handle_mix(h ^ (uint64_t)inode->btime.tv_sec ^ (uint64_t)inode->btime.tv_nsec << 34);
    return (uint32_t)handle_mix(h ^ key[1]);
}

static struct handle_kept **handle_bucket(const struct superblock *sb, uint64_t ino)
{
    return &handle_table[handle_mix((uintptr_t)sb ^ ino) >> (64 - HANDLE_TABLE_BITS)];
}

static struct handle_kept *handle_find(const struct superblock *sb, uint64_t ino)
{
    struct handle_kept *k = *handle_bucket(sb, ino);
    while (k && (k->dentry->sb != sb || k->dentry->inode->ino != ino))
        k = k->hash_next;
    return k;
}

/* Stops keeping k->dentry. */
static void handle_drop(struct handle_kept *k)
{
    struct dentry *d = k->dentry;
    struct handle_kept **at = handle_bucket(d->sb, d->inode->ino);
    while (*at != k)
        at = &(*at)->hash_next;
    *at = k->hash_next;
    list_del(&k->link);
    handle_len--;
    d->handled = false;
    mem_free(k);
    dentry_unref(d);
}

static int handle_keep(struct dentry *d)
{
    struct handle_kept *k = handle_find(d->sb, d->inode->ino);
    if (k) {
        list_del(&k->link);
        list_add_tail(&handle_all, &k->link);
        return 0;
    }
    /* A file without a name (or whose name went) can't be found by anything but its descriptors. */
    if (d->detached || (!d->hash_pprev && d->parent != d))
        return 0;
    k = NEW(struct handle_kept);
    if (!k)
        return -ENOMEM;
    if (handle_len >= HANDLE_KEPT_MAX)
        handle_drop(list_first(&handle_all, struct handle_kept, link));
    struct handle_kept **bucket = handle_bucket(d->sb, d->inode->ino);
    k->dentry = dentry_ref(d);
    k->hash_next = *bucket;
    *bucket = k;
    list_add_tail(&handle_all, &k->link);
    handle_len++;
    d->handled = true;
    return 0;
}

void handle_encode_fid(const struct inode *inode, struct handle *ret_handle)
{
    uint32_t generation = handle_generation(inode);
    ret_handle->size = HANDLE_SIZE;
    if (inode->sb->has_handles) {
        ret_handle->type = HANDLE_TYPE_OPEN;
        memcpy(ret_handle->data, &generation, 4);
        memcpy(ret_handle->data + 4, &inode->ino, 8);
    } else {
        ret_handle->type = HANDLE_TYPE_FID;
        memcpy(ret_handle->data, &inode->ino, 8);
        memcpy(ret_handle->data + 8, &generation, 4);
    }
}

int handle_encode(struct dentry *d, bool fid, struct handle *ret_handle)
{
    if (!fid) {
        if (!d->sb->has_handles)
            return -EOPNOTSUPP;
        int ret = handle_keep(d);
        if (ret < 0)
            return ret;
    }
    handle_encode_fid(d->inode, ret_handle);
    return 0;
}

void handle_print(const struct inode *inode, struct buf *out)
{
    struct handle h;
    handle_encode_fid(inode, &h);
    buf_printf(out, "fhandle-bytes:%x fhandle-type:%x f_handle:", h.size, (unsigned)h.type);
    for (uint32_t i = 0; i < h.size; i++)
        buf_printf(out, "%02x", h.data[i]);
}

int handle_decode(struct superblock *sb, const void *data, uint32_t size, int32_t type,
                  struct dentry **ret_dentry)
{
    uint32_t generation;
    uint64_t ino;
    if (!sb->has_handles || size < HANDLE_SIZE || type != HANDLE_TYPE_OPEN)
        return -ESTALE;
    memcpy(&generation, data, 4);
    memcpy(&ino, (const char *)data + 4, 8);
    struct handle_kept *k = handle_find(sb, ino);
    if (!k || handle_generation(k->dentry->inode) != generation)
        return -ESTALE;
    *ret_dentry = dentry_ref(k->dentry);
    return 0;
}

void handle_forget(struct dentry *d)
{
    if (!d->handled)
        return;
    struct inode *inode = inode_ref(d->inode);
    handle_drop(handle_find(d->sb, d->inode->ino));
    /* Another of its names does as well. */
    struct dentry *other;
    list_for_each_entry (other, &inode->dentries, alias) {
        if (other != d && other->hash_pprev) {
            (void)!handle_keep(other); /* without memory handles of it go stale */
            break;
        }
    }
    inode_unref(inode);
}

void handle_forget_sb(struct superblock *sb)
{
    struct handle_kept *k, *tmp;
    if (!sb->has_handles)
        return;
    list_for_each_entry_safe (k, tmp, &handle_all, link) {
        if (k->dentry->sb == sb)
            handle_drop(k);
    }
}
