/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of the processors: identity, features, caches. The values are the host CPU's. */
#pragma once

#include <stdint.h>

#include "platform/base/buf.h"
#include "platform/base/compiler.h"

enum { CPU_CACHES_MAX = 6 };

struct cpu_cache {
    char type[12]; /* "Data", "Instruction", "Unified" */
    uint32_t level, size_kb, ways, line, sets, partitions, sharing;
};

struct cpu_info {
    char vendor[13], model_name[64];
    uint32_t family, model, stepping, mhz, physical_bits, virtual_bits, cpuid_level, clflush;
    unsigned caches_len;
    struct cpu_cache caches[CPU_CACHES_MAX];
};

const struct cpu_info *cpu_info_get(void);
/* Appends the names of the features that /proc/cpuinfo shows, each with a blank before it. */
void cpu_info_print_flags(struct buf *out);
