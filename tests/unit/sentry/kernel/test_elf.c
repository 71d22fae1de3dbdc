/* SPDX-License-Identifier: Apache-2.0 */
/* ELF headers, sound and hostile. */
#include "sentry/kernel/elf.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define TOP 0x7ffffffff000UL

static Elf64_Ehdr head;
static Elf64_Phdr phdrs[8];
static struct elf_image im;

static void sound(void)
{
    memset(&head, 0, sizeof(head));
    memset(phdrs, 0, sizeof(phdrs));
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_machine = EM_X86_64;
    head.e_type = ET_EXEC;
    head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_phnum = 3;
    head.e_phoff = sizeof(head);
    head.e_entry = 0x401000;
    phdrs[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0x400000, .p_filesz = 0x1800,
                            .p_memsz = 0x1800, .p_align = 0x1000};
    phdrs[1] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = 0x1800, .p_vaddr = 0x402800,
                            .p_filesz = 0x100, .p_memsz = 0x5000, .p_align = 0x1000};
    phdrs[2] = (Elf64_Phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
}

static int parse(void)
{
    uint64_t phoff;
    size_t phsize;
    int r = elf_check_header(&head, sizeof(head), &phoff, &phsize);

    return r ? r : elf_parse(&head, phdrs, phsize, TOP, &im);
}

TestSuite(elf, .init = sound);

Test(elf, sound_program)
{
    cr_assert_eq(parse(), 0);
    cr_assert_eq(im.segments_len, 2);
    cr_assert_eq(im.low, 0x400000);
    cr_assert_eq(im.high, 0x408000);
    cr_assert_eq(im.segments[0].prot, PROT_READ | PROT_EXEC);
    cr_assert_eq(im.phdr_vaddr, 0x400040);
    cr_assert_not(im.exec_stack);
    cr_assert_not(im.dyn);
}

Test(elf, wrong_kind_is_enoexec)
{
    head.e_machine = EM_AARCH64;
    cr_assert_eq(parse(), -ENOEXEC);
    sound();
    head.e_type = ET_REL;
    cr_assert_eq(parse(), -ENOEXEC);
    sound();
    head.e_phentsize = 55;
    cr_assert_eq(parse(), -ENOEXEC);
    sound();
    head.e_phnum = 0;
    cr_assert_eq(parse(), -ENOEXEC);
    sound();
    head.e_phnum = 0xffff;
    cr_assert_eq(parse(), -ENOEXEC);
    sound();
    head.e_phoff = UINT64_MAX - 10;
    cr_assert_eq(parse(), -ENOEXEC);
    uint64_t off;
    size_t size;
    cr_assert_eq(elf_check_header(&head, sizeof(head) - 1, &off, &size), -ENOEXEC);
}

Test(elf, sums_that_overflow)
{
    phdrs[0].p_memsz = UINT64_MAX;
    cr_assert_eq(parse(), -ENOMEM);
    sound();
    phdrs[0].p_filesz = 0x2000; /* more than memsz */
    cr_assert_eq(parse(), -EINVAL);
    sound();
    phdrs[1].p_vaddr = UINT64_MAX - 0xfff + 0x800;
    cr_assert_eq(parse(), -ENOMEM);
    sound();
    phdrs[1].p_vaddr = TOP - 0x1000 + 0x800;
    phdrs[1].p_memsz = 0x1000;
    cr_assert_eq(parse(), -ENOMEM);
    sound();
    phdrs[1].p_offset = INT64_MAX - 0x7ff; /* congruent, but beyond any file */
    phdrs[1].p_filesz = 0x1000;
    cr_assert_eq(parse(), -EINVAL);
    sound();
    phdrs[1].p_offset = 0x1801; /* not congruent */
    cr_assert_eq(parse(), -EINVAL);
    sound();
    phdrs[0].p_offset = 0x10; /* starts before the file's first byte once rounded */
    phdrs[0].p_vaddr = 0x400010;
    cr_assert_eq(parse(), 0);
    sound();
    phdrs[1].p_vaddr = 0x300800; /* below the one before it */
    cr_assert_eq(parse(), -EINVAL);
}

Test(elf, interpreter_bounds)
{
    phdrs[2] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x300, .p_filesz = 28};
    cr_assert_eq(parse(), 0);
    cr_assert_eq(im.interp_size, 28);
    phdrs[2].p_filesz = 1;
    cr_assert_eq(parse(), -ENOEXEC);
    phdrs[2].p_filesz = ELF_INTERP_MAX + 1;
    cr_assert_eq(parse(), -ENOEXEC);
    phdrs[2].p_filesz = 28;
    phdrs[2].p_offset = UINT64_MAX - 4;
    cr_assert_eq(parse(), -ENOEXEC);
}

Test(elf, nothing_to_load)
{
    phdrs[0].p_type = phdrs[1].p_type = PT_NOTE;
    cr_assert_eq(parse(), -ENOEXEC);
}

Test(elf, absurd_alignment)
{
    phdrs[0].p_align = 1ULL << 62;
    cr_assert_eq(parse(), 0);
    cr_assert_leq(im.align, 1UL << 30);
    phdrs[0].p_align = 0x1001;
    cr_assert_eq(parse(), 0);
    cr_assert_eq(im.align, 0x1000);
}
