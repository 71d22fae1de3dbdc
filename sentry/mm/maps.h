/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's view of its mappings, made from the host's: the stub is hidden and file names are translated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"

struct ctx;
struct filemaps;
struct mm;
struct mount;
struct path;

enum mm_maps_kind { MM_MAPS, MM_SMAPS, MM_SMAPS_ROLLUP };

/* Appends /proc/PID/maps, smaps or smaps_rollup of mm; paths of files are shown as seen from root. Parks (it reads the
 * host's tables). The caller holds a reference of mm. Return: 0, −ESRCH (the host process is gone), −ENOMEM. */
MUST_CHECK int mm_print_maps(struct ctx *ctx, struct mm *mm, enum mm_maps_kind kind, const struct path *root,
                             struct buf *out);

/* What mm_find_map looks for: the mapping that addr lies in, if it has all that is asked for. */
struct mm_map_wish {
    uint64_t addr;
    bool or_next; /* or the first one above that has */
    bool readable, writable, executable, shared, file;
};
struct mm_map {
    uint64_t start, end;
    uint64_t offset, dev, ino; /* of the guest's file, else 0 */
    bool readable, writable, executable, shared;
    struct buf name;           /* as in maps, without a NUL; the caller's to free. Empty: none */
    const struct path *path;   /* of the file, in files; NULL: none */
    struct filemaps *files;    /* the caller's reference; NULL without a path */
};
/* Names are as seen from root. Parks. Return: 0, −ENOENT, −ESRCH, −ENOMEM; without 0 *ret_map holds nothing to free. */
MUST_CHECK int mm_find_map(struct mm *mm, const struct mm_map_wish *wish, const struct path *root, struct mm_map *ret_map);

/* Sizes in bytes, without the stub's own mappings. */
struct mm_usage {
    uint64_t size, size_peak;         /* mapped */
    uint64_t resident, resident_peak; /* = anon + file + shmem */
    uint64_t anon, file, shmem;
    uint64_t data, stack, text, lib;  /* mapped: private writable, stack, executable's code, other code */
    uint64_t page_tables, swap, locked;
    char state; /* of the host process's first thread, as in its status file; 0: unknown */
};

/* For ps and top: cheaper than the maps. Parks. Return: 0, −ESRCH. */
MUST_CHECK int mm_get_usage(struct ctx *ctx, struct mm *mm, struct mm_usage *ret_usage);
struct mm_range {
    uint64_t start, end;
};
/* The guest's mappings in ascending order; mem_free the array. Parks. Return: 0, −ESRCH, −ENOMEM. */
MUST_CHECK int mm_list_maps(struct mm *mm, struct mm_range **ret_ranges, unsigned *ret_len);
/* One mapping, for core dumps. */
struct mm_vma {
    uint64_t start, end;
    uint64_t offset;             /* in the file */
    const struct path *path;     /* of the guest's file; NULL: none. Borrowed of mm->filemaps while nothing is mapped */
    uint64_t anonymous;          /* bytes in memory or swap that belong to this mapping alone */
    uint64_t resident;
    bool readable, writable, executable, shared;
    bool kernel;                 /* the vDSO and its data */
    bool dont_dump;              /* MADV_DONTDUMP, device memory */
    bool may_write;              /* now or after an mprotect */
    bool locked;
};
/* The guest's mappings in ascending order; mem_free the array. Parks. Return: 0, −ESRCH, −ENOMEM. */
MUST_CHECK int mm_list_vmas(struct mm *mm, struct mm_vma **ret_vmas, unsigned *ret_len);
/* Forgets which files of a mount mm had mapped and has no longer: munmap does not come to the sentry, so that it learns of it only by
 * looking. Parks. Return: 0 (also when nothing is known to be on the mount), −ESRCH, −ENOMEM. */
MUST_CHECK int mm_forget_unmapped(struct mm *mm, const struct mount *mount);
/* Bytes of locked mappings: all, and those between start and end. Parks. Return: 0, −ESRCH, −ENOMEM. */
MUST_CHECK int mm_locked_size(struct mm *mm, uint64_t start, uint64_t end, uint64_t *ret_all, uint64_t *ret_inside);
/* Most bytes that were ever resident at once (getrusage); 0 when the host does not tell. Parks. */
uint64_t mm_resident_peak(const struct mm *mm);
