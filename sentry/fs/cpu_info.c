/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of the processors. Source: Intel SDM volume 2 (CPUID), AMD APM volume 3 appendix E. */
#include "sentry/fs/cpu_info.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <x86intrin.h>

#include "platform/base/host.h"

struct regs4 {
    uint32_t a, b, c, d;
};

static struct regs4 cpuid(uint32_t leaf, uint32_t sub)
{
    struct regs4 r = {0};

    if ((leaf & 0x7fffffff) <= (__get_cpuid_max(leaf & 0x80000000, NULL) & 0x7fffffff))
        __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
    return r;
}

/* ---- features ---- */

/* Names of the bits of one register, from bit 0 on; blanks stand for bits without a name shown. A name may be used once. */
static const struct cpu_flag_word {
    uint32_t leaf, sub;
    char reg;
    const char *names; /* 32 names or "-" */
} cpu_flag_words[] = {
    {1, 0, 'd',
     "fpu vme de pse tsc msr pae mce cx8 apic - sep mtrr pge mca cmov pat pse36 pn clflush - dts acpi mmx fxsr sse "
     "sse2 ss ht tm ia64 pbe"},
    {0x80000001, 0, 'd',
     "- - - - - - - - - - - syscall - - - - - - - mp nx - mmxext - - fxsr_opt pdpe1gb rdtscp - lm 3dnowext 3dnow"},
    {1, 0, 'c',
     "pni pclmulqdq dtes64 monitor ds_cpl vmx smx est tm2 ssse3 cid sdbg fma cx16 xtpr pdcm - pcid dca sse4_1 "
     "sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave - avx f16c rdrand hypervisor"},
    {0x80000001, 0, 'c',
     "lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw ibs xop skinit wdt - lwp "
     "fma4 tce - nodeid_msr - tbm topoext perfctr_core perfctr_nb - bpext ptsc perfctr_llc mwaitx - -"},
    {7, 0, 'b',
     "fsgsbase tsc_adjust - bmi1 hle avx2 - smep bmi2 erms invpcid rtm cqm - mpx rdt_a avx512f avx512dq rdseed adx "
     "smap avx512ifma - clflushopt clwb intel_pt avx512pf avx512er avx512cd sha_ni avx512bw avx512vl"},
    {0xd, 1, 'a', "xsaveopt xsavec xgetbv1 xsaves xfd - - - - - - - - - - - - - - - - - - - - - - - - - - -"},
    {7, 1, 'a',
     "- - - - avx_vnni avx512_bf16 - cmpccxadd - - fzrm fsrs fsrc - - - - - - - - amx_fp16 - avx_ifma - - lam - - - "
     "- -"},
    {0x80000008, 0, 'b',
     "clzero irperf xsaveerptr - rdpru - - - - wbnoinvd - - - - - - - - - - - - - - - - - - - - - -"},
    {6, 0, 'a', "- - arat - - - - - - - - - - - - - - - - - - - - - - - - - - - - -"},
    {7, 0, 'c',
     "- avx512vbmi umip pku ospke waitpkg avx512_vbmi2 - gfni vaes vpclmulqdq avx512_vnni avx512_bitalg - "
     "avx512_vpopcntdq - la57 - - - - - rdpid - bus_lock_detect cldemote - movdiri movdir64b - - -"},
    {7, 0, 'd',
     "- - - - fsrm - - - avx512_vp2intersect - md_clear - - - serialize - tsxldtrk - pconfig arch_lbr ibt - amx_bf16 "
     "avx512_fp16 amx_tile amx_int8 - - flush_l1d arch_capabilities - -"},
};

void cpu_info_print_flags(struct buf *out)
{
    for (unsigned i = 0; i < ARRAY_SIZE(cpu_flag_words); i++) {
        const struct cpu_flag_word *w = &cpu_flag_words[i];
        struct regs4 r = cpuid(w->leaf, w->sub);
        uint32_t bits = w->reg == 'a' ? r.a : w->reg == 'b' ? r.b : w->reg == 'c' ? r.c : r.d;
        const char *p = w->names;

        for (unsigned bit = 0; bit < 32 && *p; bit++) {
            size_t len = strcspn(p, " ");

            if ((bits >> bit & 1) && *p != '-')
                buf_printf(out, " %.*s", (int)len, p);
            p += len + (p[len] == ' ');
        }
    }
    /* Not bits of CPUID, but true of every CPU that runs this code. */
    buf_puts(out, " constant_tsc rep_good nopl nonstop_tsc cpuid");
}

/* ---- identity ---- */

static void read_model(struct cpu_info *info)
{
    struct regs4 r = cpuid(0, 0), v = cpuid(1, 0), w = cpuid(0x80000008, 0);
    char name[49] = {0}, *start = name;

    memcpy(info->vendor, &r.b, 4);
    memcpy(info->vendor + 4, &r.d, 4);
    memcpy(info->vendor + 8, &r.c, 4);
    info->cpuid_level = r.a;
    info->stepping = v.a & 15;
    info->family = v.a >> 8 & 15;
    info->model = v.a >> 4 & 15;
    if (info->family == 15)
        info->family += v.a >> 20 & 255;
    if (info->family >= 6)
        info->model |= (v.a >> 16 & 15) << 4;
    info->clflush = (v.b >> 8 & 255) * 8;
    info->physical_bits = w.a & 255 ? w.a & 255 : 36;
    info->virtual_bits = w.a >> 8 & 255 ? w.a >> 8 & 255 : 48;
    for (uint32_t i = 0; i < 3; i++) {
        struct regs4 part = cpuid(0x80000002 + i, 0);

        memcpy(name + i * 16, &part, 16);
    }
    while (*start == ' ')
        start++;
    snprintf(info->model_name, sizeof(info->model_name), "%s", *start ? start : "unknown");
}

/* The time-stamp counter's rate, which is the nominal clock: told by CPUID, by the model's name, or measured. */
static uint32_t read_mhz(const struct cpu_info *info)
{
    struct regs4 r = cpuid(0x16, 0), tsc = cpuid(0x15, 0);
    const char *at = strrchr(info->model_name, '@');
    double ghz;
    uint64_t t0, t1, ns0, ns1;

    if (tsc.a && tsc.b && tsc.c)
        return (uint32_t)((uint64_t)tsc.c * tsc.b / tsc.a / 1000000);
    if (r.a & 0xffff)
        return r.a & 0xffff;
    if (at && sscanf(at, "@ %lfGHz", &ghz) == 1)
        return (uint32_t)(ghz * 1000);
    ns0 = host_monotonic_ns();
    t0 = __rdtsc();
    do {
        ns1 = host_monotonic_ns();
        t1 = __rdtsc();
    } while (ns1 - ns0 < 2000000);
    return (uint32_t)((t1 - t0) * 1000 / (ns1 - ns0));
}

static void read_caches(struct cpu_info *info)
{
    /* AMD has the same layout in a leaf of its own. */
    uint32_t leaf = strcmp(info->vendor, "AuthenticAMD") == 0 ? 0x8000001d : 4;

    for (uint32_t i = 0; info->caches_len < CPU_CACHES_MAX; i++) {
        struct regs4 r = cpuid(leaf, i);
        struct cpu_cache *c = &info->caches[info->caches_len];
        uint32_t type = r.a & 31;

        if (type == 0 || i > 15)
            break;
        snprintf(c->type, sizeof(c->type), "%s", type == 1 ? "Data" : type == 2 ? "Instruction" : "Unified");
        c->level = r.a >> 5 & 7;
        c->ways = (r.b >> 22) + 1;
        c->partitions = (r.b >> 12 & 1023) + 1;
        c->line = (r.b & 4095) + 1;
        c->sets = r.c + 1;
        c->size_kb = (uint32_t)((uint64_t)c->ways * c->partitions * c->line * c->sets / 1024);
        info->caches_len++;
    }
}

const struct cpu_info *cpu_info_get(void)
{
    static struct cpu_info info;

    if (!info.vendor[0]) {
        read_model(&info);
        info.mhz = read_mhz(&info);
        read_caches(&info);
    }
    return &info;
}
