/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the doorbell's protocol: forged rings, births and ends, children that hide, threads that will not stop. */
#include "tests/guest/attack_stub.h"

#include <pthread.h>
#include <sys/eventfd.h>

TEST_TIME(forged_rings, 120)
{
    if (!attack_find())
        return;
    for (unsigned op = 0; op < 14; op++)
        HOSTILE(500, attack_ring(++attack_slot()->seq, op, 0, 0); getppid());
    for (unsigned seed = 0; seed < 300; seed++) {
        pid_t pid = OK(fork());
        if (!pid) {
            struct stub_slot *s = attack_slot();
            attack_seed(seed);
            for (int n = 0; n < 10; n++) {
                uint64_t r = attack_random(), seq = r & 1 ? s->seq : r & 2 ? ++s->seq : attack_random();
                attack_ring(seq, attack_random() % 14, attack_random(), attack_random());
            }
            _exit(0);
        }
        attack_reap(pid, 500);
    }
    attack_check_system();
    int status = HOSTILE(1000, attack_ring(++attack_slot()->seq, STUB_OP_BIRTH, attack_random() >> 1, 0));
    KILLED(status, SIGKILL);
}

/* ---- fork with a stub of one's own ---- */

enum { HIDE_CHILD, HIDE_REFUSED, HIDE_OTHER_PID, HIDE_PARENT_GONE, HIDE_TWICE, HIDE_OTHER_OP, HIDE_EXIT, HIDE_WRONG_TOKEN,
       HIDE_SLEEP, HIDE_END };
static int hide_way;

/* Which of its mailboxes a hidden child or the sentry looks at must not matter. */
static long hide_strike(long result, struct stub_slot *s, struct stub_mailbox *m)
{
    long pid = HOST6(SYS_clone, STUB_CLONE_FORK, 0, 0, 0, 0, 0);
    if (pid == 0) {
        if (hide_way == HIDE_WRONG_TOKEN)
            attack_ring(1, STUB_OP_BIRTH, m->clone_token ^ 1, 0);
        attack_spin();
    }
    switch (hide_way) {
    case HIDE_REFUSED: pid = -11; break;
    case HIDE_OTHER_PID: pid = 2; break;
    case HIDE_PARENT_GONE: attack_spin();
    case HIDE_TWICE:
        for (int i = 0; i < 50; i++)
            if (HOST6(SYS_clone, STUB_CLONE_FORK, 0, 0, 0, 0, 0) == 0)
                attack_spin();
        break;
    case HIDE_OTHER_OP: attack_ring(++s->seq, STUB_OP_SYSCALL, 0, 0); break;
    case HIDE_EXIT: HOST1(SYS_exit_group, 0); break;
    case HIDE_SLEEP: HOST6(SYS_futex, s, 0, (uint32_t)s->seq, 0, 0, 0); break;
    }
    m->clone_result = pid;
    attack_ring(++s->seq, STUB_OP_CLONE_DONE, 0, 0);
    return result;
}

TEST_TIME(hidden_children, 120)
{
    if (!attack_find())
        return;
    for (hide_way = 0; hide_way < HIDE_END; hide_way++)
        HOSTILE(300, attack_patch(STUB_ACT_CLONE, hide_strike); (void)!fork());
}

static void *thread_idle(void *arg)
{
    getppid();
    return NULL;
}

static long undead_strike(long result, struct stub_slot *s, struct stub_mailbox *m)
{
    for (int i = 0; i < 20; i++)
        attack_ring(++s->seq, hide_way ? STUB_OP_CALLS_DONE : STUB_OP_SYSCALL, 0, 0);
    attack_spin();
    return result;
}

TEST_TIME(threads_after_their_end, 60)
{
    if (!attack_find())
        return;
    for (hide_way = 0; hide_way < 2; hide_way++)
        HOSTILE(1000, {
            pthread_t t;
            pthread_create(&t, NULL, thread_idle, NULL);
            pthread_join(t, NULL);
            attack_patch(STUB_ACT_EXIT, undead_strike);
            pthread_create(&t, NULL, thread_idle, NULL);
            pthread_join(t, NULL);
            for (int i = 0; i < 20; i++)
                getppid();
        });
}

static long intrude_strike(long result, struct stub_slot *s, struct stub_mailbox *m)
{
    m->sysno = SYS_getppid;
    attack_ring(++s->seq, STUB_OP_SYSCALL, 0, 0);
    attack_ring(++s->seq, STUB_OP_CALLS_DONE, 0, 0);
    return result;
}

/* Rings a call while the kernel waits for host calls of the thread. */
TEST_TIME(ring_out_of_turn, 60)
{
    if (!attack_find())
        return;
    HOSTILE(1000, {
        attack_patch(STUB_ACT_CALLS, intrude_strike);
        int fd = open("/proc/self/exe", O_RDONLY);
        /* Some call that is carried out by host calls. */
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        syscall(SYS_brk, 0);
        syscall(SYS_execve, "/proc/self/exe", (char *[]){"x", "@nothing", NULL}, (char *[]){NULL});
    });
    HOSTILE(1000, {
        attack_patch(STUB_ACT_TAIL, intrude_strike);
        int fd = open("/proc/self/exe", O_RDONLY);
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    });
}

static void *vanish_thread(void *arg)
{
    HOST1(SYS_exit, 0);
    return NULL;
}

TEST_TIME(threads_that_vanish, 60)
{
    if (!attack_find())
        return;
    int status = HOSTILE(5000, {
        for (int i = 0; i < 50; i++) {
            pthread_t t;
            pthread_create(&t, NULL, vanish_thread, NULL);
            pthread_detach(t);
        }
        for (int i = 0; i < 50; i++)
            getppid();
    });
    CHECK(WIFEXITED(status) || WIFSIGNALED(status));
    HOSTILE(1000, {
        pthread_t t;
        pthread_create(&t, NULL, thread_idle, NULL);
        HOST1(SYS_exit, 0);
    });
}

static volatile uint64_t stolen_from;

static void *steal_thread(void *arg)
{
    struct stub_slot *mine = attack_slot(), *s = (struct stub_slot *)stolen_from;
    uint64_t old = s->token, token;
    while ((token = *(volatile uint64_t *)&s->token) == old)
        ;
    attack_ring(++mine->seq, STUB_OP_BIRTH, token, 0);
    return NULL;
}

static void *fork_thread(void *arg)
{
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (!pid)
            _exit(0);
        waitpid(pid, NULL, 0);
    }
    return NULL;
}

TEST_TIME(stolen_birth, 60)
{
    if (!attack_find())
        return;
    for (int i = 0; i < 10; i++)
        HOSTILE(2000, {
            pthread_t t;
            stolen_from = (uint64_t)attack_slot();
            pthread_create(&t, NULL, i & 1 ? fork_thread : steal_thread, NULL);
            if (i & 1)
                steal_thread(NULL);
            fork_thread(NULL);
        });
}

static void *scribble_thread(void *arg)
{
    volatile uint64_t *w = (volatile uint64_t *)attack_mailbox(arg);
    for (;;)
        w[attack_random() % (sizeof(struct stub_mailbox) / 8)] =
            attack_random() & 1 ? attack_random() : attack_random() >> (attack_random() % 64);
    return NULL;
}

/* Another thread writes anything into the mailbox at any moment. */
TEST_TIME(scribbled_mailbox, 120)
{
    if (!attack_find())
        return;
    for (unsigned seed = 0; seed < 150; seed++) {
        pid_t pid = OK(fork());
        if (!pid) {
            pthread_t t;
            char buf[512];
            attack_seed(seed);
            signal(SIGSEGV, SIG_DFL);
            int fd = open("/proc/self/exe", O_RDONLY);
            pthread_create(&t, NULL, scribble_thread, attack_slot());
            for (int i = 0; i < 2000; i++) {
                (void)!read(fd, buf, sizeof(buf));
                (void)!write(-1, buf, sizeof(buf));
                (void)!access("/tmp", R_OK);
                mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
                if (i % 16 == 0) {
                    pid_t child = fork();
                    if (child == 0)
                        _exit(0);
                    if (child > 0)
                        waitpid(child, NULL, 0);
                }
            }
            _exit(0);
        }
        attack_reap(pid, 100);
    }
    attack_check_system();
}

/* ---- a thread that can't be stopped by a kick ---- */

struct host_ucontext {
    uint64_t flags, link, ss_sp, ss_flags, ss_size, gregs[STUB_GREGS], csgsfs, err, trapno, oldmask, cr2, fpstate, reserved[8],
        sigmask;
};

static void *deaf_thread(void *arg)
{
    static struct host_ucontext uc;
    static char stack[4096] __attribute__((aligned(16)));
    uc.flags = 6;
    uc.ss_flags = 2;
    uc.gregs[G_RIP] = (uint64_t)attack_spin;
    uc.gregs[G_RSP] = (uint64_t)(stack + 2048);
    uc.gregs[G_EFL] = 0x202;
    uc.csgsfs = 0x33 | (0x2bULL << 48);
    uc.sigmask = ~0ULL;
    *(volatile int *)arg = 1;
    __asm__ volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tjmp *%1" ::"r"(&uc), "r"(stub.sigreturn) : "memory");
    return NULL;
}

static void deaf_process(volatile int *up)
{
    pthread_t t;
    pthread_create(&t, NULL, deaf_thread, (void *)up);
    while (!*up)
        sched_yield();
}

TEST_TIME(deaf_threads, 60)
{
    volatile int *up = mmap(NULL, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    if (!attack_find())
        return;
    /* A whole process that hears nothing: SIGSTOP can't be waited for in vain, SIGKILL works. */
    pid_t pid = OK(fork());
    if (!pid)
        deaf_thread((void *)up);
    while (!*up)
        sched_yield();
    OK(kill(pid, SIGSTOP));
    OK(kill(pid, SIGCONT));
    OK(kill(pid, SIGTERM));
    sleep_ms(50);
    EQ(OK(waitpid(pid, &status, WNOHANG | WUNTRACED)) == 0 || WIFSTOPPED(status) || WIFSIGNALED(status), 1);
    kill(pid, SIGKILL);
    OK(waitpid(pid, &status, 0));
    attack_check_system();
    /* The others end without it. */
    *up = 0;
    EXITED(HOSTILE(5000, deaf_process(up); exit(5)), 5);
    *up = 0;
    EXITED(HOSTILE(5000, {
               deaf_process(up);
               execl("/proc/self/exe", "x", "@seven", NULL);
           }),
           7);
    *up = 0;
    KILLED(HOSTILE(5000, deaf_process(up); raise(SIGKILL)), SIGKILL);
    *up = 0;
    KILLED(HOSTILE(5000, deaf_process(up); raise(SIGTERM)), SIGTERM);
}

MODE(seven)
{
    return 7;
}

/* ---- floods ---- */

TEST_TIME(flood_of_rings, 60)
{
    pid_t pids[8];
    if (!attack_find())
        return;
    for (int i = 0; i < 8; i++) {
        pids[i] = OK(fork());
        if (!pids[i]) {
            struct stub_slot *s = attack_slot();
            for (;;)
                attack_ring(s->seq, STUB_OP_SYSCALL, 0, 0);
        }
    }
    uint64_t begin = now_ms();
    for (int i = 0; i < 20; i++)
        attack_check_system();
    printf("20 rounds in %lu ms beside a flood\n", (unsigned long)(now_ms() - begin));
    for (int i = 0; i < 8; i++) {
        kill(pids[i], SIGKILL);
        OK(waitpid(pids[i], NULL, 0));
    }
    attack_check_system();
}

/* ---- futexes ---- */

static uint32_t words[4];

static void *futex_thief(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        uint64_t slot = stub.zone + STUB_SLOTS_OFF + attack_random() % 4 * STUB_SLOT_SIZE;
        uint64_t at = slot + (attack_random() & 1 ? STUB_DATA_OFF : STUB_MBOX_OFF) + (attack_random() & 0xffc);
        HOST6(SYS_futex, at, 1, 100, 0, 0, 0);
        HOST6(SYS_futex, at, 3, 0, 100, &words[1], 0);
        HOST6(SYS_futex, at, 1 | 128, 100, 0, 0, 0);
        HOST6(SYS_futex, &words[0], 3 | 128, 0, 100, &words[1], 0);
        HOST6(SYS_futex, &words[0], 3, 0, 100, &words[1], 0);
    }
    return NULL;
}

static void *futex_sleeper(void *arg)
{
    struct timespec limit = {0, 1000000};
    for (int i = 0; i < 100; i++)
        syscall(SYS_futex, &words[0], 0, words[0], &limit, 0, 0);
    return NULL;
}

/* Wakes and moves away every wait that there may be, also on the stub's own words. */
TEST_TIME(stolen_futex_waits, 60)
{
    if (!attack_find())
        return;
    int status = HOSTILE(30000, {
        pthread_t t[3];
        for (int i = 0; i < 2; i++)
            pthread_create(&t[i], NULL, futex_sleeper, NULL);
        pthread_create(&t[2], NULL, futex_thief, NULL);
        int fd = eventfd(0, EFD_NONBLOCK);
        uint64_t n;
        for (int i = 0; i < 1000; i++) {
            (void)!read(fd, &n, 8);
            if (i % 50 == 0) {
                pid_t pid = fork();
                if (!pid)
                    _exit(0);
                waitpid(pid, NULL, 0);
            }
        }
        for (int i = 0; i < 3; i++)
            pthread_join(t[i], NULL);
    });
    EXITED(status, 0);
}
