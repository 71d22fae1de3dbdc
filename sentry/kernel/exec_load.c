/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a new program: opening, scripts, interpreters, and their maps in the new address space. */
#include "sentry/kernel/exec_priv.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "platform/base/alloc.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"
#include "sentry/vfs/notify.h"

/* Where position-independent programs go, and how far they may be shifted. */
#define EXEC_DYN_BASE 0x555555554000UL
#define EXEC_DYN_RANDOM ((1UL << 28) - 1) /* pages */
#define EXEC_BRK_RANDOM ((1UL << 13) - 1) /* pages */
#define EXEC_MIN_ADDR 0x10000UL
#define EXEC_NO_RANDOM 0x0040000UL /* personality ADDR_NO_RANDOMIZE */
#define EXEC_STACK_MAX (1UL << 30)
#define EXEC_STACK_UNLIMITED (64UL << 20)
#define EXEC_STACK_SPARE (32UL << 10) /* below the arguments, at least */

/* Two per segment, stack, its guard, its advice. */
enum { CALLS_MAX = 2 * 2 * ELF_SEGMENTS_MAX + 3 };

struct batch {
    unsigned len;
    struct plat_hostcall calls[CALLS_MAX];
};

int exec_open(struct ctx *ctx, const struct walk_base *base, const char *path, unsigned walk_flags,
              struct file **ret_file)
{
    CLEANUP_PATH struct path p = {0};
    struct inode *inode;
    int r = walk_path(ctx, base, path, walk_flags, &p);

    if (r)
        return r;
    inode = p.dentry->inode;
    if (S_ISLNK(inode->mode))
        return -ELOOP;
    if (!S_ISREG(inode->mode) || (p.mount->flags & MS_NOEXEC))
        return -EACCES;
    r = inode_permission(ctx, inode, MAY_EXEC);
    if (!r)
        r = file_open_inode(ctx, &p, FILE_OPEN_EXEC, ret_file);
    if (!r)
        notify_file(*ret_file, IN_OPEN | NOTIFY_OPEN_EXEC);
    return r;
}

static int read_head(struct exec *x, struct exec_object *o)
{
    ssize_t n = file_read_kernel(&x->task->ctx, o->file, o->head, sizeof(o->head), 0);

    if (n < 0)
        return (int)n;
    o->head_size = (size_t)n;
    return 0;
}

static int parse(struct exec *x, struct exec_object *o)
{
    uint64_t task_size = x->task->group->container->platform->task_size, phoff;
    CLEANUP_FREE uint8_t *more = NULL;
    const uint8_t *phdrs;
    size_t phsize;
    ssize_t n;
    int r = elf_check_header(o->head, o->head_size, &phoff, &phsize);

    if (r)
        return r;
    if (phoff <= o->head_size && phsize <= o->head_size - phoff) {
        phdrs = o->head + phoff;
    } else {
        more = mem_zalloc(phsize);
        if (!more)
            return -ENOMEM;
        n = file_read_kernel(&x->task->ctx, o->file, more, phsize, (int64_t)phoff);
        if (n != (ssize_t)phsize)
            return n < 0 ? (int)n : -ENOEXEC;
        phdrs = more;
    }
    r = elf_parse(o->head, phdrs, phsize, task_size, &o->image);
    x->fatal |= r == -EINVAL || r == -ENOMEM;
    return r;
}

int exec_object_load(struct exec *x, struct exec_object *o)
{
    int r = read_head(x, o);

    return r ? r : parse(x, o);
}

/* The script's name goes where the interpreter's arguments are: interp [arg] script rest-of-argv. */
static int rewrite_argv(struct exec *x, const char *script)
{
    struct exec_strings *argv = x->req->argv;
    struct buf b = {0};
    size_t skip = argv->count ? strlen(argv->bytes.data) + 1 : 0;

    buf_append(&b, x->line.interp, strlen(x->line.interp) + 1);
    if (x->line.has_arg)
        buf_append(&b, x->line.arg, strlen(x->line.arg) + 1);
    buf_append(&b, script, strlen(script) + 1);
    if (argv->bytes.size > skip)
        buf_append(&b, argv->bytes.data + skip, argv->bytes.size - skip);
    if (buf_error(&b)) {
        buf_free(&b);
        return -ENOMEM;
    }
    argv->count = (argv->count ? argv->count - 1 : 0) + 2 + x->line.has_arg;
    buf_free(&argv->bytes);
    argv->bytes = b;
    return 0;
}

static int follow_script(struct exec *x, char *script)
{
    struct task *t = x->task;
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->cwd};
    struct file *next;
    int r;

    if (x->req->name_unreachable)
        return -ENOENT;
    r = rewrite_argv(x, script);
    if (r)
        return r;
    r = exec_open(&t->ctx, &base, x->line.interp, WALK_FOLLOW, &next);
    if (r)
        return r;
    file_unref(x->prog.file);
    x->prog.file = next;
    strcpy(script, x->line.interp);
    return 0;
}

static int load_interp(struct exec *x)
{
    const struct elf_image *im = &x->prog.image;
    struct task *t = x->task;
    struct walk_base base = {.root = &t->fs->root, .cwd = &t->fs->cwd};
    ssize_t n;
    int r;

    if (im->interp_offset + im->interp_size <= x->prog.head_size) {
        memcpy(x->interp_path, x->prog.head + im->interp_offset, im->interp_size);
    } else {
        n = file_read_kernel(&t->ctx, x->prog.file, x->interp_path, im->interp_size,
                             (int64_t)im->interp_offset);
        if (n != (ssize_t)im->interp_size)
            return n < 0 ? (int)n : -EIO;
    }
    if (x->interp_path[im->interp_size - 1])
        return -ENOEXEC;
    r = exec_open(&t->ctx, &base, x->interp_path, WALK_FOLLOW, &x->interp.file);
    if (r)
        return r;
    r = exec_object_load(x, &x->interp);
    return r == -ENOEXEC || r == -EINVAL ? -ELIBBAD : r;
}

int exec_resolve(struct exec *x)
{
    CLEANUP_FREE char *script = NULL;
    int r;

    for (int depth = 0;; depth++) {
        r = read_head(x, &x->prog);
        if (r)
            return r;
        if (x->prog.head_size < 2 || x->prog.head[0] != '#' || x->prog.head[1] != '!')
            break;
        if (depth >= EXEC_SCRIPTS_MAX)
            return -ELOOP;
        r = script_parse((const char *)x->prog.head, x->prog.head_size, &x->line);
        if (r)
            return r;
        if (!script) {
            size_t size = MAX(strlen(x->req->name) + 1, (size_t)SCRIPT_LINE_MAX);

            script = mem_zalloc(size);
            if (!script)
                return -ENOMEM;
            strcpy(script, x->req->name);
        }
        r = follow_script(x, script);
        if (r)
            return r;
    }
    r = parse(x, &x->prog);
    if (!r && x->prog.image.interp_size)
        r = load_interp(x);
    return r;
}

static void add(struct batch *b, uint64_t addr, uint64_t size, uint32_t prot, int flags, int fd, uint64_t offset)
{
    struct plat_hostcall *c = &b->calls[b->len++];

    BUG_ON(b->len > CALLS_MAX);
    *c = (struct plat_hostcall){
        .nr = SYS_mmap,
        .fd = fd,
        .args = {addr, size, prot, (uint64_t)(flags | MAP_FIXED), (uint64_t)-1, offset},
    };
}

static void add_segments(struct batch *b, const struct exec_object *o, const struct file_map *map)
{
    for (unsigned i = 0; i < o->image.segments_len; i++) {
        const struct elf_segment *s = &o->image.segments[i];
        uint64_t start = s->vaddr + o->bias, in_page = start & (PAGE_SIZE - 1), file_end = start + s->filesz;
        uint64_t anon = s->filesz ? ALIGN_UP(file_end, PAGE_SIZE) : start - in_page;
        uint64_t end = ALIGN_UP(start + s->memsz, PAGE_SIZE);

        if (s->filesz)
            add(b, start - in_page, ALIGN_UP(s->filesz + in_page, PAGE_SIZE), s->prot, MAP_PRIVATE, map->host_fd,
                s->offset - in_page + map->offset);
        if (end > anon)
            add(b, anon, end - anon, s->prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

/* The rest of the page in which a segment's file contents end belongs to its zeros. */
static int zero_tails(struct ctx *ctx, const struct exec_object *o)
{
    for (unsigned i = 0; i < o->image.segments_len; i++) {
        const struct elf_segment *s = &o->image.segments[i];
        uint64_t at = s->vaddr + o->bias + s->filesz, end = ALIGN_UP(at, PAGE_SIZE);

        if (s->filesz && s->memsz > s->filesz && (s->prot & PROT_WRITE) && end > at &&
            zero_out(ctx, UADDR(at), end - at))
            return -EFAULT;
    }
    return 0;
}

static uint64_t stack_size(const struct exec *x)
{
    uint64_t limit = x->task->group->rlimits[RLIMIT_STACK].rlim_cur;
    uint64_t need = x->req->argv->bytes.size + x->req->envp->bytes.size +
                    8 * ((uint64_t)x->req->argv->count + x->req->envp->count) + EXEC_STACK_SPARE;

    if (limit == RLIM_INFINITY)
        limit = EXEC_STACK_UNLIMITED;
    limit = MIN(limit, EXEC_STACK_MAX);
    return ALIGN_UP(MAX(limit, need), PAGE_SIZE);
}

/* Chooses all addresses. Return: 0, −EPERM (below the lowest), −ENOMEM. */
static int lay_out(struct exec *x)
{
    const struct elf_image *im = &x->prog.image, *in = &x->interp.image;
    struct mm *mm = x->mm;
    uint64_t top = x->thread->aspace->mmap_top, free_top, at;
    bool fixed = x->task->personality & EXEC_NO_RANDOM;

    x->stack_size = stack_size(x);
    if (x->stack_size + MM_STACK_GUARD > top / 4)
        return -ENOMEM;
    mm->stack_start = top;
    mm->stack_low = top - x->stack_size;
    free_top = mm->stack_low - MM_STACK_GUARD;
    if (x->interp.file) {
        at = ALIGN_DOWN(free_top - (in->high - in->low), in->align);
        x->interp.bias = in->dyn ? at - in->low : 0;
    }
    if (!im->dyn) {
        if (im->low < EXEC_MIN_ADDR)
            return -EPERM;
    } else if (x->interp.file) {
        at = EXEC_DYN_BASE + (fixed ? 0 : (x->random[2] & EXEC_DYN_RANDOM) << PAGE_SHIFT);
        x->prog.bias = ALIGN_DOWN(at, im->align) - im->low;
    } else {
        /* A loader that is run by itself must leave room for the program that it will load. */
        x->prog.bias = ALIGN_DOWN(free_top - (im->high - im->low), im->align) - im->low;
    }
    at = im->dyn && !x->interp.file ? EXEC_DYN_BASE : im->high + x->prog.bias;
    mm->brk_start = at + (fixed ? 0 : (x->random[3] & EXEC_BRK_RANDOM) << PAGE_SHIFT);
    return 0;
}

static void note_extents(struct exec *x)
{
    const struct exec_object *o = &x->prog;
    struct mm *mm = x->mm;

    mm->code_start = UINT64_MAX;
    for (unsigned i = 0; i < o->image.segments_len; i++) {
        const struct elf_segment *s = &o->image.segments[i];
        uint64_t start = s->vaddr + o->bias, end = start + s->filesz;

        mm->code_start = MIN(mm->code_start, start);
        if (s->prot & PROT_EXEC)
            mm->code_end = MAX(mm->code_end, end);
        mm->data_start = MAX(mm->data_start, start);
        mm->data_end = MAX(mm->data_end, end);
    }
}

static int run_batch(struct exec *x, struct batch *b)
{
    int r = plat_thread_hostcalls(x->thread, b->calls, b->len);

    if (r)
        return -EAGAIN;
    for (unsigned i = 0; i < b->len; i++) {
        if (b->calls[i].result < 0 && b->calls[i].result >= -4095 && b->calls[i].nr == SYS_mmap)
            return b->calls[i].result == -ECANCELED ? -ENOMEM : (int)b->calls[i].result;
    }
    return 0;
}

int exec_map(struct exec *x)
{
    struct ctx ctx = {.cred = x->task->ctx.cred, .thread = x->thread};
    CLEANUP_FREE struct batch *b = NEW(struct batch);
    struct file_map map, interp_map;
    uint32_t stack_prot = PROT_READ | PROT_WRITE | (x->prog.image.exec_stack ? PROT_EXEC : 0);
    int r;

    if (!b)
        return -ENOMEM;
    r = lay_out(x);
    if (!r)
        r = file_mmap(&x->task->ctx, x->prog.file, PROT_READ | PROT_EXEC, false, &map);
    if (!r)
        r = mm_note_file(x->mm, x->prog.file, map.host_fd);
    if (r)
        return r;
    add(b, x->mm->stack_low, x->stack_size, stack_prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
        -1, 0);
    add(b, x->mm->stack_low - MM_STACK_GUARD, MM_STACK_GUARD, PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    add_segments(b, &x->prog, &map);
    if (x->interp.file) {
        r = file_mmap(&x->task->ctx, x->interp.file, PROT_READ | PROT_EXEC, false, &interp_map);
        if (!r)
            r = mm_note_file(x->mm, x->interp.file, interp_map.host_fd);
        if (r)
            return r;
        add_segments(b, &x->interp, &interp_map);
    }
    /* A huge page at each program's first push would cost more than many a program's whole run. Last, for hosts without
     * huge pages refuse it. */
    b->calls[b->len++] = (struct plat_hostcall){
        .nr = SYS_madvise, .fd = -1, .args = {x->mm->stack_low, x->stack_size, MADV_NOHUGEPAGE}};
    r = run_batch(x, b);
    if (!r)
        r = zero_tails(&ctx, &x->prog);
    if (!r && x->interp.file)
        r = zero_tails(&ctx, &x->interp);
    if (!r)
        r = plat_set_brk(x->thread, x->mm->brk_start, x->task->group->rlimits[RLIMIT_DATA].rlim_cur);
    if (!r && x->task->group->rlimits[RLIMIT_AS].rlim_cur != RLIM_INFINITY)
        plat_aspace_set_limit(x->mm->aspace, x->task->group->rlimits[RLIMIT_AS].rlim_cur);
    note_extents(x);
    return r;
}
