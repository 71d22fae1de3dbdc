/* SPDX-License-Identifier: Apache-2.0 */
/* What hostile guests know of the stub that lives in every guest process: where it is, and how to use it without leave.
 * Natively there is none, and what needs it is left out. */
#pragma once

#include "platform/seccomp/stub_abi.h"
#include "tests/guest/guest.h"

struct attack_stub {
    uint64_t zone;                        /* 0: none found */
    uint64_t general, sigreturn, futex;   /* its syscall instructions */
};
extern struct attack_stub stub;

/* Looks for the stub, by asking for fixed maps until they are refused. Return: whether there is one. */
bool attack_find(void);
/* A host call at the stub's general instruction. */
long attack_host(long nr, long a1, long a2, long a3, long a4, long a5, long a6);
#define HOST0(nr) attack_host(nr, 0, 0, 0, 0, 0, 0)
#define HOST1(nr, a) attack_host(nr, (long)(a), 0, 0, 0, 0, 0)
#define HOST2(nr, a, b) attack_host(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define HOST3(nr, a, b, c) attack_host(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define HOST6(nr, a, b, c, d, e, f)                                                                \
    attack_host(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
static inline long attack_ring(uint64_t seq, uint64_t op, uint64_t a, uint64_t b)
{
    return HOST6(STUB_NR_DOORBELL, seq, op, a, b, 0, 0);
}
/* The calling thread's slot: the one whose mailbox shows a call just made. */
struct stub_slot *attack_slot(void);
static inline struct stub_mailbox *attack_mailbox(struct stub_slot *s)
{
    return (struct stub_mailbox *)((char *)s - STUB_DATA_OFF + STUB_MBOX_OFF);
}
/* Leads the return of the stub's general instruction through strike, once, when the sentry's answer is this action. */
void attack_patch(uint32_t action, long (*strike)(long result, struct stub_slot *s, struct stub_mailbox *m));
uint64_t attack_random(void);
void attack_seed(uint64_t seed);
__attribute__((noreturn)) void attack_spin(void);
/* Waits for a child; kills it after ms. Return: its wait status. */
int attack_reap(pid_t pid, unsigned ms);
/* The system still works: files, pipes, processes, signals. */
void attack_check_system(void);

/* Runs code in a child that may end in any way within ms, and checks that all is well afterwards. */
#define HOSTILE(ms, ...)                                                                           \
    ({                                                                                             \
        pid_t hostile_pid_ = OK(fork());                                                           \
        if (!hostile_pid_) {                                                                       \
            __VA_ARGS__;                                                                           \
            _exit(0);                                                                              \
        }                                                                                          \
        int hostile_status_ = attack_reap(hostile_pid_, (ms));                                     \
        attack_check_system();                                                                     \
        hostile_status_;                                                                           \
    })
