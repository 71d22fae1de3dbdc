/* SPDX-License-Identifier: Apache-2.0 */
/* Listing directories. One that only one layer has is listed by that layer; of others each open file has a list of its own, made when
 * it is at the start, so that positions stay what they are whatever happens meanwhile. */
#include "sentry/fs/overlay/ovl_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "platform/base/alloc.h"

enum { OVL_LIST_BYTES_MAX = 64 << 20 }; /* entries and names of one list */

struct ovl_entry {
    uint64_t ino, lower_ino; /* lower_ino: of the directory that a lower layer has below this one, or 0 */
    uint32_t name, hash; /* where in names */
    uint8_t len, type;
    bool whiteout, check; /* check: a character device of the layer being read, yet to be looked at */
    bool from_lower;
};

struct ovl_list {
    struct dir_sink sink;
    struct ovl_sb *s;
    struct ovl_entry *entries;
    uint32_t *slots; /* open addressing, index + 1; slots_len is a power of two */
    char *names;
    uint32_t len, room, slots_len, names_len, names_room;
    unsigned layer;
    int error;
};

struct ovl_dir_file {
    struct file *real;     /* the one layer's; NULL: list */
    struct ovl_list *list; /* NULL: not made yet */
};

static uint32_t ovl_name_hash(const char *name, size_t len)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619U;
    return h ^ (h >> 15);
}

static void ovl_list_free(struct ovl_list *l)
{
    if (!l)
        return;
    mem_free(l->entries);
    mem_free(l->slots);
    mem_free(l->names);
    mem_free(l);
}

static int ovl_list_grow(struct ovl_list *l, size_t name_len)
{
    if (l->len == l->room) {
        uint32_t room = l->room ? l->room * 2 : 32;
        if ((size_t)room * sizeof(*l->entries) + l->names_room > OVL_LIST_BYTES_MAX)
            return -ENOMEM;
        struct ovl_entry *entries = mem_realloc(l->entries, room, sizeof(*entries));
        if (!entries)
            return -ENOMEM;
        l->entries = entries;
        l->room = room;
        uint32_t *slots = NEW_ARRAY(uint32_t, room * 2);
        if (!slots)
            return -ENOMEM;
        mem_free(l->slots);
        l->slots = slots;
        l->slots_len = room * 2;
        for (uint32_t i = 0; i < l->len; i++) {
            uint32_t at = entries[i].hash & (l->slots_len - 1);
            while (slots[at])
                at = (at + 1) & (l->slots_len - 1);
            slots[at] = i + 1;
        }
    }
    if (l->names_len + name_len + 1 > l->names_room) {
        uint32_t room = l->names_room ? l->names_room * 2 : 1024;
        if ((size_t)l->room * sizeof(*l->entries) + room > OVL_LIST_BYTES_MAX)
            return -ENOMEM;
        char *names = mem_realloc(l->names, room, 1);
        if (!names)
            return -ENOMEM;
        l->names = names;
        l->names_room = room;
    }
    return 0;
}

static bool ovl_list_emit(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned type, int64_t next)
{
    struct ovl_list *l = container_of(sink, struct ovl_list, sink);
    if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.') || len > NAME_LEN_MAX)
        return true;
    l->error = ovl_list_grow(l, len);
    if (l->error)
        return false;
    uint32_t hash = ovl_name_hash(name, len), at = hash & (l->slots_len - 1);
    for (; l->slots[at]; at = (at + 1) & (l->slots_len - 1)) {
        struct ovl_entry *e = &l->entries[l->slots[at] - 1];
        if (e->hash != hash || e->len != len || memcmp(l->names + e->name, name, len) != 0)
            continue;
        if (type == DT_DIR && e->type == DT_DIR && !e->from_lower && !e->lower_ino)
            e->lower_ino = ovl_ino(l->s, l->layer, ino);
        return true;
    }
    struct ovl_entry *e = &l->entries[l->len++];
    *e = (struct ovl_entry){
        .ino = ovl_ino(l->s, l->layer, ino),
        .name = l->names_len,
        .hash = hash,
        .len = (uint8_t)len,
        .type = (uint8_t)type,
        .check = type == DT_CHR,
        .from_lower = l->layer > 0,
    };
    l->slots[at] = l->len;
    memcpy(l->names + l->names_len, name, len);
    l->names[l->names_len + len] = '\0';
    l->names_len += (uint32_t)len + 1;
    return true;
}

static int ovl_list_layer(struct ctx *ctx, struct ovl_list *l, struct dentry *dir, unsigned layer)
{
    struct file *f;
    uint32_t from = l->len;
    l->layer = layer;
    int ret = ovl_open_real(ctx, l->s->layers[layer].mount, dir, O_RDONLY | O_DIRECTORY, &f);
    if (ret < 0)
        return ret;
    /* A directory may be listed in several goes. */
    for (int64_t before = -1; ret == 0 && f->pos != before;) {
        before = f->pos;
        ret = f->ops->readdir ? f->ops->readdir(ctx, f, &l->sink) : -ENOTDIR;
        if (ret == 0)
            ret = l->error;
    }
    file_unref(f);
    for (uint32_t i = from; ret == 0 && i < l->len; i++) {
        if (!l->entries[i].check)
            continue;
        struct dentry *d;
        ret = ovl_layer_lookup(ctx, dir, l->names + l->entries[i].name, &d);
        l->entries[i].check = false;
        l->entries[i].whiteout = ret == 0 && d && ovl_is_whiteout(d->inode);
        dentry_unref(ret == 0 ? d : NULL);
    }
    return ret;
}

/* A directory has the number of the one below, unless it hides that. */
static int ovl_list_numbers(struct ctx *ctx, struct ovl_list *l, struct dentry *upper)
{
    for (uint32_t i = 0; i < l->len; i++) {
        struct ovl_entry *e = &l->entries[i];
        struct dentry *d;
        if (!e->lower_ino)
            continue;
        int ret = ovl_layer_lookup(ctx, upper, l->names + e->name, &d);
        if (ret == 0 && d) {
            ret = ovl_is_opaque(ctx, l->s, d->inode);
            dentry_unref(d);
            if (ret == 0)
                e->ino = e->lower_ino;
        }
        if (ret < 0)
            return ret;
    }
    return 0;
}

static int ovl_list_make(struct ctx *ctx, struct ovl_inode *dir, struct ovl_list **ret_list)
{
    struct ovl_list *l = NEW(struct ovl_list);
    if (!l)
        return -ENOMEM;
    l->sink.emit = ovl_list_emit;
    l->s = ovl_sb(&dir->inode);
    int ret = dir->upper ? ovl_list_layer(ctx, l, dir->upper, 0) : 0;
    for (unsigned i = 0; ret == 0 && i < dir->lowers_len; i++)
        ret = ovl_list_layer(ctx, l, dir->lowers[i].dentry, dir->lowers[i].layer);
    if (ret == 0 && dir->upper)
        ret = ovl_list_numbers(ctx, l, dir->upper);
    if (ret < 0)
        ovl_list_free(l);
    else
        *ret_list = l;
    return ret;
}

int ovl_dir_is_empty(struct ctx *ctx, struct ovl_inode *dir)
{
    struct ovl_list *l;
    int ret = ovl_list_make(ctx, dir, &l);
    if (ret < 0)
        return ret;
    ret = 1;
    for (uint32_t i = 0; i < l->len; i++)
        ret = ret && l->entries[i].whiteout;
    ovl_list_free(l);
    return ret;
}

/* ---- open directories ---- */

/* The number that stat shows: of what is cached it is known. */
static uint64_t ovl_shown_ino(struct file *f, const char *name, size_t len, uint64_t ino)
{
    struct dentry *d = dentry_find(f->path.dentry, name, len);
    if (d && d->inode)
        ino = d->inode->ino;
    dentry_unref(d);
    return ino;
}

struct ovl_pass {
    struct dir_sink sink, *to;
    struct file *f;
    unsigned layer;
};

static bool ovl_pass_emit(struct dir_sink *sink, const char *name, size_t len, uint64_t ino, unsigned type, int64_t next)
{
    struct ovl_pass *p = container_of(sink, struct ovl_pass, sink);
    ino = ovl_shown_ino(p->f, name, len, ovl_ino(ovl_sb(p->f->inode), p->layer, ino));
    return p->to->emit(p->to, name, len, ino, type, next);
}

/* At the start: how the listing is made this time. */
static int ovl_dir_begin(struct ctx *ctx, struct file *f)
{
    struct ovl_dir_file *df = f->priv;
    struct ovl_inode *oi = to_ovl(f->inode);
    ovl_list_free(TAKE_PTR(df->list));
    file_unref(TAKE_PTR(df->real));
    if (ovl_is_merged(oi))
        return ovl_list_make(ctx, oi, &df->list);
    unsigned layer = oi->upper ? 0 : oi->lowers[0].layer;
    return ovl_open_real(ctx, ovl_sb(f->inode)->layers[layer].mount, ovl_real_dentry(oi), O_RDONLY | O_DIRECTORY,
                         &df->real);
}

static int ovl_readdir(struct ctx *ctx, struct file *f, struct dir_sink *sink)
{
    struct ovl_dir_file *df = f->priv;
    if (f->pos == 0 || (!df->real && !df->list)) {
        int ret = ovl_dir_begin(ctx, f);
        if (ret < 0)
            return ret;
    }
    if (!dir_emit_dots(f, sink))
        return 0;
    if (df->real) {
        const struct ovl_inode *oi = to_ovl(f->inode);
        struct ovl_pass p = {.sink.emit = ovl_pass_emit, .to = sink, .f = f};
        p.layer = df->real->inode == ovl_real(oi) && oi->upper ? 0 : oi->lowers_len ? oi->lowers[0].layer : 0;
        df->real->pos = f->pos;
        int ret = df->real->ops->readdir ? df->real->ops->readdir(ctx, df->real, &p.sink) : -ENOTDIR;
        f->pos = df->real->pos;
        return ret;
    }
    const struct ovl_list *l = df->list;
    for (uint64_t i = (uint64_t)f->pos - 2; i < l->len; i++) {
        const struct ovl_entry *e = &l->entries[i];
        const char *name = l->names + e->name;
        f->pos = (int64_t)i + 2;
        if (!e->whiteout &&
            !sink->emit(sink, name, e->len, ovl_shown_ino(f, name, e->len, e->ino), e->type, f->pos + 1))
            return 0;
        f->pos++;
    }
    return 0;
}

static int ovl_dir_fsync(struct ctx *ctx, struct file *f, bool data_only)
{
    struct ovl_inode *oi = to_ovl(f->inode);
    struct file *real;
    if (!oi->upper || ovl_sb(f->inode)->volatile_)
        return 0;
    int ret = ovl_open_real(ctx, ovl_sb(f->inode)->layers[0].mount, oi->upper, O_RDONLY | O_DIRECTORY, &real);
    if (ret < 0)
        return ret;
    ret = real->ops->fsync ? real->ops->fsync(ctx, real, data_only) : 0;
    file_unref(real);
    return ret;
}

static void ovl_dir_release(struct file *f)
{
    struct ovl_dir_file *df = f->priv;
    file_unref(df->real);
    ovl_list_free(df->list);
    mem_free(df);
}

static const struct file_ops ovl_dir_fops = {
    .readdir = ovl_readdir,
    .fsync = ovl_dir_fsync,
    .release = ovl_dir_release,
};

int ovl_dir_open(struct ctx *ctx, struct inode *inode, struct file *f)
{
    f->priv = NEW(struct ovl_dir_file);
    if (!f->priv)
        return -ENOMEM;
    f->ops = &ovl_dir_fops;
    return 0;
}
