/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs as guests see them, and the masks they ask for. Placement is the host's: a mask is kept and shown, not enforced. */
#pragma once

#include <stdint.h>

#include "platform/base/compiler.h"

struct container;
struct task;

enum { AFFINITY_CPUS_MAX = 1024, AFFINITY_WORDS = AFFINITY_CPUS_MAX / 64 };

/* Return: CPUs of the container, at least 1: /proc/cpuinfo, /proc/stat, /sys/devices/system/cpu. */
unsigned affinity_cpus(const struct container *c);
/* t's mask cut to the CPUs that are there; all of them when it was never set. */
void affinity_get(const struct task *t, uint64_t ret_mask[AFFINITY_WORDS]);
/* Return: 0, or −EINVAL when none of the CPUs is there. */
MUST_CHECK int affinity_set(struct task *t, const uint64_t mask[AFFINITY_WORDS]);
