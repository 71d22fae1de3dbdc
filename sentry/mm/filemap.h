/* SPDX-License-Identifier: Apache-2.0 */
/* Which guest file a mapped host file stands for. The host's tables are the truth about what is mapped where; this only
 * translates its device and inode numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/compiler.h"
#include "platform/base/ref.h"
#include "sentry/vfs/mount.h"

/* Distinct files remembered for a process; beyond it the oldest is forgotten (and shown without a name). */
enum { FILEMAPS_MAX = 4096 };

struct filemap {
    uint64_t host_dev, host_ino;
    struct path path; /* referenced */
};

/* Immutable while shared; processes that were forked share one until one of them maps something new. */
struct filemaps {
    struct ref ref;
    unsigned len, capacity, next; /* next: the one to forget when full */
    struct filemap *entries;
};

struct filemaps *filemaps_ref(struct filemaps *maps); /* NULL is fine */
void filemaps_unref(struct filemaps *maps);           /* NULL is fine */
/* Adds to *inout_maps (NULL: none yet), which becomes a private copy if need be. Return: 0 or −ENOMEM. */
MUST_CHECK int filemaps_add(struct filemaps **inout_maps, uint64_t host_dev, uint64_t host_ino,
                            const struct path *path);
/* Makes a set without the entries that drop holds true (one for each entry). Return: NULL when out of memory. */
struct filemaps *filemaps_without(const struct filemaps *maps, const bool *drop);
/* Return: the entry, or NULL. */
const struct filemap *filemaps_find(const struct filemaps *maps, uint64_t host_dev, uint64_t host_ino);
