/* SPDX-License-Identifier: Apache-2.0 */
/* CPU count and CPU masks. */
#include "sentry/kernel/affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "sentry/kernel/kernel.h"
#include "sentry/kernel/task.h"

unsigned affinity_cpus(const struct container *c)
{
    static unsigned host; /* (k) CPUs that the host gives the sentry, asked once */
    cpu_set_t set;

    if (c && c->cpu_count)
        return MIN(c->cpu_count, (unsigned)AFFINITY_CPUS_MAX);
    if (!host)
        host = sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)MAX(CPU_COUNT(&set), 1);
    return MIN(host, (unsigned)AFFINITY_CPUS_MAX);
}

static void all_cpus(const struct task *t, uint64_t ret_mask[AFFINITY_WORDS])
{
    unsigned n = affinity_cpus(t->group->container);

    for (unsigned i = 0; i < AFFINITY_WORDS; i++) {
        unsigned first = i * 64;

        ret_mask[i] = n <= first ? 0 : n - first >= 64 ? UINT64_MAX : (1ULL << (n - first)) - 1;
    }
}

/* Cuts mask to all. Return: whether anything is left. */
static bool cut(uint64_t mask[AFFINITY_WORDS], const uint64_t all[AFFINITY_WORDS])
{
    bool any = false;

    for (unsigned i = 0; i < AFFINITY_WORDS; i++) {
        mask[i] &= all[i];
        any = any || mask[i];
    }
    return any;
}

void affinity_get(const struct task *t, uint64_t ret_mask[AFFINITY_WORDS])
{
    uint64_t all[AFFINITY_WORDS];

    _Static_assert(sizeof(t->affinity) == sizeof(all), "mask size");
    all_cpus(t, all);
    memcpy(ret_mask, t->affinity, sizeof(all));
    if (!cut(ret_mask, all))
        memcpy(ret_mask, all, sizeof(all));
}

int affinity_set(struct task *t, const uint64_t mask[AFFINITY_WORDS])
{
    uint64_t all[AFFINITY_WORDS], m[AFFINITY_WORDS];

    all_cpus(t, all);
    memcpy(m, mask, sizeof(m));
    if (!cut(m, all))
        return -EINVAL;
    memcpy(t->affinity, m, sizeof(m));
    return 0;
}
