/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: mappings of all kinds, protection, sharing, heap. */
#include "tests/guest/guest.h"

#include <setjmp.h>
#include <sys/resource.h>

enum { PAGE = 4096 };

static sigjmp_buf jump;

static void on_fault(int sig)
{
    siglongjmp(jump, sig);
}

/* Signal that reading / writing the byte raises, or 0. */
static int touch(volatile char *p, bool write)
{
    int sig;

    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    sig = sigsetjmp(jump, 1);
    if (sig)
        return sig;
    if (write)
        *p = 1;
    else
        (void)*p;
    return 0;
}

static char *anon(size_t pages, int prot)
{
    char *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

TEST(anonymous_is_zero)
{
    char *p = anon(64, PROT_READ | PROT_WRITE);

    for (int i = 0; i < 64 * PAGE; i++)
        EQ(p[i], 0);
    memset(p, 1, 64 * PAGE);
    OK(munmap(p, 64 * PAGE));
    EQ(touch(p, false), SIGSEGV);
}

TEST(mmap_errors)
{
    ERR(EINVAL, mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
    ERR(EBADF, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0));
    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 0, 5));
    ERR(ENOMEM, mmap(NULL, (size_t)1 << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ERR(EINVAL, munmap((void *)1, PAGE));
    ERR(EINVAL, munmap((void *)PAGE, 0));
    ERR(EINVAL, mprotect((void *)1, PAGE, PROT_READ));
    ERR(ENOMEM, mprotect(guest_unmapped(), PAGE, PROT_READ));
    ERR(ENOMEM, mmap((void *)0x7ffffffff000, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

TEST(protection)
{
    char *p = anon(3, PROT_READ | PROT_WRITE);

    memset(p, 7, 3 * PAGE);
    OK(mprotect(p + PAGE, PAGE, PROT_READ));
    EQ(touch(p, true), 0);
    EQ(touch(p + PAGE, false), 0);
    EQ(touch(p + PAGE, true), SIGSEGV);
    EQ(touch(p + 2 * PAGE, true), 0);
    OK(mprotect(p + PAGE, PAGE, PROT_NONE));
    EQ(touch(p + PAGE, false), SIGSEGV);
    OK(mprotect(p, 3 * PAGE, PROT_READ | PROT_WRITE));
    EQ(p[PAGE + 5], 7);
}

TEST(execute)
{
    static const unsigned char code[] = {0xb8, 0x2a, 0, 0, 0, 0xc3}; /* mov $42,%eax; ret */
    unsigned char *p = (unsigned char *)anon(1, PROT_READ | PROT_WRITE);

    memcpy(p, code, sizeof(code));
    OK(mprotect(p, PAGE, PROT_READ | PROT_EXEC));
    EQ(((int (*)(void))(uintptr_t)p)(), 42);
    OK(mprotect(p, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
    p[1] = 43;
    EQ(((int (*)(void))(uintptr_t)p)(), 43);
}

TEST(fixed)
{
    char *p = anon(4, PROT_READ | PROT_WRITE);

    memset(p, 1, 4 * PAGE);
    CHECK(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + PAGE);
    EQ(p[PAGE], 0);
    EQ(p[0], 1);
    EQ(p[2 * PAGE], 1);
    ERR(EEXIST, mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    OK(munmap(p + PAGE, PAGE));
    CHECK(mmap(p + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == p + PAGE);
    ERR(EINVAL, mmap(p + 1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

TEST(hints_and_low_addresses)
{
    char *p = mmap((void *)0x200000, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p == (void *)0x200000);
    p = mmap((void *)0x10000, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(p == (void *)0x10000);
    p[0] = 1;
    p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | 0x40 /* 32BIT */, -1, 0);
    CHECK((uintptr_t)p < 0x80000000u);
}

TEST(remap)
{
    char *p = anon(2, PROT_READ | PROT_WRITE), *q, *r;

    p[0] = 5;
    p[PAGE] = 6;
    q = mremap(p, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED);
    EQ(q[0], 5);
    EQ(q[PAGE], 6);
    EQ(q[7 * PAGE], 0);
    r = mremap(q, 8 * PAGE, PAGE, 0);
    CHECK(r == q);
    EQ(touch(q + PAGE, false), SIGSEGV);
    p = anon(4, PROT_NONE);
    r = mremap(q, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE);
    CHECK(r == p + PAGE);
    EQ(r[0], 5);
    EQ(touch(q, false), SIGSEGV);
    ERR(EINVAL, mremap(p + 1, PAGE, PAGE, 0));
    ERR(EFAULT, mremap(guest_unmapped(), PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    ERR(EINVAL, mremap(p, PAGE, 0, 0));
}

TEST(advice)
{
    char *p = anon(4, PROT_READ | PROT_WRITE);

    memset(p, 1, 4 * PAGE);
    OK(madvise(p + PAGE, PAGE, MADV_DONTNEED));
    EQ(p[PAGE], 0);
    EQ(p[0], 1);
    OK(madvise(p, 4 * PAGE, MADV_WILLNEED));
    OK(madvise(p, 4 * PAGE, MADV_FREE));
    OK(madvise(p, 4 * PAGE, MADV_DONTFORK));
    KILLED(IN_CHILD((void)*(volatile char *)p), SIGSEGV);
    OK(madvise(p, 4 * PAGE, MADV_DOFORK));
    ERR(EINVAL, madvise(p, PAGE, 999));
    ERR(EINVAL, madvise(p + 1, PAGE, MADV_NORMAL));
    ERR(ENOMEM, madvise(guest_unmapped(), PAGE, MADV_NORMAL));
}

TEST(heap)
{
    char *start = (char *)syscall(SYS_brk, 0), *now;

    now = (char *)syscall(SYS_brk, start + 10 * PAGE);
    CHECK(now == start + 10 * PAGE);
    memset(start, 1, 10 * PAGE);
    now = (char *)syscall(SYS_brk, start + 5);
    CHECK(now == start + 5);
    now = (char *)syscall(SYS_brk, start + 10 * PAGE);
    EQ(start[8 * PAGE], 0);
    CHECK((char *)syscall(SYS_brk, 4096) == now); /* below the heap: nothing happens */
    CHECK((char *)syscall(SYS_brk, (void *)-4096L) == now);
    CHECK((char *)syscall(SYS_brk, start) == start);
}

TEST(fork_is_copy_on_write)
{
    char *p = anon(256, PROT_READ | PROT_WRITE);

    memset(p, 1, 256 * PAGE);
    EXITED(IN_CHILD({
               memset(p, 2, 256 * PAGE);
               EXITED(IN_CHILD(memset(p, 3, 256 * PAGE)), 0);
               for (int i = 0; i < 256 * PAGE; i++)
                   EQ(p[i], 2);
           }), 0);
    for (int i = 0; i < 256 * PAGE; i++)
        EQ(p[i], 1);
}

TEST(shared_anonymous)
{
    volatile int *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    EXITED(IN_CHILD(p[3] = 77; EXITED(IN_CHILD(p[4] = 78), 0)), 0);
    EQ(p[3], 77);
    EQ(p[4], 78);
}

static int make_file(const char *name, size_t size)
{
    char *data = malloc(size);
    int fd;

    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i / PAGE + 1);
    fd = OK(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600));
    EQ(write(fd, data, size), size);
    free(data);
    return fd;
}

TEST(file_private)
{
    char c, *p;
    int fd;

    guest_tmpdir();
    fd = make_file("f", 3 * PAGE + 100);
    p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    EQ(p[0], 1);
    EQ(p[3 * PAGE + 99], 4);
    EQ(p[3 * PAGE + 100], 0);
    p[0] = 9;
    EQ(pread(fd, &c, 1, 0), 1);
    EQ(c, 1);
    OK(close(fd));
    EQ(p[PAGE], 2);
    EXITED(IN_CHILD(EQ(p[0], 9); EQ(p[2 * PAGE], 3); p[0] = 8), 0);
    EQ(p[0], 9);
}

TEST(file_shared)
{
    char c = 0, *p, *q;
    int fd;

    guest_tmpdir();
    fd = make_file("f", 3 * PAGE);
    p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    q = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
    CHECK(p != MAP_FAILED && q != MAP_FAILED);
    p[PAGE] = 55;
    EQ(q[0], 55);
    EQ(pread(fd, &c, 1, PAGE), 1);
    EQ(c, 55);
    EQ(pwrite(fd, "x", 1, 2), 1);
    EQ(p[2], 'x');
    EXITED(IN_CHILD(p[5] = 66), 0);
    EQ(p[5], 66);
    OK(msync(p, 3 * PAGE, MS_SYNC));
    ERR(EINVAL, msync(p, PAGE, MS_SYNC | MS_ASYNC));
    ERR(ENOMEM, msync(guest_unmapped(), PAGE, MS_SYNC));
    OK(ftruncate(fd, PAGE));
    EQ(touch(p, false), 0);
    EQ(touch(p + PAGE, false), SIGBUS);
    OK(ftruncate(fd, 3 * PAGE));
    EQ(p[PAGE], 0);
}

TEST(file_map_permissions)
{
    int ro, wo, rw;

    guest_tmpdir();
    rw = make_file("f", PAGE);
    ro = OK(open("f", O_RDONLY));
    wo = OK(open("f", O_WRONLY));
    ERR(EACCES, mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0));
    ERR(EACCES, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, wo, 0));
    CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, ro, 0) != MAP_FAILED);
    char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ro, 0);
    ERR(EACCES, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
    p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, rw, 0);
    OK(mprotect(p, PAGE, PROT_READ | PROT_WRITE));
    ERR(ENODEV, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, OK(open("/tmp", O_RDONLY)), 0));
}

TEST(device_zero)
{
    int fd = OK(open("/dev/zero", O_RDWR));
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *q = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK(p != MAP_FAILED && q != MAP_FAILED);
    EQ(p[10], 0);
    p[10] = 1;
    EXITED(IN_CHILD(q[0] = 4), 0);
    EQ(q[0], 4);
}

TEST(unlinked_and_renamed_files_stay_mapped)
{
    char *p;
    int fd;

    guest_tmpdir();
    fd = make_file("f", PAGE);
    p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    OK(unlink("f"));
    OK(close(fd));
    EQ(p[0], 1);
    p[0] = 2;
    EXITED(IN_CHILD(EQ(p[0], 2)), 0);
}

TEST(mincore_and_locks)
{
    char *p = anon(4, PROT_READ | PROT_WRITE);
    unsigned char vec[4];

    p[0] = 1;
    OK(mincore(p, 4 * PAGE, vec));
    EQ(vec[0] & 1, 1);
    EQ(vec[3] & 1, 0);
    ERR(ENOMEM, mincore(guest_unmapped(), PAGE, vec));
    OK(mlock(p, PAGE));
    OK(munlock(p, PAGE));
}

TEST(maps_file)
{
    char *p = anon(3, PROT_READ | PROT_WRITE), line[64], *maps, *self = OK(realpath("/proc/self/exe", NULL));
    int fd;

    OK(mprotect(p + PAGE, PAGE, PROT_NONE));
    snprintf(line, sizeof(line), "%lx-%lx ---p 00000000 00:00 0", (long)p + PAGE, (long)p + 2 * PAGE);
    maps = guest_read_file("/proc/self/maps");
    CHECK(strstr(maps, line));
    CHECK(strstr(maps, "[stack]"));
    CHECK(strstr(maps, self));
    CHECK(!strstr(maps, "stub"));
    guest_tmpdir();
    fd = make_file("mapped-file", 2 * PAGE);
    p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
    snprintf(line, sizeof(line), "%lx-%lx r--s 00001000", (long)p, (long)p + PAGE);
    maps = guest_read_file("/proc/self/maps");
    CHECK(strstr(maps, line));
    CHECK(strstr(maps, "/mapped-file"));
    OK(munmap(p, PAGE));
    CHECK(!strstr(guest_read_file("/proc/self/maps"), "/mapped-file"));
}

TEST(grows_down_stack)
{
    struct rlimit lim;
    volatile char *here;

    getrlimit(RLIMIT_STACK, &lim);
    CHECK(lim.rlim_cur >= 1 << 20);
    /* Far below the current end, within the limit. */
    here = (volatile char *)&lim - 700 * 1024;
    *here = 1;
    EQ(*here, 1);
}

TEST(many_mappings)
{
    enum { N = 3000 };
    char **p = calloc(N, sizeof(*p));

    for (int i = 0; i < N; i++) {
        p[i] = anon(1, i % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
        if (i % 2)
            *p[i] = 1;
    }
    for (int i = 0; i < N; i++)
        OK(munmap(p[i], PAGE));
}

TEST(large_and_sparse)
{
    size_t size = (size_t)64 << 30;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(p != MAP_FAILED);
    for (size_t i = 0; i < size; i += (size_t)1 << 30)
        p[i] = 1;
    OK(munmap(p, size));
}

TEST(rlimit_as)
{
    struct rlimit lim = {256 << 20, RLIM_INFINITY};

    EXITED(IN_CHILD({
               OK(setrlimit(RLIMIT_AS, &lim));
               ERR(ENOMEM, mmap(NULL, 512 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
           }), 0);
}

TEST(holes_are_reused)
{
    char *p = anon(3, PROT_READ), *q;

    OK(munmap(p + PAGE, PAGE));
    q = mmap(p + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(q == p + PAGE);
}

TEST(process_vm)
{
    struct iov {
        void *p;
        size_t n;
    } local, remote;
    char *p = anon(1, PROT_READ | PROT_WRITE), got[8] = "";
    pid_t child;

    strcpy(p, "parent");
    child = OK(fork());
    if (!child) {
        strcpy(p, "child");
        for (;;)
            pause();
    }
    sleep_ms(30);
    local = (struct iov){got, 6};
    remote = (struct iov){p, 6};
    EQ(OK(syscall(SYS_process_vm_readv, child, &local, 1, &remote, 1, 0)), 6);
    STR(got, "child");
    kill(child, SIGKILL);
    wait(NULL);
    ERR(ESRCH, syscall(SYS_process_vm_readv, 99999, &local, 1, &remote, 1, 0));
}

/* A field of /proc/self/status in kB. */
static long status_kb(const char *name)
{
    char *text = guest_read_file("/proc/self/status"), *at = strstr(text, name);

    CHECK(at);
    return strtol(at + strlen(name), NULL, 10);
}

TEST(locked_pages_are_counted)
{
    long before = status_kb("VmLck:");
    char *p = anon(8, PROT_READ | PROT_WRITE);

    OK(mlock(p, 4 * PAGE));
    EQ(status_kb("VmLck:"), before + 16);
    ERR(EINVAL, madvise(p, PAGE, MADV_DONTNEED));
    ERR(EBUSY, msync(p, PAGE, MS_INVALIDATE));
    OK(munlock(p + PAGE, PAGE));
    EQ(status_kb("VmLck:"), before + 12);
    OK(munlock(p, 8 * PAGE));
    EQ(status_kb("VmLck:"), before);
    ERR(ENOMEM, mlock(guest_unmapped(), PAGE));
    ERR(ENOMEM, munlock(guest_unmapped(), PAGE));
    ERR(EINVAL, mlockall(0));
}

TEST(membarrier_commands)
{
    long known = OK(syscall(SYS_membarrier, 0, 0, 0));

    CHECK(known & 8); /* PRIVATE_EXPEDITED */
    ERR(EPERM, syscall(SYS_membarrier, 8, 0, 0));
    OK(syscall(SYS_membarrier, 16, 0, 0));
    OK(syscall(SYS_membarrier, 8, 0, 0));
    ERR(EINVAL, syscall(SYS_membarrier, 1 << 20, 0, 0));
    ERR(EINVAL, syscall(SYS_membarrier, 8, 1, 0));
}

TEST(sealed_mappings_stay)
{
    char *p = anon(2, PROT_READ);

    if (syscall(462 /* mseal */, p, PAGE, 0) == -1 && errno == ENOSYS)
        return; /* a host without it */
    ERR(EPERM, munmap(p, PAGE));
    ERR(EPERM, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
    OK(munmap(p + PAGE, PAGE));
    ERR(EINVAL, syscall(462, p, PAGE, 1));
}

TEST(zero_device_stays_read_only)
{
    int fd = OK(open("/dev/zero", O_RDONLY));
    char *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

    CHECK(p != MAP_FAILED);
    ERR(EACCES, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
}

TEST(huge_page_arguments)
{
    int fd = OK(open("/proc/self/exe", O_RDONLY));
    const int all = MAP_ANONYMOUS | MAP_HUGETLB;

    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, ~0, fd, 0));
    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, all, -1, 0));
    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, all | MAP_TYPE, -1, 0));
    ERR(EINVAL, mmap(NULL, 0, PROT_READ, all | MAP_PRIVATE, -1, 0));
    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, all | MAP_PRIVATE | 13 << MAP_HUGE_SHIFT, -1, 0));
    ERR(EINVAL, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_HUGETLB, fd, 0));
}

TEST(no_programs_from_a_noexec_mount)
{
    int fd = OK(open("/dev/shm/code", O_RDWR | O_CREAT | O_TRUNC, 0600)), w;

    OK(ftruncate(fd, 4096));
    ERR(EPERM, (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
    ERR(EPERM, (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
    w = OK(open("/dev/shm/code", O_WRONLY));
    ERR(EACCES, (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, w, 0));
    OK(unlink("/dev/shm/code"));
}

TEST(locked_future_without_a_limit_left)
{
    struct rlimit r;

    OK(getrlimit(RLIMIT_MEMLOCK, &r));
    if (mlockall(MCL_FUTURE))
        return;
    r.rlim_cur = 0;
    OK(setrlimit(RLIMIT_MEMLOCK, &r));
    ERR(EAGAIN, (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ERR(EPERM, (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0));
}

TEST(a_program_can_unmap_all_of_itself)
{
    /* From any of these on up to the end of the addresses, which takes the code along. */
    static const uintptr_t from[] = {0, 0x1000, 0x10000};

    for (unsigned i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        pid_t pid = OK(fork());
        int status;

        if (pid == 0) {
            munmap((void *)from[i], 0x7ffffffff000 - from[i]);
            _exit(1);
        }
        EQ(waitpid(pid, &status, 0), pid);
        KILLED(status & ~0x80, SIGSEGV);
    }
    ERR(EINVAL, munmap((void *)0x1000, 0x7ffffffff000));
    ERR(EINVAL, munmap(NULL, ~0UL - 4095));
}
