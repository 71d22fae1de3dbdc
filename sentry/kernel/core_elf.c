/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a core dump: notes about process and threads, then memory. Pages that were never touched become holes. */
#include "sentry/kernel/coredump.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/procfs.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "sentry/core/cred.h"
#include "sentry/kernel/fsctx.h"
#include "sentry/kernel/task.h"
#include "sentry/mm/hostproc.h"
#include "sentry/mm/maps.h"
#include "sentry/mm/mm.h"
#include "sentry/mm/usermem.h"

enum {
    VMAS_MAX = 65000, /* program headers are counted in 16 bits */
    FILE_NOTE_MAX = 4 << 20, SCAN_PAGES = 4096, COPY_PAGES = 16, PSARGS_SIZE = 80,
};
#define PAGEMAP_PRESENT (3ULL << 62) /* in memory, or in swap */

/* ---- notes ---- */

static void put_note(struct buf *out, uint32_t type, const void *p, size_t size)
{
    Elf64_Nhdr h = {.n_namesz = 5, .n_descsz = (uint32_t)size, .n_type = type};
    static const char zero[8];

    buf_append(out, &h, sizeof(h));
    buf_append(out, "CORE\0\0\0", 8);
    buf_append(out, p, size);
    buf_append(out, zero, ALIGN_UP(size, 4U) - size);
}

static struct timeval timeval_of(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / 1000000000U), .tv_usec = (suseconds_t)(ns % 1000000000U / 1000)};
}

static void put_status(const struct task *t, const struct coredump *d, struct buf *out)
{
    const struct tgroup *g = t->group;
    const struct pidns *ns = d->dumper->pidns;
    struct elf_prstatus s;
    uint64_t cpu = task_cpu_ns(t);

    memset(&s, 0, sizeof(s));
    s.pr_info.si_signo = s.pr_cursig = (short)d->info->si_signo;
    s.pr_info.si_code = d->info->si_code;
    s.pr_info.si_errno = d->info->si_errno;
    s.pr_sigpend = t->pending.set;
    s.pr_sighold = t->blocked;
    s.pr_pid = task_tid_in(t, ns);
    s.pr_ppid = g->parent ? tgroup_pid_in(g->parent, ns) : 0;
    s.pr_pgrp = g->pgrp ? pgrp_id_in(g->pgrp, ns) : 0;
    s.pr_sid = g->pgrp ? session_id_in(g->pgrp->session, ns) : 0;
    s.pr_utime = timeval_of(cpu);
    s.pr_stime = timeval_of(t->stime_ns);
    s.pr_cutime = timeval_of(g->cutime_ns);
    s.pr_cstime = timeval_of(g->cstime_ns);
    _Static_assert(sizeof(struct regs) <= sizeof(s.pr_reg), "registers");
    if (t->thread && t->thread->stopped)
        memcpy(&s.pr_reg, &t->thread->regs, sizeof(struct regs));
    put_note(out, NT_PRSTATUS, &s, sizeof(s));
}

static void put_process(struct task *t, struct buf *out)
{
    const struct tgroup *g = t->group;
    struct elf_prpsinfo p;
    uint64_t size = MIN(t->mm->arg_end - t->mm->arg_start, (uint64_t)PSARGS_SIZE - 1);

    memset(&p, 0, sizeof(p));
    p.pr_sname = 'R';
    p.pr_nice = (char)t->nice;
    p.pr_uid = userns_uid_shown(t->ctx.cred->userns, t->ctx.cred->uid);
    p.pr_gid = userns_gid_shown(t->ctx.cred->userns, t->ctx.cred->gid);
    p.pr_pid = tgroup_pid_for(g, t);
    p.pr_ppid = g->parent ? tgroup_pid_for(g->parent, t) : 0;
    p.pr_pgrp = g->pgrp ? pgrp_id_in(g->pgrp, t->pidns) : 0;
    p.pr_sid = g->pgrp ? session_id_in(g->pgrp->session, t->pidns) : 0;
    _Static_assert(sizeof(p.pr_fname) == TASK_COMM_LEN && sizeof(p.pr_psargs) == PSARGS_SIZE, "names");
    memcpy(p.pr_fname, t->comm, sizeof(p.pr_fname));
    if (copy_in(&t->ctx, p.pr_psargs, UADDR(t->mm->arg_start), size))
        size = 0;
    for (uint64_t i = 0; i < size; i++)
        p.pr_psargs[i] = p.pr_psargs[i] ? p.pr_psargs[i] : ' ';
    p.pr_psargs[size] = '\0';
    put_note(out, NT_PRPSINFO, &p, sizeof(p));
}

/* Which file is mapped where: count and page size, then three words a mapping, then the names. */
static int put_files(const struct task *t, const struct mm_vma *vmas, unsigned len, struct buf *out)
{
    CLEANUP_BUF struct buf words = {0}, names = {0};
    uint64_t head[2] = {0, PAGE_SIZE};

    for (unsigned i = 0; i < len && words.size + names.size < FILE_NOTE_MAX; i++) {
        const struct mm_vma *v = &vmas[i];
        uint64_t word[3] = {v->start, v->end, v->offset / PAGE_SIZE};

        if (!v->path)
            continue;
        int r = path_print(v->path, &t->fs->root, &names);

        if (r)
            return r;
        buf_putc(&names, '\0');
        buf_append(&words, word, sizeof(word));
        head[0]++;
    }
    CLEANUP_BUF struct buf all = {0};

    buf_append(&all, head, sizeof(head));
    if (words.size)
        buf_append(&all, words.data, words.size);
    if (names.size)
        buf_append(&all, names.data, names.size);
    if (buf_error(&words) || buf_error(&names) || buf_error(&all))
        return -ENOMEM;
    if (head[0])
        put_note(out, NT_FILE, all.data, all.size);
    return 0;
}

static int make_notes(const struct coredump *d, const struct mm_vma *vmas, unsigned len, struct buf *out)
{
    struct task *t = d->dumper;
    int r;

    put_status(t, d, out);
    put_process(t, out);
    put_note(out, NT_SIGINFO, d->info, sizeof(*d->info));
    put_note(out, NT_AUXV, t->mm->auxv, t->mm->auxv_len * sizeof(t->mm->auxv[0]));
    r = put_files(t, vmas, len, out);
    if (r)
        return r;
    for (struct task *o = tgroup_first(t->group); o; o = tgroup_next(t->group, o)) {
        if (o != t && o->state != TASK_ZOMBIE)
            put_status(o, d, out);
    }
    return buf_error(out);
}

/* ---- memory ---- */

/* Return: bytes of v that go into the file. */
static uint64_t dump_size(struct task *t, const struct mm_vma *v)
{
    uint32_t filter = t->mm->dump_filter;
    unsigned char magic[SELFMAG];

    if (v->kernel)
        return v->end - v->start;
    if (v->dont_dump)
        return 0;
    if (v->shared)
        return filter & (v->path ? MM_DUMP_FILE_SHARED : MM_DUMP_ANON_SHARED) ? v->end - v->start : 0;
    if (v->anonymous && (filter & MM_DUMP_ANON_PRIVATE))
        return v->end - v->start;
    if (!v->path)
        return 0;
    if (filter & MM_DUMP_FILE_PRIVATE)
        return v->end - v->start;
    /* The first page of a program or library tells debuggers which it is. */
    if ((filter & MM_DUMP_ELF_HEADERS) && v->offset == 0 && v->readable &&
        !copy_in(&t->ctx, magic, UADDR(v->start), sizeof(magic)) && !memcmp(magic, ELFMAG, SELFMAG))
        return PAGE_SIZE;
    return 0;
}

/* Writes pages that are there, in pieces; one that can't be read becomes a hole. */
static int emit_pages(struct coredump *d, uint64_t addr, uint64_t size, char *bounce)
{
    for (uint64_t done = 0; done < size;) {
        uint64_t n = MIN(size - done, (uint64_t)COPY_PAGES * PAGE_SIZE);
        bool ok = !plat_copy_in(d->dumper->thread, bounce, addr + done, n); /* the vDSO is above what guests may map */

        if (!ok && n > PAGE_SIZE) {
            n = PAGE_SIZE;
            ok = !plat_copy_in(d->dumper->thread, bounce, addr + done, n);
        }
        int r = coredump_emit(d, ok ? bounce : NULL, n);

        if (r)
            return r;
        done += n;
    }
    return 0;
}

/* Pages of memory without a file behind it: what was never touched is a hole. map has room for SCAN_PAGES words. */
static int emit_touched(struct coredump *d, uint64_t addr, uint64_t size, uint64_t *map, char *bounce)
{
    for (uint64_t at = 0; at < size;) {
        uint64_t pages = MIN((size - at) / PAGE_SIZE, (uint64_t)SCAN_PAGES);
        ssize_t n = hostproc_pread(d->dumper->mm->aspace->host_pid, "pagemap", map, pages * 8, (addr + at) / PAGE_SIZE * 8);
        int r;

        if (n < (ssize_t)(pages * 8))
            return -EIO;
        for (uint64_t i = 0, end; i < pages; i = end) {
            bool present = map[i] & PAGEMAP_PRESENT;

            for (end = i + 1; end < pages && !(map[end] & PAGEMAP_PRESENT) == !present; end++)
                ;
            r = present ? emit_pages(d, addr + at + i * PAGE_SIZE, (end - i) * PAGE_SIZE, bounce)
                        : coredump_emit(d, NULL, (end - i) * PAGE_SIZE);
            if (r)
                return r;
        }
        at += pages * PAGE_SIZE;
    }
    return 0;
}

static int emit_memory(struct coredump *d, const struct mm_vma *vmas, const Elf64_Phdr *heads, unsigned len)
{
    CLEANUP_FREE uint64_t *map = NEW_ARRAY(uint64_t, SCAN_PAGES);
    CLEANUP_FREE char *bounce = mem_calloc(COPY_PAGES, PAGE_SIZE);
    int r = map && bounce ? 0 : -ENOMEM;

    for (unsigned i = 0; i < len && !r; i++) {
        const struct mm_vma *v = &vmas[i];
        uint64_t size = heads[i].p_filesz;

        if (!size)
            continue;
        if (v->path || v->kernel)
            r = emit_pages(d, v->start, size, bounce);
        else
            r = emit_touched(d, v->start, size, map, bounce);
    }
    return r;
}

/* ---- the file ---- */

static int emit_heads(struct coredump *d, const struct mm_vma *vmas, unsigned len, Elf64_Phdr *heads, const struct buf *notes)
{
    uint64_t at = sizeof(Elf64_Ehdr) + (len + 1) * sizeof(Elf64_Phdr), data = ALIGN_UP(at + notes->size, PAGE_SIZE);
    Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = at, .p_filesz = notes->size, .p_align = 4};
    Elf64_Ehdr e = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof(e), .e_ehsize = sizeof(e),
        .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = (uint16_t)(len + 1),
    };
    uint64_t start = data;
    int r;

    for (unsigned i = 0; i < len; i++) {
        const struct mm_vma *v = &vmas[i];

        heads[i] = (Elf64_Phdr){
            .p_type = PT_LOAD, .p_vaddr = v->start, .p_memsz = v->end - v->start, .p_filesz = dump_size(d->dumper, v),
            .p_flags = (v->readable ? PF_R : 0U) | (v->writable ? PF_W : 0U) | (v->executable ? PF_X : 0U),
            .p_offset = data, .p_align = PAGE_SIZE,
        };
        data += heads[i].p_filesz;
    }
    r = coredump_emit(d, &e, sizeof(e));
    if (!r)
        r = coredump_emit(d, &note, sizeof(note));
    if (!r)
        r = coredump_emit(d, heads, len * sizeof(*heads));
    if (!r)
        r = coredump_emit(d, notes->data, notes->size);
    return r ? r : coredump_emit(d, NULL, start - at - notes->size);
}

int core_elf_write(struct coredump *d)
{
    CLEANUP_FREE struct mm_vma *vmas = NULL;
    CLEANUP_FREE Elf64_Phdr *heads = NULL;
    CLEANUP_BUF struct buf notes = {0};
    unsigned len;
    int r = mm_list_vmas(d->dumper->mm, &vmas, &len);

    if (r)
        return r;
    len = MIN(len, (unsigned)VMAS_MAX);
    heads = NEW_ARRAY(Elf64_Phdr, len);
    if (!heads)
        return -ENOMEM;
    r = make_notes(d, vmas, len, &notes);
    if (!r)
        r = emit_heads(d, vmas, len, heads, &notes);
    return r ? r : emit_memory(d, vmas, heads, len);
}
