/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of calls on open files, attributes, locks and mounts, one a line. */
#include "tests/guest/probe.h"

#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

static char cwd[4096];
static void st(const char *p)
{
    struct stat s;
    if (lstat(p, &s)) {
        printf("lstat %s -%s\n", p, strerrorname_np(errno));
        return;
    }
    printf("lstat %s mode %o nlink %ld uid %d gid %d size %ld rdev %lx\n", p, s.st_mode,
           S_ISDIR(s.st_mode) ? 0L : (long)s.st_nlink, s.st_uid, s.st_gid,
           S_ISDIR(s.st_mode) ? 0L : (long)s.st_size, (long)s.st_rdev);
}
static void probe_open(void)
{
    PF(open("f", O_CREAT | O_RDWR, 0666));
    st("f");
    PF(open("f", O_CREAT | O_EXCL | O_RDWR, 0666));
    PF(open("", O_RDONLY));
    PF(open("nope", O_RDONLY));
    PF(open("f/", O_RDONLY));
    PF(open("f/x", O_RDONLY));
    PF(open("nope/x", O_CREAT | O_RDWR, 0600));
    PF(open(".", O_WRONLY));
    PF(open(".", O_RDWR | O_CREAT, 0600));
    PF(open("..", O_CREAT, 0600));
    PF(open("/", O_CREAT, 0600));
    PF(open("new/", O_CREAT, 0600));
    PF(open(".", O_RDONLY | O_DIRECTORY));
    PF(open("f", O_DIRECTORY));
    PF(open("zz", O_DIRECTORY | O_CREAT, 0600));
    PF(open(".", O_TMPFILE | O_RDONLY, 0600));
    PF(open(".", O_TMPFILE | O_RDWR, 0600));
    PF(open("f", O_TMPFILE | O_RDWR, 0600));
    PF(open("f", O_RDONLY | 0x40000000));
    PF(open("f", 3));
    PF(open("f", O_PATH | O_CREAT | O_EXCL));
    PF(open("f", O_TRUNC | O_RDONLY));
    P(symlink("f", "l"));
    P(symlink("l", "l"));
    P(symlink("", "e"));
    P(symlink("loop", "loop"));
    P(symlink("d1/../f", "weird"));
    P(symlink("none", "dang"));
    P(symlink("./", "slash"));
    PF(open("l", O_NOFOLLOW));
    PF(open("l", O_NOFOLLOW | O_PATH));
    PF(open("l/", O_RDONLY));
    PF(open("loop", O_RDONLY));
    PF(open("loop", O_NOFOLLOW));
    PF(open("dang", O_CREAT | O_EXCL, 0600));
    PF(open("dang", O_RDONLY));
    PF(open("dang", O_NOFOLLOW | O_CREAT, 0600));
    PF(open("dang/", O_CREAT, 0600));
    PF(open("weird", O_RDONLY));
    PF(open("slash/f", O_RDONLY));
    PF(open("dang", O_CREAT | O_RDWR, 0600));
    st("none");
    P(unlink("none"));
    PF(open("l", O_NOFOLLOW | O_DIRECTORY));
    PF(open("slash", O_NOFOLLOW | O_DIRECTORY));
    PF(open("slash/", O_NOFOLLOW | O_DIRECTORY));
    {
        char n[300];
        memset(n, 'a', 299);
        n[256] = 0;
        PF(open(n, O_CREAT, 0600));
        n[255] = 0;
        PF(open(n, O_CREAT | O_RDWR, 0600));
        P(unlink(n));
        char *big = malloc(5000);
        memset(big, '/', 4999);
        big[4095] = 0;
        PF(open(big, O_RDONLY));
        big[4095] = '/';
        big[4096] = 0;
        PF(open(big, O_RDONLY));
    }
    P(open((char *)8, O_RDONLY));
    P(open((char *)-1, O_RDONLY));
}

static void probe_fds(void)
{
    {
        int fd = open("f", O_RDWR);
        P(fcntl(fd, F_GETFL));
        P(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
        P(fcntl(fd, F_GETFL));
        P(fcntl(fd, F_SETFL, 0));
        P(fcntl(fd, F_GETFD));
        P(fcntl(fd, F_SETFD, FD_CLOEXEC));
        P(fcntl(fd, F_GETFD));
        P(fcntl(fd, F_DUPFD, 100));
        P(fcntl(fd, F_DUPFD_CLOEXEC, 100));
        P(fcntl(101, F_GETFD));
        P(fcntl(fd, F_DUPFD, 1 << 30));
        P(fcntl(fd, F_DUPFD, -1));
        P(dup2(fd, fd));
        P(dup3(fd, fd, 0));
        P(dup3(fd, 50, O_APPEND));
        P(dup3(fd, 50, O_CLOEXEC));
        P(dup2(fd, -1));
        P(dup2(99, 3));
        P(dup2(fd, 1 << 30));
        P(close(99));
        P(close(-1));
        P(syscall(436, 100, 101, 0));
        P(fcntl(100, F_GETFD));
        P(syscall(436, 5, 4, 0));
        P(syscall(436, 3, 4, 64));
        P(close(50));
        P(fcntl(fd, 9999, 0));
        P(fcntl(fd, F_GETLEASE));
        P(fcntl(fd, F_SETLEASE, F_UNLCK));
        P(fcntl(fd, F_GETOWN));
        P(fcntl(fd, F_SETOWN, getpid()) - 0);
        P(fcntl(fd, F_GETSIG));
        P(fcntl(fd, F_SETSIG, SIGIO));
        P(fcntl(fd, F_SETSIG, 100));
        P(fcntl(fd, F_GETPIPE_SZ));
        P(fcntl(fd, F_GET_SEALS));
        P(fcntl(fd, F_SETOWN, 99999));
        close(fd);
        int p = open("f", O_PATH);
        P(fcntl(p, F_GETFL));
        P(read(p, cwd, 1));
        P(fcntl(p, F_SETFL, 0));
        P(fchmod(p, 0600));
        P(fchown(p, 0, 0));
        P(ftruncate(p, 0));
        P(ioctl(p, FIONREAD, cwd));
        P(fsync(p));
        struct stat s;
        P(fstat(p, &s));
        P(fchdir(p));
        P(fgetxattr(p, "user.x", 0, 0));
        P(mmap(0, 4096, PROT_READ, MAP_PRIVATE, p, 0) == MAP_FAILED ? -1 : 0);
        P(lseek(p, 0, 0));
        P(flock(p, LOCK_SH));
        close(p);
    }
}

static void probe_rw(void)
{
    {
        int fd = open("f", O_RDWR | O_TRUNC);
        P(write(fd, "hello", 5));
        P(lseek(fd, 0, SEEK_CUR));
        P(lseek(fd, -1, SEEK_SET));
        P(lseek(fd, 10, SEEK_END));
        P(lseek(fd, 0, 9));
        P(write(fd, "x", 1));
        P(lseek(fd, 0, SEEK_END));
        P(pread(fd, cwd, 100, 3));
        P(pread(fd, cwd, 1, -1));
        P(pwrite(fd, "y", 1, 0));
        P(pread(fd, cwd, 100, 100));
        P(read(fd, (void *)8, 1));
        P(lseek(fd, 0, 0));
        P(read(fd, (void *)8, 1));
        P(write(fd, (void *)8, 1));
        P(read(fd, cwd, 0));
        P(read(fd, cwd, -1));
        P(write(fd, cwd, 0));
        struct iovec v[3] = {{cwd, 2}, {cwd + 2, 0}, {cwd + 4, 3}};
        P(readv(fd, v, 3));
        P(readv(fd, v, 1025));
        P(readv(fd, v, -1));
        P(readv(fd, v, 0));
        v[0].iov_len = -1;
        P(readv(fd, v, 1));
        v[0].iov_len = 2;
        P(preadv(fd, v, 3, 1));
        P(preadv2(fd, v, 3, -1, 0));
        P(preadv2(fd, v, 1, 0, 0x1000));
        P(pwritev2(fd, v, 1, 0, RWF_APPEND));
        P(lseek(fd, 0, SEEK_END));
        P(pwritev2(fd, v, 1, 0, RWF_DSYNC));
        P(ftruncate(fd, -1));
        P(ftruncate(fd, 3));
        st("f");
        P(truncate("f", 100));
        st("f");
        P(truncate("nope", 1));
        P(truncate(".", 1));
        P(truncate("f", -1));
        P(fallocate(fd, 0, 0, 0));
        P(fallocate(fd, 0, -1, 5));
        P(fallocate(fd, 0, 0, 8192));
        st("f");
        P(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000));
        st("f");
        P(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 10));
        P(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 10));
        P(fallocate(fd, 0x1000, 0, 10));
        P(fsync(fd));
        P(fdatasync(fd));
        P(syncfs(fd));
        P(sync_file_range(fd, 0, 0, 7));
        P(sync_file_range(fd, 0, 0, 8));
        P(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
        P(syscall(221, fd, 0, 0, 77));
        P(readahead(fd, 0, 100));
        P(ioctl(fd, FIONREAD, cwd));
        P(*(int *)cwd);
        P(ioctl(fd, 0x5460, cwd));
        P(*(long *)cwd);
        P(ioctl(fd, 0x1234, cwd));
        P(ioctl(fd, TCGETS, cwd));
        P(isatty(fd));
        close(fd);
        fd = open("f", O_RDONLY);
        P(write(fd, "x", 1));
        P(pwrite(fd, "x", 1, 0));
        P(ftruncate(fd, 0));
        P(fallocate(fd, 0, 0, 1));
        close(fd);
        fd = open("f", O_WRONLY);
        P(read(fd, cwd, 1));
        close(fd);
        fd = open(".", O_RDONLY);
        P(read(fd, cwd, 1));
        P(write(fd, cwd, 1));
        P(pread(fd, cwd, 1, 0));
        P(fsync(fd));
        P(ftruncate(fd, 1));
        P(fallocate(fd, 0, 0, 1));
        P(mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
        P(lseek(fd, 0, SEEK_SET));
        P(syscall(217, fd, cwd, 10));
        P(syscall(217, fd, 8, 1000));
        close(fd);
        fd = open("f", O_RDONLY);
        P(syscall(217, fd, cwd, 1000));
        close(fd);
        fd = open("ap", O_CREAT | O_APPEND | O_RDWR, 0600);
        P(write(fd, "abc", 3));
        P(lseek(fd, 0, 0));
        P(write(fd, "def", 3));
        P(pwrite(fd, "Z", 1, 0));
        P(lseek(fd, 0, SEEK_END));
        close(fd);
    }
}

static void probe_rlimit(void)
{
    {
        struct rlimit r = {10, RLIM_INFINITY}, old;
        getrlimit(RLIMIT_FSIZE, &old);
        r.rlim_max = old.rlim_max;
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &r);
        int fd = open("lim", O_CREAT | O_RDWR, 0600);
        P(write(fd, "0123456789abc", 13));
        P(write(fd, "x", 1));
        P(ftruncate(fd, 11));
        P(pwrite(fd, "x", 1, 5));
        P(fallocate(fd, 0, 0, 20));
        r.rlim_cur = old.rlim_cur;
        setrlimit(RLIMIT_FSIZE, &old);
        close(fd);
    }
}

static void probe_attr(void)
{
    P(chmod("f", 06755));
    st("f");
    P(chmod("nope", 0));
    P(chmod("l", 0644));
    st("f");
    P(chown("f", 1, 2));
    st("f");
    P(chmod("f", 06755));
    P(chown("f", -1, -1));
    st("f");
    P(lchown("l", 3, 4));
    st("l");
    P(syscall(452, AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW));
    P(fchmodat(AT_FDCWD, "f", 0644, 0));
    P(fchownat(AT_FDCWD, "", 0, 0, AT_EMPTY_PATH));
    P(fchownat(AT_FDCWD, "", 0, 0, 0));
    P(fchownat(AT_FDCWD, "f", 0, 0, 1));
    P(access("f", R_OK));
    P(access("f", 8));
    P(access("nope", 0));
    P(access("f/", 0));
    P(faccessat(AT_FDCWD, "dang", F_OK, AT_SYMLINK_NOFOLLOW));
    P(access("f", X_OK));
    {
        struct timespec ts[2] = {{1, 2}, {3, 4}};
        struct stat s;
        P(utimensat(AT_FDCWD, "f", ts, 0));
        stat("f", &s);
        printf("%ld.%ld %ld.%ld\n", s.st_atim.tv_sec, s.st_atim.tv_nsec, s.st_mtim.tv_sec,
               s.st_mtim.tv_nsec);
        ts[0].tv_nsec = UTIME_OMIT;
        ts[1].tv_sec = 9;
        P(utimensat(AT_FDCWD, "f", ts, 0));
        stat("f", &s);
        printf("%ld.%ld %ld.%ld\n", s.st_atim.tv_sec, s.st_atim.tv_nsec, s.st_mtim.tv_sec,
               s.st_mtim.tv_nsec);
        ts[0].tv_nsec = -5;
        P(utimensat(AT_FDCWD, "f", ts, 0));
        ts[0].tv_nsec = ts[1].tv_nsec = UTIME_OMIT;
        P(utimensat(AT_FDCWD, "nope", ts, 0));
        P(utimensat(AT_FDCWD, "nope", 0, 0));
        P(syscall(280, AT_FDCWD, 0, 0, 0));
        {
            int fd = open("f", O_RDONLY);
            P(futimens(fd, 0));
            P(syscall(280, fd, 0, 0, AT_SYMLINK_NOFOLLOW));
            close(fd);
        }
        struct timeval tv[2] = {{5, 6}, {7, 1000000}};
        P(utimes("f", tv));
        tv[1].tv_usec = 8;
        P(utimes("f", tv));
        stat("f", &s);
        printf("%ld.%ld %ld.%ld\n", s.st_atim.tv_sec, s.st_atim.tv_nsec, s.st_mtim.tv_sec,
               s.st_mtim.tv_nsec);
        P(lutimes("l", tv));
        struct utimbuf u = {11, 12};
        P(utime("f", &u));
        P(utime("f", 0));
    }
    {
        struct stat s;
        P(fstatat(AT_FDCWD, "", &s, AT_EMPTY_PATH));
        P(fstatat(AT_FDCWD, "", &s, 0));
        P(fstatat(AT_FDCWD, "f", &s, 0x1));
        P(fstatat(99, "f", &s, 0));
        P(stat("f", (void *)8));
        struct statx x;
        P(statx(AT_FDCWD, "f", 0, STATX_ALL, &x));
        printf("mask %x attrmask ok %d mode %o\n", x.stx_mask & 0x7ff,
               !!(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT), x.stx_mode);
        P(statx(AT_FDCWD, "f", 0, 0x80000000, &x));
        P(statx(AT_FDCWD, "f", 0x6000, STATX_ALL, &x));
        P(statx(AT_FDCWD, "f", 0x1, STATX_ALL, &x));
        struct statfs sf;
        P(statfs("f", &sf));
        printf("namelen %ld\n", (long)sf.f_namelen);
        P(statfs("nope", &sf));
        P(fstatfs(99, &sf));
    }
}

static void probe_xattr(void)
{
    P(setxattr("f", "user.a", "v", 1, 0));
    P(setxattr("f", "user.a", "v", 1, XATTR_CREATE));
    P(setxattr("f", "user.b", "v", 1, XATTR_REPLACE));
    P(setxattr("f", "user.a", "v", 1, 3));
    P(setxattr("f", "user.a", "v", 1, 4));
    P(getxattr("f", "user.a", cwd, 0));
    P(getxattr("f", "user.a", cwd, 100));
    P(getxattr("f", "user.zz", cwd, 100));
    P(setxattr("f", "user.c", "vvvv", 4, 0));
    P(getxattr("f", "user.c", cwd, 2));
    P(listxattr("f", cwd, 0) >= 14);
    P(listxattr("f", cwd, 1));
    P(removexattr("f", "user.a"));
    P(removexattr("f", "user.a"));
    P(setxattr("f", "bogus", "v", 1, 0));
    P(setxattr("f", "bogus.x", "v", 1, 0));
    P(getxattr("f", "bogus.x", cwd, 1));
    P(setxattr("f", "user.", "v", 1, 0));
    P(setxattr("f", "", "v", 1, 0));
    P(lsetxattr("l", "user.a", "v", 1, 0));
    P(lgetxattr("l", "user.a", cwd, 1));
    P(setxattr("ff", "user.a", "v", 1, 0));
    P(setxattr("f", "user.big", cwd, 65537, 0));
    P(setxattr("f", "trusted.x", "v", 1, 0));
    P(getxattr("f", "trusted.x", cwd, 10));
    P(getxattr("f", "security.capability", cwd, 100));
    P(getxattr("f", "system.posix_acl_access", cwd, 100));
    P(fgetxattr(99, "user.a", cwd, 1));
    P(setxattr("nope", "user.a", "v", 1, 0));
    {
        char n[300];
        memset(n, 'a', 299);
        memcpy(n, "user.", 5);
        n[255] = 0;
        P(setxattr("f", n, "v", 1, 0));
        n[255] = 'a';
        n[256] = 0;
        P(setxattr("f", n, "v", 1, 0));
    }
}

static void probe_locks(void)
{
    {
        int fd = open("f", O_RDWR), fr = open("f", O_RDONLY);
        struct flock l = {F_WRLCK, SEEK_SET, 0, 10};
        P(fcntl(fd, F_SETLK, &l));
        P(fcntl(fr, F_SETLK, &l));
        l.l_type = F_RDLCK;
        l.l_start = 20;
        P(fcntl(fr, F_SETLK, &l));
        l.l_whence = 9;
        P(fcntl(fd, F_SETLK, &l));
        l.l_whence = 0;
        l.l_start = -1;
        P(fcntl(fd, F_SETLK, &l));
        l.l_start = 5;
        l.l_len = -6;
        P(fcntl(fd, F_SETLK, &l));
        l.l_len = -5;
        P(fcntl(fd, F_SETLK, &l));
        l.l_type = 9;
        P(fcntl(fd, F_SETLK, &l));
        l.l_type = F_UNLCK;
        P(fcntl(fd, F_GETLK, &l));
        l = (struct flock){F_WRLCK, 0, 0, 0};
        P(fcntl(fd, F_OFD_SETLK, &l));
        if (fork() == 0) {
            l = (struct flock){F_WRLCK, 0, 0, 0};
            P(fcntl(fd, F_GETLK, &l));
            printf("type %d start %ld len %ld pid %d\n", l.l_type, (long)l.l_start, (long)l.l_len,
                   l.l_pid == getppid());
            l.l_type = F_WRLCK;
            P(fcntl(fd, F_SETLK, &l));
            P(flock(fd, LOCK_EX));
            int f2 = open("f", O_RDWR);
            P(flock(f2, LOCK_EX | LOCK_NB));
            P(flock(f2, LOCK_SH | LOCK_NB));
            exit(0);
        }
        wait(0);
        close(fr);
        if (fork() == 0) {
            l = (struct flock){F_WRLCK, 0, 0, 0};
            P(fcntl(fd, F_GETLK, &l));
            printf("type %d\n", l.l_type);
            exit(0);
        }
        wait(0);
        P(flock(fd, 99));
        P(flock(99, LOCK_SH));
        l = (struct flock){F_WRLCK, 0, 0, 0};
        l.l_pid = 1;
        P(fcntl(fd, F_OFD_SETLK, &l));
        close(fd);
    }
}

static void probe_splice(void)
{
    {
        int p[2];
        pipe(p);
        int fd = open("f", O_RDWR | O_TRUNC);
        write(fd, "0123456789", 10);
        loff_t off = 2;
        P(splice(fd, &off, p[1], 0, 5, 0));
        P(off);
        P(read(p[0], cwd, 100));
        lseek(fd, 0, 0);
        P(splice(fd, 0, p[1], 0, 100, 0));
        P(lseek(fd, 0, SEEK_CUR));
        int g = open("sp", O_CREAT | O_RDWR, 0600);
        int q[2];
        pipe(q);
        P(tee(p[0], q[1], 100, 0));
        P(splice(p[0], 0, g, 0, 4, 0));
        P(splice(q[0], 0, g, 0, 100, 0));
        P(lseek(g, 0, SEEK_END));
        P(splice(fd, 0, g, 0, 10, 0));
        P(splice(p[0], 0, p[1], 0, 10, 0));
        P(splice(p[0], &off, g, 0, 1, 0));
        P(tee(fd, p[1], 1, 0));
        P(splice(p[0], 0, g, 0, 10, 0x100));
        lseek(fd, 0, 0);
        off = 1;
        P(sendfile(g, fd, &off, 3));
        P(off);
        P(sendfile(g, fd, 0, 100));
        P(sendfile(g, p[0], 0, 1));
        P(sendfile(g, 99, 0, 1));
        P(copy_file_range(fd, 0, g, 0, 10, 0));
        lseek(fd, 0, 0);
        P(copy_file_range(fd, 0, g, 0, 10, 0));
        P(copy_file_range(fd, 0, g, 0, 10, 1));
        off = 0;
        loff_t o2_ = 3;
        P(copy_file_range(fd, &off, fd, &o2_, 5, 0));
        P(copy_file_range(p[0], 0, g, 0, 5, 0));
        P(sendfile(p[1], fd, &off, 5));
        struct iovec v = {"vm", 2};
        P(vmsplice(p[1], &v, 1, 0));
        P(read(p[0], cwd, 100));
        close(g);
        g = open("sp", O_RDWR | O_APPEND);
        P(splice(p[0], 0, g, 0, 1, SPLICE_F_NONBLOCK));
        P(sendfile(g, fd, 0, 1));
        P(copy_file_range(fd, 0, g, 0, 1, 0));
    }
}

static void probe_mounts(void)
{
    mkdir("m", 0777);
    mkdir("m2", 0777);
    P(mount("t", "m", "tmpfs", 0, "size=64k,mode=750"));
    st("m");
    {
        struct statvfs v;
        statvfs("m", &v);
        printf("%ld %ld %lx\n", (long)v.f_blocks, (long)v.f_bsize, v.f_flag & ~0x20UL);
    }
    P(mount("t", "m", "nosuchfs", 0, 0));
    P(mount("t", "nope", "tmpfs", 0, 0));
    P(mount("t", "f", "tmpfs", 0, 0));
    P(mount("t", "m", "tmpfs", 0, "bad=1"));
    P(mkdir("m/a", 0777));
    P(mkdir("m/a/b", 0777));
    P(mount("m/a", "m2", 0, MS_BIND, 0));
    st("m2/b");
    P(umount("m"));
    P(rmdir("m2"));
    P(umount2("m2", UMOUNT_NOFOLLOW));
    P(mount("m/a", "m2", 0, MS_BIND, 0));
    P(mount(0, "m2", 0, MS_REMOUNT | MS_BIND | MS_RDONLY, 0));
    P(mkdir("m2/x", 0777));
    P(access("m2", W_OK));
    P(mount(0, "m/a", 0, MS_REMOUNT, 0));
    P(mount(0, "m", 0, MS_REMOUNT, "size=128k"));
    P(mount(0, "m", 0, MS_SHARED | MS_PRIVATE, 0));
    P(mount(0, "m", 0, MS_SHARED, 0));
    P(mount("m", "m2", 0, MS_MOVE, 0));
    P(umount2("m2", MNT_DETACH));
    P(umount2("m", 99));
    P(umount2("m", MNT_EXPIRE));
    P(umount2("m", MNT_EXPIRE));
    P(umount("m"));
    P(umount("f"));
    P(syscall(155, ".", "."));
    P(chroot("f"));
    P(chroot("nope"));
}

static int sys(long nr, long a, long b, long c, long d, long e)
{
    return (int)syscall(nr, a, b, c, d, e);
}

/* Mounts by descriptor. */
static void probe_mount_fd(void)
{
    enum { OPEN_TREE = 428, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, FSPICK, SETATTR = 442 };
    enum { NO_PATH = 0x1000, RECURSIVE = 0x8000, FROM_FD = 4 };
    long here = AT_FDCWD;
    mkdir("mf", 0777);
    mkdir("mf2", 0777);
    P(sys(FSOPEN, (long)"nosuchfs", 0, 0, 0, 0));
    P(sys(FSOPEN, (long)"tmpfs", 99, 0, 0, 0));
    int fs = sys(FSOPEN, (long)"tmpfs", 1, 0, 0, 0);
    P(sys(FSMOUNT, fs, 0, 0, 0, 0));
    P(sys(FSCONFIG, fs, 1, (long)"size", (long)"64k", 0));
    P(sys(FSCONFIG, fs, 1, (long)"mode", (long)"711", 0));
    P(sys(FSCONFIG, fs, 1, (long)"source", (long)"here", 0));
    P(sys(FSCONFIG, fs, 1, (long)"source", (long)"again", 0));
    P(sys(FSCONFIG, fs, 1, 0, 0, 0));
    P(sys(FSCONFIG, fs, 99, 0, 0, 0));
    P(sys(FSCONFIG, 99, 6, 0, 0, 0));
    P(sys(FSCONFIG, 1, 6, 0, 0, 0));
    P(sys(FSCONFIG, fs, 6, 0, 0, 0));
    P(sys(FSCONFIG, fs, 6, 0, 0, 0));
    P(sys(FSMOUNT, fs, 0, 0x80000000, 0, 0));
    int m = sys(FSMOUNT, fs, 1, 4 /* nodev */, 0, 0);
    P(sys(FSMOUNT, fs, 0, 0, 0, 0));
    P(mkdirat(m, "in", 0777));
    P(faccessat(m, "in", 0, 0));
    P(umount2("mf", MNT_DETACH));
    P(sys(MOVE_MOUNT, m, (long)"", here, (long)"mf", 0));
    P(sys(MOVE_MOUNT, m, (long)"in", here, (long)"mf", 0));
    P(sys(MOVE_MOUNT, m, (long)"", here, (long)"f", FROM_FD));
    P(sys(MOVE_MOUNT, m, (long)"", here, (long)"mf", FROM_FD));
    P(sys(MOVE_MOUNT, m, (long)"", here, (long)"mf", FROM_FD));
    st("mf");
    P(access("mf/in", 0));
    close(m);
    P(access("mf/in", 0));
    int t = sys(OPEN_TREE, here, (long)"mf", 1, 0, 0);
    P(sys(OPEN_TREE, here, (long)"mf", RECURSIVE, 0, 0));
    P(sys(OPEN_TREE, here, (long)"mf", 0x100000, 0, 0));
    P(sys(MOVE_MOUNT, t, (long)"", here, (long)"mf2", FROM_FD));
    P(access("mf2/in", 0));
    unsigned long a[4] = {1 /* read-only */, 0, 0, 0};
    P(sys(SETATTR, here, (long)"mf2", 0, (long)a, 32));
    P(sys(SETATTR, here, (long)"mf2", 0, (long)a, 8));
    P(sys(SETATTR, here, (long)"mf2/in", 0, (long)a, 32));
    P(mkdir("mf2/x", 0777));
    P(mkdir("mf/x", 0777));
    a[0] = 0x10; /* noatime without clearing the field */
    P(sys(SETATTR, here, (long)"mf2", 0, (long)a, 32));
    a[1] = 0x71;
    P(sys(SETATTR, here, (long)"mf2", 0, (long)a, 32));
    P(mkdir("mf2/y", 0777));
    a[0] = a[1] = 0;
    a[2] = MS_SHARED | MS_PRIVATE;
    P(sys(SETATTR, here, (long)"mf2", 0, (long)a, 32));
    P(umount2("mf2", MNT_DETACH));
    P(sys(MOVE_MOUNT, t, (long)"", here, (long)"mf2", FROM_FD));
    int pick = sys(FSPICK, here, (long)"mf", 0, 0, 0);
    P(sys(FSCONFIG, pick, 6, 0, 0, 0));
    P(sys(FSCONFIG, pick, 0, (long)"ro", 0, 0));
    P(sys(FSCONFIG, pick, 7, 0, 0, 0));
    P(mkdir("mf/z", 0777));
    P(sys(FSPICK, here, (long)"mf/in", 0, 0, 0));
    P(umount("mf"));
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    umask(022);
    mkdir("w", 0777);
    if (chdir("w") < 0)
        return 1;
    PROBE(probe_open);
    PROBE(probe_fds);
    PROBE(probe_rw);
    PROBE(probe_rlimit);
    PROBE(probe_attr);
    PROBE(probe_xattr);
    PROBE(probe_locks);
    PROBE(probe_splice);
    PROBE(probe_mounts);
    PROBE(probe_mount_fd);
    return 0;
}
