/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/maps and its kin, made from the host's: the stub is hidden, file names and numbers are translated. */
#include "sentry/mm/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/mm/filemap.h"
#include "sentry/mm/hostproc.h"
#include "sentry/mm/mm.h"

enum { MAPS_NAME_COLUMN = 73 };

struct maps_line {
    uint64_t start, end, offset, ino;
    char perms[5];
    unsigned major, minor;
    const char *name; /* as the host shows it; to the end of the line */
    size_t name_len;
};

/* The line of text behind line (NULL: the first), without its newline. Return: NULL at the end. */
static const char *maps_next(const struct buf *text, const char *line, size_t *inout_len)
{
    const char *end = text->data + text->size;
    line = line ? line + *inout_len + 1 : text->data;
    if (!line || line >= end)
        return NULL;
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    *inout_len = (size_t)((newline ? newline : end) - line);
    return line;
}

/* Whether the line (without its newline) is the head of a mapping. */
static bool maps_parse(const char *line, size_t len, struct maps_line *ret)
{
    char head[160];
    int at = 0;
    size_t n = MIN(len, sizeof(head) - 1);
    memcpy(head, line, n);
    head[n] = '\0';
    if (sscanf(head, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &ret->start, &ret->end,
               ret->perms, &ret->offset, &ret->major, &ret->minor, &ret->ino, &at) != 7)
        return false;
    while ((size_t)at < len && line[at] == ' ')
        at++;
    ret->name = line + at;
    ret->name_len = len - (size_t)at;
    return true;
}

static bool maps_name_is(const struct maps_line *l, const char *name)
{
    return l->name_len == strlen(name) && !memcmp(l->name, name, l->name_len);
}

/* Mappings above mmap_top belong to the stub, but for what the host gives every process. */
static bool maps_visible(const struct mm *mm, struct maps_line *l)
{
    if (l->name_len && l->name[0] == '[' &&
        (maps_name_is(l, "[vdso]") || maps_name_is(l, "[vsyscall]") || !strncmp(l->name, "[vvar", 5)))
        return true;
    if (l->start >= mm->aspace->mmap_top)
        return false;
    l->end = MIN(l->end, mm->aspace->mmap_top);
    return true;
}

/* The guest's file behind the mapping, with its numbers. NULL: none, and 0. */
static const struct filemap *maps_file(const struct mm *mm, const struct maps_line *l, uint64_t *ret_dev, uint64_t *ret_ino)
{
    const struct filemap *file = l->ino ? filemaps_find(mm->filemaps, makedev(l->major, l->minor), l->ino) : NULL;
    *ret_dev = file ? file->path.dentry->sb->dev : 0;
    *ret_ino = file && file->path.dentry->inode ? file->path.dentry->inode->ino : 0;
    return file;
}

/* Appends the mapping's name as seen from root; nothing when it has none. */
static int maps_print_name(const struct mm *mm, const struct maps_line *l, const struct filemap *file, const struct path *root,
                           struct buf *out)
{
    if (file)
        return path_print(&file->path, root, out);
    if (l->start < mm->stack_start && l->end >= mm->stack_start)
        buf_puts(out, "[stack]");
    else if (!l->ino && mm->brk_start && l->start <= mm->brk_start && l->end > mm->brk_start && l->perms[1] == 'w')
        buf_puts(out, "[heap]");
    else if (l->name_len && l->name[0] == '[')
        buf_append(out, l->name, l->name_len);
    return buf_error(out);
}

static int maps_print_head(const struct mm *mm, const struct maps_line *l, const struct path *root,
                           struct buf *out)
{
    CLEANUP_BUF struct buf name = {0};
    size_t start = out->size;
    uint64_t dev, ino;
    const struct filemap *file = maps_file(mm, l, &dev, &ino);
    int err = maps_print_name(mm, l, file, root, &name);
    if (err)
        return err;
    buf_printf(out, "%08" PRIx64 "-%08" PRIx64 " %s %08" PRIx64 " %02x:%02x %" PRIu64, l->start, l->end,
               l->perms, l->offset, major(dev), minor(dev), ino);
    if (name.size) {
        do
            buf_putc(out, ' ');
        while (out->size - start < MAPS_NAME_COLUMN);
        buf_append(out, name.data, name.size);
    }
    buf_putc(out, '\n');
    return buf_error(out);
}

/* The fields of smaps_rollup, in its order; sums over visible mappings. */
static const char *const rollup_names[] = {
    "Rss",           "Pss",           "Pss_Dirty",     "Pss_Anon",       "Pss_File",        "Pss_Shmem",
    "Shared_Clean",  "Shared_Dirty",  "Private_Clean", "Private_Dirty",  "Referenced",      "Anonymous",
    "KSM",           "LazyFree",      "AnonHugePages", "ShmemPmdMapped", "FilePmdMapped",   "Shared_Hugetlb",
    "Private_Hugetlb", "Swap",        "SwapPss",       "Locked",
};

struct rollup {
    uint64_t sums[ARRAY_SIZE(rollup_names)];
    bool seen[ARRAY_SIZE(rollup_names)];
    uint64_t start, end;
};

static void rollup_add(struct rollup *r, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    for (size_t i = 0; colon && i < ARRAY_SIZE(rollup_names); i++) {
        if ((size_t)(colon - line) == strlen(rollup_names[i]) && !memcmp(line, rollup_names[i], (size_t)(colon - line))) {
            r->sums[i] += strtoull(colon + 1, NULL, 10);
            r->seen[i] = true;
        }
    }
}

static int rollup_print(const struct rollup *r, struct buf *out)
{
    buf_printf(out, "%08" PRIx64 "-%08" PRIx64 " ---p 00000000 00:00 0 %*s[rollup]\n", r->start, r->end, 26, "");
    for (size_t i = 0; i < ARRAY_SIZE(rollup_names); i++)
        if (r->seen[i])
            buf_printf(out, "%s:%*s%8" PRIu64 " kB\n", rollup_names[i], (int)(15 - strlen(rollup_names[i])), "", r->sums[i]);
    return buf_error(out);
}

int mm_print_maps(struct ctx *ctx, struct mm *mm, enum mm_maps_kind kind, const struct path *root,
                  struct buf *out)
{
    CLEANUP_BUF struct buf host = {0};
    struct rollup rollup = {.start = UINT64_MAX};
    bool visible = false;
    int err = hostproc_read(mm->aspace->host_pid, kind == MM_MAPS ? "maps" : "smaps", &host);
    if (err)
        return err;
    const char *line = NULL;
    for (size_t len; (line = maps_next(&host, line, &len));) {
        struct maps_line l;
        if (maps_parse(line, len, &l)) {
            visible = maps_visible(mm, &l);
            if (visible && kind != MM_SMAPS_ROLLUP)
                err = maps_print_head(mm, &l, root, out);
            if (visible) {
                rollup.start = MIN(rollup.start, l.start);
                rollup.end = MAX(rollup.end, l.end);
            }
        } else if (visible && kind == MM_SMAPS) {
            buf_append(out, line, len);
            buf_putc(out, '\n');
            err = buf_error(out);
        } else if (visible && kind == MM_SMAPS_ROLLUP) {
            rollup_add(&rollup, line, len);
        }
        if (err)
            return err;
    }
    return kind == MM_SMAPS_ROLLUP && rollup.end ? rollup_print(&rollup, out) : 0;
}

static bool maps_matches(const struct maps_line *l, const struct mm_map_wish *wish, bool file)
{
    return (!wish->file || file) && (!wish->readable || l->perms[0] == 'r') && (!wish->writable || l->perms[1] == 'w') &&
           (!wish->executable || l->perms[2] == 'x') && (!wish->shared || l->perms[3] == 's');
}

int mm_find_map(struct mm *mm, const struct mm_map_wish *wish, const struct path *root, struct mm_map *ret_map)
{
    CLEANUP_BUF struct buf host = {0};
    int err = hostproc_read(mm->aspace->host_pid, "maps", &host);
    if (err)
        return err;
    const char *line = NULL;
    for (size_t len; (line = maps_next(&host, line, &len));) {
        struct maps_line l;
        uint64_t dev, ino;
        if (!maps_parse(line, len, &l) || !maps_visible(mm, &l) || l.end <= wish->addr)
            continue;
        const struct filemap *file = maps_file(mm, &l, &dev, &ino);
        if (!maps_matches(&l, wish, file != NULL) || (l.start > wish->addr && !wish->or_next)) {
            if (wish->or_next)
                continue;
            return -ENOENT;
        }
        *ret_map = (struct mm_map){
            .start = l.start, .end = l.end, .offset = file ? l.offset : 0, .dev = dev, .ino = ino,
            .readable = l.perms[0] == 'r', .writable = l.perms[1] == 'w', .executable = l.perms[2] == 'x',
            .shared = l.perms[3] == 's',
        };
        err = maps_print_name(mm, &l, file, root, &ret_map->name);
        if (err)
            buf_free(&ret_map->name);
        else if (file)
            ret_map->path = &file->path, ret_map->files = filemaps_ref(mm->filemaps);
        return err;
    }
    return -ENOENT;
}

/* "Name:   123 kB" of /proc/PID/status, in bytes. */
static uint64_t usage_field(const struct buf *status, const char *name)
{
    const char *at = status->data ? strstr(status->data, name) : NULL;
    return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static void usage_add(const struct mm *mm, const struct maps_line *l, struct mm_usage *u)
{
    uint64_t size = l->end - l->start;
    u->size += size;
    if (l->start < mm->stack_start && l->end >= mm->stack_start)
        u->stack += size;
    else if (l->perms[1] == 'w' && l->perms[3] == 'p')
        u->data += size;
    else if (l->perms[2] == 'x' && l->start >= mm->code_start && l->start < mm->code_end)
        u->text += size;
    else if (l->perms[2] == 'x' && l->ino)
        u->lib += size;
}

int mm_get_usage(struct ctx *ctx, struct mm *mm, struct mm_usage *ret_usage)
{
    CLEANUP_BUF struct buf maps = {0};
    CLEANUP_BUF struct buf status = {0};
    struct mm_usage u = {0};
    int err = hostproc_read(mm->aspace->host_pid, "maps", &maps);
    if (!err)
        err = hostproc_read(mm->aspace->host_pid, "status", &status);
    if (err)
        return err;
    const char *line = NULL;
    for (size_t len; (line = maps_next(&maps, line, &len));) {
        struct maps_line l;
        if (maps_parse(line, len, &l) && maps_visible(mm, &l))
            usage_add(mm, &l, &u);
    }
    u.size_peak = u.size;
    u.anon = usage_field(&status, "\nRssAnon:");
    u.file = usage_field(&status, "\nRssFile:");
    u.shmem = usage_field(&status, "\nRssShmem:");
    u.resident = u.anon + u.file + u.shmem;
    u.resident_peak = MAX(u.resident, usage_field(&status, "\nVmHWM:"));
    u.page_tables = usage_field(&status, "\nVmPTE:");
    u.swap = usage_field(&status, "\nVmSwap:");
    u.locked = usage_field(&status, "\nVmLck:");
    const char *state = status.data ? strstr(status.data, "\nState:\t") : NULL;
    u.state = state ? state[8] : '\0';
    *ret_usage = u;
    return 0;
}

int mm_list_maps(struct mm *mm, struct mm_range **ret_ranges, unsigned *ret_len)
{
    CLEANUP_BUF struct buf host = {0};
    struct mm_range *ranges = NULL;
    unsigned len = 0, capacity = 0;
    int err = hostproc_read(mm->aspace->host_pid, "maps", &host);
    if (err)
        return err;
    const char *line = NULL;
    for (size_t size; (line = maps_next(&host, line, &size));) {
        struct maps_line l;
        if (maps_parse(line, size, &l) && maps_visible(mm, &l)) {
            if (len == capacity) {
                capacity = capacity ? capacity * 2 : 64;
                struct mm_range *more = mem_realloc(ranges, capacity, sizeof(*more));
                if (!more) {
                    mem_free(ranges);
                    return -ENOMEM;
                }
                ranges = more;
            }
            ranges[len++] = (struct mm_range){l.start, l.end};
        }
    }
    *ret_ranges = ranges;
    *ret_len = len;
    return 0;
}

/* Takes the mark off every entry that the host's text shows as mapped. */
static void maps_unmark_mapped(const struct mm *mm, const struct buf *host, const struct filemaps *maps, bool *marks)
{
    const char *line = NULL;

    for (size_t size; (line = maps_next(host, line, &size));) {
        struct maps_line l;
        const struct filemap *file = NULL;
        if (maps_parse(line, size, &l) && l.ino && maps_visible(mm, &l))
            file = filemaps_find(maps, makedev(l.major, l.minor), l.ino);
        if (file)
            marks[file - maps->entries] = false;
    }
}

int mm_forget_unmapped(struct mm *mm, const struct mount *mount)
{
    CLEANUP_BUF struct buf host = {0};
    struct filemaps *before = filemaps_ref(mm->filemaps), *rest = NULL;
    bool *drop = before ? NEW_ARRAY(bool, before->len) : NULL, any = false;
    int err = 0;

    for (unsigned i = 0; drop && i < before->len; i++)
        any |= drop[i] = before->entries[i].path.mount == mount;
    if (before && !drop)
        err = -ENOMEM;
    if (any)
        err = hostproc_read(mm->aspace->host_pid, "maps", &host);
    if (any && !err) {
        maps_unmark_mapped(mm, &host, before, drop);
        rest = filemaps_without(before, drop);
        if (!rest)
            err = -ENOMEM;
    }
    /* What was mapped while the host was asked made it another set. */
    if (rest && mm->filemaps == before) {
        mm->filemaps = rest;
        rest = before; /* mm's reference of it */
    }
    filemaps_unref(rest);
    filemaps_unref(before);
    mem_free(drop);
    return err;
}

static void vma_head(const struct mm *mm, const struct maps_line *l, struct mm_vma *v)
{
    const struct filemap *file = l->ino ? filemaps_find(mm->filemaps, makedev(l->major, l->minor), l->ino) : NULL;
    bool vdso = maps_name_is(l, "[vdso]");
    *v = (struct mm_vma){
        .start = l->start,
        .end = l->end,
        .offset = l->offset,
        .path = file ? &file->path : NULL,
        .readable = l->perms[0] == 'r',
        .writable = l->perms[1] == 'w',
        .executable = l->perms[2] == 'x',
        .shared = l->perms[3] == 's',
        .kernel = vdso,
        .dont_dump = !vdso && (maps_name_is(l, "[vsyscall]") || (l->name_len > 5 && !strncmp(l->name, "[vvar", 5))),
    };
}

/* A line below the head in smaps. */
static void vma_detail(const char *line, size_t len, struct mm_vma *v)
{
    if (len > 10 && !memcmp(line, "Anonymous:", 10))
        v->anonymous += strtoull(line + 10, NULL, 10) * 1024;
    else if (len > 5 && !memcmp(line, "Swap:", 5))
        v->anonymous += strtoull(line + 5, NULL, 10) * 1024;
    else if (len > 4 && !memcmp(line, "Rss:", 4))
        v->resident = strtoull(line + 4, NULL, 10) * 1024;
    else if (len > 8 && !memcmp(line, "VmFlags:", 8)) {
        v->dont_dump |= memmem(line, len, " dd", 3) != NULL;
        v->may_write = memmem(line, len, " mw", 3) != NULL;
        v->locked = memmem(line, len, " lo", 3) != NULL;
    }
}

int mm_list_vmas(struct mm *mm, struct mm_vma **ret_vmas, unsigned *ret_len)
{
    CLEANUP_BUF struct buf host = {0};
    CLEANUP_FREE struct mm_vma *vmas = NULL;
    unsigned len = 0, capacity = 0;
    bool visible = false;
    int err = hostproc_read(mm->aspace->host_pid, "smaps", &host);
    if (err)
        return err;
    const char *line = NULL;
    for (size_t size; (line = maps_next(&host, line, &size));) {
        struct maps_line l;
        if (!maps_parse(line, size, &l)) {
            if (visible)
                vma_detail(line, size, &vmas[len - 1]);
            continue;
        }
        visible = maps_visible(mm, &l);
        if (!visible)
            continue;
        if (len == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            struct mm_vma *more = mem_realloc(vmas, capacity, sizeof(*more));
            if (!more)
                return -ENOMEM;
            vmas = more;
        }
        vma_head(mm, &l, &vmas[len++]);
    }
    *ret_vmas = TAKE_PTR(vmas);
    *ret_len = len;
    return 0;
}

int mm_locked_size(struct mm *mm, uint64_t start, uint64_t end, uint64_t *ret_all, uint64_t *ret_inside)
{
    CLEANUP_BUF struct buf host = {0};
    uint64_t all = 0, inside = 0;
    struct maps_line l = {0};
    int err = hostproc_read(mm->aspace->host_pid, "smaps", &host);
    if (err)
        return err;
    const char *line = NULL;
    for (size_t size; (line = maps_next(&host, line, &size));) {
        if (!maps_parse(line, size, &l) && size > 8 && !memcmp(line, "VmFlags:", 8) && memmem(line, size, " lo", 3)) {
            all += l.end - l.start;
            if (MAX(l.start, start) < MIN(l.end, end))
                inside += MIN(l.end, end) - MAX(l.start, start);
        }
    }
    *ret_all = all;
    *ret_inside = inside;
    return 0;
}

uint64_t mm_resident_peak(const struct mm *mm)
{
    CLEANUP_BUF struct buf status = {0};
    return hostproc_read(mm->aspace->host_pid, "status", &status) ? 0 : usage_field(&status, "\nVmHWM:");
}
