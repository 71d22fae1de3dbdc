/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the guest image: calls, the stub's parts, patching of the stub. Freestanding. */
#pragma once

#include "platform/seccomp/stub_abi.h"
#include "tests/platform/guest_calls.h"

enum {
    NR_MMAP = 9, NR_MPROTECT = 10, NR_MUNMAP = 11, NR_SIGRETURN = 15, NR_MREMAP = 25, NR_MSYNC = 26, NR_MINCORE = 27,
    NR_MADVISE = 28, NR_CLOSE = 3, NR_CLONE = 56, NR_HOST_EXIT = 60, NR_UNLINK = 87, NR_ARCH_PRCTL = 158,
    NR_SIGALTSTACK = 131, NR_FUTEX = 202, NR_HOST_EXIT_GROUP = 231, NR_CLONE3 = 435, NR_CLOSE_RANGE = 436,
};

struct guest_shared {
    uint64_t zone, general, sigreturn, futex; /* addresses of the stub's syscall instructions */
    uint32_t armed; /* action at whose arrival the hook strikes */
    uint64_t arg;
    volatile uint32_t word, word2;
};
extern struct guest_shared guest;

long guest_call(long nr, long a1, long a2, long a3, long a4, long a5, long a6);
#define CALL0(nr) guest_call(nr, 0, 0, 0, 0, 0, 0)
#define CALL1(nr, a) guest_call(nr, (long)(a), 0, 0, 0, 0, 0)
#define CALL2(nr, a, b) guest_call(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(nr, a, b, c) guest_call(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL6(nr, a, b, c, d, e, f)                                                                \
    guest_call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* A host call at the stub's general instruction. */
long guest_host(long nr, long a1, long a2, long a3, long a4, long a5, long a6);
#define HOST0(nr) guest_host(nr, 0, 0, 0, 0, 0, 0)
#define HOST1(nr, a) guest_host(nr, (long)(a), 0, 0, 0, 0, 0)
#define HOST2(nr, a, b) guest_host(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define HOST3(nr, a, b, c) guest_host(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define HOST6(nr, a, b, c, d, e, f)                                                                \
    guest_host(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
static inline long guest_ring(uint64_t seq, uint64_t op, uint64_t a, uint64_t b)
{
    return HOST6(STUB_NR_DOORBELL, seq, op, a, b, 0, 0);
}

static inline struct stub_slot *guest_slot(unsigned n)
{
    return (struct stub_slot *)(guest.zone + STUB_SLOTS_OFF + n * STUB_SLOT_SIZE + STUB_DATA_OFF);
}
static inline struct stub_mailbox *guest_mailbox(const struct stub_slot *s)
{
    return (struct stub_mailbox *)((uint64_t)s - STUB_DATA_OFF + STUB_MBOX_OFF);
}

void guest_log(const char *text);
uint64_t guest_random(void);
void guest_seed(uint64_t seed);
void guest_exit(int status) __attribute__((noreturn));
void guest_spin(void) __attribute__((noreturn));
/* Starts fn(arg) on a new stack of 64 KiB; clear: word that is cleared and woken at its end. */
long guest_spawn(void (*fn)(uint64_t arg), uint64_t arg, volatile uint32_t *clear);
/* Waits until *word is 0. */
void guest_join(volatile uint32_t *word);
/* Makes the stub's text writable and leads its general instruction's return through guest_hook. */
void guest_patch(uint32_t armed_action);
/* Called after every host call of the patched stub; regs are the saved registers. Return: the result to go on with. */
long guest_hook(long result, uint64_t *regs);
extern const char guest_thread[], guest_hook_entry[];
void guest_jump(const uint64_t regs[17]) __attribute__((noreturn));

/* guest_attacks.c */
long guest_strike(long result, struct stub_slot *s, struct stub_mailbox *m);
int guest_attack(unsigned mode, uint64_t arg);
/* guest_work.c */
int guest_work(uint64_t rounds);
int guest_threads(uint64_t n);
int guest_forkers(uint64_t n);
int guest_fd_leak(void);
