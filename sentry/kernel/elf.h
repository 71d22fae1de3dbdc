/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of ELF executables: nothing here touches a guest or a file, so that it can be tested on hostile input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/base/compiler.h"

enum { ELF_SEGMENTS_MAX = 64, ELF_PHDRS_MAX = 1170 /* 64 KiB of them */, ELF_INTERP_MAX = 4096 };

/* A PT_LOAD entry; page rounding is the mapper's. */
struct elf_segment {
    uint64_t offset, vaddr, filesz, memsz;
    uint32_t prot; /* PROT_* */
};

struct elf_image {
    bool dyn;              /* ET_DYN: may be placed anywhere */
    bool exec_stack;       /* asks for an executable stack (PT_GNU_STACK with X) */
    uint64_t entry;
    uint64_t phdr_vaddr;   /* where the program headers will be in memory, 0 = nowhere */
    uint16_t phnum;
    uint64_t align;        /* largest p_align of its segments, at least a page */
    uint64_t low, high;    /* [low, high): page-rounded extent of all segments */
    uint64_t interp_offset, interp_size; /* path of the interpreter in the file, with its NUL; size 0: none */
    unsigned segments_len;
    struct elf_segment segments[ELF_SEGMENTS_MAX];
};

/* Looks at the file header in head (size bytes of the file's start). Return: 0 and where the program headers are,
 * −ENOEXEC (not an executable for this machine). */
MUST_CHECK int elf_check_header(const void *head, size_t size, uint64_t *ret_phoff, size_t *ret_phsize);
/* Parses header and program headers (phdrs has ret_phsize bytes). task_size bounds addresses.
 * Return: 0, −ENOEXEC, −EINVAL (bad segments), −ENOMEM (outside the address space). */
MUST_CHECK int elf_parse(const void *head, const void *phdrs, size_t phsize, uint64_t task_size,
                         struct elf_image *ret_image);
