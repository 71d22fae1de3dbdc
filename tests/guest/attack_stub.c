/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and misusing the stub. */
#include "tests/guest/attack_stub.h"

#include <poll.h>
#include <setjmp.h>

struct attack_stub stub;

static sigjmp_buf probe_env;

static void probe_fault(int sig)
{
    siglongjmp(probe_env, 1);
}

/* Reads a word that may not be there. */
static bool probe(uint64_t addr, uint64_t *ret)
{
    struct sigaction act = {.sa_handler = probe_fault}, segv, bus;
    bool ok = false;
    sigaction(SIGSEGV, &act, &segv);
    sigaction(SIGBUS, &act, &bus);
    if (!sigsetjmp(probe_env, 1)) {
        *ret = *(volatile uint64_t *)addr;
        ok = true;
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    return ok;
}

/* Whether a page can be had at addr, or is in use: below the end of what a program may map. */
static bool is_mine(uint64_t addr)
{
    void *p = mmap((void *)addr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return errno == EEXIST;
    munmap(p, 4096);
    return p == (void *)addr;
}

bool attack_find(void)
{
    uint64_t low = 0x10000, high = 0x7ffffffff000, word = 0;
    if (stub.zone)
        return true;
    if (is_mine(high - 4096))
        return false;
    while (high - low > 4096) {
        uint64_t middle = (low + (high - low) / 2) & ~4095UL;
        if (is_mine(middle))
            low = middle;
        else
            high = middle;
    }
    if (!probe(high, &word) || word != STUB_MAGIC)
        return false;
    const struct stub_header *h = (const struct stub_header *)high;
    stub.zone = high;
    stub.general = high + h->ip_general - 2;
    stub.sigreturn = high + h->ip_sigreturn - 2;
    stub.futex = high + h->ip_futex - 2;
    return true;
}

long attack_host(long nr, long a1, long a2, long a3, long a4, long a5, long a6)
{
    register long r10 __asm__("r10") = a4;
    register long r8 __asm__("r8") = a5;
    register long r9 __asm__("r9") = a6;
    long r;
    __asm__ volatile("sub $256, %%rsp\n\t" /* the red zone is the caller's */
                     "call *%[site]\n\t"
                     "add $256, %%rsp"
                     : "=a"(r)
                     : "a"(nr), "D"(a1), "S"(a2), "d"(a3), "r"(r10), "r"(r8), "r"(r9), [site] "b"(stub.general)
                     : "rcx", "r11", "memory");
    return r;
}

/* Without a call between the one that marks the mailbox and the look at it. */
struct stub_slot *attack_slot(void)
{
    uint64_t magic = 0x4000 + (attack_random() & 0xfff);
    struct sigaction act = {.sa_handler = probe_fault, .sa_flags = SA_NODEFER}, segv, bus;
    static __thread volatile uint64_t n;
    struct stub_slot *found = NULL;
    sigaction(SIGSEGV, &act, &segv);
    sigaction(SIGBUS, &act, &bus);
    n = 0;
    syscall((long)magic); /* no such call */
    if (sigsetjmp(probe_env, 0))
        n++;
    for (; n < 64 && !found; n++) {
        struct stub_slot *s =
            (struct stub_slot *)(stub.zone + STUB_SLOTS_OFF + n * STUB_SLOT_SIZE + STUB_DATA_OFF);
        if (attack_mailbox(s)->sysno == magic) {
            found = s;
            break;
        }
    }
    sigaction(SIGSEGV, &segv, NULL);
    sigaction(SIGBUS, &bus, NULL);
    if (!found)
        FAIL("no mailbox shows the call");
    return found;
}

static uint32_t armed;
static long (*armed_strike)(long result, struct stub_slot *s, struct stub_mailbox *m);

__attribute__((used)) static long attack_hook(long result, uint64_t *regs)
{
    struct stub_slot *s = (struct stub_slot *)(((uint64_t)regs & ~(STUB_SLOT_SIZE - 1)) + STUB_DATA_OFF);
    struct stub_mailbox *m = attack_mailbox(s);
    if ((uint64_t)regs < stub.zone || !armed || m->action != armed)
        return result;
    armed = 0;
    return armed_strike(result, s, m);
}

void attack_hook_entry(void);
__asm__(".text\n"
        "attack_hook_entry:\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    push %r10\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    mov %rax, %rdi\n"
        "    mov %rsp, %rsi\n"
        "    and $-16, %rsp\n"
        "    call attack_hook\n"
        "    mov %rbp, %rsp\n"
        "    pop %rbp\n"
        "    pop %r10\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    ret\n");

void attack_patch(uint32_t action, long (*strike)(long result, struct stub_slot *s, struct stub_mailbox *m))
{
    uint8_t *far = (uint8_t *)stub.zone + STUB_TEXT_SIZE - 64, *site = (uint8_t *)stub.general + 2;
    if (HOST3(SYS_mprotect, stub.zone, STUB_TEXT_SIZE, 7))
        _exit(0); /* then there is nothing to attack with */
    /* movabs $hook, %r11; jmp *%r11 */
    far[0] = 0x49;
    far[1] = 0xbb;
    *(uint64_t *)(far + 2) = (uint64_t)attack_hook_entry;
    far[10] = 0x41;
    far[11] = 0xff;
    far[12] = 0xe3;
    armed_strike = strike;
    armed = action;
    *(int32_t *)(site + 1) = (int32_t)(far - (site + 5));
    site[0] = 0xe9;
}

static uint64_t random_state = 88172645463325252ULL;

void attack_seed(uint64_t seed)
{
    random_state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
}

uint64_t attack_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void attack_spin(void)
{
    for (;;)
        __asm__ volatile("pause");
}

int attack_reap(pid_t pid, unsigned ms)
{
    int status;
    int fd = OK((int)syscall(SYS_pidfd_open, pid, 0));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = OK(poll(&p, 1, (int)ms));
    close(fd);
    if (!n)
        OK(kill(pid, SIGKILL));
    EQ(OK(waitpid(pid, &status, 0)), pid);
    return status;
}

static volatile sig_atomic_t system_signals;

static void system_signal(int sig)
{
    system_signals++;
}

void attack_check_system(void)
{
    int fds[2], status, before = system_signals;
    char buf[8] = "";
    signal(SIGUSR2, system_signal);
    OK(pipe(fds));
    pid_t pid = OK(fork());
    if (!pid) {
        kill(getppid(), SIGUSR2);
        _exit(write(fds[1], "well", 4) == 4 ? 7 : 1);
    }
    EQ(OK(read(fds[0], buf, 4)), 4);
    STR(buf, "well");
    EQ(OK(waitpid(pid, &status, 0)), pid);
    EXITED(status, 7);
    EQ(system_signals, before + 1);
    close(fds[0]);
    close(fds[1]);
}
