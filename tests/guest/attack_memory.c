/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on memory: the stub unmapped, mapped over, made writable, its mailboxes moved and shared; pointers at it. */
#include "tests/guest/attack_stub.h"

#include <pthread.h>
#include <sys/param.h>
#include <sys/uio.h>

enum { FAR = 0x300000000 };

/* What an honest program's fixed maps may not touch, it can't: natively the end of the address space. */
TEST(fixed_maps_over_the_end)
{
    uint64_t end = attack_find() ? stub.zone : 0x7ffffffff000;
    void *p = mmap((void *)end, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(p == MAP_FAILED && errno == ENOMEM);
    p = mmap((void *)(end - 4096), 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(p == MAP_FAILED && errno == ENOMEM);
    /* A hint is only a hint. */
    p = OK(mmap((void *)end, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK((uint64_t)p < end);
    ERR(EINVAL, munmap((void *)end, 4096));
    /* A range up to where addresses end natively loses what is below the stub, and nothing else. */
    OK(munmap((void *)(end - 4096), MIN(8192, 0x7ffffffff000 - (end - 4096))));
    OK(munmap((void *)(end - 4096), 0x7ffffffff000 - (end - 4096)));
    ERR(EINVAL, munmap((void *)(end - 4096), 0x7ffffffff000 - (end - 4096) + 4096));
    ERR(ENOMEM, mprotect((void *)end, 4096, PROT_READ));
    void *q = OK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ERR(EINVAL, mremap(q, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)end));
    attack_check_system();
}

static long host_pointer_calls(long p)
{
    struct iovec v = {(void *)p, 64};
    int fds[2];
    OK(pipe(fds));
    ERR(EFAULT, open((char *)p, O_RDONLY));
    ERR(EFAULT, write(fds[1], (void *)p, 64));
    OK(write(fds[1], "0123456789", 10));
    ERR(EFAULT, read(fds[0], (void *)p, 10));
    ERR(EFAULT, writev(fds[1], &v, 1));
    ERR(EFAULT, readv(fds[0], &v, 1));
    ERR(EFAULT, syscall(SYS_stat, "/", p));
    ERR(EFAULT, syscall(SYS_getcwd, p, 64));
    ERR(EFAULT, syscall(SYS_pipe2, p, 0));
    ERR(EFAULT, syscall(SYS_uname, p));
    ERR(EFAULT, syscall(SYS_rt_sigaction, SIGUSR1, p, 0, 8));
    ERR(EFAULT, syscall(SYS_rt_sigprocmask, 0, p, 0, 8));
    ERR(EFAULT, syscall(SYS_nanosleep, p, 0));
    ERR(EFAULT, syscall(SYS_futex, p, 0, 0, 0, 0, 0));
    ERR(EFAULT, syscall(SYS_execve, p, 0, 0));
    close(fds[0]);
    close(fds[1]);
    return 0;
}

/* The stub's pages are there for the hardware, but not for the kernel that the guest sees. */
TEST(pointers_at_the_stub)
{
    uint64_t end = 0x7ffffffff000;
    if (attack_find()) {
        struct stub_slot *s = attack_slot();
        end = stub.zone;
        host_pointer_calls((long)stub.zone);
        host_pointer_calls((long)stub.general);
        host_pointer_calls((long)s);
        host_pointer_calls((long)attack_mailbox(s));
        host_pointer_calls((long)(stub.zone + STUB_CONFIG_OFF));
    }
    host_pointer_calls((long)end);
    host_pointer_calls(-4096);
    host_pointer_calls((long)0x8000000000000000UL);
    /* Begins in the last page, and goes on beyond. */
    char *last = mmap((void *)(end - 4096), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (last != MAP_FAILED) {
        int fds[2];
        OK(pipe(fds));
        memset(last, 'x', 4096);
        ERR(EFAULT, open(last + 10, O_RDONLY));
        OK(write(fds[1], last + 4000, 96));
        long n = write(fds[1], last + 4000, 200);
        CHECK(n == 96 || (n == -1 && errno == EFAULT));
        ERR(EFAULT, syscall(SYS_uname, last + 4000));
    }
}

static volatile char *flicker;
static volatile bool flicker_stop;

static void *flicker_thread(void *arg)
{
    while (!flicker_stop) {
        mmap((void *)flicker, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        mprotect((void *)flicker, 4096, PROT_READ);
        munmap((void *)flicker, 4096);
    }
    return NULL;
}

/* A page that another thread maps and unmaps all the time: each call works or gives EFAULT, nothing else. */
TEST_TIME(pointer_that_comes_and_goes, 60)
{
    pthread_t t;
    int fds[2], works = 0, faults = 0;
    char big[8192];
    flicker = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(pipe(fds));
    EQ(pthread_create(&t, NULL, flicker_thread, NULL), 0);
    for (int i = 0; i < 3000; i++) {
        struct iovec v[2] = {{big, 10}, {(void *)flicker, 4000}};
        long r[6];
        errno = 0;
        r[0] = write(fds[1], (void *)flicker, 100);
        if (r[0] < 0)
            CHECK(errno == EFAULT);
        if (r[0] > 0)
            OK(read(fds[0], big, sizeof(big)));
        OK(write(fds[1], big, 100));
        r[1] = read(fds[0], (void *)flicker, 100);
        if (r[1] < 0) {
            CHECK(errno == EFAULT);
            OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
            r[2] = read(fds[0], big, sizeof(big));
            CHECK(r[2] > 0 || errno == EAGAIN);
            OK(fcntl(fds[0], F_SETFL, 0));
        } else if (r[1] < 100) {
            OK(read(fds[0], big, sizeof(big)));
        }
        r[3] = writev(fds[1], v, 2);
        if (r[3] < 0)
            CHECK(errno == EFAULT);
        else
            OK(read(fds[0], big, sizeof(big)));
        r[4] = syscall(SYS_stat, "/", flicker);
        CHECK(r[4] == 0 || errno == EFAULT);
        r[5] = syscall(SYS_uname, flicker);
        CHECK(r[5] == 0 || errno == EFAULT);
        works += r[4] == 0;
        faults += r[4] != 0;
    }
    flicker_stop = true;
    EQ(pthread_join(t, NULL), 0);
    printf("%d calls worked, %d faulted\n", works, faults);
}

static void unmap_and_go_on(uint64_t addr, uint64_t size)
{
    HOST2(SYS_munmap, addr, size);
    getppid();
    getpid();
    fork();
    char c;
    (void)!read(0, &c, 0);
}

TEST_TIME(unmap_the_stub, 60)
{
    if (!attack_find())
        return;
    struct stub_slot *s = attack_slot();
    uint64_t z = stub.zone;
    HOSTILE(1000, unmap_and_go_on(z, STUB_TEXT_SIZE));
    HOSTILE(1000, unmap_and_go_on(z + STUB_SLOTS_OFF, STUB_SLOT_SIZE * STUB_SLOTS_MAX));
    HOSTILE(1000, unmap_and_go_on((uint64_t)attack_mailbox(s), STUB_MBOX_SIZE));
    HOSTILE(1000, unmap_and_go_on(z + STUB_CONFIG_OFF, 4096));
    HOSTILE(1000, unmap_and_go_on(z + STUB_PROC_OFF, 4096));
    HOSTILE(1000, unmap_and_go_on(z, 0x7ffffffff000 - z));
    HOSTILE(1000, unmap_and_go_on(4096, 0x7ffffffff000 - 4096));
    HOSTILE(1000, HOST3(SYS_mprotect, z, STUB_TEXT_SIZE, 0); getppid());
}

/* Code of its own where the stub was: the filter lets the same calls pass there and no others. */
TEST_TIME(code_over_the_stub, 60)
{
    if (!attack_find())
        return;
    int status = HOSTILE(
        2000, static uint8_t copy[STUB_TEXT_SIZE]; memcpy(copy, (void *)stub.zone, STUB_TEXT_SIZE);
        /* Made somewhere, filled, and moved over the stub in one go. */
        uint8_t *p = OK(mmap(NULL, STUB_TEXT_SIZE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        memcpy(p, copy, STUB_TEXT_SIZE);
        HOST6(SYS_mremap, p, STUB_TEXT_SIZE, STUB_TEXT_SIZE, 3, stub.zone, 0);
        /* A stub of our own making, with the same code: all works as before. */
        if (getppid() <= 0) _exit(1);
        /* And still nothing else passes: these are calls of the guest, and have a guest's answer. */
        for (long nr = 0; nr < 470; nr++) {
            switch (nr) {
            case SYS_mmap: case SYS_munmap: case SYS_mprotect: case SYS_mremap: case SYS_msync: case SYS_mincore:
            case SYS_madvise: case SYS_close: case SYS_exit: case SYS_exit_group: case SYS_sched_yield:
            case SYS_sigaltstack: case SYS_clock_gettime: case SYS_close_range: case SYS_futex:
            case SYS_arch_prctl: case SYS_pause: case SYS_rt_sigreturn: case SYS_fork: case SYS_vfork:
            case SYS_clone: case SYS_kill: case SYS_tkill: case SYS_tgkill: case SYS_rt_sigsuspend:
            /* uretprobe and uprobe, which newer hosts let pass every filter and answer with SIGILL. */
            case 335: case 336:
            case SYS_select: case SYS_ptrace: case SYS_brk: case SYS_read: case SYS_poll:
                continue;
            }
            HOST6(nr, -1, -1, -1, -1, -1, -1);
        });
    EXITED(status, 0);
}

static void remap_way(int way)
{
    struct stub_mailbox *m = attack_mailbox(attack_slot());
    volatile char *p;
    switch (way) {
    case 0: /* a neighbour's page is what lies behind the end of the mailbox's file: there is none */
        HOST6(SYS_mremap, m, STUB_MBOX_SIZE, 0x100000, 3, FAR, 0);
        p = (volatile char *)FAR + STUB_MBOX_SIZE;
        *p = 1;
        _exit(9);
    case 1:
        HOST6(SYS_mremap, m, 0, 0x100000, 3, FAR, 0);
        p = (volatile char *)FAR + 0x80000;
        *p = 1;
        _exit(9);
    case 2: _exit(HOST3(SYS_madvise, m, STUB_MBOX_SIZE, MADV_REMOVE) == 0 ? 9 : 0);
    case 3: HOST3(SYS_madvise, m, STUB_MBOX_SIZE, MADV_DONTNEED); break;
    case 4: HOST3(SYS_mprotect, m, STUB_MBOX_SIZE, 7); break;
    case 5: HOST3(SYS_mprotect, m, STUB_MBOX_SIZE, 0); break;
    case 6:
        HOST6(SYS_mremap, stub.zone, 0, 0x100000, 3, FAR, 0);
        p = (volatile char *)FAR + 0x80000;
        (void)*p;
        _exit(9);
    case 7: _exit(HOST6(SYS_mmap, FAR, 0x200000, 3, 0x40022, -1, 0) > 0 ? 9 : 0); /* the host's huge pages */
    case 8: _exit(HOST3(SYS_madvise, FAR, 4096, MADV_MERGEABLE) == 0 ? 9 : 0);
    case 9: HOST6(SYS_futex, m, 4, 100, 100, FAR, 0); break;
    }
    getppid();
}

TEST_TIME(mailbox_moved_and_grown, 60)
{
    if (!attack_find())
        return;
    for (int way = 0; way < 10; way++) {
        int status = HOSTILE(1000, remap_way(way));
        if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
            FAIL("way %d worked", way);
    }
}

/* A child that has its parent's mailbox writes into it: the parent's calls are the parent's business, and nobody
 * else's. */
TEST_TIME(mailbox_shared_with_a_child, 60)
{
    if (!attack_find())
        return;
    HOSTILE(3000, {
        struct stub_mailbox *m = attack_mailbox(attack_slot());
        HOST3(SYS_madvise, m, STUB_MBOX_SIZE, MADV_DOFORK);
        volatile uint64_t *w = (volatile uint64_t *)m;
        pid_t pid = fork();
        if (!pid)
            for (;;)
                for (unsigned i = 0; i < STUB_MBOX_SIZE / 8; i++)
                    w[i] = attack_random();
        for (int i = 0; i < 2000; i++) {
            getppid();
            (void)!access("/", R_OK);
            if (i % 50 == 0 && !fork())
                _exit(0);
        }
        kill(pid, SIGKILL);
    });
}

/* Nothing of a sandbox's host side can be reached by a descriptor: the table holds nothing. */
TEST_TIME(descriptors_of_the_host, 60)
{
    if (!attack_find())
        return;
    for (int round = 0; round < 3; round++) {
        int status = HOSTILE(5000, {
            for (int fd = 0; fd < 5000; fd++) {
                if (HOST6(SYS_mmap, 0, 4096, 1, MAP_SHARED, fd, 0) > 0)
                    _exit(9);
                if (HOST1(SYS_close, fd) == 0)
                    _exit(8);
            }
        });
        EXITED(status, 0);
    }
}
