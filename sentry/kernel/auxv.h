/* SPDX-License-Identifier: Apache-2.0 */
/* The auxiliary vector of a new program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cred;

struct auxv_input {
    uint64_t vdso;         /* 0 = none */
    uint64_t min_sigstack;
    uint64_t hwcap;
    uint64_t phdr, phnum, entry, interp_base;
    uint64_t random, execfn, platform; /* guest addresses */
    const struct cred *cred;
    bool secure;
};

/* Fills words with type, value pairs and the closing AT_NULL pair. Return: number of words, at most max. */
unsigned auxv_build(const struct auxv_input *in, uint64_t *words, unsigned max);
