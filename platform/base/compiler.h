/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler attributes and small macros that every file may use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define PACKED __attribute__((packed))
#define ALIGNED(n) __attribute__((aligned(n)))
/* Marks a parameter whose reference the callee always consumes, also on failure. */
#define OWNS

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member)                                                            \
    ((type *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

#define MIN(a, b)                                                                                  \
    ({                                                                                             \
        __auto_type min_a_ = (a);                                                                  \
        __auto_type min_b_ = (b);                                                                  \
        min_a_ < min_b_ ? min_a_ : min_b_;                                                         \
    })
#define MAX(a, b)                                                                                  \
    ({                                                                                             \
        __auto_type max_a_ = (a);                                                                  \
        __auto_type max_b_ = (b);                                                                  \
        max_a_ > max_b_ ? max_a_ : max_b_;                                                         \
    })

#define PAGE_SHIFT 12
#define PAGE_SIZE 4096UL
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define ALIGN_UP(x, a) (((x) + ((a) - 1)) & ~((a) - 1))
#define ALIGN_DOWN(x, a) ((x) & ~((a) - 1))

/* Takes the value of a pointer and leaves NULL behind, to hand ownership out of a _cleanup_ scope. */
#define TAKE_PTR(p)                                                                                \
    ({                                                                                             \
        __auto_type take_p_ = (p);                                                                 \
        (p) = NULL;                                                                                \
        take_p_;                                                                                   \
    })
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int take_fd_ = (fd);                                                                       \
        (fd) = -1;                                                                                 \
        take_fd_;                                                                                  \
    })

/* Ends the process with a message naming the broken invariant. Stays in release builds: going on
 * with broken kernel state is worse than losing the sandbox. Never reachable from guest input. */
NORETURN void bug_at(const char *file, int line, const char *what);
#define BUG_ON(cond)                                                                               \
    do {                                                                                           \
        if (unlikely(cond))                                                                        \
            bug_at(__FILE__, __LINE__, #cond);                                                     \
    } while (0)
