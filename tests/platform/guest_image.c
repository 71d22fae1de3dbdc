/* SPDX-License-Identifier: Apache-2.0 */
/* The guest image: code that runs in guest processes of the platform tests, chosen by its mode. */
#include "tests/platform/guest_image.h"

struct guest_shared guest = {.word = 0};

long guest_call(long nr, long a1, long a2, long a3, long a4, long a5, long a6)
{
    register long r10 __asm__("r10") = a4;
    register long r8 __asm__("r8") = a5;
    register long r9 __asm__("r9") = a6;
    long r;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a1), "S"(a2), "d"(a3), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}

long guest_host(long nr, long a1, long a2, long a3, long a4, long a5, long a6)
{
    register long r10 __asm__("r10") = a4;
    register long r8 __asm__("r8") = a5;
    register long r9 __asm__("r9") = a6;
    long r;
    __asm__ volatile("call *%[site]"
                     : "=a"(r)
                     : "a"(nr), "D"(a1), "S"(a2), "d"(a3), "r"(r10), "r"(r8), "r"(r9), [site] "b"(guest.general)
                     : "rcx", "r11", "memory");
    return r;
}

void guest_log(const char *text)
{
    long n = 0;
    while (text[n])
        n++;
    CALL3(1, 1, text, n);
}

static uint64_t random_state = 88172645463325252ULL;

void guest_seed(uint64_t seed)
{
    random_state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
}

uint64_t guest_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void guest_exit(int status)
{
    CALL1(K_EXIT_GROUP, status);
    for (;;)
        ;
}

void guest_spin(void)
{
    for (;;)
        __asm__ volatile("pause");
}

long guest_spawn(void (*fn)(uint64_t arg), uint64_t arg, volatile uint32_t *clear)
{
    long stack = CALL6(NR_MMAP, 0, 0x10000, 3, 0x22, -1, 0);
    if (stack < 0 && stack > -4096)
        return stack;
    uint64_t *top = (uint64_t *)(stack + 0x10000 - 64);
    *top = (uint64_t)fn;
    if (clear)
        *clear = 1;
    return CALL6(K_THREAD, guest_thread, top, arg, clear, 0, 0);
}

void guest_join(volatile uint32_t *word)
{
    uint32_t v;
    while ((v = *word))
        CALL6(NR_FUTEX, word, 0, v, 0, 0, 0);
}

void guest_patch(uint32_t armed_action)
{
    guest.armed = armed_action;
    uint8_t *far = (uint8_t *)guest.zone + STUB_TEXT_SIZE - 64, *site = (uint8_t *)guest.general + 2;
    long r = HOST3(NR_MPROTECT, guest.zone, STUB_TEXT_SIZE, 7);
    if (r) {
        guest_log("the stub's text can't be made writable");
        guest_exit(0);
    }
    /* movabs $hook, %r11; jmp *%r11 */
    far[0] = 0x49;
    far[1] = 0xbb;
    *(uint64_t *)(far + 2) = (uint64_t)guest_hook_entry;
    far[10] = 0x41;
    far[11] = 0xff;
    far[12] = 0xe3;
    *(int32_t *)(site + 1) = (int32_t)(far - (site + 5));
    site[0] = 0xe9;
}

long guest_hook(long result, uint64_t *regs)
{
    struct stub_slot *s = (struct stub_slot *)(((uint64_t)regs & ~(STUB_SLOT_SIZE - 1)) + STUB_DATA_OFF);
    if ((uint64_t)regs < guest.zone)
        return result; /* one of our own */
    struct stub_mailbox *m = guest_mailbox(s);
    if (!guest.armed || m->action != guest.armed)
        return result;
    guest.armed = 0;
    return guest_strike(result, s, m);
}

int guest_main(unsigned mode, uint64_t zone, uint64_t arg);
int guest_main(unsigned mode, uint64_t zone, uint64_t arg)
{
    const struct stub_header *h = (const struct stub_header *)zone;
    guest.zone = zone;
    guest.general = zone + h->ip_general - 2;
    guest.sigreturn = zone + h->ip_sigreturn - 2;
    guest.futex = zone + h->ip_futex - 2;
    guest.arg = arg;
    guest_seed(arg);
    switch (mode) {
    case G_IDLE: return CALL1(K_GETPID, 41) == 42 ? 0 : 1;
    case G_WORK: return guest_work(arg);
    case G_SPIN: guest_spin();
    case G_THREADS: return guest_threads(arg);
    case G_FORKERS: return guest_forkers(arg);
    case G_FD_LEAK: return guest_fd_leak();
    case G_SILENT_FORKS:
        for (;;)
            if (CALL0(K_FORK) == 0)
                guest_exit(0);
            else
                CALL0(K_WAIT);
    default: return guest_attack(mode, arg);
    }
}
