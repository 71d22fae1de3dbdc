/* SPDX-License-Identifier: Apache-2.0 */
/* Translation of mapped host files to guest files. */
#include "sentry/mm/filemap.h"

#include <errno.h>

#include "platform/base/alloc.h"

struct filemaps *filemaps_ref(struct filemaps *maps)
{
    if (maps)
        ref_get(&maps->ref);
    return maps;
}

void filemaps_unref(struct filemaps *maps)
{
    if (!maps || !ref_put(&maps->ref))
        return;
    for (unsigned i = 0; i < maps->len; i++)
        path_unref(&maps->entries[i].path);
    mem_free(maps->entries);
    mem_free(maps);
}

const struct filemap *filemaps_find(const struct filemaps *maps, uint64_t host_dev, uint64_t host_ino)
{
    for (unsigned i = 0; maps && i < maps->len; i++)
        if (maps->entries[i].host_ino == host_ino && maps->entries[i].host_dev == host_dev)
            return &maps->entries[i];
    return NULL;
}

/* A private copy with room for one entry more. */
static struct filemaps *filemaps_copy(const struct filemaps *old)
{
    struct filemaps *copy = NEW(struct filemaps);
    if (!copy)
        return NULL;
    ref_init(&copy->ref);
    copy->capacity = (old ? old->len : 0) + 8;
    copy->entries = NEW_ARRAY(struct filemap, copy->capacity);
    if (!copy->entries) {
        mem_free(copy);
        return NULL;
    }
    for (; old && copy->len < old->len; copy->len++) {
        copy->entries[copy->len] = old->entries[copy->len];
        copy->entries[copy->len].path = path_ref(old->entries[copy->len].path);
    }
    copy->next = old ? old->next : 0;
    return copy;
}

struct filemaps *filemaps_without(const struct filemaps *maps, const bool *drop)
{
    struct filemaps *rest = filemaps_copy(maps);
    unsigned len = 0;

    if (!rest)
        return NULL;
    for (unsigned i = 0; i < rest->len; i++) {
        if (drop[i])
            path_unref(&rest->entries[i].path);
        else
            rest->entries[len++] = rest->entries[i];
    }
    rest->len = len;
    rest->next = 0;
    return rest;
}

int filemaps_add(struct filemaps **inout_maps, uint64_t host_dev, uint64_t host_ino, const struct path *path)
{
    struct filemaps *maps = *inout_maps;
    const struct filemap *known = filemaps_find(maps, host_dev, host_ino);
    if (known && path_equal(&known->path, path))
        return 0;
    if (!maps || maps->ref.count > 1) {
        maps = filemaps_copy(maps);
        if (!maps)
            return -ENOMEM;
        filemaps_unref(*inout_maps);
        *inout_maps = maps;
        known = filemaps_find(maps, host_dev, host_ino);
    }
    if (!known && maps->len == maps->capacity && maps->len < FILEMAPS_MAX) {
        struct filemap *more = mem_realloc(maps->entries, (size_t)maps->capacity * 2, sizeof(*more));
        if (!more)
            return -ENOMEM;
        maps->entries = more;
        maps->capacity *= 2;
    }
    struct filemap *at;
    if (known) { /* another name of the same file: the newest counts */
        at = &maps->entries[known - maps->entries];
        path_unref(&at->path);
    } else if (maps->len < FILEMAPS_MAX) {
        at = &maps->entries[maps->len++];
    } else {
        at = &maps->entries[maps->next];
        maps->next = (maps->next + 1) % FILEMAPS_MAX;
        path_unref(&at->path);
    }
    *at = (struct filemap){.host_dev = host_dev, .host_ino = host_ino, .path = path_ref(*path)};
    return 0;
}
