/* SPDX-License-Identifier: Apache-2.0 */
/* The question about one mapping that /proc/PID/maps answers. Source: proc_pid_maps(5), PROCMAP_QUERY. */
#include "sentry/fs/proc/proc_pid.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/filemap.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

/* Of <linux/fs.h> since 6.11. */
struct map_query {
    uint64_t size, flags, addr;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t dev_major, dev_minor, name_size, build_id_size;
    uint64_t name_addr, build_id_addr;
};
_Static_assert(sizeof(struct map_query) == 104, "procmap_query");

#define MAP_QUERY _IOWR('f', 17, struct map_query)

enum {
    MAP_QUERY_READABLE = 1, MAP_QUERY_WRITABLE = 2, MAP_QUERY_EXECUTABLE = 4, MAP_QUERY_SHARED = 8,
    MAP_QUERY_OR_NEXT = 16, MAP_QUERY_FILE = 32, MAP_QUERY_ALL = 63,
    MAP_QUERY_SIZE_MIN = offsetof(struct map_query, start),
};

enum { BUILD_ID_MAX = 20, BUILD_ID_TYPE = 3 /* NT_GNU_BUILD_ID */, BUILD_ID_HEADERS_MAX = 64, BUILD_ID_NOTES_MAX = 64 << 10 };

/* Looks through notes. Return: bytes of the build id, or 0. */
static unsigned build_id_of_notes(const char *notes, size_t size, uint8_t ret_id[BUILD_ID_MAX])
{
    size_t at = 0;

    while (size - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr h;
        uint64_t name, desc;

        memcpy(&h, notes + at, sizeof(h));
        name = at + sizeof(h);
        desc = name + ALIGN_UP((uint64_t)h.n_namesz, 4);
        if (desc + h.n_descsz > size)
            return 0;
        if (h.n_type == BUILD_ID_TYPE && h.n_namesz == 4 && !memcmp(notes + name, "GNU", 4) && h.n_descsz > 0 &&
            h.n_descsz <= BUILD_ID_MAX) {
            memcpy(ret_id, notes + desc, h.n_descsz);
            return h.n_descsz;
        }
        at = MIN(desc + ALIGN_UP((uint64_t)h.n_descsz, 4), (uint64_t)size);
    }
    return 0;
}

/* Reads size bytes at pos. Return: whether all of them were there. */
static bool read_all(struct ctx *ctx, struct file *f, void *dst, size_t size, uint64_t pos)
{
    return pos <= INT64_MAX && file_read_kernel(ctx, f, dst, size, (int64_t)pos) == (ssize_t)size;
}

static unsigned build_id_of_file(struct ctx *ctx, struct file *f, uint8_t ret_id[BUILD_ID_MAX])
{
    Elf64_Ehdr e;
    Elf64_Phdr p;

    if (!read_all(ctx, f, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_phentsize != sizeof(p))
        return 0;
    for (unsigned i = 0; i < MIN(e.e_phnum, (unsigned)BUILD_ID_HEADERS_MAX); i++) {
        CLEANUP_FREE char *notes = NULL;
        unsigned size;

        if (!read_all(ctx, f, &p, sizeof(p), e.e_phoff + i * sizeof(p)))
            return 0;
        if (p.p_type != PT_NOTE || p.p_filesz == 0 || p.p_filesz > BUILD_ID_NOTES_MAX)
            continue;
        notes = mem_zalloc(p.p_filesz);
        if (!notes || !read_all(ctx, f, notes, p.p_filesz, p.p_offset))
            return 0;
        size = build_id_of_notes(notes, p.p_filesz, ret_id);
        if (size)
            return size;
    }
    return 0;
}

/* Return: bytes, 0 when the mapping's file has none. */
static unsigned build_id(struct ctx *ctx, const struct mm_map *map, uint8_t ret_id[BUILD_ID_MAX])
{
    struct file *f;
    unsigned size;

    if (!map->path || !map->path->dentry->inode || !S_ISREG(map->path->dentry->inode->mode) ||
        file_open_inode(ctx, map->path, FILE_OPEN_QUIET, &f))
        return 0;
    size = build_id_of_file(ctx, f, ret_id);
    file_unref(f);
    return size;
}

static void fill(struct map_query *q, const struct mm_map *map)
{
    q->start = map->start;
    q->end = map->end;
    q->vma_flags = (map->readable ? MAP_QUERY_READABLE : 0) | (map->writable ? MAP_QUERY_WRITABLE : 0) |
                   (map->executable ? MAP_QUERY_EXECUTABLE : 0) | (map->shared ? MAP_QUERY_SHARED : 0);
    q->page_size = PAGE_SIZE;
    q->offset = map->offset;
    q->dev_major = major(map->dev);
    q->dev_minor = minor(map->dev);
    q->inode = map->ino;
}

/* The parts of the answer that have a buffer each, and then the answer. */
static int64_t reply(struct ctx *ctx, struct map_query *q, struct mm_map *map, uaddr_t arg, uint64_t size)
{
    uint8_t id[BUILD_ID_MAX];
    unsigned id_size = q->build_id_size ? build_id(ctx, map, id) : 0;
    bool named = map->name.size && q->name_size;

    fill(q, map);
    if (id_size > q->build_id_size)
        return -ENAMETOOLONG;
    q->build_id_size = id_size;
    if (named) {
        buf_putc(&map->name, '\0');
        if (buf_error(&map->name))
            return buf_error(&map->name);
        if (map->name.size > MIN(q->name_size, (uint32_t)PATH_MAX))
            return -ENAMETOOLONG;
    }
    q->name_size = named ? (uint32_t)map->name.size : 0;
    if ((named && copy_out(ctx, UADDR(q->name_addr), map->name.data, map->name.size)) ||
        (id_size && copy_out(ctx, UADDR(q->build_id_addr), id, id_size)))
        return -EFAULT;
    return copy_out(ctx, arg, q, MIN(size, (uint64_t)sizeof(*q)));
}

int64_t proc_map_query(struct proc_call *c, uint32_t cmd, uint64_t arg)
{
    struct map_query q;
    struct mm_map_wish wish;
    struct mm_map map = {0};
    struct mm *mm = c->task->mm;
    uint64_t size;
    int64_t r;

    if (cmd != MAP_QUERY)
        return -ENOTTY;
    if (COPY_IN(c->ctx, &size, UADDR(arg)))
        return -EFAULT;
    if (size > PAGE_SIZE)
        return -E2BIG;
    if (size < MAP_QUERY_SIZE_MIN)
        return -EINVAL;
    r = copy_in_struct(c->ctx, &q, sizeof(q), UADDR(arg), size);
    if (r)
        return r;
    if ((q.flags & ~(uint64_t)MAP_QUERY_ALL) || !q.name_size != !q.name_addr || !q.build_id_size != !q.build_id_addr)
        return -EINVAL;
    if (!mm)
        return -ESRCH;
    wish = (struct mm_map_wish){
        .addr = q.addr,
        .or_next = q.flags & MAP_QUERY_OR_NEXT,
        .readable = q.flags & MAP_QUERY_READABLE,
        .writable = q.flags & MAP_QUERY_WRITABLE,
        .executable = q.flags & MAP_QUERY_EXECUTABLE,
        .shared = q.flags & MAP_QUERY_SHARED,
        .file = q.flags & MAP_QUERY_FILE,
    };
    mm_ref(mm);
    r = mm_find_map(mm, &wish, proc_viewer_root(c), &map);
    mm_unref(mm);
    if (!r)
        r = reply(c->ctx, &q, &map, UADDR(arg), size);
    buf_free(&map.name);
    filemaps_unref(map.files);
    return r;
}
