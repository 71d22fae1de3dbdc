/* SPDX-License-Identifier: Apache-2.0 */
/* The auxiliary vector. */
#include "sentry/kernel/auxv.h"

#include <elf.h>

#include "platform/base/compiler.h"
#include "sentry/core/cred.h"

/* Newer than the C library's header. */
#define AT_MINSIGSTKSZ_K 51

enum { CLOCK_TICKS = 100 };

struct writer {
    uint64_t *words;
    unsigned len, max;
};

static void put(struct writer *w, uint64_t type, uint64_t value)
{
    BUG_ON(w->len + 2 > w->max);
    w->words[w->len++] = type;
    w->words[w->len++] = value;
}

unsigned auxv_build(const struct auxv_input *in, uint64_t *words, unsigned max)
{
    struct writer w = {.words = words, .max = max};

    if (in->vdso)
        put(&w, AT_SYSINFO_EHDR, in->vdso);
    put(&w, AT_MINSIGSTKSZ_K, in->min_sigstack);
    put(&w, AT_HWCAP, in->hwcap);
    put(&w, AT_PAGESZ, PAGE_SIZE);
    put(&w, AT_CLKTCK, CLOCK_TICKS);
    put(&w, AT_PHDR, in->phdr);
    put(&w, AT_PHENT, sizeof(Elf64_Phdr));
    put(&w, AT_PHNUM, in->phnum);
    put(&w, AT_BASE, in->interp_base);
    put(&w, AT_FLAGS, 0);
    put(&w, AT_ENTRY, in->entry);
    put(&w, AT_UID, userns_uid_shown(in->cred->userns, in->cred->uid));
    put(&w, AT_EUID, userns_uid_shown(in->cred->userns, in->cred->euid));
    put(&w, AT_GID, userns_gid_shown(in->cred->userns, in->cred->gid));
    put(&w, AT_EGID, userns_gid_shown(in->cred->userns, in->cred->egid));
    put(&w, AT_SECURE, in->secure);
    put(&w, AT_RANDOM, in->random);
    /* FS and GS bases are written by calls only: a program that sets them on its own would do so behind the back of
     * a vfork's lender. */
    put(&w, AT_HWCAP2, 0);
    put(&w, AT_EXECFN, in->execfn);
    put(&w, AT_PLATFORM, in->platform);
    put(&w, AT_NULL, 0);
    return w.len;
}
