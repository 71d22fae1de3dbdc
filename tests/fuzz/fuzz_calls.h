/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of the call fuzzer share: random values of the kinds that system calls take.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct call {
    long number;
    const char *name;
    const char *args; /* a letter each: F descriptor, P process, S signal, O open flags, Z size, M
                         memory, N name, V iovec, I integer */
};

enum { VALUES_FDS = 32, VALUES_PAGES = 16, VALUES_PAGE = 4096 };

/* One random program's state, shared by its threads: they race for it on purpose. */
struct values {
    uint64_t seed;
    int fds[VALUES_FDS];
    uint8_t *arena; /* VALUES_PAGES pages; every fourth is read-only or without access */
    pid_t pids[4];
};

/* Next number of the sequence that *seed begins. */
uint64_t values_random(uint64_t *seed);
static inline uint64_t values_below(uint64_t *seed, uint64_t n)
{
    return values_random(seed) % n;
}

/* Descriptors of every kind, files and memory, in the working directory. */
void values_setup(struct values *v);
/* A value for an argument of call c of this kind. */
uint64_t values_pick(struct values *v, uint64_t *seed, const struct call *c, int arg);
