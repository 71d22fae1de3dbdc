/* SPDX-License-Identifier: Apache-2.0 */
/* Advice that reaches files and other processes. */
#include "tests/guest/guest.h"

#include <sched.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/uio.h>

enum { PAGE = 4096 };

static long advise(int pidfd, const struct iovec *iov, size_t n, int advice, unsigned flags)
{
    return syscall(SYS_process_madvise, pidfd, iov, n, advice, flags);
}

/* Six pages of fd, full of ones, mapped. */
static char *filled(int fd)
{
    char *p;

    OK(ftruncate(fd, 6 * PAGE));
    p = OK(mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    memset(p, 1, 6 * PAGE);
    return p;
}

static void remove_from(int fd)
{
    char *p = filled(fd), *q, byte, path[64];
    struct stat before, after;

    OK(fsync(fd));
    OK(fstat(fd, &before));
    OK(madvise(p + PAGE, 2 * PAGE, MADV_REMOVE));
    EQ(p[0], 1);
    EQ(p[PAGE], 0);
    EQ(p[3 * PAGE - 1], 0);
    EQ(p[3 * PAGE], 1);
    EQ(pread(fd, &byte, 1, 2 * PAGE), 1);
    EQ(byte, 0);
    OK(fstat(fd, &after));
    EQ(after.st_size, before.st_size);
    CHECK(after.st_blocks <= before.st_blocks);
    /* In a map that begins elsewhere in the file. */
    q = OK(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4 * PAGE));
    OK(madvise(q + PAGE, 1, MADV_REMOVE));
    EQ(p[4 * PAGE], 1);
    EQ(p[5 * PAGE], 0);
    ERR(EINVAL, madvise(p + 1, PAGE, MADV_REMOVE));
    OK(madvise(p, 0, MADV_REMOVE));
    OK(mprotect(p, PAGE, PROT_NONE)); /* what it was mapped with is what counts */
    OK(madvise(p, PAGE, MADV_REMOVE));
    OK(mprotect(p, PAGE, PROT_READ));
    EQ(p[0], 0);
    OK(munmap(p + PAGE, PAGE));
    ERR(ENOMEM, madvise(p + PAGE, 3 * PAGE, MADV_REMOVE));
    EQ(p[3 * PAGE], 0);
    OK(mlock(p + 4 * PAGE, PAGE));
    ERR(EINVAL, madvise(p + 4 * PAGE, PAGE, MADV_REMOVE));
    EQ(p[4 * PAGE], 1);
    p = OK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    ERR(EACCES, madvise(p, PAGE, MADV_REMOVE));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    p = OK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, OK(open(path, O_RDONLY)), 0));
    ERR(EACCES, madvise(p, PAGE, MADV_REMOVE));
}

BOTH(remove_from_files)
{
    remove_from(OK(open("f", O_RDWR | O_CREAT, 0600)));
}

TEST(remove_from_memory_files)
{
    char *p = OK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

    remove_from(OK(memfd_create("m", 0)));
    ERR(EINVAL, madvise(p, PAGE, MADV_REMOVE));
}

TEST(advice_about_another_process)
{
    char *p = OK(mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct iovec iov[3] = {{p, PAGE}, {p + 2 * PAGE, PAGE + 1}, {p + 6 * PAGE, 0}};
    int fd, status;
    pid_t pid;

    memset(p, 1, 8 * PAGE);
    pid = OK(fork());
    if (!pid) {
        pause();
        _exit(0);
    }
    OK(munmap(p, 8 * PAGE)); /* it is the child's memory that counts */
    fd = OK(pidfd_open(pid, 0));
    EQ(advise(fd, iov, 3, MADV_COLD, 0), 2 * PAGE + 1);
    EQ(advise(fd, iov, 3, MADV_PAGEOUT, 0), 2 * PAGE + 1);
    EQ(advise(fd, iov, 3, MADV_WILLNEED, 0), 2 * PAGE + 1);
    EQ(advise(fd, iov, 0, MADV_COLD, 0), 0);
    ERR(EINVAL, advise(fd, iov, 3, MADV_DONTNEED, 0));
    ERR(EINVAL, advise(fd, iov, 3, MADV_COLD, 1));
    ERR(EINVAL, advise(fd, iov, 2000, MADV_COLD, 0));
    ERR(EFAULT, advise(fd, guest_unmapped(), 1, MADV_COLD, 0));
    ERR(EBADF, advise(999, iov, 3, MADV_COLD, 0));
    ERR(EBADF, advise(OK(open("/", O_RDONLY)), iov, 3, MADV_COLD, 0));
    /* What comes before the first mistake is done. */
    iov[1].iov_base = p + 1;
    EQ(advise(fd, iov, 2, MADV_COLD, 0), PAGE);
    iov[0].iov_base = (void *)0x10000;
    ERR(ENOMEM, advise(fd, iov, 2, MADV_COLD, 0));
    EXITED(IN_CHILD({
               OK(setresuid(12345, 12345, 12345));
               iov[0].iov_base = p;
               ERR(EACCES, advise(fd, iov, 1, MADV_COLD, 0));
           }),
           0);
    OK(kill(pid, SIGKILL));
    OK(waitpid(pid, &status, 0));
    ERR(ESRCH, advise(fd, iov, 1, MADV_COLD, 0));
}

TEST(release_of_a_dying_process)
{
    int fd, status;
    pid_t pid = OK(fork());

    if (!pid) {
        pause();
        _exit(0);
    }
    fd = OK(pidfd_open(pid, 0));
    ERR(EINVAL, syscall(SYS_process_mrelease, fd, 1));
    ERR(EBADF, syscall(SYS_process_mrelease, 999, 0));
    ERR(EINVAL, syscall(SYS_process_mrelease, fd, 0)); /* nothing kills it */
    OK(kill(pid, SIGKILL));
    if (syscall(SYS_process_mrelease, fd, 0))
        EQ(errno, ESRCH); /* it was faster */
    EQ(waitpid(pid, &status, 0), pid);
    KILLED(status, SIGKILL);
    ERR(ESRCH, syscall(SYS_process_mrelease, fd, 0));
}
