/* SPDX-License-Identifier: Apache-2.0 */
/* Time namespace objects, and the vDSO of their members. */
#include "sentry/kernel/timens.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "platform/base/alloc.h"
#include "platform/platform.h"
#include "sentry/abi/abi_time.h"
#include "sentry/mm/hostproc.h"

/* Seconds that a signed count of nanoseconds can hold; a shifted clock gets no further than half of it. */
#define TIMENS_SEC_MAX (INT64_MAX / NSEC_PER_SEC)

int timens_new(const struct timens *like, struct userns *userns, uint32_t uid, struct timens **ret_ns)
{
    struct timens *ns = NEW(struct timens);
    int r;

    if (!ns)
        return -ENOMEM;
    r = ucharge_take(&ns->charge, UCOUNT_TIME_NS, userns, uid);
    if (r) {
        mem_free(ns);
        return r;
    }
    ref_init(&ns->ref);
    ns->userns = userns_ref(userns);
    ns->ino = userns_next_ino();
    if (like)
        memcpy(ns->offset_ns, like->offset_ns, sizeof(ns->offset_ns));
    *ret_ns = ns;
    return 0;
}

struct timens *timens_ref(struct timens *ns)
{
    if (ns)
        ref_get(&ns->ref);
    return ns;
}

void timens_unref(struct timens *ns)
{
    if (!ns || !ref_put(&ns->ref))
        return;
    userns_unref(ns->userns);
    ucharge_drop(&ns->charge);
    mem_free(ns);
}

int timens_check_offset(enum timens_clock clock, int64_t sec, uint32_t nsec)
{
    struct timespec now = {0};
    int64_t shown;

    if (sec > TIMENS_SEC_MAX || sec < -TIMENS_SEC_MAX)
        return -ERANGE;
    BUG_ON(clock_gettime(clock == TIMENS_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_BOOTTIME, &now));
    shown = now.tv_sec + sec + (now.tv_nsec + (int64_t)nsec >= NSEC_PER_SEC);
    return shown < 0 || shown > TIMENS_SEC_MAX / 2 ? -ERANGE : 0;
}

int timens_set_offset(struct timens *ns, enum timens_clock clock, int64_t sec, uint32_t nsec)
{
    int r = timens_check_offset(clock, sec, nsec);

    if (r)
        return r;
    if (!ns || ns->frozen)
        return -EACCES;
    ns->offset_ns[clock] = sec * NSEC_PER_SEC + nsec;
    return 0;
}

int64_t timens_offset(const struct timens *ns, int32_t clockid)
{
    if (!ns)
        return 0;
    switch (clockid) {
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
        return ns->offset_ns[TIMENS_MONOTONIC];
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        return ns->offset_ns[TIMENS_BOOTTIME];
    default:
        return 0;
    }
}

uint64_t timens_to_host(int64_t offset_ns, uint64_t at_ns)
{
    if (offset_ns > 0)
        return at_ns > (uint64_t)offset_ns ? at_ns - (uint64_t)offset_ns : 0;
    return time_add_ns(at_ns, -(uint64_t)offset_ns);
}

uint64_t timens_from_host(int64_t offset_ns, uint64_t host_ns)
{
    return timens_to_host(-offset_ns, host_ns);
}

/* ---- the vDSO ---- */

/* mov $__NR_clock_gettime, %eax; syscall; ret */
static const uint8_t timens_call[] = {0xb8, 228, 0, 0, 0, 0x0f, 0x05, 0xc3};

/* What a vDSO tells of itself, at its addresses in memory: it is mapped at the same place here as in the guests. */
struct vdso {
    uint64_t base, bias;
    const Elf64_Sym *symbols;
    const char *names;
    const uint32_t *hash; /* of DT_HASH: the second word counts the symbols */
};

static void vdso_dynamic(struct vdso *v, const Elf64_Dyn *dyn)
{
    for (; dyn->d_tag != DT_NULL; dyn++) {
        const void *p = (const void *)(dyn->d_un.d_ptr + v->bias);

        if (dyn->d_tag == DT_SYMTAB)
            v->symbols = p;
        else if (dyn->d_tag == DT_STRTAB)
            v->names = p;
        else if (dyn->d_tag == DT_HASH)
            v->hash = p;
    }
}

static bool vdso_parse(struct vdso *v, uint64_t base)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + e->e_phoff);
    const Elf64_Phdr *dynamic = NULL;

    *v = (struct vdso){.base = base};
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD)
            v->bias = base + ph[i].p_offset - ph[i].p_vaddr;
        else if (ph[i].p_type == PT_DYNAMIC)
            dynamic = &ph[i];
    }
    if (!dynamic)
        return false;
    vdso_dynamic(v, (const Elf64_Dyn *)(base + dynamic->p_offset));
    return v->symbols && v->names && v->hash;
}

/* Return: where clock_gettime begins, 0 when there is none that could be replaced. */
static uint64_t vdso_clock_gettime(uint64_t base)
{
    struct vdso v;

    if (!vdso_parse(&v, base))
        return 0;
    for (uint32_t i = 0; i < v.hash[1]; i++) {
        const Elf64_Sym *s = &v.symbols[i];

        if (s->st_shndx != SHN_UNDEF && s->st_size >= sizeof(timens_call) && !strcmp(v.names + s->st_name, "__vdso_clock_gettime"))
            return v.bias + s->st_value;
    }
    return 0;
}

static bool timens_shifts(const struct timens *ns)
{
    return ns && (ns->offset_ns[TIMENS_MONOTONIC] || ns->offset_ns[TIMENS_BOOTTIME]);
}

int timens_enter(struct plat_thread *thread, const struct timens *from, struct timens *ns)
{
    uint64_t addr;
    uint8_t code[sizeof(timens_call)];
    ssize_t n;

    if (ns)
        ns->frozen = true;
    if (timens_shifts(from) == timens_shifts(ns))
        return 0;
    if (!thread->aspace->platform->vdso)
        return 0; /* every program makes the call */
    addr = vdso_clock_gettime(thread->aspace->platform->vdso);
    if (!addr)
        return -EOPNOTSUPP;
    /* A debugger's write: the process gets a page of its own for it, and so do its children. */
    memcpy(code, timens_shifts(ns) ? timens_call : (const uint8_t *)addr, sizeof(code));
    n = hostproc_mem(thread->aspace->host_pid, code, sizeof(code), addr, true);
    return n == (ssize_t)sizeof(code) ? 0 : n < 0 ? (int)n : -EAGAIN;
}
