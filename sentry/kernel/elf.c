/* SPDX-License-Identifier: Apache-2.0 */
/* ELF executables. Every number is hostile: sums are checked before use. */
#include "sentry/kernel/elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int elf_check_header(const void *head, size_t size, uint64_t *ret_phoff, size_t *ret_phsize)
{
    Elf64_Ehdr h;

    if (size < sizeof(h))
        return -ENOEXEC;
    memcpy(&h, head, sizeof(h));
    /* The machine tells all; class and byte order are not looked at, as on Linux. */
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_machine != EM_X86_64)
        return -ENOEXEC;
    if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
        return -ENOEXEC;
    if (h.e_phentsize != sizeof(Elf64_Phdr) || h.e_phnum == 0 || h.e_phnum > ELF_PHDRS_MAX ||
        h.e_phoff > INT64_MAX - (uint64_t)h.e_phnum * sizeof(Elf64_Phdr))
        return -ENOEXEC;
    *ret_phoff = h.e_phoff;
    *ret_phsize = h.e_phnum * sizeof(Elf64_Phdr);
    return 0;
}

static int add_segment(const Elf64_Phdr *p, uint64_t task_size, struct elf_image *im)
{
    struct elf_segment *s;
    uint64_t end, offset_in_page = p->p_vaddr & (PAGE_SIZE - 1);

    if (p->p_filesz > p->p_memsz)
        return -EINVAL;
    if (p->p_memsz == 0)
        return 0;
    if (__builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) || end > task_size)
        return -ENOMEM;
    if (p->p_filesz && ((p->p_offset ^ p->p_vaddr) & (PAGE_SIZE - 1)))
        return -EINVAL;
    if (p->p_filesz && (p->p_offset < offset_in_page || p->p_offset > (uint64_t)INT64_MAX - p->p_filesz))
        return -EINVAL;
    if (im->segments_len == ELF_SEGMENTS_MAX)
        return -ENOEXEC;
    s = &im->segments[im->segments_len++];
    s->offset = p->p_offset;
    s->vaddr = p->p_vaddr;
    s->filesz = p->p_filesz;
    s->memsz = p->p_memsz;
    s->prot = (p->p_flags & PF_R ? PROT_READ : 0) | (p->p_flags & PF_W ? PROT_WRITE : 0) |
              (p->p_flags & PF_X ? PROT_EXEC : 0);
    /* Ascending, as the ABI asks; a mapper that trusts it must not be fooled. */
    if (im->segments_len > 1 && p->p_vaddr < im->segments[im->segments_len - 2].vaddr)
        return -EINVAL;
    if (im->segments_len == 1)
        im->low = ALIGN_DOWN(p->p_vaddr, PAGE_SIZE);
    im->high = MAX(im->high, ALIGN_UP(end, PAGE_SIZE));
    if (p->p_align > im->align && (p->p_align & (p->p_align - 1)) == 0)
        im->align = p->p_align;
    return 0;
}

/* Program headers are seen by the program at the place where the segment that holds them is mapped. */
static void find_phdrs(const Elf64_Ehdr *h, struct elf_image *im)
{
    for (unsigned i = 0; i < im->segments_len; i++) {
        const struct elf_segment *s = &im->segments[i];

        if (s->offset <= h->e_phoff && h->e_phoff - s->offset < s->filesz) {
            im->phdr_vaddr = h->e_phoff - s->offset + s->vaddr;
            return;
        }
    }
}

int elf_parse(const void *head, const void *phdrs, size_t phsize, uint64_t task_size,
              struct elf_image *ret_image)
{
    struct elf_image *im = ret_image;
    Elf64_Ehdr h;
    Elf64_Phdr p;
    int r;

    memcpy(&h, head, sizeof(h));
    memset(im, 0, sizeof(*im));
    im->dyn = h.e_type == ET_DYN;
    im->entry = h.e_entry;
    im->phnum = h.e_phnum;
    im->align = PAGE_SIZE;
    if (phsize != h.e_phnum * sizeof(p))
        return -ENOEXEC;
    for (size_t at = 0; at < phsize; at += sizeof(p)) {
        memcpy(&p, (const char *)phdrs + at, sizeof(p));
        switch (p.p_type) {
        case PT_LOAD:
            r = add_segment(&p, task_size, im);
            if (r)
                return r;
            break;
        case PT_INTERP:
            if (im->interp_size)
                break; /* the first one counts */
            if (p.p_filesz < 2 || p.p_filesz > ELF_INTERP_MAX || p.p_offset > INT64_MAX - p.p_filesz)
                return -ENOEXEC;
            im->interp_offset = p.p_offset;
            im->interp_size = p.p_filesz;
            break;
        case PT_GNU_STACK:
            im->exec_stack = p.p_flags & PF_X;
            break;
        default:
            break;
        }
    }
    if (!im->segments_len || im->high > task_size)
        return im->segments_len ? -ENOMEM : -ENOEXEC;
    if (im->align > 1UL << 30)
        im->align = 1UL << 30;
    find_phdrs(&h, im);
    return 0;
}
