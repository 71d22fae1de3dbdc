/* SPDX-License-Identifier: Apache-2.0 */
/* More of files: copying, attributes, locks, descriptors, devices, limits. */
#include "tests/guest/guest.h"

#include <dirent.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>

BOTH(copying)
{
    char buf[16];
    off_t off = 2;
    loff_t in = 1, out = 5;
    int a, b;

    guest_write_file("a", "0123456789");
    a = OK(open("a", O_RDONLY));
    b = OK(open("b", O_RDWR | O_CREAT, 0600));
    EQ(sendfile(b, a, &off, 4), 4);
    EQ(off, 6);
    EQ(lseek(a, 0, SEEK_CUR), 0);
    EQ(sendfile(b, a, NULL, 100), 10);
    EQ(pread(b, buf, 16, 0), 14);
    CHECK(!memcmp(buf, "23450123456789", 14));
    EQ(copy_file_range(a, &in, b, &out, 3, 0), 3);
    EQ(in, 4);
    EQ(out, 8);
    EQ(pread(b, buf, 16, 0), 14);
    CHECK(!memcmp(buf, "23450123456789", 14));
    ERR(EINVAL, copy_file_range(a, &in, b, &out, 3, 1));
    ERR(EBADF, copy_file_range(b, &in, a, &out, 3, 0));
    OK(fsync(b));
    OK(fdatasync(b));
    OK(syncfs(b));
    ERR(EBADF, fsync(999));
    EQ(posix_fadvise(b, 0, 0, POSIX_FADV_SEQUENTIAL), 0);
    OK((int)readahead(a, 0, 100));
}

BOTH(user_xattrs)
{
    char buf[64];

    guest_write_file("f", "");
    if (setxattr("f", "user.a", "value", 5, 0) && errno == EOPNOTSUPP)
        return; /* the host's own file system may have none */
    EQ(getxattr("f", "user.a", buf, sizeof(buf)), 5);
    CHECK(!memcmp(buf, "value", 5));
    EQ(getxattr("f", "user.a", NULL, 0), 5);
    ERR(ERANGE, getxattr("f", "user.a", buf, 3));
    ERR(ENODATA, getxattr("f", "user.b", buf, 3));
    ERR(EEXIST, setxattr("f", "user.a", "x", 1, XATTR_CREATE));
    ERR(ENODATA, setxattr("f", "user.b", "x", 1, XATTR_REPLACE));
    OK(setxattr("f", "user.b", "x", 1, XATTR_CREATE));
    EQ(listxattr("f", buf, sizeof(buf)), 14);
    OK(removexattr("f", "user.a"));
    ERR(ENODATA, removexattr("f", "user.a"));
    ERR(EOPNOTSUPP, setxattr("f", "nonsense.a", "x", 1, 0));
    ERR(ERANGE, setxattr("f", "", "x", 1, 0));
}

BOTH(statfs_call)
{
    struct statfs s;
    struct statvfs v;

    OK(statfs(".", &s));
    CHECK(s.f_bsize > 0 && s.f_blocks > 0 && s.f_namelen == 255);
    OK(statvfs(".", &v));
    OK(fstatfs(OK(open(".", O_RDONLY)), &s));
    ERR(ENOENT, statfs("missing", &s));
}

BOTH(locks)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 10};
    int a, b;

    guest_write_file("f", "");
    a = OK(open("f", O_RDWR));
    b = OK(open("f", O_RDWR));
    OK(flock(a, LOCK_EX));
    ERR(EWOULDBLOCK, flock(b, LOCK_EX | LOCK_NB));
    ERR(EWOULDBLOCK, flock(b, LOCK_SH | LOCK_NB));
    OK(flock(a, LOCK_SH));
    OK(flock(b, LOCK_SH | LOCK_NB));
    OK(flock(b, LOCK_UN));
    OK(flock(a, LOCK_EX));
    OK(close(a));
    OK(flock(b, LOCK_EX | LOCK_NB));
    OK(fcntl(b, F_SETLK, &l));
    EXITED(IN_CHILD({
               struct flock q = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
               OK(fcntl(b, F_GETLK, &q));
               EQ(q.l_type, F_WRLCK);
               EQ(q.l_start, 10);
               EQ(q.l_len, 10);
               EQ(q.l_pid, getppid());
               q = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 15, .l_len = 1};
               ERR(EAGAIN, fcntl(b, F_SETLK, &q));
               q.l_start = 20;
               OK(fcntl(b, F_SETLK, &q));
               ERR(EINVAL, (q.l_type = 9, fcntl(b, F_SETLK, &q)));
           }), 0);
    /* Closing any descriptor of the file drops the process's record locks. */
    OK(close(OK(open("f", O_RDONLY))));
    EXITED(IN_CHILD(OK(fcntl(b, F_SETLK, &l))), 0);
    /* Blocking: the child waits until the parent lets go. */
    OK(fcntl(b, F_SETLK, &l));
    uint64_t begin = now_ms();
    pid_t child = OK(fork());
    if (!child) {
        OK(fcntl(b, F_SETLKW, &l));
        _exit(now_ms() - begin >= 45 ? 0 : 1);
    }
    sleep_ms(50);
    l.l_type = F_UNLCK;
    OK(fcntl(b, F_SETLK, &l));
    int status;
    EQ(waitpid(child, &status, 0), child);
    EXITED(status, 0);
}

BOTH(open_description_locks)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int a, b;

    guest_write_file("f", "");
    a = OK(open("f", O_RDWR));
    b = OK(open("f", O_RDWR));
    OK(fcntl(a, F_OFD_SETLK, &l));
    ERR(EAGAIN, fcntl(b, F_OFD_SETLK, &l));
    OK(close(a));
    OK(fcntl(b, F_OFD_SETLK, &l));
    l.l_pid = 5;
    ERR(EINVAL, fcntl(b, F_OFD_SETLK, &l));
}

TEST(descriptors)
{
    struct rlimit lim;
    int a = OK(open("/dev/null", O_RDWR)), b;

    EQ(dup2(a, 50), 50);
    EQ(dup2(a, a), a);
    ERR(EINVAL, dup3(a, a, 0));
    EQ(dup3(a, 51, O_CLOEXEC), 51);
    EQ(fcntl(51, F_GETFD), FD_CLOEXEC);
    ERR(EINVAL, dup3(a, 52, O_APPEND));
    ERR(EBADF, dup2(999, 50));
    ERR(EBADF, dup2(a, -1));
    ERR(EBADF, dup2(a, 1 << 20));
    EQ(fcntl(a, F_DUPFD, 60), 60);
    EQ(fcntl(a, F_DUPFD_CLOEXEC, 60), 61);
    ERR(EINVAL, fcntl(a, F_DUPFD, -1));
    ERR(EINVAL, fcntl(a, 9999));
    OK(fcntl(a, F_SETFD, FD_CLOEXEC));
    EQ(fcntl(a, F_GETFD), FD_CLOEXEC);
    OK(fcntl(a, F_SETFL, O_APPEND | O_NONBLOCK));
    EQ(fcntl(50, F_GETFL) & (O_APPEND | O_NONBLOCK | O_ACCMODE), O_APPEND | O_NONBLOCK | O_RDWR);
    OK((int)syscall(436, 50, 55, 0));
    ERR(EBADF, fcntl(50, F_GETFD));
    OK((int)syscall(436, 60, ~0U, 4));
    EQ(fcntl(60, F_GETFD), FD_CLOEXEC);
    ERR(EINVAL, syscall(436, 10, 5, 0));
    b = OK(open("/dev/null", O_RDONLY));
    OK(close(b));
    EQ(OK(open("/dev/null", O_RDONLY)), b); /* lowest number */
    OK(getrlimit(RLIMIT_NOFILE, &lim));
    lim.rlim_cur = 100;
    OK(setrlimit(RLIMIT_NOFILE, &lim));
    ERR(EINVAL, fcntl(a, F_DUPFD, 100));
    for (int i = 0; i < 100; i++)
        b = dup(a);
    EQ(b, -1);
    EQ(errno, EMFILE);
    ERR(EMFILE, open("/dev/null", O_RDONLY));
}

TEST(openat2_resolve)
{
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
    char big[64] = "";
    int d;

    guest_tmpdir();
    OK(mkdir("d", 0755));
    guest_write_file("d/f", "");
    guest_write_file("out", "");
    OK(symlink("../out", "d/escape"));
    OK(symlink("/out", "d/absolute"));
    d = OK(open("d", O_RDONLY));
    OK((int)syscall(437, d, "f", &how, sizeof(how)));
    ERR(EXDEV, syscall(437, d, "../out", &how, sizeof(how)));
    ERR(EXDEV, syscall(437, d, "escape", &how, sizeof(how)));
    ERR(EXDEV, syscall(437, d, "/out", &how, sizeof(how)));
    how.resolve = RESOLVE_NO_SYMLINKS;
    ERR(ELOOP, syscall(437, d, "escape", &how, sizeof(how)));
    how.resolve = RESOLVE_IN_ROOT;
    ERR(ENOENT, syscall(437, d, "absolute", &how, sizeof(how)));
    OK((int)syscall(437, d, "/f", &how, sizeof(how)));
    how.resolve = 0x8000;
    ERR(EINVAL, syscall(437, d, "f", &how, sizeof(how)));
    how.resolve = 0;
    memcpy(big, &how, sizeof(how));
    OK((int)syscall(437, d, "f", big, sizeof(big)));
    big[40] = 1;
    ERR(E2BIG, syscall(437, d, "f", big, sizeof(big)));
    ERR(EINVAL, syscall(437, d, "f", &how, 8));
}

TEST(devices)
{
    char buf[16];
    struct stat st;
    int fd;

    fd = OK(open("/dev/null", O_RDWR));
    EQ(read(fd, buf, 16), 0);
    EQ(write(fd, buf, 16), 16);
    OK(fstat(fd, &st));
    CHECK(S_ISCHR(st.st_mode));
    EQ(st.st_rdev, makedev(1, 3));
    fd = OK(open("/dev/zero", O_RDWR));
    memset(buf, 1, 16);
    EQ(read(fd, buf, 16), 16);
    EQ(buf[0] | buf[15], 0);
    fd = OK(open("/dev/full", O_RDWR));
    ERR(ENOSPC, write(fd, buf, 16));
    EQ(read(fd, buf, 16), 16);
    fd = OK(open("/dev/urandom", O_RDONLY));
    EQ(read(fd, buf, 16), 16);
    fd = OK(open("/dev/random", O_RDONLY));
    EQ(read(fd, buf, 16), 16);
    OK(stat("/dev/tty", &st));
    ERR(ENXIO, open("/dev/tty", O_RDWR));
    EQ(readlink("/dev/stdin", buf, 16) > 0, 1);
}

TEST(big_file)
{
    enum { MB = 1 << 20 };
    char *a = malloc(MB), *b = malloc(MB);
    int fd;

    guest_tmpdir();
    for (int i = 0; i < MB; i++)
        a[i] = (char)(i * 31 + i / 4096);
    fd = OK(open("big", O_RDWR | O_CREAT, 0600));
    for (int i = 0; i < 32; i++)
        EQ(write(fd, a, MB), MB);
    for (int i = 0; i < 32; i++) {
        EQ(pread(fd, b, MB, (off_t)i * MB), MB);
        CHECK(!memcmp(a, b, MB));
    }
}

TEST(file_size_limit)
{
    struct rlimit lim = {8192, RLIM_INFINITY};
    char buf[8000];
    int fd;

    guest_tmpdir();
    fd = OK(open("f", O_RDWR | O_CREAT, 0600));
    OK(setrlimit(RLIMIT_FSIZE, &lim));
    EQ(write(fd, buf, 8000), 8000);
    EQ(write(fd, buf, 8000), 192);
    KILLED(IN_CHILD(write(fd, buf, 1)), SIGXFSZ);
    signal(SIGXFSZ, SIG_IGN);
    ERR(EFBIG, write(fd, buf, 1));
    ERR(EFBIG, ftruncate(fd, 10000));
}

TEST(chroot_confines)
{
    char cwd[64];

    guest_tmpdir();
    OK(mkdir("jail", 0755));
    guest_write_file("jail/inside", "");
    guest_write_file("outside", "");
    OK(chroot("jail"));
    OK(chdir("/"));
    OK(access("/inside", F_OK));
    ERR(ENOENT, access("/../outside", F_OK));
    ERR(ENOENT, access("../../outside", F_OK));
    STR(getcwd(cwd, sizeof(cwd)), "/");
}

TEST(umask_call)
{
    struct stat st;

    guest_tmpdir();
    umask(077);
    EQ(umask(0277), 077);
    EQ(umask(0777), 0277);
    OK(close(OK(open("f", O_CREAT | O_WRONLY, 0777))));
    OK(stat("f", &st));
    EQ(st.st_mode & 0777, 0);
}

/* What a store through a shared map does to the file's times. */
static void store_times(const char *path)
{
    int fd = OK(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    OK(write(fd, path, 1));
    volatile char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    struct timespec past[2] = {{1000, 0}, {1000, 0}};
    struct stat st;
    OK(futimens(fd, past));
    OK(fstat(fd, &st));
    EQ(st.st_mtime, 1000);
    p[0] = 'x';
    OK(msync((void *)p, 4096, MS_SYNC));
    OK(stat(path, &st));
    CHECK(st.st_mtime > 1000000000 && st.st_ctime >= st.st_mtime);
    /* Times that are set afterwards stay. */
    OK(futimens(fd, past));
    OK(stat(path, &st));
    EQ(st.st_mtime, 1000);
    OK(fstat(fd, &st));
    EQ(st.st_mtime, 1000);
    OK(unlink(path));
    OK(close(fd));
}

TEST(stores_through_maps_change_times)
{
    store_times("/dev/shm/mapped");
    store_times("/tmp/mapped");
}

TEST(copy_file_range_errors_in_order)
{
    loff_t in = 0, out = 0;
    int p[2];

    guest_tmpdir();
    guest_write_file("a", "0123456789");
    int a = OK(open("a", O_RDWR)), b = OK(open("b", O_RDWR | O_CREAT, 0600)), r = OK(open("b", O_RDONLY));
    int w = OK(open("a", O_WRONLY)), app = OK(open("b", O_WRONLY | O_APPEND)), d = OK(open(".", O_RDONLY | O_DIRECTORY));
    int null = OK(open("/dev/null", O_RDWR));
    OK(pipe(p));
    ERR(EISDIR, copy_file_range(a, &in, d, &out, 5, 0));
    ERR(EISDIR, copy_file_range(d, &in, b, &out, 5, 0));
    ERR(EINVAL, copy_file_range(a, &in, d, &out, 5, 1));
    ERR(EINVAL, copy_file_range(a, &in, p[1], &out, 5, 0));
    ERR(EINVAL, copy_file_range(p[0], &in, b, &out, 5, 0));
    ERR(EINVAL, copy_file_range(a, &in, p[0], &out, 5, 0));
    ERR(EINVAL, copy_file_range(a, &in, null, &out, 5, 0));
    ERR(EBADF, copy_file_range(a, &in, r, &out, 5, 0));
    ERR(EBADF, copy_file_range(w, &in, b, &out, 5, 0));
    ERR(EBADF, copy_file_range(a, &in, app, &out, 5, 0));
    ERR(EBADF, copy_file_range(a, &in, 999, &out, 5, 0));
    ERR(EFAULT, copy_file_range(a, (loff_t *)8, b, &out, 5, 0));
    out = INT64_MAX;
    ERR(EFBIG, copy_file_range(a, &in, b, &out, 5, 0));
    in = out = 0;
    ERR(EOVERFLOW, copy_file_range(a, (loff_t[]){1}, b, &out, SIZE_MAX, 0));
    ERR(EINVAL, copy_file_range(a, &in, a, (loff_t[]){4}, 5, 0));
    ERR(EINVAL, copy_file_range(a, (loff_t[]){4}, a, &out, 5, 0));
    EQ(copy_file_range(a, &in, a, (loff_t[]){20}, 1000, 0), 10);
    in = 0;
    EQ(copy_file_range(a, &in, b, &out, SIZE_MAX, 0), 30);
    EQ(in, 30);
    EQ(out, 30);
}

struct cached {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

static long cachestat_(int fd, uint64_t offset, uint64_t size, struct cached *st)
{
    uint64_t range[2] = {offset, size};

    memset(st, 0xff, sizeof(*st));
    return syscall(451, fd, range, st, 0);
}

BOTH(cached_pages)
{
    static char page[4096];
    struct cached st;
    uint64_t range[2] = {0, 0};
    int fd = OK(open("f", O_RDWR | O_CREAT, 0600)), p[2];

    for (int pages = 1; pages <= 40; pages += 39) {
        for (int i = 0; i < pages; i++)
            EQ(pwrite(fd, page, sizeof(page), i * 4096L), sizeof(page));
        OK(cachestat_(fd, 0, (uint64_t)pages * 4096, &st));
        EQ(st.cached + st.evicted, pages);
        OK(cachestat_(fd, 0, 0, &st));
        EQ(st.cached + st.evicted, pages);
    }
    EQ(st.writeback & ~63UL, 0);
    OK(cachestat_(fd, 4096, 1, &st));
    EQ(st.cached + st.evicted, 1);
    OK(cachestat_(fd, 4095, 2, &st));
    EQ(st.cached + st.evicted, 2);
    OK(cachestat_(fd, 1 << 20, 0, &st));
    EQ(st.cached, 0);
    EQ(st.evicted, 0);
    ERR(EFAULT, syscall(451, fd, guest_unmapped(), &st, 0));
    ERR(EFAULT, syscall(451, fd, range, guest_unmapped(), 0));
    ERR(EINVAL, syscall(451, fd, range, &st, 1));
    ERR(EBADF, cachestat_(-1, 0, 0, &st));
    ERR(EBADF, cachestat_(OK(open("f", O_PATH)), 0, 0, &st));
    /* Of what has no pages there are none. */
    OK(pipe(p));
    OK(cachestat_(p[0], 0, 0, &st));
    EQ(st.cached, 0);
    OK(cachestat_(OK(open(".", O_RDONLY)), 0, 0, &st));
    /* Only who may write is told. */
    fd = OK(open("f", O_RDONLY));
    OK(cachestat_(fd, 0, 0, &st));
    EQ(st.cached + st.evicted, 40);
    OK(fchmod(fd, 0644));
    EXITED(IN_CHILD({
               OK(setresuid(12345, 12345, 12345));
               ERR(EPERM, cachestat_(fd, 0, 0, &st));
           }),
           0);
    OK(fchmod(fd, 0666));
    EXITED(IN_CHILD({
               OK(setresuid(12345, 12345, 12345));
               OK(cachestat_(fd, 0, 0, &st));
           }),
           0);
}
