/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the filter: other ways into the host kernel at the stub's addresses, clone without leave, jumps into every
 * byte of the stub. */
#include "tests/guest/attack_stub.h"

#include <poll.h>

static const char marker[] = "/tmp/cloister-attack-marker";

/* Turns the stub's instruction into another and uses it; the path lies below 4 GiB in a program that is not PIE. */
static void other_entry(uint8_t b0, uint8_t b1, uint64_t nr)
{
    static char path[64];
    long r;
    memcpy(path, marker, sizeof(marker));
    if (stub.zone) {
        HOST3(SYS_mprotect, stub.zone, STUB_TEXT_SIZE, 7);
        uint8_t *site = (uint8_t *)stub.general;
        site[0] = b0;
        site[1] = b1;
        __asm__ volatile("call *%[site]"
                         : "=a"(r)
                         : "a"(nr), "b"(path), "D"(path), "c"(0), "S"(0), "d"(0), [site] "r"(site)
                         : "r11", "memory");
        site[0] = 0x0f;
        site[1] = 0x05;
    } else {
        r = -1;
    }
    _exit(r == 0 ? 9 : 0);
}

TEST_TIME(other_entries_at_the_stub, 60)
{
    static const struct {
        uint8_t b0, b1;
        uint64_t nr;
    } ways[] = {
        {0xcd, 0x80, 10},              /* int 0x80: i386 unlink has mprotect's number */
        {0xcd, 0x80, 5},               /* open */
        {0xcd, 0x80, 11},              /* execve */
        {0xcd, 0x80, 2},               /* fork */
        {0x0f, 0x34, 10},              /* sysenter */
        {0x0f, 0x05, 0x40000000 | 87}, /* x32 unlink */
        {0x0f, 0x05, 0x40000000 | 10},
        {0x0f, 0x05, 0x40000000 | 520},
    };
    attack_find();
    guest_write_file(marker, "here");
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        int status = HOSTILE(1000, other_entry(ways[i].b0, ways[i].b1, ways[i].nr));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
            FAIL("way %u worked", i);
        STR(guest_read_file(marker), "here");
    }
    OK(unlink(marker));
}

/* From ordinary code: no such entry, as on a kernel without i386 emulation; natively they may work. */
TEST(int_0x80)
{
    int status = HOSTILE(1000, {
        long r;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20), "b"(0), "c"(0), "d"(0) : "memory");
        _exit(r > 0 ? 0 : 3);
    });
    CHECK(WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}

TEST(x32)
{
    ERR(ENOSYS, syscall(0x40000000 + 39));
    ERR(ENOSYS, syscall(0x40000000 + 87, marker));
    ERR(ENOSYS, syscall(-1));
    ERR(ENOSYS, syscall(1023, 1, 1, 0, 0));
    ERR(ENOSYS, syscall(0x7fffffff));
}

TEST_TIME(clone_without_leave, 60)
{
    static const uint64_t flags[] = {0, 17, STUB_CLONE_THREAD, 0x100, 0x100 | 17, 0x3d0f00, 0x10000000, 0x20000000,
                                     0x7e020000, 0x4000 | 17, 1ULL << 32 | 17, 0x2000 | 17, 0x8000 | 17, ~0ULL, 10, 9};
    if (!attack_find())
        return;
    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        int status = HOSTILE(2000, {
            static char stack[8192];
            uint64_t *top = (uint64_t *)(stack + 4096);
            *top = (uint64_t)attack_spin;
            pid_t me = getpid();
            long r = HOST6(SYS_clone, flags[i], top, stack, stack, 0, 0);
            /* A call of the guest's own that traps at the stub's address may make a guest process. */
            if (r == 0)
                _exit(0);
            _exit(r > 0 && me != getpid() ? 9 : 0);
        });
        if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
            FAIL("clone with %#lx at the stub's site worked", flags[i]);
    }
    /* Some were calls of the guest's own, whose children spin. */
    kill(-1, SIGKILL);
    HOSTILE(1000, if (HOST0(SYS_vfork) == 0) _exit(0));
    HOSTILE(1000, if (HOST0(SYS_fork) == 0) _exit(0));
}

static uint64_t jump_value(void)
{
    static const uint16_t small[] = {0, 1, 3, 9, 10, 11, 15, 17, 24, 25, 26, 27, 28, 56, 60, 131, 158, 202, 219, 228, 231,
                                     435, 436, 1023, 4096};
    static uint8_t some[4096];
    uint64_t r = attack_random();
    switch (r % 12) {
    case 0:
    case 1:
    case 2: return small[(r >> 8) % (sizeof(small) / sizeof(small[0]))];
    case 3: return stub.zone + ((r >> 8) & 0xffff);
    case 4: return stub.zone + STUB_SLOTS_OFF + STUB_DATA_OFF + ((r >> 8) & 0xff8);
    case 5: return stub.zone + STUB_SLOTS_OFF + STUB_MBOX_OFF + ((r >> 8) & 0xff8);
    case 6: return stub.zone + STUB_SLOTS_OFF + STUB_STACK_OFF + ((r >> 8) & 0xaff8);
    case 7: return (uint64_t)some + ((r >> 8) & 0xff8);
    case 8: return (r >> 8) & 1 ? STUB_CLONE_THREAD : STUB_CLONE_FORK;
    case 9: return -(r >> 52);
    case 10: return stub.zone + ((r >> 8) & 0xfffffff);
    default: return attack_random();
    }
}

static void jump(uint64_t off)
{
    static uint64_t regs[17];
    for (int i = 0; i < 16; i++)
        regs[i] = jump_value();
    if (attack_random() % 4)
        regs[7] = stub.zone + STUB_SLOTS_OFF + STUB_STACK_OFF + STUB_STACK_SIZE - 2048 - (attack_random() & 0x1ff8);
    regs[16] = stub.zone + off;
    register uint64_t *r15 __asm__("r15") = regs;
    __asm__ volatile("mov 0(%%r15), %%rax\n\t"
                     "mov 8(%%r15), %%rbx\n\t"
                     "mov 16(%%r15), %%rcx\n\t"
                     "mov 24(%%r15), %%rdx\n\t"
                     "mov 32(%%r15), %%rsi\n\t"
                     "mov 40(%%r15), %%rdi\n\t"
                     "mov 48(%%r15), %%rbp\n\t"
                     "mov 56(%%r15), %%rsp\n\t"
                     "mov 64(%%r15), %%r8\n\t"
                     "mov 72(%%r15), %%r9\n\t"
                     "mov 80(%%r15), %%r10\n\t"
                     "mov 88(%%r15), %%r11\n\t"
                     "mov 96(%%r15), %%r12\n\t"
                     "mov 104(%%r15), %%r13\n\t"
                     "mov 112(%%r15), %%r14\n\t"
                     "jmp *128(%%r15)"
                     :
                     : "r"(r15)
                     : "memory");
    __builtin_unreachable();
}

/* Children that jump, many at a time; whoever has not ended after a moment is killed. */
static void jump_batch(uint64_t first, uint64_t last, uint64_t seed)
{
    enum { AT_ONCE = 16 };
    pid_t pids[AT_ONCE];
    int fds[2];
    char buf[64];
    OK(pipe(fds)); /* its writers are the children */
    for (uint64_t at = first; at < last; at += AT_ONCE) {
        int n = 0;
        for (; n < AT_ONCE && at + (uint64_t)n < last; n++) {
            pids[n] = OK(fork());
            if (!pids[n]) {
                attack_seed((at + (uint64_t)n) * 77 + seed);
                jump(at + (uint64_t)n);
            }
        }
        sleep_ms(20);
        for (int i = 0; i < n; i++) {
            int status;
            kill(pids[i], SIGKILL);
            EQ(OK(waitpid(pids[i], &status, 0)), pids[i]);
        }
    }
    close(fds[1]);
    /* Some jumps were calls of the guest's own, whose children may spin. Nobody can't be killed. */
    struct pollfd p = {.fd = fds[0]};
    for (int tries = 0; !poll(&p, 1, 10); tries++) {
        CHECK(tries < 1000);
        kill(-1, SIGKILL);
    }
    EQ(read(fds[0], buf, sizeof(buf)), 0);
    close(fds[0]);
    attack_check_system();
}

TEST_TIME(jumps_into_the_stub, 280)
{
    const char *rounds = getenv("ATTACK_ROUNDS");
    if (!attack_find())
        return;
    uint64_t size = STUB_TEXT_SIZE;
    const uint8_t *text = (const uint8_t *)stub.zone;
    while (size && !text[size - 1])
        size--;
    for (int r = 0; r < (rounds ? atoi(rounds) : 1); r++)
        for (uint64_t at = 0; at < size; at += 512)
            jump_batch(at, at + 512, (uint64_t)r);
    kill(-1, SIGKILL);
    printf("%lu bytes of stub\n", (unsigned long)size);
}
