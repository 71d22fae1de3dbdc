/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile guests: each tries to get at what a rule of the platform protects. */
#include "tests/platform/guest_image.h"

static uint8_t attack_stack[4096] __attribute__((aligned(16)));

/* A raw clone of a thread: it comes back at the general site, and its stack leads it to guest_spin. */
static long strike_clone_thread(void)
{
    uint64_t *top = (uint64_t *)(attack_stack + sizeof(attack_stack) - 64);
    *top = (uint64_t)guest_spin;
    return HOST6(NR_CLONE, STUB_CLONE_THREAD, top, 0, &guest.word, 0, 0);
}

static long strike_clone(void)
{
    long r = HOST6(NR_CLONE, STUB_CLONE_FORK, 0, 0, 0, 0, 0);
    if (r == 0)
        guest_spin();
    return r;
}

static void strike_done(struct stub_slot *s, struct stub_mailbox *m, long result)
{
    m->clone_result = result;
    guest_ring(++s->seq, STUB_OP_CLONE_DONE, 0, 0);
}

static void strike_hide(struct stub_slot *s, struct stub_mailbox *m)
{
    int thread = guest.arg >= HIDE_THREAD;
    long pid = thread ? strike_clone_thread() : strike_clone();
    switch (guest.arg) {
    case HIDE_CHILD:
    case HIDE_THREAD: strike_done(s, m, pid); break;
    case HIDE_REFUSED: strike_done(s, m, -11); break;
    case HIDE_OTHER_PID: strike_done(s, m, 2); break;
    case HIDE_OWN_PID: strike_done(s, m, 1); break;
    case HIDE_PARENT_GONE: guest_spin();
    case HIDE_TWICE:
    case HIDE_THREAD_TWICE:
        for (int i = 0; i < 100; i++)
            pid = thread ? strike_clone_thread() : strike_clone();
        strike_done(s, m, pid);
        break;
    case HIDE_OTHER_OP: guest_ring(++s->seq, STUB_OP_SYSCALL, 0, 0); break;
    case HIDE_EXIT: HOST1(NR_HOST_EXIT_GROUP, 0);
    }
}

long guest_strike(long result, struct stub_slot *s, struct stub_mailbox *m)
{
    switch (m->action) {
    case STUB_ACT_CLONE:
        strike_hide(s, m);
        break;
    case STUB_ACT_EXIT:
        /* Told to end: it goes on instead. */
        for (int i = 0; i < 20; i++) {
            m->sysno = K_GETPID;
            guest_ring(++s->seq, guest.arg ? STUB_OP_CALLS_DONE : STUB_OP_SYSCALL, 0, 0);
        }
        guest_spin();
    case STUB_ACT_CALLS:
        m->sysno = K_GETPID;
        guest_ring(++s->seq, STUB_OP_SYSCALL, 0, 0);
        guest_ring(++s->seq, STUB_OP_CALLS_DONE, 0, 0);
        break;
    case STUB_ACT_TAIL:
        m->calls[0].reply_fd = STUB_REPLY_FD;
        guest.armed = STUB_ACT_TAIL;
        break;
    }
    return result;
}

static int attack_ring_storm(void)
{
    struct stub_slot *s = guest_slot(0);
    for (int i = 0; i < 300; i++) {
        long pid = CALL0(K_FORK);
        if (pid == 0) {
            guest_seed((uint64_t)i);
            for (int n = 0; n < 10; n++) {
                uint64_t r = guest_random(), seq = r & 1 ? s->seq : r & 2 ? ++s->seq : guest_random();
                guest_ring(seq, guest_random() % 14, guest_random(), guest_random());
            }
            guest_exit(0);
        }
        if (pid < 0 || CALL1(K_WAIT, 100000) < 0)
            return 1;
    }
    return 0;
}

/* Posts rounds times all sorts of rings in the leader's name, and answers in the sentry's. */
static void post_thread(uint64_t rounds)
{
    struct stub_slot *s = guest_slot(0);
    volatile struct stub_post *p = &guest_mailbox(s)->post;
    while (rounds--) {
        uint64_t r = guest_random();
        p->seq = r & 1 ? s->seq : r & 2 ? s->seq + 1 : r;
        p->op = (r >> 8) % 14;
        p->reply = (int64_t)(r >> 16) - 1;
        p->looked_at = r >> 40 & 1;
        p->state = (r >> 32) % 6;
    }
    HOST1(NR_HOST_EXIT_GROUP, 0); /* a call for the end might be taken for answered */
}

static int attack_post_storm(void)
{
    for (int i = 0; i < 100; i++) {
        long pid = CALL0(K_FORK);
        if (pid == 0) {
            guest_seed((uint64_t)i);
            for (int n = 0; n < 20; n++)
                CALL1(K_GETPID, n); /* is looked at now */
            if (i & 1)
                guest_spawn(post_thread, UINT64_MAX, 0);
            else
                CALL0(K_FORK); /* a child posts for itself as well */
            for (int n = 0; n < 100; n++) {
                CALL1(K_GETPID, n);
                CALL0(n & 7 ? K_GETPID : K_HOSTCALLS);
            }
            post_thread(i & 1 ? 0 : 20000);
        }
        if (pid < 0 || CALL1(K_WAIT, 1000000) < 0)
            return 1;
    }
    return 0;
}

static int attack_clone_raw(void)
{
    static const uint64_t flags[] = {0, 17, 0x11, STUB_CLONE_THREAD, 0x100, 0x100 | 17, 0x3d0f00, 0x10000000, 0x20000000,
                                     0x7e020000, 0x4000 | 17, 1ULL << 32 | 17, 0x2000 | 17, 0x8000 | 17, ~0ULL};
    for (unsigned i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        long r = HOST6(NR_CLONE, flags[i], attack_stack + 2048, &guest.word, &guest.word2, 0, 0);
        if (r == 0)
            guest_spin(); /* a child: the harness counts processes */
        if (r > 0)
            return 1;
    }
    struct {
        uint64_t flags, rest[10];
    } args = {.flags = 0};
    long r = HOST2(NR_CLONE3, &args, sizeof(args));
    if (r == 0)
        guest_spin();
    if (r > 0 || (r = HOST0(57)) > 0 || (r = HOST0(58)) > 0)
        return 2;
    if (r == 0)
        guest_spin();
    return 0;
}

static void undead_thread(uint64_t arg)
{
    CALL1(K_GETPID, 1);
    guest_patch(STUB_ACT_EXIT);
}

static void vanish_thread(uint64_t arg)
{
    guest.word2 = 1;
    HOST1(NR_HOST_EXIT, 0);
}

static int attack_vanish(void)
{
    for (int i = 0; i < 20; i++) {
        guest.word2 = 0;
        if (guest_spawn(vanish_thread, 0, 0) < 0)
            return 0;
        while (!guest.word2)
            CALL1(K_SLEEP, 100);
    }
    return CALL1(K_GETPID, 1) == 2 ? 0 : 1;
}

static void leader_outlived(uint64_t arg)
{
    static uint8_t buf[64];
    CALL1(K_SLEEP, 20000);
    CALL2(K_SUM, buf, 64);
    CALL3(K_FILL, buf, 64, 1);
    long pid = CALL0(K_FORK);
    if (pid == 0)
        guest_exit(0);
    CALL0(K_HOSTCALLS);
    guest_exit(0);
}

static int attack_hoard(void)
{
    guest_patch(STUB_ACT_TAIL);
    long r = 0;
    int i;
    for (i = 0; i < 20000; i++) {
        r = CALL2(K_MAP_FILE, 1, 2);
        if (r < 0 && r > -4096)
            break;
        CALL2(NR_MUNMAP, r, 4096);
    }
    guest.armed = 0;
    return r == -24 && i > 10 ? 0 : 1;
}

static int attack_unmap(uint64_t what)
{
    uint64_t z = guest.zone;
    switch (what) {
    case 0: HOST2(NR_MUNMAP, z, STUB_TEXT_SIZE); break;
    case 1: HOST2(NR_MUNMAP, z + STUB_SLOTS_OFF, STUB_SLOT_SIZE * STUB_SLOTS_MAX); break;
    case 2: HOST2(NR_MUNMAP, guest_mailbox(guest_slot(0)), STUB_MBOX_SIZE); break;
    case 3: HOST2(NR_MUNMAP, z + STUB_CONFIG_OFF, 4096); break;
    case 4: HOST2(NR_MUNMAP, z + STUB_PROC_OFF, 4096); break;
    case 5: HOST2(NR_MUNMAP, z, 0x7ffffffff000 - z); break;
    case 6: HOST3(NR_MPROTECT, z, STUB_TEXT_SIZE, 0); break;
    case 7: HOST2(NR_MUNMAP, 4096, 0x7ffffffff000 - 4096); break;
    case 8: /* code of its own over the stub: the filter sees the address only, which must not matter */
        if (HOST6(NR_MMAP, z, STUB_TEXT_SIZE, 7, 0x32, -1, 0) < 0)
            return 0;
        break;
    }
    CALL1(K_GETPID, 1);
    CALL0(K_HOSTCALLS);
    return CALL0(K_FORK) == 0 ? 0 : 0;
}

/* Addresses and numbers that mean something to the stub, mixed with noise. */
static uint64_t jump_value(void)
{
    static const uint16_t small[] = {0, 1, 3, 9, 10, 11, 15, 17, 24, 25, 26, 27, 28, 56, 60, 131, 158, 202, 219, 228, 231,
                                     435, 436, 1023, 4096};
    uint64_t r = guest_random();
    switch (r % 12) {
    case 0:
    case 1:
    case 2: return small[(r >> 8) % (sizeof(small) / sizeof(small[0]))];
    case 3: return guest.zone + ((r >> 8) & 0xffff);
    case 4: return (uint64_t)guest_slot(0) + ((r >> 8) & 0xff8);
    case 5: return (uint64_t)guest_mailbox(guest_slot(0)) + ((r >> 8) & 0xff8);
    case 6: return guest.zone + STUB_SLOTS_OFF + STUB_STACK_OFF + ((r >> 8) & 0xaff8);
    case 7: return (uint64_t)attack_stack + ((r >> 8) & 0xff8);
    case 8: return (r >> 8) & 1 ? STUB_CLONE_THREAD : STUB_CLONE_FORK;
    case 9: return -(r >> 52);
    case 10: return guest.zone + ((r >> 8) & 0xfffffff);
    default: return guest_random();
    }
}

static void jump_child(uint64_t off)
{
    uint64_t regs[17];
    guest_seed(off * 77 + guest.arg);
    for (int i = 0; i < 16; i++)
        regs[i] = jump_value();
    /* Mostly a stack that works. */
    if (guest_random() % 4)
        regs[7] = guest.zone + STUB_SLOTS_OFF + STUB_STACK_OFF + STUB_STACK_SIZE - 2048 - (guest_random() & 0x1ff8);
    /* Its own mailbox says anything. */
    uint64_t *m = (uint64_t *)guest_mailbox(guest_slot(0));
    for (int i = 0; i < 512; i++)
        if (guest_random() % 4 == 0)
            m[i] = jump_value();
    regs[16] = guest.zone + off;
    guest_jump(regs);
}

static int attack_jump(uint64_t first, uint64_t count)
{
    for (uint64_t off = first; off < first + count && off < STUB_TEXT_SIZE; off++) {
        long pid = CALL0(K_FORK);
        if (pid == 0)
            jump_child(off);
        if (pid < 0)
            return 1;
        if (CALL1(K_WAIT, 20000) < 0)
            return 2;
    }
    return 0;
}

static const char marker[] = "/tmp/cloister-attack-marker";

/* The instruction before the general address becomes one of another entry; the path has to lie below 4 GiB. */
static void abi_child(uint8_t b0, uint8_t b1, uint64_t nr)
{
    static char path[64];
    for (unsigned i = 0; i < sizeof(marker); i++)
        path[i] = marker[i];
    HOST3(NR_MPROTECT, guest.zone, STUB_TEXT_SIZE, 7);
    uint8_t *site = (uint8_t *)guest.general;
    site[0] = b0;
    site[1] = b1;
    long r;
    __asm__ volatile("call *%[site]"
                     : "=a"(r)
                     : "a"(nr), "b"(path), "D"(path), "c"(0), "S"(0), "d"(0), [site] "r"(site)
                     : "r11", "memory");
    site[0] = 0x0f;
    site[1] = 0x05;
    guest_exit(r == 0 ? 9 : 0);
}

static int attack_abi(void)
{
    static const struct {
        uint8_t b0, b1;
        uint64_t nr;
    } ways[] = {
        {0xcd, 0x80, 10},               /* int 0x80: i386 unlink has mprotect's number */
        {0x0f, 0x34, 10},               /* sysenter */
        {0x0f, 0x05, 0x40000000 | 87},  /* x32 unlink */
        {0x0f, 0x05, 0x40000000 | 10},
        {0x0f, 0x05, 87},
        {0x0f, 0x05, 0xffffffff00000057}, /* high half of the number is not looked at */
    };
    for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        long pid = CALL0(K_FORK);
        if (pid == 0)
            abi_child(ways[i].b0, ways[i].b1, ways[i].nr);
        if (pid < 0 || CALL1(K_WAIT, 100000) == 9)
            return 1;
    }
    return 0;
}

/* Everything is blocked at the host from here on: no kick reaches the thread. */
static void attack_mask(uint64_t arg)
{
    static struct {
        uint64_t flags, link, ss_sp, ss_flags, ss_size, gregs[STUB_GREGS], csgsfs, err, trapno, oldmask, cr2, fpstate,
            reserved[8], sigmask;
    } uc;
    uc.flags = 6;
    uc.ss_flags = 2;
    uc.gregs[G_RIP] = (uint64_t)guest_spin;
    uc.gregs[G_RSP] = (uint64_t)(attack_stack + 2048);
    uc.gregs[G_EFL] = 0x202;
    uc.csgsfs = 0x33 | (0x2bULL << 48);
    uc.sigmask = ~0ULL;
    guest.word2 = 1;
    __asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tjmp *%1" ::"r"(&uc), "r"(guest.sigreturn) : "memory");
}

static int remap_child(int way)
{
    struct stub_slot *s = guest_slot(0);
    struct stub_mailbox *m = guest_mailbox(s);
    uint64_t at = 0x30000000;
    volatile uint8_t *p;
    switch (way) {
    case 0: /* beyond the end of the mailbox's file */
        HOST6(NR_MREMAP, m, STUB_MBOX_SIZE, 0x100000, 3, at, 0);
        p = (uint8_t *)at + STUB_MBOX_SIZE;
        *p = 1; /* SIGBUS */
        return 9;
    case 1:
        HOST6(NR_MREMAP, m, 0, 0x100000, 3, at, 0);
        p = (uint8_t *)at + 0x80000;
        *p = 1;
        return 9;
    case 2: return HOST3(NR_MADVISE, m, STUB_MBOX_SIZE, 9) == 0 ? 9 : 0;
    case 3: HOST3(NR_MADVISE, m, STUB_MBOX_SIZE, 4); return 0;
    case 4: HOST3(NR_MPROTECT, m, STUB_MBOX_SIZE, 7); return 0;
    case 5: HOST3(NR_MPROTECT, m, STUB_MBOX_SIZE, 0); return 0;
    case 6:
        HOST3(NR_MADVISE, m, STUB_MBOX_SIZE, 11); /* DOFORK: the child sees its parent's mailbox */
        if (CALL0(K_FORK) == 0) {
            for (int i = 0; i < 100; i++)
                for (unsigned n = 0; n < STUB_MBOX_SIZE / 8; n++)
                    ((volatile uint64_t *)m)[n] = guest_random();
            return 0;
        }
        for (int i = 0; i < 100; i++)
            CALL1(K_GETPID, i);
        CALL0(K_WAIT);
        return 0;
    case 7: /* the text's file: sealed, and nothing but the stub in it */
        HOST6(NR_MREMAP, guest.zone, 0, 0x100000, 3, at, 0);
        p = (uint8_t *)at + 0x80000;
        (void)*p;
        return 9;
    case 8: return HOST6(NR_MMAP, at, 0x200000, 3, 0x40022, -1, 0) > 0 ? 9 : 0; /* huge pages of the host */
    case 9: return HOST6(NR_FUTEX, &guest.word, 6, 0, 0, 0, 0) == 0 ? 9 : 0;    /* LOCK_PI */
    case 10: return HOST6(NR_FUTEX, &guest.word, 12, 1, 1, &guest.word2, 0) >= 0 ? 9 : 0;
    case 11: return HOST3(NR_MADVISE, attack_stack, 4096, 12) == 0 ? 9 : 0;     /* MERGEABLE */
    case 12: return HOST3(NR_MADVISE, attack_stack, 4096, 21) == 0 ? 9 : 0;     /* PAGEOUT */
    case 13: return HOST3(NR_CLOSE_RANGE, 0, 10, 2) == 0 ? 9 : 0;               /* UNSHARE */
    case 14: HOST6(NR_FUTEX, m, 4, 100, 100, &guest.word, 0); return 0;
    default: return 10;
    }
}

static int attack_remap(void)
{
    for (int way = 0;; way++) {
        long pid = CALL0(K_FORK);
        if (pid == 0) {
            int r = remap_child(way);
            CALL1(K_GETPID, 1);
            guest_exit(r);
        }
        long status = pid < 0 ? pid : CALL1(K_WAIT, 500000);
        if (status == 10)
            return 0;
        if (status < 0 || status == 9)
            return 20 + way;
    }
}

static void steal_thread(uint64_t arg)
{
    struct stub_slot *s = guest_slot(arg ? 0 : 1), *mine = guest_slot(arg ? 1 : 0);
    uint64_t old = s->token, token;
    while ((token = *(volatile uint64_t *)&s->token) == old)
        ;
    guest_ring(++mine->seq, STUB_OP_BIRTH, token, 0);
}

static void steal_forker(uint64_t arg)
{
    for (int i = 0; i < 50; i++) {
        long pid = CALL0(K_FORK);
        if (pid == 0)
            guest_exit(0);
        if (pid > 0)
            CALL0(K_WAIT);
    }
    guest_exit(0);
}

static void intrude_fork(uint64_t arg)
{
    for (;;) {
        guest_mailbox(guest_slot(0))->clone_token = guest_random();
        guest_mailbox(guest_slot(0))->clone_slot = (uint32_t)guest_random();
        guest_mailbox(guest_slot(0))->clone_flags = guest_random() & 1 ? STUB_CLONE_FORK : STUB_CLONE_THREAD;
        guest_mailbox(guest_slot(0))->calls_len = (uint32_t)guest_random();
        guest_mailbox(guest_slot(0))->clone_result = (int64_t)guest_random() >> (guest_random() % 64);
        guest_mailbox(guest_slot(0))->in_len = (uint32_t)guest_random();
        guest_mailbox(guest_slot(0))->out_len = (uint32_t)guest_random();
        guest_mailbox(guest_slot(0))->data_used = (uint32_t)guest_random();
        for (int i = 0; i < 4; i++)
            guest_mailbox(guest_slot(0))->out[guest_random() % STUB_OUT_MAX].size = (uint32_t)guest_random();
    }
}

int guest_attack(unsigned mode, uint64_t arg)
{
    static uint8_t buf[512];
    switch (mode) {
    case G_RING: return (int)guest_ring(++guest_slot(0)->seq, arg, 0, 0);
    case G_RING_STORM: return attack_ring_storm();
    case G_POST_STORM: return attack_post_storm();
    case G_BIRTH_FORGED: return (int)guest_ring(++guest_slot(0)->seq, STUB_OP_BIRTH, guest_slot(0)->token, 0);
    case G_CLONE_RAW: return attack_clone_raw();
    case G_HIDE:
        guest_patch(STUB_ACT_CLONE);
        if (arg >= HIDE_THREAD)
            guest_spawn(undead_thread, 0, 0);
        else if (CALL0(K_FORK) == 0)
            guest_exit(0);
        return 0;
    case G_UNDEAD:
        guest_spawn(undead_thread, arg, &guest.word);
        CALL1(K_SLEEP, 100000);
        return 0;
    case G_INTRUDE:
        if (arg) {
            guest_spawn(intrude_fork, 0, 0);
            for (int i = 0; i < 1000; i++) {
                if (CALL0(K_FORK) == 0)
                    guest_exit(0);
                CALL0(K_HOSTCALLS);
                CALL3(K_FILL, buf, 512, 3);
                CALL2(K_SUM, buf, 512);
                CALL1(K_WAIT, 10000);
            }
            return 0;
        }
        guest_patch(STUB_ACT_CALLS);
        CALL0(K_HOSTCALLS);
        return 0;
    case G_HOARD: return attack_hoard();
    case G_VANISH: return attack_vanish();
    case G_VANISH_LEADER:
        guest_spawn(leader_outlived, 0, 0);
        HOST1(NR_HOST_EXIT, 0);
        return 1;
    case G_UNMAP: return attack_unmap(arg);
    case G_JUMP: return attack_jump(arg & 0xffffffff, arg >> 32 & 0xffff);
    case G_ABI: return attack_abi();
    case G_MASK:
        if (!arg)
            attack_mask(0);
        guest_spawn(attack_mask, 0, 0);
        while (!guest.word2)
            CALL1(K_SLEEP, 1000);
        return CALL1(K_GETPID, 1) == 2 ? 0 : 1;
    case G_REMAP: return attack_remap();
    case G_STEAL:
        if (guest_spawn(arg ? steal_thread : steal_forker, arg, 0) < 0)
            return 0;
        if (arg)
            steal_forker(0);
        steal_thread(0);
        return 0;
    case G_FLOOD:
        for (;;)
            guest_ring(guest_slot(0)->seq, STUB_OP_SYSCALL, 0, 0);
    default: return 99;
    }
}
